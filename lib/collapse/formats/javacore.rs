//! Javacore files of OpenJ9 (SIGQUIT, crashes): a snapshot of a JVM, one stack per thread, leaf first.
//!
//! ```text
//! 3XMTHREADINFO      "main" J9VMThread:0x1, j9thread_t:0x2, java/lang/Thread:0x3, state:R, prio=5
//! 4XESTACKTRACE                at com/acme/A.run(A.java:3)
//! 4XESTACKTRACE                at java/lang/Thread.run(Thread.java:1)
//! ```
//! Each thread that has Java frames has weight 1, and its name as its root frame. All other sections, files and lines
//! are left out.

use bstr::ByteSlice as _;

use super::java;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, split_once, split_word};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::markers;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "javacore",
    description: "OpenJ9 javacore",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).any(|line| [&b"1XMTHDINFO"[..], b"3XMTHREADINFO", b"0SECTION"].contains(&split_word(line).0))
}

/// Returns true for the first word of a line: `4XESTACKTRACE`, or `NULL`.
fn is_tag(word: &[u8]) -> bool {
    word.is_empty() || word == b"NULL" || word.len() > 4 && word[0].is_ascii_digit() && word[1].is_ascii_uppercase()
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut thread) = (Vec::new(), Stack::default(), None);
    let mut is_complete = true;
    document.set_unit("threads, counted once per dump");
    loop {
        let more = document.read_line(&mut line)?;
        let (tag, rest) = split_word(&line);
        if !more || tag == b"3XMTHREADINFO" {
            if let Some(name) = thread.take().filter(|_| !stack.is_empty()) {
                let name: Vec<u8> = name;
                stack.push(&name, sink);
                stack.add_leaf_first(Weight::ONE, sink)?;
            }
            let name = rest.strip_prefix(b"\"").and_then(|rest| split_once(rest, "\""));
            thread = Some(name.map_or(markers::UNKNOWN, |(name, _)| java::pool_name(name, document.options)).to_vec());
        } else if tag == b"4XESTACKTRACE" {
            match java::parse_frame(rest, document.options) {
                Some(frame) if thread.is_some() => stack.push(frame, sink),
                Some(_) => document.report_malformed("the frame belongs to no thread")?,
                None => document.report_malformed("expected a function and its file")?,
            }
        } else if !is_tag(tag) {
            document.skip_line();
        }
        if !more {
            document.check_end(is_complete, "END OF DUMP")?;
            return document.check_last_line();
        } else if tag == b"0SECTION" && rest.starts_with(b"TITLE") {
            is_complete = false;
        } else if rest.contains_str(b"END OF DUMP") {
            is_complete = true;
        }
    }
}
