//! `bt` and `thread apply all bt` of gdb: one stack per thread, leaf first.
//!
//! ```text
//! Thread 1 (LWP 42):
//! #0  0x00007f10 in poll () from /lib/libc.so.6
//! #1  0x00400512 in wait_io (fd=3) at io.c:10
//! ```
//! Each stack has weight 1. Addresses, arguments, source lines, libraries and local variables (`bt full`) are left out.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader};
use crate::collapse::line_helpers::{first_lines, function_name, is_address, parse_number, split_once, split_word};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "gdb",
    description: "gdb thread apply all bt",
    tried_with: "gdb 13, published files",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).map(strip_prompts).filter_map(parse_frame).any(|(number, function)| {
        number == 0 && (function.contains_str(" (") || function.starts_with(b"<signal handler"))
    })
}

/// Returns true for the heading of a thread: `Thread 2 (Thread 0x7f11 (LWP 43) "worker"):`.
pub(super) fn is_thread(line: &[u8]) -> bool {
    let thread = line.strip_prefix(b"Thread ").and_then(|rest| split_once(rest, " "));
    thread.is_some_and(|(number, rest)| {
        parse_number(number).is_some() && (rest.starts_with(b"(Thread 0x") || rest.starts_with(b"(LWP "))
    })
}

/// Returns a line without the prompts before it, which are there if gdb read its commands from a pipe.
fn strip_prompts(mut line: &[u8]) -> &[u8] {
    while let Some(rest) = line.strip_prefix(b"(gdb) ") {
        line = rest;
    }
    line
}

/// Returns a frame's number and the text after its address.
fn parse_frame(line: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = split_word(line.strip_prefix(b"#")?);
    let number = parse_number(number)?;
    let (address, named) = split_word(rest);
    match is_address(address) {
        true => Some((number, named.strip_prefix(b"in ")?)),
        false => Some((number, rest)),
    }
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut current) = (Vec::new(), Stack::default(), CurrentFrame::default());
    while document.read_line(&mut line)? {
        let line = strip_prompts(&line);
        match parse_frame(line) {
            Some((number, function)) => {
                if number == 0 {
                    current.end_stack(&mut stack, sink)?;
                    current.begin_stack(line);
                }
                stack.push(&function_name(strip_arguments(function), document.options), sink);
            }
            None if line.trim_ascii().is_empty() || line.starts_with(b"Thread ") => {
                current.end_stack(&mut stack, sink)?;
            }
            None if line.starts_with(b"#") => {
                document.report_malformed("expected a frame: number, function and arguments")?
            }
            // A long frame continues on the next line, and `bt full` prints local variables.
            None => document.skip_line(),
        }
    }
    current.end_stack(&mut stack, sink)?;
    current.stack.add_leaf_first(Weight::ONE, sink)
}

/// The frame that gdb prints by itself when it has attached to a process or has read its memory: the first frame of a stack
/// that follows, not a stack of its own.
#[derive(Default)]
struct CurrentFrame {
    /// Number of stacks that were begun.
    stacks: u64,
    line: Vec<u8>,
    /// The frame, if it may be that one.
    stack: Stack,
}

impl CurrentFrame {
    /// Notes the first frame of a stack. The current frame is dropped if it is the same one.
    fn begin_stack(&mut self, line: &[u8]) {
        self.stacks += 1;
        if self.stacks == 1 {
            self.line = line.to_vec();
        } else if self.line == line {
            self.stack.clear();
        }
    }

    /// Adds a stack, or keeps it if it is the first one and has a single frame.
    fn end_stack(&mut self, stack: &mut Stack, sink: &mut Sink) -> Result<(), Error> {
        if self.stacks == 1 && stack.frames().len() == 1 && self.stack.is_empty() {
            self.stack = std::mem::take(stack);
        }
        stack.add_leaf_first(Weight::ONE, sink)
    }
}

/// Returns the function of `name (arguments) at file:line` or `name (arguments) from library`. Scans backwards for the
/// parenthesis that opens the arguments, since the name may contain parentheses itself; those in quotes do not count.
fn strip_arguments(frame: &[u8]) -> &[u8] {
    let arguments_end = frame.rfind(") at ").max(frame.rfind(") from ")).or_else(|| frame.rfind_byte(b')'));
    let end = arguments_end.map_or(frame.len(), |closing| closing + 1);
    let (mut depth, mut quoted) = (0i32, false);
    for (index, byte) in frame[..end].iter().enumerate().rev() {
        match byte {
            b'"' if index == 0 || frame[index - 1] != b'\\' => quoted = !quoted,
            _ if quoted => {}
            b')' => depth += 1,
            b'(' if depth == 1 && index > 0 && frame[index - 1] == b' ' => return frame[..index].trim_end(),
            b'(' => depth -= 1,
            _ => {}
        }
    }
    split_once(frame, " (").map_or(frame, |(name, _)| name).trim_end()
}

#[cfg(test)]
mod tests {
    use super::strip_arguments;

    #[test]
    fn strips_arguments_from_function_names() {
        for (frame, name) in [
            ("poll () from /lib/libc.so.6", "poll"),
            ("foo<int, char> (x=1, s=...) at a.cc:10", "foo<int, char>"),
            ("(anonymous namespace)::f(int) (x=3) at a (b).cc:1", "(anonymous namespace)::f(int)"),
            ("operator() (this=0x1) at a.cc:1", "operator()"),
            ("puts (s=0x4 \"a (b\") at puts.c:1", "puts"),
            ("<signal handler called>", "<signal handler called>"),
            ("main", "main"),
        ] {
            assert_eq!(String::from_utf8_lossy(strip_arguments(frame.as_bytes())), name, "{frame}");
        }
    }
}
