//! A jitdump: what a just-in-time compiler tells of its code as it makes it. Each function with its time, its name and,
//! from some, its lines and unwind information. The format is `jitdump-specification.txt` of the kernel's `tools/perf`.
//!
//! The file grows while it is read, and is a stranger's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::perf::cfi::CfiTable;

const MAGIC: u32 = 0x4a69_5444;
/// The header's flag that says that times are those of another clock.
const ARCH_TIMESTAMP: u64 = 1;

const LOAD: u32 = 0;
const MOVE: u32 = 1;
const DEBUG_INFO: u32 = 2;
const UNWINDING_INFO: u32 = 4;

/// No record is longer that is worth reading.
const LONGEST: usize = 64 << 20;
/// What is read of the file at once.
const BLOCK: u64 = 1 << 20;
/// How many functions before an address are asked whether they reach it.
const PATIENCE: usize = 4096;
/// `perf inject` puts code behind an ELF header, and some writers add its size to the addresses of lines.
const ELF_HEADER: u64 = 0x40;

/// A function that was made.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its first address.
    pub start: u64,
    /// Its size.
    pub size: u64,
    /// When it was put there.
    pub since: u64,
    /// Its name.
    pub name: Arc<[u8]>,
    /// Addresses, behind its start, at which lines begin.
    lines: Arc<[(u64, Vec<u8>)]>,
    unwinding: Option<Arc<CfiTable>>,
}

impl Function {
    /// `FILE:LINE` of an address.
    pub fn source(&self, address: u64) -> Option<&[u8]> {
        let after = self.lines.partition_point(|(behind, _)| *behind <= address.wrapping_sub(self.start));
        self.lines.get(after.checked_sub(1)?).map(|(_, source)| &source[..])
    }

    /// How to unwind it, where that is told.
    pub fn unwinding(&self) -> Option<&CfiTable> {
        self.unwinding.as_deref()
    }
}

/// A jitdump that may still grow.
#[derive(Clone, Debug)]
pub struct JitDump {
    file: Arc<File>,
    /// How far it was read.
    position: u64,
    /// What was read and is no whole record yet.
    pending: Vec<u8>,
    has_header: bool,
    has_other_clock: bool,
    /// By first address and, where that is the same, in the order of the file.
    functions: BTreeMap<(u64, u64), Function>,
    /// Where the functions of each number stand.
    by_number: FxHashMap<u64, (u64, u64)>,
    largest: u64,
    /// What was told of the function that comes next.
    lines: Vec<(u64, Vec<u8>)>,
    unwinding: Vec<u8>,
}

impl JitDump {
    /// Of an open file, if it is one, or is empty yet: V8 maps it before it writes the header.
    pub fn open(mut file: File) -> Option<Self> {
        let mut magic = [0; 4];
        let is_one = file.read_exact(&mut magic).is_err() || u32::from_le_bytes(magic) == MAGIC;
        is_one.then(|| Self {
            file: Arc::new(file),
            position: 0,
            pending: Vec::new(),
            has_header: false,
            has_other_clock: false,
            functions: BTreeMap::new(),
            by_number: FxHashMap::default(),
            largest: 0,
            lines: Vec::new(),
            unwinding: Vec::new(),
        })
    }

    /// Reads what was written since.
    pub fn read(&mut self) {
        if self.file.metadata().is_ok_and(|metadata| metadata.len() <= self.position) {
            return;
        }
        if (&*self.file).seek(SeekFrom::Start(self.position)).is_err() {
            return;
        }
        loop {
            let read = (&*self.file).take(BLOCK).read_to_end(&mut self.pending).unwrap_or(0);
            if read == 0 {
                return;
            }
            self.position += read as u64;
            let pending = std::mem::take(&mut self.pending);
            let mut rest = &pending[..];
            while let Some(record) = self.next_record(&mut rest) {
                self.take(record);
            }
            self.pending = rest.to_vec();
            if self.pending.len() > LONGEST {
                // Nobody can tell where the next record begins.
                self.position = u64::MAX;
                self.pending = Vec::new();
                return;
            }
        }
    }

    /// The function that covered an address at a time; the first ever that did, if that was later.
    pub fn find(&self, address: u64, time: u64) -> Option<&Function> {
        let covering = || {
            let before = self.functions.range(..=(address, u64::MAX)).rev().take(PATIENCE);
            let near = before.take_while(|((start, _), _)| address - start < self.largest);
            near.filter(|((start, _), function)| address - start < function.size)
        };
        let at_the_time = covering().filter(|(_, function)| function.since <= time);
        let newest = at_the_time.max_by_key(|((_, order), _)| *order);
        newest.or_else(|| covering().min_by_key(|((_, order), _)| *order)).map(|(_, function)| function)
    }

    /// Whether several functions covered an address, one after the other.
    pub fn is_reused(&self, address: u64) -> bool {
        let (first, last) = (self.find(address, 0), self.find(address, u64::MAX));
        first.map(|function| function.since) != last.map(|function| function.since)
    }

