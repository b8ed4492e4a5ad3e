//! Reads a recording from beginning to end.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use super::attr::Attr;
use super::compressed::Decompressor;
use super::error::{ReadError, corrupt, explain_trailing};
use super::header::{Header, PIPE_HEADER, is_pipe_format};
use super::read_ahead::{RecordSender, record_channel};
use super::record_reader::{RECORD_HEADER, RecordReader, record_type};
use super::reorder::ReorderBuffer;
use crate::Error;
use crate::parallel;
use crate::perf::event::Fields;

/// The types of the records that `perf record` adds to those of the kernel (`enum perf_user_event_type`).
mod user_type {
    pub(super) const FIRST: u32 = 64;
    pub(super) const ATTR: u32 = 64;
    pub(super) const TRACING_DATA: u32 = 66;
    pub(super) const BUILD_ID: u32 = 67;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const AUXTRACE: u32 = 71;
    pub(super) const EVENT_UPDATE: u32 = 78;
    pub(super) const FEATURE: u32 = 80;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED_2: u32 = 83;
}

/// The message for a file whose header was never completed.
const KILLED: &str = "perf record was killed: what it had not written yet is missing";

/// Reads a recording.
pub struct Reader<'a> {
    header: Header,
    records: RecordReader<Box<dyn Read + Send + 'a>>,
    /// True for a file whose header does not have the size of the records: `perf record` writes it at the end.
    is_unfinished: bool,
    /// The message about bytes behind the recording, if there are any.
    trailing: Option<String>,
    /// The files of a directory whose records are still to be read, the last one first.
    files: Vec<File>,
    sorter: Sorter,
}

/// The handler of the kernel's records. It also gets the header, as far as it was read before the record.
pub type RecordHandler<'a> = &'a mut dyn FnMut(&Header, &[u8]) -> Result<(), Error>;

impl<'a> Reader<'a> {
    /// Reads the header of a file, or of pipe output that was saved to a file.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be read or is not a recording.
    pub fn from_file(mut file: impl Read + Seek + Send + 'a) -> Result<Self, ReadError> {
        let mut start = [0; PIPE_HEADER];
        file.read_exact(&mut start)?;
        if is_pipe_format(&start)? {
            return Ok(Self::new(Header::default(), Box::new(file), None));
        }
        let (header, data) = Header::read(&mut file)?;
        let length = file.seek(SeekFrom::End(0))?;
        let trailing = header.length.filter(|end| *end < length).map(|end| explain_trailing(end, length));
        file.seek(SeekFrom::Start(data.offset.min(i64::MAX as u64)))?;
        let size = (data.size > 0).then_some(data.size);
        Ok(Self { is_unfinished: size.is_none(), trailing, ..Self::new(header, Box::new(file), size) })
    }

    /// Reads from a pipe.
    ///
    /// What `perf record` wrote to a file is first read whole, up to `max_bytes`: the sections that describe the
    /// records follow them.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be read, is not a recording, or is too long.
    pub fn from_pipe(mut pipe: Box<dyn Read + Send + 'a>, max_bytes: u64) -> Result<Self, ReadError> {
        let mut start = [0; PIPE_HEADER];
        pipe.read_exact(&mut start)?;
        if is_pipe_format(&start)? {
            return Ok(Self::new(Header::default(), pipe, None));
        }
        let mut bytes = start.to_vec();
        (&mut pipe).take(max_bytes).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes {
            return corrupt(format!("longer than {} MiB, and not read from its file: name the file", max_bytes >> 20));
        }
        Self::from_file(Cursor::new(bytes))
    }

    fn new(header: Header, reader: Box<dyn Read + Send + 'a>, size: Option<u64>) -> Self {
        let sorter = Sorter { buffer: ReorderBuffer::default(), decompressor: None, ignores_rounds: false };
        let records = RecordReader::new(reader, size);
        Self { header, records, is_unfinished: false, trailing: None, files: Vec::new(), sorter }
    }

    /// Adds the files `data.0`, `data.1`, … of a directory that `perf record --threads` wrote: each has the records of
    /// some CPUs. The reader was created from the file `data`.
    ///
    /// # Errors
    /// [`ReadError`] if a file cannot be opened, is no regular file, or is missing although a later one exists.
    pub fn add_files(&mut self, directory: &Path) -> Result<(), ReadError> {
        let count = std::fs::read_dir(directory)?.flatten().filter(|entry| is_part(&entry.file_name())).count();
        for number in 0..count {
            let path = directory.join(format!("data.{number}"));
            // Opening a FIFO would wait for a writer.
            if !path.is_file() {
                return Err(ReadError::Corrupt(format!("data.{number} of the directory is missing, or not a file")));
            }
            self.files.push(File::open(path)?);
        }
        self.files.reverse();
        // The rounds of a file say nothing about the records of the others.
        self.sorter.ignores_rounds = !self.files.is_empty();
        Ok(())
    }

