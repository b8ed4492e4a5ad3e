//! Folded stacks: one line per stack, its frames root first with `;` between them, a space, and its weight.
//!
//! ```text
//! app;main;parse 12
//! app;main;write 3
//! ```
//! The `stackcollapse` scripts write it, and async-profiler, py-spy, rbspy and bcc's tools with `-f`. `fg-diff` and
//! `difffolded.pl` write two weights per line. Austin writes `TIME,IDLE,MEMORY` with its `-f` option: the time is the
//! weight, and the rest is left out.

mod shape;
mod sorted;
mod weight;

use bstr::ByteSlice as _;

pub(in crate::collapse) use self::shape::find_first_stack;
use self::shape::{MAX_SHORT_TEXT, Shape};
use super::{bpftrace, goroutines};
use crate::Error;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, most_lines_fit, split_once, split_words};
use crate::collapse::parser::{BlockReport, Parser};
use crate::collapse::sink::Sink;
use crate::collapse::text_kind::{
    begins_with_time, has_other_lines, has_prefixes, is_diff, is_diff_of_stacks, is_metrics, is_semicolon_table,
    is_table,
};
use crate::folded::{
    DetectedKind, Line, LineKind, Messages, NO_MESSAGE, detect_kind, is_comment, is_grep_output, parse_line,
};
use crate::input::last_line_end;
use crate::profile::{FrameId, Weight, Weights};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "folded",
    description: "folded stacks (also from async-profiler, Austin, py-spy, bcc -f)",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Blocks { find_boundary: last_line_end, new_parser: |_| Box::<Folded>::default() },
};

/// Returns true if at least two thirds of the first lines are a stack and a weight, and if those look like stacks. In a
/// short text it is enough if the first line is a stack, and any stack has several frames.
///
/// Lines of other text often end in a number, too. So in most lines there must be a `;`, or a character that names of
/// functions have and ordinary words do not. A few lines without either may be stacks, unless they are rows of numbers.
fn recognizes(head: &[u8]) -> bool {
    let shape = Shape::new(head);
    if shape.lines == 0 {
        return most_lines_fit(head, 100, is_metadata);
    }
    let is_enough = shape.fitting * 3 >= shape.lines * 2
        || shape.first_fits && shape.with_callers > 0 && shape.lines <= MAX_SHORT_TEXT;
    is_enough && shape.looks_like_stacks() && !is_other_text(head)
}

/// Most zero bytes in a short text.
const MAX_ZEROS: usize = 8;

/// Returns true if all of the first lines are a stack and a weight, and none is a line of another format that looks
/// like one. Names may contain zero bytes, but do not consist of them.
pub(in crate::collapse) fn is_certain(head: &[u8]) -> bool {
    let shape = Shape::new(head);
    memchr::memchr_iter(0, head).count() <= MAX_ZEROS.max(head.len() / 20)
        && shape.lines > 0
        && shape.fitting == shape.lines
        && shape.looks_like_stacks()
        && !is_other_text(head)
        && !first_lines(head).any(|line| bpftrace::is_one_line_entry(line) || goroutines::is_profile_heading(line))
}

/// Returns true if at least two thirds of the first lines are a text and a weight, whatever the text looks like.
pub(in crate::collapse) fn has_weights(head: &[u8]) -> bool {
    most_lines_fit(head, 66, |line| parse(line.trim_ascii_end(), LineKind::Plain).is_some())
}

/// Returns true for text of another kind: a table whose last column is a number, a log, a difference between files, metrics,
/// or lines with something before each.
fn is_other_text(head: &[u8]) -> bool {
    has_other_lines(head)
        || is_grep_output(head)
        || is_diff(head)
        || is_diff_of_stacks(head)
        || has_prefixes(head)
        || is_metrics(head)
        || is_table(head) && !most_lines_fit(head, 80, |line| line.contains(&b';'))
        || is_semicolon_table(head)
        // Comments of Lisp and of configuration files.
        || most_lines_fit(head, 80, |line| line.starts_with(b";;") || line.starts_with(b"; "))
}

/// Returns true for the rows of a table.
pub(in crate::collapse) fn is_of_table(head: &[u8]) -> bool {
    is_table(head) || is_semicolon_table(head)
}

