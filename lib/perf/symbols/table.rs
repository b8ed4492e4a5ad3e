//! A table that maps addresses to symbols.

/// A function's address range and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// The name, still mangled.
    pub name: &'a [u8],
}

/// An entry of an object's symbol table.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The first address.
    pub address: u64,
    /// The size in bytes; 0 if unknown: the symbol then ends at the next one.
    pub size: u64,
    /// The name, still mangled.
    pub name: &'a [u8],
    /// The binding, which decides between several symbols at one address.
    pub binding: Binding,
}

/// The binding of a symbol (ELF's `STB_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Another symbol of the same name may replace it.
    Weak,
    /// Visible within its file.
    Local,
    /// Visible in all files.
    Global,
}

/// The symbols that cover a given list of addresses.
///
/// A recording hits about one symbol in a hundred, so the table stores these alone: the others cost neither time nor
/// memory.
#[derive(Debug, Default)]
pub struct SymbolTable<'a> {
    /// In ascending order of their starts.
    symbols: Vec<Symbol<'a>>,
}

/// Builds a [`SymbolTable`] from the entries of an object's symbol table.
#[derive(Debug)]
pub struct SymbolTableBuilder<'a, 'w> {
    /// The addresses to look up later, in ascending order.
    addresses: &'w [u64],
    /// For each address, the last symbol that starts at it or between it and the previous address.
    nearest: Vec<Option<Entry<'a>>>,
    /// The index in `nearest` where the latest symbol belongs.
    latest: usize,
    has_symbols: bool,
}

impl<'a, 'w> SymbolTableBuilder<'a, 'w> {
    /// Creates a builder for `addresses`, which must be in ascending order.
    pub fn new(addresses: &'w [u64]) -> Self {
        Self { addresses, nearest: vec![None; addresses.len()], latest: 0, has_symbols: false }
    }

    /// Adds a symbol that starts at `address`.
    ///
    /// `read_entry` is called only if the symbol may cover one of the addresses. It returns `None` if the entry is not
    /// a function after all.
    #[inline]
    pub fn add(&mut self, address: u64, read_entry: impl FnOnce() -> Option<Entry<'a>>) {
        // Symbol tables are almost sorted, so most symbols belong where the previous one did.
        if !self.belongs_at(self.latest, address) {
            self.latest = self.addresses.partition_point(|wanted| *wanted < address);
        }
        let index = self.latest;
        let is_nearest =
            self.nearest.get(index).is_some_and(|nearest| nearest.is_none_or(|nearest| nearest.address <= address));
        if (is_nearest || !self.has_symbols)
            && let Some(entry) = read_entry()
        {
            self.has_symbols = true;
            if let Some(nearest) = self.nearest.get_mut(index).filter(|_| is_nearest)
                && nearest.is_none_or(|nearest| nearest.address < address || rank(&entry) > rank(&nearest))
            {
                *nearest = Some(entry);
            }
        }
    }

    /// Returns true if `index` is that of the first address that is not below a symbol's start.
    fn belongs_at(&self, index: usize, start: u64) -> bool {
        let (before, after) = self.addresses.split_at(index);
        before.last().is_none_or(|last| *last < start) && after.first().is_none_or(|first| *first >= start)
    }

    /// Returns true if no symbol was added, not even one that covers none of the addresses.
    pub fn is_empty(&self) -> bool {
        !self.has_symbols
    }

    /// Returns the table.
    pub fn finish(self) -> SymbolTable<'a> {
        SymbolTable { symbols: self.nearest.into_iter().flatten().map(Symbol::from).collect() }
    }
}

impl<'a> From<Entry<'a>> for Symbol<'a> {
    fn from(Entry { address, size, name, .. }: Entry<'a>) -> Self {
        // A symbol without a size ends at the next one. No address that finds this symbol lies beyond the next one's
        // start, so the end needs no limit.
        let end = if size == 0 { u64::MAX } else { address.saturating_add(size) };
        Self { start: address, end, name }
    }
}

impl<'a> SymbolTable<'a> {
    /// Builds the table of the entries that cover `addresses`, which must be in ascending order.
    pub fn from_entries(addresses: &[u64], entries: impl IntoIterator<Item = Entry<'a>>) -> Self {
        let mut builder = SymbolTableBuilder::new(addresses);
        for entry in entries {
            builder.add(entry.address, || Some(entry));
        }
        builder.finish()
    }

    /// Returns all symbols, in ascending order of their starts.
    pub fn symbols(&self) -> &[Symbol<'a>] {
        &self.symbols
    }

    /// Returns the symbol that covers `address`, which must be one that the table was built for.
    pub fn find(&self, address: u64) -> Option<Symbol<'a>> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= address);
        let symbol = *self.symbols.get(after.checked_sub(1)?)?;
        (address < symbol.end).then_some(symbol)
    }
}

/// Returns the rank of a symbol among those at the same address. The symbol with the highest rank names the function;
/// if several have it, the first one does.
///
/// The rules are those of perf (`choose_best_symbol` in `symbol.c`), so that both show the same names: prefer a symbol
/// with a size, then one that is not weak, then a global one, then fewer leading underscores, then a longer name.
///
/// Two kinds of names still differ from perf's:
/// - Of several kernel symbols at one address, perf gives a size only to the last, before it applies these rules. It
///   therefore prints `__pi_memcpy` where we print `memcpy`.
/// - perf prints the version that linkers append to names in `.symtab` (`free@@GLIBC_2.2.5`). Here all versions of a
///   function are one frame.
fn rank(entry: &Entry<'_>) -> (bool, bool, bool, usize, usize) {
    let underscores = entry.name.iter().take_while(|byte| **byte == b'_').count();
    (
        entry.size > 0,
        entry.binding != Binding::Weak,
        entry.binding == Binding::Global,
        usize::MAX - underscores,
        entry.name.len(),
    )
}

#[cfg(test)]
mod tests {
    use super::{Binding, Entry, SymbolTable};

    const ADDRESSES: [u64; 6] = [99, 105, 109, 110, 139, 145];

    fn entry(address: u64, size: u64, name: &'static str, binding: Binding) -> Entry<'static> {
        Entry { address, size, name: name.as_bytes(), binding }
    }

    #[test]
    fn ends_a_symbol_by_its_size_or_at_the_next_symbol() {
        let table = SymbolTable::from_entries(
            &ADDRESSES,
            [
                entry(100, 10, "sized", Binding::Global),
                entry(120, 0, "_start", Binding::Global),
                entry(140, 5, "after", Binding::Local),
            ],
        );
        let names =
            ADDRESSES.map(|address| table.find(address).map(|symbol| std::str::from_utf8(symbol.name).unwrap()));
        assert_eq!(names, [None, Some("sized"), Some("sized"), None, Some("_start"), None]);
    }

    #[test]
    fn prefers_the_name_that_perf_prefers() {
        let table = SymbolTable::from_entries(
            &ADDRESSES,
            [
                entry(100, 10, "__libc_free", Binding::Global),
                entry(100, 10, "cfree", Binding::Weak),
                entry(100, 10, "free", Binding::Global),
            ],
        );
        assert_eq!(table.find(105).unwrap().name, b"free");
        let locals = ["__GI___openat", "__libc_openat64", "__openat64", "__GI___openat64"];
        let locals = locals.map(|name| entry(100, 10, name, Binding::Local));
        let weak = [entry(100, 10, "openat64", Binding::Weak)];
        let table = SymbolTable::from_entries(&ADDRESSES, locals.into_iter().chain(weak));
        assert_eq!(table.find(105).unwrap().name, b"__libc_openat64");
    }
}
