//! Reads jitdumps: files in which JIT compilers write each function that they generate, with its time, name, code and
//! optionally its source lines and unwind information.
//!
//! The format is described in `tools/perf/Documentation/jitdump-specification.txt` of the kernel. A process may still
//! append to the file while it is read, and its content is not trusted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::fields::{read_string, read_u32, read_u64};
use super::source_lines::SourceLines;
use crate::perf::cfi::CfiTable;

const MAGIC: u32 = 0x4a69_5444;
/// The flag in the file's header for times of the architecture's own clock, such as the TSC.
const ARCH_TIMESTAMP: u64 = 1;

const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
const CODE_DEBUG_INFO: u32 = 2;
const CODE_UNWINDING_INFO: u32 = 4;

/// The size of the header of a record, and of the part of the file's header that is always there.
const RECORD_HEADER_SIZE: usize = 16;
/// The size at which reading stops: an incomplete record this long has a wrong size.
const MAX_RECORD_SIZE: usize = 64 << 20;
/// The number of bytes to read from the file at once.
const READ_SIZE: u64 = 1 << 20;
/// The number of functions before an address that are tested for covering it.
const MAX_CANDIDATES: usize = 4096;

/// A generated function.
#[derive(Clone, Debug)]
pub struct Function {
    /// The first address.
    pub start: u64,
    /// The size in bytes.
    pub size: u64,
    /// The time at which the code was written to its address; 0 if times are of another clock.
    pub loaded_at: u64,
    /// The name of the function.
    pub name: Arc<[u8]>,
    lines: Arc<SourceLines>,
    cfi: Option<Arc<CfiTable>>,
}

impl Function {
    /// Returns the source line of an address as `FILE:LINE`.
    pub fn source(&self, address: u64) -> Option<&[u8]> {
        self.lines.find(address.wrapping_sub(self.start))
    }

    /// Returns the unwind information, if the file has it.
    pub fn cfi(&self) -> Option<&CfiTable> {
        self.cfi.as_deref()
    }

    fn contains(&self, address: u64) -> bool {
        address - self.start < self.size
    }
}

/// A jitdump, which may still grow.
#[derive(Clone, Debug)]
pub struct JitDump {
    file: Arc<File>,
    /// The number of bytes that have been read.
    position: u64,
    /// An incomplete record at the end of what has been read.
    pending: Vec<u8>,
    has_header: bool,
    /// True if the times in the file are not comparable with those of samples.
    has_other_clock: bool,
    /// The functions by start, and functions with the same start by their order in the file.
    functions: BTreeMap<(u64, u64), Function>,
    /// Keys of `functions` by the index that the compiler gave to each function.
    by_code_index: FxHashMap<u64, (u64, u64)>,
    /// The size of the largest function.
    max_size: u64,
    /// The source lines of the next function.
    next_lines: SourceLines,
    /// The `.eh_frame` of the next function.
    next_eh_frame: Vec<u8>,
}

impl JitDump {
    /// Opens a jitdump. Returns `None` if the file is something else. An empty file is accepted: V8 maps the file
    /// before it writes the header.
    pub fn open(mut file: File) -> Option<Self> {
        let mut magic = [0; 4];
        let is_jitdump = file.read_exact(&mut magic).is_err() || u32::from_le_bytes(magic) == MAGIC;
        is_jitdump.then(|| Self {
            file: Arc::new(file),
            position: 0,
            pending: Vec::new(),
            has_header: false,
            has_other_clock: false,
            functions: BTreeMap::new(),
            by_code_index: FxHashMap::default(),
            max_size: 0,
            next_lines: SourceLines::default(),
            next_eh_frame: Vec::new(),
        })
    }

