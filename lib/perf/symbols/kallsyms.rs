//! Kernel symbols: the kernel's own list, `/proc/kallsyms`, or a copy of it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::ops::Range;
use std::path::PathBuf;

use bstr::ByteSlice;
use bstr::io::BufReadExt as _;

use super::frame::{AddressFrames, NamedFrame};
use super::table::{Binding, Entry, SymbolTable, SymbolTableBuilder};
use crate::bytes::parse_hex;
use crate::symbol_name::demangle::demangle;

/// Number of bytes of the text that are read at a time.
const PART: u64 = 1 << 18;

/// The source of kernel symbols for a recording.
#[derive(Clone, Debug)]
pub struct KernelSymbols {
    /// A file in the format of `/proc/kallsyms`; `None` if none matches the recorded kernel.
    pub file: Option<PathBuf>,
    /// A symbol with its address in the recorded kernel, if that is known. It tells how far to shift the file's
    /// addresses: KASLR loads the kernel at a different address on each boot.
    pub reference: Option<ReferenceSymbol>,
}

/// A kernel symbol and its address while the recording was made (perf's `ref_reloc_sym`).
#[derive(Clone, Debug)]
pub struct ReferenceSymbol {
    /// The symbol's name.
    pub name: Vec<u8>,
    /// The symbol's address.
    pub address: u64,
}

impl Default for KernelSymbols {
    fn default() -> Self {
        Self { file: Some(PathBuf::from("/proc/kallsyms")), reference: None }
    }
}

impl KernelSymbols {
    /// Returns the address of a symbol in the running kernel.
    pub fn address_in_running_kernel(name: &[u8]) -> Option<u64> {
        find_address(BufReader::new(File::open(Self::default().file?).ok()?), name)
    }

    /// Returns the addresses of functions in the running kernel: for each name all functions of that name. A name may end in
    /// `*`, for all that begin so. Hidden symbols have none.
    pub fn ranges_in_running_kernel(names: &[&[u8]]) -> Vec<Vec<Range<u64>>> {
        Self::default().open().map_or_else(|| vec![Vec::new(); names.len()], |text| find_ranges(text, names))
    }

    fn open(&self) -> Option<BufReader<File>> {
        Some(BufReader::new(File::open(self.file.as_ref()?).ok()?))
    }

    /// Returns the offset from the addresses in the file to those of the recorded kernel (modulo 2^64).
    fn offset(&self) -> u64 {
        let offset = self
            .reference
            .as_ref()
            .and_then(|reference| Some(reference.address.wrapping_sub(find_address(self.open()?, &reference.name)?)));
        offset.unwrap_or(0)
    }
}

/// Returns the frames of kernel addresses, and warnings. The addresses must be in ascending order.
pub fn find_frames(symbols: &KernelSymbols, mut addresses: Vec<u64>) -> (AddressFrames, Vec<String>) {
    let offset = symbols.offset();
    addresses.iter_mut().for_each(|address| *address = address.wrapping_sub(offset));
    // Each module is loaded at an address of its own, so a different boot tells nothing about modules.
    let is_wanted = |line: &[u8]| offset == 0 || !line.trim_ascii_end().ends_with(b"]");
    let lines = symbols.open().map_or(Some(Vec::new()), |text| read_covering(text, &addresses, is_wanted));
    let Some(lines) = lines else {
        let warning =
            "the kernel hides its symbols: kernel frames have no names; run: sudo sysctl kernel.kptr_restrict=0";
        return (AddressFrames::without_frames(addresses.len()), vec![warning.to_owned()]);
    };
    let table = parse(&lines, &addresses, |_| true);
    let mut frames = AddressFrames::default();
    for address in addresses {
        let Some(symbol) = table.find(address) else {
            frames.push(Vec::new());
            continue;
        };
        let start = symbol.start.wrapping_add(offset);
        if !frames.repeat_last(start) {
            frames.push(vec![NamedFrame::from_symbol(demangle(symbol.name).into_owned(), start)]);
        }
    }
    (frames, Vec::new())
}

/// Returns the lines of the functions that cover `addresses`, which must be in ascending order. `None` if the kernel hides
/// them. The text has several megabytes, so no more than a part of it is kept.
fn read_covering(mut text: impl BufRead, addresses: &[u64], is_wanted: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let mut kept = Vec::new();
    let mut is_first = true;
    loop {
        let before = kept.len();
        // A text that cannot be read ends there.
        let _ = text.by_ref().take(PART).read_to_end(&mut kept).and_then(|_| text.read_until(b'\n', &mut kept));
        if kept.len() == before {
            return Some(kept);
        }
        if std::mem::take(&mut is_first) && is_hidden(&kept) {
            return None;
        }
        let table = parse(&kept, addresses, &is_wanted);
        let covering = table.symbols().iter().filter_map(|symbol| find_line(&kept, symbol.name));
        kept = covering.flatten().copied().collect();
    }
}

/// Returns the line of a text that contains a name, which is a part of the text.
fn find_line<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (before, after) = text.split_at_checked((name.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?)?;
    let start = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
    let end = memchr::memchr(b'\n', after).map_or(text.len(), |end| before.len() + end + 1);
    text.get(start..end)
}

/// Finds a symbol's address. Reads no further than its line, because the kernel generates the long text as it is read.
fn find_address(text: impl BufRead, name: &[u8]) -> Option<u64> {
    let mut lines = text.split(b'\n').map_while(Result::ok);
    let line = lines.find(|line| line.strip_suffix(name).is_some_and(|before| before.ends_with(b" ")))?;
    let address = line.split(|byte| *byte == b' ').next()?;
    u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()
}

