//! The Firefox profiler's JSON, which samply writes too: tables of stacks, frames and texts, a set for each thread or one
//! for all. As Firefox records it, a table is rows with a schema; as the profiler saves it, columns.

use super::forest::{CYCLIC, Forest};
use super::value::Value;
use super::weights::{WEIGHTLESS, Weights};
use super::{begins, read};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::formats::{Format, FormatReader};
use crate::collapse::sink::Sink;
use crate::collapse::{Options, whole};
use crate::profile::FrameId;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "firefox",
    description: "Firefox profiler JSON, raw or saved (Firefox, samply)",
    has_times: false,
    recognizes: |head| begins(head, |root| is_profile(profile_of(root))),
    reader: FormatReader::Bytes(|document, sink| read(document, sink, fold)),
};

fn is_profile(profile: Value<'_>) -> bool {
    let has = |name: &[u8]| profile.get(name).is_some();
    has(b"libs") && !has(b"traceEvents") || profile.path([b"meta", b"interval"]).is_some()
}

/// Developer tools put the profile into something else.
fn profile_of(root: Value<'_>) -> Value<'_> {
    root.get(b"profile").filter(|profile| profile.is_object()).unwrap_or(root)
}

fn fold(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let mut profiles = vec![profile_of(root)];
    let (mut named, mut unnamed, mut cyclic, mut weightless) = (0, 0, false, 0);
    let mut unit: Option<Vec<u8>> = None;
    while let Some(profile) = profiles.pop() {
        for thread in profile.get(b"threads").into_iter().flat_map(Value::items) {
            let samples = thread.get(b"samples");
            let kind = samples.and_then(|samples| samples.get(b"weightType")?.text()).unwrap_or(b"samples"[..].into());
            let unit = unit.get_or_insert_with(|| kind.to_vec());
            if *unit != *kind {
                document.warn("a thread whose samples have another unit is left out");
                continue;
            }
            let tables = Tables::new(profile, thread, document.options, sink);
            named += tables.frames.len() - tables.unnamed;
            unnamed += tables.unnamed;
            cyclic |= tables.stacks.is_cyclic();
            weightless += fold_thread(thread, &tables, document.options, sink)?;
        }
        profiles.extend(profile.get(b"processes").into_iter().flat_map(Value::items));
    }
    document.unit(&String::from_utf8_lossy(&unit.unwrap_or_default()));
    document.amiss(weightless, "sample", WEIGHTLESS)?;
    if cyclic {
        document.damaged(CYCLIC, false)?;
    }
    if unnamed > named {
        document.warn("most functions have no names, only addresses: save it from the profiler with its symbols");
    }
    Ok(())
}

/// Returns how many samples have no weight.
fn fold_thread(thread: Value<'_>, tables: &Tables, options: &Options, sink: &mut Sink) -> Result<u64, Error> {
    let label = |name: &[u8]| thread.get(name).and_then(Value::label).unwrap_or_default();
    let name = whole::thread(&label(b"name"), &label(b"pid"), &label(b"tid"), options);
    let name = sink.intern(&name);
    let Some(samples) = thread.get(b"samples") else { return Ok(0) };
    let mut weights = Weights::new(samples.get(b"weight"));
    let mut stack = Vec::new();
    for index in column(samples, b"stack") {
        let has_root = tables.path(index, &mut stack);
        whole::add_part(Some(name), has_root, &stack, weights.next(), sink)?;
    }
    Ok(weights.missing)
}

/// A column of a table, in whichever way the table is written.
fn column<'t>(table: Value<'t>, name: &'t [u8]) -> Box<dyn Iterator<Item = Option<usize>> + 't> {
    match table.get(b"schema") {
        Some(schema) => {
            let place = schema.get(name).and_then(Value::index).unwrap_or(usize::MAX);
            let rows = table.get(b"data").into_iter().flat_map(Value::items);
            Box::new(rows.map(move |row| row.items().nth(place).and_then(Value::index)))
        }
        None => Box::new(table.get(name).into_iter().flat_map(Value::items).map(Value::index)),
    }
}

/// A thread's stacks.
struct Tables {
    /// Of each stack its leaf's frame.
    leaves: Vec<Option<usize>>,
    /// And the stack without it.
    stacks: Forest,
    /// The root has none.
    frames: Vec<Option<FrameId>>,
    unnamed: usize,
}

impl Tables {
    fn new(profile: Value<'_>, thread: Value<'_>, options: &Options, sink: &mut Sink) -> Self {
        let table = |name: &[u8]| thread.get(name).or_else(|| profile.path([b"shared", name]));
        let rows = |table: Option<Value<'_>>, name: &'static [u8]| -> Vec<Option<usize>> {
            table.map(|table| column(table, name).collect()).unwrap_or_default()
        };
        let texts = table(b"stringTable").or_else(|| table(b"stringArray"));
        let texts: Vec<Value<'_>> = texts.into_iter().flat_map(Value::items).collect();
        let text =
            |index: Option<&Option<usize>>| index.and_then(|index| texts.get((*index)?)?.text()).unwrap_or_default();
        let (stacks, frames) = (table(b"stackTable"), table(b"frameTable"));
        let functions = table(b"funcTable");
        let (names, files) = (rows(functions, b"name"), rows(functions, b"fileName"));
        let (resources, modules) = (rows(functions, b"resource"), rows(table(b"resourceTable"), b"name"));
        let lines = rows(frames, b"line");
        let mut unnamed = 0;
        let mut frame_of = |(place, function): (usize, Option<usize>)| {
            let function = function?;
            let name = text(names.get(function));
            if name.starts_with(b"0x") {
                unnamed += 1;
                let module = resources.get(function).and_then(|resource| modules.get((*resource)?));
                return Some(sink.intern(&whole::module(&text(module), &name, options)));
            }
            let line = lines.get(place).and_then(|line| i64::try_from((*line)?).ok());
            Some(sink.intern(&whole::located(&name, &text(files.get(function)), line, options)))
        };
        let frames = match functions {
            Some(_) => rows(frames, b"func").into_iter().enumerate().map(&mut frame_of).collect(),
            None => {
                let locations = rows(frames, b"location");
                locations.iter().map(|location| location_frame(&text(Some(location)), options, sink)).collect()
            }
        };
        let leaves = rows(stacks, b"frame");
        let mut prefixes = rows(stacks, b"prefix");
        prefixes.resize(leaves.len(), None);
        Self { leaves, stacks: Forest::new(prefixes), frames, unnamed }
    }

    /// The frames of a stack, root first, and whether the root is among them.
    fn path(&self, stack: Option<usize>, path: &mut Vec<FrameId>) -> bool {
        path.clear();
        let Some(stack) = stack else { return true };
        let has_root =
            self.stacks.ascend(stack, |stack| path.extend(self.leaves[stack].and_then(|leaf| *self.frames.get(leaf)?)));
        path.reverse();
        has_root
    }
}

/// `name (place)`, as Firefox records it.
fn location_frame(location: &[u8], options: &Options, sink: &mut Sink) -> Option<FrameId> {
    if location == b"(root)" {
        return None;
    }
    let (name, place) = match location.strip_suffix(b")").zip(memchr::memmem::rfind(location, b" (")) {
        Some((whole, start)) if start > 0 => (&whole[..start], &whole[start + 2..]),
        _ => (location, &b""[..]),
    };
    Some(sink.intern(&whole::located(name, place, None, options)))
}
