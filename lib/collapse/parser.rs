//! Parsers of blocks, and their reports of malformed lines.

use super::document_starts::DocumentStarts;
use super::formats::{self, headings};
use super::input_summary::InputSummary;
use super::sink::Sink;
use crate::Error;
use crate::folded::MixtureCheck;

/// A parser of one format. It may cache frames between blocks, so each parser is used with one sink only.
pub(super) trait Parser: Send {
    /// Parses a block of whole samples and adds them to the sink.
    fn parse(&mut self, text: &[u8], sink: &mut Sink, report: &mut BlockReport) -> Result<(), Error>;

    /// Returns a parser for another thread and sink. `None` while this parser has not seen enough to know how to read
    /// the rest.
    fn fork(&self) -> Option<Box<dyn Parser>>;

    /// Returns the summary of all parsed blocks, for formats that have several events or record losses.
    fn summary(&self) -> InputSummary {
        InputSummary::default()
    }
}

/// A line of a block that the parser does not take.
#[derive(Debug)]
pub(super) struct LeftOutLine {
    /// Its number in the block.
    pub(super) number: u64,
    pub(super) kind: LeftOut,
}

/// Why a line is left out, and its text if it may be one of another document.
#[derive(Debug)]
pub(super) enum LeftOut {
    /// It has the right format, but is malformed.
    Malformed(&'static str),
    /// It has the right format, but is no part of the profile.
    Foreign(&'static str),
    /// It is malformed or a line of another document.
    Stray(Vec<u8>, &'static str),
    /// It is a comment or a line of another document.
    Comment(Vec<u8>),
    /// A document of this format certainly begins with it.
    Document(&'static str),
}

/// An end of an input within its last sample.
#[derive(Debug, Clone, Copy)]
pub(super) enum CutEnd {
    /// It does, and its last line is left out.
    Certain,
    /// It may, for this reason.
    Possible(&'static str),
}

/// The report of a parser about a block: the number of lines, and those that are left out.
#[derive(Debug, Default)]
pub(super) struct BlockReport {
    /// Number of lines up to the current one.
    pub(super) lines: u64,
    /// The lines that are left out.
    pub(super) left_out: Vec<LeftOutLine>,
    /// Number of the first line of folded text that has more or fewer weights than the others.
    pub(super) other_kind: Option<u64>,
    /// The lines of folded text with one weight that may have two.
    pub(super) mixture: MixtureCheck,
    /// Number of stacks of folded text without callers.
    pub(super) single_frames: u64,
    /// True if a stack of folded text has callers.
    pub(super) has_callers: bool,
    /// True if the input ends with the block.
    pub(super) is_last: bool,
    /// Says that the input ends within its last sample.
    pub(super) cut_end: Option<CutEnd>,
    /// Finds documents within lines that are left out.
    starts: Option<DocumentStarts>,
}

impl BlockReport {
    /// Returns the report about a block with which an input may end.
    pub(super) fn new(is_last: bool) -> Self {
        Self { is_last, ..Self::default() }
    }

    /// Reports the current line as malformed and left out, although it has the right format.
    pub(super) fn add_malformed(&mut self, what: &'static str) {
        self.leave_out(LeftOut::Malformed(what));
    }

    /// Reports the current line as left out, although it has the right format: it is no part of the profile.
    pub(super) fn add_foreign(&mut self, what: &'static str) {
        self.leave_out(LeftOut::Foreign(what));
    }

    /// Reports the current line as malformed and left out, unless it turns out to be one of another document, which may
    /// begin within it. `text` begins with the line.
    pub(super) fn add_stray(&mut self, line: &[u8], text: &[u8], what: &'static str, own: &'static str) {
        let starts = self.starts.get_or_insert_with(|| DocumentStarts::new(own));
        match starts.find_within(text, line.len()) {
            Some(format) => self.leave_out(LeftOut::Document(format)),
            None => self.leave_out(LeftOut::Stray(line.to_vec(), what)),
        }
    }

    /// Leaves out the current line as a comment, unless it turns out to be one of another document.
    pub(super) fn add_comment(&mut self, line: &[u8]) {
        self.leave_out(LeftOut::Comment(line.to_vec()));
    }

    /// Leaves out the current line if a document of another format than `own` certainly begins with it; returns true then.
    /// `text` begins with the line, and `next` with the one after it.
    #[inline]
    pub(super) fn leave_out_start(&mut self, line: &[u8], text: &[u8], next: &[u8], own: &str) -> bool {
        let heading = headings::find(line, text).map(|heading| heading.format).filter(|format| *format != own);
        let found = heading.or_else(|| formats::find_sample(line, next, own));
        found.iter().for_each(|format| self.leave_out(LeftOut::Document(format)));
        found.is_some()
    }

    fn leave_out(&mut self, kind: LeftOut) {
        self.left_out.push(LeftOutLine { number: self.lines, kind });
    }
}
