//! `Rprof()` of R: one line for each sample, with the quoted names of its functions, leaf first.
//!
//! ```text
//! sample.interval=20000
//! "work" "main"
//! "main"
//! ```
//! The weight is the sampling interval in microseconds, or 1 with `--weight samples`. Source lines
//! (`line.profiling = TRUE`) are left out unless `--srcline` asks for them; memory use (`memory.profiling = TRUE`) is left
//! out.

use std::collections::HashMap;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::uses_input_weights;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, parse_number, split_once, split_word};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "rprof",
    description: "Rprof (R)",
    tested_with: "R 4.2",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| first_lines(head).next().is_some_and(|line| parse_heading(line).is_some())),
    reader: FormatReader::Lines(read),
};

/// Returns true for the first line of a profile.
pub(super) fn is_heading(line: &[u8]) -> bool {
    parse_heading(line).is_some()
}

/// Returns the interval of `memory profiling: GC profiling: sample.interval=20000` in microseconds.
fn parse_heading(line: &[u8]) -> Option<u64> {
    let (kinds, interval) = split_once(line, "sample.interval=")?;
    let is_heading = kinds.is_empty() || kinds.ends_with(b" profiling: ") && !kinds.contains(&b'"');
    parse_number(interval.trim_ascii()).filter(|_| is_heading)
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let weighs = uses_input_weights(document.options);
    document.set_unit(if weighs { "microseconds" } else { "samples" });
    let (mut line, mut stack, mut weight) = (Vec::new(), Stack::default(), Weight::ONE);
    let mut files: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    while document.read_line(&mut line)? {
        if let Some(interval) = parse_heading(&line) {
            weight = if weighs { Weight::new(interval) } else { Weight::ONE };
        } else if let Some((number, file)) = line.strip_prefix(b"#File ").and_then(|rest| split_once(rest, ": ")) {
            files.insert(number.to_vec(), file.to_vec());
        } else if !push_frames(&line, &files, document.options.srcline, &mut stack, sink) {
            stack.clear();
            document.report_malformed("expected quoted names of functions")?;
        }
        stack.add_leaf_first(weight, sink)?;
    }
    Ok(())
}

/// Pushes the frames of a sample. Returns false if the line is malformed.
///
/// A source line, `1#3`, precedes the function in which it is called: the first one is that of the leaf.
fn push_frames(
    line: &[u8],
    files: &HashMap<Vec<u8>, Vec<u8>>,
    shows_lines: bool,
    stack: &mut Stack,
    sink: &mut Sink,
) -> bool {
    // Memory use: `:123:456:789:0:`.
    let mut rest = match line.strip_prefix(b":") {
        Some(memory) => memchr::memrchr(b':', memory).map_or(memory, |end| &memory[end + 1..]),
        None => line,
    };
    let mut place = Vec::new();
    rest = rest.trim_ascii_start();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix(b"\"") {
            let Some((name, after)) = split_once(quoted, "\"") else { return false };
            stack.push(&[name, &std::mem::take(&mut place)].concat(), sink);
            rest = after.trim_ascii_start();
            continue;
        }
        let (word, after) = split_word(rest);
        let Some((file, number)) = split_once(word, "#").filter(|(_, number)| parse_number(number).is_some()) else {
            return false;
        };
        if shows_lines && let Some(file) = files.get(file) {
            place = [b":", &file[..], b":", number].concat();
        }
        rest = after;
    }
    true
}
