//! JSON of Scalene, a profiler of Python programs.
//!
//! ```text
//! {"stacks":[[["/srv/a.py <module>:8;","/srv/a.py work:2;"],
//!             {"count":28,"cpu_samples":0.12,"python_time":0.08,"c_time":0.04}]],
//!  "combined_stacks":[[[{"display_name":"work","filename_or_module":"/srv/a.py","line":2,"kind":"py"}],22]]}
//! ```
//! The weight is the stack's share of all CPU time, in millionths (`cpu`); `--event` asks for the part of the interpreter
//! (`python`), the part of native code (`native`), the number of `samples`, that of samples with native frames (`combined`), or the `allocated`
//! memory in bytes. Older versions write the four values as a list. Files and lines are left out unless `--srcline` asks
//! for them.

use super::value::Value;
use super::weights::INVALID_WEIGHT;
use super::{frame_name, read_root};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, function_with_source, weight_from_millionths};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{multiply_weight, parse_number};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::profile::{FrameId, Weight};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "scalene",
    description: "Scalene (Python)",
    tested_with: "Scalene 2.4",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    let others: [&[u8]; 3] = [b"elapsed_time_sec", b"entrypoint_dir", b"combined_stacks"];
    root.get(b"alloc_samples").is_some() && others.iter().any(|key| root.get(key).is_some())
}

/// The unit of what Scalene divides by the CPU time of all stacks: the file does not have that time.
const SHARE: &str = "millionths of the CPU time";

/// A value: its name, the list of stacks that has it, its key and index there, and its unit.
struct Measure {
    name: &'static str,
    list: &'static [u8],
    key: &'static [u8],
    index: usize,
    unit: &'static str,
    /// The number of units in what the file has.
    factor: u64,
}

const fn measure(
    name: &'static str,
    list: &'static [u8],
    (key, index): (&'static [u8], usize),
    unit: &'static str,
    factor: u64,
) -> Measure {
    Measure { name, list, key, index, unit, factor }
}

const MEASURES: [Measure; 6] = [
    measure("cpu", b"stacks", (b"cpu_samples", 3), SHARE, 1_000_000),
    measure("python", b"stacks", (b"python_time", 1), SHARE, 1_000_000),
    measure("native", b"stacks", (b"c_time", 2), SHARE, 1_000_000),
    measure("samples", b"stacks", (b"count", 0), "samples", 1),
    measure("combined", b"combined_stacks", (b"", 0), "samples", 1),
    measure("allocated", b"memory_stacks", (b"", 0), "bytes", 1 << 20),
];

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let found: Vec<&Measure> =
        MEASURES.iter().filter(|measure| root.get_items(measure.list).next().is_some()).collect();
    let names: Vec<&str> = found.iter().map(|measure| measure.name).collect();
    if names.is_empty() {
        let what = "a profile of Scalene without stacks; run Scalene 2.4 or later, or an older one with --stacks";
        return Err(document.unreadable(what));
    }
    let measure = found[document.select_value(&names, 0)?];
    document.set_unit(measure.unit);
    let (mut frames, mut invalid) = (Vec::new(), 0);
    for entry in root.get_items(measure.list) {
        let mut parts = entry.items();
        let (Some(stack), Some(values)) = (parts.next(), parts.next()) else {
            invalid += 1;
            continue;
        };
        frames.clear();
        frames.extend(stack.items().map(|frame| frame_id(frame, document.options, sink)));
        match weigh(values, measure) {
            Some(weight) => add_stack(None, &frames, weight, sink)?,
            None => invalid += 1,
        }
    }
    document.report_problems(invalid, "stack", INVALID_WEIGHT)
}

/// Returns the weight of a stack: a number, one of an object, or one of a list.
fn weigh(values: Value<'_>, measure: &Measure) -> Option<Weight> {
    let value = match (values.is_object(), values.is_array()) {
        (true, _) => values.get(measure.key)?,
        (_, true) => values.items().nth(measure.index)?,
        _ => values,
    };
    multiply_weight(weight_from_millionths(value.as_millionths()?)?, measure.factor)
}

fn frame_id(frame: Value<'_>, options: &Options, sink: &mut Sink) -> FrameId {
    if frame.is_object() {
        let keys: [&[u8]; 3] = [b"display_name", b"filename_or_module", b"line"];
        return intern_frame(&frame_name(frame, keys, options), sink);
    }
    let text = frame.as_string().unwrap_or_default();
    let (function, file, line) = parse_frame(&text);
    intern_frame(&function_with_source(function, file, line, options), sink)
}

/// Parses `/srv/a.py work:2;` into the function, the file and the line.
fn parse_frame(text: &[u8]) -> (&[u8], &[u8], Option<i64>) {
    let text = text.strip_suffix(b";").unwrap_or(text);
    let (file, function) =
        memchr::memrchr(b' ', text).map_or((&b""[..], text), |blank| (&text[..blank], &text[blank + 1..]));
    match memchr::memrchr(b':', function).map(|colon| (&function[..colon], parse_number(&function[colon + 1..]))) {
        Some((name, Some(line))) => (name, file, i64::try_from(line).ok()),
        _ => (function, file, None),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_frame;

    #[test]
    fn parses_frames() {
        assert_eq!(parse_frame(b"/a b/c.py work:2;"), (&b"work"[..], &b"/a b/c.py"[..], Some(2)));
        assert_eq!(parse_frame(b"/c.py A.<lambda>:12"), (&b"A.<lambda>"[..], &b"/c.py"[..], Some(12)));
        assert_eq!(parse_frame(b"work"), (&b"work"[..], &b""[..], None));
    }
}
