//! OpenTelemetry profiles (OTLP), as collectors and the OpenTelemetry eBPF profiler write them: protobuf, or several
//! messages after their lengths. For JSON, see [`json::otlp`](super::json::otlp).
//!
//! If the profiles have several types, those with the first type that has samples count, unless `--event` names another.
//! Each time of a sample is a sample of its own. The root frame is the thread (`thread.name`), else the program
//! (`process.executable.name`), if the sample or its resource has one. `--label KEY` adds any of their attributes.
//! Addresses are left out unless `--addrs` asks for them, files and lines unless `--srcline` does. Specification:
//! <https://github.com/open-telemetry/opentelemetry-proto>.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{function_with_source, module_frame, read_bytes, thread_name};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{MAX_SHARED_DEPTH, intern_frame};
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::markers;
use crate::otlp::{Location, Profile, ProfilesData, Sample, find_end, get, is_otlp, split_messages};
use crate::pprof::Unit;
use crate::profile::FrameId;

pub(super) static FORMAT: Format = Format {
    name: "otlp",
    description: "OpenTelemetry profiles, protobuf (OTLP 1.8 and later)",
    tested_with: "OpenTelemetry eBPF profiler (published file)",
    has_times: true,
    has_labels: true,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| is_otlp(head) || head.get(4..).is_some_and(is_otlp) && head[0] < 0x40),
    reader: FormatReader::Bytes(read),
};

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let bytes = read_bytes(document)?;
    let mut messages = Vec::new();
    let mut rest = &bytes[..];
    if is_otlp(rest) {
        let (whole, after) = rest.split_at(find_end(rest));
        for message in split_messages(whole) {
            messages.push(ProfilesData::parse(message).map_err(|what| document.unreadable(what))?);
        }
        fold(&messages, document, sink)?;
        return document.check_nothing_follows(whole.len() as u64, after);
    }
    // The file exporter of the collector writes the length of each message before it.
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        // A message without bytes has no samples: zeros are what a file system leaves of a file that was not written.
        let Some((message, after)) = after.split_at_checked(length).filter(|_| length > 0) else { break };
        messages.push(ProfilesData::parse(message).map_err(|what| document.unreadable(what))?);
        rest = after;
    }
    fold(&messages, document, sink)?;
    let is_record = rest.get(4..).is_none_or(|message| message.is_empty() || is_otlp(message));
    document.check_end_or_rest((bytes.len() - rest.len()) as u64, rest, is_record, "its last message does")
}

/// Adds the samples of messages.
pub(super) fn fold(messages: &[ProfilesData], document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let Some(wanted) = select_type(messages, document)? else { return Ok(()) };
    document.check_end(wanted.len() > 1, "its table of strings")?;
    let unit = wanted.split_once('/').map_or("", |(_, unit)| unit);
    let unit = Unit::parse(unit.as_bytes());
    document.set_unit_silently(&unit.name);
    let (mut samples, mut negative, mut cut) = (TimedSamples::new(document.options), 0, 0);
    for data in messages {
        let mut stacks = Stacks { data, options: document.options, frames: Vec::new(), stack: Vec::new() };
        stacks.name_locations(sink);
        for profile in data.profiles.iter().filter(|profile| type_name(data, profile) == wanted) {
            for sample in &profile.samples {
                let (found, has_root) = stacks.build(sample.stack, sink);
                cut += u64::from(!has_root);
                negative += add_sample(data, profile, sample, (found, has_root), &unit, &mut samples, document, sink)?;
            }
        }
    }
    if cut > 0 {
        sink.cut_stacks += cut;
    }
    document.report_problems(negative, "value", "left out: negative")
}

/// Returns the type of a profile as `NAME/UNIT`.
fn type_name(data: &ProfilesData, profile: &Profile) -> String {
    let [kind, unit] = [profile.kind, profile.unit].map(|index| data.dictionary.string(index));
    format!("{}/{}", String::from_utf8_lossy(kind), String::from_utf8_lossy(unit))
}

/// Returns the type of the profiles that count; `None` if there are no profiles.
fn select_type(messages: &[ProfilesData], document: &mut Document<'_>) -> Result<Option<String>, Error> {
    let (mut types, mut default): (Vec<String>, Option<usize>) = (Vec::new(), None);
    for (data, profile) in messages.iter().flat_map(|data| data.profiles.iter().map(move |profile| (data, profile))) {
        let name = type_name(data, profile);
        let index = types.iter().position(|known| *known == name).unwrap_or_else(|| {
            types.push(name);
            types.len() - 1
        });
        if default.is_none() && profile.samples.iter().any(has_weight) {
            default = Some(index);
        }
    }
    let known: Vec<&str> = types.iter().map(String::as_str).collect();
    let index = if known.is_empty() { 0 } else { document.select_value(&known, default.unwrap_or(0))? };
    Ok(types.into_iter().nth(index))
}

/// True if a sample has a weight other than 0: without values, it weighs 1 for each of its times.
fn has_weight(sample: &Sample) -> bool {
    match sample.values.is_empty() {
        true => !sample.times.is_empty(),
        false => sample.values.iter().any(|value| *value != 0),
    }
}

