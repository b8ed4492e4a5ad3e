//! The kernel's own list of its symbols, `/proc/kallsyms`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use bstr::ByteSlice;

use super::table::{Entry, SymbolTable, Visibility};
use crate::bytes::parse_hex;

/// Where the names of a recording's kernel are.
#[derive(Clone, Debug)]
pub struct KernelNames {
    /// A file such as `/proc/kallsyms`; `None` if there is none that fits.
    pub file: Option<PathBuf>,
    /// A symbol and where it stood in the recording: the kernel may stand elsewhere each time it is started.
    pub reference: Option<(Vec<u8>, u64)>,
}

impl Default for KernelNames {
    fn default() -> Self {
        Self { file: Some(PathBuf::from("/proc/kallsyms")), reference: None }
    }
}

impl KernelNames {
    /// Where a symbol of the kernel that runs here stands.
    pub fn place_here(name: &[u8]) -> Option<u64> {
        place(BufReader::new(File::open(Self::default().file?).ok()?), name)
    }

    /// The text, without what cannot be believed for the recording's kernel; and how much higher the recording's kernel stood.
    pub fn read(&self) -> (Vec<u8>, u64) {
        let text = self.file.as_ref().and_then(|file| std::fs::read(file).ok()).unwrap_or_default();
        let shift = self
            .reference
            .as_ref()
            .and_then(|(name, address)| Some(address.wrapping_sub(place(text.as_slice(), name)?)));
        match shift {
            None | Some(0) => (text, 0),
            // Modules are moved each for itself.
            Some(shift) => {
                let lines = text.split_inclusive(|byte| *byte == b'\n');
                (lines.filter(|line| !line.trim_ascii_end().ends_with(b"]")).flatten().copied().collect(), shift)
            }
        }
    }
}

/// Where a symbol stands. No more is read than up to it: the kernel writes the text while it is read, and it is long.
pub fn place(text: impl BufRead, name: &[u8]) -> Option<u64> {
    let mut lines = text.split(b'\n').map_while(Result::ok);
    let line = lines.find(|line| line.strip_suffix(name).is_some_and(|before| before.ends_with(b" ")))?;
    let address = line.split(|byte| *byte == b' ').next()?;
    u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()
}

/// Whether the text shows addresses: the kernel prints zeros to those who may not know.
pub fn is_hidden(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').take(64).all(|line| line.starts_with(b"0000000000000000 ") || line.is_empty())
}

/// The functions in the text at some addresses, in ascending order: lines of `ADDRESS TYPE NAME`, with `[MODULE]` behind
/// those of modules.
pub fn parse<'a>(text: &'a [u8], wanted: &[u64]) -> SymbolTable<'a> {
    let entries = ByteSlice::lines(text).filter_map(|line| {
        let (address, rest) = line.split_at(memchr::memchr(b' ', line)?);
        let visibility = match rest.get(1)? {
            b'T' => Visibility::Global,
            b't' => Visibility::Local,
            b'W' | b'w' => Visibility::Weak,
            _ => return None,
        };
        let name = rest.get(3..)?;
        let name = &name[..memchr::memchr2(b' ', b'\t', name).unwrap_or(name.len())];
        Some(Entry { address: parse_hex(address)?, size: 0, name, visibility })
    });
    SymbolTable::of(wanted, entries)
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_functions_of_kernel_and_modules() {
        let text = b"ffffffff81000000 T _text\nffffffff81000100 t do_it\nffffffff82000000 D table\nffffffffc0000000 t mod_fn\t[mod]\n";
        let table = super::parse(text, &[0xffff_ffff_8100_0105, 0xffff_ffff_c000_0001]);
        assert_eq!(table.find(0xffff_ffff_8100_0105).unwrap().name, b"do_it");
        assert_eq!(table.find(0xffff_ffff_c000_0001).unwrap().name, b"mod_fn");
        assert!(!super::is_hidden(text));
        assert!(super::is_hidden(b"0000000000000000 T _text\n0000000000000000 t x\n"));
    }
}
