//! Reads pprof profiles: first the tables, then one sample after another.

use rustc_hash::FxHashMap;

use super::field;
use crate::protobuf::{Fields, Value, read_numbers};

/// A profile with its tables parsed. It borrows from the message.
#[derive(Debug)]
pub struct Pprof<'a> {
    message: &'a [u8],
    strings: Vec<&'a [u8]>,
    /// Name and unit, as indices of strings.
    sample_types: Vec<(u64, u64)>,
    /// The index of a sample type's name.
    default_type: u64,
    /// The number of period types: more than one if several profiles were concatenated.
    period_types: u32,
    /// Indices of file names, by mapping id.
    mappings: FxHashMap<u64, u64>,
    /// The names of functions, by function id.
    functions: FxHashMap<u64, FunctionNames>,
}

/// The names of a function, as indices of strings.
#[derive(Clone, Copy, Debug, Default)]
struct FunctionNames {
    name: u64,
    system_name: u64,
    file: u64,
}

/// A location in the program.
#[derive(Debug)]
pub struct Location<'a> {
    /// The id by which samples refer to it.
    pub id: u64,
    /// The address; 0 if unknown.
    pub address: u64,
    /// The file name of the module that contains the location.
    pub module: Option<&'a [u8]>,
    /// The functions at the location: the caller first, then those inlined into it.
    pub functions: Vec<Function<'a>>,
}

/// A function and one of its source lines.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    /// The name of the function.
    pub name: &'a [u8],
    /// The source file; empty if unknown.
    pub file: &'a [u8],
    /// The line number; 0 if unknown.
    pub line: u64,
}

/// A stack with its values.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    message: &'a [u8],
}

/// The number of bytes by which a profile is recognized.
const SNIFFED_BYTES: usize = 64 * 1024;

/// Returns true if `head` is the start of a profile.
///
/// All its fields must have numbers and types of a profile's fields, one of them must be a sample type, and the last
/// one may be truncated.
pub fn is_pprof(head: &[u8]) -> bool {
    let mut has_sample_type = false;
    for field in Fields::new(&head[..head.len().min(SNIFFED_BYTES)]) {
        let Some((number, value)) = field else { return has_sample_type };
        let has_right_type = match number {
            field::SAMPLE_TYPE => value.bytes().is_some_and(is_value_type),
            2..=6 | 11 => value.bytes().is_some(),
            field::COMMENT => true,
            7..=10 | 12 | 14 | field::LAST => value.number().is_some(),
            _ => false,
        };
        if !has_right_type {
            return false;
        }
        has_sample_type |= number == field::SAMPLE_TYPE;
    }
    has_sample_type
}

fn is_value_type(message: &[u8]) -> bool {
    let mut fields = Fields::new(message);
    fields.all(|field| field.is_some_and(|(number, value)| number <= 2 && value.number().is_some()))
}

impl<'a> Pprof<'a> {
    /// Parses the tables of a profile.
    ///
    /// # Errors
    /// The reason why the message is not a usable profile.
    pub fn parse(message: &'a [u8]) -> Result<Self, &'static str> {
        let mut pprof = Self {
            message,
            strings: Vec::new(),
            sample_types: Vec::new(),
            default_type: 0,
            period_types: 0,
            mappings: FxHashMap::default(),
            functions: FxHashMap::default(),
        };
        for field in Fields::new(message) {
            let (number, value) = field.ok_or("a protobuf message that is truncated or damaged")?;
            pprof.add_field(number, value).ok_or("a protobuf message that is damaged or not a pprof profile")?;
        }
        if pprof.period_types > 1 {
            return Err("several pprof profiles in one file; put each in a file of its own");
        }
        if pprof.sample_types.is_empty() {
            return Err("a pprof profile without sample types");
        }
        Ok(pprof)
    }

    /// Adds a field to the tables. Returns `None` if it is malformed.
    fn add_field(&mut self, number: u32, value: Value<'a>) -> Option<()> {
        match number {
            field::SAMPLE_TYPE => {
                let [name, unit] = read_numbers(value.bytes()?, [field::value_type::NAME, field::value_type::UNIT])?;
                self.sample_types.push((name, unit));
            }
            field::MAPPING => {
                let [id, file] = read_numbers(value.bytes()?, [field::mapping::ID, field::mapping::FILE])?;
                self.mappings.insert(id, file);
            }
            field::FUNCTION => {
                use field::function::{FILE, ID, NAME, SYSTEM_NAME};
                let [id, name, system_name, file] = read_numbers(value.bytes()?, [ID, NAME, SYSTEM_NAME, FILE])?;
                self.functions.insert(id, FunctionNames { name, system_name, file });
            }
            field::STRING => self.strings.push(value.bytes()?),
            field::PERIOD_TYPE => self.period_types += 1,
            field::DEFAULT_SAMPLE_TYPE => self.default_type = value.number()?,
            field::SAMPLE | field::LOCATION => {
                let is_well_formed = Fields::new(value.bytes()?).all(|field| field.is_some());
                return is_well_formed.then_some(());
            }
            _ => {}
        }
        Some(())
    }

    /// Returns a string of the table; empty if there is none at the index.
    fn string(&self, index: u64) -> &'a [u8] {
        usize::try_from(index).ok().and_then(|index| self.strings.get(index)).copied().unwrap_or_default()
    }

