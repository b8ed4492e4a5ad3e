//! An input that is read sequentially, by lines or as bytes.

mod layout;
mod left_out;
mod values;

use std::io::{self, Read};

use self::layout::Layout;
pub(super) use self::left_out::SkippedLines;
pub(super) use self::values::no_events;

use super::appended::{self, Appended};
use super::detect;
use super::document_starts::{DocumentStarts, Start};
use super::filter::event::EventFilter;
use super::input_summary::{InputSummary, WeightUnit};
use super::options::Options;
use super::ordered_log::{LAST_LINE_LEFT_OUT, OrderedLog, describe_cut};
use super::stack::MAX_SHARED_DEPTH;
use super::strays::{RunEnd, Strays};
use crate::bytes::strip_bom;
use crate::diagnostics::plural;
use crate::input::{Block, Blocks, Source, last_line_end};
use crate::{Error, io_error_text};

/// The input of a format reader: lines by [`read_line`](Self::read_line), or bytes by [`Read`].
pub(super) struct Document<'a> {
    /// Options of the collapse.
    pub(super) options: &'a Options,
    /// Events, lost samples and unit of the input.
    pub(super) summary: InputSummary,
    /// Selection by event, for formats with several.
    pub(super) events: EventFilter,
    source: &'a Source,
    input: Blocks,
    log: OrderedLog<'a>,
    block: Block,
    offset: usize,
    /// The offset of the current line in the block.
    line_start: usize,
    line: u64,
    /// True if the last line has no line end.
    is_unterminated: bool,
    /// True if the last line is malformed and has no line end.
    is_last_left_out: bool,
    /// True if the reader said that the input is cut short.
    is_cut: bool,
    /// The message about the value that was selected by default.
    choice: Option<String>,
    /// True if the samples have several values, or one with a name.
    has_values: bool,
    /// The message about values that have weight if the selected one has none.
    weightless: Option<String>,
    /// The documents that begin in the input.
    appended: Appended,
    starts: DocumentStarts,
    /// The document that begins with the current line.
    start: Option<Start>,
    /// True if the next line is the rest of the current one.
    is_within_line: bool,
    /// The last lines that the reader did not take. `None` while a text is read on trial, which decides by their number.
    strays: Option<Strays>,
    /// Lines that were left out as other text.
    skipped: SkippedLines,
    /// True after the last line.
    is_at_end: bool,
    /// Number of bytes that a reader of bytes has read.
    position: u64,
    /// The number of the last line that was left out as other text within a stack.
    line_in_stack: u64,
    /// True within a text in the document, which may be anything.
    is_in_text: bool,
    /// The arrangement of the text. `None` until a line is read.
    layout: Option<Layout>,
}

impl<'a> Document<'a> {
    pub(super) fn new(
        format: &'static str,
        source: &'a Source,
        input: Blocks,
        options: &'a Options,
        log: OrderedLog<'a>,
    ) -> Self {
        let (summary, events) = (InputSummary::default(), EventFilter::new(options.event.clone()));
        let line = input.skipped_lines();
        Self {
            options,
            summary,
            events,
            source,
            input,
            log,
            block: Block::default(),
            offset: 0,
            line_start: 0,
            line,
            is_unterminated: false,
            is_last_left_out: false,
            is_cut: false,
            choice: None,
            has_values: false,
            weightless: None,
            appended: Appended::new(format),
            starts: DocumentStarts::new(format),
            start: None,
            is_within_line: false,
            strays: Some(Strays::new(format)),
            skipped: SkippedLines::default(),
            is_at_end: false,
            position: 0,
            line_in_stack: 0,
            is_in_text: false,
            layout: None,
        }
    }

    /// Returns the text after the current line, of whole lines. `None` at the end of a block, if another follows.
    pub(super) fn next_lines(&self) -> Option<&[u8]> {
        let text = &self.block[self.offset..];
        Some(text).filter(|text| !text.is_empty() || self.input.is_at_end())
    }

    /// Makes the document one that is read on trial: another document within it is not looked for.
    pub(super) fn on_trial(mut self) -> Self {
        self.strays = None;
        self
    }

