//! JSON of the Firefox profiler, which samply also writes: tables of samples, stacks, frames, functions and strings,
//! for each thread or shared by all.
//!
//! ```text
//! {"meta":{"interval":1,…},"libs":[…],"threads":[{"name":"main","pid":"7","tid":8,
//!   "samples":{"stack":[1,1],"weight":null},
//!   "stackTable":{"prefix":[null,0],"frame":[0,1]},"frameTable":{"func":[0,1]},"funcTable":{"name":[0,1]},
//!   "stringArray":["main","work"]}]}
//! ```
//! As the profiler saves a profile, a table has columns, as above; as Firefox records it, a table has rows and a
//! `schema`. The weight is the sample's `weight`, or 1 with `--weight samples`. The thread is the root frame. Threads whose samples have another
//! unit than the first, and markers, are left out; files and lines too, unless `--srcline` asks for them. Times are in
//! milliseconds, `time` or the sums of `timeDeltas`; as Firefox records them, they count from the start of each process.

use std::borrow::Cow;

use super::forest::{CYCLIC, Forest};
use super::read_root;
use super::value::Value;
use super::weights::{INVALID_WEIGHT, WeightList};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{function_with_source, module_frame, thread_name, uses_input_weights};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::markers;
use crate::profile::FrameId;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "firefox",
    description: "Firefox profiler JSON, raw or saved (Firefox, samply)",
    tested_with: "published files",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    is_profile(find_profile(root))
}

fn is_profile(profile: Value<'_>) -> bool {
    profile.get(b"libs").is_some() && profile.get(b"traceEvents").is_none()
        || profile.get_path([b"meta", b"interval"]).is_some()
}

/// Returns the profile in a document. Firefox's developer tools wrap it in another object.
fn find_profile(root: Value<'_>) -> Value<'_> {
    root.get(b"profile").filter(|profile| profile.is_object()).unwrap_or(root)
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let mut profiles = vec![find_profile(root)];
    let (first_start, mut timed) = (find_first_start(profiles[0]), TimedSamples::new(document.options));
    let (mut named, mut unnamed, mut is_cyclic, mut invalid_weights) = (0, 0, false, 0);
    let mut unit: Option<Vec<u8>> = None;
    while let Some(profile) = profiles.pop() {
        for thread in profile.get_items(b"threads") {
            let thread_unit = thread.get_path([b"samples", b"weightType"]).and_then(Value::as_string);
            let thread_unit = thread_unit.filter(|_| uses_input_weights(document.options));
            let thread_unit = thread_unit.unwrap_or(b"samples"[..].into());
            let unit = unit.get_or_insert_with(|| thread_unit.to_vec());
            if *unit != *thread_unit {
                document.warn("left out a thread whose samples have another unit");
                continue;
            }
            let tables = Tables::new(profile, thread, document.options, sink);
            named += tables.frames - tables.unnamed;
            unnamed += tables.unnamed;
            is_cyclic |= tables.stacks.is_cyclic();
            let start = start_time(profile) - first_start;
            invalid_weights += fold_thread(thread, start, &tables, &mut timed, document.options, sink)?;
        }
        profiles.extend(profile.get_items(b"processes"));
    }
    document.set_unit(&String::from_utf8_lossy(&unit.unwrap_or_default()));
    document.report_problems(invalid_weights, "sample", INVALID_WEIGHT)?;
    if is_cyclic {
        document.report_damage(CYCLIC, false)?;
    }
    if unnamed > named {
        document
            .warn("most functions have addresses but no names; save the profile from the profiler with its symbols");
    }
    Ok(())
}

/// Returns the time at which a process started, in nanoseconds since 1970.
fn start_time(profile: Value<'_>) -> i128 {
    profile.get(b"meta").and_then(|meta| meta.get_millionths(b"startTime")).unwrap_or(0)
}

/// Returns the time at which the first of all processes started. It may be older than the one that made the recording.
fn find_first_start(profile: Value<'_>) -> i128 {
    let (mut waiting, mut first) = (vec![profile], start_time(profile));
    while let Some(profile) = waiting.pop() {
        first = first.min(start_time(profile));
        waiting.extend(profile.get_items(b"processes"));
    }
    first
}

/// Adds the samples of a thread, whose times count from `start`. Returns the number of samples whose weight is invalid.
fn fold_thread(
    thread: Value<'_>,
    start: i128,
    tables: &Tables,
    timed: &mut TimedSamples,
    options: &Options,
    sink: &mut Sink,
) -> Result<u64, Error> {
    let Some(samples) = thread.get(b"samples") else { return Ok(0) };
    let [name, pid, tid] = [&b"name"[..], b"pid", b"tid"].map(|key| thread.get_label(key));
    let root = sink.intern(&thread_name(&name, &pid, &tid, options));
    let [pid, tid] = [pid, tid].map(|id| std::str::from_utf8(&id).ok()?.parse().ok());
    let mut weights = WeightList::new(samples.get(b"weight").filter(|_| uses_input_weights(options)));
    let (mut times, mut stack) = (sample_times(samples), Vec::new());
    for index in column_values(samples, b"stack") {
        let time = times.next().flatten().and_then(|time| u64::try_from(time + start).ok());
        let weight = weights.next();
        let info = SampleInfo { time, comm: &name, pid, tid, cpu: None };
        if timed.accept(&info, sink)? {
            let has_root = tables.path(index, &mut stack, sink);
            stack
                .splice(0..0, [Some(root), (!has_root).then(|| sink.intern(markers::TRUNCATED))].into_iter().flatten());
            timed.add(&TimedSample { info, roots: &[], is_truncated: false, frames: &stack, weight }, sink)?;
        }
    }
    Ok(weights.invalid)
}

/// Returns the times of the samples of a thread in nanoseconds.
fn sample_times<'t>(samples: Value<'t>) -> Box<dyn Iterator<Item = Option<i128>> + 't> {
    let Some(deltas) = samples.get(b"timeDeltas") else {
        return Box::new(column_cells(samples, b"time").map(|time| time?.as_millionths()));
    };
    let sum = |time: &mut Option<i128>, delta: Value<'_>| {
        *time = time.zip(delta.as_millionths()).map(|(time, delta)| time + delta);
        Some(*time)
    };
    Box::new(deltas.items().scan(Some(0), sum))
}

