//! An object's unwind information, as framehop takes it.

use std::ops::{Deref, Range};
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use object::{Object as _, ObjectSection as _, ObjectSegment as _};

use super::Module;
use super::special::SpecialFrames;
use crate::perf::objects::object::{Bytes, Elf};

/// A section's bytes: a part of the mapped file, or what was decompressed.
#[derive(Clone, Debug)]
pub enum Section {
    /// A part of the file.
    Part(Bytes, Range<usize>),
    /// Bytes of its own.
    Own(Arc<[u8]>),
}

impl Default for Section {
    fn default() -> Self {
        Self::Own(Arc::from([]))
    }
}

impl Deref for Section {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Part(bytes, range) => &bytes[range.clone()],
            Self::Own(bytes) => bytes,
        }
    }
}

/// Makes a module of an object whose addresses are to stand `base` higher, if it has unwind information and all its
/// addresses are below `size`; with the first of them.
pub(super) fn load(elf: &Elf, base: u64, size: u64) -> Option<(u64, Module, SpecialFrames)> {
    let file = object::File::parse(&**elf.bytes()).ok()?;
    let segments: Vec<Range<u64>> =
        file.segments().map(|segment| segment.address()..segment.address().saturating_add(segment.size())).collect();
    let start = segments.iter().map(|segment| segment.start).min()?;
    let end = segments.iter().map(|segment| segment.end).max().filter(|end| *end < size)?;
    let eh_frame = section(&file, elf, ".eh_frame");
    let special = eh_frame.as_ref().map_or_else(SpecialFrames::default, |(svma, eh_frame)| {
        SpecialFrames::scan(svma.start, eh_frame, file.section_by_name(".text").map_or(0, |text| text.address()))
    });
    let eh_frame_hdr = section(&file, elf, ".eh_frame_hdr");
    let special = match &eh_frame_hdr {
        Some((svma, index)) => special.with_index(svma.start, index.clone()),
        None => special,
    };
    let debug_frame = if eh_frame.is_none() { section(&file, elf, ".debug_frame") } else { None };
    if eh_frame.is_none() && debug_frame.is_none() {
        return None;
    }
    let text_svma = file.section_by_name(".text").map(|text| text.address()..text.address() + text.size());
    let got_svma = file.section_by_name(".got").map(|got| got.address()..got.address() + got.size());
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
    Some((start, Module::new(String::new(), base + start..base + end, base + start, sections), special))
}

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
        Section::Own(section.uncompressed_data().ok()?.into())
    };
    (!bytes.is_empty()).then_some((svma, bytes))
}
