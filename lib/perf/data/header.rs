//! What a recording says of itself: its events, their names, where it was made, the build-ids of the files in it.

use std::io::{Read, Seek, SeekFrom};

use super::attr::{Attr, Attrs};
use super::{Fault, MAGIC, broken};
use crate::perf::event::Fields;

/// What a recording says of itself.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Its events.
    pub attrs: Attrs,
    /// The machine's architecture, as `uname -m` has it.
    pub arch: Option<String>,
    /// Its kernel's release, as `uname -r` has it.
    pub release: Option<String>,
    /// The build-ids of files, as far as they are told yet.
    pub build_ids: Vec<BuildId>,
    /// Whether what should stand behind the records is not there whole.
    pub is_cut: bool,
}

/// Which build of a file was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildId {
    /// Whether it is the kernel or a module of it.
    pub in_kernel: bool,
    /// The file's path, or a name such as `[kernel.kallsyms]`.
    pub path: Vec<u8>,
    /// The build-id.
    pub id: Vec<u8>,
}

/// Where the records stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataSection {
    pub offset: u64,
    /// 0 if the recording was not brought to its end.
    pub size: u64,
}

/// The length of the header of a file; that of a stream is its first 16 bytes.
pub(super) const HEADER: usize = 104;
/// The length of the header of a stream.
pub(super) const STREAM_HEADER: usize = 16;
/// No section of the header is longer.
const LONGEST_SECTION: u64 = 16 << 20;

const BUILD_IDS: u64 = 2;
const RELEASE: u64 = 4;
const ARCH: u64 = 6;
const EVENT_NAMES: u64 = 12;
const FEATURES: u64 = 256;

/// Whether what begins with these bytes is a stream.
///
/// # Errors
/// [`Fault::Broken`] if it is no perf.data at all.
pub(super) fn is_stream(start: &[u8]) -> Result<bool, Fault> {
    let mut fields = Fields::new(start);
    let magic = fields.take(8);
    match fields.u64() {
        _ if magic != Some(MAGIC) => broken("not a perf.data file"),
        Some(16) => Ok(true),
        Some(size) if size >= HEADER as u64 => Ok(false),
        _ => broken("its header is cut short or corrupt"),
    }
}

impl Head {
    /// Reads the header of a file, and what stands behind the records.
    pub(super) fn of_file(file: &mut (impl Read + Seek)) -> Result<(Self, DataSection), Fault> {
        let header = section(file, 0, HEADER as u64)?;
        let mut fields = Fields::new(&header);
        let mut word = || fields.u64().ok_or_else(|| Fault::Broken("its header is cut short".to_owned()));
        let (_, _, entry_size) = (word()?, word()?, word()?);
        let (attrs_at, attrs_size) = (word()?, word()?);
        let data = DataSection { offset: word()?, size: word()? };
        let _event_types = (word()?, word()?);
        let features = [word()?, word()?, word()?, word()?];
        let mut head = Self::default();
        let attrs = section(file, attrs_at, attrs_size)?;
        let entry_size = usize::try_from(entry_size).unwrap_or(usize::MAX);
        if entry_size < 16 + 64 || attrs.len() < entry_size {
            return broken("it names no event: its header is corrupt");
        }
        for entry in attrs.chunks_exact(entry_size) {
            head.add_entry(entry, file)?;
        }
        if data.size > 0 {
            head.is_cut = head.read_features(file, data, features).is_none();
        }
        Ok((head, data))
    }

    /// An entry of the table of events: a `perf_event_attr`, and where the ids of its counters stand.
    fn add_entry(&mut self, entry: &[u8], file: &mut (impl Read + Seek)) -> Result<(), Fault> {
        let (attr, ids) = entry.split_at(entry.len() - 16);
        let mut fields = Fields::new(ids);
        let (at, size) = (fields.u64().unwrap_or(0), fields.u64().unwrap_or(0));
        let ids = section(file, at, size)?;
        self.add_attr(attr, &ids)
    }

