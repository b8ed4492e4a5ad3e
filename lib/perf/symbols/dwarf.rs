//! DWARF debug information: the functions inlined at an address, and source lines.
//!
//! The information may be in the object or its debug file, compressed or not, split into `.dwo` files or a `.dwp`
//! package, or shared with other debug files.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use addr2line::gimli::{self, DwarfPackage};
use addr2line::{LookupContinuation as _, LookupResult, SplitDwarfLoad};
use object::{Object as _, ObjectSection as _};

use super::debug_file::{DebugFile, DebugFileSearch};
use crate::perf::objects::mapped_file::bytes_to_path;

type Reader<'a> = gimli::EndianSlice<'a, gimli::RunTimeEndian>;
type Dwarf<'a> = gimli::Dwarf<Reader<'a>>;

/// The debug information of an object. Its search owns the files that it opens and the sections that it decompresses.
pub struct DebugInfo<'a> {
    context: addr2line::Context<Reader<'a>>,
    package: Option<DwarfPackage<Reader<'a>>>,
    search: &'a DebugFileSearch<'a>,
    has_warned_of_split_file: Cell<bool>,
}

/// A function at an address, as debug information describes it.
#[derive(Debug, Default)]
pub struct SourceFunction {
    /// The linkage name, mangled; empty if unknown.
    pub mangled_name: Vec<u8>,
    /// The source line as `FILE:LINE`, without the file's folder.
    pub source: Option<Vec<u8>>,
}

impl<'a> DebugInfo<'a> {
    /// Loads the debug information of the file at `path`, if it has any. `search` finds the parts that are in other
    /// files.
    pub fn load(file: &object::File<'a>, path: &Path, search: &'a DebugFileSearch<'a>) -> Option<Self> {
        file.section_by_name(".debug_info")?;
        let mut dwarf = load_sections(file, search, gimli::SectionId::name)?;
        if let Some(shared) = search.find_supplementary_file(file, path).and_then(|found| parse(found, search)) {
            dwarf.set_sup(load_sections(&shared, search, gimli::SectionId::name)?);
        }
        let package = search.find_package(path).and_then(|found| load_package(&parse(found, search)?, search));
        let context = addr2line::Context::from_dwarf(dwarf).ok()?;
        Some(Self { context, package, search, has_warned_of_split_file: Cell::new(false) })
    }

    /// Returns the functions at an address, innermost first. `with_source` adds their source lines.
    pub fn find_functions(&self, address: u64, with_source: bool) -> Vec<SourceFunction> {
        let mut functions = Vec::new();
        let mut lookup = self.context.find_frames(address);
        let frames = loop {
            match lookup {
                LookupResult::Output(frames) => break frames,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.load_split_unit(&load));
                }
            }
        };
        let Ok(mut frames) = frames else { return functions };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().map_or(&b""[..], |function| function.name.slice());
            let source = if with_source { frame.location.as_ref().and_then(format_location) } else { None };
            functions.push(SourceFunction { mangled_name: name.to_vec(), source });
        }
        functions
    }

    /// Returns the source line of an address as `FILE:LINE`.
    pub fn find_source(&self, address: u64) -> Option<Vec<u8>> {
        format_location(&self.context.find_location(address).ok()??)
    }

    /// Loads a unit of split debug information. Warns once per object if its file is missing.
    fn load_split_unit(&self, load: &SplitDwarfLoad<Reader<'a>>) -> Option<Arc<Dwarf<'a>>> {
        if let Some(package) = &self.package
            && let Ok(Some(unit)) = package.find_cu(load.dwo_id, &load.parent)
        {
            return Some(Arc::new(unit));
        }
        let folder = load.comp_dir.map_or_else(Default::default, |folder| bytes_to_path(folder.slice()));
        let name = bytes_to_path(load.path?.slice());
        let unit = self.search.find_split_files(&folder, &name).find_map(|found| self.load_split_file(found, load));
        if unit.is_none() && !self.has_warned_of_split_file.replace(true) {
            let file = folder.join(name);
            self.search.warn(format!("{} is missing: its inlined calls are not shown", file.display()));
        }
        unit
    }

    /// Loads a `.dwo` file, if it contains the wanted unit.
    fn load_split_file(&self, found: DebugFile, load: &SplitDwarfLoad<Reader<'a>>) -> Option<Arc<Dwarf<'a>>> {
        let file = parse(found, self.search)?;
        let mut dwarf = load_sections(&file, self.search, |id| id.dwo_name().unwrap_or(""))?;
        let header = dwarf.units().next().ok()??;
        let has_wanted_id = dwarf.unit(header).ok()?.dwo_id == Some(load.dwo_id);
        dwarf.make_dwo(&load.parent);
        has_wanted_id.then(|| Arc::new(dwarf))
    }
}

/// Formats a location as `FILE:LINE`, without the file's folder.
fn format_location(location: &addr2line::Location<'_>) -> Option<Vec<u8>> {
    Some(format_source(location.file?, location.line?))
}

/// Formats a source line as `FILE:LINE`, without the file's folder.
pub(super) fn format_source(file: &str, line: u32) -> Vec<u8> {
    let name = file.rsplit('/').next().unwrap_or(file);
    format!("{}:{line}", name.replace(char::is_control, "_")).into_bytes()
}

/// Parses a file whose bytes the search stores.
fn parse<'a>(found: DebugFile, search: &'a DebugFileSearch<'_>) -> Option<object::File<'a>> {
    object::File::parse(search.store(found.bytes)).ok()
}

fn load_package<'a>(package: &object::File<'a>, search: &'a DebugFileSearch<'_>) -> Option<DwarfPackage<Reader<'a>>> {
    let package = DwarfPackage::load(
        |id| {
            Ok::<_, gimli::Error>(match id.dwo_name() {
                Some(name) => load_section(package, search, name),
                None => empty_section(package),
            })
        },
        empty_section(package),
    );
    package.ok()
}

/// Loads the DWARF sections of a file by the names that `section_name` gives them.
fn load_sections<'a>(
    file: &object::File<'a>,
    search: &'a DebugFileSearch<'_>,
    section_name: impl Fn(gimli::SectionId) -> &'static str,
) -> Option<Dwarf<'a>> {
    use gimli::SectionId::{DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro};
    let sections = Dwarf::load(|id| {
        Ok::<_, gimli::Error>(match id {
            // Locations of variables, and macros: large, and never used here.
            DebugLoc | DebugLocLists | DebugMacinfo | DebugMacro => empty_section(file),
            id => load_section(file, search, section_name(id)),
        })
    });
    sections.ok()
}

/// Returns a section's content, decompressed; empty if there is no such section.
fn load_section<'a>(file: &object::File<'a>, search: &'a DebugFileSearch<'_>, name: &str) -> Reader<'a> {
    let bytes: &'a [u8] = match file.section_by_name(name).and_then(|section| section.uncompressed_data().ok()) {
        Some(Cow::Borrowed(bytes)) => bytes,
        Some(Cow::Owned(bytes)) => search.store(bytes),
        None => &[],
    };
    gimli::EndianSlice::new(bytes, byte_order(file))
}

fn empty_section<'a>(file: &object::File<'a>) -> Reader<'a> {
    gimli::EndianSlice::new(&[], byte_order(file))
}

fn byte_order(file: &object::File<'_>) -> gimli::RunTimeEndian {
    if file.is_little_endian() { gimli::RunTimeEndian::Little } else { gimli::RunTimeEndian::Big }
}
