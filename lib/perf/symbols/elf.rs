//! Frames of code in ELF files: by symbols, PLT stubs, debug information and the function table of Go programs.

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

use super::debug_file::{DebugFile, DebugFileSearch};
use super::dwarf::{DebugInfo, SourceFunction};
use super::frame::{AddressFrames, NamedFrame, SymbolizeOptions};
use super::go::GoFunctions;
use super::plt::{Callee, Plt};
use super::table::{Binding, Entry, SymbolTable, SymbolTableBuilder};
use crate::perf::objects::elf_symbols::{CodeKind, CodeSymbol, Table, for_each_code_symbol, symbol_at};
use crate::perf::objects::mapped_file::bytes_to_path;
use crate::perf::objects::object::Elf;
use crate::symbol_name::demangle::Demangler;

/// Returns the frames of `addresses` in an ELF file, and warnings. The addresses must be in ascending order. Addresses
/// without a symbol have no frames.
pub fn find_frames(elf: &Elf, addresses: &[u64], options: &SymbolizeOptions) -> (AddressFrames, Vec<String>) {
    let path = bytes_to_path(elf.path());
    let search = DebugFileSearch::new(&path, elf.root(), options.debuginfod);
    let frames = match object::File::parse(&**elf.bytes()) {
        Ok(file) => {
            let found = needs_debug_file(&file, options).then(|| search.find_debug_file(&file)).flatten();
            let debug_file = found.as_ref().and_then(|found| object::File::parse(&*found.bytes).ok());
            let debug_path = found.as_ref().map_or(&path, |DebugFile { path, .. }| path);
            let mut names = ElfNames::read_symbols(&file, debug_file.as_ref(), addresses);
            if options.inline || options.lines {
                let files = debug_file.iter().chain([&file]);
                names.debug_info = files.into_iter().find_map(|file| DebugInfo::load(file, debug_path, &search));
            }
            // Debug information has more of the names of generic functions, and knows C code too.
            names.go = if names.debug_info.is_none() { GoFunctions::load(elf.bytes()) } else { None };
            names.find_frames(addresses, options)
        }
        Err(_) => AddressFrames::without_frames(addresses.len()),
    };
    (frames, search.into_warnings())
}

/// Returns true if a file lacks symbols or debug information that are wanted.
fn needs_debug_file(file: &object::File<'_>, options: &SymbolizeOptions) -> bool {
    let wants_debug_info = options.inline || options.lines;
    file.symbols().next().is_none() || (wants_debug_info && file.section_by_name(".debug_info").is_none())
}

/// All sources of names for the code of an ELF file.
struct ElfNames<'a> {
    symbols: SymbolTable<'a>,
    plt: Plt<'a>,
    debug_info: Option<DebugInfo<'a>>,
    /// The functions of a Go program without debug information.
    go: Option<GoFunctions<'a>>,
    demangler: Demangler,
}

/// A symbol or a PLT stub.
#[derive(Clone, Copy)]
struct NamedCode<'a> {
    start: u64,
    mangled_name: &'a [u8],
    /// The text after the demangled name: `@plt` for stubs, else empty.
    suffix: &'static [u8],
}

impl<'a> ElfNames<'a> {
    /// Reads the symbols and stubs that cover `addresses`: from `.symtab` of the file or, if that is stripped, of its
    /// debug file, or else those of `.dynsym` that have a size.
    fn read_symbols(file: &object::File<'a>, debug_file: Option<&object::File<'a>>, addresses: &[u64]) -> Self {
        let plt = Plt::read(file, addresses);
        let mut wanted = addresses.to_vec();
        wanted.extend(plt.local_callees());
        wanted.sort_unstable();
        let mut symbols = SymbolTableBuilder::new(&wanted);
        add_functions(file, Table::All, &mut symbols);
        if let Some(file) = debug_file.filter(|_| symbols.is_empty()) {
            add_functions(file, Table::All, &mut symbols);
        }
        if symbols.is_empty() {
            add_functions(file, Table::Dynamic, &mut symbols);
        }
        Self { symbols: symbols.finish(), plt, debug_info: None, go: None, demangler: Demangler::default() }
    }

    /// Returns the frames of `addresses`, which must be in ascending order.
    fn find_frames(&self, addresses: &[u64], options: &SymbolizeOptions) -> AddressFrames {
        let mut frames = AddressFrames::default();
        for address in addresses {
            let code = self.find_code(*address);
            if let Some(debug_info) = &self.debug_info {
                frames.push(self.add_debug_info(debug_info, *address, code.map(|code| self.to_frame(code)), options));
            } else if let Some(go) = self.go.as_ref().and_then(|go| go.find_frames(*address, options)) {
                frames.push(self.name_by_symbol(go, code));
            } else if !code.is_some_and(|code| frames.repeat_last(code.start)) {
                frames.push(code.map(|code| self.to_frame(code)).into_iter().collect());
            }
        }
        frames
    }

