//! `stackcount` of bcc, without `-f`: stacks at which a function was called, leaf first, and the number of calls.
//!
//! ```text
//!   submit_bio
//!   vfs_write
//!     --
//!   __write
//!     tar [15069]
//!     5
//! ```
//! The process is the root frame if there is one, with its ID if `--pid` or `--tid` asks for it. The separator between
//! kernel and user frames (`-d`) becomes the frame `-`, as in the output of `stackcount -f`. Headings are left out.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{
    NO_COUNT, first_lines, function_name, indentation, is_no_count, most_lines_fit, parse_number, split_word,
};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "stackcount",
    description: "stackcount (bcc)",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

/// The number of blanks before a frame, and before a process or a count.
const FRAME_INDENTATION: usize = 2;
const COUNT_INDENTATION: usize = 4;

/// Returns true if most lines are indented like those of `stackcount`, and a count follows a frame or a process.
fn recognizes(head: &[u8]) -> bool {
    let lines: Vec<&[u8]> = first_lines(head).collect();
    let has_stack = lines.windows(2).any(|pair| {
        let is_in_stack = matches!(parse(pair[0]), Line::Frame(_) | Line::Process(..));
        is_in_stack && matches!(parse(pair[1]), Line::Count(_))
    });
    has_stack && most_lines_fit(head, 90, |line| !matches!(parse(line), Line::Other))
}

/// A parsed line.
enum Line<'a> {
    Frame(&'a [u8]),
    Separator,
    /// The name and the ID of the process.
    Process(&'a [u8], &'a [u8]),
    Count(u64),
    /// The value of a stack, but none that can be added up.
    NoCount,
    Heading,
    Other,
}

fn parse(line: &[u8]) -> Line<'_> {
    let text = line.trim_ascii();
    match indentation(line) {
        FRAME_INDENTATION if !text.is_empty() => Line::Frame(text),
        COUNT_INDENTATION if text == b"--" => Line::Separator,
        COUNT_INDENTATION => match parse_number(text) {
            Some(count) => Line::Count(count),
            None if is_no_count(text) => Line::NoCount,
            None => parse_process(text).map_or(Line::Other, |(name, pid)| Line::Process(name, pid)),
        },
        0 if text.is_empty() || is_heading(text) => Line::Heading,
        _ => Line::Other,
    }
}

/// Returns true for `Tracing 1 functions for "f"... Hit Ctrl-C to end.`, `^C`, `Detaching...` and a time of day.
fn is_heading(text: &[u8]) -> bool {
    text.starts_with(b"Tracing ")
        || matches!(text, b"^C" | b"Detaching...")
        || text.len() == 8 && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b':')
}

/// Returns the name and the ID of `tar [15069]`.
fn parse_process(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = memchr::memrchr(b' ', text)?;
    let pid = text[blank + 1..].strip_prefix(b"[")?.strip_suffix(b"]")?;
    parse_number(pid).map(|_| (text[..blank].trim_ascii(), pid))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut root) = (Vec::new(), Stack::default(), None);
    while document.read_line(&mut line)? {
        match parse(&line) {
            Line::Frame(name) => stack.push(&frame_name(name, document.options), sink),
            Line::Separator => stack.push(b"-", sink),
            Line::Process(name, pid) => {
                let options = document.options;
                let shows_pid = options.pid || options.tid;
                root = Some(if shows_pid { [name, pid].join(&b'-') } else { name.to_vec() });
            }
            Line::Count(count) => {
                if let Some(root) = root.take() {
                    stack.push(&root, sink);
                }
                if stack.is_empty() {
                    document.report_malformed("expected a stack before its count")?;
                }
                stack.add_leaf_first(Weight::new(count), sink)?;
            }
            Line::Heading => {}
            Line::NoCount => {
                document.report_malformed(NO_COUNT)?;
                stack.clear();
                root = None;
            }
            Line::Other => document.report_malformed("expected a frame, a process or a count")?,
        }
    }
    if stack.is_empty() { Ok(()) } else { document.report_malformed("the input ends within a stack") }
}

/// Returns the function of a frame, without the address that `-v` adds.
fn frame_name(text: &[u8], options: &Options) -> Vec<u8> {
    let (address, rest) = split_word(text);
    let has_address = address.len() >= 8 && address.iter().all(u8::is_ascii_hexdigit) && !rest.is_empty();
    function_name(if has_address { rest } else { text }, options).into_owned()
}
