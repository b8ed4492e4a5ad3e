//! JSON of pyinstrument (`pyinstrument -r json`): a call tree with times in seconds.
//!
//! ```text
//! {"start_time":1.5,"duration":0.5,"sample_count":480,"root_frame":{"function":"<module>","file_path":"/srv/a.py",
//!  "line_no":1,"time":0.5,"children":[{"function":"work","file_path":"/srv/a.py","line_no":9,"time":0.4,"children":[]}]}}
//! ```
//! The weight is a function's time without that of its callees, in microseconds. Files and lines are left out unless
//! `--srcline` asks for them.

use super::tree::{Node, fold_tree};
use super::value::Value;
use super::{frame_name, read_root};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "pyinstrument",
    description: "pyinstrument -r json (Python)",
    tested_with: "pyinstrument 5.1",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    root.get(b"sample_count").is_some() && root.get(b"root_frame").is_some()
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    document.set_unit("microseconds");
    let Some(frame) = root.get(b"root_frame").filter(|frame| frame.is_object()) else { return Ok(()) };
    let options = document.options;
    fold_tree(frame, b"children", |frame, _| parse_node(frame, options), document, sink)
}

const TRILLION: i128 = 1_000_000_000_000;

fn parse_node(frame: Value<'_>, options: &Options) -> Node {
    let name = frame_name(frame, [b"function", b"file_path", b"line_no"], options);
    // Millionths of a second are whole microseconds.
    let time = frame.get_millionths(b"time");
    Node { name, value: time.and_then(|time| time.checked_mul(TRILLION)), is_hidden: false }
}
