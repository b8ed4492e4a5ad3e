//! SortedReader files merged on all cores: what lies between two stacks is merged by one thread, what follows by another.

use std::cmp::Ordering;
use std::io::{BufRead as _, BufReader, Write};
use std::sync::Mutex;

use super::grammar::{Kind, parse_line};
use super::kway_merge::merge_sorted;
use super::ordered_writer::{OrderedWriter, lock};
use super::sorted_reader::SortedReader;
use super::stack_order::{order, shared_bytes};
use crate::Error;
use crate::input::FileRange;
use crate::parallel;

/// How much a range holds of the file that has most left.
const SPAN: u64 = 2 << 20;

/// How much is read at once where a stack is looked for.
const PIECE: u64 = 4096;

/// Merges sorted files of one kind and writes the result, which is named `name`.
///
/// # Errors
/// [`Error::Read`], [`Error::Write`], [`Error::Overflow`], and [`Error::Unreadable`] where one is sorted no longer.
pub fn merge_parallel(
    files: Vec<FileRange>,
    kind: Kind,
    threads: usize,
    name: &str,
    out: &mut (dyn Write + Send),
) -> Result<(), Error> {
    merge_in(Ranges { files, kind, span: SPAN, given: 0 }, threads, name, out)
}

fn merge_in(ranges: Ranges, threads: usize, name: &str, out: &mut (dyn Write + Send)) -> Result<(), Error> {
    let (kind, ranges) = (ranges.kind, Mutex::new(ranges));
    let turns = OrderedWriter::new(name, out);
    let next = || lock(&ranges).next();
    let work = || {
        let mut writer = turns.writer();
        while let Some((number, range)) = turns.keep(next())? {
            let sorted = |section: FileRange| SortedReader::amid(section.into_blocks(), kind);
            let texts = range.into_iter().map(sorted).collect();
            writer.part(number, |out| merge_sorted(texts, |_, input| input.next_stack(), Ok, None, name, out))?;
        }
        Some(())
    };
    parallel::map(0..threads, threads, |_| work());
    turns.end()
}

/// What is left of all files.
struct Ranges {
    files: Vec<FileRange>,
    kind: Kind,
    /// How much a range holds of the longest.
    span: u64,
    given: usize,
}

impl Ranges {
    /// The next range's number and its part of each file; nothing at the end.
    fn next(&mut self) -> Result<Option<(usize, Vec<FileRange>)>, Error> {
        let longest = self.files.iter().max_by_key(|file| file.end - file.start);
        let Some(longest) = longest.filter(|file| file.start < file.end) else { return Ok(None) };
        let last = stacks_from(longest, longest.start + self.span, self.kind).next().transpose()?;
        let end = |file: &FileRange| match &last {
            Some((_, stack)) => place(file, stack, self.span, self.kind),
            None => Ok(file.end),
        };
        let mut ends = self.files.iter().map(end).collect::<Result<Vec<_>, _>>()?;
        if self.files.iter().zip(&ends).all(|(file, end)| file.start == *end) {
            // It is sorted no longer, which the merging says.
            ends = self.files.iter().map(|file| file.end).collect();
        }
        let range = self.files.iter_mut().zip(ends).map(|(file, end)| file.split_to(end)).collect();
        self.given += 1;
        Ok(Some((self.given - 1, range)))
    }
}

/// Where the first line begins whose stack comes after this one.
fn place(file: &FileRange, stack: &[u8], span: u64, kind: Kind) -> Result<u64, Error> {
    let is_after = |other: &[u8]| order(other, stack, shared_bytes(other, stack)) == Ordering::Greater;
    let (mut low, mut high, mut found) = (file.start, file.end, file.end);
    while high - low > PIECE {
        // Mostly all files are alike.
        let middle = low + span.min((high - low) / 2);
        match stacks_from(file, middle, kind).next().transpose()?.filter(|(at, _)| *at < high) {
            Some((at, other)) if !is_after(&other) => low = at + 1,
            other => {
                found = other.map_or(found, |(at, _)| at);
                high = middle;
            }
        }
    }
    for next in stacks_from(file, low, kind) {
        let (at, other) = next?;
        if at >= high {
            break;
        }
        if is_after(&other) {
            return Ok(at);
        }
    }
    Ok(found)
}

/// The stacks of the lines that begin at this place or behind it, and where these begin.
fn stacks_from(file: &FileRange, place: u64, kind: Kind) -> impl Iterator<Item = Result<(u64, Vec<u8>), Error>> {
    // What stands there up to the end of a line began before it.
    let (mut at, mut is_amid) = (place.saturating_sub(1), place > 0);
    let mut text = BufReader::with_capacity(PIECE as usize, file.subrange(at..file.end));
    let mut line = Vec::new();
    std::iter::from_fn(move || {
        loop {
            line.clear();
            let start = at;
            match text.read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(read) => at += read as u64,
                Err(error) => return Some(Err(Error::read(file.name(), error))),
            }
            // Blank lines hold none.
            if !std::mem::take(&mut is_amid)
                && let Some(line) = parse_line(line.trim_ascii_end(), kind)
            {
                return Some(Ok((start, line.stack.to_vec())));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{Ranges, merge_in};
    use crate::folded::Kind;
    use crate::input::{FileRange, Source};

    /// Files of these texts, merged by three threads.
    fn merged(texts: &[String], span: u64) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = |(number, text): (usize, &String)| {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, text).unwrap();
            FileRange::open(&Source::File(path)).unwrap().unwrap()
        };
        let files = texts.iter().enumerate().map(file).collect();
        let mut out = Vec::new();
        merge_in(Ranges { files, kind: Kind::Plain, span, given: 0 }, 3, "out", &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn ranges_make_up_the_whole(
            inputs in prop::collection::vec(prop::collection::vec((0..300usize, 1..9u64, 0..3usize), 0..60), 0..20),
            span in 1..200u64,
            width in 0..200usize,
        ) {
            let stack = |number: usize| {
                let start = ["", "\u{feff}", "a;", "a.cold;"][number % 4];
                format!("{start}main;f{};{:x>width$}", number / 4, "x")
            };
            let key = |stack: &str| stack.split(';').map(str::to_owned).collect::<Vec<_>>();
            let mut sums = BTreeMap::<Vec<String>, u64>::new();
            let mut texts = Vec::new();
            for mut lines in inputs {
                lines.sort_by_key(|(number, ..)| key(&stack(*number)));
                let text = lines.iter().map(|(number, weight, blank)| {
                    let stack = stack(*number);
                    *sums.entry(key(&stack)).or_default() += weight;
                    format!("{stack} {weight}\n{}", "\n".repeat(*blank))
                });
                let text: String = text.collect();
                // A mark at the beginning is none of the first stack's.
                let text = if text.starts_with('\u{feff}') { format!("\n{text}") } else { text };
                texts.push(text);
            }
            let expected: String = sums.iter().map(|(stack, sum)| format!("{} {sum}\n", stack.join(";"))).collect();
            prop_assert_eq!(merged(&texts, span), expected);
        }
    }
}
