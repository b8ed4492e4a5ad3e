//! pprof's protobuf: which of a sample's values counts is chosen, labels become root frames where they are asked for, and
//! negative values make the profile a differential one, as `pprof -diff_base` means them.

use rustc_hash::FxHashMap;

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::LONGEST;
use crate::collapse::{Options, whole};
use crate::markers;
use crate::pprof::{BASE_LABEL, Location, Pprof, Sample, Unit, is_begin};
use crate::profile::{FrameId, Weight, Weights};

pub(super) static FORMAT: Format = Format {
    name: "pprof",
    description: "pprof protobuf (Go, gperftools, and many others)",
    has_times: false,
    recognizes: is_begin,
    reader: FormatReader::Bytes(read),
};

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let message = whole::read(document)?;
    let pprof = Pprof::parse(&message).map_err(|what| document.unreadable(what))?;
    let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let types: Vec<String> = pprof.sample_types().map(|(name, unit)| text(name) + "/" + &text(unit)).collect();
    let known: Vec<&str> = types.iter().map(String::as_str).collect();
    let column = document.column(&known, pprof.default_type())?;
    let unit = pprof.sample_types().nth(column).map(|(_, unit)| unit).unwrap_or_default();
    let unit = Unit::named(unit);
    match known.len() {
        1 => document.unit(&unit.name),
        _ => document.weighs_in(&unit.name),
    }
    let differential = pprof.samples().any(|sample| is_before(&pprof, sample, column));
    if differential && !sink.is_differential() {
        if !sink.frames().is_empty() {
            return Err(
                document.unreadable("has negative values, so it is a comparison, and does not add to other input")
            );
        }
        sink.make_differential();
    }
    let mut stacks = Stacks::new(&pprof, document.options, sink);
    for sample in pprof.samples() {
        let Some(value) = sample.values().nth(column) else { continue };
        // A sample of another type is none of this.
        if value == 0 && sample.values().any(|value| value != 0) {
            continue;
        }
        let weight = unit.weight(value.unsigned_abs());
        let weights = match is_before(&pprof, sample, column) {
            true => Weights { before: weight, after: Weight::ZERO },
            false => Weights::plain(weight),
        };
        let stack = stacks.of(&pprof, sample, document.options, sink);
        sink.add(stack, weights)?;
    }
    Ok(())
}

fn is_before(pprof: &Pprof<'_>, sample: Sample<'_>, column: usize) -> bool {
    let value = sample.values().nth(column).unwrap_or(0);
    value < 0 || value == 0 && !pprof.labels(sample, BASE_LABEL).is_empty()
}

/// The frames of all locations, and of the present sample.
struct Stacks {
    frames: Vec<FrameId>,
    /// Where a location's frames stand, root first.
    locations: FxHashMap<u64, std::ops::Range<usize>>,
    stack: Vec<FrameId>,
    unknown: FrameId,
}

impl Stacks {
    fn new(pprof: &Pprof<'_>, options: &Options, sink: &mut Sink) -> Self {
        let unknown = sink.intern(markers::UNKNOWN);
        let mut stacks = Self { frames: Vec::new(), locations: FxHashMap::default(), stack: Vec::new(), unknown };
        for location in pprof.locations() {
            let start = stacks.frames.len();
            stacks.add(&location, options, sink);
            stacks.locations.insert(location.id, start..stacks.frames.len());
        }
        stacks
    }

    fn add(&mut self, location: &Location<'_>, options: &Options, sink: &mut Sink) {
        for function in &location.functions {
            let line = i64::try_from(function.line).ok();
            self.frames.push(sink.intern(&whole::located(function.name, function.file, line, options)));
        }
        if location.functions.is_empty() {
            let address = format!("{:x}", location.address);
            let module = location.module.unwrap_or_default();
            self.frames.push(sink.intern(&whole::module(module, address.as_bytes(), options)));
        }
    }

    /// A sample's frames, root first.
    fn of(&mut self, pprof: &Pprof<'_>, sample: Sample<'_>, options: &Options, sink: &mut Sink) -> &[FrameId] {
        self.stack.clear();
        let mut inlined = 0;
        for id in sample.locations() {
            let Some(range) = self.locations.get(&id) else {
                self.stack.push(self.unknown);
                continue;
            };
            inlined += range.len() - 1;
            if inlined > whole::DEEPEST || self.stack.len() >= LONGEST {
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
