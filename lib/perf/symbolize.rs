//! Names for places in the code: each place once, each object once, on all cores.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use addr2line::gimli;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

use super::demangle::demangle;
use super::object::{Object, ObjectId, Objects, bytes_to_path};
use super::recording::Location;
use super::symbols::{Entry, SymbolTable, Visibility};
use super::{debug_file, kallsyms, perf_map};

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
}

/// Frames for all places of a recording.
#[derive(Debug, Default)]
pub struct Symbolized {
    frames: Vec<NamedFrame>,
    spans: Vec<Range<usize>>,
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
}

/// Names all places. With `inline`, those of debug information for inlined calls too.
pub fn symbolize(objects: &Objects, locations: &[Location], inline: bool) -> Symbolized {
    let jobs = jobs(objects, locations);
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let work = || {
        let mut done = Vec::new();
        while let Some((object, places)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let addresses = places.iter().map(|place| locations[*place as usize].address);
            done.push((places, name_all(objects, *object, addresses, inline)));
        }
        done
    };
    let done: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for worker in workers {
            // A worker that died leaves its places without names; the others stand.
            done.extend(worker.join().unwrap_or_default());
        }
        done
    });
    let mut symbolized = Symbolized { frames: Vec::new(), spans: vec![0..0; locations.len()] };
    for (places, names) in done {
        for (place, frames) in places.iter().zip(names) {
            let start = symbolized.frames.len();
            symbolized.frames.extend(frames);
            symbolized.spans[*place as usize] = start..symbolized.frames.len();
        }
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

fn name_all(
    objects: &Objects,
    object: ObjectId,
    addresses: impl Iterator<Item = u64>,
    inline: bool,
) -> Vec<Vec<NamedFrame>> {
    let object = objects.get(object);
    let unnamed = || vec![NamedFrame { name: object.frame(), known: false, inlined: false, offset: None }];
    let by_table = |table: &SymbolTable<'_>, address| named(table, address).map_or_else(unnamed, |frame| vec![frame]);
    match object {
        Object::Unknown | Object::Missing { .. } => addresses.map(|_| unnamed()).collect(),
        Object::Kernel => {
            let (text, shift) = objects.kernel.read();
            let table = kallsyms::parse(&text);
            addresses.map(|address| by_table(&table, address.wrapping_sub(shift))).collect()
        }
        Object::Jit { pid, .. } => {
            let text = read_perf_map(*pid);
            let table = perf_map::parse(&text);
            addresses.map(|address| by_table(&table, address)).collect()
        }
        Object::Elf(elf) => {
            let Ok(file) = object::File::parse(&**elf.bytes()) else { return addresses.map(|_| unnamed()).collect() };
            let debug_bytes = is_stripped(&file).then(|| debug_file::find(&file, &bytes_to_path(elf.path()))).flatten();
            let debug_file = debug_bytes.as_ref().and_then(|bytes| object::File::parse(&**bytes).ok());
            let names = ElfNames::load(&file, debug_file.as_ref(), inline);
            addresses.map(|address| names.frames(address).unwrap_or_else(unnamed)).collect()
        }
    }
}

fn named(table: &SymbolTable<'_>, address: u64) -> Option<NamedFrame> {
    let symbol = table.find(address)?;
    let name = demangle(symbol.name).into_owned();
    Some(NamedFrame { name, known: true, inlined: false, offset: Some(address - symbol.start) })
}

/// The map that a compiler left in its own view of `/tmp`, under its own view of its number.
fn read_perf_map(pid: u32) -> Vec<u8> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().next_back());
    let inner = inner.map_or(pid.to_string(), str::to_owned);
    std::fs::read(format!("/proc/{pid}/root/tmp/perf-{inner}.map"))
        .or_else(|_| std::fs::read(format!("/tmp/perf-{pid}.map")))
        .unwrap_or_default()
}

type Reader<'a> = gimli::EndianSlice<'a, gimli::RunTimeEndian>;

