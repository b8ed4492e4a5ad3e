//! Reads the beginning of an input to check whether its lines have a format.

use std::io::Cursor;

use super::document::Document;
use super::filter::args::EventChoice;
use super::format::ReadDocument;
use super::options::Options;
use super::ordered_log::OrderedLog;
use super::sink::Sink;
use super::text_kind::begins_like_code;
use crate::diagnostics::Diagnostics;
use crate::input::{Blocks, Source};

/// Maximum number of lines per frame in the text of a format. Text with fewer frames, such as a log, is something else that
/// contains a stack here and there.
const MAX_LINES_PER_FRAME: u64 = 20;

/// Returns true if a reader can read most lines of a text, and if stacks are not a small part of it.
///
/// A reader that finds no stack, that cannot read the text at all, or that
/// meets another document is believed: it says why.
pub(super) fn reads_most_lines(format: &'static str, read: ReadDocument, text: &[u8]) -> bool {
    match Trial::run(format, read, text) {
        Some(trial) => trial.fits() && (trial.frames == 0 || trial.has_many_frames()) && !trial.is_code(text),
        None => true,
    }
}

/// Returns true if a reader can read most lines of a text and finds stacks, which are not a small part of it.
pub(super) fn finds_stacks(format: &'static str, read: ReadDocument, text: &[u8]) -> bool {
    Trial::run(format, read, text).is_some_and(|trial| trial.fits() && trial.has_many_frames())
}

/// Returns true if a reader can read most lines of a text and finds stacks, which are a small part of it.
pub(super) fn finds_few_stacks(format: &'static str, read: ReadDocument, text: &[u8]) -> bool {
    Trial::run(format, read, text).is_some_and(|trial| trial.fits() && trial.frames > 0 && !trial.is_code(text))
}

/// The findings of a reader in a text.
struct Trial {
    /// Number of lines that are not blank.
    lines: u64,
    malformed: u64,
    /// Number of lines that the reader left out as other text.
    skipped: u64,
    /// Number of frames of all stacks.
    frames: u64,
}

impl Trial {
    /// Reads a text. `None` if the reader cannot read it, or if another document begins in it.
    fn run(format: &'static str, read: ReadDocument, text: &[u8]) -> Option<Self> {
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count() as u64;
        let mut diagnostics = Diagnostics::silent();
        let log = OrderedLog::new(String::new(), None, &mut diagnostics, None);
        let input = Blocks::new(String::new(), Box::new(Cursor::new(text.to_vec()))).ok()?;
        let options = Options { event: EventChoice::All, ..Options::default() };
        let mut sink = Sink::default();
        let mut document = Document::new(format, &Source::Stdin, input, &options, log).on_trial();
        read(&mut document, &mut sink).ok().filter(|()| !document.has_appended())?;
        Some(Self {
            lines,
            malformed: document.malformed_lines(),
            skipped: document.skipped_lines(),
            frames: sink.count_frames(),
        })
    }

    fn fits(&self) -> bool {
        self.malformed * 2 <= self.lines
    }

    /// Returns true for source code with stacks in a comment.
    fn is_code(&self, text: &[u8]) -> bool {
        self.skipped * 10 >= self.lines && begins_like_code(text)
    }

    fn has_many_frames(&self) -> bool {
        self.frames.saturating_mul(MAX_LINES_PER_FRAME) >= self.lines.max(1)
    }
}
