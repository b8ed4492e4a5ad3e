//! `perf.data` files: binary recordings of `perf record` and other tools that use its format.
//!
//! Stacks in such a file are addresses; they are unwound and symbolized here. Weights, root frames, names of frames and
//! the options that select samples are as in `perf script` text. The weight is the event's period, or 1 with
//! `--weight samples`. Records without samples, such as those of context switches, are left out. Specification:
//! `tools/perf/Documentation/perf.data-file-format.txt` in the kernel's sources.

mod names;
mod samples;

use std::fs::File;
use std::io::{Read as _, Seek as _};

use self::samples::Samples;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader};
use crate::collapse::input_summary::InputSummary;
use crate::collapse::sink::Sink;
use crate::diagnostics::plural;
use crate::perf::data::{MAGIC, ReadError, Reader, SWAPPED_MAGIC};

pub(super) static FORMAT: Format = Format {
    name: "perf-data",
    description: "perf.data of perf record (Linux)",
    tried_with: "perf 6.1, published files",
    has_times: true,
    recognizes: |head| head.starts_with(MAGIC) || head.starts_with(SWAPPED_MAGIC),
    reader: FormatReader::Bytes(read),
};

/// Maximum size of a file that is read from a pipe and must be kept in memory, in bytes.
const MAX_IN_MEMORY: u64 = 2 << 30;

/// Maximum number of warnings about files that were not found.
const MAX_WARNINGS: usize = 8;

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    if document.head()?.starts_with(SWAPPED_MAGIC) {
        return Err(document.unreadable("recorded on a big-endian machine: use `perf script -i FILE | fg-collapse`"));
    }
    let options = document.options;
    let mut samples = Samples::new(options);
    if sink.is_in_order() || sink.keeps_times() || options.spans.is_some() {
        samples.keep_each_sample();
    }
    let damage = read_records(document, &mut samples)?;
    let sample_count = samples.sample_count();
    document.summary =
        InputSummary { events: samples.events.seen().to_vec(), lost_samples: samples.lost_count(), unit: None };
    if samples.malformed > 0 {
        let records = plural(samples.malformed, "record");
        document.report_damage(&format!("{records} do not match the file's header"), sample_count == 0)?;
    }
    let cut_features = samples.machine.is_cut.then(|| "cut short after its records: names may be missing".to_owned());
    if let Some(what) = damage.or(cut_features) {
        document.report_damage(&what, sample_count == 0)?;
    }
    let warnings = names::add_stacks(&mut samples, options, sink)?;
    for warning in warnings.iter().take(MAX_WARNINGS) {
        document.warn(warning);
    }
    if let Some(more) = warnings.len().checked_sub(MAX_WARNINGS).filter(|more| *more > 0) {
        document.warn(&format!("{more} more files were not found"));
    }
    Ok(())
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
    let opened = match document.source().regular_file().and_then(accept_uncompressed) {
        Some(file) => Reader::from_file(file),
        None => Reader::from_pipe(Box::new(&mut *document), MAX_IN_MEMORY),
    };
    let read = opened.and_then(|mut reader| {
        let read = reader.read(&mut |head, record| samples.add_record(head, record));
        samples.finish(reader.header());
        read
    });
    match read {
        Ok(()) => Ok(None),
        Err(ReadError::Corrupt(what)) => Ok(Some(what)),
        Err(ReadError::Handler(error)) => Err(error),
        Err(ReadError::Io(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Ok(Some("cut short within its header".to_owned()))
        }
        Err(ReadError::Io(error)) => Err(Error::read(name, error)),
    }
}
