//! The batches of a trace: tables, and the events of one thread each.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Read as _;

use crate::collapse::document::Document;
use crate::collapse::formats::little_endian::Bytes;
use crate::{Error, io_error_text};

/// The size of what a trace begins with, in bytes.
const MAGIC: usize = 16;

/// Maximum size of a batch in bytes. The runtime writes up to 64 KiB.
const MAX_BATCH: u64 = 1 << 20;

/// Types of events that structure the trace.
mod kind {
    pub const EVENT_BATCH: u8 = 1;
    pub const STACKS: u8 = 2;
    pub const STRINGS: u8 = 4;
    pub const CPU_SAMPLES: u8 = 6;
    pub const FREQUENCY: u8 = 8;
    pub const FIRST_EVENT: u8 = 9;
    pub const EXPERIMENTAL_BATCH: u8 = 49;
    pub const SYNC: u8 = 50;
    pub const END_OF_GENERATION: u8 = 52;
    pub const FIRST_EXPERIMENTAL: u8 = 128;
}

/// The number of arguments of each type of event, from [`kind::FIRST_EVENT`] on. 0 is no event of a thread.
const ARGUMENTS: [u8; 43] = [
    3, 3, 1, 4, 3, 4, 2, 3, 1, 1, 3, 3, 4, 3, 1, 1, 4, 3, 1, 2, 3, 2, 2, 2, 3, 2, 2, 1, 2, 2, 2, 5, 3, 4, 4, 5, 3, 3,
    4, 5, 0, 0, 4,
];

/// The same from [`kind::FIRST_EXPERIMENTAL`] on.
const EXPERIMENTAL_ARGUMENTS: [u8; 9] = [4, 4, 2, 3, 3, 2, 3, 3, 2];

/// An event that changes the state of a goroutine, and its arguments after the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) kind: EventKind,
    /// The time in units of the trace's clock.
    pub(super) time: u64,
    pub(super) arguments: [u64; 4],
}

/// The type of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    CreateSyscall,
    Start,
    Destroy,
    Stop,
    Block,
    Unblock,
    SyscallBegin,
    SyscallEnd,
    Status,
    Switch,
    Other,
}

impl EventKind {
    fn new(kind: u8) -> Self {
        match kind {
            15 => Self::CreateSyscall,
            16 => Self::Start,
            17 | 18 => Self::Destroy,
            19 => Self::Stop,
            20 => Self::Block,
            21 => Self::Unblock,
            22 => Self::SyscallBegin,
            23 | 24 => Self::SyscallEnd,
            25 | 48 => Self::Status,
            45 | 46 => Self::Switch,
            _ => Self::Other,
        }
    }
}

/// A batch: its generation, thread, time and content.
#[derive(Debug, Default)]
struct Batch {
    generation: u64,
    thread: u64,
    time: u64,
    bytes: Vec<u8>,
}

/// The batches of one generation.
#[derive(Debug, Default)]
pub(super) struct Batches {
    list: Vec<Batch>,
    /// The first batch of the next generation.
    next: Option<Batch>,
    /// The first byte of what follows the trace, if there is anything.
    pub(super) rest: Vec<u8>,
}

impl Batches {
    /// Skips the first bytes of a trace.
    pub(super) fn skip_magic(&mut self, document: &mut Document<'_>) -> Result<(), Error> {
        read_exact(document, &mut [0; MAGIC])
    }

    /// Reads the batches of a generation. Returns false at the end of the trace. After an error, those before it are
    /// there.
    pub(super) fn read_generation(&mut self, document: &mut Document<'_>) -> Result<bool, Error> {
        self.list.clear();
        self.list.extend(self.next.take());
        while self.rest.is_empty()
            && let Some(batch) = read_batch(document, &mut self.rest)?
        {
            if self.list.first().is_some_and(|first| first.generation != batch.generation) {
                self.next = Some(batch);
                break;
            }
            self.list.push(batch);
        }
        Ok(!self.list.is_empty())
    }

    /// Returns the content of the batches that are tables.
    pub(super) fn tables(&self) -> impl Iterator<Item = Table<'_>> {
        self.list.iter().filter_map(|batch| Table::new(&batch.bytes))
    }

    /// Returns the events of all threads, by time. `malformed` counts the batches that end early.
    pub(super) fn events<'a>(&'a self, malformed: &'a mut u64) -> Events<'a> {
        let mut threads: BTreeMap<u64, Vec<&Batch>> = BTreeMap::new();
        for batch in self.list.iter().filter(|batch| Table::new(&batch.bytes).is_none()) {
            threads.entry(batch.thread).or_default().push(batch);
        }
        let mut events = Events { threads: Vec::new(), queue: BinaryHeap::new(), malformed };
        for (number, (thread, batches)) in threads.into_iter().enumerate() {
            let mut batches = batches.into_iter();
            let first = batches.next();
            let bytes = Bytes(first.map_or(&[], |batch| &batch.bytes));
            let time = first.map_or(0, |batch| batch.time);
            events.threads.push(ThreadEvents { thread, batches: batches.collect(), bytes, time, next: None });
            events.advance(number);
        }
        events
    }
}