    /// Returns true if the table has all strings to which sample types, functions and mappings refer.
    pub fn has_all_names(&self) -> bool {
        let types = self.sample_types.iter().flat_map(|(name, unit)| [*name, *unit]);
        let functions = self.functions.values().flat_map(|names| [names.name, names.system_name, names.file]);
        types
            .chain(functions)
            .chain(self.mappings.values().copied())
            .max()
            .is_none_or(|last| usize::try_from(last).is_ok_and(|last| last < self.strings.len()))
    }

    /// Returns the names and units of the sample types.
    pub fn sample_types(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.sample_types.iter().map(|(name, unit)| (self.string(*name), self.string(*unit)))
    }

    /// Returns the index of the default sample type: the one that the profile names, or else the last that is not cumulative.
    pub fn default_type(&self) -> usize {
        let default = self.string(self.default_type);
        let index = self.sample_types().position(|(name, _)| !default.is_empty() && name == default);
        let mut others = (0..self.sample_types.len()).rev();
        index.or_else(|| others.find(|index| !self.is_cumulative(*index))).unwrap_or(0)
    }

    /// Returns true for the sums of functions and those that they call, which `-topproto` writes: as weights of stacks they would
    /// count the latter more than once.
    pub fn is_cumulative(&self, index: usize) -> bool {
        self.sample_types().nth(index).is_some_and(|(name, _)| name == b"cum")
    }

    /// Returns all locations.
    pub fn locations(&self) -> impl Iterator<Item = Location<'a>> {
        self.messages(field::LOCATION).map(|message| self.parse_location(message))
    }

    fn parse_location(&self, message: &'a [u8]) -> Location<'a> {
        use field::location::{ADDRESS, ID, LINE, MAPPING};
        let [id, mapping, address] = read_numbers(message, [ID, MAPPING, ADDRESS]).unwrap_or_default();
        let lines = Fields::new(message).flatten().filter(|(number, _)| *number == LINE);
        let mut functions: Vec<Function<'a>> = lines.filter_map(|(_, line)| self.parse_line(line.bytes()?)).collect();
        functions.reverse();
        let module = self.mappings.get(&mapping).map(|file| self.string(*file)).filter(|file| !file.is_empty());
        Location { id, address, module, functions }
    }

    /// Parses a line. Returns `None` if its function is not in the table.
    fn parse_line(&self, message: &'a [u8]) -> Option<Function<'a>> {
        let [function, line] = read_numbers(message, [field::line::FUNCTION, field::line::NUMBER])?;
        let FunctionNames { name, system_name, file } = *self.functions.get(&function)?;
        let name = if name == 0 { system_name } else { name };
        Some(Function { name: self.string(name), file: self.string(file), line })
    }

    /// Returns all samples.
    pub fn samples(&self) -> impl Iterator<Item = Sample<'a>> {
        self.messages(field::SAMPLE).map(|message| Sample { message })
    }

    /// Returns the messages in all fields with a number.
    fn messages(&self, wanted: u32) -> impl Iterator<Item = &'a [u8]> {
        let fields = Fields::new(self.message).flatten().filter(move |(number, _)| *number == wanted);
        fields.filter_map(|(_, value)| value.bytes())
    }

    /// Returns the values of a sample's labels with a key, in order.
    pub fn labels(&self, sample: Sample<'a>, key: &[u8]) -> Vec<Vec<u8>> {
        use field::label::{KEY, NUMBER, TEXT};
        sample
            .fields(field::sample::LABEL)
            .filter_map(|label| read_numbers(label.bytes()?, [KEY, TEXT, NUMBER]))
            .filter(|[name, ..]| self.string(*name) == key)
            .map(|[_, text, number]| match text {
                0 => number.cast_signed().to_string().into_bytes(),
                text => self.string(text).to_vec(),
            })
            .collect()
    }
}

impl<'a> Sample<'a> {
    /// Returns the values of all fields with a number.
    fn fields(self, wanted: u32) -> impl Iterator<Item = Value<'a>> {
        Fields::new(self.message).flatten().filter(move |(number, _)| *number == wanted).map(|(_, value)| value)
    }

    /// Returns the ids of the locations, leaf first.
    pub fn locations(self) -> impl Iterator<Item = u64> {
        self.fields(field::sample::LOCATION).flat_map(Value::numbers)
    }

    /// Returns the values, one per sample type.
    pub fn values(self) -> impl Iterator<Item = i64> {
        self.fields(field::sample::VALUE).flat_map(Value::numbers).map(u64::cast_signed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Pprof, is_pprof};

    #[test]
    fn tells_profiles_from_text_and_other_bytes() {
        let message = b"\x0a\x04\x08\x01\x10\x02\x12\x04\x0a\x00\x10\x05\x32\x00\x32\x03cpu\x32\x02ns";
        assert!(is_pprof(message) && is_pprof(&message[..9]));
        for text in [&b""[..], b"\na;b 1\n", b"\n\n\n\n", b"main;a 1\n", b"\x00\x01", b"2\x00", b"\x08\x01"] {
            assert!(!is_pprof(text), "{text:?}");
        }
    }

    #[test]
    fn accepts_indices_without_a_string_or_function() {
        let message = b"\x0a\x04\x08\x63\x10\x02\x12\x05\x0a\x01\x07\x10\x05\x22\x06\x08\x01\x22\x02\x08\x09";
        let pprof = Pprof::parse(message).unwrap();
        assert_eq!(pprof.sample_types().collect::<Vec<_>>(), [(&b""[..], &b""[..])]);
        assert!(pprof.locations().all(|location| location.functions.is_empty()));
        assert!(Pprof::parse(b"\x12\x7f").is_err() && Pprof::parse(b"").is_err());
    }
}
