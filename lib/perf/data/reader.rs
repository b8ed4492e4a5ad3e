//! Reading a recording from its beginning to its end.

use std::io::{Cursor, Read, Seek, SeekFrom};

use super::compressed::Decompressor;
use super::header::{self, Head};
use super::read_ahead::{Writer, batches};
use super::record_reader::{RECORD_HEADER, Stream};
use super::reorder::Window;
use super::{Fault, attr::Attr, broken};
use crate::Error;
use crate::parallel;
use crate::perf::event::Fields;

/// The kinds of records that `perf record` adds to the kernel's.
mod kind {
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

/// What is wrong with a file whose end was never written.
const UNENDED: &str = "perf record was killed: what it had not written yet is missing";

/// A recording that is read.
pub struct Reader<'a> {
    head: Head,
    stream: Stream<Box<dyn Read + Send + 'a>>,
    /// Whether it is a file that does not tell how long its records are: that is written at the end.
    is_unended: bool,
    rest: Rest,
}

/// What happens to the records.
struct Rest {
    window: Window,
    decompressor: Option<Decompressor>,
}

/// What takes the kernel's records in, with what the recording has said of itself so far.
pub type Take<'a> = &'a mut dyn FnMut(&Head, &[u8]) -> Result<(), Error>;

impl<'a> Reader<'a> {
    /// Reads the head of a file, or of a stream that was kept in one.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be read or is no recording.
    pub fn of_file(mut file: impl Read + Seek + Send + 'a) -> Result<Self, Fault> {
        let mut start = [0; header::STREAM_HEADER];
        file.read_exact(&mut start)?;
        if header::is_stream(&start)? {
            return Ok(Self::of(Head::default(), Box::new(file), None));
        }
        let (head, data) = Head::of_file(&mut file)?;
        file.seek(SeekFrom::Start(data.offset.min(i64::MAX as u64)))?;
        let size = (data.size > 0).then_some(data.size);
        Ok(Self { is_unended: size.is_none(), ..Self::of(head, Box::new(file), size) })
    }

