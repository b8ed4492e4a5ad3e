//! JSON of gprof2dot, which `memray transform gprof2dot` and others write: functions, and costs of callchains.
//!
//! ```text
//! {"version":0,"costs":[{"description":"Memory","unit":"bytes"}],
//!  "functions":[{"module":"a.py","name":"work"},{"module":"a.py","name":"main"}],
//!  "events":[{"callchain":[0,1],"cost":[1024]}]}
//! ```
//! The weight is the first cost that is not 0 everywhere, unless `--event` names another one by its description.
//! Callchains are leaf first. Modules are left out unless `--srcline` asks for them. Specification:
//! <https://github.com/jrfonseca/gprof2dot/wiki/Format>.

use super::read_root;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, function_with_source, weight_from_millionths};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::profile::FrameId;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "gprof2dot",
    description: "gprof2dot JSON (memray transform gprof2dot)",
    tested_with: "memray 1.20",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    let has_cost = root.get_items(b"costs").next().is_some_and(|cost| cost.get(b"unit").is_some());
    let mut functions = root.get_items(b"functions");
    has_cost && (root.get(b"functions").is_none() || functions.all(|function| function.get(b"name").is_some()))
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let costs: Vec<(String, String)> = root
        .get_items(b"costs")
        .map(|cost| {
            let [description, unit] = [cost.get_string(b"description"), cost.get_string(b"unit")];
            (String::from_utf8_lossy(&description).into_owned(), String::from_utf8_lossy(&unit).into_owned())
        })
        .collect();
    let names: Vec<&str> = costs.iter().map(|(description, _)| description.as_str()).collect();
    let is_used =
        |column: &usize| root.get_items(b"events").any(|event| get_cost(event, *column).is_some_and(|cost| cost != 0));
    let default = (0..costs.len()).find(is_used).unwrap_or(0);
    let column = document.select_value(&names, default)?;
    if let Some((_, unit)) = costs.get(column) {
        document.set_unit_silently(unit);
    }
    let options = document.options;
    let functions = root.get_items(b"functions").map(|function| {
        let (name, module) = (function.get_string(b"name"), function.get_string(b"module"));
        intern_frame(&function_with_source(&name, &module, None, options), sink)
    });
    let functions: Vec<FrameId> = functions.collect();
    let (mut stack, mut invalid) = (Vec::new(), 0);
    for event in root.get_items(b"events") {
        let Some(weight) = get_cost(event, column).and_then(weight_from_millionths) else {
            invalid += 1;
            continue;
        };
        stack.clear();
        let functions = event.get_items(b"callchain").map(|index| functions.get(index.as_index()?).copied());
        stack.extend(functions.map(|function| function.unwrap_or_else(|| sink.missing_frame())));
        stack.reverse();
        add_stack(None, &stack, weight, sink)?;
    }
    document.report_problems(invalid, "event", "left out: its cost is missing or invalid")
}

/// Returns one of the costs of an event, in millionths.
fn get_cost(event: Value<'_>, column: usize) -> Option<i128> {
    event.get_items(b"cost").nth(column).and_then(Value::as_millionths)
}
