//! Names of code addresses: the methods that the runtime compiled or loaded, and the symbols of other code.

use std::collections::BTreeMap;

use crate::collapse::formats::dotnet_stack;
use crate::collapse::formats::little_endian::Bytes;
use crate::collapse::options::Options;

/// The process of addresses where a trace has only one.
pub(super) const ONLY_PROCESS: u64 = 0;

/// The code ranges with names, of all processes.
#[derive(Default)]
pub(super) struct Methods {
    /// Methods and symbols, by process and start. Of several at one address, the last one counts.
    functions: Ranges,
    /// The address ranges of mapped files.
    files: Ranges,
    /// The processes of mappings, by the mapping's ID.
    mappings: BTreeMap<u64, u64>,
}

/// Ranges of addresses that do not overlap, by process and start.
type Ranges = BTreeMap<(u64, u64), Range>;

struct Range {
    end: u64,
    name: Vec<u8>,
}

impl Methods {
    /// Adds a method from a `MethodLoadVerbose` event or one with the same fields. Returns `None` if it is malformed.
    pub(super) fn add_method(&mut self, payload: &[u8], options: &Options) -> Option<()> {
        let mut bytes = Bytes(payload);
        // The IDs of the method and its module.
        bytes.take(16)?;
        let (start, size) = (bytes.u64()?, bytes.u32()?);
        // A token and flags.
        bytes.take(8)?;
        let (class, method, signature) = (bytes.utf16_c_string()?, bytes.utf16_c_string()?, bytes.utf16_c_string()?);
        let dot: &[u8] = if class.is_empty() { b"" } else { b"." };
        // Before the arguments, a signature has the type of the result.
        let arguments = memchr::memchr(b'(', &signature).map_or(&b"()"[..], |start| &signature[start..]);
        let name = [&class, dot, &method, arguments].concat();
        self.add_range(ONLY_PROCESS, start, start.saturating_add(size.into()), dotnet_stack::function(&name, options));
        Some(())
    }

    /// Adds a mapping of a process from a `ProcessMapping` event.
    pub(super) fn add_mapping(&mut self, payload: &[u8]) -> Option<()> {
        let mut bytes = Bytes(payload);
        let (id, process) = (bytes.varint()?, bytes.varint()?);
        let (start, end) = (bytes.varint()?, bytes.varint()?);
        bytes.varint()?;
        let file = read_short_string(&mut bytes)?;
        self.mappings.insert(id, process);
        let base = file.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or(file);
        if !base.is_empty() {
            let name = [b"[", base.strip_prefix(b"[").unwrap_or(base)].concat();
            let name = if name.ends_with(b"]") { name } else { [&name, &b"]"[..]].concat() };
            self.files.insert((process, start), Range { end, name });
        }
        Some(())
    }

    /// Adds a symbol from a `ProcessSymbol` event.
    pub(super) fn add_symbol(&mut self, payload: &[u8], options: &Options) -> Option<()> {
        let mut bytes = Bytes(payload);
        bytes.varint()?;
        let process = *self.mappings.get(&bytes.varint()?)?;
        let (start, end) = (bytes.varint()?, bytes.varint()?);
        let name = read_short_string(&mut bytes)?;
        self.add_range(process, start, end.saturating_add(1), dotnet_stack::function(name, options));
        Some(())
    }

    fn add_range(&mut self, process: u64, start: u64, end: u64, name: &[u8]) {
        self.functions.insert((process, start), Range { end, name: name.to_vec() });
    }

    /// Returns the name of the code at an address.
    pub(super) fn find(&self, process: u64, address: u64) -> Option<&[u8]> {
        [&self.functions, &self.files].into_iter().find_map(|ranges| {
            let before = ranges.range((process, 0)..=(process, address)).next_back();
            before.filter(|(_, range)| address < range.end).map(|(_, range)| &range.name[..])
        })
    }
}

/// Reads a length of two bytes, and as many bytes of UTF-8.
fn read_short_string<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let length = bytes.u16()?;
    bytes.take(length.into())
}

#[cfg(test)]
mod tests {
    use super::{Methods, ONLY_PROCESS};
    use crate::collapse::options::Options;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn finds_methods_by_address() {
        let mut methods = Methods::default();
        let mut method = vec![0; 16];
        method.extend(0x1000u64.to_le_bytes());
        method.extend(0x20u32.to_le_bytes());
        method.extend([0; 8]);
        method.extend([utf16("App.Program"), utf16("Main"), utf16("void  (class System.String[])")].concat());
        assert_eq!(methods.add_method(&method, &Options::default()), Some(()));
        assert_eq!(methods.add_method(&method[..40], &Options::default()), None);
        let found = [0xfff, 0x1000, 0x101f, 0x1020].map(|address| methods.find(ONLY_PROCESS, address));
        let main = Some(&b"App.Program.Main"[..]);
        assert_eq!((found, methods.find(7, 0x1000)), ([None, main, main, None], None));
    }

    #[test]
    fn finds_symbols_in_mappings() {
        let mut methods = Methods::default();
        let mapping = [1, 7, 16, 100, 0, 8, 0, b'/', b'l', b'i', b'b', b'/', b'c', b'.', b'o'];
        assert_eq!(methods.add_mapping(&mapping), Some(()));
        assert_eq!(methods.add_symbol(&[9, 1, 32, 39, 1, 0, b'f'], &Options::default()), Some(()));
        assert_eq!(methods.add_symbol(&[9, 2, 32, 39, 1, 0, b'f'], &Options::default()), None);
        let found = [39, 40, 100].map(|address| methods.find(7, address));
        assert_eq!(found, [Some(&b"f"[..]), Some(b"[c.o]"), None]);
    }
}
