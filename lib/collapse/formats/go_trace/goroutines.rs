//! The states of goroutines, and how long each was blocked.

use bstr::ByteSlice as _;
use rustc_hash::FxHashMap;

use super::tables::Tables;
use super::{Event, EventKind, Value};
use crate::collapse::sink::Sink;
use crate::profile::FrameId;

/// `GoSyscall` and `GoRunning` of `tracev2.GoStatus`.
const RUNNING: u64 = 2;
const IN_SYSCALL: u64 = 3;

/// The states of all goroutines.
pub(super) struct Goroutines {
    /// The goroutine that each thread runs.
    running: FxHashMap<u64, u64>,
    /// The goroutines that are blocked.
    blocked: FxHashMap<u64, Block>,
    /// The nanoseconds of a unit of the trace's clock.
    nanoseconds: f64,
}

/// The block of a goroutine.
struct Block {
    value: Value,
    /// The start in nanoseconds.
    start: u64,
    /// The frames, leaf first.
    stack: Vec<FrameId>,
}

/// A block that has ended.
pub(super) struct Ended {
    pub(super) value: Value,
    /// The start in nanoseconds on the clock of the trace.
    pub(super) start: u64,
    pub(super) nanoseconds: u64,
    /// The frames, leaf first.
    pub(super) stack: Vec<FrameId>,
}

impl Default for Goroutines {
    fn default() -> Self {
        Self { running: FxHashMap::default(), blocked: FxHashMap::default(), nanoseconds: 1.0 }
    }
}

impl Goroutines {
    /// Sets the units of the trace's clock per second.
    pub(super) fn set_frequency(&mut self, frequency: u64) {
        if frequency > 0 {
            self.nanoseconds = 1e9 / frequency as f64;
        }
    }

    /// Adds an event on a thread. Returns the block that it ends.
    pub(super) fn add(&mut self, thread: u64, event: &Event, tables: &Tables<'_>, sink: &mut Sink) -> Option<Ended> {
        let [first, second, third, fourth] = event.arguments;
        let time = self.time(event.time);
        match event.kind {
            EventKind::Start => drop(self.running.insert(thread, first)),
            EventKind::CreateSyscall => {
                self.running.insert(thread, first);
                self.block(first, Value::Syscall, time, 0, tables, sink);
            }
            EventKind::Status => match third {
                RUNNING => drop(self.running.insert(second, first)),
                IN_SYSCALL => {
                    self.running.insert(second, first);
                    if !self.blocked.contains_key(&first) {
                        self.block(first, Value::Syscall, time, fourth, tables, sink);
                    }
                }
                _ => {}
            },
            EventKind::Stop => drop(self.running.remove(&thread)),
            EventKind::Destroy => {
                let goroutine = self.running.remove(&thread)?;
                return self.unblock(goroutine, time);
            }
            EventKind::Block => {
                let goroutine = self.running.remove(&thread)?;
                self.block(goroutine, value_of_reason(tables.string(first)), time, second, tables, sink);
            }
            EventKind::Unblock => return self.unblock(first, time),
            EventKind::SyscallBegin => {
                let goroutine = *self.running.get(&thread)?;
                self.block(goroutine, Value::Syscall, time, second, tables, sink);
            }
            EventKind::SyscallEnd => {
                let goroutine = *self.running.get(&thread)?;
                return self.unblock(goroutine, time);
            }
            EventKind::Switch => {
                if let Some(goroutine) = self.running.insert(thread, first) {
                    self.block(goroutine, Value::Wait, time, 0, tables, sink);
                }
                return self.unblock(first, time);
            }
            EventKind::Other => {}
        }
        None
    }

    /// Converts a time to nanoseconds. Go also calculates in floating point, so that the differences are the same.
    pub(super) fn time(&self, units: u64) -> u64 {
        (units as f64 * self.nanoseconds) as u64
    }

    fn block(&mut self, goroutine: u64, value: Value, start: u64, stack: u64, tables: &Tables<'_>, sink: &mut Sink) {
        self.blocked.insert(goroutine, Block { value, start, stack: tables.frames(stack, sink) });
    }

    fn unblock(&mut self, goroutine: u64, time: u64) -> Option<Ended> {
        let block = self.blocked.remove(&goroutine)?;
        let nanoseconds = time.saturating_sub(block.start);
        Some(Ended { value: block.value, start: block.start, nanoseconds, stack: block.stack })
    }
}

/// Returns the value that the time of a block for this reason belongs to, as `go tool trace` divides them.
fn value_of_reason(reason: &[u8]) -> Value {
    match reason {
        b"network" => Value::Net,
        _ if ["chan", "sync", "select"].iter().any(|part| reason.contains_str(part)) => Value::Sync,
        _ => Value::Wait,
    }
}
