//! LeakSanitizer, which is part of AddressSanitizer: memory that was leaked, by stack, leaf first.
//!
//! ```text
//! Direct leak of 4096 byte(s) in 1 object(s) allocated from:
//!     #0 0x7f2552a13545 in malloc lsan_interceptors.cpp:75
//!     #1 0x556aef889160 in main /srv/a.c:3
//! ```
//! The weight is the bytes, unless `--event objects` asks for the number of objects. Files and lines are left out unless
//! `--srcline` asks for them. All lines before the first leak are left out.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::module_frame;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, function_name, is_address, parse_number, split_once, split_word};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "lsan",
    description: "LeakSanitizer, AddressSanitizer's leaks",
    tested_with: "GCC 12",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| {
        let mut lines = first_lines(head);
        lines.any(|line| parse_leak(line).is_some()) && lines.next().is_some_and(|line| parse_frame(line).is_some())
    }),
    reader: FormatReader::Lines(read),
};

/// Returns the bytes and objects of `Direct leak of 4096 byte(s) in 1 object(s) allocated from:`.
fn parse_leak(line: &[u8]) -> Option<[u64; 2]> {
    let rest = line.strip_prefix(b"Direct leak of ").or_else(|| line.strip_prefix(b"Indirect leak of "))?;
    let (bytes, rest) = split_once(rest, " byte(s) in ")?;
    let (objects, _) = split_once(rest, " object(s) ")?;
    Some([parse_number(bytes)?, parse_number(objects)?])
}

/// Returns the address and the rest of `    #1 0x556aef889160 in main /srv/a.c:3`.
fn parse_frame(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (number, rest) = split_word(line.trim_ascii_start().strip_prefix(b"#")?);
    parse_number(number)?;
    let (address, rest) = split_word(rest);
    is_address(address).then_some((address, rest))
}

/// Returns true for what the sanitizer says before and after the leaks.
fn is_message(line: &[u8]) -> bool {
    let is_rule = line.len() > 8 && line.iter().all(|byte| matches!(byte, b'=' | b'-'));
    let is_report = line.starts_with(b"==") && line.contains_str("Sanitizer");
    is_rule || is_report || line.starts_with(b"SUMMARY: ") || line.starts_with(b"Suppressions used:")
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let column = document.select_value(&["bytes", "objects"], 0)?;
    document.set_unit_silently(["bytes", "objects"][column]);
    let (mut line, mut stack, mut weight) = (Vec::new(), Stack::default(), None);
    // False after the heading of a report, until its summary.
    let mut is_complete = true;
    loop {
        let more = document.read_line(&mut line)?;
        let leak = parse_leak(&line).filter(|_| more);
        if !more || leak.is_some() || line.trim_ascii().is_empty() {
            if let Some(weight) = weight.take() {
                stack.add_leaf_first(weight, sink)?;
            }
            stack.clear();
        }
        if !more {
            return document.check_end(is_complete, "the summary");
        }
        if line.contains_str("ERROR: LeakSanitizer: ") {
            is_complete = false;
        }
        is_complete |= line.starts_with(b"SUMMARY: ");
        if let Some(values) = leak {
            weight = Some(Weight::new(values[column]));
        } else if weight.is_some() {
            match parse_frame(&line) {
                Some((address, rest)) => stack.push(&frame_name(address, rest, document.options), sink),
                None if line.trim_ascii().is_empty() => {}
                None => document.report_malformed("expected a number, an address and a function")?,
            }
        } else if is_message(&line) {
            document.skip_own_line();
        } else {
            document.skip_line();
        }
    }
}

/// Returns the name in `in main /srv/a.c:3`, `in main (/srv/app+0x12) (BuildId: 0a)` or `(/srv/app+0x12)`.
fn frame_name(address: &[u8], text: &[u8], options: &Options) -> Vec<u8> {
    let text = split_once(text, " (BuildId: ").map_or(text, |(text, _)| text);
    let Some(named) = text.strip_prefix(b"in ") else {
        let module = text.trim_with(|byte| "()".contains(byte));
        let file = module.rsplit_once_str("+").map_or(module, |(file, _)| file);
        return module_frame(file, address, options);
    };
    let (name, place) = match named.rsplit_once_str(" ") {
        Some((name, place)) if place.starts_with(b"/") || place.starts_with(b"(") || place.contains(&b':') => {
            (name, place)
        }
        Some((name, place)) if place.contains(&b'.') || place.contains(&b'/') => (name, place),
        _ => (named, &b""[..]),
    };
    let mut name = function_name(name, options).into_owned();
    if options.srcline && !place.is_empty() && !place.starts_with(b"(") {
        name.extend_from_slice(&[b":", place].concat());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::frame_name;
    use crate::collapse::options::Options;

    #[test]
    fn finds_functions_and_places() {
        let with_lines = Options { srcline: true, ..Options::default() };
        for (text, plain, with_line) in [
            ("in main /srv/a.c:3", "main", "main:/srv/a.c:3"),
            ("in main /srv/a.c:3:7 (BuildId: 0a)", "main", "main:/srv/a.c:3:7"),
            ("in operator new(unsigned long) ../new.cpp:99", "operator new", "operator new:../new.cpp:99"),
            ("in a::f(int, char) (/srv/app+0x12) (BuildId: 0a)", "a::f", "a::f"),
            ("in _start", "_start", "_start"),
            ("(/srv/app+0x12)", "[app]", "[app]"),
        ] {
            assert_eq!(frame_name(b"0x12", text.as_bytes(), &Options::default()), plain.as_bytes(), "{text}");
            assert_eq!(frame_name(b"0x12", text.as_bytes(), &with_lines), with_line.as_bytes(), "{text}");
        }
    }
}