/// Returns the addresses of all functions of each name. A function ends where the next one begins.
fn find_ranges(mut text: impl BufRead, names: &[&[u8]]) -> Vec<Vec<Range<u64>>> {
    let (mut starts, mut found) = (Vec::new(), vec![Vec::new(); names.len()]);
    // A text that cannot be read ends there.
    let _ = text.for_byte_line(|line| {
        if let Some(function) = FunctionLine::parse(line).filter(|function| function.address > 0) {
            let Entry { address, name, .. } = function.entry();
            starts.push(address);
            for (_, found) in names.iter().zip(&mut found).filter(|(wanted, _)| matches_name(wanted, name)) {
                found.push(address);
            }
        }
        Ok(true)
    });
    starts.sort_unstable();
    found.into_iter().map(|found| found.into_iter().map(|start| start..find_end(&starts, start)).collect()).collect()
}

/// True if a function has the wanted name, of which the end may be any if it ends in `*`.
fn matches_name(wanted: &[u8], name: &[u8]) -> bool {
    match wanted.strip_suffix(b"*") {
        Some(prefix) => name.starts_with(prefix),
        None => name == wanted,
    }
}

/// Returns where a function ends: at the next one in the sorted list.
fn find_end(starts: &[u64], start: u64) -> u64 {
    starts.get(starts.partition_point(|other| *other <= start)).copied().unwrap_or(start + 1)
}

/// Returns true if all addresses are zero, as the kernel prints them for readers without privileges.
fn is_hidden(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').take(64).all(|line| line.starts_with(b"0000000000000000 ") || line.is_empty())
}

/// Parses the functions that cover `addresses`, which must be in ascending order.
///
/// Lines have the form `ADDRESS TYPE NAME`, followed by `[MODULE]` in modules.
fn parse<'a>(text: &'a [u8], addresses: &[u64], is_wanted: impl Fn(&[u8]) -> bool) -> SymbolTable<'a> {
    let mut table = SymbolTableBuilder::new(addresses);
    for line in ByteSlice::lines(text).filter(|line| is_wanted(line)) {
        if let Some(function) = FunctionLine::parse(line) {
            table.add(function.address, || Some(function.entry()));
        }
    }
    table.finish()
}

/// The line of a function.
struct FunctionLine<'a> {
    address: u64,
    binding: Binding,
    /// The name and what follows it.
    rest: &'a [u8],
}

impl<'a> FunctionLine<'a> {
    /// Parses a line; `None` if it is not that of a function.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let (address, rest) = line.split_at(memchr::memchr(b' ', line)?);
        let binding = match rest.get(1)? {
            b'T' => Binding::Global,
            b't' => Binding::Local,
            b'W' | b'w' => Binding::Weak,
            _ => return None,
        };
        Some(Self { address: parse_hex(address)?, binding, rest: rest.get(3..)? })
    }

    fn entry(&self) -> Entry<'a> {
        let end = memchr::memchr3(b' ', b'\t', b'\n', self.rest).unwrap_or(self.rest.len());
        Entry { address: self.address, size: 0, name: &self.rest[..end], binding: self.binding }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_function_ends_where_the_next_begins() {
        let text =
            b"0000000000000900 T last\n0000000000000100 t a_one\n0000000000000180 T a_two\n0000000000000200 D data\n";
        let ranges = super::find_ranges(&text[..], &[b"a_one", b"a_*", b"last", b"data"]);
        let bounds = ranges.iter().map(|ranges| ranges.iter().map(|range| (range.start, range.end)).collect());
        let bounds: Vec<Vec<(u64, u64)>> = bounds.collect();
        assert_eq!(bounds, [vec![(0x100, 0x180)], vec![(0x100, 0x180), (0x180, 0x900)], vec![(0x900, 0x901)], vec![]]);
        assert!(super::find_ranges(&b"0000000000000000 T hidden\n"[..], &[b"hidden"])[0].is_empty());
    }

    #[test]
    fn a_part_of_the_text_is_kept() {
        let line = |number: u64| format!("{:016x} T function_{number}\n", 16 * number);
        let with_alias = |number: u64| format!("{:016x} t alias_{number}\n{}", 16 * number, line(number));
        let text: String = (1..40_000).rev().chain([50_000]).map(with_alias).collect();
        let read = |addresses: &[u64]| super::read_covering(text.as_bytes(), addresses, |_| true).unwrap();
        assert_eq!(read(&[16 * 7 + 3, 16 * 31_000]), [line(7), line(31_000)].concat().into_bytes());
        assert_eq!(read(&[5, 16 * 45_000, 16 * 60_000]), [line(39_999), line(50_000)].concat().into_bytes());
    }

    #[test]
    fn reads_functions_of_kernel_and_modules() {
        let text = b"ffffffff81000000 T _text\nffffffff81000100 t do_it\nffffffff82000000 D table\nffffffffc0000000 t mod_fn\t[mod]\n";
        let table = super::parse(text, &[0xffff_ffff_8100_0105, 0xffff_ffff_c000_0001], |_| true);
        assert_eq!(table.find(0xffff_ffff_8100_0105).unwrap().name, b"do_it");
        assert_eq!(table.find(0xffff_ffff_c000_0001).unwrap().name, b"mod_fn");
        assert!(!super::is_hidden(text));
        assert!(super::is_hidden(b"0000000000000000 T _text\n0000000000000000 t x\n"));
    }
}
