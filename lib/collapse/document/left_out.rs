//! Lines that the reader of a document does not take.

use std::io::Read as _;

use bstr::ByteSlice as _;

use super::Document;
use crate::Error;
use crate::collapse::detect;
use crate::collapse::strays::{RunEnd, StrayKind, Strays};
use crate::diagnostics::plural;

/// Lines that are left out as other text: how many, and the number of the first one.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::collapse) struct SkippedLines {
    pub(in crate::collapse) count: u64,
    pub(in crate::collapse) first: u64,
}

impl SkippedLines {
    /// Adds lines that follow those before.
    pub(in crate::collapse) fn add(&mut self, other: Self) {
        if self.count == 0 {
            self.first = other.first;
        }
        self.count += other.count;
    }
}

/// Most bytes behind a document that are checked for being another one.
const MAX_REST: usize = 64 << 10;

/// Says that most of an input cannot be read.
fn describe_most(offset: u64, what: &str) -> String {
    format!("{what}: most of the input, from byte {offset} on, cannot be read")
}

impl Document<'_> {
    /// Reports the current line as malformed and left out, unless it turns out to be one of another document.
    ///
    /// # Errors
    /// [`Error::Malformed`] with `--strict`.
    pub(in crate::collapse) fn report_malformed(&mut self, what: &str) -> Result<(), Error> {
        match &mut self.strays {
            Some(strays) if !self.is_at_end && !self.log.is_strict() => {
                strays.add(self.line, self.line_start..self.offset, StrayKind::Malformed(what));
                Ok(())
            }
            _ => self.report_malformed_at(self.line, what),
        }
    }

    /// Leaves out the current line as other text, which is counted: inputs of this format may have any between their
    /// stacks. Lines that belong to the format, but not to a stack, are none.
    pub(in crate::collapse) fn skip_line(&mut self) {
        self.skip(StrayKind::Text);
    }

    /// Leaves out the current line, which belongs to the format but to no stack, unless it turns out to be one of another
    /// document.
    pub(in crate::collapse) fn skip_own_line(&mut self) {
        let line = super::current_line(&self.block, self.line_start, self.offset).trim_ascii_start();
        // Such a line of JSON belongs to no text format.
        let is_json = line.starts_with(b"\"") && line.contains_str("\":");
        self.skip(if is_json { StrayKind::Text } else { StrayKind::OfFormat });
    }

    /// Like [`check_end`](Self::check_end), for readers that know the bytes which they could not read. Nothing is cut short
    /// if another document begins there, or if the bytes are not `is_record`, the beginning of a record.
    ///
    /// # Errors
    /// [`Error::Unreadable`], also if the bytes are most of the input.
    pub(in crate::collapse) fn check_end_or_rest(
        &mut self,
        offset: u64,
        rest: &[u8],
        is_record: bool,
        end: &str,
    ) -> Result<(), Error> {
        let document = detect::find_document_at(&rest[..rest.len().min(MAX_REST)]);
        if !is_record || document.is_some_and(|format| format != self.appended.format()) {
            return self.check_nothing_follows(offset, rest);
        }
        if rest.len() as u64 > offset {
            return Err(self.unreadable(describe_most(offset, "cut short or damaged")));
        }
        self.check_end(rest.is_empty(), end)
    }

    /// Warns that the document is damaged, so that the bytes which were not read yet cannot be read.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if nothing was read, if the bytes are most of the input, or with `--strict`.
    pub(in crate::collapse) fn report_unreadable_rest(&mut self, what: &str, is_empty: bool) -> Result<(), Error> {
        let offset = self.position;
        let rest = std::io::copy(&mut self.by_ref().take(offset + 1), &mut std::io::sink());
        match rest {
            Ok(rest) if rest > offset && !is_empty => Err(self.unreadable(describe_most(offset, what))),
            _ => self.report_damage(what, is_empty),
        }
    }

    /// Leaves out the current line as other text within a stack. Returns false if it follows such a line: then the stack
    /// has ended, as a single line of the program that was profiled does not end it.
    pub(in crate::collapse) fn skip_line_in_stack(&mut self) -> bool {
        self.skip_line();
        let before = std::mem::replace(&mut self.line_in_stack, self.line);
        before == 0 || !self.follows(before)
    }

    fn skip(&mut self, kind: StrayKind<'_>) {
        if super::current_line(&self.block, self.line_start, self.offset).is_empty() {
            return;
        }
        match self.strays.as_mut().filter(|_| !self.is_at_end) {
            Some(strays) => strays.add(self.line, self.line_start..self.offset, kind),
            None if matches!(kind, StrayKind::OfFormat) => {}
            None => self.skipped.add(SkippedLines { count: 1, first: self.line }),
        }
    }

    /// Reports a line as malformed and left out, for readers that count lines themselves.
    ///
    /// # Errors
    /// [`Error::Malformed`] with `--strict`.
    pub(in crate::collapse) fn report_malformed_at(&mut self, line: u64, what: &str) -> Result<(), Error> {
        self.log.report_malformed(line, what)
    }

    /// Returns the number of malformed lines.
    pub(in crate::collapse) fn malformed_lines(&self) -> u64 {
        self.log.malformed_lines() + self.strays.as_ref().map_or(0, Strays::count_malformed)
    }

    /// Returns the number of lines that were left out as other text.
    pub(in crate::collapse) fn skipped_lines(&self) -> u64 {
        self.skipped.count
    }

    /// Says how many lines were left out as other text.
    pub(in crate::collapse) fn report_skipped(&mut self) {
        let SkippedLines { count, first } = self.skipped;
        if count > 0 {
            let lines = plural(count, "line");
            self.log.warn(&format!("{lines} of other text left out; the first is line {first}"));
        }
    }

    /// Ends the lines that the reader does not take if it has taken the last one, or if there are many.
    pub(super) fn check_strays(&mut self) -> Result<(), Error> {
        let Some(strays) = self.strays.as_mut().filter(|strays| !strays.is_empty()) else { return Ok(()) };
        if !strays.contains(self.line) {
            if !super::current_line(&self.block, self.line_start, self.offset).is_empty() {
                return self.end_strays(RunEnd::Taken);
            }
            strays.add_blank(self.line, self.offset);
        }
        if strays.is_full() { self.end_strays(RunEnd::Full) } else { Ok(()) }
    }

    /// Reports the malformed ones of the lines that the reader did not take and counts the others, unless they are another
    /// document.
    pub(super) fn end_strays(&mut self, end: RunEnd) -> Result<(), Error> {
        let Some(strays) = &mut self.strays else { return Ok(()) };
        match strays.take(&self.block, end) {
            Ok((mut malformed, skipped)) => {
                self.skipped.add(skipped);
                // That the input is cut is said once, by `check_end` or `check_line_end`.
                self.is_last_left_out = end == RunEnd::EndOfInput
                    && self.is_unterminated
                    && malformed.pop_if(|(line, _)| *line == self.line).is_some();
                malformed.iter().try_for_each(|(line, what)| self.log.report_malformed(*line, what))
            }
            Err((line, format)) => {
                self.appended.set_found(line, format);
                Ok(())
            }
        }
    }
}
