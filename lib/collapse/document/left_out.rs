//! Lines that the reader of a document does not take.

use super::Document;
use crate::Error;

impl Document<'_> {
    /// Ends the lines that the reader does not take if it has taken the last one, or if there are many.
    pub(super) fn check_strays(&mut self) -> Result<(), Error> {
        let Some(strays) = self.strays.as_mut().filter(|strays| !strays.is_empty()) else { return Ok(()) };
        if !strays.contains(self.line) {
            if !super::current_line(&self.block, self.line_start, self.offset).is_empty() {
                return self.end_strays(false);
            }
            strays.add_blank(self.line, self.offset);
        }
        if strays.is_full() { self.end_strays(false) } else { Ok(()) }
    }

    /// Reports the malformed ones of the lines that the reader did not take, unless they are another document.
    pub(super) fn end_strays(&mut self, is_last: bool) -> Result<(), Error> {
        let taken = self.strays.as_mut().map_or(Ok(Vec::new()), |strays| strays.take(&self.block, is_last));
        match taken {
            Ok(mut malformed) => {
                // That the input is cut is said once, by `check_end` or `check_line_end`.
                self.is_last_left_out =
                    is_last && self.is_unterminated && malformed.pop_if(|(line, _)| *line == self.line).is_some();
                malformed.iter().try_for_each(|(line, what)| self.log.report_malformed(*line, what))
            }
            Err((line, format)) => {
                self.appended.set_found(line, format);
                Ok(())
            }
        }
    }
}
