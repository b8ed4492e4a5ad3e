//! The blocks of a trace, as versions 4 and 5 of the format frame them, and version 6.

use std::io::Read;

use crate::collapse::formats::little_endian::Bytes;

/// The first bytes of a trace.
pub(super) const MAGIC: &[u8] = b"Nettrace";

/// What versions 4 and 5 have after the first bytes.
const SERIALIZATION: &[u8] = b"\x14\0\0\0!FastSerialization.1";

/// Bytes between the parts of an object in versions 4 and 5.
mod tag {
    pub const NULL: u8 = 1;
    pub const BEGIN: u8 = 5;
    pub const END: u8 = 6;
}

/// The number of bytes of the description of a trace in versions 4 and 5.
const TRACE_SIZE: u64 = 48;

/// The contents of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Trace,
    Events,
    Metadata,
    SequencePoint,
    Stacks,
    Threads,
    Other,
}

/// The blocks of a trace, which are read one after another.
pub(super) struct Stream<R> {
    input: R,
    /// Number of bytes that were read. Blocks of versions 4 and 5 are aligned to it.
    offset: u64,
    /// True for version 6 and later.
    pub(super) is_compact: bool,
}

/// The reasons for which a block cannot be read.
#[derive(Debug)]
pub(super) enum Failure {
    Io(std::io::Error),
    /// The input ends before the block does.
    CutShort,
    /// The bytes are not those of a block.
    Damaged,
}

impl<R: Read> Stream<R> {
    /// Reads the bytes before the first block. Returns an error with the version's number if it is not known.
    pub(super) fn open(input: R) -> Result<Result<Self, u32>, Failure> {
        let mut stream = Self { input, offset: 0, is_compact: false };
        let magic = stream.take(MAGIC.len() as u64)?;
        let start = stream.take(4)?;
        if magic != MAGIC {
            return Err(Failure::Damaged);
        }
        if start != [0; 4] {
            let rest = stream.take(SERIALIZATION.len() as u64 - 4)?;
            return if [start, rest].concat() == SERIALIZATION { Ok(Ok(stream)) } else { Err(Failure::Damaged) };
        }
        let version = stream.u32()?;
        stream.u32()?;
        stream.is_compact = true;
        Ok(if version == 6 { Ok(stream) } else { Err(version) })
    }

    /// Reads the next block. Returns `None` at the end of the trace.
    pub(super) fn read_block(&mut self) -> Result<Option<(Kind, Vec<u8>)>, Failure> {
        if self.is_compact { self.read_compact_block() } else { self.read_object() }
    }

    fn read_compact_block(&mut self) -> Result<Option<(Kind, Vec<u8>)>, Failure> {
        let header = self.u32()?;
        let kind = match header >> 24 {
            0 => return Ok(None),
            1 => Kind::Trace,
            2 => Kind::Events,
            3 => Kind::Metadata,
            4 => Kind::SequencePoint,
            5 => Kind::Stacks,
            6 => Kind::Threads,
            _ => Kind::Other,
        };
        self.take(u64::from(header & 0xff_ffff)).map(|bytes| Some((kind, bytes)))
    }

    fn read_object(&mut self) -> Result<Option<(Kind, Vec<u8>)>, Failure> {
        match self.take(1)?[0] {
            tag::NULL => return Ok(None),
            tag::BEGIN => {}
            _ => return Err(Failure::Damaged),
        }
        let start = self.take(2 + 4 + 4)?;
        let length = self.u32()?;
        let name = self.take(length.into())?;
        if start[..2] != [tag::BEGIN, tag::NULL] || self.take(1)? != [tag::END] {
            return Err(Failure::Damaged);
        }
        let kind = match &name[..] {
            b"Trace" => Kind::Trace,
            b"EventBlock" => Kind::Events,
            b"MetadataBlock" => Kind::Metadata,
            b"SPBlock" => Kind::SequencePoint,
            b"StackBlock" => Kind::Stacks,
            _ => Kind::Other,
        };
        let bytes = match kind {
            Kind::Trace => self.take(TRACE_SIZE)?,
            _ => {
                let size = self.u32()?;
                self.take(self.offset.next_multiple_of(4) - self.offset)?;
                self.take(size.into())?
            }
        };
        if self.take(1)? == [tag::END] { Ok(Some((kind, bytes))) } else { Err(Failure::Damaged) }
    }

    fn u32(&mut self) -> Result<u32, Failure> {
        let bytes = self.take(4)?;
        Bytes(&bytes).u32().ok_or(Failure::CutShort)
    }

    /// Reads bytes. The memory grows with what there is, since a damaged length may be large.
    fn take(&mut self, length: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        self.input.by_ref().take(length).read_to_end(&mut bytes).map_err(Failure::Io)?;
        self.offset += bytes.len() as u64;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(Failure::CutShort) }
    }
}
