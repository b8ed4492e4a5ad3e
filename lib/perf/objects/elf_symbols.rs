//! The symbols of code in the tables of ELF files.
//!
//! Large libraries have some hundred thousand symbols, of which few are wanted. Addresses and types are read in place here; the
//! iterators of `object`, which also read files of other kinds, take several times as long.

use object::elf::{STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use object::read::elf::{FileHeader, Sym as _, SymbolTable};
use object::{Endianness, Object as _, ObjectSymbolTable as _, SymbolIndex};

/// The symbol tables of an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::perf) enum Table {
    /// `.symtab`: all symbols.
    All,
    /// `.dynsym`: those that other files use.
    Dynamic,
}

/// Returns a symbol of a table by its index.
pub(in crate::perf) fn symbol_at<'a, 'file>(
    file: &'file object::File<'a>,
    table: Table,
    index: SymbolIndex,
) -> Option<object::Symbol<'a, 'file>> {
    let symbols = match table {
        Table::All => file.symbol_table(),
        Table::Dynamic => file.dynamic_symbol_table(),
    };
    symbols?.symbol_by_index(index).ok()
}

/// The kinds of symbols of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::perf) enum CodeKind {
    Function,
    /// A function that returns the address of the one to call.
    Resolver,
    /// A symbol without a type: a function in assembler, or a label of data.
    Label,
}

/// A symbol of a function, or a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::perf) struct CodeSymbol {
    pub(in crate::perf) index: SymbolIndex,
    pub(in crate::perf) address: u64,
    pub(in crate::perf) size: u64,
    pub(in crate::perf) kind: CodeKind,
    /// True if the function is in another file. Its address may be that of a stub.
    pub(in crate::perf) is_undefined: bool,
}

/// Calls `visit` for each function and label in a table of a file, in the order of the table.
pub(in crate::perf) fn for_each_code_symbol(file: &object::File<'_>, table: Table, visit: impl FnMut(CodeSymbol)) {
    match (file, table) {
        (object::File::Elf64(file), Table::All) => scan(file.elf_symbol_table(), file.endian(), visit),
        (object::File::Elf64(file), Table::Dynamic) => scan(file.elf_dynamic_symbol_table(), file.endian(), visit),
        (object::File::Elf32(file), Table::All) => scan(file.elf_symbol_table(), file.endian(), visit),
        (object::File::Elf32(file), Table::Dynamic) => scan(file.elf_dynamic_symbol_table(), file.endian(), visit),
        _ => {}
    }
}

fn scan<H: FileHeader<Endian = Endianness>>(
    table: &SymbolTable<'_, H>,
    endian: Endianness,
    mut visit: impl FnMut(CodeSymbol),
) {
    // The first symbol is none.
    for (index, symbol) in table.symbols().iter().enumerate().skip(1) {
        let kind = match symbol.st_type() {
            STT_FUNC => CodeKind::Function,
            STT_GNU_IFUNC => CodeKind::Resolver,
            STT_NOTYPE => CodeKind::Label,
            _ => continue,
        };
        let (address, size) = (symbol.st_value(endian).into(), symbol.st_size(endian).into());
        let is_undefined = symbol.is_undefined(endian);
        visit(CodeSymbol { index: SymbolIndex(index), address, size, kind, is_undefined });
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use object::{Object as _, ObjectSymbol as _, SymbolKind};

    use super::{CodeKind, Table, for_each_code_symbol};

    #[test]
    fn symbols_are_those_of_object() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = object::File::parse(&*program).unwrap();
        for table in [Table::All, Table::Dynamic] {
            let mut found = Vec::new();
            for_each_code_symbol(&file, table, |symbol| found.push(symbol));
            let symbols = if table == Table::All { file.symbols() } else { file.dynamic_symbols() };
            let mut expected = symbols.filter(|symbol| matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown));
            for symbol in &found {
                let expected = expected.next().unwrap();
                assert_eq!(
                    (symbol.index, symbol.address, symbol.size),
                    (expected.index(), expected.address(), expected.size())
                );
                assert_eq!(symbol.kind == CodeKind::Label, expected.kind() == SymbolKind::Unknown);
                assert_eq!(symbol.is_undefined, expected.is_undefined());
            }
            assert!(expected.next().is_none() && (table == Table::Dynamic || found.len() > 1000));
        }
    }
}
