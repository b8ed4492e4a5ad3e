//! An input that is read from its beginning to its end, as lines or as bytes.

use std::io::{self, Read};

use super::filter::event::EventFilter;
use super::ordered_log::OrderedLog;
use super::{Counts, EventChoice, Options, Unit};
use crate::Error;
use crate::bytes::BOM;
use crate::diagnostics::plural;
use crate::input::{Block, Blocks, Source, last_line_end};

/// What a format's reader has of its input: take [`line`](Self::line) after line, or [`Read`] the bytes.
pub(super) struct Document<'a> {
    /// How to fold.
    pub(super) options: &'a Options,
    /// What else was counted.
    pub(super) counts: Counts,
    /// Which event's samples count, for formats that have several.
    pub(super) events: EventFilter,
    source: &'a Source,
    input: Blocks,
    log: OrderedLog<'a>,
    block: Block,
    taken: usize,
    line: u64,
    /// Whether the last line has no end.
    torn: bool,
}

impl<'a> Document<'a> {
    pub(super) fn new(source: &'a Source, input: Blocks, options: &'a Options, log: OrderedLog<'a>) -> Self {
        let (counts, events) = (Counts::default(), EventFilter::new(options.event.clone()));
        Self { options, counts, events, source, input, log, block: Block::default(), taken: 0, line: 0, torn: false }
    }

    /// Where the input comes from, for formats that jump about in a file.
    pub(super) fn source(&self) -> &'a Source {
        self.source
    }

    /// The first bytes, as the format was told by, as long as nothing was taken.
    pub(super) fn head(&mut self) -> Result<&[u8], Error> {
        self.input.head()
    }

    /// Puts the next line, without its end, in the place of what `line` holds; `false` at the end of the input.
    pub(super) fn line(&mut self, line: &mut Vec<u8>) -> Result<bool, Error> {
        if self.taken == self.block.len() {
            self.taken = 0;
            if !self.input.read_block(&mut self.block, last_line_end)? {
                return Ok(false);
            }
            self.log.progress(self.block.len());
            if self.line == 0 && self.block.starts_with(BOM) {
                self.taken = BOM.len();
            }
        }
        let rest = &self.block[self.taken..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let text = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        line.clear();
        line.extend_from_slice(text);
        self.torn = end == rest.len();
        self.taken += rest.len().min(end + 1);
        self.line += 1;
        Ok(true)
    }

    /// The present line is not of the format's form and is left out.
    ///
    /// # Errors
    /// [`Error::Malformed`] if lines must all be well-formed.
    pub(super) fn malformed(&mut self, what: &str) -> Result<(), Error> {
        self.malformed_at(self.line, what)
    }

    /// As [`malformed`](Self::malformed), for a reader that counts the lines itself.
    pub(super) fn malformed_at(&mut self, line: u64, what: &str) -> Result<(), Error> {
        self.log.malformed(line, what)
    }

    /// Says that no stacks were found, unless it was said why.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if all must be well-formed.
    pub(super) fn report_no_stacks(&mut self) -> Result<(), Error> {
        let said = !self.events.seen().is_empty() || !self.counts.events.is_empty();
        if said { Ok(()) } else { self.log.report_no_stacks() }
    }

    /// The input as a whole cannot be read further, and why.
    pub(super) fn unreadable(&self, what: impl Into<String>) -> Error {
        Error::Unreadable { name: self.input.name().to_owned(), what: what.into() }
    }

    /// The input's name for messages.
    pub(super) fn name(&self) -> &str {
        self.input.name()
    }

    /// Something is wrong with the input as a whole, but what could be read counts; unless that was nothing.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if there is nothing, or all must be well-formed.
    pub(super) fn damaged(&mut self, what: &str, nothing: bool) -> Result<(), Error> {
        if nothing || self.log.is_strict() {
            return Err(self.unreadable(what));
        }
        self.log.warn(what);
        Ok(())
    }

    /// Says of how many things something is wrong, and what was done with them, if there are any.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if all must be well-formed.
    pub(super) fn amiss(&mut self, count: u64, thing: &str, what: &str) -> Result<(), Error> {
        self.log.add_problems(count);
        match count {
            0 => Ok(()),
            _ => self.damaged(&format!("{} {what}", plural(count, thing)), false),
        }
    }

    /// Says that the input is cut short, unless it has the end that all of its kind have.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if all must be well-formed.
    pub(super) fn ends(&mut self, whole: bool, end: &str) -> Result<(), Error> {
        if whole { Ok(()) } else { self.damaged(&format!("cut short: the input ends before {end}"), false) }
    }

    /// Says that the input is cut short if its last line has no end: for formats that only programs write, and that have
    /// no other end. All lines must have been taken.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if all must be well-formed.
    pub(super) fn ends_with_a_line(&mut self) -> Result<(), Error> {
        self.ends(!self.torn, "its last line does")
    }

    /// Something worth knowing.
    pub(super) fn warn(&mut self, what: &str) {
        self.log.warn(what);
    }

    /// Tells what a weight of 1 means, to those who asked with `-v`.
    pub(super) fn unit(&mut self, unit: &str) {
        self.log.note(&format!("weights are {unit}"));
        self.weighs_in(unit);
    }

    /// As [`unit`](Self::unit), where it was said already.
    pub(super) fn weighs_in(&mut self, unit: &str) {
        let name = unit.split(',').next().unwrap_or(unit);
        let name = if name == "count" { "samples" } else { name }.to_owned();
        self.counts.unit = Some(Unit { input: self.name().to_owned(), name });
    }

    /// Which of several values a sample has counts: what `--event` names, as the input has it or without what follows a
    /// slash, else the usual one.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no value has that name, or all are wanted.
    pub(super) fn column(&mut self, names: &[&str], usual: usize) -> Result<usize, Error> {
        let known = names.join(", ");
        let chosen = match &self.options.event {
            EventChoice::First => usual,
            EventChoice::All if names.len() == 1 => 0,
            EventChoice::All => {
                return Err(Error::Invalid(format!("--event all: samples have several values, choose one: {known}")));
            }
            EventChoice::Named(wanted) => {
                let stem = |name: &str| name.split('/').next().unwrap_or(name).as_bytes().to_vec();
                let find = |is: &dyn Fn(&&str) -> bool| names.iter().position(is);
                let found = find(&|name| name.as_bytes() == wanted).or_else(|| find(&|name| stem(name) == *wanted));
                let wanted = String::from_utf8_lossy(wanted);
                found.ok_or_else(|| Error::Invalid(format!("no value is called {wanted}; samples have {known}")))?
            }
        };
        if names.len() > 1 {
            let taken = names.get(chosen).copied().unwrap_or_default();
            self.log.note(&format!("samples have {known}; using {taken}; use --event to select"));
        }
        Ok(chosen)
    }

    /// What is left to say when the format's reader is done.
    pub(super) fn finish(mut self) -> (Counts, OrderedLog<'a>) {
        self.counts.events.extend_from_slice(self.events.seen());
        (self.counts, self.log)
    }
}

impl Read for Document<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.log.progress(read);
        Ok(read)
    }
}
