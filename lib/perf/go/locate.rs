//! Finds the function table of a Go program.

use std::ops::Range;

use memchr::memmem::Finder;
use object::{Object as _, ObjectSection as _, ObjectSegment as _};

use super::table::{FunctionTable, Layout, read_pointer};

/// The place of a function table in an ELF file.
#[derive(Clone, Debug)]
pub struct TableLocation {
    /// The offsets of the table in the file.
    table: Range<usize>,
    /// The offsets of the data of functions in the file; empty if they were not found.
    function_data: Range<usize>,
    layout: Layout,
}

/// The words of the runtime's description of a program, `moduledata` in Go's `src/runtime/symtab.go`.
mod module_data {
    /// The address of the list of functions.
    pub const FUNCTIONS: usize = 16;
    /// The number of entries in the list of functions: one more than functions.
    pub const FUNCTION_COUNT: usize = 17;
    pub const TEXT: usize = 22;
    /// The address of the data of functions is one of these words. Which one depends on the version of Go.
    pub const FUNCTION_DATA: std::ops::Range<usize> = 32..52;
}

/// Number of functions with inlined calls by which the place of the data of functions is verified.
const VERIFIED_FUNCTIONS: usize = 64;

impl TableLocation {
    /// Finds the function table of the ELF file with this content.
    pub fn find(bytes: &[u8]) -> Option<Self> {
        let file = object::File::parse(bytes).ok()?;
        if !file.is_little_endian() {
            return None;
        }
        let (address, table, layout) = find_table(&file, bytes)?;
        let mut location = Self { table, function_data: 0..0, layout };
        let description = find_description(&file, address, &layout);
        if layout.text() == 0 && layout.is_relative() {
            // Since Go 1.26 only the runtime's description has the address.
            location.layout = layout.with_text(read_word(description?, module_data::TEXT)?);
        }
        if let Some(description) = description {
            let mut words = module_data::FUNCTION_DATA.filter_map(|index| read_word(description, index));
            let data = words.find_map(|word| {
                let range = file_range(&file, word, bytes.len())?;
                Self { function_data: range.clone(), ..location.clone() }.has_valid_calls(bytes).then_some(range)
            });
            location.function_data = data.unwrap_or_default();
        }
        Some(location)
    }

    /// Returns the table in the content of the file.
    pub fn open<'a>(&self, bytes: &'a [u8]) -> Option<FunctionTable<'a>> {
        Some(FunctionTable::new(bytes.get(self.table.clone())?, bytes.get(self.function_data.clone())?, self.layout))
    }

    /// True if there are functions with inlined calls, and the first of these calls are well-formed.
    fn has_valid_calls(&self, bytes: &[u8]) -> bool {
        let Some(table) = self.open(bytes) else { return false };
        let mut verdicts = table.functions().filter_map(|function| function.has_valid_calls()).take(VERIFIED_FUNCTIONS);
        verdicts.next() == Some(true) && verdicts.all(|is_valid| is_valid)
    }
}

/// Finds the table's address, its place in the file, and its layout: by the name of its section, or by its first bytes.
fn find_table(file: &object::File<'_>, bytes: &[u8]) -> Option<(u64, Range<usize>, Layout)> {
    let names = [".gopclntab", ".data.rel.ro.gopclntab"];
    if let Some(section) = names.iter().find_map(|name| file.section_by_name(name)) {
        let (start, size) = section.file_range()?;
        let start = usize::try_from(start).ok()?;
        let range = start..start.checked_add(usize::try_from(size).ok()?)?;
        return Some((section.address(), range.clone(), Layout::read(bytes.get(range)?)?));
    }
    // Linkers for C put the table into another section. A file without sections may be anything.
    let is_go = file.section_by_name(".go.buildinfo").is_some() || file.sections().next().is_none();
    let mut data = file.segments().filter(|segment| is_go && !has_flag(segment, object::elf::PF_X));
    data.find_map(|segment| search_table(&segment))
}

/// Finds a table in a segment by its first bytes.
fn search_table(segment: &object::Segment<'_, '_>) -> Option<(u64, Range<usize>, Layout)> {
    let data = segment.data().ok()?;
    let file_offset = usize::try_from(segment.file_range().0).ok()?;
    let finder = Finder::new(&[0xff, 0xff, 0xff, 0, 0]);
    finder.find_iter(data).filter_map(|found| found.checked_sub(1)).find_map(|start| {
        let address = segment.address().checked_add(start as u64).filter(|address| address % 8 == 0)?;
        let layout = Layout::read(&data[start..])?;
        Some((address, file_offset + start..file_offset + data.len(), layout))
    })
}

/// Finds the runtime's description of the program. It starts with the address of the table.
fn find_description<'a>(file: &object::File<'a>, table: u64, layout: &Layout) -> Option<&'a [u8]> {
    let (count, functions) = layout.functions();
    let start = table.to_le_bytes();
    let finder = Finder::new(&start);
    let writable = file.segments().filter(|segment| has_flag(segment, object::elf::PF_W));
    writable.filter_map(|segment| segment.data().ok()).find_map(|data| {
        finder.find_iter(data).map(|found| &data[found..]).find(|description| {
            read_word(description, module_data::FUNCTIONS) == table.checked_add(functions as u64)
                && read_word(description, module_data::FUNCTION_COUNT) == (count as u64).checked_add(1)
        })
    })
}

fn has_flag(segment: &object::Segment<'_, '_>, flag: object::elf::ProgramFlags) -> bool {
    matches!(segment.flags(), object::SegmentFlags::Elf { p_flags, .. } if p_flags.contains(flag))
}

fn read_word(bytes: &[u8], index: usize) -> Option<u64> {
    read_pointer(bytes, index * 8, 8)
}

/// Returns the offsets in the file from an address to the end of its segment.
fn file_range(file: &object::File<'_>, address: u64, file_size: usize) -> Option<Range<usize>> {
    file.segments().find_map(|segment| {
        let (offset, size) = segment.file_range();
        let distance = address.checked_sub(segment.address()).filter(|distance| *distance < size)?;
        let start = usize::try_from(offset.checked_add(distance)?).ok()?;
        let end = usize::try_from(offset.checked_add(size)?).ok()?;
        (end <= file_size).then_some(start..end)
    })
}
