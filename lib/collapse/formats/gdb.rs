//! gdb's `bt` and `thread apply all bt`: one snapshot a stack, leaf first.
//!
//! ```text
//! Thread 1 (LWP 42):
//! #0  0x00007f10 in poll () from /lib/libc.so.6
//! #1  0x00400512 in wait_io (fd=3) at io.c:10
//! ```

use bstr::ByteSlice as _;

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::text;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "gdb",
    description: "gdb thread apply all bt",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    text::lines(head).filter_map(frame).any(|(number, function)| {
        number == 0 && (function.contains_str(" (") || function.starts_with(b"<signal handler"))
    })
}

/// A frame's number and what stands behind its address.
fn frame(line: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = text::split_word(line.strip_prefix(b"#")?);
    let number = text::number(number)?;
    let (address, named) = text::split_word(rest);
    match text::is_address(address) {
        true => Some((number, named.strip_prefix(b"in ")?)),
        false => Some((number, rest)),
    }
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack) = (Vec::new(), Stack::default());
    while document.line(&mut line)? {
        match frame(&line) {
            Some((number, function)) => {
                if number == 0 {
                    stack.add_leaf_first(Weight::ONE, sink)?;
                }
                stack.push(&text::function(without_arguments(function), document.options), sink);
            }
            None if line.trim_ascii().is_empty() || line.starts_with(b"Thread ") => {
                stack.add_leaf_first(Weight::ONE, sink)?;
            }
            None if line.starts_with(b"#") => document.malformed("expected a frame: number, function and arguments")?,
            // A long frame goes on in the next line, and `bt full` tells of locals.
            None => {}
        }
    }
    stack.add_leaf_first(Weight::ONE, sink)
}

/// The function in `name (arguments) at file:line` or `name (arguments) from library`.
fn without_arguments(frame: &[u8]) -> &[u8] {
    let place = frame.rfind(") at ").max(frame.rfind(") from "));
    let last = place.or_else(|| frame.rfind_byte(b')')).map_or(frame.len(), |last| last + 1);
    let (mut open, mut quoted) = (0i32, false);
    for (at, byte) in frame[..last].iter().enumerate().rev() {
        match byte {
            b'"' if at == 0 || frame[at - 1] != b'\\' => quoted = !quoted,
            _ if quoted => {}
            b')' => open += 1,
            b'(' if open == 1 && at > 0 && frame[at - 1] == b' ' => return frame[..at].trim_end(),
            b'(' => open -= 1,
            _ => {}
        }
    }
    text::split_once(frame, " (").map_or(frame, |(name, _)| name).trim_end()
}

#[cfg(test)]
mod tests {
    use super::without_arguments;

    #[test]
    fn names_end_where_the_arguments_begin() {
        for (frame, name) in [
            ("poll () from /lib/libc.so.6", "poll"),
            ("foo<int, char> (x=1, s=...) at a.cc:10", "foo<int, char>"),
            ("(anonymous namespace)::f(int) (x=3) at a (b).cc:1", "(anonymous namespace)::f(int)"),
            ("operator() (this=0x1) at a.cc:1", "operator()"),
            ("puts (s=0x4 \"a (b\") at puts.c:1", "puts"),
            ("<signal handler called>", "<signal handler called>"),
            ("main", "main"),
        ] {
            assert_eq!(String::from_utf8_lossy(without_arguments(frame.as_bytes())), name, "{frame}");
        }
    }
}