    /// Reads what was added to the file since the last call.
    pub fn read(&mut self) {
        if self.file.metadata().is_ok_and(|metadata| metadata.len() <= self.position) {
            return;
        }
        if (&*self.file).seek(SeekFrom::Start(self.position)).is_err() {
            return;
        }
        loop {
            let read = (&*self.file).take(READ_SIZE).read_to_end(&mut self.pending).unwrap_or(0);
            if read == 0 {
                return;
            }
            self.position += read as u64;
            let pending = std::mem::take(&mut self.pending);
            let mut rest = &pending[..];
            while let Some(record) = self.split_record(&mut rest) {
                self.add_record(record);
            }
            self.pending = rest.to_vec();
            if self.pending.len() > MAX_RECORD_SIZE {
                // The size is wrong, so the start of the next record is unknown.
                self.position = u64::MAX;
                self.pending = Vec::new();
                return;
            }
        }
    }

    /// Returns the function that covered an address at a time. If none did yet, returns the first one that ever did.
    pub fn find(&self, address: u64, time: u64) -> Option<&Function> {
        let loaded_by_then = self.functions_at(address).filter(|(_, function)| function.loaded_at <= time);
        let newest = loaded_by_then.max_by_key(|((_, order), _)| *order);
        let found = newest.or_else(|| self.functions_at(address).min_by_key(|((_, order), _)| *order));
        found.map(|(_, function)| function)
    }

    /// Returns all functions that covered an address at some time, with their keys.
    fn functions_at(&self, address: u64) -> impl Iterator<Item = (&(u64, u64), &Function)> {
        let candidates = self.functions.range(..=(address, u64::MAX)).rev().take(MAX_CANDIDATES);
        let in_reach = candidates.take_while(move |((start, _), _)| address - start < self.max_size);
        in_reach.filter(move |(_, function)| function.contains(address))
    }

    /// Returns true if different functions covered an address at different times.
    pub fn is_reused(&self, address: u64) -> bool {
        let (first, last) = (self.find(address, 0), self.find(address, u64::MAX));
        first.map(|function| function.loaded_at) != last.map(|function| function.loaded_at)
    }

