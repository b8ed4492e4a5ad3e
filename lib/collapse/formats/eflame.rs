//! `eflame` for Erlang: one line for each sample, with the process and its functions, root first.
//!
//! ```text
//! <0.90.0>;shell:eval_loop/3;lists:foldl/3
//! <0.90.0>;shell:eval_loop/3
//! ```
//! Each line weighs 1. The process is left out unless `--pid` or `--tid` asks for it.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{most_lines_fit, split_once};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "eflame",
    description: "eflame (Erlang)",
    tested_with: "eflame with Erlang/OTP 25",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| most_lines_fit(head, 90, |line| parse_line(line).is_some())),
    reader: FormatReader::Lines(read),
};

/// Splits a line after the process, `<0.90.0>` or `(<0.90.0>)`. The last frame must not end in a count, as in folded
/// stacks.
fn parse_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (process, frames) = split_once(line, ";")?;
    let inner = process.strip_prefix(b"(").and_then(|inner| inner.strip_suffix(b")")).unwrap_or(process);
    let numbers = inner.strip_prefix(b"<")?.strip_suffix(b">")?;
    let is_process = numbers.split(|byte| *byte == b'.').count() == 3
        && numbers.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let has_count =
        memchr::memrchr(b' ', frames).is_some_and(|blank| frames[blank + 1..].iter().all(u8::is_ascii_digit));
    (is_process && !has_count).then_some((process, frames))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    document.set_unit("samples");
    let (mut line, mut stack) = (Vec::new(), Stack::default());
    while document.read_line(&mut line)? {
        match parse_line(&line) {
            Some((process, frames)) => {
                if document.options.pid || document.options.tid {
                    stack.push(process, sink);
                }
                frames.split(|byte| *byte == b';').for_each(|frame| stack.push(frame, sink));
                stack.add(Weight::ONE, sink)?;
            }
            None if line.trim_ascii().is_empty() => {}
            None => document.report_malformed("expected a process and functions")?,
        }
    }
    Ok(())
}
