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

/// Symbols by address.
#[derive(Debug, Default)]
pub struct SymbolTable<'a> {
    symbols: Vec<Symbol<'a>>,
}

impl<'a> SymbolTable<'a> {
    /// Sorts the entries and keeps the best name of each place.
    pub fn new(mut entries: Vec<Entry<'a>>) -> Self {
        entries.sort_unstable_by(|a, b| a.address.cmp(&b.address).then_with(|| order(b, a)));
        entries.dedup_by_key(|entry| entry.address);
        let mut symbols = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let next = entries.get(index + 1).map_or(u64::MAX, |next| next.address);
            let end = if entry.size == 0 { next } else { entry.address.saturating_add(entry.size) };
            symbols.push(Symbol { start: entry.address, end, name: entry.name });
        }
        Self { symbols }
    }

    /// Of many entries, those alone that cover one of the addresses, which are in ascending order.
    pub fn covering(entries: impl Iterator<Item = Entry<'a>>, addresses: &[u64]) -> Self {
        // For each address the last entry before it, and not before the address that comes before.
        let mut last: Vec<Option<Entry<'a>>> = vec![None; addresses.len()];
        for entry in entries {
            let first = addresses.partition_point(|address| *address < entry.address);
            let Some(last) = last.get_mut(first) else { continue };
            if last.as_ref().is_none_or(|last| order(last, &entry).is_lt()) {
                *last = Some(entry);
            }
        }
        // What has no size reaches to the next one, and so over the addresses up to it.
        Self::new(last.into_iter().flatten().collect())
    }

    /// The symbol that covers an address.
    pub fn find(&self, address: u64) -> Option<Symbol<'a>> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= address);
        let symbol = *self.symbols.get(after.checked_sub(1)?)?;
        (address < symbol.end).then_some(symbol)
    }
}

/// The later, and of those at one place the better, is greater.
fn order(a: &Entry<'_>, b: &Entry<'_>) -> std::cmp::Ordering {
    a.address.cmp(&b.address).then_with(|| merit(a).cmp(&merit(b))).then_with(|| b.name.cmp(a.name))
}

/// Which of several names for one place is taken: perf's rules (`choose_best_symbol` in its `symbol.c`): with a size,
/// not weak, global, fewer leading underscores, longer.
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

    fn entry(address: u64, size: u64, name: &'static str, visibility: Visibility) -> Entry<'static> {
        Entry { address, size, name: name.as_bytes(), visibility }
    }

    #[test]
    fn sizes_are_honoured_and_missing_ones_reach_to_the_next() {
        let table = SymbolTable::new(vec![
            entry(100, 10, "sized", Visibility::Global),
            entry(120, 0, "_start", Visibility::Global),
            entry(140, 5, "after", Visibility::Local),
        ]);
        let name = |address| table.find(address).map(|symbol| std::str::from_utf8(symbol.name).unwrap());
        assert_eq!(name(99), None);
        assert_eq!(name(109), Some("sized"));
        assert_eq!(name(110), None);
        assert_eq!(name(139), Some("_start"));
        assert_eq!(name(145), None);
    }

    #[test]
    fn a_table_for_some_addresses_finds_for_them_what_the_whole_one_finds() {
        let entries = [(10, 5), (10, 0), (12, 0), (20, 3), (20, 9), (24, 2), (40, 0), (50, 1)];
        let entries: Vec<_> = entries
            .iter()
            .enumerate()
            .map(|(index, (address, size))| entry(*address, *size, ["a", "bb", "_c"][index % 3], Visibility::Global))
            .collect();
        let whole = SymbolTable::new(entries.clone());
        for addresses in [(0..60).collect::<Vec<u64>>(), vec![22, 45, 60], vec![11, 19], vec![9], vec![]] {
            let some = SymbolTable::covering(entries.iter().rev().copied(), &addresses);
            for address in addresses {
                assert_eq!(
                    some.find(address).map(|it| (it.start, it.name)),
                    whole.find(address).map(|it| (it.start, it.name))
                );
            }
        }
    }

    #[test]
    fn the_best_of_several_names_is_taken() {
        let table = SymbolTable::new(vec![
            entry(100, 10, "__libc_free", Visibility::Global),
            entry(100, 10, "cfree", Visibility::Weak),
            entry(100, 10, "free", Visibility::Global),
        ]);
        assert_eq!(table.find(105).unwrap().name, b"free");
    }
}
