//! The names in an object: its symbols, its stubs, and what its debug information says.

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

use super::debug_file::{Found, Search};
use super::dwarf::{DebugInformation, Function};
use super::frame::{AddressFrames, NamedFrame, SymbolizeOptions};
use super::plt::{Callee, Plt};
use super::table::{Entry, Selection, SymbolTable, Visibility};
use crate::perf::objects::mapped_file::bytes_to_path;
use crate::perf::objects::object::Elf;
use crate::symbol_name::demangle::Demangler;

/// Names the places at addresses, in ascending order, of an object; outermost frames first; none where nothing is known.
/// And what the user should know.
pub fn frames(elf: &Elf, addresses: &[u64], options: &SymbolizeOptions) -> (AddressFrames, Vec<String>) {
    let path = bytes_to_path(elf.path());
    let search = Search::new(&path, elf.root(), options.debuginfod);
    let frames = match object::File::parse(&**elf.bytes()) {
        Ok(file) => {
            let found = lacks(&file, options).then(|| search.debug_file(&file)).flatten();
            let debug_file = found.as_ref().and_then(|found| object::File::parse(&*found.bytes).ok());
            let debug_path = found.as_ref().map_or(&path, |Found { path, .. }| path);
            let mut names = Names::symbols(&file, debug_file.as_ref(), addresses);
            if options.inline || options.lines {
                names.debug =
                    debug_file.iter().chain([&file]).find_map(|file| DebugInformation::load(file, debug_path, &search));
            }
            names.all(addresses, options)
        }
        Err(_) => AddressFrames::without_frames(addresses.len()),
    };
    (frames, search.into_remarks())
}

/// Whether a file lacks something that its debug file may have.
fn lacks(file: &object::File<'_>, options: &SymbolizeOptions) -> bool {
    let wants_debug = options.inline || options.lines;
    file.symbols().next().is_none() || (wants_debug && file.section_by_name(".debug_info").is_none())
}

/// The names in an object.
struct Names<'a> {
    table: SymbolTable<'a>,
    plt: Plt<'a>,
    debug: Option<DebugInformation<'a>>,
    demangler: Demangler,
}

impl<'a> Names<'a> {
    /// Those of the file itself and, where it was stripped, of its debug file.
    fn symbols(file: &object::File<'a>, debug_file: Option<&object::File<'a>>, addresses: &[u64]) -> Self {
        let plt = Plt::read(file, addresses);
        let mut wanted = addresses.to_vec();
        wanted.extend(plt.own_functions());
        wanted.sort_unstable();
        let mut all = Selection::new(&wanted);
        add(file, file.symbols(), &mut all);
        if let Some(file) = debug_file.filter(|_| all.is_empty()) {
            add(file, file.symbols(), &mut all);
        }
        if all.is_empty() {
            add(file, file.dynamic_symbols(), &mut all);
        }
        Self { table: all.finish(), plt, debug: None, demangler: Demangler::default() }
    }

    /// The frames at addresses, in ascending order.
    fn all(&self, addresses: &[u64], options: &SymbolizeOptions) -> AddressFrames {
        let mut named = AddressFrames::default();
        for address in addresses {
            let symbol = self.symbol(*address);
            if self.debug.is_some() {
                named.push(self.frames(*address, symbol.map(|symbol| self.frame(symbol)), options));
            } else if !symbol.is_some_and(|(start, ..)| named.repeat_last(start)) {
                named.push(symbol.map(|symbol| self.frame(symbol)).into_iter().collect());
            }
        }
        named
    }

    /// The frames at an address, outermost first.
    fn frames(&self, address: u64, symbol: Option<NamedFrame>, options: &SymbolizeOptions) -> Vec<NamedFrame> {
        let Some(debug) = &self.debug else { return Vec::from_iter(symbol) };
        if !options.inline {
            let source = debug.source(address);
            return symbol.map(|symbol| NamedFrame { source, ..symbol }).into_iter().collect();
        }
        let inlined = |Function { name, source }| NamedFrame {
            name: self.demangler.demangle(&name),
            has_symbol: true,
            is_inlined: true,
            start: None,
            source,
        };
        let mut frames: Vec<_> = debug.functions(address, options.lines).into_iter().map(inlined).collect();
        match (frames.last_mut(), symbol) {
            // The symbol tells more than the debug information: `parse.cold` and not `parse`.
            (Some(last), Some(symbol)) => *last = NamedFrame { source: last.source.take(), ..symbol },
            (Some(last), None) => last.is_inlined = false,
            (None, symbol) => frames.extend(symbol),
        }
        frames.retain(|frame| !frame.name.is_empty());
        frames.reverse();
        frames
    }

    /// The symbol or stub at an address.
    fn symbol(&self, address: u64) -> Option<Symbolic<'a>> {
        let own = |address| self.table.find(address).map(|symbol| symbol.name);
        let stub = self.plt.find(address).and_then(|(start, callee)| {
            let name = match callee {
                Callee::Named(name) => name,
                Callee::Own(function) => own(function)?,
            };
            Some((start, name, &b"@plt"[..]))
        });
        stub.or_else(|| self.table.find(address).map(|symbol| (symbol.start, symbol.name, &b""[..])))
    }

    fn frame(&self, (start, name, suffix): Symbolic<'a>) -> NamedFrame {
        let name = [&self.demangler.demangle(name), suffix].concat();
        NamedFrame { name, has_symbol: true, is_inlined: false, start: Some(start), source: None }
    }
}

/// Where a symbol or stub starts, its name, mangled, and what is added to that.
type Symbolic<'a> = (u64, &'a [u8], &'static [u8]);

/// Adds the functions of an object's table.
fn add<'a, 'file>(
    file: &'file object::File<'a>,
    symbols: impl Iterator<Item = object::Symbol<'a, 'file>>,
    all: &mut Selection<'a, '_>,
) where
    'a: 'file,
{
    for symbol in symbols {
        let kind = symbol.kind();
        let is_label = kind == object::SymbolKind::Unknown && !symbol.is_undefined();
        let is_function = kind == object::SymbolKind::Text && symbol.is_definition();
        if !is_function && !is_label {
            continue;
        }
        let address = symbol.address();
        all.add(address, || {
            let name = symbol.name_bytes().ok().filter(|name| !name.is_empty() && !name.starts_with(b"$"))?;
            let visibility = match (symbol.is_weak(), symbol.is_global()) {
                (true, _) => Visibility::Weak,
                (false, true) => Visibility::Global,
                (false, false) => Visibility::Local,
            };
            let is_code = is_function || lies_in_code(file, &symbol);
            is_code.then_some(Entry { address, size: symbol.size(), name, visibility })
        });
    }
}

/// Whether a label marks code, as `_start` does: there are some in tables too, `GCC_except_table1`, that have no size and
/// would reach to the first function.
fn lies_in_code(file: &object::File<'_>, symbol: &object::Symbol<'_, '_>) -> bool {
    let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
    section.is_some_and(|section| match section.flags() {
        object::SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(object::elf::SHF_EXECINSTR),
        _ => false,
    })
}
