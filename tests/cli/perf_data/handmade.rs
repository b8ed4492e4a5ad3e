//! Writes perf.data files: the header, events, records, and the section with the events' names.

#![allow(dead_code)]

use std::path::{Path, PathBuf};

const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 8;
const RAW: u64 = 1 << 10;
const REGS_USER: u64 = 1 << 12;
const STACK_USER: u64 = 1 << 13;
const ATTR: usize = 128;
/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u8 = 2;

/// A recording whose samples have address, thread, time, counter id, CPU and period, but no stacks unless they are
/// copied.
pub struct Handmade {
    events: Vec<String>,
    records: Vec<u8>,
    /// The user registers that samples have, a bit each; 0 if stacks are not copied.
    user_registers: u64,
    /// True if samples have the fields of a tracepoint.
    has_fields: bool,
    /// The architecture of the machine, if the recording has it. In the format of `perf record -o -` only.
    pub architecture: Option<&'static str>,
}

impl Default for Handmade {
    fn default() -> Self {
        Self::with_events(&["cycles"])
    }
}

impl Handmade {
    /// Makes a recording of events with these names. The id of an event's only counter is its index.
    pub fn with_events(names: &[&str]) -> Self {
        let events = names.iter().map(|name| (*name).to_owned()).collect();
        Self { events, records: Vec::new(), user_registers: 0, has_fields: false, architecture: None }
    }

    /// Makes a recording whose samples have user registers and a copy of the user stack.
    pub fn with_copied_stacks(user_registers: u64) -> Self {
        Self { user_registers, ..Self::default() }
    }

    /// Makes a recording of a tracepoint, whose samples have its fields.
    pub fn with_tracepoint(name: &str) -> Self {
        Self { has_fields: true, ..Self::with_events(&[name]) }
    }

    pub fn push(&mut self, record: &[u8]) {
        self.records.extend_from_slice(record);
    }

    /// Adds the record that `perf record` writes when it has read the ring buffers of all CPUs.
    pub fn finish_round(&mut self) {
        self.push(&record(68, 0, &[]));
    }

    pub fn bytes(&self) -> Vec<u8> {
        let attrs_at = 104;
        let ids_at = attrs_at + self.events.len() * (ATTR + 16);
        let data_at = ids_at + self.events.len() * 8;
        let names_at = data_at + self.records.len() + 16;
        let names = self.names();
        let mut bytes = b"PERFILE2".to_vec();
        let size = self.events.len() * (ATTR + 16);
        let header = [104, ATTR + 16, attrs_at, size, data_at, self.records.len(), 0, 0, 1 << 12, 0, 0, 0];
        header.iter().for_each(|word| bytes.extend((*word as u64).to_le_bytes()));
        for number in 0..self.events.len() {
            bytes.extend(self.attr());
            bytes.extend((ids_at as u64 + number as u64 * 8).to_le_bytes());
            bytes.extend(8u64.to_le_bytes());
        }
        (0..self.events.len() as u64).for_each(|id| bytes.extend(id.to_le_bytes()));
        bytes.extend_from_slice(&self.records);
        bytes.extend((names_at as u64).to_le_bytes());
        bytes.extend((names.len() as u64).to_le_bytes());
        bytes.extend(names);
        bytes
    }

    /// Returns the recording in the format of `perf record -o -`, in which events are records too.
    pub fn stream(&self) -> Vec<u8> {
        let mut bytes = b"PERFILE2".to_vec();
        bytes.extend(16u64.to_le_bytes());
        for id in 0..self.events.len() as u64 {
            bytes.extend(record(64, 0, &[self.attr(), id.to_le_bytes().to_vec()].concat()));
        }
        let names = [12u64.to_le_bytes().to_vec(), self.names()].concat();
        bytes.extend(record(80, 0, &names));
        if let Some(architecture) = self.architecture {
            let text = [&(architecture.len() as u32 + 1).to_le_bytes(), architecture.as_bytes(), b"\0"].concat();
            bytes.extend(record(80, 0, &[&6u64.to_le_bytes()[..], &text].concat()));
        }
        bytes.extend_from_slice(&self.records);
        bytes
    }

    /// Returns the section with the names of the events.
    fn names(&self) -> Vec<u8> {
        let mut bytes =
            [self.events.len() as u32, ATTR as u32].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        for (id, name) in self.events.iter().enumerate() {
            bytes.extend(self.attr());
            bytes.extend(1u32.to_le_bytes());
            bytes.extend(64u32.to_le_bytes());
            bytes.extend(name.bytes().chain(std::iter::repeat(0)).take(64));
            bytes.extend((id as u64).to_le_bytes());
        }
        bytes
    }

    fn attr(&self) -> Vec<u8> {
        let copies_stacks = if self.user_registers == 0 { 0 } else { REGS_USER | STACK_USER };
        let fields = if self.has_fields { RAW } else { 0 };
        let mut attr = vec![0; ATTR];
        attr[0] = if self.has_fields { TRACEPOINT } else { 0 };
        attr[4] = ATTR as u8;
        attr[24..32].copy_from_slice(&(SAMPLE_TYPE | copies_stacks | fields).to_le_bytes());
        // freq, sample_id_all
        attr[40..48].copy_from_slice(&(1u64 << 10 | 1 << 18).to_le_bytes());
        attr[80..88].copy_from_slice(&self.user_registers.to_le_bytes());
        attr
    }

