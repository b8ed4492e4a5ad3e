//! A table of symbols: which function an address belongs to.

/// A function's place and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// Its name, as it stands in the table.
    pub name: &'a [u8],
}

/// A symbol as a table lists it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its address.
    pub address: u64,
    /// Its size; 0 if not known: it then reaches to the next one.
    pub size: u64,
    /// Its name.
    pub name: &'a [u8],
    /// How visible it is; of several names for one place the most visible is taken.
    pub visibility: Visibility,
}

/// How visible a symbol is, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// May be replaced by another of its name.
    Weak,
    /// Seen within its file.
    Local,
    /// Seen everywhere.
    Global,
}

/// Symbols by address: of all that an object has only those that matter to the addresses that are asked about. Most
/// objects have a hundred times as many, and neither time nor room is to be spent on them.
#[derive(Debug, Default)]
pub struct SymbolTable<'a> {
    symbols: Vec<Symbol<'a>>,
}

/// A table in the making.
#[derive(Debug)]
pub struct Selection<'a, 'w> {
    /// In ascending order.
    wanted: &'w [u64],
    /// For each of these, the last symbol that starts there or, if so, between it and the one before.
    last: Vec<Option<Entry<'a>>>,
    /// Where among these the symbol stands that was added last.
    first: usize,
    has_seen_any: bool,
}

impl<'a, 'w> Selection<'a, 'w> {
    /// For these addresses, in ascending order.
    pub fn new(wanted: &'w [u64]) -> Self {
        Self { wanted, last: vec![None; wanted.len()], first: 0, has_seen_any: false }
    }

    /// Takes in a symbol that starts at an address; what else there is to it is asked for only if that matters. `None` if
    /// it is no symbol after all.
    #[inline]
    pub fn add(&mut self, address: u64, entry: impl FnOnce() -> Option<Entry<'a>>) {
        let is_first = |at: usize| {
            let (before, after) = self.wanted.split_at(at);
            before.last().is_none_or(|last| *last < address) && after.first().is_none_or(|first| *first >= address)
        };
        // Tables are in order, or nearly so.
        if !is_first(self.first) {
            self.first = self.wanted.partition_point(|wanted| *wanted < address);
        }
        let first = self.first;
        let matters = self.last.get(first).is_some_and(|last| last.is_none_or(|last| last.address <= address));
        if (matters || !self.has_seen_any)
            && let Some(entry) = entry()
        {
            self.has_seen_any = true;
            if let Some(last) = self.last.get_mut(first).filter(|_| matters)
                && last.is_none_or(|last| last.address < address || merit(&entry) > merit(&last))
            {
                *last = Some(entry);
            }
        }
    }

    /// Whether there was no symbol at all.
    pub fn is_empty(&self) -> bool {
        !self.has_seen_any
    }

    /// The table.
    pub fn finish(self) -> SymbolTable<'a> {
        let symbol = |Entry { address, size, name, .. }| {
            // One without a size reaches to the next, which is not before any address that finds this one.
            let end = if size == 0 { u64::MAX } else { address.saturating_add(size) };
            Symbol { start: address, end, name }
        };
        SymbolTable { symbols: self.last.into_iter().flatten().map(symbol).collect() }
    }
}

impl<'a> SymbolTable<'a> {
    /// Of these symbols.
    pub fn of(wanted: &[u64], entries: impl IntoIterator<Item = Entry<'a>>) -> Self {
        let mut selection = Selection::new(wanted);
        for entry in entries {
            selection.add(entry.address, || Some(entry));
        }
        selection.finish()
    }

    /// The symbol that covers an address, which is one of those that the table was made for.
    pub fn find(&self, address: u64) -> Option<Symbol<'a>> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= address);
        let symbol = *self.symbols.get(after.checked_sub(1)?)?;
        (address < symbol.end).then_some(symbol)
    }
}

/// What makes one of several names for one place the better: perf's rules (`choose_best_symbol` in its `symbol.c`), so that
/// a function has the same name here and there: with a size, not weak, global, fewer leading underscores, longer. Of equals
/// the first in the table stays.
///
/// Two names are not perf's. It gives a size to the last of several kernel symbols at one address alone, before these rules
/// are asked: `__pi_memcpy`, which is `memcpy` here. And it prints the version that a linker wrote behind a name in `.symtab`,
/// `free@@GLIBC_2.2.5`: here all versions of a function are one frame.
fn merit(entry: &Entry<'_>) -> (bool, bool, bool, usize, usize) {
    let underscores = entry.name.iter().take_while(|byte| **byte == b'_').count();
    (
        entry.size > 0,
        entry.visibility != Visibility::Weak,
        entry.visibility == Visibility::Global,
        usize::MAX - underscores,
        entry.name.len(),
    )
}

#[cfg(test)]
mod tests {
    use super::{Entry, SymbolTable, Visibility};

    const WANTED: [u64; 6] = [99, 105, 109, 110, 139, 145];

    fn entry(address: u64, size: u64, name: &'static str, visibility: Visibility) -> Entry<'static> {
        Entry { address, size, name: name.as_bytes(), visibility }
    }

    #[test]
    fn sizes_are_honoured_and_missing_ones_reach_to_the_next() {
        let table = SymbolTable::of(
            &WANTED,
            [
                entry(100, 10, "sized", Visibility::Global),
                entry(120, 0, "_start", Visibility::Global),
                entry(140, 5, "after", Visibility::Local),
            ],
        );
        let name = |address| table.find(address).map(|symbol| std::str::from_utf8(symbol.name).unwrap());
        assert_eq!(name(99), None);
        assert_eq!(name(109), Some("sized"));
        assert_eq!(name(110), None);
        assert_eq!(name(139), Some("_start"));
        assert_eq!(name(145), None);
    }

    #[test]
    fn the_best_of_several_names_is_taken() {
        let table = SymbolTable::of(
            &WANTED,
            [
                entry(100, 10, "__libc_free", Visibility::Global),
                entry(100, 10, "cfree", Visibility::Weak),
                entry(100, 10, "free", Visibility::Global),
            ],
        );
        assert_eq!(table.find(105).unwrap().name, b"free");
        let locals = ["__GI___openat", "__libc_openat64", "__openat64", "__GI___openat64"];
        let locals = locals.map(|name| entry(100, 10, name, Visibility::Local));
        let weak = [entry(100, 10, "openat64", Visibility::Weak)];
        assert_eq!(
            SymbolTable::of(&WANTED, locals.into_iter().chain(weak)).find(105).unwrap().name,
            b"__libc_openat64"
        );
    }
}
