//! JSON of valgrind's DHAT (`dhat.out.PID`) and of the Rust crate `dhat` (`dhat-heap.json`): heap use by stack.
//!
//! ```text
//! {"dhatFileVersion":2,"mode":"heap","pps":[{"tb":2000,"tbk":2,"gb":2000,"gbk":2,"eb":0,"ebk":0,"fs":[1,2]}],
//!  "ftbl":["[root]","0x10917B: work (a.c:5)","0x10919C: main (a.c:9)"]}
//! ```
//! The weight is the bytes that a stack allocated (`bytes`), unless `--event` names another value: `blocks`,
//! `peak-bytes` and `peak-blocks` when the heap was largest, or `end-bytes` and `end-blocks`. Ad-hoc profiles have
//! `units` and `events`. Addresses are left out; so are files and lines, unless `--srcline` asks for them.

use bstr::ByteSlice as _;

use super::read_root;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, weight_from_millionths};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{function_name, is_address};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::profile::FrameId;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "dhat",
    description: "DHAT (valgrind --tool=dhat, the Rust crate dhat)",
    tested_with: "valgrind 3.19",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    root.get(b"dhatFileVersion").is_some()
}

/// The names of the values, and their keys.
const HEAP_VALUES: [(&str, &[u8]); 6] = [
    ("bytes", b"tb"),
    ("blocks", b"tbk"),
    ("peak-bytes", b"gb"),
    ("peak-blocks", b"gbk"),
    ("end-bytes", b"eb"),
    ("end-blocks", b"ebk"),
];

/// The same of profiles that have no lifetimes of blocks.
const AD_HOC_VALUES: [(&str, &[u8]); 2] = [("units", b"tb"), ("events", b"tbk")];

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let is_heap = root.get_items(b"pps").next().is_none_or(|point| point.get(b"gb").is_some());
    let values: &[(&str, &[u8])] = if is_heap { &HEAP_VALUES } else { &AD_HOC_VALUES };
    let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    let (name, key) = values[document.select_value(&names, 0)?];
    document.set_unit_silently(name.rsplit('-').next().unwrap_or(name));
    let options = document.options;
    let frames: Vec<FrameId> = root
        .get_items(b"ftbl")
        .map(|frame| intern_frame(&frame_name(&frame.as_string().unwrap_or_default(), options), sink))
        .collect();
    let (mut stack, mut invalid) = (Vec::new(), 0);
    for point in root.get_items(b"pps") {
        let Some(weight) = point.get_millionths(key).and_then(weight_from_millionths) else {
            invalid += 1;
            continue;
        };
        stack.clear();
        // The first frame of the table is the root of all stacks.
        stack.extend(point.get_items(b"fs").map(|index| {
            let frame = index.as_index().filter(|index| *index > 0).and_then(|index| frames.get(index));
            frame.copied().unwrap_or_else(|| sink.missing_frame())
        }));
        stack.reverse();
        add_stack(None, &stack, weight, sink)?;
    }
    document.report_problems(invalid, "stack", "left out: its value is missing or invalid")
}

/// Returns the function of `0x10917B: work (a.c:5)`.
fn frame_name(frame: &[u8], options: &Options) -> Vec<u8> {
    let named = match frame.split_once_str(": ") {
        Some((address, named)) if is_address(address) => named,
        _ => frame,
    };
    let (name, source) = match named.strip_suffix(b")").and_then(|inner| inner.rsplit_once_str(" (")) {
        Some((name, source)) => (name, source),
        None => (named, &b""[..]),
    };
    let mut name = function_name(name, options).into_owned();
    if options.srcline && !source.is_empty() && !source.starts_with(b"in ") {
        name.push(b':');
        name.extend_from_slice(source);
    }
    name
}
