//! Finds the lines of a text with which another document certainly begins, also behind a last line that has no end, as `cat`
//! joins files.
//!
//! Such a document begins with the heading of its format (`formats/headings.rs`), with a sample of `perf script`, `strace -k`
//! or lightweight-java-profiler, or as JSON, XML or binary data. Whether the reader of the text takes the line does not matter.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::formats::{self, headings};
use super::strays::BINARY;
use crate::bytes::strip_bom;

/// The first line of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The offset in the line.
    pub(super) offset: usize,
    pub(super) format: &'static str,
    /// True if an input may contain several documents of this format.
    pub(super) may_recur: bool,
}

impl Start {
    /// Returns the start of a document without a heading, of which there may be several.
    fn new(offset: usize, format: &'static str) -> Self {
        Self { offset, format, may_recur: true }
    }
}

/// Most checks of whether JSON, XML or binary data are a document. A text may contain any number that are none.
const MAX_CHECKS: u32 = 16;

/// Most bytes by which such a document is recognized.
const MAX_HEAD: usize = 256 << 10;

/// Binary data that follow a text begin at most this many bytes before their first zero byte.
const MAX_MAGIC: usize = 16;

/// What a document may begin with, apart from the headings at the start of a line: JSON, XML, a zero byte, the time of
/// a sample, a frame of Java, a stack of `strace`, or a heading behind a line without an end.
static CANDIDATE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let headings = headings::starts_within().map(|start| regex::escape(&String::from_utf8_lossy(start)));
    let headings = headings.collect::<Vec<String>>().join("|");
    Regex::new(&format!(r#"(?-u)\{{\s*"|\[\s*\{{|<\?xml|\x00|[0-9]\.[0-9]{{6,9}}:|\.java:|\n > |{headings}"#)).ok()
});

/// Looks for documents in the lines of an input, which come in blocks.
#[derive(Debug)]
pub(super) struct DocumentStarts {
    /// The format of the input.
    format: &'static str,
    /// The offset of the next candidate in the block, if it was looked for, or that of the end.
    next: Option<usize>,
    checks: u32,
    /// True if a line is JSON of the input's own format, whose reader then tells which lines are.
    has_markup_lines: bool,
}

impl DocumentStarts {
    pub(super) fn new(format: &'static str) -> Self {
        Self { format, next: None, checks: 0, has_markup_lines: false }
    }

    /// Begins a block.
    pub(super) fn begin_block(&mut self) {
        self.next = None;
    }

    /// Returns the document that begins in a line of a block. `is_last` is true if the block is the last one of the input.
    #[inline]
    pub(super) fn find(&mut self, block: &[u8], line: Range<usize>, is_last: bool) -> Option<Start> {
        let heading = headings::find(strip_bom(&block[line.clone()]), strip_bom(&block[line.start..]));
        let heading = heading.map(|heading| Start { offset: 0, format: heading.format, may_recur: heading.may_recur });
        if heading.is_some_and(|heading| heading.format != self.format) || self.next.is_some_and(|next| next > line.end)
        {
            return heading;
        }
        self.find_candidate(block, line, is_last).or(heading)
    }

    #[cold]
    fn find_candidate(&mut self, block: &[u8], line: Range<usize>, is_last: bool) -> Option<Start> {
        let candidate = CANDIDATE.as_ref()?;
        let (mut from, mut own) = (line.start.max(self.next.unwrap_or(0)), None);
        loop {
            let next = candidate.find_at(block, from).map_or(block.len() + 1, |found| found.start());
            self.next = Some(next);
            if next > line.end {
                return own;
            }
            let found = self.check(block, line.clone(), next, is_last);
            match found {
                // Another document may follow in the same line.
                Some(start) if start.offset == 0 && start.format == self.format => own = found,
                Some(_) => return found,
                None => {}
            }
            from = next + 1;
            if from > line.end {
                self.next = None;
                return own;
            }
        }
    }

    /// Returns the document that begins at a candidate, or with its line.
    fn check(&mut self, block: &[u8], line: Range<usize>, candidate: usize, is_last: bool) -> Option<Start> {
        let offset = candidate - line.start;

        let heading = headings::find_within(&block[line.clone()], &block[line.start..], offset);
        if let Some(heading) = heading {
            return Some(Start { offset, format: heading.format, may_recur: heading.may_recur });
        }
        match block[candidate] {
            // It may be a part of a line of a log, or of another value.
            b'{' | b'[' | b'<' if offset > 0 && b" \t:,[{(=\"".contains(&block[candidate - 1]) => None,
            b'{' | b'[' | b'<' if offset == 0 && self.has_markup_lines => None,
            b'{' | b'[' | b'<' => {
                let text = &block[candidate..];
                let found =
                    if self.may_check() { formats::find_markup(&text[..text.len().min(MAX_HEAD)]) } else { None };
                self.has_markup_lines |= found.is_some_and(|format| format.name == self.format);
                found.map(|format| Start::new(offset, format.name))
            }
            0 => {
                let first = candidate.saturating_sub(MAX_MAGIC).max(line.start);
                let mut starts = first..if self.may_check() { candidate + 1 } else { first };
                let found = starts.find_map(|start| {
                    let format = formats::find_binary(&block[start..block.len().min(start + MAX_HEAD)])?;
                    Some(Start::new(start - line.start, format))
                });
                // Binary data without a known beginning are no text of a program only in a last line without an end.
                found.or_else(|| (is_last && line.end == block.len()).then(|| Start::new(offset, BINARY)))
            }
            _ => {
                let next = block.get(line.end + 1..).unwrap_or_default();
                formats::find_sample(&block[line], next, self.format).map(|format| Start::new(0, format))
            }
        }
    }

    /// Returns the format of the document, other than that of the input, that begins within the line with which a text
    /// begins, for readers of blocks.
    #[cold]
    pub(super) fn find_within(&mut self, text: &[u8], line: usize) -> Option<&'static str> {
        self.begin_block();
        let near = &text[..text.len().min(line + MAX_HEAD)];
        let found = self.find_candidate(near, 0..line, false);
        found.map(|start| start.format).filter(|format| !formats::shares_text(self.format, format))
    }

    fn may_check(&mut self) -> bool {
        self.checks += 1;
        self.checks <= MAX_CHECKS
    }
}

/// Returns the format of the first document, other than `own`, that certainly begins in a text.
pub(super) fn find_first(text: &[u8], own: &'static str) -> Option<&'static str> {
    let (mut starts, mut offset) = (DocumentStarts::new(own), 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let end = offset + line.trim_ascii_end().len();
        let start = starts.find(text, offset..end, false);
        if let Some(start) = start.filter(|start| !formats::shares_text(own, start.format)) {
            return Some(start.format);
        }
        offset += line.len();
    }
    None
}