/// Adds a sample once for each of its times. Returns the number of its values that are negative.
#[expect(clippy::too_many_arguments, reason = "the parts of one sample")]
fn add_sample(
    data: &ProfilesData,
    profile: &Profile,
    sample: &Sample,
    (frames, has_root): (&[FrameId], bool),
    unit: &Unit,
    samples: &mut TimedSamples,
    document: &Document<'_>,
    sink: &mut Sink,
) -> Result<u64, Error> {
    let attribute = |key: &[u8]| {
        let resource = data.resources.get(profile.resource);
        data.dictionary
            .attribute(&sample.attributes, key)
            .or_else(|| Some(resource?.iter().find(|(name, _)| name == key)?.1.as_slice()))
    };
    let comm = attribute(b"thread.name").filter(|name| !name.is_empty());
    let comm = comm.or_else(|| attribute(b"process.executable.name")).unwrap_or_default();
    let options = document.options;
    let mut roots = Vec::new();
    for key in &options.labels {
        if let Some(value) = attribute(key).filter(|value| !value.is_empty()) {
            roots.push(sink.intern(&[key, &b"="[..], value].concat()));
        }
    }
    let (pid, tid) = (attribute(b"process.pid").unwrap_or_default(), attribute(b"thread.id").unwrap_or_default());
    if !comm.is_empty() || (options.pid || options.tid) && !(pid.is_empty() && tid.is_empty()) {
        roots.push(sink.intern(&thread_name(comm, pid, tid, options)));
    }
    let mut negative = 0;
    for (time, value) in split_by_time(sample) {
        let info = SampleInfo { time, comm, pid: parse_id(pid), tid: parse_id(tid), cpu: None };
        let Ok(value) = u64::try_from(value) else {
            negative += 1;
            continue;
        };
        if samples.accept(&info, sink)? {
            let weight = unit.to_weight(value);
            samples.add(&TimedSample { info, roots: &roots, is_truncated: !has_root, frames, weight }, sink)?;
        }
    }
    Ok(negative)
}

fn parse_id(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Returns the times of a sample and their values. A value for several times is shared among them.
fn split_by_time(sample: &Sample) -> Vec<(Option<u64>, i64)> {
    let (times, values) = (&sample.times, &sample.values);
    let sum = values.iter().fold(0i64, |sum, value| sum.saturating_add(*value));
    let times_of = |values: &mut dyn Iterator<Item = i64>| times.iter().map(|time| Some(*time)).zip(values).collect();
    match (times.len(), values.len()) {
        (0, _) => vec![(None, sum)],
        (_, 0) => times_of(&mut std::iter::repeat(1)),
        (count, all) if count == all => times_of(&mut values.iter().copied()),
        (count, _) => {
            let (share, rest) = (sum / count as i64, sum % count as i64);
            times_of(&mut (0..count as i64).map(|index| share + i64::from(index < rest)))
        }
    }
}

/// The stacks of a message.
struct Stacks<'a> {
    data: &'a ProfilesData,
    options: &'a Options,
    /// The frames of each location, leaf first.
    frames: Vec<Vec<FrameId>>,
    /// The stack that was built last.
    stack: Vec<FrameId>,
}

impl Stacks<'_> {
    fn name_locations(&mut self, sink: &mut Sink) {
        for location in &self.data.dictionary.locations {
            let frames = self.name_location(location, sink);
            self.frames.push(frames);
        }
    }

    /// Returns the frames of a location: its functions, or its module if it has none.
    fn name_location(&self, location: &Location, sink: &mut Sink) -> Vec<FrameId> {
        let dictionary = &self.data.dictionary;
        let kind = dictionary.attribute(&location.attributes, b"profile.frame.type");
        let suffix = if self.options.kernel && kind == Some(b"kernel") { markers::KERNEL } else { b"" };
        if location.lines.is_empty() {
            let module = get(&dictionary.mappings, location.mapping).filter(|_| location.mapping > 0);
            let module = module.map_or(&b""[..], |file| dictionary.string(*file));
            let address = format!("{:x}", location.address);
            let name = module_frame(module, address.as_bytes(), self.options);
            return vec![intern_frame(&[&name, suffix].concat(), sink)];
        }
        let frames = location.lines.iter().take(MAX_SHARED_DEPTH).map(|(function, line)| {
            let function = get(&dictionary.functions, *function).copied().unwrap_or_default();
            let name = dictionary.string(if function.name == 0 { function.system_name } else { function.name });
            let file = dictionary.string(function.file);
            let name = function_with_source(name, file, i64::try_from(*line).ok(), self.options);
            let name = if name.is_empty() { name } else { [&name, suffix].concat() };
            intern_frame(&name, sink)
        });
        frames.collect()
    }

    /// Returns a stack, root first, and true if it is not cut. Of a deep stack, the part near the leaf is kept.
    fn build(&mut self, index: u64, sink: &mut Sink) -> (&[FrameId], bool) {
        self.stack.clear();
        let mut has_root = true;
        for location in get(&self.data.dictionary.stacks, index).into_iter().flatten() {
            let missing;
            let frames = match get(&self.frames, *location) {
                Some(frames) => &frames[..],
                None => {
                    missing = [sink.missing_frame()];
                    &missing
                }
            };
            let room = MAX_SHARED_DEPTH - self.stack.len();
            self.stack.extend_from_slice(&frames[..frames.len().min(room)]);
            if frames.len() > room || self.stack.len() == MAX_SHARED_DEPTH {
                has_root = false;
                break;
            }
        }
        self.stack.reverse();
        (&self.stack, has_root)
    }
}
