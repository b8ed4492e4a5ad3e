//! The records in which the BPF program sends events with their context (`record/bpf/event_records.bpf.h`).

use crate::perf::event::{Fields, Sample, Stamp, UserState};
use crate::perf::unwind;

/// The bit of a record's first word that tells it from a stack.
const EVENT: u64 = 1 << 63;

/// Number of registers in the kernel's `struct pt_regs`.
const REGISTERS: usize = 21;

/// Number of words before the kernel stack.
const HEAD_WORDS: usize = 7 + REGISTERS;

/// The place in `struct pt_regs` of each register of a sample, in the order of `perf_regs.h`: ax, bx, cx, dx, si, di, bp,
/// sp, ip, flags, r8 to r15.
const SAMPLE_ORDER: [usize; 18] = [10, 5, 11, 12, 13, 14, 4, 19, 16, 18, 9, 8, 7, 6, 3, 2, 1, 0];

/// The place of the code segment, which is not 0 if there are registers of user code.
const CODE_SEGMENT: usize = 17;

/// The kinds of events that the program sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A thread was woken: the subject.
    Waking,
    /// A pair of events is complete, and this is its stack.
    Pair,
    /// A pair with this number has begun, and this is its stack.
    PairBegin,
    /// The pair with this number is complete.
    PairEnd,
    /// A thread sleeps. The subject is the number of its switches, and the number of nanoseconds that of the bytes of its
    /// user stack.
    Sleeper,
    /// A thread was woken because its process ends: the subject. There is no stack.
    Killed,
    /// A thread leaves its CPU.
    Switch,
    /// A thread comes back after a long block, which began at the time that is the subject, and this is the stack with which it left
    /// its CPU.
    LongBlock,
}

/// An event, and where its thread was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// The kind of event.
    pub kind: EventKind,
    /// The number of events that this one represents.
    pub count: u64,
    /// The thread that was woken, the number of a pair or of the switches of a thread that sleeps, or the time of a switch.
    pub subject: u64,
    /// The duration of a pair, or the size of a stack in bytes.
    pub nanoseconds: u64,
    /// A number that differs from one program to another, also if a process runs one after the other; of a thread that sleeps,
    /// its thread pointer.
    pub program: u64,
    /// The process in which the event happened.
    pub pid: u32,
    /// The thread in which it happened.
    pub tid: u32,
    /// The name of the thread; empty if the event has no stack.
    comm: [u8; 16],
    /// The user registers, in the order of a sample's; `None` if there are none.
    registers: Option<Vec<u8>>,
    /// The addresses of the kernel stack, innermost first.
    pub kernel: Vec<u64>,
}

impl EventRecord {
    /// Parses the raw data of a sample of the BPF program's counter. `None` if it is a stack, or malformed.
    pub fn parse(raw: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(raw);
        let head = fields.u64()?;
        if head & EVENT == 0 {
            return None;
        }
        let kind = match head >> 56 & 0x7f {
            0 => EventKind::Waking,
            1 => EventKind::Pair,
            2 => EventKind::PairBegin,
            3 => EventKind::PairEnd,
            4 => EventKind::Sleeper,
            5 => EventKind::Killed,
            6 => EventKind::Switch,
            7 => EventKind::LongBlock,
            _ => return None,
        };
        let (subject, nanoseconds, program, ids) = (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
        let comm = u128::from(fields.u64()?) | u128::from(fields.u64()?) << 64;
        let mut registers = [0; REGISTERS];
        for register in &mut registers {
            *register = fields.u64()?;
        }
        let kernel = (0..head & 0xffff).map(|_| fields.u64()).collect::<Option<_>>()?;
        let sampled = SAMPLE_ORDER.iter().flat_map(|place| registers[*place].to_le_bytes());
        let registers = (registers[CODE_SEGMENT] != 0).then(|| sampled.collect());
        let (count, comm) = (head >> 16 & 0xffff_ffff, comm.to_le_bytes());
        let (pid, tid) = ((ids >> 32) as u32, ids as u32);
        Some(Self { kind, count, subject, nanoseconds, program, pid, tid, comm, registers, kernel })
    }

    /// Parses records that follow one another. What is cut is left out.
    pub fn parse_all(mut raw: &[u8]) -> Vec<Self> {
        let mut records = Vec::new();
        while let Some(record) = Self::parse(raw) {
            raw = &raw[8 * (HEAD_WORDS + record.kernel.len())..];
            records.push(record);
        }
        records
    }

    /// Returns the name of the thread; empty if the event has no stack.
    pub fn comm(&self) -> &[u8] {
        self.comm.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// Returns the stamp of the record with the thread in which the event happened. A thread that has all but exited has no ID
    /// in the stamp that the kernel wrote.
    pub fn stamp(&self, stamp: Stamp) -> Stamp {
        Stamp { pid: self.pid, tid: self.tid, ..stamp }
    }

    /// Returns the event as a sample without a kernel stack.
    pub fn sample(&self) -> Sample<'_> {
        let registers = self.registers.as_deref();
        let user = registers.map(|registers| UserState { mask: unwind::REGISTERS, registers, ..UserState::default() });
        Sample { in_kernel: true, user, ..Sample::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::{EventKind, EventRecord, Stamp};

    #[test]
    fn parses_registers_in_the_order_of_samples() {
        let name = u64::from_le_bytes(*b"worker-1");
        let mut words = vec![1u64 << 63 | 2 << 56 | 17 << 16 | 2, 77, 1000, 55, 12 << 32 | 34, name, 0];
        words.extend(100..121);
        words.extend([7, 8]);
        let raw: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let record = EventRecord::parse(&raw).unwrap();
        assert_eq!((record.kind, record.count, record.subject), (EventKind::PairBegin, 17, 77));
        assert_eq!((record.nanoseconds, &record.kernel[..]), (1000, &[7, 8][..]));
        assert_eq!((record.program, record.comm()), (55, &b"worker-1"[..]));
        let stamp = record.stamp(Stamp { time: 9, tid: u32::MAX, ..Stamp::default() });
        assert_eq!((stamp.time, stamp.pid, stamp.tid), (9, 12, 34));
        let sample = record.sample();
        let registers = sample.user.unwrap().registers;
        let register = |number: usize| u64::from_le_bytes(registers[number * 8..][..8].try_into().unwrap());
        // ax, bp, sp, ip, flags, r15.
        assert_eq!([0, 6, 7, 8, 9, 17].map(register), [110, 104, 119, 116, 118, 100]);
        assert_eq!(EventRecord::parse(&raw[..raw.len() - 8]), None);
        let twice = [&raw[..], &raw, &raw[..24]].concat();
        assert_eq!(EventRecord::parse_all(&twice), [record.clone(), record.clone()]);
        assert_eq!(EventRecord::parse(&77u64.to_le_bytes()), None);
    }
}
