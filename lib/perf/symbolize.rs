//! Names for places in the code: each place once, each object once, on all cores.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::demangle::demangle;
use super::kallsyms::KernelNames;
use super::object::{Object, ObjectId, Objects};
use super::recording::Location;
use super::symbols::SymbolTable;
use super::{elf_names, kallsyms};

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
    /// How far behind the symbol's start, where there is one.
    pub offset: Option<u64>,
    /// `FILE:LINE`, where that is wanted and known.
    pub source: Option<Vec<u8>>,
}

/// Frames for all places of a recording.
#[derive(Debug, Default)]
pub struct Symbolized {
    frames: Vec<NamedFrame>,
    spans: Vec<Range<usize>>,
    remarks: Vec<String>,
}

impl Symbolized {
    /// All frames.
    pub fn frames(&self) -> &[NamedFrame] {
        &self.frames
    }

    /// Where the frames of a place stand among them, outermost first: more than one where calls were inlined.
    pub fn span(&self, location: u32) -> Range<usize> {
        self.spans[location as usize].clone()
    }

    /// What the user should know of names that are missing.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }
}

/// Names all places.
pub fn symbolize(objects: &Objects, locations: &[Location], options: &Options) -> Symbolized {
    let jobs = jobs(objects, locations);
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let work = || {
        let mut done = Vec::new();
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            let Some((object, places)) = jobs.get(job) else { return done };
            let places: Vec<Location> = places.iter().map(|place| locations[*place as usize]).collect();
            done.push((job, name_all(objects, *object, &places, options)));
        }
    };
    let mut done: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for worker in workers {
            // A worker that died leaves its places without names; the others stand.
            done.extend(worker.join().unwrap_or_default());
        }
        done
    });
    done.sort_unstable_by_key(|(job, _)| *job);
    let mut symbolized = Symbolized { spans: vec![0..0; locations.len()], ..Symbolized::default() };
    for (job, (names, remarks)) in done {
        for (place, frames) in jobs[job].1.iter().zip(names) {
            let start = symbolized.frames.len();
            symbolized.frames.extend(frames);
            symbolized.spans[*place as usize] = start..symbolized.frames.len();
        }
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
    options: &Options,
) -> (Vec<Vec<NamedFrame>>, Vec<String>) {
    let object = objects.get(object);
    let addresses: Vec<u64> = places.iter().map(|place| place.address).collect();
    let (mut names, remarks) = match object {
        Object::Unknown | Object::Missing { .. } => (vec![Vec::new(); addresses.len()], Vec::new()),
        Object::Kernel => kernel_names(&objects.kernel, &addresses),
        Object::Jit { pid, .. } => objects.jit_code.frames(*pid, places, options.lines),
        Object::Elf(elf) => elf_names::frames(elf, &addresses, options),
    };
    for frames in names.iter_mut().filter(|frames| frames.is_empty()) {
        frames.push(NamedFrame { name: object.frame(), known: false, inlined: false, offset: None, source: None });
    }
    (names, remarks)
}

fn kernel_names(names: &KernelNames, addresses: &[u64]) -> (Vec<Vec<NamedFrame>>, Vec<String>) {
    let (text, shift) = names.read();
    let remark = "the kernel hides its symbols: kernel frames have no names (sudo sysctl kernel.kptr_restrict=0)";
    let is_hidden = !text.is_empty() && kallsyms::is_hidden(&text);
    let remarks = if is_hidden { vec![remark.to_owned()] } else { Vec::new() };
    let addresses: Vec<u64> = addresses.iter().map(|address| address.wrapping_sub(shift)).collect();
    let table = if remarks.is_empty() { kallsyms::parse(&text, &addresses) } else { SymbolTable::default() };
    (by_table(&table, &addresses), remarks)
}

fn by_table(table: &SymbolTable<'_>, addresses: &[u64]) -> Vec<Vec<NamedFrame>> {
    let frame = |address: &u64| {
        let symbol = table.find(*address)?;
        let name = demangle(symbol.name).into_owned();
        Some(NamedFrame { name, known: true, inlined: false, offset: Some(address - symbol.start), source: None })
    };
    addresses.iter().map(|address| frame(address).into_iter().collect()).collect()
}
