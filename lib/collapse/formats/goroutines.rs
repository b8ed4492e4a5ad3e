//! Goroutines of a Go program as text, leaf first: left as a panic, SIGQUIT and `/debug/pprof/goroutine?debug=2` print
//! them, right as `debug=1` does.
//!
//! ```text
//! goroutine 1 [running]:                  2 @ 0x437bf6 0x446f6c 0x4b6097
//! main.(*Store).save(0xc000018230, 0x0?)  #       0x4b6096        main.main.func1+0x16   /src/main.go:16
//!         /src/main.go:21 +0x4b1
//! created by main.main
//!         /src/main.go:15 +0x278
//! ```
//! Each goroutine has weight 1; with `debug=1`, a stack weighs the number of goroutines that share it. States,
//! arguments, labels and the `created by` line are left out.
//!
//! With `debug=1` the first line tells the number of goroutines, and a blank line follows each stack. The other form has no
//! end mark: of a dump that was cut after a goroutine, nothing tells so.

use bstr::ByteSlice as _;

use super::go_frames;
use super::mapped::parse_hex;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::function_with_source;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{
    first_lines, is_address, parse_number, split_once, split_word, split_words, starts_with_any,
};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::markers;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "goroutines",
    description: "Go goroutine dumps: panics, SIGQUIT, debug=1 and debug=2",
    tested_with: "Go 1.19, published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).any(|line| is_goroutine(line) || is_profile_heading(line))
}

/// Returns true for `goroutine 7 [chan receive, 5 minutes]:`.
fn is_goroutine(line: &[u8]) -> bool {
    let number = line.strip_prefix(b"goroutine ").map(|rest| split_word(rest).0);
    number.is_some_and(|number| parse_number(number).is_some()) && line.contains_str(" [") && line.ends_with(b"]:")
}

/// Returns true for the first line of a dump with `debug=1`.
pub(super) fn is_profile_heading(line: &[u8]) -> bool {
    line.starts_with(b"goroutine profile: total ") || line.starts_with(b"threadcreate profile: total ")
}

/// Returns the number of goroutines that the first line of a dump with `debug=1` tells.
fn parse_total(line: &[u8]) -> Option<Weight> {
    let (_, total) = split_once(line, " profile: total ").filter(|_| is_profile_heading(line))?;
    parse_number(total).map(Weight::new)
}

/// Returns true for `main.work(0x1, 0x2)`. Names of Go have no blanks.
fn is_call(line: &[u8]) -> bool {
    let name = line.strip_suffix(b")").and_then(|call| call.rsplit_once_str("("));
    name.is_some_and(|(name, _)| !name.is_empty() && !name.contains(&b' '))
}

/// Returns the number of `2 @ 0x437bf6 0x446f6c`.
fn parse_count(line: &[u8]) -> Option<Weight> {
    let (number, addresses) = split_once(line, " @")?;
    let all_addresses = split_words(addresses).all(is_address);
    parse_number(number).filter(|_| all_addresses).map(Weight::new)
}

/// Returns the last two addresses of `2 @ 0x437bf6 0x446f6c 0x4b6097`.
fn last_addresses(line: &[u8]) -> Vec<u64> {
    let addresses = split_once(line, " @").map(|(_, addresses)| split_words(addresses).filter_map(parse_hex));
    let addresses: Vec<u64> = addresses.into_iter().flatten().collect();
    addresses[addresses.len().saturating_sub(2)..].to_vec()
}

/// Beginnings of the functions at the root of goroutines that no other one has created. The runtime calls the finalizers of the
/// standard library, and is left out itself.
const ROOTS: [&[u8]; 8] = [
    b"main.main(",
    b"runtime.",
    b"runtime/",
    b"testing.",
    b"non-Go function",
    b"os.(*file).close(",
    b"os.(*Process).Release(",
    b"net.(*netFD).Close(",
];