    /// The header, as far as it was read.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Passes all records to `handle`, sorted by time, while another thread reads them.
    ///
    /// If the file is cut short or corrupt, the records before that place are handled first.
    ///
    /// # Errors
    /// [`ReadError`]
    pub fn read(&mut self, handle: RecordHandler<'_>) -> Result<(), ReadError> {
        let mut header = self.header.clone();
        let (mut sender, receiver) = record_channel();
        std::thread::scope(|scope| {
            let reading = parallel::spawn_scoped(scope, || {
                let read = self.read_all(&mut sender);
                sender.flush();
                drop(sender);
                read
            })
            .map_err(ReadError::Handler)?;
            // What the recording says about itself holds for the records behind it, so it is also sent in order.
            let handled = receiver.for_each(|record| match record_type(record) {
                ..user_type::FIRST => handle(&header, record).map_err(ReadError::Handler),
                _ => update_header(&mut header, record),
            });
            handled.and(reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn read_all(&mut self, out: &mut RecordSender) -> Result<(), ReadError> {
        let mut read = Ok(true);
        while matches!(read, Ok(true)) && !out.is_closed {
            read = self.read_record(out);
        }
        read.and(self.sorter.finish(&self.header, out))
    }

    /// Reads one record. False at the end.
    fn read_record(&mut self, out: &mut RecordSender) -> Result<bool, ReadError> {
        let Self { header, records, is_unfinished, trailing, sorter, files } = self;
        let Some(record) = records.next()? else {
            if let Some(file) = files.pop() {
                sorter.finish_decompression(header, out)?;
                *records = RecordReader::new(Box::new(file), None);
                return Ok(true);
            }
            return match trailing.take() {
                _ if *is_unfinished => corrupt(KILLED),
                Some(what) => Err(ReadError::Trailing(what)),
                None => Ok(false),
            };
        };
        let mut body = Fields::new(&record[RECORD_HEADER..]);
        let mut skipped = 0;
        match record_type(record) {
            ..user_type::FIRST => sorter.push(header, record, out),
            user_type::TRACING_DATA => skipped = u64::from(body.u32().unwrap_or(0)).next_multiple_of(8),
            user_type::AUXTRACE => skipped = body.u64().unwrap_or(0),
            user_type::FINISHED_ROUND => sorter.end_round(header, out)?,
            user_type::COMPRESSED => sorter.push_compressed(&record[RECORD_HEADER..], header, out)?,
            user_type::COMPRESSED_2 => {
                let size = body.u64().and_then(|size| usize::try_from(size).ok());
                let Some(piece) = size.and_then(|size| body.take(size)) else {
                    return corrupt("its compressed records are corrupt");
                };
                sorter.push_compressed(piece, header, out)?;
            }
            _ => {
                update_header(header, record)?;
                out.send(record);
            }
        }
        records.skip(skipped)?;
        Ok(true)
    }
}

/// Adds the content of a record that pipe output has instead of a part of the file's header.
fn update_header(header: &mut Header, record: &[u8]) -> Result<(), ReadError> {
    let bytes = &record[RECORD_HEADER..];
    let mut body = Fields::new(bytes);
    match record_type(record) {
        user_type::ATTR => match Attr::size(bytes).and_then(|size| bytes.split_at_checked(size)) {
            Some((attr, ids)) => header.add_attr(attr, ids)?,
            None => return corrupt("its list of events is corrupt"),
        },
        user_type::EVENT_UPDATE => {
            const NAME: u64 = 2;
            if let (Some(NAME), Some(id)) = (body.u64(), body.u64()) {
                header.rename_event(id, body.c_string());
            }
        }
        user_type::FEATURE => {
            if let Some(feature) = body.u64() {
                header.add_feature(feature, &bytes[8..]);
            }
        }
        user_type::BUILD_ID => drop(header.add_build_id(&mut Fields::new(record))),
        _ => {}
    }
    Ok(())
}

/// Decompresses and sorts the kernel's records.
struct Sorter {
    buffer: ReorderBuffer,
    decompressor: Option<Decompressor>,
    /// True if nothing is complete before the end.
    ignores_rounds: bool,
}

impl Sorter {
    #[inline]
    fn push(&mut self, header: &Header, record: &[u8], out: &mut RecordSender) {
        match header.attrs.time_of(record) {
            // Records about what existed when `perf record` started have no time. They come before all others.
            0 => out.send(record),
            time => self.buffer.push(record, time, &mut |record| out.send(record)),
        }
    }

    fn end_round(&mut self, header: &Header, out: &mut RecordSender) -> Result<(), ReadError> {
        let Some(mut decompressor) = self.decompressor.take() else {
            self.end_buffered_round(out);
            return Ok(());
        };
        let ended = decompressor.end_round(&mut |inner| self.push_decompressed(inner, header, out));
        self.decompressor = Some(decompressor);
        ended
    }

    fn push_compressed(&mut self, piece: &[u8], header: &Header, out: &mut RecordSender) -> Result<(), ReadError> {
        let mut decompressor = self.decompressor.take().unwrap_or_else(Decompressor::new);
        let pushed = decompressor.push(piece, &mut |inner| self.push_decompressed(inner, header, out));
        self.decompressor = Some(decompressor);
        pushed
    }

    /// Adds a decompressed record, or the end of a round.
    fn push_decompressed(
        &mut self,
        inner: Option<&[u8]>,
        header: &Header,
        out: &mut RecordSender,
    ) -> Result<(), ReadError> {
        match inner {
            Some(record) if record_type(record) < user_type::FIRST => self.push(header, record, out),
            Some(_) => {}
            None => self.end_buffered_round(out),
        }
        Ok(())
    }

    fn end_buffered_round(&mut self, out: &mut RecordSender) {
        if !self.ignores_rounds {
            self.buffer.end_round(&mut |record| out.send(record));
        }
    }

    /// Adds what is left of compressed records. Those of the next file are compressed on their own.
    fn finish_decompression(&mut self, header: &Header, out: &mut RecordSender) -> Result<(), ReadError> {
        match self.decompressor.take() {
            Some(mut decompressor) => decompressor.finish(&mut |inner| self.push_decompressed(inner, header, out)),
            None => Ok(()),
        }
    }

    /// Sends the records that still wait.
    fn finish(&mut self, header: &Header, out: &mut RecordSender) -> Result<(), ReadError> {
        let finished = self.finish_decompression(header, out);
        self.buffer.emit_until(u64::MAX, &mut |record| out.send(record));
        finished
    }
}
/// True for the name of a file of a directory that has the records of a thread, also if it was compressed since.
fn is_part(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix("data."));
    number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
}
