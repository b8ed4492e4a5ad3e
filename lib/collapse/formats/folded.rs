//! Folded stacks, which only have to be merged.

use super::{bpftrace, goroutines};
use crate::Error;
use crate::bytes::strip_bom;
use crate::collapse::sink::Sink;
use crate::collapse::text;
use crate::collapse::{Format, FormatReader, Parser, Remarks};
use crate::folded::{Kind, Line, is_comment, parse_line};
use crate::input::last_line_end;
use crate::profile::{FrameId, Weight, Weights};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "folded",
    description: "folded stacks, also of async-profiler, Austin, py-spy and bcc -f",
    has_times: false,
    recognizes,
    reader: FormatReader::Blocks { find_boundary: last_line_end, new_parser: |_| Box::<Folded>::default() },
};

/// How many lines the format is told from.
const TELLING: usize = 64;

/// The first line, or more than half of the first ones, are a stack and a weight. As much text has lines that end in a
/// number, one of them has several frames, or nearly all are like that.
fn recognizes(head: &[u8]) -> bool {
    let folded = first_lines(head);
    let fitting = folded.iter().filter(|fits| **fits).count();
    let most = folded.first() == Some(&true) || fitting * 2 > folded.len();
    most && (fitting * 3 >= folded.len() * 2 || memchr::memchr(b';', head).is_some())
}

/// Whether all of the first lines are a stack and a weight, and none of them another format's that looks like that.
pub(in crate::collapse) fn is_certain(head: &[u8]) -> bool {
    let fits = first_lines(head);
    let other = |line: &[u8]| bpftrace::is_entry(line) || goroutines::is_table(line);
    !fits.is_empty() && fits.iter().all(|fits| *fits) && !text::lines(head).take(TELLING).any(other)
}

/// Whether lines have one weight or two, if any of the first ones is a stack.
pub(in crate::collapse) fn weight_kind(head: &[u8]) -> Option<Kind> {
    lines(head).find(|line| parse(line, Kind::Plain).is_some()).map(Kind::of_first_line)
}

/// Of the first lines whether each is a stack and a weight.
fn first_lines(head: &[u8]) -> Vec<bool> {
    lines(head).take(TELLING).map(|line| parse(line, Kind::Plain).is_some() || is_too_small(line)).collect()
}

/// The lines that are not blank.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let head = strip_bom(head);
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    lines.filter(|line| !line.is_empty() && !is_comment(line))
}

/// The parser. One weight or two is what the first line of all says.
#[derive(Default)]
struct Folded {
    kind: Option<Kind>,
    stack: Vec<FrameId>,
}

impl Parser for Folded {
    fn parse(&mut self, text: &[u8], sink: &mut Sink, remarks: &mut Remarks) -> Result<(), Error> {
        let mut rest = text;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or(b"");
            remarks.lines += 1;
            let line = line.trim_ascii_end();
            if !line.is_empty() && !is_comment(line) {
                self.line(line, sink, remarks)?;
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
    fn line(&mut self, line: &[u8], sink: &mut Sink, remarks: &mut Remarks) -> Result<(), Error> {
        let kind = self.kind.unwrap_or_else(|| Kind::of_first_line(line));
        let Some(Line { stack, weights }) = parse(line, kind) else {
            remarks.malformed(match kind {
                _ if is_too_small(line) => "a weight below 0.000001, the least that counts",
                _ if is_negative(line) => "a weight below zero, which no stack can have",
                Kind::Plain => "expected a stack and, after the last space, its weight",
                Kind::Differential => "expected a stack and two weights, as in the first line",
            });
            return Ok(());
        };
        self.kind = Some(kind);
        if kind == Kind::Differential && sink.is_in_order() {
            let what = "--in-order takes stacks of one weight, and these have two, as fg-diff writes them";
            return Err(Error::Invalid(what.to_owned()));
        }
        if kind == Kind::Differential && !sink.is_differential() {
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

/// Takes a line apart; where Austin gives time, whether the thread was idle, and memory, time is the weight.
fn parse(line: &[u8], kind: Kind) -> Option<Line<'_>> {
    parse_line(line, kind).or_else(|| {
        let blank = memchr::memrchr(b' ', line)?;
        let mut values = line[blank + 1..].split(|byte| *byte == b',');
        let time = Weight::parse(values.next()?)?;
        let (idle, memory) = (values.next()?, values.next()?);
        Weight::parse(memory.strip_prefix(b"-").unwrap_or(memory))?;
        let stack = line[..blank].trim_ascii_end();
        let whole = matches!(idle, b"0" | b"1") && values.next().is_none() && kind == Kind::Plain;
        (whole && !stack.is_empty()).then(|| Line { stack, weights: Weights::plain(time) })
    })
}

/// Whether the weight is one that becomes nothing by rounding.
fn is_too_small(line: &[u8]) -> bool {
    let last = memchr::memrchr(b' ', line).map(|blank| &line[blank + 1..]);
    last.and_then(|weight| weight.strip_prefix(b"0.000000")).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

/// As Austin has where memory was released.
fn is_negative(line: &[u8]) -> bool {
    let last = memchr::memrchr(b' ', line).map_or(line, |blank| &line[blank + 1..]);
    last.strip_prefix(b"-").is_some_and(|weight| Weight::parse(weight).is_some())
}