/// The names in an ELF file, from its symbols and its debug information.
struct ElfNames<'a> {
    table: SymbolTable<'a>,
    debug: Option<addr2line::Context<Reader<'a>>>,
}

impl<'a> ElfNames<'a> {
    /// From the file itself and, where it was stripped, from its debug file.
    fn load(file: &object::File<'a>, debug_file: Option<&object::File<'a>>, inline: bool) -> Self {
        let full = debug_file.unwrap_or(file);
        let mut entries = entries(full.symbols());
        if entries.is_empty() {
            entries = self::entries(file.dynamic_symbols());
        }
        let debug = if inline { debug_information(full) } else { None };
        Self { table: SymbolTable::new(entries), debug }
    }

    /// The frames at an address, outermost first.
    fn frames(&self, address: u64) -> Option<Vec<NamedFrame>> {
        let outermost = named(&self.table, address);
        let mut frames = self.debug_frames(address);
        match (frames.last_mut(), outermost) {
            // The symbol tells more than the debug information: `parse.cold` and not `parse`.
            (Some(last), Some(symbol)) => *last = symbol,
            (Some(last), None) => last.inlined = false,
            (None, symbol) => frames.extend(symbol),
        }
        frames.retain(|frame| !frame.name.is_empty());
        frames.reverse();
        (!frames.is_empty()).then_some(frames)
    }

    /// The frames that debug information knows of, innermost first.
    fn debug_frames(&self, address: u64) -> Vec<NamedFrame> {
        let Some(debug) = &self.debug else { return Vec::new() };
        let Ok(mut found) = debug.find_frames(address).skip_all_loads() else { return Vec::new() };
        let mut frames = Vec::new();
        while let Ok(Some(frame)) = found.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let name = name.map_or(Vec::new(), |name| demangle(name.as_bytes()).into_owned());
            frames.push(NamedFrame { name, known: true, inlined: true, offset: None });
        }
        frames
    }
}

fn is_stripped(file: &object::File<'_>) -> bool {
    file.symbols().next().is_none()
}

fn entries<'a, 'file>(symbols: impl Iterator<Item = object::Symbol<'a, 'file>>) -> Vec<Entry<'a>>
where
    'a: 'file,
{
    symbols
        .filter(|symbol| {
            symbol.is_definition() || (symbol.kind() == object::SymbolKind::Unknown && !symbol.is_undefined())
        })
        .filter(|symbol| matches!(symbol.kind(), object::SymbolKind::Text | object::SymbolKind::Unknown))
        .filter_map(|symbol| {
            let name = symbol.name_bytes().ok().filter(|name| !name.is_empty() && !name.starts_with(b"$"))?;
            let visibility = match (symbol.is_weak(), symbol.is_global()) {
                (true, _) => Visibility::Weak,
                (false, true) => Visibility::Global,
                (false, false) => Visibility::Local,
            };
            Some(Entry { address: symbol.address(), size: symbol.size(), name, visibility })
        })
        .collect()
}

/// The file's debug information, if it has any. What had to be decompressed lives as long as the process: it is needed
/// until the very end, and is not loaded twice.
fn debug_information<'a>(file: &object::File<'a>) -> Option<addr2line::Context<Reader<'a>>> {
    file.section_by_name(".debug_info").or_else(|| file.section_by_name(".zdebug_info"))?;
    let endian = if file.is_little_endian() { gimli::RunTimeEndian::Little } else { gimli::RunTimeEndian::Big };
    let load = |id: gimli::SectionId| -> Result<Reader<'a>, gimli::Error> {
        let section = file.section_by_name(id.name()).and_then(|section| section.uncompressed_data().ok());
        let bytes: &'a [u8] = match section {
            Some(Cow::Borrowed(bytes)) => bytes,
            Some(Cow::Owned(bytes)) => Box::leak(bytes.into_boxed_slice()),
            None => &[],
        };
        Ok(gimli::EndianSlice::new(bytes, endian))
    };
    addr2line::Context::from_dwarf(gimli::Dwarf::load(load).ok()?).ok()
}
