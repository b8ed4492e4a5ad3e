//! Lines of an input that its reader does not take: malformed ones, and other text between stacks.
//!
//! All readers of lines of stacks say what their lines look like, and leave all others to this module. Consecutive lines
//! are kept until it is known whether they are a document of another format, as `cat` joins files.

use std::ops::Range;

use super::detect;

/// Most lines that are checked at once for being another document.
const MAX_LINES: usize = 64;

/// Most bytes of these lines, of which the last one may be longer.
const MAX_BYTES: usize = 16 << 10;

/// Most checks of lines between those that the reader takes. The last lines of an input are always checked.
const MAX_CHECKS: u32 = 16;

/// A malformed line: its number, and what was expected.
pub(super) type MalformedLine = (u64, String);

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
    checks: u32,
}

impl Strays {
    pub(super) fn new(format: &'static str) -> Self {
        Self { format, lines: None, text: Vec::new(), place: 0..0, count: 0, malformed: Vec::new(), checks: 0 }
    }

    /// Adds a line at a place in the current block; `what` was expected, if the line is malformed. A line may be added
    /// several times.
    #[inline]
    pub(super) fn add(&mut self, number: u64, place: Range<usize>, what: Option<&str>) {
        match self.lines {
            Some((first, _)) => self.lines = Some((first, number)),
            None => (self.lines, self.place.start) = (Some((number, number)), place.start),
        }
        self.count += 1;
        self.place.end = place.end;
        if let Some(what) = what {
            self.malformed.push((number, what.to_owned()));
        }
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
    /// malformed ones, which are reported. `is_last` is true at the end of the input.
    pub(super) fn take(&mut self, block: &[u8], is_last: bool) -> Result<Vec<MalformedLine>, (u64, &'static str)> {
        let malformed = std::mem::take(&mut self.malformed);
        let (count, place) = (std::mem::take(&mut self.count), std::mem::take(&mut self.place));
        let mut text = std::mem::take(&mut self.text);
        let Some((first, _)) = self.lines.take() else { return Ok(malformed) };
        if !is_last && self.checks == MAX_CHECKS {
            return Ok(malformed);
        }
        text.extend_from_slice(&block[place]);
        let may_be_document = count > 1 || matches!(text.first(), Some(b'{' | b'[' | b'<'));
        if !may_be_document {
            return Ok(malformed);
        }
        self.checks += 1;
        let found = detect::find_other_document(&text, self.format);
        found.map_or(Ok(malformed), |(index, format)| Err((first + index, format)))
    }
}

#[cfg(test)]
mod tests {
    use super::Strays;

    /// Returns the document of which the lines of a text are the beginning.
    fn find(format: &'static str, text: &str) -> Option<(u64, &'static str)> {
        let mut strays = Strays::new(format);
        let mut start = 0;
        for (line, number) in text.split_inclusive('\n').zip(7..) {
            let end = start + line.len();
            if line == "\n" {
                strays.add_blank(number, end)
            } else {
                strays.add(number, start..end, None)
            }
            start = end;
        }
        strays.take(text.as_bytes(), true).err()
    }

    #[test]
    fn lines_of_another_format_are_a_document() {
        for (text, format) in [
            ("a;b 1\na;c 1\na;d 1\n", Some("folded")),
            ("x\na;b 1\ny\na;b 1\n", None),
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