    /// Takes the next whole record, or the file's header, off the front.
    fn next_record<'a>(&mut self, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        // In the header and in each record the size follows the first word, or the second.
        let at = if self.has_header { 4 } else { 8 };
        let size = u32_at(rest, at)? as usize;
        let record = rest.get(..size.max(16))?;
        *rest = &rest[record.len()..];
        if !self.has_header {
            self.has_header = true;
            self.has_other_clock = u64_at(record, 32).is_some_and(|flags| flags & ARCH_TIMESTAMP != 0);
            return self.next_record(rest);
        }
        Some(record)
    }

    fn take(&mut self, record: &[u8]) -> Option<()> {
        let time = if self.has_other_clock { 0 } else { u64_at(record, 8)? };
        let body = &record[16..];
        match u32_at(record, 0)? {
            LOAD => {
                let (start, size, number) = (u64_at(body, 16)?, u64_at(body, 24)?, u64_at(body, 32)?);
                let name = Arc::from(text(body.get(40..)?)?);
                let unwinding = self.unwinding(start, size);
                let lines = self.lines(start, size);
                self.add(number, Function { start, size, since: time, name, lines, unwinding });
            }
            MOVE => {
                let (start, size, number) = (u64_at(body, 24)?, u64_at(body, 32)?, u64_at(body, 40)?);
                let moved = self.functions.get(self.by_number.get(&number)?)?.clone();
                // Its unwind information told of the old place.
                self.add(number, Function { start, size, since: time, unwinding: None, ..moved });
            }
            DEBUG_INFO => self.lines = lines(body).unwrap_or_default(),
            UNWINDING_INFO => {
                let (size, index) = (u64_at(body, 0)?, u64_at(body, 8)?);
                // The index stands at the end, and is not needed.
                let size = usize::try_from(size.checked_sub(index)?).ok()?;
                self.unwinding = body.get(24..)?.get(..size)?.to_vec();
            }
            _ => {}
        }
        Some(())
    }

    fn add(&mut self, number: u64, function: Function) {
        let key = (function.start, self.functions.len() as u64);
        self.largest = self.largest.max(function.size);
        self.by_number.insert(number, key);
        self.functions.insert(key, function);
    }

    fn unwinding(&mut self, start: u64, size: u64) -> Option<Arc<CfiTable>> {
        let eh_frame = std::mem::take(&mut self.unwinding);
        if eh_frame.is_empty() {
            return None;
        }
        // It was written as if it stood behind the code.
        let address = start.checked_add(size.checked_next_multiple_of(8)?)?;
        Some(Arc::new(CfiTable::read_all(address, eh_frame, start)))
    }

    fn lines(&mut self, start: u64, size: u64) -> Arc<[(u64, Vec<u8>)]> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.sort_by_key(|(address, _)| *address);
        let shift =
            if lines.iter().all(|(address, _)| address.wrapping_sub(start) >= ELF_HEADER) { ELF_HEADER } else { 0 };
        for (address, _) in &mut lines {
            *address = address.wrapping_sub(start.wrapping_add(shift));
        }
        // Some writers' are beyond belief.
        if lines.iter().all(|(behind, _)| *behind <= size) { lines.into() } else { Arc::from([]) }
    }
}

/// Addresses and `FILE:LINE`.
fn lines(body: &[u8]) -> Option<Vec<(u64, Vec<u8>)>> {
    let mut entries = body.get(16..)?;
    let mut lines = Vec::new();
    let mut file = String::new();
    while !entries.is_empty() && lines.len() < usize::try_from(u64_at(body, 8)?).ok()? {
        let (address, line) = (u64_at(entries, 0)?, u32_at(entries, 8)?);
        let path = text(entries.get(16..)?)?;
        entries = &entries[16 + path.len() + 1..];
        // The same as before.
        if path != [0xff] {
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            file = std::str::from_utf8(name).ok()?.replace(char::is_control, "_");
        }
        lines.push((address, format!("{file}:{line}").into_bytes()));
    }
    Some(lines)
}

