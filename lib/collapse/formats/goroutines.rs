//! Go's goroutines as text, one snapshot each, leaf first: what a panic prints, `kill -QUIT`, and `debug=2`; with
//! `debug=1`, how many share a stack.
//!
//! ```text
//! goroutine 1 [running]:                  2 @ 0x437bf6 0x446f6c 0x4b6097
//! main.(*Store).save(0xc000018230, 0x0?)  #       0x4b6096        main.main.func1+0x16   /src/main.go:16
//!         /src/main.go:21 +0x4b1
//! created by main.main
//!         /src/main.go:15 +0x278
//! ```

use bstr::ByteSlice as _;

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::{text, whole};
use crate::markers;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "goroutines",
    description: "Go's goroutines as text: panics, debug=1 and debug=2",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    text::lines(head).any(|line| is_goroutine(line) || is_table(line))
}

/// `goroutine 7 [chan receive, 5 minutes]:`
fn is_goroutine(line: &[u8]) -> bool {
    let number = line.strip_prefix(b"goroutine ").map(|rest| text::split_word(rest).0);
    number.is_some_and(|number| text::number(number).is_some()) && line.contains_str(" [") && line.ends_with(b"]:")
}

pub(super) fn is_table(line: &[u8]) -> bool {
    line.starts_with(b"goroutine profile: total ") || line.starts_with(b"threadcreate profile: total ")
}

/// The number of `2 @ 0x437bf6 0x446f6c`.
fn shared(line: &[u8]) -> Option<Weight> {
    let (number, addresses) = text::split_once(line, " @")?;
    let plain = text::words(addresses).all(text::is_address);
    text::number(number).filter(|_| plain).map(Weight::new)
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut weight) = (Vec::new(), Stack::default(), Weight::ZERO);
    // A function, whose place comes in the next line.
    let mut function: Option<Vec<u8>> = None;
    document.unit("count");
    while document.line(&mut line)? {
        let begun = if is_goroutine(&line) { Some(Weight::ONE) } else { shared(&line) };
        if let Some(begun) = begun {
            push(&mut function, b"", document, &mut stack, sink);
            end(&mut stack, &mut weight, sink)?;
            weight = begun;
        } else if let Some(frame) = line.strip_prefix(b"#\t") {
            let mut fields = frame.split_str("\t").filter(|field| !field.is_empty());
            let address = fields.next().filter(|field| text::is_address(field) && !weight.is_zero());
            if address.is_none() {
                document.malformed("expected an address and a function")?;
                continue;
            }
            // Without a function where none is known.
            function = Some(fields.next().map_or(markers::UNKNOWN, text::without_offset).to_vec());
            push(&mut function, fields.next().unwrap_or_default(), document, &mut stack, sink);
        } else if weight.is_zero() || line.starts_with(b"# labels: ") {
            // What the program printed itself, and what it said of the goroutine.
        } else if line.starts_with(b"\t") {
            push(&mut function, &line, document, &mut stack, sink);
        } else {
            push(&mut function, b"", document, &mut stack, sink);
            if line.ends_with(b"frames elided...") {
                stack.push(markers::TRUNCATED, sink);
            } else if line.ends_with(b")") {
                function = line.rfind_byte(b'(').map(|arguments| line[..arguments].to_vec());
            } else if !line.starts_with(b"created by ") && line != b"non-Go function" {
                end(&mut stack, &mut weight, sink)?;
            }
        }
    }
    push(&mut function, b"", document, &mut stack, sink);
    end(&mut stack, &mut weight, sink)
}

/// Takes the function, at a place such as `/src/main.go:21 +0x4b1`.
fn push(function: &mut Option<Vec<u8>>, place: &[u8], document: &Document<'_>, stack: &mut Stack, sink: &mut Sink) {
    let Some(name) = function.take() else { return };
    let place = text::split_once(place, " +0x").map_or(place, |(place, _)| place).trim_ascii();
    stack.push(&whole::located(&name, place, None, document.options), sink);
}

fn end(stack: &mut Stack, weight: &mut Weight, sink: &mut Sink) -> Result<(), Error> {
    let weight = std::mem::take(weight);
    if stack.is_empty() && !weight.is_zero() {
        stack.push(markers::UNKNOWN, sink);
    }
    stack.add_leaf_first(weight, sink)
}
