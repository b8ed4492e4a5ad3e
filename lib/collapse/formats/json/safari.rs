//! Timelines of Safari's Web Inspector: a recording with samples of JavaScript stacks.
//!
//! ```text
//! {"version":1,"recording":{"displayName":"Timeline 1","sampleStackTraces":[{"timestamp":1.5,"stackFrames":[
//!  {"name":"work","url":"https://a.example/a.js","line":3},{"name":"(program)"}]}],"sampleDurations":[0.001]}}
//! ```
//! The weight is the sample's duration in microseconds, or 1 with `--weight samples` and if there are no durations.
//! Stacks are leaf first. Files and lines are left out unless `--srcline` asks for them.

use super::read_root;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, function_with_source, uses_input_weights};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::parse_scaled;
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::profile::Weight;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "safari",
    description: "Safari timelines (JavaScript)",
    tested_with: "Safari 13 (published files)",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    let recording = root.get(b"recording");
    recording.is_some_and(|recording| {
        recording.get(b"sampleStackTraces").is_some() || recording.get(b"instrumentTypes").is_some()
    })
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let Some(recording) = root.get(b"recording") else { return Ok(()) };
    let mut durations = recording.get_items(b"sampleDurations");
    let has_durations =
        uses_input_weights(document.options) && recording.get_items(b"sampleDurations").next().is_some();
    document.set_unit(if has_durations { "microseconds" } else { "samples" });
    let (mut stack, mut invalid) = (Vec::new(), 0);
    for sample in recording.get_items(b"sampleStackTraces") {
        let duration = durations.next().and_then(parse_duration);
        let weight = match (has_durations, duration) {
            (false, _) => Weight::ONE,
            (true, Some(duration)) => duration,
            (true, None) => {
                invalid += 1;
                continue;
            }
        };
        stack.clear();
        for frame in sample.get_items(b"stackFrames") {
            let name = frame.get_string(b"name");
            let name = if name.is_empty() { &b"(anonymous)"[..] } else { &name };
            let line = frame.get_integer(b"line");
            let name = function_with_source(name, &frame.get_string(b"url"), line, document.options);
            stack.push(intern_frame(&name, sink));
        }
        stack.reverse();
        add_stack(None, &stack, weight, sink)?;
    }
    document.report_problems(invalid, "sample", "left out: its duration is missing or invalid")
}

/// Converts a number of seconds to microseconds, exactly unless it has an exponent.
fn parse_duration(seconds: Value<'_>) -> Option<Weight> {
    parse_scaled(&seconds.as_label()?, 6).or_else(|| u64::try_from(seconds.as_millionths()?).ok().map(Weight::new))
}
