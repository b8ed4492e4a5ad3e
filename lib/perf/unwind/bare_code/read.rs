//! Reads the machine code of ELF files and of processes for the search of paths.

use std::ops::Range;

use object::{ObjectSymbol as _, SymbolIndex};
use rustc_hash::FxHashMap;

use crate::perf::objects::elf_symbols::{CodeKind, CodeSymbol, Table, for_each_code_symbol, symbol_at};
use crate::perf::objects::object::Elf;
use crate::perf::unwind::code_paths::{MAX_INSTRUCTION, ReadInstructions};
use crate::perf::unwind::snapshot::ProcessSnapshot;

/// The code of an ELF file. Addresses are those of the file.
pub(super) struct FileCode<'a> {
    pub(super) elf: &'a Elf,
    pub(super) functions: &'a mut FileFunctions,
}

impl ReadInstructions for FileCode<'_> {
    fn read(&mut self, address: u64) -> &[u8] {
        self.elf.code_from(address)
    }

    fn find_function(&mut self, address: u64) -> Option<Range<u64>> {
        self.functions.find(self.elf, address)
    }
}

/// The size of the windows of code whose functions are read together.
///
/// In most objects, little code is without unwind information: some functions of glibc, the ends of destructors, the linkage
/// table. rustc's libraries have 145,000 and 220,000 symbols. Of the CPU time of a recording of cargo, windows take 24 ms; to read
/// and sort all took 49 ms (`fg-record -F 3989 -- fg-record -F 997 -- cargo build --release`).
const WINDOW: u64 = 1 << 22;

/// The largest function that may begin before a window, in bytes.
const MAX_FUNCTION: u64 = 1 << 20;

/// The functions that an ELF file has symbols of, as far as they were asked for.
#[derive(Debug, Default)]
pub(super) struct FileFunctions {
    /// Sorted, by the number of the window.
    windows: FxHashMap<u64, Vec<Range<u64>>>,
}

impl FileFunctions {
    /// Returns the function whose symbol covers an address.
    pub(super) fn find(&mut self, elf: &Elf, address: u64) -> Option<Range<u64>> {
        let number = address / WINDOW;
        let start = number * WINDOW;
        let functions =
            self.windows.entry(number).or_insert_with(|| read_functions(elf, start..start.saturating_add(WINDOW)));
        let after = functions.partition_point(|function| function.start <= address);
        functions.get(after.checked_sub(1)?).filter(|function| address < function.end).cloned()
    }
}

/// The end of the name of a cold part, which is entered by jumps from the rest of its function.
const COLD: &[u8] = b".cold";

/// Returns the ranges of the functions that an ELF file has symbols of, sorted: of those that have code in a window.
fn read_functions(elf: &Elf, window: Range<u64>) -> Vec<Range<u64>> {
    let Ok(file) = object::File::parse(&**elf.bytes()) else { return Vec::new() };
    let first = window.start.saturating_sub(MAX_FUNCTION).max(1);
    let (mut functions, mut after) = (Vec::new(), u64::MAX);
    for table in [Table::All, Table::Dynamic] {
        for_each_code_symbol(&file, table, |CodeSymbol { index, address, size, kind, .. }| {
            // Names are long, and read last.
            if !(first..after).contains(&address) || kind == CodeKind::Label || is_cold_part(&file, table, index) {
                return;
            }
            if address < window.end {
                functions.push((address, size));
            } else {
                after = address;
            }
        });
    }
    // Of several symbols at one address, the one with the largest size comes last.
    functions.sort_unstable();
    let next = functions[1.min(functions.len())..].iter().map(|next| next.0).chain([after]);
    let ranges = functions.iter().zip(next).filter(|((start, _), next)| start < next);
    ranges
        .map(|((start, size), next)| *start..if *size == 0 { next } else { start.saturating_add(*size).min(next) })
        .collect()
}

fn is_cold_part(file: &object::File<'_>, table: Table, index: SymbolIndex) -> bool {
    symbol_at(file, table, index).is_some_and(|symbol| symbol.name_bytes().is_ok_and(|name| name.ends_with(COLD)))
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{FileFunctions, WINDOW, read_functions};
    use crate::perf::objects::object::{Bytes, Elf};

    #[test]
    fn a_window_has_the_functions_of_the_file() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::parse(Vec::new(), Bytes::Copied(program.into())).unwrap();
        let all = read_functions(&elf, 0..u64::MAX);
        let (first, last) = (all[0].start, all[all.len() - 1].start);
        assert!(all.len() > 1000 && last - first > WINDOW);
        let mut functions = FileFunctions::default();
        for address in (first - 64..last + 64).step_by(61) {
            let after = all.partition_point(|function| function.start <= address);
            let expected = after.checked_sub(1).map(|last| &all[last]);
            let expected = expected.filter(|function| address < function.end).cloned();
            assert_eq!(functions.find(&elf, address), expected, "{address:x}");
        }
        assert!(functions.windows.len() > 1);
    }
}
