//! `perf.data`: addresses, named here. What is selected and how frames are named is as in `perf script` text.

mod names;
mod samples;

use std::fs::File;
use std::io::{Read as _, Seek as _};

use self::samples::Samples;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::{Counts, Format, FormatReader};
use crate::diagnostics::plural;
use crate::perf::data::{MAGIC, ReadError, Reader, SWAPPED_MAGIC};

pub(super) static FORMAT: Format = Format {
    name: "perf-data",
    description: "perf.data, as perf record writes it (Linux)",
    has_times: true,
    recognizes: |head| head.starts_with(MAGIC) || head.starts_with(SWAPPED_MAGIC),
    reader: FormatReader::Bytes(read),
};

/// A file that comes through a pipe is kept as long as it is not longer.
const MOST_IN_MEMORY: u64 = 2 << 30;
/// How many files are named one by one.
const SHOWN: usize = 8;

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    if document.head()?.starts_with(SWAPPED_MAGIC) {
        return Err(
            document.unreadable("recorded on a big-endian machine: `perf script -i FILE | fg-collapse` reads it")
        );
    }
    let options = document.options;
    let mut samples = Samples::new(options);
    if sink.is_in_order() || sink.keeps_times() || options.spans.is_some() {
        samples.keep_each();
    }
    let fault = take_all(document, &mut samples)?;
    let counted = samples.count();
    document.counts = Counts { events: samples.events.seen().to_vec(), lost: samples.lost(), unit: None };
    if samples.malformed > 0 {
        let records = plural(samples.malformed, "record");
        document.damaged(&format!("{records} could not be read as the recording's head has them"), counted == 0)?;
    }
    let behind = samples.machine.is_cut.then(|| "cut short behind its records: names may be missing".to_owned());
    if let Some(what) = fault.or(behind) {
        document.damaged(&what, counted == 0)?;
    }
    let remarks = names::fold(&mut samples, options, sink)?;
    for remark in remarks.iter().take(SHOWN) {
        document.warn(remark);
    }
    if let Some(more) = remarks.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        document.warn(&format!("{more} more files were not found"));
    }
    Ok(())
}

/// The file at its beginning, if it is not compressed as a whole.
fn plain(mut file: File) -> Option<File> {
    let mut start = [0; MAGIC.len()];
    file.read_exact(&mut start).ok()?;
    file.rewind().ok()?;
    (start == *MAGIC).then_some(file)
}

/// Takes all records in; what was wrong with the file, if not everything.
fn take_all(document: &mut Document<'_>, samples: &mut Samples<'_>) -> Result<Option<String>, Error> {
    let name = document.name().to_owned();
    let opened = match document.source().regular_file().and_then(plain) {
        Some(file) => Reader::from_file(file),
        None => Reader::from_pipe(Box::new(&mut *document), MOST_IN_MEMORY),
    };
    let read = opened.and_then(|mut reader| {
        let read = reader.read(&mut |head, record| samples.take(head, record));
        samples.end(reader.header());
        read
    });
    match read {
        Ok(()) => Ok(None),
        Err(ReadError::Corrupt(what)) => Ok(Some(what)),
        Err(ReadError::Handler(error)) => Err(error),
        Err(ReadError::Io(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Ok(Some("cut short within its head".to_owned()))
        }
        Err(ReadError::Io(error)) => Err(Error::read(name, error)),
    }
}
