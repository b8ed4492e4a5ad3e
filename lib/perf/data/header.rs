//! Parses the header of a recording: its events, their names, the machine that it was made on, and build IDs.
//!
//! The format is `perf.data-file-format.txt` of the kernel's `tools/perf/Documentation`.

use std::io::{Read, Seek, SeekFrom};

use super::attr::{Attr, Attrs};
use super::error::{ReadError, corrupt};
use crate::perf::event::Fields;

/// The first bytes of a `perf.data` file.
pub const MAGIC: &[u8] = b"PERFILE2";
/// The first bytes of a file from a machine of the other byte order.
pub const SWAPPED_MAGIC: &[u8] = b"2ELIFREP";

/// The header of a recording, as far as it was read.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// The events and their counters.
    pub attrs: Attrs,
    /// The architecture of the machine, as `uname -m` prints it.
    pub arch: Option<String>,
    /// The release of the kernel, as `uname -r` prints it.
    pub release: Option<String>,
    /// The build IDs of files. They may follow the records that need them.
    pub build_ids: Vec<BuildId>,
    /// The difference between times since 1970 and those of the file's clock, in nanoseconds (modulo 2^64), if the file has it.
    pub unix_offset: Option<u64>,
    /// True if the feature sections, which follow the records, are not complete.
    pub is_cut: bool,
    /// The length of the recording in its file. `None` if it is not known.
    pub(super) length: Option<u64>,
}

/// The build ID of a file that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildId {
    /// True for the kernel and its modules.
    pub in_kernel: bool,
    /// The path of the file, or a name such as `[kernel.kallsyms]`.
    pub path: Vec<u8>,
    /// The build ID.
    pub id: Vec<u8>,
}

/// The section of a file that contains the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataSection {
    pub offset: u64,
    /// 0 if `perf record` was killed.
    pub size: u64,
}

/// The size of the header of a file.
const FILE_HEADER: usize = 104;
/// The size of the header of pipe output, with which a file's header starts.
pub(super) const PIPE_HEADER: usize = 16;
/// The largest section that is accepted, in bytes, apart from that of the records.
const MAX_SECTION: u64 = 16 << 20;

/// The features that are read: `HEADER_BUILD_ID`, `HEADER_OSRELEASE`, `HEADER_ARCH`, `HEADER_EVENT_DESC` and `HEADER_CLOCK_DATA`.
const BUILD_IDS: u64 = 2;
const RELEASE: u64 = 4;
const ARCH: u64 = 6;
const EVENT_NAMES: u64 = 12;
const CLOCK_DATA: u64 = 29;
/// Number of features that the header has a bit for.
const FEATURES: u64 = 256;

/// True if a recording that starts with these bytes was written to a pipe, false if it was written to a file.
///
/// # Errors
/// [`ReadError::Corrupt`] if it is neither.
pub(super) fn is_pipe_format(start: &[u8]) -> Result<bool, ReadError> {
    let mut fields = Fields::new(start);
    let magic = fields.take(MAGIC.len());
    match fields.u64() {
        _ if magic != Some(MAGIC) => corrupt("not a perf.data file"),
        Some(size) if size == PIPE_HEADER as u64 => Ok(true),
        Some(size) if size >= FILE_HEADER as u64 => Ok(false),
        _ => corrupt("its header is cut short or corrupt"),
    }
}

impl Header {
    /// Reads the header of a file, and the feature sections behind the records.
    pub(super) fn read(file: &mut (impl Read + Seek)) -> Result<(Self, DataSection), ReadError> {
        let bytes = read_section(file, 0, FILE_HEADER as u64)?;
        let mut fields = Fields::new(&bytes);
        let (_magic, _size, entry_size) = (read_word(&mut fields)?, read_word(&mut fields)?, read_word(&mut fields)?);
        let (attrs_offset, attrs_size) = (read_word(&mut fields)?, read_word(&mut fields)?);
        let data = DataSection { offset: read_word(&mut fields)?, size: read_word(&mut fields)? };
        let _event_types = (read_word(&mut fields)?, read_word(&mut fields)?);
        let features =
            [read_word(&mut fields)?, read_word(&mut fields)?, read_word(&mut fields)?, read_word(&mut fields)?];
        let mut header = Self::default();
        let attrs = read_section(file, attrs_offset, attrs_size)?;
        let entry_size = usize::try_from(entry_size).unwrap_or(usize::MAX);
        if entry_size < 16 + 64 || attrs.len() < entry_size {
            return corrupt("its header is corrupt: it lists no event");
        }
        for entry in attrs.chunks_exact(entry_size) {
            header.add_entry(entry, file)?;
        }
        if data.size > 0 {
            header.length = header.read_features(file, data, features);
            header.is_cut = header.length.is_none();
        }
        Ok((header, data))
    }

    /// Adds an entry of the table of events: a `perf_event_attr`, and the section with the IDs of its counters.
    fn add_entry(&mut self, entry: &[u8], file: &mut (impl Read + Seek)) -> Result<(), ReadError> {
        let (attr, ids) = entry.split_at(entry.len() - 16);
        let mut fields = Fields::new(ids);
        let (offset, size) = (fields.u64().unwrap_or(0), fields.u64().unwrap_or(0));
        let ids = read_section(file, offset, size)?;
        self.add_attr(attr, &ids)
    }

