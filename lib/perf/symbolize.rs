//! Names for places in the code: each place once, each object once, on all cores.

use std::ops::Range;

use super::kallsyms::KernelNames;
use super::object::{Object, ObjectId};
use super::objects::Objects;
use super::recording::Location;
use super::{elf_names, kallsyms};
use crate::parallel::{self, cores};
use crate::symbol_name::demangle::demangle;

/// What names are to be told, and where they are looked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether inlined calls are frames of their own.
    pub inline: bool,
    /// Whether each frame's place in the source is told.
    pub lines: bool,
    /// Whether `debuginfod-find` may fetch what is missing.
    pub debuginfod: bool,
}

/// A frame that a place in the code stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFrame {
    /// The function, demangled; or what stands for it where no symbol is known.
    pub name: Vec<u8>,
    /// Whether it is a symbol's name.
    pub known: bool,
    /// Whether the compiler put it into its caller.
    pub inlined: bool,
    /// Where the symbol starts, as its object counts addresses, if there is one.
    pub start: Option<u64>,
    /// `FILE:LINE`, where that is wanted and known.
    pub source: Option<Vec<u8>>,
}

/// Frames for all places of a recording.
#[derive(Debug, Default)]
pub struct Symbolized {
    frames: Vec<NamedFrame>,
    spans: Vec<Span>,
    remarks: Vec<String>,
}

/// Where the frames of a place stand.
type Span = Range<u32>;

/// Frames for places of an object, in the order of their addresses.
#[derive(Debug, Default)]
pub struct Named {
    frames: Vec<NamedFrame>,
    spans: Vec<Span>,
}

impl Named {
    /// None for so many places.
    pub fn nothing(places: usize) -> Self {
        Self { frames: Vec::new(), spans: vec![0..0; places] }
    }

    /// The next place has these. Places in the same function have the same ones.
    pub fn push(&mut self, frames: Vec<NamedFrame>) {
        let last = self.spans.last().cloned().unwrap_or(0..0);
        if self.frames[last.start as usize..last.end as usize] == frames {
            self.spans.push(last);
            return;
        }
        let start = self.frames.len() as u32;
        self.frames.extend(frames);
        self.spans.push(start..self.frames.len() as u32);
    }

    /// The next place has the same as the last one, if that has one frame, of a symbol that starts at this address.
    pub fn repeat(&mut self, start: u64) -> bool {
        let Some(last) = self.spans.last().cloned() else { return false };
        let repeats = matches!(&self.frames[last.start as usize..last.end as usize],
            [frame] if frame.start == Some(start) && frame.source.is_none());
        if repeats {
            self.spans.push(last);
        }
        repeats
    }

    /// Those that have none have this one.
    fn fill(&mut self, frame: NamedFrame) {
        let place = self.frames.len() as u32;
        for span in self.spans.iter_mut().filter(|span| span.start == span.end) {
            *span = place..place + 1;
        }
        self.frames.push(frame);
    }
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
pub fn symbolize(objects: &Objects, locations: &[Location], options: &Options) -> Symbolized {
    let jobs = jobs(objects, locations);
    let done = parallel::map(&jobs, cores(), |(object, places)| {
        let places: Vec<Location> = places.iter().map(|place| locations[*place as usize]).collect();
        name_all(objects, *object, &places, options)
    });
    let mut symbolized = Symbolized { spans: vec![0..0; locations.len()], ..Symbolized::default() };
    for ((_, places), (names, remarks)) in jobs.iter().zip(done) {
        let before = u32::try_from(symbolized.frames.len()).expect("fewer than 2^32 frames");
        for (place, span) in places.iter().zip(names.spans) {
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
fn name_all(objects: &Objects, object: ObjectId, places: &[Location], options: &Options) -> (Named, Vec<String>) {
    let object = objects.get(object);
    let addresses: Vec<u64> = places.iter().map(|place| place.address).collect();
    let (mut names, remarks) = match object {
        Object::Unknown | Object::Missing { .. } => (Named::nothing(addresses.len()), Vec::new()),
        Object::Kernel => kernel_names(&objects.kernel, addresses),
        Object::Jit { pid, .. } => objects.jit_code.frames(*pid, places, options.lines),
        Object::Elf(elf) => elf_names::frames(elf, &addresses, options),
    };
    if let Object::Elf(elf) = object {
        // Symbols and debug information are many times what ran of the file.
        elf.bytes().let_go();
    }
    names.fill(NamedFrame { name: object.frame(), known: false, inlined: false, start: None, source: None });
    (names, remarks)
}

fn kernel_names(names: &KernelNames, mut addresses: Vec<u64>) -> (Named, Vec<String>) {
    let (text, shift) = names.read();
    if !text.is_empty() && kallsyms::is_hidden(&text) {
        let remark = "the kernel hides its symbols: kernel frames have no names (sudo sysctl kernel.kptr_restrict=0)";
        return (Named::nothing(addresses.len()), vec![remark.to_owned()]);
    }
    addresses.iter_mut().for_each(|address| *address = address.wrapping_sub(shift));
    let table = kallsyms::parse(&text, &addresses);
    let mut named = Named::default();
    for address in addresses {
        let symbol = table.find(address).map(|symbol| (symbol.start.wrapping_add(shift), symbol.name));
        if symbol.is_some_and(|(start, _)| named.repeat(start)) {
            continue;
        }
        let frame = |(start, name)| NamedFrame {
            name: demangle(name).into_owned(),
            known: true,
            inlined: false,
            start: Some(start),
            source: None,
        };
        named.push(symbol.map(frame).into_iter().collect());
    }
    (named, Vec::new())
}
