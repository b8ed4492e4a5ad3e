//! Lines of an input that its reader does not take: malformed ones, and other text between stacks.
//!
//! All readers of lines of stacks say what their lines look like, and leave all others to this module. Consecutive lines
//! are kept until it is known whether they are a document of another format, as `cat` joins files.

use std::ops::Range;

use bstr::ByteSlice as _;

use super::detect;
use super::document::SkippedLines;
use super::formats::folded;

/// Most lines that are checked at once for being another document.
const MAX_LINES: usize = 64;

/// Most bytes of these lines, of which the last one may be longer.
const MAX_BYTES: usize = 16 << 10;

/// Most checks of lines between those that the reader takes. The last lines of an input are always checked.
const MAX_CHECKS: u32 = 16;

/// Most lines between two others that a reader of blocks has taken, or that are blank.
const MAX_TAKEN_BETWEEN: u64 = 2;

/// Name of binary data in a text, in place of a format.
pub(super) const BINARY: &str = "binary data";

/// A malformed line: its number, and what was expected.
pub(super) type MalformedLine = (u64, String);

/// A line that the reader does not take.
#[derive(Clone, Copy, Debug)]
pub(super) enum StrayKind<'a> {
    /// It is malformed; this was expected.
    Malformed(&'a str),
    /// It is other text.
    Text,
    /// It belongs to the format, but to no stack.
    OfFormat,
    /// It is a comment. Comments alone are not another document.
    Comment,
}

/// Why no more lines are added to consecutive ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// The reader took the next line.
    Taken,
    /// They are many. The next line may be another one.
    Full,
    EndOfInput,
}

/// Consecutive lines that the reader does not take.
#[derive(Debug)]
pub(super) struct Strays {
    /// The format of the input.
    format: &'static str,
    /// The numbers of the first and the last line. Blank lines belong to those around them.
    lines: Option<(u64, u64)>,
    /// The lines in earlier blocks.
    text: Vec<u8>,
    /// The place of the others in the current block.
    place: Range<usize>,
    count: usize,
    malformed: Vec<MalformedLine>,
    /// The other lines.
    skipped: SkippedLines,
    checks: u32,
    /// The number of the first line with a zero byte since the last one that the reader took.
    binary: Option<u64>,
}

impl Strays {
    pub(super) fn new(format: &'static str) -> Self {
        Self {
            format,
            lines: None,
            text: Vec::new(),
            place: 0..0,
            count: 0,
            malformed: Vec::new(),
            skipped: SkippedLines::default(),
            checks: 0,
            binary: None,
        }
    }

