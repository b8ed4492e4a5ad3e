//! Folded stacks: one line per stack, its frames root first with `;` between them, a space, and its weight.
//!
//! ```text
//! app;main;parse 12
//! app;main;write 3
//! ```
//! The `stackcollapse` scripts write it, and async-profiler, py-spy, rbspy and bcc's tools with `-f`. `fg-diff` and
//! `difffolded.pl` write two weights per line. Austin writes `TIME,IDLE,MEMORY` with its `-f` option: the time is the
//! weight, and the rest is left out.

use super::{bpftrace, goroutines};
use crate::Error;
use crate::bytes::strip_bom;
use crate::collapse::format::{Format, FormatReader};
use crate::collapse::line_helpers::first_lines;
use crate::collapse::parser::{BlockReport, Parser};
use crate::collapse::sink::Sink;
use crate::folded::{DetectedKind, Line, LineKind, MixtureCheck, detect_kind, is_comment, parse_line};
use crate::input::last_line_end;
use crate::profile::{FrameId, Weight, Weights};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "folded",
    description: "folded stacks (also from async-profiler, Austin, py-spy, bcc -f)",
    has_times: false,
    recognizes,
    reader: FormatReader::Blocks { find_boundary: last_line_end, new_parser: |_| Box::<Folded>::default() },
};

/// Number of lines at the beginning of an input that detection looks at.
const DETECTION_LINES: usize = 64;

/// Returns true if the first line, or more than half of the first lines, are a stack and a weight. Lines of ordinary
/// text often end in a number too, so either two thirds of the lines must be like that, or the text must contain a `;`.
fn recognizes(head: &[u8]) -> bool {
    let matches = match_first_lines(head);
    let matching = matches.iter().filter(|is_match| **is_match).count();
    let most_match = matches.first() == Some(&true) || matching * 2 > matches.len();
    most_match && (matching * 3 >= matches.len() * 2 || memchr::memchr(b';', head).is_some())
}

/// Returns true if all of the first lines are a stack and a weight, and none is a line of another format that looks
/// like one.
pub(in crate::collapse) fn is_certain(head: &[u8]) -> bool {
    let matches = match_first_lines(head);
    !matches.is_empty()
        && matches.iter().all(|is_match| *is_match)
        && !first_lines(head)
            .take(DETECTION_LINES)
            .any(|line| bpftrace::is_one_line_entry(line) || goroutines::is_profile_heading(line))
}

/// Returns the number of weights per line, or `None` if no line of `head` is a stack.
pub(in crate::collapse) fn weight_kind(head: &[u8]) -> Option<DetectedKind> {
    // Austin's lines have one weight.
    let is_stack = |line: &[u8]| parse(line, LineKind::Plain).is_some();
    let austin = || stack_lines(head).any(is_stack).then_some(DetectedKind { kind: LineKind::Plain, line: 1 });
    detect_kind(head).or_else(austin)
}

/// Returns for each of the first lines whether it is a stack and a weight.
fn match_first_lines(head: &[u8]) -> Vec<bool> {
    let lines = stack_lines(head).take(DETECTION_LINES);
    lines.map(|line| parse(line, LineKind::Plain).is_some() || is_too_small(line)).collect()
}

/// Returns the lines that are neither blank nor a comment.
fn stack_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let head = strip_bom(head);
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    lines.filter(|line| !line.is_empty() && !is_comment(line))
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
        let (mut rest, mut mixture) = (text, MixtureCheck::default());
        if self.kind.is_none() {
            self.kind = weight_kind(text).map(|detected| detected.kind);
        }
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or(b"");
            report.lines += 1;
            let line = line.trim_ascii_end();
            if !line.is_empty() && !is_comment(line) {
                self.parse_line(line, sink, report, &mut mixture)?;
            }
        }
        report.other_kind = report.other_kind.or(mixture.other_kind());
        Ok(())
    }

    fn fork(&self) -> Option<Box<dyn Parser>> {
        let kind = Some(self.kind?);
        Some(Box::new(Self { kind, stack: Vec::new() }))
    }
}

impl Folded {
    fn parse_line(
        &mut self,
        line: &[u8],
        sink: &mut Sink,
        report: &mut BlockReport,
        mixture: &mut MixtureCheck,
    ) -> Result<(), Error> {
        let kind = self.kind.unwrap_or(LineKind::Plain);
        let Some(Line { stack, weights }) = parse(line, kind) else {
            if kind == LineKind::Differential && parse(line, LineKind::Plain).is_some() {
                report.other_kind.get_or_insert(report.lines);
                return Ok(());
            }
            report.add_malformed(match kind {
                _ if is_too_small(line) => "the weight is below 0.000001, the smallest that can be stored",
                _ if is_negative(line) => "the weight is negative",
                LineKind::Plain => "expected a stack and, after the last space, its weight",
                LineKind::Differential => "expected a stack and two weights",
            });
            return Ok(());
        };
        if kind == LineKind::Plain {
            mixture.add(stack, report.lines);
        }
        if kind == LineKind::Differential && sink.is_in_order() {
            let what = "--in-order: stacks must have one weight each; these have two, as fg-diff writes them";
            return Err(Error::Invalid(what.to_owned()));
        }
        if kind == LineKind::Differential && !sink.is_differential() {
            sink.make_differential();
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

/// Returns true if the weight rounds to zero, because weights are stored in millionths.
fn is_too_small(line: &[u8]) -> bool {
    let last = memchr::memrchr(b' ', line).map(|blank| &line[blank + 1..]);
    last.and_then(|weight| weight.strip_prefix(b"0.000000")).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

/// Returns true if the weight is negative, as Austin writes it where memory was released.
fn is_negative(line: &[u8]) -> bool {
    let last = memchr::memrchr(b' ', line).map_or(line, |blank| &line[blank + 1..]);
    last.strip_prefix(b"-").is_some_and(|weight| Weight::parse(weight).is_some())
}
