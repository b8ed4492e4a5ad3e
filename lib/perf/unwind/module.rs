//! The unwind information of an object, in the form that framehop takes.

use std::ops::Range;

use addr2line::gimli;
use framehop::ExplicitModuleSectionInfo;
use object::{Object as _, ObjectSection as _, ObjectSegment as _};

use crate::perf::cfi::{CfiTable, Section};
use crate::perf::objects::object::Elf;

/// A module of framehop's.
pub(super) type Module = framehop::Module<Section>;

/// An object as a module.
pub(super) struct LoadedModule {
    /// The first address of the object, in its own address space (SVMA).
    pub(super) start: u64,
    pub(super) module: Module,
    /// The frames that framehop cannot step.
    pub(super) cfi: CfiTable,
}

/// Makes a module of an object, with all its addresses moved up by `base`.
///
/// `None` if the object has no unwind information, or an address of `size` or above. framehop follows the registers
/// `followed`.
pub(super) fn load(elf: &Elf, base: u64, size: u64, followed: [gimli::Register; 2]) -> Option<LoadedModule> {
    let file = object::File::parse(&**elf.bytes()).ok()?;
    let segments: Vec<Range<u64>> =
        file.segments().map(|segment| segment.address()..segment.address().saturating_add(segment.size())).collect();
    let start = segments.iter().map(|segment| segment.start).min()?;
    let end = segments.iter().map(|segment| segment.end).max().filter(|end| *end < size)?;
    let text_svma =
        file.section_by_name(".text").map(|text| text.address()..text.address().saturating_add(text.size()));
    let got_svma = file.section_by_name(".got").map(|got| got.address()..got.address().saturating_add(got.size()));
    let eh_frame = section(&file, elf, ".eh_frame");
    let eh_frame_hdr = section(&file, elf, ".eh_frame_hdr");
    let cfi = eh_frame.as_ref().map_or_else(CfiTable::default, |(svma, eh_frame)| {
        CfiTable::select(svma.start, eh_frame, text_svma.as_ref().map_or(0, |text| text.start), followed)
    });
    let cfi = match &eh_frame_hdr {
        Some((svma, index)) => cfi.with_index(svma.start, index.clone()),
        None => cfi,
    };
    let debug_frame = if eh_frame.is_none() { section(&file, elf, ".debug_frame") } else { None };
    if eh_frame.is_none() && debug_frame.is_none() {
        return None;
    }
    let (eh_frame_svma, eh_frame) = eh_frame.unzip();
    let (eh_frame_hdr_svma, eh_frame_hdr) = eh_frame_hdr.unzip();
    let sections = ExplicitModuleSectionInfo {
        base_svma: start,
        text_svma,
        got_svma,
        eh_frame_svma,
        eh_frame,
        eh_frame_hdr_svma,
        eh_frame_hdr,
        debug_frame: debug_frame.map(|(_, bytes)| bytes),
        ..ExplicitModuleSectionInfo::default()
    };
    let module = Module::new(String::new(), base + start..base + end, base + start, sections);
    Some(LoadedModule { start, module, cfi })
}

/// Returns the addresses and the bytes of a section; `None` if it does not exist or is empty.
fn section(file: &object::File<'_>, elf: &Elf, name: &str) -> Option<(Range<u64>, Section)> {
    let section = file.section_by_name(name)?;
    let svma = section.address()..section.address().saturating_add(section.size());
    let compressed = section.compressed_file_range().ok()?;
    let bytes = if compressed.format == object::CompressionFormat::None {
        let start = usize::try_from(compressed.offset).ok()?;
        let range = start..start.checked_add(usize::try_from(compressed.compressed_size).ok()?)?;
        elf.bytes().get(range.clone())?;
        Section::Part(elf.bytes().clone(), range)
    } else {
        Section::Owned(section.uncompressed_data().ok()?.into())
    };
    (!bytes.is_empty()).then_some((svma, bytes))
}
