//! Reads the beginning of an input to check whether its lines have a format.

use std::io::Cursor;

use super::document::Document;
use super::filter::args::EventChoice;
use super::format::ReadDocument;
use super::options::Options;
use super::ordered_log::OrderedLog;
use super::sink::Sink;
use crate::diagnostics::Diagnostics;
use crate::input::{Blocks, Source};

/// Minimum number of lines for each frame of a stack in the text of a format. Other text, such as a log, may contain a
/// stack here and there.
const MAX_LINES_PER_FRAME: u64 = 20;

/// Returns true if a reader can read most lines of a text, and if stacks are not a small part of it.
///
/// A reader that finds no stack, that cannot read the text at all, or that
/// meets another document is believed: it says why.
pub(super) fn reads_most_lines(format: &'static str, read: ReadDocument, text: &[u8]) -> bool {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count() as u64;
    let mut diagnostics = Diagnostics::silent();
    let log = OrderedLog::new(String::new(), None, &mut diagnostics, None);
    let Ok(input) = Blocks::new(String::new(), Box::new(Cursor::new(text.to_vec()))) else { return true };
    let options = Options { event: EventChoice::All, ..Options::default() };
    let mut sink = Sink::default();
    let mut document = Document::new(format, &Source::Stdin, input, &options, log);
    if read(&mut document, &mut sink).is_err() || document.has_appended() {
        return true;
    }
    let frames = sink.count_frames();
    document.malformed_lines() * 2 <= lines && (frames == 0 || frames.saturating_mul(MAX_LINES_PER_FRAME) >= lines)
}