/// Returns a column of a table that has columns, or rows and a schema.
fn column_cells<'t>(table: Value<'t>, name: &[u8]) -> Box<dyn Iterator<Item = Option<Value<'t>>> + 't> {
    match table.get(b"schema") {
        Some(schema) => {
            let index = schema.get(name).and_then(Value::as_index).unwrap_or(usize::MAX);
            let rows = table.get_items(b"data");
            Box::new(rows.map(move |row| row.items().nth(index)))
        }
        None => Box::new(table.get_items(name).map(Some)),
    }
}

/// Returns a column of indices.
fn column_values<'t>(table: Value<'t>, name: &[u8]) -> impl Iterator<Item = Option<usize>> + use<'t> {
    column_cells(table, name).map(|cell| cell?.as_index())
}

/// A column of a table, which may be missing.
fn read_column(table: Option<Value<'_>>, name: &[u8]) -> Vec<Option<usize>> {
    table.map(|table| column_values(table, name).collect()).unwrap_or_default()
}

/// Finds a table of a thread, or one that all threads share.
fn find_table<'t>(profile: Value<'t>, thread: Value<'t>, name: &[u8]) -> Option<Value<'t>> {
    thread.get(name).or_else(|| profile.get_path([b"shared", name]))
}

/// The stacks of a thread.
struct Tables {
    /// The frame of each stack's leaf. The frame `(root)` has none.
    leaves: Vec<Option<FrameId>>,
    /// The stack without its leaf, of each stack.
    stacks: Forest,
    /// Number of frames.
    frames: usize,
    /// Number of frames that have an address instead of a name.
    unnamed: usize,
}

impl Tables {
    fn new(profile: Value<'_>, thread: Value<'_>, options: &Options, sink: &mut Sink) -> Self {
        let strings = Strings::new(profile, thread);
        let frame_table = find_table(profile, thread, b"frameTable");
        let (frames, unnamed) = match find_table(profile, thread, b"funcTable") {
            Some(functions) => {
                let functions = Functions::new(profile, thread, functions, &strings);
                functions.name_frames(frame_table, options, sink)
            }
            None => {
                let locations = read_column(frame_table, b"location");
                (locations.iter().map(|text| location_frame(&strings.get(*text), options, sink)).collect(), 0)
            }
        };
        let stack_table = find_table(profile, thread, b"stackTable");
        let find_frame = |frame: Option<usize>| match frames.get(frame?) {
            Some(frame) => *frame,
            None => Some(sink.missing_frame()),
        };
        let leaves: Vec<_> = read_column(stack_table, b"frame").into_iter().map(find_frame).collect();
        let mut prefixes = read_column(stack_table, b"prefix");
        prefixes.resize(leaves.len(), None);
        Self { leaves, stacks: Forest::new(prefixes), frames: frames.len(), unnamed }
    }