    /// Reads a stream as it comes. A file that comes as a stream is kept until its end, up to `most` bytes: it says only
    /// behind the records what stands in them.
    ///
    /// # Errors
    /// As [`Reader::of_file`].
    pub fn of_stream(mut reader: Box<dyn Read + Send + 'a>, most: u64) -> Result<Self, Fault> {
        let mut start = [0; header::STREAM_HEADER];
        reader.read_exact(&mut start)?;
        if header::is_stream(&start)? {
            return Ok(Self::of(Head::default(), reader, None));
        }
        let mut bytes = start.to_vec();
        (&mut reader).take(most).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return broken(format!("longer than {} MiB, and not read from its file: name the file", most >> 20));
        }
        Self::of_file(Cursor::new(bytes))
    }

    fn of(head: Head, reader: Box<dyn Read + Send + 'a>, size: Option<u64>) -> Self {
        let rest = Rest { window: Window::default(), decompressor: None };
        Self { head, stream: Stream::new(reader, size), is_unended: false, rest }
    }

    /// What the recording has said of itself so far.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Gives all records, in the order of their times, as another thread reads them. What stands before a fault is given
    /// too.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn read(&mut self, take: Take<'_>) -> Result<(), Fault> {
        let mut head = self.head.clone();
        let (mut writer, batches) = batches();
        std::thread::scope(|scope| {
            let reading = parallel::spawn_scoped(scope, || {
                let read = self.read_all(&mut writer);
                writer.flush();
                drop(writer);
                read
            })
            .map_err(Fault::Taker)?;
            // What the recording tells of itself holds for the records behind it.
            let taken = batches.for_each(|record| match kind_of(record) {
                ..kind::FIRST => take(&head, record).map_err(Fault::Taker),
                kind => tell(&mut head, kind, record),
            });
            taken.and(reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn read_all(&mut self, out: &mut Writer) -> Result<(), Fault> {
        let mut read = Ok(true);
        while matches!(read, Ok(true)) && !out.is_unwanted {
            read = self.step(out);
        }
        read.and(self.rest.finish(&self.head, out))
    }

    /// Takes one record; `false` at the end.
    fn step(&mut self, out: &mut Writer) -> Result<bool, Fault> {
        let Self { head, stream, is_unended, rest } = self;
        let Some(record) = stream.next()? else {
            return if *is_unended { broken(UNENDED) } else { Ok(false) };
        };
        let mut body = Fields::new(&record[RECORD_HEADER..]);
        let mut skipped = 0;
        match kind_of(record) {
            ..kind::FIRST => rest.push(head, record, out),
            kind::TRACING_DATA => skipped = u64::from(body.u32().unwrap_or(0)).next_multiple_of(8),
            kind::AUXTRACE => skipped = body.u64().unwrap_or(0),
            kind::FINISHED_ROUND => rest.end_round(head, out)?,
            kind::COMPRESSED => rest.push_compressed(&record[RECORD_HEADER..], head, out)?,
            kind::COMPRESSED_2 => {
                let size = body.u64().and_then(|size| usize::try_from(size).ok());
                let Some(piece) = size.and_then(|size| body.take(size)) else {
                    return broken("its compressed records are corrupt");
                };
                rest.push_compressed(piece, head, out)?;
            }
            kind => {
                tell(head, kind, record)?;
                out.put(record);
            }
        }
        stream.skip(skipped)?;
        Ok(true)
    }
}

fn kind_of(record: &[u8]) -> u32 {
    u32::from_le_bytes([record[0], record[1], record[2], record[3]])
}

/// A record that tells what files tell in their head.
fn tell(head: &mut Head, kind: u32, record: &[u8]) -> Result<(), Fault> {
    let mut body = Fields::new(&record[RECORD_HEADER..]);
    match kind {
        kind::ATTR => {
            let bytes = &record[RECORD_HEADER..];
            match Attr::size(bytes).and_then(|size| bytes.split_at_checked(size)) {
                Some((attr, ids)) => head.add_attr(attr, ids)?,
                None => return broken("its list of events is corrupt"),
            }
        }
        kind::EVENT_UPDATE => {
            const NAME: u64 = 2;
            if let (Some(NAME), Some(id)) = (body.u64(), body.u64()) {
                head.rename_event(id, body.name());
            }
        }
        kind::FEATURE => {
            if let Some(feature) = body.u64() {
                head.add_feature(feature, &record[RECORD_HEADER + 8..]);
            }
        }
        kind::BUILD_ID => drop(head.add_build_id(&mut Fields::new(record))),
        _ => {}
    }
    Ok(())
}

impl Rest {
    #[inline]
    fn push(&mut self, head: &Head, record: &[u8], out: &mut Writer) {
        match head.attrs.time_of(record) {
            // What `perf` found when it began has no time: it was there before everything else.
            0 => out.put(record),
            time => self.window.push(record, time, &mut |record| out.put(record)),
        }
    }

    fn end_round(&mut self, head: &Head, out: &mut Writer) -> Result<(), Fault> {
        match self.decompressor.take() {
            None => self.window.end_round(&mut |record| out.put(record)),
            Some(mut decompressor) => {
                let ended = decompressor.end_round(&mut |inner| self.take_inner(inner, head, out));
                self.decompressor = Some(decompressor);
                return ended;
            }
        }
        Ok(())
    }

    fn push_compressed(&mut self, piece: &[u8], head: &Head, out: &mut Writer) -> Result<(), Fault> {
        let mut decompressor = self.decompressor.take().unwrap_or_else(Decompressor::new);
        let pushed = decompressor.push(piece, &mut |inner| self.take_inner(inner, head, out));
        self.decompressor = Some(decompressor);
        pushed
    }

    /// What comes out of the compressed stream: a record, or the end of a round.
    fn take_inner(&mut self, inner: Option<&[u8]>, head: &Head, out: &mut Writer) -> Result<(), Fault> {
        match inner {
            Some(record) if kind_of(record) < kind::FIRST => self.push(head, record, out),
            Some(_) => {}
            None => self.window.end_round(&mut |record| out.put(record)),
        }
        Ok(())
    }

    /// Gives what waits.
    fn finish(&mut self, head: &Head, out: &mut Writer) -> Result<(), Fault> {
        let mut ended = Ok(());
        if let Some(mut decompressor) = self.decompressor.take() {
            ended = decompressor.finish(&mut |inner| self.take_inner(inner, head, out));
        }
        self.window.hand_out(u64::MAX, &mut |record| out.put(record));
        ended
    }
}