    /// Adds the source line and inlined functions at an address to the frame of its symbol. Returns the frames,
    /// outermost first.
    fn add_debug_info(
        &self,
        debug_info: &DebugInfo<'a>,
        address: u64,
        symbol: Option<NamedFrame>,
        options: &SymbolizeOptions,
    ) -> Vec<NamedFrame> {
        if !options.inline {
            let source = debug_info.find_source(address);
            return symbol.map(|symbol| NamedFrame { source, ..symbol }).into_iter().collect();
        }
        let functions = debug_info.find_functions(address, options.lines);
        let mut frames: Vec<_> = functions.into_iter().map(|function| self.to_inlined_frame(function)).collect();
        match (frames.last_mut(), symbol) {
            // The symbol is more precise than the debug information: `parse.cold` instead of `parse`.
            (Some(last), Some(symbol)) => *last = NamedFrame { source: last.source.take(), ..symbol },
            (Some(last), None) => last.is_inlined = false,
            (None, symbol) => frames.extend(symbol),
        }
        frames.retain(|frame| !frame.name.is_empty());
        frames.reverse();
        frames
    }

    /// Gives the outermost of the frames of a Go function the name of its symbol, if it has one. Symbols tell the
    /// instances of generic functions and the ABI.
    fn name_by_symbol(&self, mut frames: Vec<NamedFrame>, code: Option<NamedCode<'a>>) -> Vec<NamedFrame> {
        if let (Some(frame), Some(code)) = (frames.first_mut(), code)
            && frame.start == Some(code.start)
        {
            frame.name = self.to_frame(code).name;
        }
        frames
    }

    /// Returns the PLT stub or symbol that covers an address.
    fn find_code(&self, address: u64) -> Option<NamedCode<'a>> {
        self.find_stub(address).or_else(|| {
            let symbol = self.symbols.find(address)?;
            Some(NamedCode { start: symbol.start, mangled_name: symbol.name, suffix: b"" })
        })
    }

    fn find_stub(&self, address: u64) -> Option<NamedCode<'a>> {
        let (start, callee) = self.plt.find(address)?;
        let mangled_name = match callee {
            Callee::Symbol(name) => name,
            Callee::Local(function) => self.symbols.find(function)?.name,
        };
        Some(NamedCode { start, mangled_name, suffix: b"@plt" })
    }

    fn to_frame(&self, code: NamedCode<'a>) -> NamedFrame {
        NamedFrame::from_symbol([&self.demangler.demangle(code.mangled_name), code.suffix].concat(), code.start)
    }

    fn to_inlined_frame(&self, SourceFunction { mangled_name, source }: SourceFunction) -> NamedFrame {
        let name = self.demangler.demangle(&mangled_name);
        NamedFrame { name, has_symbol: true, is_inlined: true, start: None, source, is_script: false }
    }
}

/// Adds the functions of a symbol table.
fn add_functions<'a>(file: &object::File<'a>, table: Table, symbols: &mut SymbolTableBuilder<'a, '_>) {
    for_each_code_symbol(file, table, |CodeSymbol { index, address, size, kind, is_undefined }| {
        // A dynamic symbol without a size would cover the functions behind it whose symbols were stripped.
        if is_undefined || kind == CodeKind::Resolver || table == Table::Dynamic && size == 0 {
            return;
        }
        symbols.add(address, || {
            let symbol = symbol_at(file, table, index)?;
            // Names that begin with `$` are mapping symbols (`$x`, `$d`).
            let name = symbol.name_bytes().ok().filter(|name| !name.is_empty() && !name.starts_with(b"$"))?;
            let binding = match (symbol.is_weak(), symbol.is_global()) {
                (true, _) => Binding::Weak,
                (false, true) => Binding::Global,
                (false, false) => Binding::Local,
            };
            let is_code = match kind {
                CodeKind::Function => symbol.is_definition(),
                _ => is_in_executable_section(file, &symbol),
            };
            is_code.then_some(Entry { address, size, name, binding })
        });
    });
}

/// Returns true if a label marks code, like `_start`. Labels in data, like `GCC_except_table1`, have no size and would
/// extend to the first function.
fn is_in_executable_section(file: &object::File<'_>, symbol: &object::Symbol<'_, '_>) -> bool {
    let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
    section.is_some_and(|section| match section.flags() {
        object::SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(object::elf::SHF_EXECINSTR),
        _ => false,
    })
}
