//! `phpspy`: samples of PHP stacks, leaf first, separated by blank lines.
//!
//! ```text
//! 0 sleep <internal>:-1
//! 1 work /srv/a.php:3
//! 2 <main> /srv/a.php:9
//!
//! ```
//! Each sample weighs 1. Files and lines are left out unless `--srcline` asks for them; so are lines that begin with
//! `#`, which have memory and variables.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, most_lines_fit, parse_number, split_word};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "phpspy",
    description: "phpspy (PHP)",
    tested_with: "phpspy 0.8 with PHP 8.2",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    let first = first_lines(head).find(|line| !line.starts_with(b"# ")).and_then(parse_frame);
    first.is_some_and(|frame| frame.depth == 0)
        && most_lines_fit(head, 90, |line| parse_frame(line).is_some() || line.starts_with(b"# "))
}

/// A frame: its distance to the leaf, its function, and its file and line.
struct Frame<'a> {
    depth: u64,
    function: &'a [u8],
    place: &'a [u8],
}

/// Parses `1 work /srv/a.php:3`.
fn parse_frame(line: &[u8]) -> Option<Frame<'_>> {
    let (depth, rest) = split_word(line);
    let (function, place) = rest.split_once_str(" ")?;
    let (file, number) = place.rsplit_once_str(":")?;
    let is_number = number == b"-1" || parse_number(number).is_some();
    let is_frame = is_number && !function.is_empty() && !file.is_empty() && line.first() != Some(&b' ');
    is_frame.then_some(Frame { depth: parse_number(depth)?, function, place })
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    document.set_unit("samples");
    let (mut line, mut stack, mut last_depth) = (Vec::new(), Stack::default(), None);
    while document.read_line(&mut line)? {
        match parse_frame(&line) {
            Some(frame) if frame.depth == 0 || last_depth.is_some_and(|last| frame.depth > last) => {
                if frame.depth == 0 {
                    stack.add_leaf_first(Weight::ONE, sink)?;
                }
                stack.push(&name(&frame, document.options), sink);
                last_depth = Some(frame.depth);
            }
            Some(_) => {
                document.report_malformed("expected frame 0, or a higher number than that of the frame before")?
            }
            None if line.trim_ascii().is_empty() => {
                stack.add_leaf_first(Weight::ONE, sink)?;
                last_depth = None;
            }
            None if line.starts_with(b"#") => {}
            None => document.report_malformed("expected a number, a function and its file")?,
        }
    }
    let is_complete = stack.is_empty();
    stack.add_leaf_first(Weight::ONE, sink)?;
    document.check_end(is_complete, "the blank line after its last stack")
}

fn name(frame: &Frame<'_>, options: &Options) -> Vec<u8> {
    match options.srcline && !frame.place.ends_with(b":-1") {
        true => [frame.function, b":", frame.place].concat(),
        false => frame.function.to_vec(),
    }
}
