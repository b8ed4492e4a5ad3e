//! Texts whose blanks or lines changed when they were copied.

use super::Document;
use crate::Error;
use crate::collapse::line_helpers::{first_lines, is_double_spaced};

/// The arrangement of the first lines of a text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    /// True if a blank line follows each line, as in text that was copied from some browsers: such lines end no stack.
    is_double_spaced: bool,
    /// True if a line is indented.
    is_indented: bool,
}

impl Layout {
    /// Returns the layout of a text that begins with these bytes.
    fn new(head: &[u8]) -> Self {
        let is_indented = |line: &[u8]| matches!(line, [b' ' | b'\t', _, ..]) && !line.trim_ascii().is_empty();
        Self { is_double_spaced: is_double_spaced(head), is_indented: first_lines(head).any(is_indented) }
    }
}

impl Document<'_> {
    /// Reads the next line into `line`, without its line end; returns false at the end of the input. The line with which
    /// another document begins is an end, too; [`check_whole`](Self::check_whole) reports it.
    pub(in crate::collapse) fn read_line(&mut self, line: &mut Vec<u8>) -> Result<bool, Error> {
        let layout = self.layout.map_or_else(|| self.find_layout(), Ok)?;
        let has_line = self.read_single_line(line)?;
        match has_line && layout.is_double_spaced && line.trim_ascii().is_empty() {
            true => self.read_single_line(line),
            false => Ok(has_line),
        }
    }

    /// Returns true if the current line follows the line with this number, which was read before it.
    pub(super) fn follows(&self, before: u64) -> bool {
        before + 1 + u64::from(self.layout.is_some_and(|layout| layout.is_double_spaced)) >= self.line
    }

    /// Finds out how the text is arranged. Nothing must have been read.
    fn find_layout(&mut self) -> Result<Layout, Error> {
        let layout = Layout::new(self.input.head()?);
        self.layout = Some(layout);
        Ok(layout)
    }

    /// Reports the current line as malformed because it is not indented.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the text has lost all its indentation; [`Error::Malformed`] with `--strict`.
    pub(in crate::collapse) fn report_unindented(&mut self, what: &str) -> Result<(), Error> {
        // A text that is read on trial may be of another format.
        match self.strays.is_some() && self.layout.is_some_and(|layout| !layout.is_indented) {
            true => Err(self.indentation_lost()),
            false => self.report_malformed(what),
        }
    }

    /// Returns an error: the current line contradicts the indentation of the tree, or the beginning does if no line was read.
    pub(in crate::collapse) fn indentation_lost(&self) -> Error {
        let what = "the indentation, which tells who calls whom, is lost; give the text as it was written";
        if self.line == 0 { self.unreadable(what) } else { self.unreadable_line(what) }
    }
}
