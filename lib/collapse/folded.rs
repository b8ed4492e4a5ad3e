//! Folded stacks, which only have to be merged.

use super::sink::Sink;
use super::{Format, Parser, Reading, Remarks};
use crate::Error;
use crate::folded::{Kind, Line, parse_line};
use crate::input::after_last_line;
use crate::profile::FrameId;

pub(super) static FORMAT: Format = Format {
    name: "folded",
    about: "folded stacks",
    recognises,
    reading: Reading::Samples { cut: after_last_line, parser: |_| Box::<Folded>::default() },
};

/// How many lines the format is told from.
const TELLING: usize = 64;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The first line, or more than half of the first ones, are a stack and a weight.
fn recognises(head: &[u8]) -> bool {
    let folded = first_lines(head);
    folded.first() == Some(&true) || folded.iter().filter(|fits| **fits).count() * 2 > folded.len()
}

/// Whether all of the first lines are a stack and a weight, whatever else they may be.
pub(super) fn is_certain(head: &[u8]) -> bool {
    first_lines(head).iter().all(|fits| *fits)
}

/// Of the first lines that are not blank, whether each is a stack and a weight.
fn first_lines(head: &[u8]) -> Vec<bool> {
    let head = head.strip_prefix(BOM).unwrap_or(head);
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty());
    lines.take(TELLING).map(|line| parse_line(line, Kind::Plain).is_some()).collect()
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
            if !line.is_empty() {
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
        let kind = self.kind.unwrap_or_else(|| kind_of_first(line, sink));
        let Some(Line { stack, weights }) = parse_line(line, kind) else {
            remarks.malformed(match kind {
                Kind::Plain => "expected a stack and, after the last space, its weight",
                Kind::Differential => "expected a stack and two weights, as in the first line",
            });
            return Ok(());
        };
        self.kind = Some(kind);
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

/// What the first line says, unless what was read before it has one weight already.
fn kind_of_first(line: &[u8], sink: &Sink) -> Kind {
    match sink.frames().is_empty() {
        true => Kind::of_first_line(line),
        false => Kind::Plain,
    }
}
