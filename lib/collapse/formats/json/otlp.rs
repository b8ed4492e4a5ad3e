//! OpenTelemetry profiles as JSON: one document, or one in each line, as the collector's file exporter writes them.
//!
//! ```text
//! {"resourceProfiles":[{"resource":{},"scopeProfiles":[{"profiles":[{"sampleType":{"typeStrindex":1,"unitStrindex":2},
//!  "samples":[{"stackIndex":1,"values":["7"]}]}]}]}],
//!  "dictionary":{"stringTable":["","cpu","ns","main"],"functionTable":[{},{"nameStrindex":3}],
//!  "locationTable":[{},{"lines":[{"functionIndex":1}]}],"stackTable":[{},{"locationIndices":[1]}]}}
//! ```
//! Weights and frames are those of [`otlp`](crate::collapse::formats::otlp).

use super::SyntaxError;
use super::locate_error;
use super::tape::Tape;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::read_bytes;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::formats::otlp;
use crate::collapse::sink::Sink;
use crate::otlp::{Dictionary, Function, Location, Profile, ProfilesData, Sample};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "otlp-json",
    description: "OpenTelemetry profiles, JSON (OTLP 1.8 and later)",
    tested_with: "OpenTelemetry eBPF profiler (published file)",
    has_times: true,
    has_labels: true,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(read),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    root.get(b"resourceProfiles").is_some()
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let text = read_bytes(document)?;
    let (mut messages, mut start) = (Vec::new(), 0);
    loop {
        start += text[start..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if start == text.len() {
            break;
        }
        if text[start] != b'{' {
            otlp::fold(&messages, document, sink)?;
            return document.check_nothing_follows(start as u64, &text[start..]);
        }
        let tape = Tape::parse(&text[start..]).map_err(|error| {
            let error = SyntaxError { offset: start + error.offset, ..error };
            locate_error(&text, error, document)
        })?;
        if tape.is_truncated {
            document.report_damage("JSON that is cut short", messages.is_empty())?;
            break;
        }
        let Some(root) = Value::root(&tape) else { break };
        messages.push(parse(root).map_err(|what| document.unreadable(what))?);
        start += tape.end.max(1);
    }
    otlp::fold(&messages, document, sink)
}

fn parse(root: Value<'_>) -> Result<ProfilesData, &'static str> {
    let mut data = ProfilesData::default();
    let is_empty = root.members().next().is_none();
    if root.is_array() || !is_empty && root.get(b"dictionary").is_none() && root.get(b"resourceProfiles").is_none() {
        return Err("a JSON document that is not an OpenTelemetry profile follows: give each file by itself");
    }
    if let Some(dictionary) = root.get(b"dictionary") {
        data.dictionary = parse_dictionary(dictionary);
    }
    for (number, resource) in root.get_items(b"resourceProfiles").enumerate() {
        let attributes = resource.get_path([b"resource", b"attributes"]).into_iter().flat_map(Value::items);
        let attributes = attributes.filter_map(|attribute| parse_attribute(attribute, &data.dictionary)).collect();
        data.resources.push(attributes);
        let scopes = resource.get_items(b"scopeProfiles");
        for profile in scopes.flat_map(|scope| scope.get_items(b"profiles")) {
            if profile.get(b"locationIndices").is_some() {
                return Err("an OpenTelemetry profile of a schema before 1.8; update the program that wrote it");
            }
            data.profiles.push(parse_profile(profile, number));
        }
    }
    Ok(data)
}

fn parse_profile(profile: Value<'_>, resource: usize) -> Profile {
    let kind = profile.get(b"sampleType");
    // The list of samples was called `sample` before version 1.9.
    let samples = profile.get_items(b"samples").chain(profile.get_items(b"sample"));
    let samples = samples.map(|sample| Sample {
        stack: index(sample, b"stackIndex"),
        values: sample.get_items(b"values").map(|value| value.as_integer().unwrap_or(0)).collect(),
        attributes: indices(sample, b"attributeIndices"),
        times: indices(sample, b"timestampsUnixNano"),
    });
    Profile {
        kind: kind.map_or(0, |kind| index(kind, b"typeStrindex")),
        unit: kind.map_or(0, |kind| index(kind, b"unitStrindex")),
        resource,
        samples: samples.collect(),
    }
}

fn parse_dictionary(dictionary: Value<'_>) -> Dictionary {
    let strings = dictionary.get_items(b"stringTable").map(|text| text.as_string().unwrap_or_default().into_owned());
    let mut tables = Dictionary { strings: strings.collect(), ..Dictionary::default() };
    let mappings = dictionary.get_items(b"mappingTable");
    tables.mappings = mappings.map(|mapping| index(mapping, b"filenameStrindex")).collect();
    let functions = dictionary.get_items(b"functionTable").map(|function| Function {
        name: index(function, b"nameStrindex"),
        system_name: index(function, b"systemNameStrindex"),
        file: index(function, b"filenameStrindex"),
    });
    tables.functions = functions.collect();
    let locations = dictionary.get_items(b"locationTable").map(|location| {
        // The list of lines was called `line` before version 1.9.
        let lines = location.get_items(b"lines").chain(location.get_items(b"line"));
        Location {
            mapping: index(location, b"mappingIndex"),
            address: index(location, b"address"),
            lines: lines.map(|line| (index(line, b"functionIndex"), index(line, b"line"))).collect(),
            attributes: indices(location, b"attributeIndices"),
        }
    });
    tables.locations = locations.collect();
    let stacks = dictionary.get_items(b"stackTable");
    tables.stacks = stacks.map(|stack| indices(stack, b"locationIndices")).collect();
    for attribute in dictionary.get_items(b"attributeTable") {
        let value = attribute.get(b"value").map(|value| parse_value(value, &tables)).unwrap_or_default();
        tables.attributes.push((index(attribute, b"keyStrindex"), value));
    }
    tables
}

/// Returns the key and the value of an attribute, which may refer to its key in the dictionary.
pub(super) fn parse_attribute(attribute: Value<'_>, dictionary: &Dictionary) -> Option<(Vec<u8>, Vec<u8>)> {
    let key = match attribute.get(b"key").and_then(Value::as_string) {
        Some(key) => key.into_owned(),
        None => dictionary.string(attribute.get(b"keyStrindex").and_then(unsigned)?).to_vec(),
    };
    Some((key, parse_value(attribute.get(b"value")?, dictionary)))
}

/// Returns a value as text; lists of values are empty.
fn parse_value(value: Value<'_>, dictionary: &Dictionary) -> Vec<u8> {
    let Some((key, inner)) = value.members().next() else { return Vec::new() };
    match &key[..] {
        b"boolValue" => inner.is_true().to_string().into_bytes(),
        b"stringValueStrindex" => dictionary.string(unsigned(inner).unwrap_or(0)).to_vec(),
        _ => inner.as_label().unwrap_or_default().into_owned(),
    }
}

/// Returns a whole number, which may be in a string.
fn unsigned(value: Value<'_>) -> Option<u64> {
    std::str::from_utf8(&value.as_label()?).ok()?.parse().ok()
}

/// Returns the integer of a member; 0 if it is missing.
fn index(value: Value<'_>, key: &[u8]) -> u64 {
    value.get(key).and_then(unsigned).unwrap_or(0)
}

fn indices(value: Value<'_>, key: &[u8]) -> Vec<u64> {
    value.get_items(key).map(|index| unsigned(index).unwrap_or(0)).collect()
}
