//! `procstack` of AIX: a snapshot of a process, one stack per thread, leaf first.
//!
//! ```text
//! 5570812: /usr/sbin/app -x
//! ---------- tid# 21037219     (pthread ID:      1) ----------
//! 0xd01f0  __fd_poll(??, ??) + 0xb4
//! 0x10000  main(0x1, 0x2) + 0x10
//! ```
//! Each stack has weight 1, and the program's path as its root frame. Addresses, arguments and offsets are left out.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, function_name, is_address, parse_number, split_once, split_word};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "procstack",
    description: "AIX procstack",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).any(is_thread_heading) || {
        let mut lines = first_lines(head);
        lines.next().is_some_and(|line| parse_process(line).is_some())
            && lines.next().is_some_and(|line| parse_call(line).is_some())
    }
}

fn is_thread_heading(line: &[u8]) -> bool {
    line.starts_with(b"---------- tid#")
}

/// Returns the program of `5570812: /usr/sbin/app -x`.
fn parse_process(line: &[u8]) -> Option<&[u8]> {
    let (pid, command) = split_once(line, ": ")?;
    parse_number(pid)?;
    Some(split_word(command).0).filter(|command| !command.is_empty())
}

/// Returns the function and its arguments of `0xd01f0  __fd_poll(??, ??) + 0xb4`.
fn parse_call(line: &[u8]) -> Option<&[u8]> {
    let (address, call) = split_word(line);
    let (call, offset) = split_once(call, " + ")?;
    (is_address(address) && is_address(offset.trim_ascii())).then_some(call)
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut root, mut is_open) = (Vec::new(), Stack::default(), Vec::new(), false);
    loop {
        let more = document.read_line(&mut line)?;
        if let Some(call) = parse_call(&line).filter(|_| more) {
            let name = memchr::memrchr(b'(', call).map_or(call, |open| &call[..open]);
            stack.push(&function_name(name, document.options), sink);
            is_open = false;
            continue;
        }
        let ends_stack =
            !more || line.trim_ascii().is_empty() || is_thread_heading(&line) || parse_process(&line).is_some();
        if !ends_stack {
            document.report_malformed("expected a process, a thread or a frame")?;
            continue;
        }
        if !stack.is_empty() {
            if !root.is_empty() {
                stack.push(&root, sink);
            }
            stack.add_leaf_first(Weight::ONE, sink)?;
        }
        if !more {
            document.check_end(!is_open, "the stack of its last thread")?;
            return document.check_last_line();
        }
        is_open = is_thread_heading(&line) || is_open && line.trim_ascii().is_empty();
        if let Some(program) = parse_process(&line) {
            root = program.to_vec();
        }
    }
}
