//! Execution traces of Go 1.22 and later (`runtime/trace`, `go test -trace`, `/debug/pprof/trace`).
//!
//! A trace has generations of about a second, each with its own tables of strings and stacks. The values are samples of
//! CPU time (`cpu`, if a CPU profile was taken at the same time) and nanoseconds that goroutines spent blocked: on
//! channels, `select` and locks (`sync`), on the network (`net`), in system calls (`syscall`), and for other reasons
//! such as `time.Sleep` (`wait`). `sync`, `net` and `syscall` are what `go tool trace -pprof=TYPE` reports. The default
//! is the first that the trace has. A goroutine that is still blocked at the end of the trace is left out.
//!
//! Sources: `internal/trace/tracev2` and `internal/trace` of Go.

mod batches;
mod goroutines;
mod tables;

use bstr::ByteSlice as _;
use rustc_hash::FxHashMap;

use self::batches::{Batches, Event, EventKind};
use self::goroutines::Goroutines;
use self::tables::Tables;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader};
use crate::collapse::line_helpers::parse_number;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "go-trace",
    description: "Go execution traces (runtime/trace, Go 1.22 and later)",
    tried_with: "Go 1.27",
    has_times: false,
    recognizes,
    reader: FormatReader::Bytes(read),
};

/// The values of a trace, in the order of preference.
const VALUES: [&str; 5] = ["cpu", "sync", "net", "syscall", "wait"];

/// The index of a value in [`VALUES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Cpu,
    Sync,
    Net,
    Syscall,
    Wait,
}

/// The sums of the values of each stack, whose frames are leaf first.
#[derive(Default)]
struct Sums {
    numbers: FxHashMap<Box<[FrameId]>, usize>,
    values: Vec<[Weight; VALUES.len()]>,
}

/// The first minor version of Go whose traces have this form.
const FIRST_VERSION: u64 = 22;

fn recognizes(head: &[u8]) -> bool {
    go_version(head).is_some_and(|version| version >= FIRST_VERSION)
}

/// Returns true for a trace of Go 1.21 or older.
pub(in crate::collapse) fn is_old(head: &[u8]) -> bool {
    go_version(head).is_some_and(|version| version < FIRST_VERSION)
}

/// Returns the minor version of Go that an execution trace begins with: `go 1.22 trace`.
fn go_version(head: &[u8]) -> Option<u64> {
    let version = head.get(..16)?.strip_prefix(b"go 1.")?;
    let end = version.find_byte(b' ')?;
    version[end..].starts_with(b" trace\0").then(|| parse_number(&version[..end]))?
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut batches, mut goroutines, mut sums) = (Batches::default(), Goroutines::default(), Sums::default());
    if !recognizes(document.head()?) {
        return Err(document.unreadable("no execution trace of Go 1.22 or later"));
    }
    let (mut damage, mut malformed) = (None, 0);
    batches.skip_magic(document)?;
    loop {
        match batches.read_generation(document) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error @ Error::Read { .. }) => return Err(error),
            Err(error) => damage = Some(error.to_string()),
        }
        add_generation(&mut batches, &mut goroutines, &mut sums, &mut malformed, document, sink)?;
        if damage.is_some() {
            break;
        }
    }
    let selected = sums.select(document)?;
    document.set_unit_silently(if selected == Value::Cpu as usize { "samples" } else { "nanoseconds" });
    sums.add_to(selected, sink)?;
    document.report_problems(malformed, "batch", "damaged; the rest of each is left out")?;
    match damage {
        Some(what) => document.report_damage(&what, sink.is_input_empty()),
        None => Ok(()),
    }
}

/// Adds the events of a generation.
fn add_generation(
    batches: &mut Batches,
    goroutines: &mut Goroutines,
    sums: &mut Sums,
    malformed: &mut u64,
    document: &Document<'_>,
    sink: &mut Sink,
) -> Result<(), Error> {
    let mut tables = Tables::read(batches.tables(), document.options, malformed);
    for stack in tables.take_cpu_samples() {
        sums.add(&tables.frames(stack, sink), Value::Cpu, Weight::ONE)?;
    }
    goroutines.set_frequency(tables.frequency);
    let mut events = batches.events(malformed);
    while let Some((thread, event)) = events.next() {
        if let Some((value, nanoseconds, stack)) = goroutines.add(thread, &event, &tables, sink) {
            sums.add(&stack, value, Weight::new(nanoseconds))?;
        }
    }
    Ok(())
}

impl Sums {
    fn add(&mut self, stack: &[FrameId], value: Value, weight: Weight) -> Result<(), Error> {
        let number = match self.numbers.get(stack) {
            Some(number) => *number,
            None => {
                self.numbers.insert(stack.into(), self.values.len());
                self.values.push(Default::default());
                self.values.len() - 1
            }
        };
        let sum = &mut self.values[number][value as usize];
        *sum = sum.checked_add(weight).ok_or(Error::Overflow)?;
        Ok(())
    }

    /// Returns the index of the value that counts.
    fn select(&self, document: &mut Document<'_>) -> Result<usize, Error> {
        let has = |value: &usize| self.values.iter().any(|weights| !weights[*value].is_zero());
        let default = (0..VALUES.len()).find(has).unwrap_or_default();
        document.select_value(&VALUES, default)
    }

    fn add_to(&self, value: usize, sink: &mut Sink) -> Result<(), Error> {
        let mut stacks: Vec<_> = self.numbers.iter().collect();
        stacks.sort_unstable_by_key(|(_, number)| **number);
        for (frames, number) in stacks {
            let mut stack = Stack::default();
            stack.extend(frames);
            stack.add_leaf_first(self.values[*number][value], sink)?;
        }
        Ok(())
    }
}
