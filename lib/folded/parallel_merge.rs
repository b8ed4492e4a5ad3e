//! Merges sorted files in parallel. The sorted order is cut into ranges, and each thread merges one range of all files.

use std::cmp::Ordering;
use std::io::{BufRead as _, BufReader, Write};
use std::sync::Mutex;

use super::grammar::{LineKind, parse_line};
use super::kway_merge::merge_sorted;
use super::ordered_writer::OrderedWriter;
use super::sorted_reader::SortedReader;
use super::stack_order::{common_prefix, compare_stacks};
use crate::Error;
use crate::input::FileRange;
use crate::parallel::{self, lock};

/// Number of bytes that a range takes from the file that has the most left.
const RANGE_SIZE: u64 = 2 << 20;

/// Number of bytes read at once while a stack is searched.
const PROBE_SIZE: u64 = 4096;

/// Merges sorted files of one kind and writes the result, whose name is `name`.
///
/// # Errors
/// [`Error::Read`], [`Error::Write`], [`Error::Overflow`], and [`Error::Unreadable`] if a file is no longer sorted.
pub fn merge_parallel(
    files: Vec<FileRange>,
    kind: LineKind,
    threads: usize,
    name: &str,
    out: &mut (dyn Write + Send),
) -> Result<(), Error> {
    merge_ranges(Ranges { files, kind, range_size: RANGE_SIZE, next_number: 0 }, threads, name, out)
}

fn merge_ranges(ranges: Ranges, threads: usize, name: &str, out: &mut (dyn Write + Send)) -> Result<(), Error> {
    let (kind, ranges) = (ranges.kind, Mutex::new(ranges));
    let output = OrderedWriter::new(name, out);
    parallel::map(0..threads, threads, |_| {
        let mut writer = output.part_writer();
        loop {
            let range = lock(&ranges).next();
            let Some((number, parts)) = output.record_failure(range)? else { return Some(()) };
            let readers = parts.into_iter().map(|part| SortedReader::with_kind(part.into_blocks(), kind)).collect();
            writer
                .write_part(number, |out| merge_sorted(readers, |_, input| input.next_stack(), Ok, None, name, out))?;
        }
    });
    output.finish()
}

/// The rest of all files, which is split into ranges.
struct Ranges {
    files: Vec<FileRange>,
    kind: LineKind,
    /// Size in bytes of a range's part of the longest remaining file.
    range_size: u64,
    next_number: usize,
}

impl Ranges {
    /// Returns the number of the next range and its part of each file; `None` at the end.
    fn next(&mut self) -> Result<Option<(usize, Vec<FileRange>)>, Error> {
        let longest = self.files.iter().max_by_key(|file| file.end - file.start);
        let Some(longest) = longest.filter(|file| file.start < file.end) else { return Ok(None) };
        let last = stacks_from(longest, longest.start + self.range_size, self.kind).next().transpose()?;
        let ends = self.files.iter().map(|file| match &last {
            Some((_, stack)) => offset_after(file, stack, self.range_size, self.kind),
            None => Ok(file.end),
        });
        let mut ends = ends.collect::<Result<Vec<_>, _>>()?;
        if self.files.iter().zip(&ends).all(|(file, end)| file.start == *end) {
            // A file is no longer sorted; merging all of it reports that.
            ends = self.files.iter().map(|file| file.end).collect();
        }
        let parts = self.files.iter_mut().zip(ends).map(|(file, end)| file.split_to(end)).collect();
        self.next_number += 1;
        Ok(Some((self.next_number - 1, parts)))
    }
}

/// Returns the offset of the first line whose stack comes after this one, by binary search.
fn offset_after(file: &FileRange, stack: &[u8], range_size: u64, kind: LineKind) -> Result<u64, Error> {
    let (mut low, mut high, mut found) = (file.start, file.end, file.end);
    while high - low > PROBE_SIZE {
        // Most files are alike, so the line is probably within a range's length.
        let middle = low + range_size.min((high - low) / 2);
        match stacks_from(file, middle, kind).next().transpose()?.filter(|(offset, _)| *offset < high) {
            Some((offset, other)) if !is_after(&other, stack) => low = offset + 1,
            other => {
                found = other.map_or(found, |(offset, _)| offset);
                high = middle;
            }
        }
    }
    for next in stacks_from(file, low, kind) {
        let (offset, other) = next?;
        if offset >= high {
            break;
        }
        if is_after(&other, stack) {
            return Ok(offset);
        }
    }
    Ok(found)
}

/// True if `stack` comes after `other` in sorted order.
fn is_after(stack: &[u8], other: &[u8]) -> bool {
    compare_stacks(stack, other, common_prefix(stack, other)) == Ordering::Greater
}

/// Returns the stacks of the lines that start at this offset or later, with the offsets of these lines.
fn stacks_from(file: &FileRange, offset: u64, kind: LineKind) -> impl Iterator<Item = Result<(u64, Vec<u8>), Error>> {
    // The byte before the offset shows whether a line starts there.
    let (mut next, mut is_mid_line) = (offset.saturating_sub(1), offset > 0);
    let mut text = BufReader::with_capacity(PROBE_SIZE as usize, file.subrange(next..file.end));
    let mut line = Vec::new();
    std::iter::from_fn(move || {
        loop {
            line.clear();
            let start = next;
            match text.read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(read) => next += read as u64,
                Err(error) => return Some(Err(Error::read(file.name(), error))),
            }
            // Blank lines have no stack.
            if !std::mem::take(&mut is_mid_line)
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

    use super::{Ranges, merge_ranges};
    use crate::folded::LineKind;
    use crate::input::{FileRange, Source};

    /// Merges files with these texts on three threads.
    fn merged(texts: &[String], range_size: u64) -> String {
        let folder = tempfile::tempdir().unwrap();
        let files = texts.iter().enumerate().map(|(number, text)| {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, text).unwrap();
            FileRange::open(&Source::File(path)).unwrap().unwrap()
        });
        let files = files.collect();
        let mut out = Vec::new();
        merge_ranges(Ranges { files, kind: LineKind::Plain, range_size, next_number: 0 }, 3, "out", &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Returns one of the stacks of the test, whose last frame has `width` letters.
    fn stack(number: usize, width: usize) -> String {
        let prefix = ["", "\u{feff}", "a;", "a.cold;"][number % 4];
        format!("{prefix}main;f{};{:x>width$}", number / 4, "x")
    }

    fn split(stack: &str) -> Vec<String> {
        stack.split(';').map(str::to_owned).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn ranges_add_up_to_the_whole(
            inputs in prop::collection::vec(prop::collection::vec((0..300usize, 1..9u64, 0..3usize), 0..60), 0..20),
            range_size in 1..200u64,
            width in 0..200usize,
        ) {
            let mut sums = BTreeMap::<Vec<String>, u64>::new();
            let mut texts = Vec::new();
            for mut lines in inputs {
                lines.sort_by_key(|(number, ..)| split(&stack(*number, width)));
                let text = lines.iter().map(|(number, weight, blank)| {
                    let stack = stack(*number, width);
                    *sums.entry(split(&stack)).or_default() += weight;
                    format!("{stack} {weight}\n{}", "\n".repeat(*blank))
                });
                let text: String = text.collect();
                // A byte order mark at the start of a file would not belong to its first stack.
                let text = if text.starts_with('\u{feff}') { format!("\n{text}") } else { text };
                texts.push(text);
            }
            let expected: String = sums.iter().map(|(stack, sum)| format!("{} {sum}\n", stack.join(";"))).collect();
            prop_assert_eq!(merged(&texts, range_size), expected);
        }
    }
}