    /// An event, and the ids of its counters.
    pub(super) fn add_attr(&mut self, attr: &[u8], ids: &[u8]) -> Result<(), Fault> {
        let ids = ids.chunks_exact(8).filter_map(|id| Some(u64::from_le_bytes(id.try_into().ok()?)));
        match Attr::parse(attr).is_some_and(|attr| self.attrs.push(attr, ids)) {
            true => Ok(()),
            false => broken("its list of events is corrupt"),
        }
    }

    /// The table of what stands behind the records: a place for each bit that is set. `None` where it ends too
    /// early.
    fn read_features(&mut self, file: &mut (impl Read + Seek), data: DataSection, bits: [u64; 4]) -> Option<()> {
        let length = file.seek(SeekFrom::End(0)).ok()?;
        let mut at = data.offset.checked_add(data.size)?;
        for feature in (0..FEATURES).filter(|feature| bits[(feature / 64) as usize] >> (feature % 64) & 1 == 1) {
            let place = section(file, at, 16).ok()?;
            at = at.saturating_add(16);
            let mut place = Fields::new(&place);
            let (offset, size) = (place.u64()?, place.u64()?);
            if offset.checked_add(size)? > length {
                return None;
            }
            if [BUILD_IDS, RELEASE, ARCH, EVENT_NAMES].contains(&feature) {
                let bytes = section(file, offset, size).ok().filter(|bytes| bytes.len() as u64 == size)?;
                self.add_feature(feature, &bytes);
            }
        }
        Some(())
    }

    /// What a section, or a record in its place, tells.
    pub(super) fn add_feature(&mut self, feature: u64, bytes: &[u8]) {
        let mut fields = Fields::new(bytes);
        match feature {
            RELEASE => self.release = string(&mut fields).map(|text| String::from_utf8_lossy(text).into_owned()),
            ARCH => self.arch = string(&mut fields).map(|text| String::from_utf8_lossy(text).into_owned()),
            EVENT_NAMES => drop(self.name_events(&mut fields)),
            BUILD_IDS => while self.add_build_id(&mut fields).is_some() {},
            _ => {}
        }
    }

    /// Every event again, with the name by which it was asked for.
    fn name_events(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let (count, attr_size) = (fields.u32()?, fields.u32()?);
        for number in 0..count as usize {
            fields.take(attr_size as usize)?;
            let ids = fields.u32()? as usize;
            let name = string(fields)?;
            let mut ids = Fields::new(fields.take(ids.checked_mul(8)?)?);
            let by_id = ids.u64().and_then(|id| self.attrs.of_id(id));
            self.attrs.name(by_id.unwrap_or(number), name);
        }
        Some(())
    }

    /// A new name for the event of a counter.
    pub(super) fn rename_event(&mut self, id: u64, name: &[u8]) {
        if let Some(number) = self.attrs.of_id(id) {
            self.attrs.name(number, name);
        }
    }

    /// A record that tells the build-id of a file.
    pub(super) fn add_build_id(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        const CPUMODE: u16 = 7;
        const KERNEL: u16 = 1;
        const HAS_SIZE: u16 = 1 << 15;
        let (_, misc, size) = (fields.u32()?, fields.u16()?, fields.u16()?);
        let mut body = Fields::new(fields.take(usize::from(size).checked_sub(8)?)?);
        body.u32()?;
        let id = body.take(24)?;
        let length = if misc & HAS_SIZE == 0 { 20 } else { usize::from(id[20]).min(20) };
        let (in_kernel, path) = (misc & CPUMODE == KERNEL, body.name().to_vec());
        self.build_ids.push(BuildId { in_kernel, path, id: id[..length].to_vec() });
        Some(())
    }
}

/// Some text with its length before it.
fn string<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    let length = fields.u32()? as usize;
    Some(Fields::new(fields.take(length)?).name())
}

/// As much of a section as is there.
fn section(file: &mut (impl Read + Seek), offset: u64, size: u64) -> Result<Vec<u8>, Fault> {
    if size > LONGEST_SECTION {
        return broken("its header is corrupt");
    }
    file.seek(SeekFrom::Start(offset.min(i64::MAX as u64)))?;
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}
