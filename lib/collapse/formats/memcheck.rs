//! memcheck of valgrind (`--leak-check=full`): memory that was not freed, by stack, leaf first.
//!
//! ```text
//! ==7== 300 bytes in 3 blocks are definitely lost in loss record 1 of 2
//! ==7==    at 0x48417B4: malloc (in /usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so)
//! ==7==    by 0x109160: main (a.c:3)
//! ```
//! The weight is the bytes, unless `--event blocks` asks for the number of blocks; those that other lost blocks refer to
//! (`indirect`) are not added to them. Addresses are left out; so are files and lines, unless `--srcline` asks for them.
//! All other messages are left out.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, function_name, is_address, parse_number, split_once, split_word};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "memcheck",
    description: "memcheck's leaks (valgrind --leak-check=full)",
    tested_with: "valgrind 3.19",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| {
        first_lines(head).any(|line| {
            let text = strip_process(line).unwrap_or_default();
            text.starts_with(HEADING) || parse_leak(text).is_some()
        })
    }),
    reader: FormatReader::Lines(read),
};

/// The first line of a report.
const HEADING: &[u8] = b"Memcheck, a memory error detector";

/// Returns the text after `==7== `.
fn strip_process(line: &[u8]) -> Option<&[u8]> {
    let (pid, text) = split_once(line.strip_prefix(b"==")?, "==")?;
    parse_number(pid).map(|_| text.strip_prefix(b" ").unwrap_or(text))
}

/// Parses a number with commas.
fn parse_grouped(text: &[u8]) -> Option<u64> {
    parse_number(&text.replace(",", ""))
}

/// Returns the bytes and blocks of `1,300 (300 direct, 1,000 indirect) bytes in 3 blocks are definitely lost in loss
/// record 1 of 2`.
fn parse_leak(text: &[u8]) -> Option<[u64; 2]> {
    let (head, tail) = split_once(text, " blocks are ").or_else(|| split_once(text, " blocks is "))?;
    let (bytes, blocks) = split_once(head, " bytes in ")?;
    let direct = split_once(bytes, "(").and_then(|(_, inner)| split_once(inner, " direct")).map(|(direct, _)| direct);
    let is_leak = tail.contains_str("lost in loss record") || tail.contains_str("reachable in loss record");
    is_leak.then_some(())?;
    Some([parse_grouped(direct.unwrap_or(bytes))?, parse_grouped(blocks)?])
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let column = document.select_value(&["bytes", "blocks"], 0)?;
    document.set_unit_silently(["bytes", "blocks"][column]);
    let (mut line, mut stack, mut weight) = (Vec::new(), Stack::default(), None);
    // A summary follows all leaks, unless valgrind was told to be quiet.
    let (mut has_heading, mut has_summary) = (false, false);
    while document.read_line(&mut line)? {
        // Lines of the program itself are between those of valgrind.
        let Some(text) = strip_process(&line) else {
            document.skip_line();
            continue;
        };
        has_heading |= text.starts_with(HEADING);
        has_summary |= text.starts_with(b"LEAK SUMMARY:");
        if let Some(values) = parse_leak(text) {
            has_summary = false;
            finish(&mut stack, weight.replace(Weight::new(values[column])), sink)?;
        } else if weight.is_some() {
            match parse_frame(text.trim_ascii(), document.options) {
                Some(name) => stack.push(&name, sink),
                None => finish(&mut stack, weight.take(), sink)?,
            }
        }
    }
    finish(&mut stack, weight, sink)?;
    document.check_end(has_summary || !has_heading, "the summary of leaks")
}

fn finish(stack: &mut Stack, weight: Option<Weight>, sink: &mut Sink) -> Result<(), Error> {
    match weight {
        Some(weight) => stack.add_leaf_first(weight, sink),
        None => Ok(()),
    }
}

/// Returns the function of `at 0x48417B4: malloc (in /usr/lib/a.so)`.
fn parse_frame(text: &[u8], options: &Options) -> Option<Vec<u8>> {
    let (word, rest) = split_word(text);
    let (address, named) = split_once(rest, ": ")?;
    if !matches!(word, b"at" | b"by") || !is_address(address) {
        return None;
    }
    Some(match named.strip_suffix(b")").and_then(|inner| inner.rsplit_once_str(" (")) {
        Some((name, place)) if options.srcline && !place.starts_with(b"in ") => {
            [&function_name(name, options), &b":"[..], place].concat()
        }
        Some((name, _)) => function_name(name, options).into_owned(),
        None => function_name(named, options).into_owned(),
    })
}
