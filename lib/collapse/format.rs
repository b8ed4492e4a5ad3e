//! The declaration of an input format: its name, how to recognize it, and the function that reads it.

use super::document::Document;
use super::formats::json;
use super::formats::json::value::Value;
use super::options::Options;
use super::parser::Parser;
use super::sink::Sink;
use crate::Error;

/// An input format.
#[derive(Debug)]
pub struct Format {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// The program or command that writes the format, in a few words.
    pub description: &'static str,
    /// The programs whose own files the reader was tested with, and files that others published. If it is empty, only
    /// the specification or the program's source was at hand.
    pub tested_with: &'static str,
    /// True if the reader gets a time, a thread and a CPU with each sample, so that `--time`, `--comm`, `--span` and
    /// their like apply.
    pub(super) has_times: bool,
    /// True if samples have labels, which `--label` names.
    pub(super) has_labels: bool,
    /// True if samples weigh 1 each, always or with `--weight samples`, unless the reader names another unit. False for sums
    /// of anything.
    pub(super) counts_samples: bool,
    pub(super) recognizer: Recognizer,
    pub(super) reader: FormatReader,
}

/// What tells if an input has a format. No other format may recognize the same input.
#[derive(Debug)]
pub(super) enum Recognizer {
    /// Returns true for the first bytes of an input: 128 KiB and at least its first line, or all of it.
    Head(fn(&[u8]) -> bool),
    /// Returns true for the root of JSON, which may be truncated.
    Json(fn(Value<'_>) -> bool),
}

impl Format {
    /// Returns true if an input that begins with these bytes has this format. See [`Recognizer::Head`].
    pub(super) fn recognizes(&self, head: &[u8]) -> bool {
        match self.recognizer {
            Recognizer::Head(recognizes) => recognizes(head),
            Recognizer::Json(is_root) => json::start::root_matches(head, is_root),
        }
    }

    /// Returns what the reader was tested with, as a part of a sentence.
    pub fn trial(&self) -> String {
        match self.tested_with {
            "" => "not tested with real files".to_owned(),
            tested_with => format!("tested with {tested_with}"),
        }
    }
}

/// The function that reads a format.
#[derive(Debug)]
pub(super) enum FormatReader {
    /// Parses blocks of whole samples, on all threads: for text that can be large.
    Blocks {
        /// Returns the offset after the last whole sample of a text, if it can be found.
        find_boundary: fn(&[u8]) -> Option<usize>,
        new_parser: fn(&Options) -> Box<dyn Parser>,
    },
    /// Reads text line by line, on one thread.
    Lines(ReadDocument),
    /// Reads a document that may be binary, or whose first line is that of no other text, on one thread.
    Bytes(ReadDocument),
}

/// A function that reads a document from its beginning to its end and adds its samples to the sink.
pub(super) type ReadDocument = fn(&mut Document<'_>, &mut Sink) -> Result<(), Error>;