/// Returns the number of weights per line, or `None` if no line of `head` is a stack.
pub(in crate::collapse) fn weight_kind(head: &[u8]) -> Option<DetectedKind> {
    // Austin's lines have one weight.
    detect_kind(head).or_else(|| {
        let has_stack = stack_lines(head).any(|line| parse(line, LineKind::Plain).is_some());
        has_stack.then_some(DetectedKind { kind: LineKind::Plain, line: 1 })
    })
}

/// Returns true for `# mode: wall`, as a profiler writes it before the stacks, of which there may be none.
fn is_metadata(line: &[u8]) -> bool {
    let key = line.strip_prefix(b"# ").and_then(|text| split_once(text, ": "));
    key.is_some_and(|(key, _)| key.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_'))
}

/// Returns the lines that are neither blank nor a comment.
fn stack_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    first_lines(head).map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty() && !is_comment(line))
}

/// The parser of folded stacks.
#[derive(Default)]
struct Folded {
    /// The number of weights per line, known from the first lines of the first input.
    kind: Option<LineKind>,
    stack: Vec<FrameId>,
}

impl Parser for Folded {
    fn parse(&mut self, text: &[u8], sink: &mut Sink, report: &mut BlockReport) -> Result<(), Error> {
        let (mut rest, mut messages) = (text, Messages::new(text));
        if self.kind.is_none() {
            self.kind = weight_kind(text).map(|detected| detected.kind);
        }
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let (line, lines) = (rest[..end].trim_ascii_end(), rest);
            rest = rest.get(end + 1..).unwrap_or(b"");
            report.lines += 1;
            let is_single = memchr::memchr(b';', line).is_none();
            if is_single && report.leave_out_start(line, lines, rest, FORMAT.name) {
                continue;
            }
            let kind = self.kind.unwrap_or(LineKind::Plain);
            if is_comment(line) {
                report.add_comment(line);
            } else if is_single && parse(line, kind).is_some_and(|line| messages.contains(line.stack)) {
                report.add_foreign(NO_MESSAGE);
            } else if !line.is_empty() {
                self.parse_line(line, lines, sink, report)?;
            }
        }
        Ok(())
    }

    fn fork(&self) -> Option<Box<dyn Parser>> {
        let kind = Some(self.kind?);
        Some(Box::new(Self { kind, stack: Vec::new() }))
    }
}

impl Folded {
    fn parse_line(&mut self, line: &[u8], text: &[u8], sink: &mut Sink, report: &mut BlockReport) -> Result<(), Error> {
        let kind = self.kind.unwrap_or(LineKind::Plain);
        let Some(Line { stack, weights }) = parse(line, kind) else {
            if kind == LineKind::Differential && parse(line, LineKind::Plain).is_some() {
                report.other_kind.get_or_insert(report.lines);
                return Ok(());
            }
            let expected = match kind {
                LineKind::Plain => "expected a stack and, after the last space, its weight",
                LineKind::Differential => "expected a stack and two weights",
            };
            match weight::explain(line) {
                Some(what) => report.add_malformed(what),
                None => report.add_stray(line, text, expected, FORMAT.name),
            }
            return Ok(());
        };
        if kind == LineKind::Plain {
            report.mixture.add(stack, report.lines);
        }
        if kind == LineKind::Differential && sink.is_in_order() {
            let what = "--in-order: stacks must have one weight each; these have two, as fg-diff writes them";
            return Err(Error::Invalid(what.to_owned()));
        }
        if kind == LineKind::Differential && !sink.is_differential() {
            sink.make_differential();
        }
        match memchr::memchr(b';', stack) {
            Some(_) => report.has_callers = true,
            None => report.single_frames += 1,
        }
        self.stack.clear();
        let mut start = 0;
        for end in memchr::memchr_iter(b';', stack).chain([stack.len()]) {
            self.stack.push(sink.intern(&stack[start..end]));
            start = end + 1;
        }
        sink.add(&self.stack, weights)
    }
}

