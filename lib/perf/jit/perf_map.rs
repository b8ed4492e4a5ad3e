//! The map of its own code that a just-in-time compiler leaves in `/tmp/perf-PID.map`: lines of `START SIZE NAME`, in
//! hexadecimal. A later line replaces an earlier one for the same place.

use rustc_hash::FxHashMap;

use crate::bytes::parse_hex;
use crate::perf::symbols::table::{Entry, SymbolTable, Visibility};

/// The functions in the text at some addresses, in ascending order.
pub fn parse<'a>(text: &'a [u8], wanted: &[u64]) -> SymbolTable<'a> {
    let mut newest: FxHashMap<u64, Entry<'_>> = FxHashMap::default();
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(entry) = parse_line(line) {
            newest.insert(entry.address, entry);
        }
    }
    SymbolTable::of(wanted, newest.into_values())
}

fn parse_line(line: &[u8]) -> Option<Entry<'_>> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let address = parse_address(words.next()?)?;
    let size = parse_address(words.next()?)?;
    let name = words.next()?;
    let name = name.strip_suffix(b"\r").unwrap_or(name);
    Some(Entry { address, size, name, visibility: Visibility::Global })
}

fn parse_address(digits: &[u8]) -> Option<u64> {
    parse_hex(digits.strip_prefix(b"0x").unwrap_or(digits))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_last_line_for_a_place_counts() {
        let table = super::parse(
            b"1000 20 LazyCompile:~f a.js:1\nnonsense\n1000 20 LazyCompile:*f a.js:1\n2000 8 g\n",
            &[0x1010, 0x1020],
        );
        assert_eq!(table.find(0x1010).unwrap().name, b"LazyCompile:*f a.js:1");
        assert_eq!(table.find(0x1020), None);
    }
}
