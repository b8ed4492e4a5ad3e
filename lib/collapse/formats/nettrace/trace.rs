//! The contents of a trace: its clock, threads, stacks, methods and samples.

use rustc_hash::FxHashMap;

use super::events::{EventType, Events, Header, add_metadata, read_string};
use super::methods::{Methods, ONLY_PROCESS};
use super::samples::{Key, Samples, measure};
use super::stream::Kind;
use crate::Error;
use crate::collapse::calendar::days_since_1970;
use crate::collapse::filter::sample::{SampleFilter, SampleInfo};
use crate::collapse::formats::little_endian::Bytes;
use crate::collapse::options::Options;

/// The name of a process that a trace does not name.
const NAMELESS: &[u8] = b"Thread";

/// What was read of a trace.
pub(super) struct Trace<'a> {
    options: &'a Options,
    pub(super) samples: Samples,
    pub(super) methods: Methods,
    /// Number of events and blocks that could not be decoded.
    pub(super) malformed: u64,
    keeps_times: bool,
    filter: SampleFilter,
    /// The earliest time of a sample.
    pub(super) earliest: Option<u64>,
    /// True if the options left out a sample.
    pub(super) has_left_out: bool,
    clock: Clock,
    /// The size of an address.
    pointer_size: usize,
    /// The process of a trace of one process.
    process: u64,
    types: FxHashMap<u32, EventType>,
    /// The indices of stacks in `samples`, by their ID.
    stacks: FxHashMap<u32, usize>,
    /// The processes and IDs of threads, by their index in the trace.
    threads: FxHashMap<u64, (u64, u64)>,
    names: FxHashMap<u64, Vec<u8>>,
}

/// The clock of a trace.
#[derive(Default)]
struct Clock {
    /// The start in nanoseconds since 1970, and in ticks.
    start: u64,
    start_ticks: u64,
    ticks_per_second: u64,
}

impl Clock {
    /// Reads a date and time, the ticks at that time, and the ticks per second.
    fn parse(bytes: &mut Bytes<'_>) -> Option<Self> {
        let [year, month, _, day, hour, minute, second, millisecond] = {
            let mut parts = [0; 8];
            for part in &mut parts {
                *part = i64::from(bytes.u16()?);
            }
            parts
        };
        let seconds = ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
        let start = i128::from(seconds) * 1_000_000_000 + i128::from(millisecond) * 1_000_000;
        let start = u64::try_from(start).unwrap_or(0);
        Some(Self { start, start_ticks: bytes.u64()?, ticks_per_second: bytes.u64()?.max(1) })
    }

    /// Returns a time in nanoseconds since 1970.
    fn time(&self, ticks: u64) -> u64 {
        let elapsed = i128::from(ticks) - i128::from(self.start_ticks);
        let elapsed = elapsed * 1_000_000_000 / i128::from(self.ticks_per_second.max(1));
        u64::try_from(i128::from(self.start) + elapsed).unwrap_or(0)
    }
}

impl<'a> Trace<'a> {
    pub(super) fn new(options: &'a Options, keeps_times: bool) -> Self {
        Self {
            options,
            samples: Samples::default(),
            methods: Methods::default(),
            malformed: 0,
            keeps_times,
            filter: SampleFilter::new(options),
            earliest: None,
            has_left_out: false,
            clock: Clock::default(),
            pointer_size: 8,
            process: 0,
            types: FxHashMap::default(),
            stacks: FxHashMap::default(),
            threads: FxHashMap::default(),
            names: FxHashMap::default(),
        }
    }

    /// Returns the name of a process.
    pub(super) fn process_name(&self, process: u64) -> &[u8] {
        self.names.get(&process).filter(|name| !name.is_empty()).map_or(NAMELESS, Vec::as_slice)
    }

    /// Returns the process whose methods a stack of a process has.
    pub(super) fn code_process(&self, process: u64) -> u64 {
        if process == self.process { ONLY_PROCESS } else { process }
    }

    /// Adds a block. `is_compact` is true for version 6.
    pub(super) fn add_block(&mut self, kind: Kind, block: &[u8], is_compact: bool) -> Result<(), Error> {
        let is_whole = match kind {
            Kind::Trace => self.add_trace(block, is_compact).is_some(),
            Kind::Metadata => add_metadata(block, is_compact, &mut self.types),
            Kind::Stacks => self.add_stacks(block).is_some(),
            Kind::Threads => self.add_threads(block).is_some(),
            Kind::SequencePoint => {
                self.stacks.clear();
                self.flush(block, is_compact);
                true
            }
            Kind::Events => return self.add_events(block, is_compact),
            Kind::Other => true,
        };
        self.malformed += u64::from(!is_whole);
        Ok(())
    }

    /// Forgets threads and metadata if a sequence point of version 6 says that their IDs will be used again.
    fn flush(&mut self, block: &[u8], is_compact: bool) {
        let flags = block.get(8).copied().filter(|_| is_compact).unwrap_or(0);
        if flags & 1 != 0 {
            self.threads.clear();
        }
        if flags & 2 != 0 {
            self.types.clear();
        }
    }