fn text(bytes: &[u8]) -> Option<&[u8]> {
    Some(&bytes[..memchr::memchr(0, bytes)?])
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{DEBUG_INFO, JitDump, LOAD, MAGIC, MOVE, UNWINDING_INFO};
    use std::io::Write as _;

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

    fn load(start: u64, size: u64, number: u64, name: &str) -> Vec<u8> {
        let code = vec![0x90; size as usize];
        [&words(&[1 | 1 << 32, start, start, size, number])[..], name.as_bytes(), &[0], &code].concat()
    }

    fn dump(bytes: &[u8]) -> JitDump {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut dump = JitDump::open(file.reopen().unwrap()).unwrap();
        dump.read();
        dump
    }

    fn name(dump: &JitDump, address: u64, time: u64) -> String {
        dump.find(address, time).map_or(String::new(), |found| String::from_utf8(found.name.to_vec()).unwrap())
    }

    #[test]
    fn each_time_has_its_own_function() {
        let moved = words(&[1 | 1 << 32, 0, 0x1000, 0x3000, 0x20, 1]);
        let records = [
            record(LOAD, 10, &load(0x1000, 0x20, 1, "first")),
            record(LOAD, 11, &load(0x2000, 0x20, 2, "alone")),
            record(MOVE, 15, &moved),
            record(LOAD, 20, &load(0xff0, 0x80, 3, "second")),
        ];
        let dump = dump(&[header(), records.concat()].concat());
        assert_eq!(["first", "first", "second"], [5, 19, 20].map(|time| name(&dump, 0x1010, time)));
        assert_eq!([name(&dump, 0x3010, 30), name(&dump, 0x2010, 30)], ["first", "alone"]);
        assert_eq!([name(&dump, 0x1021, 30), name(&dump, 0x2020, 30)], ["second", ""]);
        assert!(dump.is_reused(0x1010) && !dump.is_reused(0x2010) && !dump.is_reused(0x9000));
    }

    #[test]
    fn what_is_written_meanwhile_is_read_later() {
        let bytes = [header(), record(LOAD, 10, &load(0x1000, 0x20, 1, "f"))].concat();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes[..8]).unwrap();
        let mut dump = JitDump::open(file.reopen().unwrap()).unwrap();
        for end in 9..=bytes.len() {
            dump.read();
            assert_eq!(name(&dump, 0x1000, 99), "", "{end}");
            file.write_all(&bytes[end - 1..end]).unwrap();
        }
        dump.read();
        assert_eq!(name(&dump, 0x1000, 99), "f");
    }

    #[test]
    fn lines_are_those_of_the_function_that_follows() {
        for shift in [0, 0x40] {
            let entry = |address: u64, line: u32, file: &[u8]| {
                [&words(&[address + shift, u64::from(line)])[..], file, &[0]].concat()
            };
            let lines =
                [words(&[0x1000, 2]), entry(0x1000, 3, b"/src/a.js"), entry(0x1010, 4, &[0xff]), words(&[0x1000, 1])];
            let all = [
                header(),
                record(DEBUG_INFO, 9, &lines[..3].concat()),
                record(LOAD, 10, &load(0x1000, 0x20, 1, "f")),
                record(LOAD, 11, &load(0x2000, 0x20, 2, "g")),
            ];
            let dump = dump(&all.concat());
            let source = |address| dump.find(address, 99).unwrap().source(address).map(<[u8]>::to_vec);
            assert_eq!(source(0x100f).unwrap(), b"a.js:3");
            assert_eq!(source(0x1010).unwrap(), b"a.js:4");
            assert_eq!(source(0x2000), None);
        }
    }

    /// A common entry and one for 32 bytes of code that stand before the section, and behind both the index, as writers
    /// put it.
    #[test]
    fn unwind_information_stands_before_its_index() {
        let entry = |words: &[u8]| [&(words.len() as u32).to_le_bytes()[..], words].concat();
        let common =
            entry(&[0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0, 0, 0]);
        let back = (common.len() as u32 + 4).to_le_bytes();
        let start = (-(common.len() as i32 + 8 + 32)).to_le_bytes();
        let of_code = entry(&[&back[..], &start, &32u32.to_le_bytes(), &[0, 0, 0, 0]].concat());
        let eh_frame = [common, of_code, vec![0; 4]].concat();
        let index = [0xee; 20];
        let sizes = words(&[(eh_frame.len() + index.len()) as u64, index.len() as u64, 0]);
        let unwinding = record(UNWINDING_INFO, 9, &[&sizes[..], &eh_frame, &index].concat());
        let all = [header(), unwinding, record(LOAD, 10, &load(0x1000, 32, 1, "f"))];
        let dump = dump(&all.concat());
        let unwinding = dump.find(0x1005, 99).unwrap().unwinding().unwrap();
        assert!(unwinding.find(0x1000).is_some() && unwinding.find(0x101f).is_some());
        assert!(unwinding.find(0xfff).is_none() && unwinding.find(0x1020).is_none());
    }

    #[test]
    fn a_lying_file_does_no_harm() {
        let mut bytes = [
            header(),
            record(DEBUG_INFO, 1, &words(&[u64::MAX, u64::MAX, u64::MAX, 1, 0xff])),
            record(UNWINDING_INFO, 1, &words(&[u64::MAX, 1, 0])),
            record(LOAD, 2, &[&words(&[0, u64::MAX, u64::MAX, u64::MAX, 7])[..], b"f\0"].concat()),
            record(MOVE, 3, &words(&[0, 1, 2, u64::MAX - 1, u64::MAX, 7])),
        ]
        .concat();
        for at in 0..bytes.len() {
            let old = std::mem::replace(&mut bytes[at], 0xff);
            if at >= 4 {
                let dump = dump(&bytes);
                let _ = (dump.find(0, 0), dump.find(u64::MAX, 5), dump.is_reused(u64::MAX));
            }
            bytes[at] = old;
        }
    }
}
