//! Execution traces of Go 1.22 and later (`runtime/trace`, `go test -trace`, `/debug/pprof/trace`).
//!
//! A trace has generations of about a second, each with its own tables of strings and stacks. The values are samples of
//! CPU time (`cpu`, if a CPU profile was taken at the same time) and nanoseconds that goroutines spent blocked: on
//! channels, `select` and locks (`sync`), on the network (`net`), in system calls (`syscall`), and for other reasons
//! such as `time.Sleep` (`wait`). `sync`, `net` and `syscall` are what `go tool trace -pprof=TYPE` reports. The default
//! is the first that the trace has. A goroutine that is still blocked at the end of the trace is left out. The time of a
//! sample is that at which the goroutine was sampled or blocked.
//!
//! The runtime writes the tables of a generation after its events. If a trace is cut short, those of its last generation
//! are missing, so that neither functions nor the reasons of blocks are known: that generation is left out.
//!
//! Sources: `internal/trace/tracev2` and `internal/trace` of Go.

mod batches;
mod goroutines;
mod sums;
mod tables;

use bstr::ByteSlice as _;

use self::batches::{Batches, Event, EventKind};
use self::goroutines::{Ended, Goroutines};
use self::sums::Sums;
use self::tables::Tables;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::parse_number;
use crate::collapse::sink::Sink;
use crate::diagnostics::plural;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "go-trace",
    description: "Go execution traces (runtime/trace, Go 1.22 and later)",
    tested_with: "Go 1.27",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
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

/// The number of problems of a trace.
#[derive(Default)]
struct Problems {
    /// Number of batches that end early.
    malformed: u64,
    /// Number of generations that are left out.
    left_out: u64,
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
    let (mut batches, mut goroutines) = (Batches::default(), Goroutines::default());
    let mut sums = Sums::new(document.options, sink);
    if !recognizes(document.head()?) {
        return Err(document.unreadable("not an execution trace of Go 1.22 or later"));
    }
    let (mut damage, mut problems) = (None, Problems::default());
    batches.skip_magic(document)?;
    loop {
        match batches.read_generation(document) {
            Ok(true) => {}
            Ok(false) => break,
            Err(Error::Unreadable { what, .. }) => damage = Some(what),
            Err(error) => return Err(error),
        }
        let is_whole = damage.is_none();
        add_generation(&batches, &mut goroutines, &mut sums, &mut problems, is_whole, document, sink)?;
        if damage.is_some() {
            break;
        }
    }
    let selected = sums.select(document)?;
    document.set_unit_silently(if selected == Value::Cpu as usize { "samples" } else { "nanoseconds" });
    sums.add_to(selected, document, sink)?;
    document.report_problems(problems.malformed, "batch", "damaged; the rest of each is left out")?;
    let left_out = (problems.left_out > 0).then(|| {
        format!("{} left out: its table of strings or stacks is missing", plural(problems.left_out, "generation"))
    });
    let damage: Vec<String> = damage.into_iter().chain(left_out).collect();
    match damage.is_empty() {
        true => document.check_rest_is_empty(batches.rest),
        false if batches.rest.is_empty() => document.report_unreadable_rest(&damage.join("; "), sink.is_input_empty()),
        false => {
            document.report_damage(&damage.join("; "), sink.is_input_empty())?;
            document.check_rest_is_empty(batches.rest)
        }
    }
}

/// Adds the events of a generation, unless its tables lack what the events refer to.
fn add_generation(
    batches: &Batches,
    goroutines: &mut Goroutines,
    sums: &mut Sums,
    problems: &mut Problems,
    is_whole: bool,
    document: &Document<'_>,
    sink: &mut Sink,
) -> Result<(), Error> {
    let mut malformed = 0;
    let mut tables = Tables::read(batches.tables(), document.options, &mut malformed);
    // A trace may also end between two batches.
    if (!is_whole || !tables.has_entries()) && refers_to_missing(batches, &tables) {
        problems.left_out += 1;
        // Which goroutine runs on which thread is not known after it.
        *goroutines = Goroutines::default();
        return Ok(());
    }
    goroutines.set_frequency(tables.frequency);
    for (time, stack) in tables.take_cpu_samples() {
        sums.add(&tables.frames(stack, sink), Value::Cpu, goroutines.time(time), Weight::ONE)?;
    }
    let mut events = batches.events(&mut malformed);
    while let Some((thread, event)) = events.next() {
        if let Some(Ended { value, start, nanoseconds, stack }) = goroutines.add(thread, &event, &tables, sink) {
            sums.add(&stack, value, start, Weight::new(nanoseconds))?;
        }
    }
    problems.malformed += malformed;
    Ok(())
}

/// Returns true if a block of the generation has a reason or a stack that the tables do not have.
fn refers_to_missing(batches: &Batches, tables: &Tables<'_>) -> bool {
    let mut malformed = 0;
    let mut events = batches.events(&mut malformed);
    while let Some((_, event)) = events.next() {
        let [first, second, ..] = event.arguments;
        let is_missing = match event.kind {
            EventKind::Block => tables.string(first).is_empty() || !tables.has_stack(second),
            EventKind::SyscallBegin => !tables.has_stack(second),
            _ => false,
        };
        if is_missing {
            return true;
        }
    }
    false
}