    fn add_trace(&mut self, block: &[u8], is_compact: bool) -> Option<()> {
        let mut bytes = Bytes(block);
        self.clock = Clock::parse(&mut bytes)?;
        self.pointer_size = if bytes.u32()? == 4 { 4 } else { 8 };
        if !is_compact {
            self.process = bytes.u32()?.into();
            return Some(());
        }
        for _ in 0..bytes.u32()? {
            let (key, value) = (read_string(&mut bytes)?, read_string(&mut bytes)?);
            if key == b"ProcessId" {
                self.process = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()).unwrap_or(0);
            }
        }
        Some(())
    }

    fn add_stacks(&mut self, block: &[u8]) -> Option<()> {
        let mut bytes = Bytes(block);
        let (first, count) = (bytes.u32()?, bytes.u32()?);
        let mut addresses: Vec<u64> = Vec::new();
        for number in 0..count {
            let size = bytes.u32()? as usize;
            let mut stack = Bytes(bytes.take(size)?);
            addresses.clear();
            while let Some(address) = stack.number(self.pointer_size) {
                addresses.push(address);
            }
            let stack = self.samples.stack(&addresses);
            self.stacks.insert(first.wrapping_add(number), stack);
        }
        Some(())
    }

    fn add_threads(&mut self, block: &[u8]) -> Option<()> {
        let mut bytes = Bytes(block);
        while !bytes.is_empty() {
            let size = bytes.u16()?;
            let mut row = Bytes(bytes.take(size.into())?);
            let index = row.varint()?;
            let mut ids = (self.process, index);
            while let Some(kind) = row.u8() {
                match kind {
                    1 => drop(read_string(&mut row)?),
                    2 => ids.0 = row.varint()?,
                    3 => ids.1 = row.varint()?,
                    4 => drop((read_string(&mut row)?, read_string(&mut row)?)),
                    _ => break,
                }
            }
            self.threads.insert(index, ids);
        }
        Some(())
    }

    fn add_events(&mut self, block: &[u8], is_compact: bool) -> Result<(), Error> {
        let Some(mut events) = Events::new(block, is_compact) else {
            self.malformed += 1;
            return Ok(());
        };
        while let Some(event) = events.next() {
            match event {
                Some((header, payload)) => self.add_event(&header, payload, is_compact)?,
                None => self.malformed += 1,
            }
        }
        Ok(())
    }

    fn add_event(&mut self, header: &Header, payload: &[u8], is_compact: bool) -> Result<(), Error> {
        let Some(event) = self.types.get(&header.metadata) else {
            self.malformed += 1;
            return Ok(());
        };
        let thread = match is_compact {
            true => self.threads.get(&header.thread).copied().unwrap_or((self.process, header.thread)),
            false => (self.process, header.thread),
        };
        let is_known = match (&event.provider[..], event.id, &event.name[..]) {
            (b"Microsoft-Windows-DotNETRuntimeRundown" | b"Microsoft-Windows-DotNETRuntime", 143 | 144, _) => {
                self.methods.add_method(payload, self.options)
            }
            (b"Microsoft-DotNETCore-EventPipe", 1, _) => add_name(payload, self.process, &mut self.names),
            (b"Universal.System", _, b"ProcessCreate") => add_universal_name(payload, thread.0, &mut self.names),
            (b"Universal.System", _, b"ProcessMapping") => self.methods.add_mapping(payload),
            (b"Universal.System", _, b"ProcessSymbol") => self.methods.add_symbol(payload, self.options),
            _ => Some(()),
        };
        self.malformed += u64::from(is_known.is_none());
        let Some(stack) = self.stacks.get(&header.stack).copied() else { return Ok(()) };
        // A stack without frames is that of an event without one.
        if header.stack == 0 || self.samples.stacks[stack].is_empty() {
            return Ok(());
        }
        let measure = measure(event, payload);
        let time = self.clock.time(header.time);
        let comm = self.names.get(&thread.0).map_or(NAMELESS, Vec::as_slice);
        let (pid, tid) = (u32::try_from(thread.0).ok(), u32::try_from(thread.1).ok());
        let info = SampleInfo { time: Some(time), comm, pid, tid, cpu: Some(header.cpu) };
        self.earliest = Some(self.earliest.map_or(time, |earliest| earliest.min(time)));
        if self.filter.accepts(&info).map_err(|missing| Error::Invalid(missing.to_owned()))? {
            let event = self.samples.event(&measure);
            let time = self.keeps_times.then_some((time, header.cpu));
            self.samples.add(Key { event, thread, stack, time }, measure.weight);
        } else {
            self.has_left_out = true;
        }
        Ok(())
    }
}

/// Adds the name of the process from a `ProcessInfo` event: the program of its command line.
fn add_name(payload: &[u8], process: u64, names: &mut FxHashMap<u64, Vec<u8>>) -> Option<()> {
    let command = Bytes(payload).utf16_c_string()?;
    let program = match command.strip_prefix(b"\"") {
        Some(quoted) => quoted.split(|byte| *byte == b'"').next(),
        None => command.split(|byte| *byte == b' ').next(),
    };
    let base = program?.rsplit(|byte| matches!(byte, b'/' | b'\\')).next()?;
    names.insert(process, base.to_vec());
    Some(())
}

/// Adds the name of a process from a `ProcessCreate` event.
fn add_universal_name(payload: &[u8], process: u64, names: &mut FxHashMap<u64, Vec<u8>>) -> Option<()> {
    let mut bytes = Bytes(payload);
    bytes.varint()?;
    let length = bytes.u16()?;
    names.insert(process, bytes.take(length.into())?.to_vec());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Clock};

    #[test]
    fn accepts_any_date() {
        let mut bytes = [0xff; 32];
        assert!(Clock::parse(&mut Bytes(&bytes)).is_some_and(|clock| clock.time(u64::MAX) == clock.start));
        bytes[..16].fill(0);
        assert_eq!(Clock::parse(&mut Bytes(&bytes)).map(|clock| clock.start), Some(0));
    }
}
