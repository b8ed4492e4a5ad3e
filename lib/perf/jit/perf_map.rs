//! Parses perf maps: the file `/tmp/perf-PID.map` in which a JIT compiler lists its functions.
//!
//! Lines have the form `START SIZE NAME`, with hexadecimal numbers. A later line replaces an earlier one with the same
//! start.

use rustc_hash::FxHashMap;

use crate::bytes::parse_hex;
use crate::perf::symbols::table::{Binding, Entry, SymbolTable};

/// Parses the functions that cover `addresses`, which must be in ascending order. Ignores lines of any other form.
pub fn parse<'a>(text: &'a [u8], addresses: &[u64]) -> SymbolTable<'a> {
    let mut newest: FxHashMap<u64, Entry<'_>> = FxHashMap::default();
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(entry) = parse_line(line) {
            newest.insert(entry.address, entry);
        }
    }
    SymbolTable::from_entries(addresses, newest.into_values())
}

fn parse_line(line: &[u8]) -> Option<Entry<'_>> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let address = parse_number(words.next()?)?;
    let size = parse_number(words.next()?)?;
    let name = words.next()?;
    let name = name.strip_suffix(b"\r").unwrap_or(name);
    Some(Entry { address, size, name, binding: Binding::Global })
}

fn parse_number(digits: &[u8]) -> Option<u64> {
    parse_hex(digits.strip_prefix(b"0x").unwrap_or(digits))
}

#[cfg(test)]
mod tests {
    #[test]
    fn prefers_the_last_line_for_an_address() {
        let table = super::parse(
            b"1000 20 LazyCompile:~f a.js:1\nnonsense\n1000 20 LazyCompile:*f a.js:1\n2000 8 g\n",
            &[0x1010, 0x1020],
        );
        assert_eq!(table.find(0x1010).unwrap().name, b"LazyCompile:*f a.js:1");
        assert_eq!(table.find(0x1020), None);
    }
}
