//! CPU profiles of gperftools (`CPUPROFILE`): machine words, and then the files that the process had mapped.
//!
//! Each record has a number of samples, a number of addresses and the addresses, leaf first. The weight is the number of
//! samples. Addresses are named by the files that the profile lists, and those below `--symfs`. Specification:
//! <https://gperftools.github.io/gperftools/cpuprofile-fileformat.html>.

use super::mapped::Addresses;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::read_bytes;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::collapse::stack::{MAX_STACK_LENGTH, Stack};
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "gperftools",
    description: "gperftools CPU profile",
    tested_with: "gperftools 2.10",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| Words::new(head).is_some()),
    reader: FormatReader::Bytes(read),
};

/// The words of a profile.
struct Words<'a> {
    rest: &'a [u8],
    size: usize,
}

impl<'a> Words<'a> {
    /// Finds the size of words by the header: 0, 3, 0, the period in microseconds, and 0. Skips the header.
    fn new(bytes: &'a [u8]) -> Option<Self> {
        [8, 4].into_iter().find_map(|size| {
            let mut words = Self { rest: bytes, size };
            let header = [words.next()?, words.next()?, words.next()?, words.next()?, words.next()?];
            (header[..3] == [0, 3, 0] && header[3] > 0 && header[4] == 0).then_some(words)
        })
    }
}

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.rest.split_at_checked(self.size)?;
        self.rest = rest;
        Some(word.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let bytes = read_bytes(document)?;
    let Some(mut words) = Words::new(&bytes) else { return Err(document.unreadable("no gperftools profile")) };
    document.set_unit("samples");
    let (mut addresses, mut records, mut is_complete) = (Addresses::new(document.options), Vec::new(), false);
    while let (Some(count), Some(depth)) = (words.next(), words.next()) {
        let Some(depth) = usize::try_from(depth).ok().filter(|depth| *depth <= words.rest.len() / words.size) else {
            break;
        };
        let stack: Vec<u64> = words.by_ref().take(depth).collect();
        if count == 0 {
            // The trailer: 0, 1, 0.
            is_complete = stack == [0];
            break;
        }
        // All but the first are return addresses: the call is before them.
        let numbers = stack.iter().take(MAX_STACK_LENGTH).enumerate();
        let numbers = numbers.map(|(depth, address)| addresses.number(address.saturating_sub(u64::from(depth > 0))));
        records.push((count, numbers.collect::<Vec<_>>()));
    }
    let mut rest = if is_complete { words.rest } else { b"" };
    while let Some((line, after)) = split_mapping(rest)
        && (addresses.add_mapping(line) || is_remark(line))
    {
        rest = after;
    }
    let names = addresses.name(document.options, sink);
    names.warnings.iter().for_each(|warning| document.warn(warning));
    let mut stack = Stack::default();
    for (count, numbers) in &records {
        numbers.iter().for_each(|number| names.frames[*number].iter().rev().for_each(|frame| stack.extend(&[*frame])));
        stack.add_leaf_first(Weight::new(*count), sink)?;
    }
    // The last line may be cut: it is a mapping, which begins with an address.
    let is_cut_mapping = !rest.contains(&b'\n') && rest.first().is_some_and(u8::is_ascii_hexdigit);
    if !is_cut_mapping || Words::new(rest).is_some() {
        document.check_nothing_follows((bytes.len() - rest.len()) as u64, rest)?;
    }
    let has_line_end = words.rest.is_empty() || words.rest.ends_with(b"\n");
    document.check_end(rest.is_empty() && has_line_end, "its list of mapped files does")?;
    document.check_end(is_complete, "its trailer")
}

/// Splits the first line off the list of mappings, with its line end. Returns `None` at its end.
fn split_mapping(list: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', list).map_or(list.len(), |end| end + 1);
    (end > 0).then(|| (list[..end].trim_ascii_end(), &list[end..]))
}

/// Returns true for a line of the list of mappings that is none: a blank one, or a variable for their paths.
fn is_remark(line: &[u8]) -> bool {
    line.is_empty() || line.starts_with(b"build=") || line.starts_with(b"MAPPED_LIBRARIES:")
}
