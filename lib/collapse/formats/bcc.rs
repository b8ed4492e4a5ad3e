//! `profile`, `offcputime`, `offwaketime` and `wakeuptime` of bcc and libbpf-tools, without `-f`: kernel frames, then
//! user frames, both leaf first, then the thread, then the value.
//!
//! ```text
//!     finish_task_switch
//!     schedule
//!     --
//!     __poll
//!     main
//!     -                app (4242)
//!         1013
//! ```
//! The value is the weight: samples, or microseconds. The thread is the root frame, with its process ID if `--pid` or
//! `--tid` asks for it. A separator between kernel and user frames becomes a frame, as in the folded output of these
//! tools: their `--` here is `-` there. Headings are left out.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{
    NO_COUNT, first_lines, function_name, indentation, is_no_count, parse_number, split_once, split_word,
};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "bcc",
    description: "profile, offcputime, offwaketime, wakeuptime of bcc and libbpf-tools",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    let lines: Vec<&[u8]> = first_lines(head).collect();
    lines.windows(2).any(|pair| {
        let ends_stack = matches!(parse(pair[0]), Line::Thread(..) | Line::Waker(_));
        ends_stack && matches!(parse(pair[1]), Line::Value(_)) && pair.iter().all(|line| indentation(line) > 0)
    })
}

/// A parsed line.
enum Line<'a> {
    /// The name and process ID of the sampled thread.
    Thread(&'a [u8], &'a [u8]),
    /// The name of a thread that was woken up and whose own frames are unknown.
    Woken(&'a [u8]),
    /// The name of the thread that woke it up.
    Waker(&'a [u8]),
    Value(u64),
    /// Separates kernel from user frames (`-`), or the waker from the woken thread (`--`).
    Separator(&'static [u8]),
    Frame(&'a [u8]),
    /// The value of a stack, but none that can be added up.
    NoCount,
    Other,
}

fn parse(line: &[u8]) -> Line<'_> {
    let text = line.trim_ascii();
    if let Some(value) = parse_number(text) {
        return Line::Value(value);
    }
    if is_no_count(text) {
        return Line::NoCount;
    }
    // In a text that was indented once more, nothing tells frames from what the program says of itself.
    if text.is_empty() || !is_indented(line) && line.first() != Some(&b'\t') {
        return Line::Other;
    }
    match split_word(line) {
        (b"-", b"") => Line::Separator(b"-"),
        (b"--", b"") => Line::Separator(b"-"),
        (b"--", b"--") => Line::Separator(b"--"),
        (b"-", rest) => parse_thread(rest).map_or(Line::Other, |(name, pid)| Line::Thread(name, pid)),
        (b"target:", rest) => parse_thread(rest).map_or(Line::Woken(rest), |(name, pid)| Line::Thread(name, pid)),
        (b"waker:", rest) => Line::Waker(parse_thread(rest).map_or(rest, |(name, _)| name)),
        _ if is_indented(line) => Line::Frame(text),
        _ => Line::Other,
    }
}

/// Returns true for the four blanks, or the tab, before a frame.
fn is_indented(line: &[u8]) -> bool {
    matches!((indentation(line), line.first()), (4, Some(b' ')) | (1, Some(b'\t')))
}

/// Returns the name and process ID of `NAME (PID)` or `NAME PID`.
fn parse_thread(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = memchr::memrchr(b' ', text)?;
    let (name, pid) = (text[..blank].trim_ascii(), &text[blank + 1..]);
    let pid = pid.strip_prefix(b"(").and_then(|pid| pid.strip_suffix(b")")).unwrap_or(pid);
    parse_number(pid).map(|_| (name, pid))
}

/// Returns true for the heading, and what else the program says of itself.
fn is_message(line: &[u8]) -> bool {
    [&b"Tracing "[..], b"Sampling ", b"^C", b"Detaching", b"WARNING: "].iter().any(|start| line.starts_with(start))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut root) = (Vec::new(), Stack::default(), None);
    // wakeuptime prints the waker's frames, and its name after them: that is the root.
    let mut is_wakeup = false;
    while document.read_line(&mut line)? {
        match parse(&line) {
            Line::Thread(name, pid) => root = Some(root_frame(name, pid, document.options)),
            Line::Woken(name) => {
                stack.push(name, sink);
                is_wakeup = true;
            }
            Line::Waker(name) => stack.push(name, sink),
            Line::Separator(separator) => stack.push(separator, sink),
            Line::Frame(name) => {
                // -v of libbpf-tools prints a number and an address before the name.
                let after_number = name.strip_prefix(b"#").and_then(|rest| Some(split_once(rest, " 0x")?.1));
                let name = after_number.map_or(name, |rest| split_word(rest).1);
                let (address, after_address) = split_word(name);
                let name = if is_wakeup && address.iter().all(u8::is_ascii_hexdigit) { after_address } else { name };
                stack.push(&function_name(name, document.options), sink);
            }
            Line::Value(value) => {
                match root.take() {
                    Some(root) => stack.push(&root, sink),
                    None if is_wakeup => is_wakeup = false,
                    None => {
                        stack.clear();
                        document.report_malformed("expected a thread before its value")?;
                    }
                }
                stack.add_leaf_first(Weight::new(value), sink)?;
            }
            Line::NoCount => {
                if !stack.is_empty() {
                    document.report_malformed(NO_COUNT)?;
                }
                stack.clear();
                (root, is_wakeup) = (None, false);
            }
            Line::Other if is_message(&line) => document.skip_own_line(),
            Line::Other => document.skip_line(),
        }
    }
    if stack.is_empty() { Ok(()) } else { document.report_malformed("the input ends within a stack") }
}

fn root_frame(name: &[u8], pid: &[u8], options: &Options) -> Vec<u8> {
    if options.pid || options.tid { [name, pid].join(&b'-') } else { name.to_vec() }
}
