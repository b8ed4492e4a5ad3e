//! Names for places in the code: each place once, each object once, on all cores.

use std::ops::Range;

use super::frame::{AddressFrames, FrameRange, NamedFrame, SymbolizeOptions};
use super::kallsyms::KernelNames;
use super::{elf, kallsyms};
use crate::parallel::{self, cores};
use crate::perf::location::Location;
use crate::perf::objects::object::{Object, ObjectId};
use crate::perf::objects::registry::Objects;
use crate::symbol_name::demangle::demangle;

/// Frames for all places of a recording.
#[derive(Debug, Default)]
pub struct Symbolized {
    frames: Vec<NamedFrame>,
    spans: Vec<FrameRange>,
    remarks: Vec<String>,
}

impl Symbolized {
    /// All frames.
    pub fn frames(&self) -> &[NamedFrame] {
        &self.frames
    }

    /// Where the frames of a place stand among them, outermost first: more than one where calls were inlined. Places in
    /// the same function may have the same ones.
    pub fn span(&self, location: u32) -> Range<usize> {
        let span = &self.spans[location as usize];
        span.start as usize..span.end as usize
    }

    /// What the user should know of names that are missing.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }
}

/// Names all places.
pub fn symbolize(objects: &Objects, locations: &[Location], options: &SymbolizeOptions) -> Symbolized {
    let jobs = jobs(objects, locations);
    let done = parallel::map(&jobs, cores(), |(object, places)| {
        let places: Vec<Location> = places.iter().map(|place| locations[*place as usize]).collect();
        name_all(objects, *object, &places, options)
    });
    let mut symbolized = Symbolized { spans: vec![0..0; locations.len()], ..Symbolized::default() };
    for ((_, places), (names, remarks)) in jobs.iter().zip(done) {
        let before = u32::try_from(symbolized.frames.len()).expect("fewer than 2^32 frames");
        for (place, span) in places.iter().zip(names.ranges) {
            symbolized.spans[*place as usize] = before + span.start..before + span.end;
        }
        symbolized.frames.extend(names.frames);
        symbolized.remarks.extend(remarks);
    }
    symbolized
}

/// The places of each object, those with most work first.
fn jobs(objects: &Objects, locations: &[Location]) -> Vec<(ObjectId, Vec<u32>)> {
    let mut jobs: Vec<(ObjectId, Vec<u32>)> = objects.iter().map(|(id, _)| (id, Vec::new())).collect();
    for (place, location) in locations.iter().enumerate() {
        jobs[location.object.0 as usize].1.push(place as u32);
    }
    jobs.retain(|(_, places)| !places.is_empty());
    jobs.sort_by_key(|(_, places)| std::cmp::Reverse(places.len()));
    for (_, places) in &mut jobs {
        // In order, each unit of debug information is visited once.
        places.sort_unstable_by_key(|place| locations[*place as usize].address);
    }
    jobs
}

/// Frames for places, in ascending order, in an object, and what the user should know.
fn name_all(
    objects: &Objects,
    object: ObjectId,
    places: &[Location],
    options: &SymbolizeOptions,
) -> (AddressFrames, Vec<String>) {
    let object = objects.get(object);
    let addresses: Vec<u64> = places.iter().map(|place| place.address).collect();
    let (mut names, remarks) = match object {
        Object::Unknown | Object::Missing { .. } => (AddressFrames::without_frames(addresses.len()), Vec::new()),
        Object::Kernel => kernel_names(&objects.kernel, addresses),
        Object::Jit { pid, .. } => objects.jit_code.frames(*pid, places, options.lines),
        Object::Elf(elf) => elf::frames(elf, &addresses, options),
    };
    if let Object::Elf(elf) = object {
        // Symbols and debug information are many times what ran of the file.
        elf.bytes().let_go();
    }
    names.fill_missing(NamedFrame {
        name: object.frame(),
        has_symbol: false,
        is_inlined: false,
        start: None,
        source: None,
    });
    (names, remarks)
}

fn kernel_names(names: &KernelNames, mut addresses: Vec<u64>) -> (AddressFrames, Vec<String>) {
    let (text, shift) = names.read();
    if !text.is_empty() && kallsyms::is_hidden(&text) {
        let remark = "the kernel hides its symbols: kernel frames have no names (sudo sysctl kernel.kptr_restrict=0)";
        return (AddressFrames::without_frames(addresses.len()), vec![remark.to_owned()]);
    }
    addresses.iter_mut().for_each(|address| *address = address.wrapping_sub(shift));
    let table = kallsyms::parse(&text, &addresses);
    let mut named = AddressFrames::default();
    for address in addresses {
        let symbol = table.find(address).map(|symbol| (symbol.start.wrapping_add(shift), symbol.name));
        if symbol.is_some_and(|(start, _)| named.repeat_last(start)) {
            continue;
        }
        let frame = |(start, name)| NamedFrame {
            name: demangle(name).into_owned(),
            has_symbol: true,
            is_inlined: false,
            start: Some(start),
            source: None,
        };
        named.push(symbol.map(frame).into_iter().collect());
    }
    (named, Vec::new())
}