    /// Returns the source, for formats that need random access to a file.
    pub(super) fn source(&self) -> &'a Source {
        self.source
    }

    /// Returns the first bytes, by which the format was detected. Valid until something is read.
    pub(super) fn head(&mut self) -> Result<&[u8], Error> {
        self.input.head()
    }

    /// Reads the next line for [`read_line`](Self::read_line), also one that only separates two lines.
    fn read_single_line(&mut self, line: &mut Vec<u8>) -> Result<bool, Error> {
        self.check_strays()?;
        self.is_at_end = self.appended.is_found() || !self.read_next_line(line)?;
        if self.is_at_end {
            line.clear();
            self.end_strays(RunEnd::EndOfInput)?;
            return Ok(false);
        }
        if let Some(start) = self.start.take() {
            self.appended.add_start(start, self.line);
            self.is_at_end = self.appended.is_found();
        }
        if self.is_at_end {
            self.end_strays(RunEnd::Taken)?;
        }
        Ok(!self.is_at_end)
    }

    /// Notes whether the next lines are a text in the document, which may look like another document.
    pub(super) fn set_in_text(&mut self, is_in_text: bool) {
        self.is_in_text = is_in_text;
    }

    /// Reads the next line into `line`, without its line end and without the byte order mark of a file that was appended;
    /// returns false at the end of the input.
    fn read_next_line(&mut self, line: &mut Vec<u8>) -> Result<bool, Error> {
        if self.offset == self.block.len() {
            self.strays.iter_mut().for_each(|strays| strays.save(&self.block));
            self.offset = 0;
            if !self.input.read_block(&mut self.block, last_line_end)? {
                return Ok(false);
            }
            self.starts.begin_block();
            self.log.add_progress(self.block.len());
        }
        self.line_start = self.offset;
        let rest = &self.block[self.offset..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let text = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        let place = self.offset..self.offset + text.len();
        self.start = match self.is_in_text {
            true => None,
            false => self.starts.find(&self.block, place, self.input.is_at_end()),
        };
        let behind = self.start.take_if(|start| start.offset > 0).map(|start| start.offset);
        line.clear();
        line.extend_from_slice(strip_bom(&text[..behind.unwrap_or(text.len())]));
        self.is_unterminated = behind.is_none() && end == rest.len();
        self.offset += behind.unwrap_or(rest.len().min(end + 1));
        self.line += u64::from(!std::mem::replace(&mut self.is_within_line, behind.is_some()));
        Ok(true)
    }

    /// Reports the current line as left out because its stack has too many frames.
    ///
    /// # Errors
    /// [`Error::Malformed`] with `--strict`.
    pub(super) fn report_too_deep(&mut self) -> Result<(), Error> {
        self.log.report_left_out(self.line, &format!("the stack has more than {MAX_SHARED_DEPTH} frames"))
    }

    /// Warns that no stacks were found, or none with a weight, unless another message explains it.
    ///
    /// # Errors
    /// [`Error::Unreadable`] with `--strict`.
    pub(super) fn report_no_stacks(&mut self, has_weightless: bool) -> Result<(), Error> {
        let is_explained = !self.events.seen().is_empty() || !self.summary.events.is_empty();
        let what = if has_weightless { ALL_WEIGHTLESS } else { "no stacks found" };
        let what = self.weightless.as_deref().unwrap_or(what);
        if is_explained { Ok(()) } else { self.log.report_no_stacks(what) }
    }

    /// Returns true if another document begins within the input.
    pub(super) fn has_appended(&self) -> bool {
        self.appended.is_found()
    }

    /// Returns an error if another document begins within the input, at which reading ended.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub(super) fn check_whole(&self) -> Result<(), Error> {
        let message = self.appended.message();
        message.map_or(Ok(()), |(line, what)| Err(Error::Unreadable { name: format!("{}:{line}", self.name()), what }))
    }

    /// Returns an error if the first document of the input ends at an offset and these bytes follow it. What was read
    /// still counts.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub(super) fn check_nothing_follows(&self, offset: u64, rest: &[u8]) -> Result<(), Error> {
        if rest.is_empty() { Ok(()) } else { Err(self.unreadable(describe_rest(offset, rest, self.appended.format()))) }
    }

    /// Returns an error: a document of a format begins at an offset, behind the first one.
    pub(super) fn another_document(&self, offset: u64, format: &str) -> Error {
        self.unreadable(appended::describe(format, self.appended.format(), &format!("at byte {offset}")))
    }

    /// Like [`check_nothing_follows`](Self::check_nothing_follows), for readers that read no more bytes than those of the
    /// document.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub(super) fn check_all_is_read(&mut self) -> Result<(), Error> {
        self.check_rest_is_empty(Vec::new())
    }

    /// Like [`check_all_is_read`](Self::check_all_is_read), for readers that have read these bytes behind the document.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub(super) fn check_rest_is_empty(&mut self, mut rest: Vec<u8>) -> Result<(), Error> {
        let offset = self.position - rest.len() as u64;
        let read = self.by_ref().take(MAX_MAGIC).read_to_end(&mut rest);
        read.map_err(|error| self.unreadable(io_error_text(&error)))?;
        self.check_nothing_follows(offset, &rest)
    }

    /// Returns an error if nearly all lines are malformed.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub(super) fn check_malformed_share(&mut self) -> Result<(), Error> {
        self.log.check_malformed_share_of(self.line)
    }

    /// Returns an error: the rest of the input cannot be read.
    pub(super) fn unreadable(&self, what: impl Into<String>) -> Error {
        Error::Unreadable { name: self.input.name().to_owned(), what: what.into() }
    }

    /// Returns an error: the input cannot be read from the current line on.
    pub(super) fn unreadable_line(&self, what: impl Into<String>) -> Error {
        Error::Unreadable { name: format!("{}:{}", self.input.name(), self.line), what: what.into() }
    }

    /// Returns the name of the input for messages.
    pub(super) fn name(&self) -> &str {
        self.input.name()
    }

    /// Warns about a problem with the whole input; what was read still counts.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if nothing was read, or with `--strict`.
    pub(super) fn report_damage(&mut self, what: &str, is_empty: bool) -> Result<(), Error> {
        if is_empty { Err(self.unreadable(what)) } else { self.log.report_damage(what) }
    }

    /// Warns about a number of things with one problem, unless the number is 0.
    ///
    /// # Errors
    /// [`Error::Unreadable`] with `--strict`.
    pub(super) fn report_problems(&mut self, count: u64, thing: &str, what: &str) -> Result<(), Error> {
        self.log.add_problems(count);
        match count {
            0 => Ok(()),
            _ => self.report_damage(&format!("{} {what}", plural(count, thing)), false),
        }
    }

    /// Warns that the input is cut short unless `is_complete`; `end` names what the format ends with.
    ///
    /// # Errors
    /// [`Error::Unreadable`] with `--strict`.
    pub(super) fn check_end(&mut self, is_complete: bool, end: &str) -> Result<(), Error> {
        self.is_cut |= !is_complete;
        match is_complete {
            true => Ok(()),
            false => self.report_cut(&describe_cut(end)),
        }
    }

    fn report_cut(&mut self, what: &str) -> Result<(), Error> {
        self.log.add_problems(u64::from(self.is_last_left_out));
        match self.is_last_left_out {
            true => self.log.report_damage(&format!("{what}; {LAST_LINE_LEFT_OUT}")),
            false => self.log.report_damage(what),
        }
    }

    /// Warns that the input is cut short if its last line has no line end, for formats that only programs write and
    /// that have no other end mark. All lines must have been read.
    ///
    /// # Errors
    /// [`Error::Unreadable`] with `--strict`.
    pub(super) fn check_last_line(&mut self) -> Result<(), Error> {
        self.check_end(!self.is_unterminated, "its last line does")
    }

    /// Warns that the input may be cut short if its last line has no line end, unless the reader said that it is.
    ///
    /// # Errors
    /// [`Error::Unreadable`] with `--strict`.
    pub(super) fn check_line_end(&mut self) -> Result<(), Error> {
        if self.is_unterminated && !self.is_cut {
            return self.report_cut("its last line has no line end: the input may be cut short");
        }
        Ok(())
    }

    /// Warns about the input.
    pub(super) fn warn(&mut self, what: &str) {
        self.log.warn(what);
    }

    /// Sets the unit of the weights, and prints it with `-v`.
    pub(super) fn set_unit(&mut self, unit: &str) {
        self.log.note(&format!("weights are {unit}"));
        self.set_unit_silently(unit);
    }

    /// Sets the unit of the weights without printing it.
    pub(super) fn set_unit_silently(&mut self, unit: &str) {
        let name = unit.split(',').next().unwrap_or(unit);
        let name = if name == "count" { "samples" } else { name }.to_owned();
        self.summary.unit = Some(WeightUnit { input: self.name().to_owned(), name });
    }

    /// Returns the summary and the log when the reader is done.
    pub(super) fn finish(mut self) -> (InputSummary, OrderedLog<'a>) {
        self.summary.events.extend_from_slice(self.events.seen());
        (self.summary, self.log)
    }
}

/// Returns the line between two offsets of a block, without its line end.
fn current_line(block: &[u8], start: usize, end: usize) -> &[u8] {
    strip_bom(block[start..end].trim_ascii_end())
}

/// The message about input whose stacks have no weight.
pub(super) const ALL_WEIGHTLESS: &str = "all stacks have weight 0";

/// Number of bytes by which any binary document is recognized.
const MAX_MAGIC: u64 = 4096;

/// Says what follows a document of the format `own` from an offset on.
fn describe_rest(offset: u64, rest: &[u8], own: &str) -> String {
    match detect::find_document_at(&rest[..rest.len().min(64 << 10)]) {
        Some(format) => appended::describe(format, own, &format!("at byte {offset}")),
        None => format!("data that is not part of the profile follows at byte {offset}; it is left out"),
    }
}

impl Read for Document<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.log.add_progress(read);
        self.position += read as u64;
        Ok(read)
    }
}