    /// Adds an event with the IDs of its counters.
    pub(super) fn add_attr(&mut self, attr: &[u8], ids: &[u8]) -> Result<(), ReadError> {
        let ids = ids.chunks_exact(8).filter_map(|id| Some(u64::from_le_bytes(id.try_into().ok()?)));
        match Attr::parse(attr).is_some_and(|attr| self.attrs.push(attr, ids)) {
            true => Ok(()),
            false => corrupt("its list of events is corrupt"),
        }
    }

    /// Reads the feature sections. A table behind the records has the offset and size of each whose bit is set.
    ///
    /// Returns where the last of the sections ends. `None` if the file ends too early.
    fn read_features(&mut self, file: &mut (impl Read + Seek), data: DataSection, bits: [u64; 4]) -> Option<u64> {
        let length = file.seek(SeekFrom::End(0)).ok()?;
        let mut entry_offset = data.offset.checked_add(data.size)?;
        let mut end = entry_offset;
        for feature in (0..FEATURES).filter(|feature| bits[(feature / 64) as usize] >> (feature % 64) & 1 == 1) {
            let entry = read_section(file, entry_offset, 16).ok()?;
            entry_offset = entry_offset.saturating_add(16);
            let mut entry = Fields::new(&entry);
            let (offset, size) = (entry.u64()?, entry.u64()?);
            let section_end = offset.checked_add(size)?;
            if section_end > length {
                return None;
            }
            end = end.max(section_end).max(entry_offset);
            if [BUILD_IDS, RELEASE, ARCH, EVENT_NAMES, CLOCK_DATA].contains(&feature) {
                let bytes = read_section(file, offset, size).ok().filter(|bytes| bytes.len() as u64 == size)?;
                self.add_feature(feature, &bytes);
            }
        }
        Some(end)
    }

    /// Adds the content of a feature section, or of the record that pipe output has instead.
    pub(super) fn add_feature(&mut self, feature: u64, bytes: &[u8]) {
        let mut fields = Fields::new(bytes);
        match feature {
            RELEASE => self.release = parse_text(&mut fields),
            ARCH => self.arch = parse_text(&mut fields),
            EVENT_NAMES => drop(self.name_events(&mut fields)),
            CLOCK_DATA => self.unix_offset = parse_unix_offset(&mut fields),
            BUILD_IDS => while self.add_build_id(&mut fields).is_some() {},
            _ => {}
        }
    }

    /// Names the events, from a list that repeats their attributes and counter IDs. Stops where the list is cut.
    fn name_events(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let (count, attr_size) = (fields.u32()?, fields.u32()?);
        for index in 0..count as usize {
            fields.take(attr_size as usize)?;
            let ids = fields.u32()? as usize;
            let name = parse_string(fields)?;
            let mut ids = Fields::new(fields.take(ids.checked_mul(8)?)?);
            let by_id = ids.u64().and_then(|id| self.attrs.index_of_id(id));
            self.attrs.set_name(by_id.unwrap_or(index), name);
        }
        Some(())
    }

    /// Renames the event of a counter.
    pub(super) fn rename_event(&mut self, id: u64, name: &[u8]) {
        if let Some(index) = self.attrs.index_of_id(id) {
            self.attrs.set_name(index, name);
        }
    }

    /// Adds the build ID of a file, from a `BUILD_ID` record. `None` if the record is cut.
    pub(super) fn add_build_id(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        const CPUMODE: u16 = 7;
        const KERNEL: u16 = 1;
        const HAS_SIZE: u16 = 1 << 15;
        let (_, misc, size) = (fields.u32()?, fields.u16()?, fields.u16()?);
        let mut body = Fields::new(fields.take(usize::from(size).checked_sub(8)?)?);
        body.u32()?;
        let id = body.take(24)?;
        let length = if misc & HAS_SIZE == 0 { 20 } else { usize::from(id[20]).min(20) };
        let (in_kernel, path) = (misc & CPUMODE == KERNEL, body.c_string().to_vec());
        self.build_ids.push(BuildId { in_kernel, path, id: id[..length].to_vec() });
        Some(())
    }
}

/// Reads the next 8 bytes of the header of a file.
fn read_word(fields: &mut Fields<'_>) -> Result<u64, ReadError> {
    fields.u64().ok_or_else(|| ReadError::Corrupt("its header is cut short".to_owned()))
}

/// Parses a string that follows its length.
fn parse_string<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    let length = fields.u32()? as usize;
    Some(Fields::new(fields.take(length)?).c_string())
}

/// Reads two times of the same moment: since 1970, and of the file's clock.
fn parse_unix_offset(fields: &mut Fields<'_>) -> Option<u64> {
    let (_version, _clock) = (fields.u32()?, fields.u32()?);
    let (unix, own) = (fields.u64()?, fields.u64()?);
    Some(unix.wrapping_sub(own))
}

fn parse_text(fields: &mut Fields<'_>) -> Option<String> {
    parse_string(fields).map(|text| String::from_utf8_lossy(text).into_owned())
}

/// Reads a section, or as much of it as the file has.
fn read_section(file: &mut (impl Read + Seek), offset: u64, size: u64) -> Result<Vec<u8>, ReadError> {
    if size > MAX_SECTION {
        return corrupt("its header is corrupt");
    }
    file.seek(SeekFrom::Start(offset.min(i64::MAX as u64)))?;
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}
