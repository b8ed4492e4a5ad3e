//! pprof profiles: protobuf, often in gzip, as Go's `runtime/pprof`, gperftools' `pprof -proto` and many others write
//! them.
//!
//! The weight is the value that `--event` names, else the profile's default one. `--label KEY` makes a sample's labels
//! its root frame. Negative values, which `pprof -diff_base` writes, make the profile a differential one. Addresses are
//! left out unless `--addrs` asks for them, files and lines unless `--srcline` does. Specification:
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>.

use rustc_hash::FxHashMap;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{function_with_source, module_frame, read_bytes};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{MAX_SHARED_DEPTH, MAX_STACK_LENGTH};
use crate::markers;
use crate::pprof::{BASE_LABEL, Location, Pprof, Sample, Unit, is_pprof};
use crate::profile::{FrameId, Weight, Weights};

pub(super) static FORMAT: Format = Format {
    name: "pprof",
    description: "pprof protobuf (Go, gperftools and many others)",
    tested_with: "Go 1.19, published files",
    has_times: false,
    has_labels: true,
    counts_samples: true,
    recognizer: Recognizer::Head(is_pprof),
    reader: FormatReader::Bytes(read),
};

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let message = read_bytes(document)?;
    let pprof = Pprof::parse(&message).map_err(|what| document.unreadable(what))?;
    let types =
        pprof.sample_types().map(|(name, unit)| String::from_utf8_lossy(&[name, unit].join(&b'/')).into_owned());
    let types: Vec<String> = types.collect();
    let known: Vec<&str> = types.iter().map(String::as_str).collect();
    let has_names = known.is_empty() || known.iter().any(|name| name.len() > 1);
    document.check_end(has_names && pprof.has_all_names(), "its table of strings")?;
    let column = document.select_value(&known, default_column(&pprof))?;
    let unit = pprof.sample_types().nth(column).map(|(_, unit)| unit).unwrap_or_default();
    let unit = Unit::parse(unit);
    match known.len() {
        1 => document.set_unit(&unit.name),
        _ => document.set_unit_silently(&unit.name),
    }
    let is_differential = pprof.samples().any(|sample| is_in_base(&pprof, sample, column));
    if is_differential && !sink.is_differential() {
        if !sink.frames().is_empty() {
            return Err(
                document.unreadable("a comparison (it has negative values), which cannot be added to other input")
            );
        }
        sink.make_differential();
    }
    let mut stacks = StackBuilder::new(&pprof, document.options, sink);
    for sample in pprof.samples() {
        let Some(value) = sample.values().nth(column) else { continue };
        // The sample is of another type.
        if value == 0 && sample.values().any(|value| value != 0) {
            continue;
        }
        let weight = unit.to_weight(value.unsigned_abs());
        let weights = match is_in_base(&pprof, sample, column) {
            true => Weights { before: weight, after: Weight::ZERO },
            false => Weights::plain(weight),
        };
        let stack = stacks.build(&pprof, sample, document.options, sink);
        sink.add(stack, weights)?;
    }
    Ok(())
}

/// Returns the index of the default value: the one that the profile names, or the last one. If that is 0 in all
/// samples, another one that is not.
fn default_column(pprof: &Pprof<'_>) -> usize {
    let default = pprof.default_type();
    let mut is_used = vec![false; pprof.sample_types().count()];
    for sample in pprof.samples() {
        is_used.iter_mut().zip(sample.values()).for_each(|(is_used, value)| *is_used |= value != 0);
        if is_used.get(default).is_some_and(|is_used| *is_used) {
            return default;
        }
    }
    (0..is_used.len()).rev().find(|column| is_used[*column] && !pprof.is_cumulative(*column)).unwrap_or(default)
}

/// Returns true if a sample belongs to the base profile of a comparison.
fn is_in_base(pprof: &Pprof<'_>, sample: Sample<'_>, column: usize) -> bool {
    let value = sample.values().nth(column).unwrap_or(0);
    value < 0 || value == 0 && !pprof.labels(sample, BASE_LABEL).is_empty()
}

/// Builds the stacks of samples from the frames of their locations.
struct StackBuilder {
    /// The frames of all locations; of each location root first.
    frames: Vec<FrameId>,
    /// The range of a location's frames in `frames`, by location ID.
    locations: FxHashMap<u64, std::ops::Range<usize>>,
    /// The stack of the current sample.
    stack: Vec<FrameId>,
    unknown: FrameId,
}

impl StackBuilder {
    fn new(pprof: &Pprof<'_>, options: &Options, sink: &mut Sink) -> Self {
        let unknown = sink.intern(markers::UNKNOWN);
        let mut builder = Self { frames: Vec::new(), locations: FxHashMap::default(), stack: Vec::new(), unknown };
        for location in pprof.locations() {
            let start = builder.frames.len();
            builder.add_frames(&location, options, sink);
            builder.locations.insert(location.id, start..builder.frames.len());
        }
        builder
    }

    /// Adds the frames of a location: its functions, or its module if it has none.
    fn add_frames(&mut self, location: &Location<'_>, options: &Options, sink: &mut Sink) {
        for function in &location.functions {
            let line = i64::try_from(function.line).ok();
            self.frames.push(sink.intern(&function_with_source(function.name, function.file, line, options)));
        }
        if location.functions.is_empty() {
            let address = format!("{:x}", location.address);
            let module = location.module.unwrap_or_default();
            self.frames.push(sink.intern(&module_frame(module, address.as_bytes(), options)));
        }
    }

    /// Builds the stack of a sample, root first.
    fn build(&mut self, pprof: &Pprof<'_>, sample: Sample<'_>, options: &Options, sink: &mut Sink) -> &[FrameId] {
        self.stack.clear();
        let mut inlined = 0;
        for id in sample.locations() {
            let Some(range) = self.locations.get(&id) else {
                self.stack.push(sink.missing_frame());
                continue;
            };
            inlined += range.len() - 1;
            if inlined > MAX_SHARED_DEPTH || self.stack.len() >= MAX_STACK_LENGTH {
                self.stack.push(sink.intern(markers::TRUNCATED));
                break;
            }
            self.stack.extend(self.frames[range.clone()].iter().rev());
        }
        for key in options.labels.iter().rev() {
            let values = pprof.labels(sample, key);
            if !values.is_empty() {
                self.stack.push(sink.intern(&[key, &b"="[..], &values.join(&b","[..])].concat()));
            }
        }
        if self.stack.is_empty() {
            self.stack.push(self.unknown);
        }
        self.stack.reverse();
        &self.stack
    }
}