    /// Writes a directory as `perf record --threads` does: the records are in files of their own.
    pub fn write_directory(&self, folder: &Path, files: &[&[u8]]) -> PathBuf {
        let path = folder.join("handmade.dir");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("data"), self.bytes()).unwrap();
        for (number, records) in files.iter().enumerate() {
            std::fs::write(path.join(format!("data.{number}")), records).unwrap();
        }
        path
    }

    pub fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("handmade.data");
        std::fs::write(&path, self.bytes()).unwrap();
        path
    }
}

/// Makes a record of any kind.
pub fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend(u16::try_from(body.len() + 8).unwrap().to_le_bytes());
    bytes.extend(body);
    bytes
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn thread(pid: u32, tid: u32) -> u64 {
    u64::from(tid) << 32 | u64::from(pid)
}

/// Makes the fields at the end of every record except samples.
fn stamp(pid: u32, tid: u32, time: u64) -> Vec<u8> {
    words(&[thread(pid, tid), time, 0, 0])
}

/// Makes a sample in user space at 0x4000.
pub fn sample(pid: u32, tid: u32, time: u64, id: u64, period: u64) -> Vec<u8> {
    sample_at(pid, tid, time, id, period, 0x4000)
}

pub fn sample_at(pid: u32, tid: u32, time: u64, id: u64, period: u64, address: u64) -> Vec<u8> {
    record(9, 2, &words(&[address, thread(pid, tid), time, id, 0, period]))
}

/// Makes a sample of `sched:sched_switch` in a thread that is switched out in a state, for another thread.
pub fn switch_sample(tid: u32, time: u64, state: u64, next: u32) -> Vec<u8> {
    let fields = [&[0; 24][..], &tid.to_le_bytes(), &[0; 4], &words(&[state]), &[0; 16], &next.to_le_bytes(), &[0; 8]];
    let fields = fields.concat();
    let start = words(&[0x4000, thread(tid, tid), time, 0, 0, 1]);
    record(9, 2, &[start, (fields.len() as u32).to_le_bytes().to_vec(), fields].concat())
}

/// Makes a sample in user space with the values of its user registers and a copy of the user stack.
pub fn sample_with_stack(pid: u32, time: u64, address: u64, registers: &[u64], stack: &[u64]) -> Vec<u8> {
    const ABI_64: u64 = 2;
    let size = stack.len() as u64 * 8;
    let start = [address, thread(pid, pid), time, 0, 0, 1, ABI_64];
    record(9, 2, &words(&[&start, registers, &[size], stack, &[size]].concat()))
}

/// Makes a sample in the kernel.
pub fn kernel_sample(pid: u32, time: u64, address: u64) -> Vec<u8> {
    record(9, 1, &words(&[address, thread(pid, pid), time, 0, 0, 1]))
}

/// Makes the mapping of the kernel: one of its symbols and the address of that.
pub fn kernel_mmap(time: u64, symbol: &str, address: u64) -> Vec<u8> {
    let mut body = words(&[thread(u32::MAX, 0), address, 0x100_0000, address]);
    body.extend(symbol.bytes().chain(std::iter::repeat(0)).take(symbol.len() / 8 * 8 + 8));
    body.extend(stamp(u32::MAX, 0, time));
    record(1, 1, &body)
}

pub fn comm(pid: u32, tid: u32, time: u64, name: &str) -> Vec<u8> {
    let name = name.bytes().chain(std::iter::repeat(0)).take(16).collect::<Vec<u8>>();
    record(3, 0, &[words(&[thread(pid, tid)]), name, stamp(pid, tid, time)].concat())
}

pub fn exit(pid: u32, tid: u32, time: u64) -> Vec<u8> {
    record(4, 0, &[words(&[thread(pid, pid), thread(tid, tid), time]), stamp(pid, tid, time)].concat())
}

pub fn lost(time: u64, samples: u64) -> Vec<u8> {
    record(2, 0, &[words(&[0, samples]), stamp(0, 0, time)].concat())
}

/// Makes a mapping of a file's code, with or without its build ID.
pub fn mmap(pid: u32, time: u64, start: u64, length: u64, path: &str, build_id: Option<[u8; 20]>) -> Vec<u8> {
    let mut body = words(&[thread(pid, pid), start, length, 0]);
    match build_id {
        Some(id) => body.extend([&[20, 0, 0, 0][..], &id].concat()),
        None => body.extend([0; 24]),
    }
    body.extend(5u32.to_le_bytes());
    body.extend(2u32.to_le_bytes());
    body.extend(path.bytes().chain(std::iter::repeat(0)).take(path.len() / 8 * 8 + 8));
    body.extend(stamp(pid, pid, time));
    record(10, if build_id.is_some() { 1 << 14 | 2 } else { 2 }, &body)
}
