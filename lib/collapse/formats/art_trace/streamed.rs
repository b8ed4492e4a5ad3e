//! Traces that are written while the program runs (streaming mode): threads and methods are described among the entries,
//! before the first one that refers to them, and a text with the clocks comes last.

use super::{Header, MAGIC};
use crate::collapse::formats::little_endian::Bytes;
use crate::collapse::options::Options;

/// The bits of the version that tell such a trace.
const STREAMED: u16 = 0xf0;

/// The thread ID of what is no entry, and what follows it.
const NO_THREAD: u64 = 0;
const METHOD: u8 = 1;
const THREAD: u8 = 2;
const SUMMARY: u8 = 3;

/// A trace, and its entries, each as the bytes of a record.
pub(super) struct Streamed<'a> {
    pub(super) header: Header,
    pub(super) records: Vec<&'a [u8]>,
    /// True if the trace ends with its summary.
    pub(super) is_complete: bool,
    /// The bytes after the summary.
    pub(super) rest: &'a [u8],
}

/// Returns true if this is the beginning of such a trace.
pub(super) fn is_streamed(data: &[u8]) -> bool {
    let version = data.strip_prefix(MAGIC).and_then(|rest| Bytes(rest).u16());
    version.is_some_and(|version| version & STREAMED == STREAMED && version < 0x100)
}

impl<'a> Streamed<'a> {
    /// Parses a trace up to its end or to what is damaged. Returns `None` if its header is malformed.
    pub(super) fn parse(data: &'a [u8], options: &Options) -> Option<Self> {
        let mut fields = Bytes(data.strip_prefix(MAGIC)?);
        let (_, start, _) = (fields.u16()?, fields.u16()?, fields.u64()?);
        let size = usize::from(fields.u16()?);
        // A record is at least a thread, a method and a time.
        (size >= 10).then_some(())?;
        let mut trace = Self { header: Header::default(), records: Vec::new(), is_complete: false, rest: b"" };
        // Without a summary, the size tells how many clocks there are.
        trace.header.has_wall_time = true;
        trace.header.has_cpu_time = size >= 14;
        let mut rest = Bytes(data.get(usize::from(start)..)?);
        while !trace.is_complete && trace.read(&mut rest, size, options).is_some() {}
        if trace.is_complete {
            trace.rest = rest.0;
        }
        Some(trace)
    }

    /// Reads an entry or a description. Returns `None` at the end and at malformed bytes.
    fn read(&mut self, rest: &mut Bytes<'a>, size: usize, options: &Options) -> Option<()> {
        let mut inner = *rest;
        if inner.number(2)? != NO_THREAD {
            self.records.push(rest.take(size)?);
            return Some(());
        }
        match inner.u8()? {
            METHOD => {
                let length = inner.number(2)? as usize;
                self.header.add_method(inner.take(length)?.trim_ascii_end(), options);
            }
            THREAD => {
                let (id, length) = (inner.u16()?, inner.number(2)? as usize);
                self.header.threads.insert(id, inner.take(length)?.to_vec());
            }
            SUMMARY => {
                let length = usize::try_from(inner.u32()?).ok()?;
                self.header.add_text(inner.take(length)?, options);
                self.is_complete = true;
            }
            _ => return None,
        }
        *rest = inner;
        Some(())
    }
}
