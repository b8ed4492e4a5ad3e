//! `go tool pprof -traces`: for each stack a value and the frames, leaf first, between separator lines.
//!
//! ```text
//! -----------+-------------------------------------------------------
//!      140ms   main.hash
//!              main.main
//! ```
//! The value is the weight, rounded as pprof prints it: times in milliseconds, sizes in bytes, or counts. `(inline)` becomes
//! the suffix of inlined functions, unless names are kept verbatim. Labels are left out. The total of the heading tells if
//! stacks are missing.

use std::borrow::Cow;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, function_name, split_once, split_word};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::units::parse_quantity;
use crate::markers::{INLINED, with_suffix};
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "pprof-traces",
    description: "go tool pprof -traces",
    tested_with: "Go 1.19, published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).any(is_separator)
}

/// The blanks before a caller: those of a value with ten columns, and three.
const CALLER_INDENTATION: &[u8] = &[b' '; 13];

/// The blanks between a value and its function.
const VALUE_COLUMNS: std::ops::Range<usize> = 10..13;

fn is_separator(line: &[u8]) -> bool {
    line.starts_with(b"-----------+---")
}

/// Returns true for a line of the heading: `Type: cpu`.
fn is_setting(line: &[u8]) -> bool {
    split_once(line, ": ").is_some_and(|(name, _)| name.iter().all(u8::is_ascii_alphabetic))
}

/// Returns true for `   thread:  main`.
fn is_label(line: &[u8]) -> bool {
    split_once(line, ":  ").is_some_and(|(key, _)| key.starts_with(b" ") && !key.trim_ascii().contains(&b' '))
}

/// Returns the name of a function, with a suffix if pprof says that it is inlined into its caller.
fn frame_name<'a>(text: &'a [u8], options: &Options) -> Cow<'a, [u8]> {
    match text.strip_suffix(b" (inline)") {
        Some(name) if !options.verbatim => with_suffix(function_name(name, options), INLINED),
        _ => function_name(text, options),
    }
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut weight, mut unit) = (Vec::new(), Stack::default(), None, None);
    let (mut has_begun, mut stated, mut sum) = (false, None, Weight::ZERO);
    while document.read_line(&mut line)? {
        let (first, rest) = split_word(&line);
        if is_separator(&line) {
            let weight = weight.take().unwrap_or_default();
            sum = sum.checked_add(weight).ok_or(Error::Overflow)?;
            stack.add_leaf_first(weight, sink)?;
            has_begun = true;
        } else if let Some(total) = stated_total(&line).filter(|_| !has_begun) {
            stated = Some(total);
        } else if !has_begun && is_setting(&line) || first.is_empty() || weight.is_none() && is_label(&line) {
            continue;
        } else if !has_begun {
            document.skip_line();
        } else if weight.is_some() {
            match line.strip_prefix(CALLER_INDENTATION).filter(|name| !name.starts_with(b" ")) {
                Some(name) => stack.push(&frame_name(name.trim_ascii_end(), document.options), sink),
                None => document.report_unindented("expected a function below its callee")?,
            }
        } else {
            match parse_quantity(first).filter(|_| !rest.is_empty()) {
                Some((value, base)) if unit.is_none_or(|unit| unit == base) || value.is_zero() => {
                    if unit.is_none() && !value.is_zero() {
                        document.set_unit(base);
                        unit = Some(base);
                    }
                    weight = Some(value);
                    stack.push(&frame_name(rest, document.options), sink);
                }
                _ => {
                    document.report_unindented("expected a value and a function")?;
                    // Without its value, the stack below does not count.
                    let has_columns = line.get(VALUE_COLUMNS).is_some_and(|columns| columns == b"   ");
                    weight = has_columns.then_some(Weight::ZERO);
                }
            }
        }
    }
    let is_complete = stack.is_empty();
    let weight = weight.unwrap_or_default();
    sum = sum.checked_add(weight).ok_or(Error::Overflow)?;
    stack.add_leaf_first(weight, sink)?;
    if let Some((total, base)) =
        stated.filter(|(total, base)| is_complete && unit == Some(*base) && lacks_stacks(sum, *total))
    {
        let what = "it states: it was filtered (-focus, -ignore), or the input is cut short";
        document.warn(&format!("its stacks add up to {sum} of the {total} {base} that {what}"));
    }
    document.check_end(is_complete, "the line below its last stack")
}

/// Returns the total of `Duration: 1.91s, Total samples = 1.50s (78.46%)`, and its unit.
fn stated_total(line: &[u8]) -> Option<(Weight, &'static str)> {
    let (_, total) = split_once(line, "Total samples = ")?;
    parse_quantity(split_word(total).0)
}

/// Returns true if the sum of the stacks is less than the total by more than rounding explains: pprof prints at least three
/// digits.
fn lacks_stacks(sum: Weight, total: Weight) -> bool {
    sum.millionths() < total.millionths() - total.millionths() / 100
}
