//! The description that HotSpot gives of its own structures, for debuggers (`runtime/vmStructs.cpp` of the JDK).
//!
//! It is complete once the library is loaded: part of it is computed then.

use rustc_hash::FxHashMap;

use crate::perf::runtimes::interpreter::{InterpreterFile, Memory};

/// The size of a row of `VMStructEntry`, and the places of its fields.
const FIELD_ROW: usize = 48;
const TYPE_NAME: usize = 0;
const FIELD_NAME: usize = 8;
const FIELD_TYPE: usize = 16;
const IS_STATIC: usize = 24;
const OFFSET: usize = 32;
const ADDRESS: usize = 40;

/// The size of a row of `VMTypeEntry`, and the place of the type's size.
const TYPE_ROW: usize = 40;
const SIZE: usize = 32;

/// Limits of what is read.
const MAX_ROWS: usize = 20_000;
const ROWS_AT_ONCE: usize = 256;
const MAX_NAME: usize = 96;

/// Addresses of the two tables in the file (SVMA).
#[derive(Clone, Copy, Debug)]
pub(super) struct TablePlaces {
    fields: u64,
    types: u64,
}

/// A field of a structure, or a static variable.
#[derive(Clone, Copy, Debug)]
struct Field {
    /// The offset of the field, or the address of the variable.
    place: u64,
    /// True if its type has 16 bits.
    is_short: bool,
}

/// The fields and types that HotSpot describes.
#[derive(Debug)]
pub(super) struct VmStructs {
    fields: FxHashMap<(Vec<u8>, Vec<u8>), Field>,
    sizes: FxHashMap<Vec<u8>, u64>,
}

impl TablePlaces {
    /// Finds the tables in a file. `None` if it is not HotSpot.
    pub(super) fn find(file: &InterpreterFile<'_>) -> Option<Self> {
        let (fields, types) = (file.symbol(b"gHotSpotVMStructs")?, file.symbol(b"gHotSpotVMTypes")?);
        Some(Self { fields: fields.start, types: types.start })
    }
}

impl VmStructs {
    /// Reads the tables from a process. `None` if they are not there yet.
    pub(super) fn read(places: TablePlaces, bias: u64, memory: Memory) -> Option<Self> {
        let mut structs = Self { fields: FxHashMap::default(), sizes: FxHashMap::default() };
        let mut strings = Strings { memory, known: FxHashMap::default() };
        let fields = memory.u64(bias.wrapping_add(places.fields))?;
        for_each_row(memory, fields, FIELD_ROW, |row| {
            let (of, name) = (strings.read(word(row, TYPE_NAME))?, strings.read(word(row, FIELD_NAME))?);
            let kind = strings.read(word(row, FIELD_TYPE)).unwrap_or_default();
            let is_static = word(row, IS_STATIC) as u32 != 0;
            let place = word(row, if is_static { ADDRESS } else { OFFSET });
            let is_short = matches!(&kind[..], b"int16_t" | b"uint16_t" | b"short" | b"u2" | b"jshort");
            structs.fields.insert((of, name), Field { place, is_short });
            Some(())
        })?;
        let types = memory.u64(bias.wrapping_add(places.types))?;
        for_each_row(memory, types, TYPE_ROW, |row| {
            structs.sizes.insert(strings.read(word(row, TYPE_NAME))?, word(row, SIZE));
            Some(())
        })?;
        Some(structs)
    }

    /// Returns the offset of a field, or the address of a static one. Of several names, each a type and
    /// a field, the first known one counts.
    pub(super) fn place(&self, names: &[(&str, &str)]) -> Option<u64> {
        self.find(names).map(|field| field.place)
    }

    /// Returns the offset of a field, or the address of a variable.
    pub(super) fn field(&self, of: &str, name: &str) -> Option<u64> {
        self.place(&[(of, name)])
    }

    /// True if a field has 16 bits.
    pub(super) fn is_short(&self, of: &str, name: &str) -> bool {
        self.find(&[(of, name)]).is_some_and(|field| field.is_short)
    }

    /// Returns the size of a type.
    pub(super) fn size(&self, name: &str) -> Option<u64> {
        self.sizes.get(name.as_bytes()).copied()
    }

    /// Returns the address of an option's value.
    pub(super) fn find_option(&self, name: &[u8], memory: Memory) -> Option<u64> {
        // Up to JDK 14 the type is `Flag`.
        let of = ["JVMFlag", "Flag"].into_iter().find(|of| self.field(of, "flags").is_some())?;
        let (flags, count) = (memory.u64(self.field(of, "flags")?)?, memory.u64(self.field(of, "numFlags")?)?);
        let (size, count) = (self.size(of)? as usize, count.min(MAX_ROWS as u64) as usize);
        let (name_place, value_place) = (self.field(of, "_name")? as usize, self.field(of, "_addr")? as usize);
        let options = memory.bytes(flags, size.checked_mul(count)?)?;
        let is_named = |address| read_c_string(memory, address, MAX_NAME).is_some_and(|found| found == name);
        let option = options
            .chunks_exact(size.max(1))
            .find(|option| option.len() >= name_place.max(value_place) + 8 && is_named(word(option, name_place)))?;
        Some(word(option, value_place))
    }

    fn find(&self, names: &[(&str, &str)]) -> Option<&Field> {
        names.iter().find_map(|(of, name)| self.fields.get(&(of.as_bytes().to_vec(), name.as_bytes().to_vec())))
    }
}

/// Calls `note` with each row of a table that ends with a row without a type. `None` if the table cannot be read.
fn for_each_row(memory: Memory, table: u64, size: usize, mut note: impl FnMut(&[u8]) -> Option<()>) -> Option<()> {
    for first in (0..MAX_ROWS).step_by(ROWS_AT_ONCE) {
        let mut rows = vec![0; size * ROWS_AT_ONCE];
        let address = table.checked_add((first * size) as u64)?;
        let read = (memory.read)(memory.pid, address, &mut rows);
        for row in rows[..read].chunks_exact(size) {
            if word(row, TYPE_NAME) == 0 {
                return Some(());
            }
            note(row)?;
        }
        if read < rows.len() {
            return None;
        }
    }
    None
}

fn word(row: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(row[offset..offset + 8].try_into().expect("8 bytes"))
}

/// The names in the tables, by their addresses.
struct Strings {
    memory: Memory,
    known: FxHashMap<u64, Vec<u8>>,
}

impl Strings {
    fn read(&mut self, address: u64) -> Option<Vec<u8>> {
        if let Some(known) = self.known.get(&address) {
            return Some(known.clone());
        }
        let name = read_c_string(self.memory, address, MAX_NAME)?;
        self.known.insert(address, name.clone());
        Some(name)
    }
}

/// Reads a string that ends with a zero, up to `limit` bytes of it.
pub(super) fn read_c_string(memory: Memory, address: u64, limit: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; limit];
    let read = (memory.read)(memory.pid, address, &mut bytes);
    bytes.truncate(read);
    let end = memchr::memchr(0, &bytes).or((read == limit).then_some(limit))?;
    bytes.truncate(end);
    Some(bytes)
}
