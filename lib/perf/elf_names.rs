//! The names in an object: its symbols, its stubs, and what its debug information says.

use object::{Object as _, ObjectSymbol as _};

use super::debug_file::{Found, Search};
use super::debug_information::{DebugInformation, Function};
use super::demangle::Demangler;
use super::object::{Elf, bytes_to_path};
use super::plt::Plt;
use super::symbolize::{NamedFrame, Options};
use super::symbols::{Entry, SymbolTable, Visibility};

/// Names the places at addresses, in ascending order, of an object; outermost frames first; none where nothing is known.
/// And what the user should know.
pub fn frames(elf: &Elf, addresses: &[u64], options: &Options) -> (Vec<Vec<NamedFrame>>, Vec<String>) {
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
            addresses.iter().map(|address| names.frames(*address, options)).collect()
        }
        Err(_) => vec![Vec::new(); addresses.len()],
    };
    (frames, search.into_remarks())
}

/// Whether a file lacks something that its debug file may have.
fn lacks(file: &object::File<'_>, options: &Options) -> bool {
    let wants_debug = options.inline || options.lines;
    file.symbols().next().is_none() || (wants_debug && file.section_by_name(".debug_info").is_none())
}

/// The names in an object.
struct Names<'a> {
    table: SymbolTable<'a>,
    plt: Plt,
    debug: Option<DebugInformation<'a>>,
    demangler: Demangler,
}

impl<'a> Names<'a> {
    /// Those of the file itself and, where it was stripped, of its debug file.
    fn symbols(file: &object::File<'a>, debug_file: Option<&object::File<'a>>, addresses: &[u64]) -> Self {
        let has_functions = |file: &&object::File<'a>| functions(file.symbols()).next().is_some();
        let all = || -> Box<dyn Iterator<Item = Entry<'a>> + '_> {
            match [Some(file), debug_file].into_iter().flatten().find(has_functions) {
                Some(file) => Box::new(functions(file.symbols())),
                None => Box::new(functions(file.dynamic_symbols())),
            }
        };
        let table = SymbolTable::covering(all(), addresses);
        let stubs = Plt::is_hit(file, addresses).then(|| Plt::read(file, &SymbolTable::new(all().collect())));
        Self { table, plt: stubs.unwrap_or_default(), debug: None, demangler: Demangler::default() }
    }

    /// The frames at an address, outermost first.
    fn frames(&self, address: u64, options: &Options) -> Vec<NamedFrame> {
        let symbol = self.symbol(address);
        let Some(debug) = &self.debug else { return Vec::from_iter(symbol) };
        if !options.inline {
            let source = debug.source(address);
            return symbol.map(|symbol| NamedFrame { source, ..symbol }).into_iter().collect();
        }
        let inlined = |Function { name, source }| NamedFrame {
            name: self.demangler.demangle(&name),
            known: true,
            inlined: true,
            offset: None,
            source,
        };
        let mut frames: Vec<_> = debug.functions(address, options.lines).into_iter().map(inlined).collect();
        match (frames.last_mut(), symbol) {
            // The symbol tells more than the debug information: `parse.cold` and not `parse`.
            (Some(last), Some(symbol)) => *last = NamedFrame { source: last.source.take(), ..symbol },
            (Some(last), None) => last.inlined = false,
            (None, symbol) => frames.extend(symbol),
        }
        frames.retain(|frame| !frame.name.is_empty());
        frames.reverse();
        frames
    }

    fn symbol(&self, address: u64) -> Option<NamedFrame> {
        let (start, name) = match (self.plt.find(address), self.table.find(address)) {
            (Some((start, name)), _) => (start, name.to_vec()),
            (None, Some(symbol)) => (symbol.start, self.demangler.demangle(symbol.name)),
            (None, None) => return None,
        };
        Some(NamedFrame { name, known: true, inlined: false, offset: Some(address - start), source: None })
    }
}

/// The functions among symbols, and what may be some.
fn functions<'a, 'file>(symbols: impl Iterator<Item = object::Symbol<'a, 'file>>) -> impl Iterator<Item = Entry<'a>>
where
    'a: 'file,
{
    symbols
        .filter(|symbol| {
            symbol.is_definition() || (symbol.kind() == object::SymbolKind::Unknown && !symbol.is_undefined())
        })
        .filter(|symbol| matches!(symbol.kind(), object::SymbolKind::Text | object::SymbolKind::Unknown))
        .filter_map(|symbol| {
            let name = symbol.name_bytes().ok().filter(|name| !name.is_empty() && !name.starts_with(b"$"))?;
            let visibility = match (symbol.is_weak(), symbol.is_global()) {
                (true, _) => Visibility::Weak,
                (false, true) => Visibility::Global,
                (false, false) => Visibility::Local,
            };
            Some(Entry { address: symbol.address(), size: symbol.size(), name, visibility })
        })
}