/// Parses a line. Of Austin's `TIME,IDLE,MEMORY`, the time becomes the weight.
fn parse(line: &[u8], kind: LineKind) -> Option<Line<'_>> {
    parse_line(line, kind).or_else(|| {
        let blank = memchr::memrchr(b' ', line)?;
        let mut values = line[blank + 1..].split(|byte| *byte == b',');
        let time = Weight::parse(values.next()?)?;
        let (idle, memory) = (values.next()?, values.next()?);
        Weight::parse(memory.strip_prefix(b"-").unwrap_or(memory))?;
        let stack = line[..blank].trim_ascii_end();
        let is_complete = matches!(idle, b"0" | b"1") && values.next().is_none() && kind == LineKind::Plain;
        (is_complete && !stack.is_empty()).then(|| Line { stack, weights: Weights::plain(time) })
    })
}

/// Returns true for a folded stack of several frames. Text has a blank after a semicolon.
pub(in crate::collapse) fn is_stack(line: &[u8]) -> bool {
    line.last().is_some_and(u8::is_ascii_digit)
        && memchr::memchr(b';', line).is_some()
        && parse(line, LineKind::Plain).is_some_and(|line| {
            let mut frames = line.stack.split(|byte| *byte == b';');
            let count = frames.clone().count();
            !line.stack.ends_with(b":")
                && count > 1
                && frames.all(|frame| !frame.is_empty() && !frame.starts_with(b" "))
                && split_words(line.stack).count() <= MAX_WORDS_OF_FRAME * count
        })
}

/// Returns true for a folded stack that no other text looks like: no frame has a blank.
pub(in crate::collapse) fn is_certain_stack(line: &[u8]) -> bool {
    is_stack(line) && split_words(line).count() == 2 && !line.contains_str(", ")
}

/// Returns the index of the first line of a text that is certainly a stack, or of the first of two that may be. Lines of a
/// log are none. Blank lines do not matter.
pub(in crate::collapse) fn find_stacks(text: &[u8]) -> Option<u64> {
    let mut last = None;
    for (line, index) in text.lines().zip(0..).filter(|(line, _)| !line.trim_ascii().is_empty()) {
        match (is_stack(line) && !begins_with_time(line), last) {
            (true, Some(first)) => return Some(first),
            (true, None) if is_certain_stack(line) => return Some(index),
            (is_stack, _) => last = is_stack.then_some(index),
        }
    }
    None
}

/// Most words of a frame on average.
const MAX_WORDS_OF_FRAME: usize = 4;

/// Returns true for several frames. Text has a blank after a semicolon.
fn has_callers(stack: &[u8]) -> bool {
    stack.windows(2).any(|pair| pair[0] == b';' && pair[1] != b' ')
}

#[cfg(test)]
mod tests {
    use super::{is_stack, recognizes};

    #[test]
    fn one_line_with_one_frame_is_a_stack_and_a_sentence_is_none() {
        for (text, is_folded) in [
            ("main 5\n", true),
            ("main 5 7\n", true),
            ("\"q, 757 78574872\n", true),
            ("there are 5\n", false),
            ("there are 5 7\n", false),
            ("1 2 3\n", false),
            ("_4 5093\n", true),
            ("name: 5\n", false),
            ("-: 5\nmain;a 7\n", true),
        ] {
            assert_eq!(recognizes(text.as_bytes()), is_folded, "{text}");
        }
    }

    #[test]
    fn some_lines_with_callers_are_enough_if_each_has_a_weight() {
        let frames: String = (0..14).map(|number| format!("f{number} {number}\n")).collect();
        let (both, more) = (format!("{frames}main;a 5\nmain;b 6\n"), format!("{frames}{frames}main;a 5\n"));
        for (text, is_folded) in
            [(both.as_str(), true), (&frames, false), (&more, false), (&format!("{both}x\n"), false)]
        {
            assert_eq!(recognizes(text.as_bytes()), is_folded, "{text}");
        }
    }

    #[test]
    fn text_with_semicolons_is_no_folded_stack() {
        for (line, expected) in [
            ("main;f 12", true),
            ("[app (x)];f(int, char);<T as U>::g 1.5", true),
            ("main 12", false),
            ("GET / HTTP/1.1 \"Mozilla/5.0 (X11; Linux x86_64)\" 200", false),
            ("work;/srv/a.py;3", false),
            (";a 3", false),
        ] {
            assert_eq!(is_stack(line.as_bytes()), expected, "{line}");
        }
    }
}