    /// Returns the format of the input.
    pub(super) fn format(&self) -> &'static str {
        self.format
    }

    /// Adds a line at a place in the current block. A line may be added several times.
    #[inline]
    pub(super) fn add(&mut self, number: u64, place: Range<usize>, kind: StrayKind<'_>) {
        match self.lines {
            Some((first, _)) => self.lines = Some((first, number)),
            None => (self.lines, self.place.start) = (Some((number, number)), place.start),
        }
        self.place.end = place.end;
        self.add_to_counts(number, kind);
    }

    /// Adds a line with its text, for readers of blocks. Of the lines since the last one, the reader took few.
    pub(super) fn add_text(&mut self, number: u64, line: &[u8], kind: StrayKind<'_>) {
        let (first, last) = self.lines.unwrap_or((number, number));
        self.lines = Some((first, number));
        self.text.extend(std::iter::repeat_n(b'\n', number.saturating_sub(last + 1) as usize));
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        self.add_to_counts(number, kind);
    }

    fn add_to_counts(&mut self, number: u64, kind: StrayKind<'_>) {
        self.count += usize::from(!matches!(kind, StrayKind::Comment));
        match kind {
            StrayKind::Malformed(what) => self.malformed.push((number, what.to_owned())),
            StrayKind::Text => self.skipped.add(SkippedLines { count: 1, first: number }),
            StrayKind::OfFormat | StrayKind::Comment => {}
        }
    }

    /// Returns true if a line belongs to those before, or is the first one.
    pub(super) fn is_near(&self, number: u64) -> bool {
        self.lines.is_none_or(|(_, last)| number <= last + MAX_TAKEN_BETWEEN + 1)
    }

    /// Drops the lines before the heading of a document if they belong to it: they are near, and no comments. Returns the
    /// number of the first one.
    pub(super) fn take_beginning(&mut self, heading: u64) -> Option<u64> {
        let first = self.lines.map(|(first, _)| first).filter(|_| self.count > 0 && self.is_near(heading))?;
        *self = Self { checks: self.checks, ..Self::new(self.format) };
        Some(first)
    }

    /// Adds the blank line after the last one.
    pub(super) fn add_blank(&mut self, number: u64, end: usize) {
        if let Some((first, _)) = self.lines {
            (self.lines, self.place.end) = (Some((first, number)), end);
        }
    }

    /// Copies the lines in a block that is about to be replaced.
    pub(super) fn save(&mut self, block: &[u8]) {
        self.text.extend_from_slice(&block[std::mem::take(&mut self.place)]);
    }

    /// Returns true if the reader took the last line that was not blank.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_none()
    }

    /// Returns true if the line was not taken.
    #[inline]
    pub(super) fn contains(&self, number: u64) -> bool {
        self.lines.is_some_and(|(_, last)| last == number)
    }

    /// Returns true if these lines are enough to decide.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.count >= MAX_LINES || self.text.len() + self.place.len() >= MAX_BYTES
    }

    /// Returns the number of malformed lines.
    pub(super) fn count_malformed(&self) -> u64 {
        self.malformed.len() as u64
    }

    /// Returns the number of the first line and the name of the format if the lines are another document; else the
    /// malformed ones, which are reported, and the number of the others.
    pub(super) fn take(
        &mut self,
        block: &[u8],
        end: RunEnd,
    ) -> Result<(Vec<MalformedLine>, SkippedLines), (u64, &'static str)> {
        let left_out = (std::mem::take(&mut self.malformed), std::mem::take(&mut self.skipped));
        let (count, place) = (std::mem::take(&mut self.count), std::mem::take(&mut self.place));
        let mut text = std::mem::take(&mut self.text);
        let (is_last, before) = (end == RunEnd::EndOfInput, self.binary.take());
        let Some((first, _)) = self.lines.take() else { return Ok(left_out) };
        text.extend_from_slice(&block[place]);
        // Data to the end of the input are another document; a line before others is not.
        let binary = before.or_else(|| find_binary_line(&text).map(|index| first + index));
        self.binary = binary.filter(|_| end == RunEnd::Full);
        if !is_last && (count == 0 || self.checks == MAX_CHECKS) {
            return Ok(left_out);
        }
        // Between lines of the format, a single stack is a line of a log.
        let may_be_document = text
            .lines()
            .any(|line| matches!(line.first(), Some(b'{' | b'[' | b'<')) || is_last && folded::is_certain_stack(line));
        self.checks += 1;
        let found = match count > 1 || may_be_document {
            true => detect::find_other_document(&text, self.format),
            false => None,
        };
        let found = found.filter(|(_, format)| *format != folded::FORMAT.name || is_last || has_two_stacks(&text));
        let found = found.or_else(|| {
            let (line, index) = text.lines().zip(0..).last().filter(|_| is_last)?;
            detect::find_markup_within(line).map(|(_, format)| (index, format))
        });
        let found = found.map(|(index, format)| (first + index, format));
        found.or_else(|| Some((binary.filter(|_| is_last)?, BINARY))).map_or(Ok(left_out), Err)
    }
}

fn has_two_stacks(text: &[u8]) -> bool {
    text.lines().filter(|line| folded::is_stack(line)).nth(1).is_some()
}

/// Returns the index of the first line with a zero byte.
fn find_binary_line(text: &[u8]) -> Option<u64> {
    let (before, _) = text.split_once_str("\0")?;
    Some(before.iter().filter(|byte| **byte == b'\n').count() as u64)
}

#[cfg(test)]
mod tests {
    use super::{RunEnd, StrayKind, Strays};

    /// Returns the document of which the lines of a text are the beginning.
    fn find(format: &'static str, text: &str) -> Option<(u64, &'static str)> {
        let mut strays = Strays::new(format);
        let mut start = 0;
        for (line, number) in text.split_inclusive('\n').zip(7..) {
            let end = start + line.len();
            if line == "\n" {
                strays.add_blank(number, end)
            } else {
                strays.add(number, start..end, StrayKind::Text)
            }
            start = end;
        }
        strays.take(text.as_bytes(), RunEnd::EndOfInput).err()
    }

    #[test]
    fn lines_of_another_format_are_a_document() {
        for (text, format) in [
            ("a;b 1\na;c 1\na;d 1\n", Some("folded")),
            ("x\na b;c 1\ny\na b;c 1\n", None),
            ("a;b 1\n", Some("folded")),
            ("a;b 1\n\nidle 2\n", Some("folded")),
            ("x\ny\na;b 1\na;c 1\n", Some("folded")),
            ("Stack,Count\n[Root]/a!f,1\n[Root]/a!g,2\n", Some("wpa")),
            ("4 2 a.B.f(B.java:1)\n    a.B.main(B.java:2)\nTotal trace count: 4\n", Some("ljp")),
            ("{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"f\"}}]}\n", Some("cpuprofile")),
            ("hello\n\nthis is a line of the program\n", None),
            ("2026-11-23 10:00:00 INFO GET /a;b 200\n2026-11-23 10:00:01 INFO GET /a;c 200\n", None),
        ] {
            let first = if text.starts_with('x') { 9 } else { 7 };
            assert_eq!(find("jstack", text), format.map(|format| (first, format)), "{text}");
        }
        assert_eq!(find("folded", "a;b 1\na;c 1\n"), None, "of its own format");
    }
}
