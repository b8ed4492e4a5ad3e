//! `perf.data` files: binary recordings of `perf record` and other tools that use its format.
//!
//! Stacks in such a file are addresses; they are unwound and symbolized here. Weights, root frames, names of frames and
//! the options that select samples are as in `perf script` text. The weight is the event's period, or 1 with
//! `--weight samples`. Records without samples, such as those of context switches, are left out. The directories that
//! `perf record --threads` and `--kcore` write are read like a file. Specification:
//! `tools/perf/Documentation/perf.data-file-format.txt` in the kernel's sources.

mod names;
mod off_cpu;
mod samples;

use std::fs::File;
use std::io::{Read as _, Seek as _};

pub(super) use self::off_cpu::{SWITCH_EVENT, wait_weight};
pub(super) use self::samples::Samples;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::input_summary::InputSummary;
use crate::collapse::sink::Sink;
use crate::diagnostics::plural;
use crate::perf::data::{MAGIC, ReadError, Reader, SWAPPED_MAGIC};

pub(super) static FORMAT: Format = Format {
    name: "perf-data",
    description: "perf.data of perf record (Linux)",
    tested_with: "perf 6.1, published files",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Bytes(read),
};

/// Maximum size of a file that is read from a pipe and must be kept in memory, in bytes.
const MAX_IN_MEMORY: u64 = 2 << 30;

/// Maximum number of warnings about files that were not found.
const MAX_WARNINGS: usize = 8;

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let options = document.options;
    let mut samples = Samples::new(options);
    if sink.is_in_order() || sink.needs_times() || options.spans.is_some() {
        samples.keep_each_sample();
    }
    read_samples(document, &mut samples)?;
    document.summary =
        InputSummary { events: samples.events.seen().to_vec(), lost_samples: samples.lost_count(), unit: None };
    add_stacks(document, &mut samples, sink)
}

/// Returns true for the first bytes of a `perf.data` file.
pub(super) fn recognizes(head: &[u8]) -> bool {
    head.starts_with(MAGIC) || head.starts_with(SWAPPED_MAGIC)
}

/// Reads the samples of `sched:sched_switch` as off-CPU time: a stack at which a thread is switched out weighs the
/// microseconds until the thread runs again.
pub(super) fn read_off_cpu(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let mut samples = Samples::new(document.options);
    samples.read_off_cpu();
    read_samples(document, &mut samples)?;
    if let Some(off_cpu) = &mut samples.off_cpu {
        off_cpu.finish(document)?;
    }
    document.summary.events = samples.events.seen().to_vec();
    document.summary.lost_samples = samples.lost_count();
    if samples.events.seen().is_empty() {
        document.warn("has no samples of sched:sched_switch; record with perf record -e sched:sched_switch -a -g");
    }
    add_stacks(document, &mut samples, sink)
}

/// Reads all samples and reports damage.
fn read_samples(document: &mut Document<'_>, samples: &mut Samples<'_>) -> Result<(), Error> {
    if document.head()?.starts_with(SWAPPED_MAGIC) {
        return Err(document.unreadable("recorded on a big-endian machine: use `perf script -i FILE | fg-collapse`"));
    }
    let damage = read_records(document, samples)?;
    let is_empty = samples.sample_count() == 0;
    if samples.malformed > 0 {
        let records = plural(samples.malformed, "record");
        document.report_damage(&format!("{records} do not match the file's header"), is_empty)?;
    }
    let cut_features = samples.machine.is_cut.then(|| "cut short after its records: names may be missing".to_owned());
    match damage.or(cut_features) {
        Some(what) => document.report_damage(&what, is_empty),
        None => Ok(()),
    }
}

/// Names the stacks, adds them to the sink, and warns about missing files.
///
/// # Errors
/// [`Error::Unreadable`] if the recording is not all of the file.
pub(super) fn add_stacks(document: &mut Document<'_>, samples: &mut Samples<'_>, sink: &mut Sink) -> Result<(), Error> {
    sink.note_time(samples.earliest);
    let warnings = names::add_stacks(samples, document.options, sink)?;
    for warning in warnings.iter().take(MAX_WARNINGS) {
        document.warn(warning);
    }
    if let Some(more) = warnings.len().checked_sub(MAX_WARNINGS).filter(|more| *more > 0) {
        document.warn(&format!("{more} more files were not found"));
    }
    samples.trailing.take().map_or(Ok(()), |what| Err(document.unreadable(what)))
}

/// Returns the file, rewound, if it is a `perf.data` file and not a compressed one.
fn accept_uncompressed(mut file: File) -> Option<File> {
    let mut start = [0; MAGIC.len()];
    file.read_exact(&mut start).ok()?;
    file.rewind().ok()?;
    (start == *MAGIC).then_some(file)
}

/// Reads all records. Returns what is wrong with the file, if it could be read in part only.
fn read_records(document: &mut Document<'_>, samples: &mut Samples<'_>) -> Result<Option<String>, Error> {
    let name = document.name().to_owned();
    let directory = document.source().perf_directory();
    let opened = match document.source().regular_file().and_then(accept_uncompressed) {
        Some(file) => Reader::from_file(file),
        None => Reader::from_pipe(Box::new(&mut *document), MAX_IN_MEMORY),
    };
    let read = opened.and_then(|mut reader| {
        if let Some(directory) = directory {
            reader.add_files(directory)?;
        }
        let read = reader.read(&mut |head, record| samples.add_record(head, record));
        samples.finish(reader.header());
        read
    });
    match read {
        Ok(()) => Ok(None),
        Err(ReadError::Corrupt(what)) => Ok(Some(what)),
        Err(ReadError::Trailing(what)) => {
            samples.trailing = Some(what);
            Ok(None)
        }
        Err(ReadError::Handler(error)) => Err(error),
        Err(ReadError::Io(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Ok(Some("cut short within its header".to_owned()))
        }
        Err(ReadError::Io(error)) => Err(Error::read(name, error)),
    }
}