/// A batch that contains a part of a table.
pub(super) enum Table<'a> {
    Stacks(Bytes<'a>),
    Strings(Bytes<'a>),
    CpuSamples(Bytes<'a>),
    Frequency(Bytes<'a>),
}

impl<'a> Table<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        match *kind {
            kind::STACKS => Some(Self::Stacks(Bytes(rest))),
            kind::STRINGS => Some(Self::Strings(Bytes(rest))),
            kind::CPU_SAMPLES => Some(Self::CpuSamples(Bytes(rest))),
            kind::FREQUENCY => Some(Self::Frequency(Bytes(rest))),
            // Before the frequency comes its own type.
            kind::SYNC => Some(Self::Frequency(Bytes(rest.get(1..)?))),
            _ => None,
        }
    }
}

/// The events of all threads, in the order of time.
pub(super) struct Events<'a> {
    threads: Vec<ThreadEvents<'a>>,
    /// The time of each thread's next event, and the thread's index.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    malformed: &'a mut u64,
}

/// The events of one thread.
struct ThreadEvents<'a> {
    thread: u64,
    batches: std::collections::VecDeque<&'a Batch>,
    /// The rest of the current batch.
    bytes: Bytes<'a>,
    /// The time of the last event.
    time: u64,
    next: Option<Event>,
}

impl Events<'_> {
    /// Returns the next event that changes the state of a goroutine, and the thread that it happened on.
    pub(super) fn next(&mut self) -> Option<(u64, Event)> {
        let Reverse((_, number)) = self.queue.pop()?;
        let found = self.threads[number].next.take()?;
        let thread = self.threads[number].thread;
        self.advance(number);
        Some((thread, found))
    }

    /// Decodes the next event of a thread and queues it.
    fn advance(&mut self, number: usize) {
        let events = &mut self.threads[number];
        loop {
            while events.bytes.is_empty() {
                let Some(batch) = events.batches.pop_front() else { return };
                (events.bytes, events.time) = (Bytes(&batch.bytes), batch.time);
            }
            match parse_event(&mut events.bytes, events.time) {
                Some(event) => {
                    events.time = event.time;
                    if event.kind != EventKind::Other {
                        events.next = Some(event);
                        self.queue.push(Reverse((event.time, number)));
                        return;
                    }
                }
                None => {
                    *self.malformed += 1;
                    events.bytes = Bytes(&[]);
                }
            }
        }
    }
}

fn parse_event(bytes: &mut Bytes<'_>, before: u64) -> Option<Event> {
    let kind = bytes.u8()?;
    let count = match kind {
        kind::FIRST_EXPERIMENTAL.. => EXPERIMENTAL_ARGUMENTS.get(usize::from(kind - kind::FIRST_EXPERIMENTAL)),
        _ => ARGUMENTS.get(usize::from(kind.checked_sub(kind::FIRST_EVENT)?)),
    };
    let count = count.copied().filter(|count| *count > 0)?;
    let time = before.saturating_add(bytes.varint()?);
    let mut arguments = [0; 4];
    for argument in arguments.iter_mut().take(usize::from(count) - 1) {
        *argument = bytes.varint()?;
    }
    Some(Event { kind: EventKind::new(kind), time, arguments })
}

/// Reads a batch, or returns `None` at the end of the trace.
fn read_batch(document: &mut Document<'_>, rest: &mut Vec<u8>) -> Result<Option<Batch>, Error> {
    loop {
        let mut kind = [0];
        let read = document.read(&mut kind);
        match read.map_err(|error| document.unreadable(io_error_text(&error)))? {
            0 => return Ok(None),
            _ if kind[0] == kind::END_OF_GENERATION => continue,
            _ => {}
        }
        let is_experimental = kind[0] == kind::EXPERIMENTAL_BATCH;
        if is_experimental {
            read_varint(document)?;
        } else if kind[0] != kind::EVENT_BATCH {
            rest.push(kind[0]);
            return Ok(None);
        }
        let (generation, thread, time) = (read_varint(document)?, read_varint(document)?, read_varint(document)?);
        let size = read_varint(document)?;
        if size > MAX_BATCH {
            return Err(document.unreadable("damaged: a batch is longer than 1 MiB"));
        }
        let mut bytes = vec![0; size as usize];
        read_exact(document, &mut bytes)?;
        if !is_experimental {
            return Ok(Some(Batch { generation, thread, time, bytes }));
        }
    }
}

fn read_exact(document: &mut Document<'_>, bytes: &mut [u8]) -> Result<(), Error> {
    document.read_exact(bytes).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => document.unreadable("cut short: the input ends within a batch"),
        _ => document.unreadable(io_error_text(&error)),
    })
}

fn read_varint(document: &mut Document<'_>) -> Result<u64, Error> {
    let (mut number, mut byte) = (0, [0x80]);
    for shift in (0..64).step_by(7) {
        read_exact(document, &mut byte)?;
        number |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            break;
        }
    }
    Ok(number)
}