/// Returns true for what the runtime says before and after the goroutines.
fn is_message(line: &[u8]) -> bool {
    let starts: [&[u8]; 8] = [
        b"panic: ",
        b"fatal error: ",
        b"exit status ",
        b"[signal ",
        b"SIGQUIT: quit",
        b"runtime: ",
        b"PC=",
        b"[originating",
    ];
    let is_register =
        matches!(split_words(line).collect::<Vec<_>>()[..], [name, value] if name.len() <= 6 && is_address(value));
    is_register || starts_with_any(line, &starts)
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut weight) = (Vec::new(), Stack::default(), Weight::ZERO);
    // A function whose source line may follow on the next line.
    let mut function: Option<Vec<u8>> = None;
    // The number of goroutines according to the first lines of dumps with `debug=1`, and that of their stacks.
    let (mut total, mut found) = (None, Weight::ZERO);
    // The last addresses of the stack, and that of its last line. The root of all goroutines is not printed.
    let (mut roots, mut last) = (Vec::new(), None);
    // True if the stack of the last goroutine has its root.
    let mut has_root = true;
    document.set_unit("count");
    while document.read_line(&mut line)? {
        let new_weight = if is_goroutine(&line) { Some(Weight::ONE) } else { parse_count(&line) };
        if let Some(number) = parse_total(&line) {
            end_stack(&mut stack, &mut weight, sink)?;
            total = Some(add(total.unwrap_or_default(), number)?);
        } else if let Some(new_weight) = new_weight {
            found = add(found, new_weight)?;
            push(&mut function, b"", document, &mut stack, sink);
            end_stack(&mut stack, &mut weight, sink)?;
            weight = new_weight;
            roots = last_addresses(&line);
            has_root = false;
        } else if let Some(frame) = go_frames::parse(&line).filter(|_| !weight.is_zero()) {
            last = parse_hex(frame.address);
            function = Some(frame.function.unwrap_or(markers::UNKNOWN).to_vec());
            push(&mut function, frame.position, document, &mut stack, sink);
        } else if line.starts_with(b"#\t") || line.starts_with(b"# 0x") {
            document.report_malformed("expected an address and a function")?;
        } else if line.starts_with(b"# labels: ") {
            // The labels of the goroutine.
        } else if weight.is_zero() && is_message(&line) {
            document.skip_own_line();
        } else if weight.is_zero() {
            document.skip_line();
        } else if line.starts_with(b"\t") {
            push(&mut function, &line, document, &mut stack, sink);
        } else if line.trim_ascii().is_empty() {
            push(&mut function, b"", document, &mut stack, sink);
            end_stack(&mut stack, &mut weight, sink)?;
        } else if line.ends_with(b"frames elided...") {
            push(&mut function, b"", document, &mut stack, sink);
            stack.push(markers::TRUNCATED, sink);
        } else if is_call(&line) || line.starts_with(b"created by ") || line == b"non-Go function" {
            push(&mut function, b"", document, &mut stack, sink);
            has_root = line.starts_with(b"created by ") || ROOTS.iter().any(|root| line.starts_with(root));
            if line.ends_with(b")") {
                function = line.rfind_byte(b'(').map(|arguments| line[..arguments].to_vec());
            }
        } else if is_message(&line) {
            document.skip_own_line();
            push(&mut function, b"", document, &mut stack, sink);
            end_stack(&mut stack, &mut weight, sink)?;
        } else if !document.skip_line_in_stack() {
            push(&mut function, b"", document, &mut stack, sink);
            end_stack(&mut stack, &mut weight, sink)?;
        }
    }
    // An address is that of the call, or the one behind it.
    let is_at_root =
        last.is_some_and(|last| roots.iter().any(|root| root.checked_sub(last).is_some_and(|after| after <= 1)));
    let has_root = has_root || total.is_some() || stack.is_empty();
    let is_in_stack = function.is_some() || !weight.is_zero() && (stack.is_empty() || total.is_some() && !is_at_root);
    push(&mut function, b"", document, &mut stack, sink);
    end_stack(&mut stack, &mut weight, sink)?;
    if total.is_some_and(|total| found < total) && !found.is_zero() {
        return document.check_end(false, "the last of the goroutines that its first line counts");
    }
    document.check_end(!is_in_stack && has_root, "the stack of its last goroutine does")
}

fn add(sum: Weight, number: Weight) -> Result<Weight, Error> {
    sum.checked_add(number).ok_or(Error::Overflow)
}

/// Pushes the pending function, if any, with a source position such as `/src/main.go:21 +0x4b1`.
fn push(function: &mut Option<Vec<u8>>, position: &[u8], document: &Document<'_>, stack: &mut Stack, sink: &mut Sink) {
    let Some(name) = function.take() else { return };
    let position = split_once(position, " +0x").map_or(position, |(position, _)| position).trim_ascii();
    stack.push(&function_with_source(&name, position, None, document.options), sink);
}

/// Adds the stack, unless its weight is zero, and clears both. A goroutine without frames counts as an unknown frame.
fn end_stack(stack: &mut Stack, weight: &mut Weight, sink: &mut Sink) -> Result<(), Error> {
    let weight = std::mem::take(weight);
    if stack.is_empty() && !weight.is_zero() {
        stack.push(markers::UNKNOWN, sink);
    }
    stack.add_leaf_first(weight, sink)
}