    /// Replaces `path` by the frames of a stack, root first. Returns false if its root is cut off.
    fn path(&self, stack: Option<usize>, path: &mut Vec<FrameId>, sink: &mut Sink) -> bool {
        path.clear();
        let Some(stack) = stack else { return true };
        if stack >= self.leaves.len() {
            path.push(sink.missing_frame());
            return true;
        }
        let has_root = self.stacks.visit_ancestors(stack, |stack| path.extend(self.leaves[stack]));
        path.reverse();
        has_root
    }
}

/// The table of strings.
struct Strings<'t>(Vec<Value<'t>>);

impl<'t> Strings<'t> {
    fn new(profile: Value<'t>, thread: Value<'t>) -> Self {
        let table = find_table(profile, thread, b"stringTable");
        let table = table.or_else(|| find_table(profile, thread, b"stringArray"));
        Self(table.into_iter().flat_map(Value::items).collect())
    }

    /// Returns a string, or an empty one if there is none.
    fn get(&self, index: Option<usize>) -> Cow<'t, [u8]> {
        index.and_then(|index| self.0.get(index)?.as_string()).unwrap_or_default()
    }
}

/// Returns the names of the files of functions: from version 58 on in a table of their own.
fn file_names(profile: Value<'_>, thread: Value<'_>, functions: Value<'_>) -> Vec<Option<usize>> {
    if functions.get(b"source").is_none() {
        return read_column(Some(functions), b"fileName");
    }
    let names = read_column(find_table(profile, thread, b"sources"), b"filename");
    column_values(functions, b"source").map(|source| *names.get(source?)?).collect()
}

/// The columns of the table of functions, and the names of their modules.
struct Functions<'a, 't> {
    strings: &'a Strings<'t>,
    names: Vec<Option<usize>>,
    files: Vec<Option<usize>>,
    resources: Vec<Option<usize>>,
    modules: Vec<Option<usize>>,
}

impl<'a, 't> Functions<'a, 't> {
    fn new(profile: Value<'t>, thread: Value<'t>, functions: Value<'t>, strings: &'a Strings<'t>) -> Self {
        Self {
            strings,
            names: read_column(Some(functions), b"name"),
            files: file_names(profile, thread, functions),
            resources: read_column(Some(functions), b"resource"),
            modules: read_column(find_table(profile, thread, b"resourceTable"), b"name"),
        }
    }

    /// Returns the string that a row of a column refers to, or an empty one.
    fn get_string(&self, column: &[Option<usize>], row: usize) -> Cow<'t, [u8]> {
        self.strings.get(column.get(row).copied().flatten())
    }

    /// Names the frames of a table. Returns their names, and the number of frames that have an address instead.
    fn name_frames(
        &self,
        frames: Option<Value<'_>>,
        options: &Options,
        sink: &mut Sink,
    ) -> (Vec<Option<FrameId>>, usize) {
        let lines = read_column(frames, b"line");
        let (mut named, mut unnamed) = (Vec::new(), 0);
        for (frame, function) in read_column(frames, b"func").into_iter().enumerate() {
            named.push(function.map(|function| {
                if function >= self.names.len() {
                    return sink.missing_frame();
                }
                let name = self.get_string(&self.names, function);
                if name.starts_with(b"0x") {
                    unnamed += 1;
                    let resource = self.resources.get(function).copied().flatten();
                    let module = resource.map(|resource| self.get_string(&self.modules, resource));
                    return sink.intern(&module_frame(&module.unwrap_or_default(), &name, options));
                }
                let line = lines.get(frame).and_then(|line| i64::try_from((*line)?).ok());
                sink.intern(&function_with_source(&name, &self.get_string(&self.files, function), line, options))
            }));
        }
        (named, unnamed)
    }
}

/// Returns the frame of `NAME (POSITION)`, as Firefox records it.
fn location_frame(location: &[u8], options: &Options, sink: &mut Sink) -> Option<FrameId> {
    if location == b"(root)" {
        return None;
    }
    let (name, position) = match location.strip_suffix(b")").zip(memchr::memmem::rfind(location, b" (")) {
        Some((text, start)) if start > 0 => (&text[..start], &text[start + 2..]),
        _ => (location, &b""[..]),
    };
    Some(sink.intern(&function_with_source(name, position, None, options)))
}
