//! Reads the machine code of ELF files and of processes for the search of paths.

use std::ops::Range;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

use crate::perf::objects::object::Elf;
use crate::perf::unwind::code_paths::{MAX_INSTRUCTION, ReadInstructions};
use crate::perf::unwind::snapshot::ProcessSnapshot;

/// The code of an ELF file. Addresses are those of the file.
pub(super) struct FileCode<'a> {
    pub(super) elf: &'a Elf,
    pub(super) functions: &'a [Range<u64>],
}

impl ReadInstructions for FileCode<'_> {
    fn read(&mut self, address: u64) -> &[u8] {
        self.elf.code_from(address)
    }

    fn find_function(&mut self, address: u64) -> Option<Range<u64>> {
        let after = self.functions.partition_point(|function| function.start <= address);
        self.functions.get(after.checked_sub(1)?).filter(|function| address < function.end).cloned()
    }
}

/// The end of the name of a cold part, which is entered by jumps from the rest of its function.
const COLD: &[u8] = b".cold";

/// True if an ELF file has symbols of cold parts. To search all names at once takes a tenth of the time that reading each does.
fn has_cold_parts(file: &object::File<'_>) -> bool {
    let names = [".strtab", ".dynstr"].into_iter().filter_map(|name| file.section_by_name(name)?.data().ok());
    let search = memchr::memmem::Finder::new(COLD);
    names.into_iter().any(|names| search.find(names).is_some())
}

/// Returns the ranges of the functions that an ELF file has symbols of, sorted.
pub(super) fn read_functions(elf: &Elf) -> Vec<Range<u64>> {
    let Ok(file) = object::File::parse(&**elf.bytes()) else { return Vec::new() };
    let has_parts = has_cold_parts(&file);
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let functions = symbols.filter(|symbol| {
        let is_function = symbol.kind() == SymbolKind::Text && symbol.address() > 0;
        is_function && !(has_parts && symbol.name_bytes().is_ok_and(|name| name.ends_with(COLD)))
    });
    let mut functions: Vec<(u64, u64)> = functions.map(|symbol| (symbol.address(), symbol.size())).collect();
    // Of several symbols at one address, the one with the largest size comes last.
    functions.sort_unstable();
    let next = functions[1.min(functions.len())..].iter().map(|next| next.0).chain([u64::MAX]);
    let ranges = functions.iter().zip(next).filter(|((start, _), next)| start < next);
    ranges
        .map(|((start, size), next)| *start..if *size == 0 { next } else { start.saturating_add(*size).min(next) })
        .collect()
}

/// Code that a process has generated.
pub(super) struct ProcessCode<'a> {
    snapshot: ProcessSnapshot<'a>,
    start: u64,
    bytes: [u8; 256],
    length: usize,
}

impl<'a> ProcessCode<'a> {
    pub(super) fn new(snapshot: ProcessSnapshot<'a>) -> Self {
        Self { snapshot, start: 0, bytes: [0; 256], length: 0 }
    }
}

impl ReadInstructions for ProcessCode<'_> {
    fn read(&mut self, address: u64) -> &[u8] {
        let offset = address.wrapping_sub(self.start);
        if offset.saturating_add(MAX_INSTRUCTION as u64) > self.length as u64 {
            self.length = self.snapshot.read_generated_code(address, &mut self.bytes);
            self.start = address;
        }
        &self.bytes[(address - self.start) as usize..self.length]
    }

    fn find_function(&mut self, _: u64) -> Option<Range<u64>> {
        None
    }
}
