//! Reads and writes OpenTelemetry profiles: the protobuf messages of `opentelemetry.proto.profiles.v1development`. Reads the
//! spans of traces.
//!
//! A [`ProfilesData`] has profiles, each with a type and a unit, and one dictionary that they share: strings,
//! functions, locations, stacks and attributes, to which other messages refer by index. Index 0 of each table is an
//! empty entry. The schema is that of versions 1.8 to 1.11; in version 1.10, the fields of a sample were renumbered.
//! Specification: <https://github.com/open-telemetry/opentelemetry-proto>.

mod field;
mod read;
mod spans;
mod write;

pub use read::{find_end, is_otlp, split_messages};
pub use spans::{PROCESS_ID, THREAD_ID, TraceSpan, parse_traces};
pub use write::{count_escaped_names, write_profile};

/// Profiles and the dictionary that they refer to.
#[derive(Clone, Debug, Default)]
pub struct ProfilesData {
    /// The tables to which indices in samples refer.
    pub dictionary: Dictionary,
    /// The profiles of all resources.
    pub profiles: Vec<Profile>,
    /// The attributes of the resources, by their number: keys and values.
    pub resources: Vec<Vec<(Vec<u8>, Vec<u8>)>>,
}

/// The tables that profiles refer to by index.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    /// All strings; the first is empty.
    pub strings: Vec<Vec<u8>>,
    /// The indices of the file names of mappings.
    pub mappings: Vec<u64>,
    /// The functions that lines of locations refer to.
    pub functions: Vec<Function>,
    /// The locations that stacks refer to.
    pub locations: Vec<Location>,
    /// The indices of the locations of each stack, leaf first.
    pub stacks: Vec<Vec<u64>>,
    /// The index of each attribute's key, and its value as text.
    pub attributes: Vec<(u64, Vec<u8>)>,
}

/// A function, by indices of strings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Function {
    /// The index of the name among the strings.
    pub name: u64,
    /// The name in the symbol table.
    pub system_name: u64,
    /// The source file.
    pub file: u64,
}

/// A location in a program.
#[derive(Clone, Debug, Default)]
pub struct Location {
    /// The index of the mapping; 0 if unknown.
    pub mapping: u64,
    /// The address; 0 if unknown.
    pub address: u64,
    /// The index of the function and the line of each call: inlined ones first, their caller last.
    pub lines: Vec<(u64, u64)>,
    /// The indices of attributes.
    pub attributes: Vec<u64>,
}

/// A profile: samples of one type.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// The index of the type's name.
    pub kind: u64,
    /// The index of the unit.
    pub unit: u64,
    /// The number of the resource.
    pub resource: usize,
    /// The samples, each with a stack and its values.
    pub samples: Vec<Sample>,
}

/// A sample: a stack and its values.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The index of the stack.
    pub stack: u64,
    /// One value, or one for each time. If there is none, the value is 1 for each time.
    pub values: Vec<i64>,
    /// The indices of attributes.
    pub attributes: Vec<u64>,
    /// Times in nanoseconds since 1970.
    pub times: Vec<u64>,
}

impl Dictionary {
    /// Returns a string; empty if there is none at the index.
    pub fn string(&self, index: u64) -> &[u8] {
        get(&self.strings, index).map_or(&[], Vec::as_slice)
    }

    /// Returns the value of the attribute with a key among those with these indices.
    pub fn attribute(&self, indices: &[u64], key: &[u8]) -> Option<&[u8]> {
        let mut attributes = indices.iter().filter_map(|index| get(&self.attributes, *index));
        attributes.find(|(name, _)| self.string(*name) == key).map(|(_, value)| value.as_slice())
    }
}

/// Returns the entry of a table at an index.
pub fn get<T>(table: &[T], index: u64) -> Option<&T> {
    usize::try_from(index).ok().and_then(|index| table.get(index))
}
