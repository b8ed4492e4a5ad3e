//! Reading a recording from its beginning to its end.

use std::io::{Cursor, Read, Seek, SeekFrom};

use super::compressed::Decompressor;
use super::head::{self, Head};
use super::stream::{RECORD_HEADER, Stream};
use super::window::Window;
use super::{Fault, attr::Attr, broken};
use crate::Error;
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

/// A recording that is read.
pub struct Reader<'a> {
    head: Head,
    stream: Stream<Box<dyn Read + 'a>>,
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
    pub fn of_file(mut file: impl Read + Seek + 'a) -> Result<Self, Fault> {
        let mut start = [0; head::STREAM_HEADER];
        file.read_exact(&mut start)?;
        if head::is_stream(&start)? {
            return Ok(Self::of(Head::default(), Box::new(file), None));
        }
        let (head, data) = Head::of_file(&mut file)?;
        file.seek(SeekFrom::Start(data.offset.min(i64::MAX as u64)))?;
        Ok(Self::of(head, Box::new(file), (data.size > 0).then_some(data.size)))
    }

    /// Reads a stream as it comes. A file that comes as a stream is kept until its end, up to `most` bytes: it says only
    /// behind the records what stands in them.
    ///
    /// # Errors
    /// As [`Reader::of_file`].
    pub fn of_stream(mut reader: Box<dyn Read + 'a>, most: u64) -> Result<Self, Fault> {
        let mut start = [0; head::STREAM_HEADER];
        reader.read_exact(&mut start)?;
        if head::is_stream(&start)? {
            return Ok(Self::of(Head::default(), reader, None));
        }
        let mut bytes = start.to_vec();
        (&mut reader).take(most).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return broken(format!("longer than {} MiB, and not read from its file: name the file", most >> 20));
        }
        Self::of_file(Cursor::new(bytes))
    }

    fn of(head: Head, reader: Box<dyn Read + 'a>, size: Option<u64>) -> Self {
        let rest = Rest { window: Window::default(), decompressor: None };
        Self { head, stream: Stream::new(reader, size), rest }
    }

    /// What the recording has said of itself so far.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Gives all records, in the order of their times. What stands before a fault is given too.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn read(&mut self, take: Take<'_>) -> Result<(), Fault> {
        let mut read = Ok(true);
        while matches!(read, Ok(true)) {
            read = self.step(take);
        }
        let Self { head, rest, .. } = self;
        let flushed = rest.finish(head, take);
        read.and(flushed)
    }

    /// Takes one record; `false` at the end.
    fn step(&mut self, take: Take<'_>) -> Result<bool, Fault> {
        let Self { head, stream, rest } = self;
        let Some(record) = stream.next()? else { return Ok(false) };
        let kind = kind_of(record);
        let mut body = Fields::new(&record[RECORD_HEADER..]);
        let skipped = match kind {
            ..kind::FIRST => {
                rest.push(head, record, take)?;
                0
            }
            kind::TRACING_DATA => u64::from(body.u32().unwrap_or(0)).next_multiple_of(8),
            kind::AUXTRACE => body.u64().unwrap_or(0),
            kind::FINISHED_ROUND => {
                rest.end_round(head, take)?;
                0
            }
            kind::COMPRESSED => {
                rest.push_compressed(&record[RECORD_HEADER..], head, take)?;
                0
            }
            kind::COMPRESSED_2 => {
                let size = body.u64().and_then(|size| usize::try_from(size).ok());
                let Some(piece) = size.and_then(|size| body.take(size)) else {
                    return broken("its compressed records are corrupt");
                };
                rest.push_compressed(piece, head, take)?;
                0
            }
            _ => {
                tell(head, kind, record)?;
                0
            }
        };
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
    fn push(&mut self, head: &Head, record: &[u8], take: Take<'_>) -> Result<(), Fault> {
        let time = head.attrs.time_of(record);
        // What `perf` found when it began has no time: it was there before everything else.
        let pushed = match time {
            0 => take(head, record),
            _ => self.window.push(record, time, &mut |record| take(head, record)),
        };
        pushed.map_err(Fault::Taker)
    }

    fn end_round(&mut self, head: &Head, take: Take<'_>) -> Result<(), Fault> {
        match self.decompressor.take() {
            None => self.window.end_round(&mut |record| take(head, record)).map_err(Fault::Taker),
            Some(mut decompressor) => {
                let ended = decompressor.end_round(&mut |inner| self.take_inner(inner, head, take));
                self.decompressor = Some(decompressor);
                ended
            }
        }
    }

    fn push_compressed(&mut self, piece: &[u8], head: &Head, take: Take<'_>) -> Result<(), Fault> {
        let mut decompressor = self.decompressor.take().unwrap_or_else(Decompressor::new);
        let pushed = decompressor.push(piece, &mut |inner| self.take_inner(inner, head, take));
        self.decompressor = Some(decompressor);
        pushed
    }

    /// What comes out of the compressed stream: a record, or the end of a round.
    fn take_inner(&mut self, inner: Option<&[u8]>, head: &Head, take: Take<'_>) -> Result<(), Fault> {
        match inner {
            Some(record) if kind_of(record) < kind::FIRST => self.push(head, record, take),
            Some(_) => Ok(()),
            None => self.window.end_round(&mut |record| take(head, record)).map_err(Fault::Taker),
        }
    }

    /// Gives what waits.
    fn finish(&mut self, head: &Head, take: Take<'_>) -> Result<(), Fault> {
        let mut ended = Ok(());
        if let Some(mut decompressor) = self.decompressor.take() {
            ended = decompressor.finish(&mut |inner| self.take_inner(inner, head, take));
        }
        self.window.hand_out(u64::MAX, &mut |record| take(head, record)).map_err(Fault::Taker)?;
        ended
    }
}
