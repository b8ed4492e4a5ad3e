//! The debug information of an object, wherever it stands: in the object or its debug file, compressed or not, split into
//! files beside it, or shared with other debug files.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use addr2line::gimli::{self, DwarfPackage};
use addr2line::{LookupContinuation as _, LookupResult, SplitDwarfLoad};
use object::{Object as _, ObjectSection as _};

use super::debug_file::{Found, Search};
use crate::perf::objects::mapped_file::bytes_to_path;

type Reader<'a> = gimli::EndianSlice<'a, gimli::RunTimeEndian>;
type Dwarf<'a> = gimli::Dwarf<Reader<'a>>;

/// The debug information of an object. What had to be opened or decompressed for it is kept by the search for it.
pub struct DebugInformation<'a> {
    context: addr2line::Context<Reader<'a>>,
    package: Option<DwarfPackage<Reader<'a>>>,
    search: &'a Search<'a>,
    missing: Cell<bool>,
}

/// A function at an address, and where in the source.
#[derive(Debug, Default)]
pub struct Function {
    /// Its name, mangled; empty if that is not told.
    pub name: Vec<u8>,
    /// `FILE:LINE`, the file without its folder.
    pub source: Option<Vec<u8>>,
}

impl<'a> DebugInformation<'a> {
    /// That of a file, if it has any. `search` finds what stands elsewhere.
    pub fn load(file: &object::File<'a>, path: &Path, search: &'a Search<'a>) -> Option<Self> {
        file.section_by_name(".debug_info")?;
        let mut dwarf = sections(file, search, gimli::SectionId::name)?;
        if let Some(shared) = search.shared(file, path).and_then(|found| parsed(found, search)) {
            dwarf.set_sup(sections(&shared, search, gimli::SectionId::name)?);
        }
        let package = search.package(path).and_then(|found| parsed(found, search)).and_then(|package| {
            let load = |id: gimli::SectionId| {
                id.dwo_name().map_or_else(|| Ok(empty(&package)), |name| Ok(section(&package, search, name)))
            };
            DwarfPackage::load::<_, gimli::Error>(load, empty(&package)).ok()
        });
        let context = addr2line::Context::from_dwarf(dwarf).ok()?;
        Some(Self { context, package, search, missing: Cell::new(false) })
    }

    /// The functions at an address, innermost first.
    pub fn functions(&self, address: u64, lines: bool) -> Vec<Function> {
        let mut functions = Vec::new();
        let mut found = self.context.find_frames(address);
        let frames = loop {
            match found {
                LookupResult::Output(frames) => break frames,
                LookupResult::Load { load, continuation } => found = continuation.resume(self.split_unit(&load)),
            }
        };
        let Ok(mut frames) = frames else { return functions };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().map_or(&b""[..], |function| function.name.slice());
            let source = if lines { frame.location.as_ref().and_then(source) } else { None };
            functions.push(Function { name: name.to_vec(), source });
        }
        functions
    }

    /// Where in the source the code at an address stands.
    pub fn source(&self, address: u64) -> Option<Vec<u8>> {
        source(&self.context.find_location(address).ok()??)
    }

    /// The part of the debug information that was left out of the object's own.
    fn split_unit(&self, load: &SplitDwarfLoad<Reader<'a>>) -> Option<Arc<Dwarf<'a>>> {
        if let Some(package) = &self.package
            && let Ok(Some(unit)) = package.find_cu(load.dwo_id, &load.parent)
        {
            return Some(Arc::new(unit));
        }
        let folder = load.comp_dir.map_or_else(Default::default, |folder| bytes_to_path(folder.slice()));
        let name = bytes_to_path(load.path?.slice());
        let unit = self.search.split(&folder, &name).find_map(|found| {
            let file = parsed(found, self.search)?;
            let mut dwarf = sections(&file, self.search, |id| id.dwo_name().unwrap_or(""))?;
            let header = dwarf.units().next().ok()??;
            let belongs = dwarf.unit(header).ok()?.dwo_id == Some(load.dwo_id);
            dwarf.make_dwo(&load.parent);
            belongs.then(|| Arc::new(dwarf))
        });
        if unit.is_none() && !self.missing.replace(true) {
            let file = folder.join(name);
            self.search.remark(format!("{} is missing: inlined calls are left out there", file.display()));
        }
        unit
    }
}

fn source(location: &addr2line::Location<'_>) -> Option<Vec<u8>> {
    let file = location.file?;
    let name = file.rsplit('/').next().unwrap_or(file);
    Some(format!("{}:{}", name.replace(char::is_control, "_"), location.line?).into_bytes())
}

/// The file, parsed and kept.
fn parsed<'a>(found: Found, search: &'a Search<'_>) -> Option<object::File<'a>> {
    object::File::parse(search.keep(found.bytes)).ok()
}

fn sections<'a>(
    file: &object::File<'a>,
    search: &'a Search<'_>,
    name: impl Fn(gimli::SectionId) -> &'static str,
) -> Option<Dwarf<'a>> {
    use gimli::SectionId::{DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro};
    let load = |id| match id {
        // Where variables are, and macros: much, and nobody asks.
        DebugLoc | DebugLocLists | DebugMacinfo | DebugMacro => empty(file),
        id => section(file, search, name(id)),
    };
    Dwarf::load(|id| Ok::<_, gimli::Error>(load(id))).ok()
}

fn section<'a>(file: &object::File<'a>, search: &'a Search<'_>, name: &str) -> Reader<'a> {
    let bytes: &'a [u8] = match file.section_by_name(name).and_then(|section| section.uncompressed_data().ok()) {
        Some(Cow::Borrowed(bytes)) => bytes,
        Some(Cow::Owned(bytes)) => search.keep(bytes),
        None => &[],
    };
    gimli::EndianSlice::new(bytes, endian(file))
}

fn empty<'a>(file: &object::File<'a>) -> Reader<'a> {
    gimli::EndianSlice::new(&[], endian(file))
}

fn endian(file: &object::File<'_>) -> gimli::RunTimeEndian {
    if file.is_little_endian() { gimli::RunTimeEndian::Little } else { gimli::RunTimeEndian::Big }
}