    /// Splits the first complete record off `rest`. Parses and skips the file's header.
    fn split_record<'a>(&mut self, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        // A record begins with its type and size, the file's header with magic, version and size.
        let size_offset = if self.has_header { 4 } else { 8 };
        let size = read_u32(rest, size_offset)? as usize;
        let record = rest.get(..size.max(RECORD_HEADER_SIZE))?;
        *rest = &rest[record.len()..];
        if !self.has_header {
            self.has_header = true;
            self.has_other_clock = read_u64(record, 32).is_some_and(|flags| flags & ARCH_TIMESTAMP != 0);
            return self.split_record(rest);
        }
        Some(record)
    }

    /// Adds a record. Ignores malformed records.
    fn add_record(&mut self, record: &[u8]) -> Option<()> {
        let loaded_at = if self.has_other_clock { 0 } else { read_u64(record, 8)? };
        let body = &record[RECORD_HEADER_SIZE..];
        match read_u32(record, 0)? {
            CODE_LOAD => {
                let (start, size, code_index) = (read_u64(body, 16)?, read_u64(body, 24)?, read_u64(body, 32)?);
                let name = Arc::from(read_string(body.get(40..)?)?);
                let cfi = self.take_cfi(start, size);
                let lines = Arc::new(std::mem::take(&mut self.next_lines).relative_to(start, size));
                self.add_function(code_index, Function { start, size, loaded_at, name, lines, cfi });
            }
            CODE_MOVE => {
                let (start, size, code_index) = (read_u64(body, 24)?, read_u64(body, 32)?, read_u64(body, 40)?);
                let moved = self.functions.get(self.by_code_index.get(&code_index)?)?.clone();
                // The unwind information has the old address.
                self.add_function(code_index, Function { start, size, loaded_at, cfi: None, ..moved });
            }
            CODE_DEBUG_INFO => self.next_lines = SourceLines::parse(body).unwrap_or_default(),
            CODE_UNWINDING_INFO => {
                let (size, eh_frame_hdr_size) = (read_u64(body, 0)?, read_u64(body, 8)?);
                // The data is `.eh_frame`, followed by `.eh_frame_hdr`, which is not needed.
                let size = usize::try_from(size.checked_sub(eh_frame_hdr_size)?).ok()?;
                self.next_eh_frame = body.get(24..)?.get(..size)?.to_vec();
            }
            _ => {}
        }
        Some(())
    }

    fn add_function(&mut self, code_index: u64, function: Function) {
        let key = (function.start, self.functions.len() as u64);
        self.max_size = self.max_size.max(function.size);
        self.by_code_index.insert(code_index, key);
        self.functions.insert(key, function);
    }

    /// Parses the unwind information that was read for a function.
    fn take_cfi(&mut self, start: u64, size: u64) -> Option<Arc<CfiTable>> {
        let eh_frame = std::mem::take(&mut self.next_eh_frame);
        if eh_frame.is_empty() {
            return None;
        }
        // Its relative addresses assume that it follows the code, aligned to 8 bytes.
        let address = start.checked_add(size.checked_next_multiple_of(8)?)?;
        Some(Arc::new(CfiTable::read_all(address, eh_frame, start)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{CODE_DEBUG_INFO, CODE_LOAD, CODE_MOVE, CODE_UNWINDING_INFO, JitDump, MAGIC};

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn header() -> Vec<u8> {
        let pairs = [u64::from(MAGIC) | 1 << 32, 40 | 62 << 32, 1 << 32, 5, 0];
        words(&pairs)
    }

    fn record(kind: u32, time: u64, body: &[u8]) -> Vec<u8> {
        [&words(&[u64::from(kind) | (body.len() as u64 + 16) << 32, time]), body].concat()
    }

    fn load_body(start: u64, size: u64, code_index: u64, name: &str) -> Vec<u8> {
        let code = vec![0x90; size as usize];
        [&words(&[1 | 1 << 32, start, start, size, code_index])[..], name.as_bytes(), &[0], &code].concat()
    }

    fn read_jitdump(bytes: &[u8]) -> JitDump {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut dump = JitDump::open(file.reopen().unwrap()).unwrap();
        dump.read();
        dump
    }

    fn name_at(dump: &JitDump, address: u64, time: u64) -> String {
        dump.find(address, time).map_or(String::new(), |found| String::from_utf8(found.name.to_vec()).unwrap())
    }

    #[test]
    fn finds_the_function_of_the_time() {
        let moved = words(&[1 | 1 << 32, 0, 0x1000, 0x3000, 0x20, 1]);
        let records = [
            record(CODE_LOAD, 10, &load_body(0x1000, 0x20, 1, "first")),
            record(CODE_LOAD, 11, &load_body(0x2000, 0x20, 2, "alone")),
            record(CODE_MOVE, 15, &moved),
            record(CODE_LOAD, 20, &load_body(0xff0, 0x80, 3, "second")),
        ];
        let dump = read_jitdump(&[header(), records.concat()].concat());
        assert_eq!(["first", "first", "second"], [5, 19, 20].map(|time| name_at(&dump, 0x1010, time)));
        assert_eq!([name_at(&dump, 0x3010, 30), name_at(&dump, 0x2010, 30)], ["first", "alone"]);
        assert_eq!([name_at(&dump, 0x1021, 30), name_at(&dump, 0x2020, 30)], ["second", ""]);
        assert!(dump.is_reused(0x1010) && !dump.is_reused(0x2010) && !dump.is_reused(0x9000));
    }

    #[test]
    fn reads_records_once_they_are_complete() {
        let bytes = [header(), record(CODE_LOAD, 10, &load_body(0x1000, 0x20, 1, "f"))].concat();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes[..8]).unwrap();
        let mut dump = JitDump::open(file.reopen().unwrap()).unwrap();
        for end in 9..=bytes.len() {
            dump.read();
            assert_eq!(name_at(&dump, 0x1000, 99), "", "{end}");
            file.write_all(&bytes[end - 1..end]).unwrap();
        }
        dump.read();
        assert_eq!(name_at(&dump, 0x1000, 99), "f");
    }

    /// Returns a line of a `JIT_CODE_DEBUG_INFO` record.
    fn line_entry(address: u64, line: u64, file: &[u8]) -> Vec<u8> {
        [&words(&[address, line])[..], file, &[0]].concat()
    }

    /// Returns an entry of `.eh_frame`, which begins with its length.
    fn eh_frame_entry(content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32).to_le_bytes()[..], content].concat()
    }

    #[test]
    fn adds_lines_to_the_next_function() {
        for shift in [0, 0x40] {
            let lines = [
                words(&[0x1000, 2]),
                line_entry(0x1000 + shift, 3, b"/src/a.js"),
                line_entry(0x1010 + shift, 4, &[0xff]),
                words(&[0x1000, 1]),
            ];
            let all = [
                header(),
                record(CODE_DEBUG_INFO, 9, &lines[..3].concat()),
                record(CODE_LOAD, 10, &load_body(0x1000, 0x20, 1, "f")),
                record(CODE_LOAD, 11, &load_body(0x2000, 0x20, 2, "g")),
            ];
            let dump = read_jitdump(&all.concat());
            for (address, source) in [(0x100f, Some(&b"a.js:3"[..])), (0x1010, Some(b"a.js:4")), (0x2000, None)] {
                assert_eq!(dump.find(address, 99).unwrap().source(address), source);
            }
        }
    }

    /// The `.eh_frame` has a CIE and an FDE for the 32 bytes of code before it. `.eh_frame_hdr` follows, as compilers
    /// write it.
    #[test]
    fn ignores_eh_frame_hdr_after_eh_frame() {
        let cie = eh_frame_entry(&[
            0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0, 0, 0,
        ]);
        let cie_offset = (cie.len() as u32 + 4).to_le_bytes();
        let start = (-(cie.len() as i32 + 8 + 32)).to_le_bytes();
        let fde = eh_frame_entry(&[&cie_offset[..], &start, &32u32.to_le_bytes(), &[0, 0, 0, 0]].concat());
        let eh_frame = [cie, fde, vec![0; 4]].concat();
        let eh_frame_hdr = [0xee; 20];
        let sizes = words(&[(eh_frame.len() + eh_frame_hdr.len()) as u64, eh_frame_hdr.len() as u64, 0]);
        let unwinding_info = record(CODE_UNWINDING_INFO, 9, &[&sizes[..], &eh_frame, &eh_frame_hdr].concat());
        let all = [header(), unwinding_info, record(CODE_LOAD, 10, &load_body(0x1000, 32, 1, "f"))];
        let dump = read_jitdump(&all.concat());
        let cfi = dump.find(0x1005, 99).unwrap().cfi().unwrap();
        assert!(cfi.find(0x1000).is_some() && cfi.find(0x101f).is_some());
        assert!(cfi.find(0xfff).is_none() && cfi.find(0x1020).is_none());
    }

    #[test]
    fn survives_wrong_sizes_and_addresses() {
        let mut bytes = [
            header(),
            record(CODE_DEBUG_INFO, 1, &words(&[u64::MAX, u64::MAX, u64::MAX, 1, 0xff])),
            record(CODE_UNWINDING_INFO, 1, &words(&[u64::MAX, 1, 0])),
            record(CODE_LOAD, 2, &[&words(&[0, u64::MAX, u64::MAX, u64::MAX, 7])[..], b"f\0"].concat()),
            record(CODE_MOVE, 3, &words(&[0, 1, 2, u64::MAX - 1, u64::MAX, 7])),
        ]
        .concat();
        for index in 0..bytes.len() {
            let old = std::mem::replace(&mut bytes[index], 0xff);
            if index >= 4 {
                let dump = read_jitdump(&bytes);
                let _ = (dump.find(0, 0), dump.find(u64::MAX, 5), dump.is_reused(u64::MAX));
            }
            bytes[index] = old;
        }
    }
}
