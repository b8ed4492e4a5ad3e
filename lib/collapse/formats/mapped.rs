//! Names of code addresses, for formats that list the files that a process had mapped.

use rustc_hash::FxHashMap;

use super::perf_script::frame::Frame;
use super::perf_script::naming::Naming;
use crate::collapse::line_helpers::split_word;
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::perf::data::files::FileSearch;
use crate::perf::event::Mmap;
use crate::perf::location::Location;
use crate::perf::objects::object::{Object, ObjectId};
use crate::perf::objects::registry::{Objects, UNKNOWN};
use crate::perf::symbols::frame::SymbolizeOptions;
use crate::perf::symbols::symbolize::symbolize;
use crate::profile::FrameId;

/// The mapped files of a process, and the addresses in them that need names.
pub(super) struct Addresses {
    objects: Objects,
    /// Executable mappings, by their end.
    mappings: Vec<Mapping>,
    numbers: FxHashMap<u64, usize>,
    /// All addresses, by their number.
    all: Vec<u64>,
}

struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    object: ObjectId,
}

/// The names of addresses.
pub(super) struct AddressNames {
    /// The frames of each address, root first.
    pub(super) frames: Vec<Vec<FrameId>>,
    /// Messages about files that were not found.
    pub(super) warnings: Vec<String>,
}

impl Addresses {
    pub(super) fn new(options: &Options) -> Self {
        let objects = Objects::from_files(FileSearch::new(options.symfs.clone()));
        Self { objects, mappings: Vec::new(), numbers: FxHashMap::default(), all: Vec::new() }
    }

    /// Adds a line of `/proc/PID/maps`. Returns false if it is none.
    pub(super) fn add_mapping(&mut self, line: &[u8]) -> bool {
        let Some((mut mapping, is_executable, path)) = parse_mapping(line) else { return false };
        if is_executable && mapping.start < mapping.end {
            mapping.object = self.objects.open_mapping(&Mmap {
                pid: 0,
                start: mapping.start,
                length: mapping.end - mapping.start,
                offset: mapping.offset,
                inode: None,
                build_id: None,
                executable: true,
                writable: false,
                path,
            });
            self.mappings.push(mapping);
        }
        true
    }

    /// Returns the number of an address.
    pub(super) fn number(&mut self, address: u64) -> usize {
        let next = self.all.len();
        let number = *self.numbers.entry(address).or_insert(next);
        if number == next {
            self.all.push(address);
        }
        number
    }

    /// Names all addresses.
    pub(super) fn name(mut self, options: &Options, sink: &mut Sink) -> AddressNames {
        self.mappings.sort_by_key(|mapping| mapping.end);
        let locations: Vec<Location> = self.all.iter().map(|address| self.locate(*address)).collect();
        let wanted = SymbolizeOptions { inline: !options.no_inline, lines: options.srcline, debuginfod: false };
        let symbols = symbolize(&self.objects, &locations, &wanted);
        let (naming, mut frames) = (Naming::new(options), Vec::new());
        for (number, location) in locations.iter().enumerate() {
            let object = self.objects.get(location.object);
            let address = format!("{:x}", self.all[number]);
            let mut names = Vec::new();
            for named in &symbols.frames()[symbols.range(number as u32)] {
                let symbol: &[u8] = if named.has_symbol { &named.name } else { b"" };
                let module: &[u8] = if named.is_inlined { b"inlined" } else { object.path() };
                let source = named.source.as_deref();
                let frame = Frame { address: address.as_bytes(), symbol, module: Some(module), source };
                names.extend(naming.frame_names(&frame, false).iter().map(|name| sink.intern(name)));
            }
            frames.push(names);
        }
        let mut warnings: Vec<String> = symbols.warnings().to_vec();
        warnings.extend(self.missing_files(&locations));
        AddressNames { frames, warnings }
    }

    /// Returns the location of an address in its file.
    fn locate(&self, address: u64) -> Location {
        let index = self.mappings.partition_point(|mapping| mapping.end <= address);
        let found = self.mappings.get(index).filter(|mapping| mapping.start <= address);
        let (object, address) = match found {
            None => (UNKNOWN, address),
            Some(mapping) => {
                let offset = (address - mapping.start).wrapping_add(mapping.offset);
                match self.objects.get(mapping.object) {
                    Object::Elf(elf) => (mapping.object, elf.address_of_offset(offset).unwrap_or(offset)),
                    _ => (mapping.object, address),
                }
            }
        };
        Location { object, address, ip: 0, loaded_at: 0 }
    }

    /// Returns a message for each file that has sampled code and was not found.
    fn missing_files(&self, locations: &[Location]) -> Vec<String> {
        let mut missing: Vec<String> = locations
            .iter()
            .filter_map(|location| match self.objects.get(location.object) {
                Object::Missing { path, reason } if !path.starts_with(b"[") => {
                    Some(format!("no names from {}: {reason}", String::from_utf8_lossy(path)))
                }
                _ => None,
            })
            .collect();
        missing.sort();
        missing.dedup();
        missing
    }
}

/// Parses `562f86dfe000-562f86dff000 r-xp 00001000 fe:00 10043441   /usr/bin/app`.
fn parse_mapping(line: &[u8]) -> Option<(Mapping, bool, &[u8])> {
    let (range, rest) = split_word(line);
    let (permissions, rest) = split_word(rest);
    let (offset, rest) = split_word(rest);
    let (device, rest) = split_word(rest);
    let (inode, path) = split_word(rest);
    let dash = memchr::memchr(b'-', range)?;
    let (start, end) = (parse_hex(&range[..dash])?, parse_hex(&range[dash + 1..])?);
    let is_line = permissions.len() == 4 && device.contains(&b':') && inode.iter().all(u8::is_ascii_digit);
    let mapping = Mapping { start, end, offset: parse_hex(offset)?, object: UNKNOWN };
    is_line.then(|| (mapping, permissions[2] == b'x', path.trim_ascii()))
}

/// Parses a hexadecimal number, with or without `0x`.
pub(super) fn parse_hex(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    is_number.then(|| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::parse_mapping;

    #[test]
    fn parses_lines_of_maps() {
        let line = b"562f86dfe000-562f86dff000 r-xp 00001000 fe:00 10043441   /usr/bin/a b";
        let (mapping, is_executable, path) = parse_mapping(line).unwrap();
        assert_eq!((mapping.start, mapping.end, mapping.offset), (0x562f_86df_e000, 0x562f_86df_f000, 0x1000));
        assert!(is_executable && path == b"/usr/bin/a b");
        assert!(!parse_mapping(b"7f00-7f10 rw-p 00000000 00:00 0 ").unwrap().1);
        assert!(parse_mapping(b"main;parse 12").is_none() && parse_mapping(b"a-b c").is_none());
    }
}
