//! Reading a profile: its tables, then sample after sample.

use rustc_hash::FxHashMap;

use super::field;
use super::wire::{Fields, Value};

/// A profile, as far as folded stacks need it. It borrows from the bytes that it was read from.
#[derive(Debug)]
pub struct Pprof<'a> {
    message: &'a [u8],
    strings: Vec<&'a [u8]>,
    sample_types: Vec<(u64, u64)>,
    default_type: u64,
    /// How often it says what a period is: once, if it is one profile.
    periods: u32,
    mappings: FxHashMap<u64, u64>,
    functions: FxHashMap<u64, FunctionNames>,
}

/// Places of texts in the table.
#[derive(Clone, Copy, Debug, Default)]
struct FunctionNames {
    name: u64,
    system_name: u64,
    file: u64,
}

/// A place in the program.
#[derive(Debug)]
pub struct Location<'a> {
    /// What samples call it.
    pub id: u64,
    /// Its address; 0 if that is not told.
    pub address: u64,
    /// The file of the module that it is in.
    pub module: Option<&'a [u8]>,
    /// The functions that it is in, the caller first, then what was inlined into it.
    pub functions: Vec<Function<'a>>,
}

/// A function, and a line of it.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The source file; empty if it is not told.
    pub file: &'a [u8],
    /// The line in the source; 0 if it is not told.
    pub line: u64,
}

/// A stack and its values.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    message: &'a [u8],
}

/// So many of a profile's bytes tell what it is.
const TELLING: usize = 64 * 1024;

/// Whether bytes begin as a profile does: whole fields of the numbers and kinds that a profile has, as far as they go,
/// and a sample type among them. The last field of a beginning may be cut.
pub fn is_begin(head: &[u8]) -> bool {
    let mut fields = Fields::new(&head[..head.len().min(TELLING)]);
    let mut typed = false;
    for found in &mut fields {
        let Some((number, value)) = found else { return typed };
        let fits = match number {
            field::SAMPLE_TYPE => value.bytes().is_some_and(is_value_type),
            2..=6 | 11 => value.bytes().is_some(),
            field::COMMENT => true,
            7..=10 | 12 | 14 | field::LAST => value.number().is_some(),
            _ => false,
        };
        if !fits {
            return false;
        }
        typed |= number == field::SAMPLE_TYPE;
    }
    typed
}

fn is_value_type(message: &[u8]) -> bool {
    let mut fields = Fields::new(message);
    fields.all(|found| found.is_some_and(|(number, value)| number <= 2 && value.number().is_some()))
}

impl<'a> Pprof<'a> {
    /// Reads the tables.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(message: &'a [u8]) -> Result<Self, &'static str> {
        let mut pprof = Self {
            message,
            strings: Vec::new(),
            sample_types: Vec::new(),
            default_type: 0,
            periods: 0,
            mappings: FxHashMap::default(),
            functions: FxHashMap::default(),
        };
        for found in Fields::new(message) {
            let (number, value) = found.ok_or("a protobuf message that is cut short or damaged")?;
            pprof.take(number, value).ok_or("a protobuf message that is no pprof profile, or is damaged")?;
        }
        if pprof.periods > 1 {
            return Err("several pprof profiles in one file: give each its own");
        }
        if pprof.sample_types.is_empty() {
            return Err("a pprof profile without sample types");
        }
        Ok(pprof)
    }

    fn take(&mut self, number: u32, value: Value<'a>) -> Option<()> {
        match number {
            field::SAMPLE_TYPE => {
                let [name, unit] = numbers(value.bytes()?, [field::value_type::NAME, field::value_type::UNIT])?;
                self.sample_types.push((name, unit));
            }
            field::MAPPING => {
                let [id, file] = numbers(value.bytes()?, [field::mapping::ID, field::mapping::FILE])?;
                self.mappings.insert(id, file);
            }
            field::FUNCTION => {
                use field::function::{FILE, ID, NAME, SYSTEM_NAME};
                let [id, name, system_name, file] = numbers(value.bytes()?, [ID, NAME, SYSTEM_NAME, FILE])?;
                self.functions.insert(id, FunctionNames { name, system_name, file });
            }
            field::STRING => self.strings.push(value.bytes()?),
            field::PERIOD_TYPE => self.periods += 1,
            field::DEFAULT_SAMPLE_TYPE => self.default_type = value.number()?,
            field::SAMPLE | field::LOCATION => {
                let whole = Fields::new(value.bytes()?).all(|found| found.is_some());
                return whole.then_some(());
            }
            _ => {}
        }
        Some(())
    }

    /// A text of the table; empty if it has none of that number.
    fn text(&self, index: u64) -> &'a [u8] {
        usize::try_from(index).ok().and_then(|index| self.strings.get(index)).copied().unwrap_or_default()
    }

    /// The sample types: name and unit.
    pub fn sample_types(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.sample_types.iter().map(|(name, unit)| (self.text(*name), self.text(*unit)))
    }

    /// Which sample type is shown if nobody chooses: the one that the profile says, else the last.
    pub fn default_type(&self) -> usize {
        let wanted = self.text(self.default_type);
        let found = self.sample_types().position(|(name, _)| !wanted.is_empty() && name == wanted);
        found.unwrap_or(self.sample_types.len().saturating_sub(1))
    }

    /// All locations.
    pub fn locations(&self) -> impl Iterator<Item = Location<'a>> {
        self.messages(field::LOCATION).map(|message| self.location(message))
    }

    fn location(&self, message: &'a [u8]) -> Location<'a> {
        use field::location::{ADDRESS, ID, LINE, MAPPING};
        let [id, mapping, address] = numbers(message, [ID, MAPPING, ADDRESS]).unwrap_or_default();
        let lines = Fields::new(message).flatten().filter(|(number, _)| *number == LINE);
        let mut functions: Vec<Function<'a>> = lines.filter_map(|(_, line)| self.function(line.bytes()?)).collect();
        functions.reverse();
        let module = self.mappings.get(&mapping).map(|file| self.text(*file)).filter(|file| !file.is_empty());
        Location { id, address, module, functions }
    }

    fn function(&self, message: &'a [u8]) -> Option<Function<'a>> {
        let [function, line] = numbers(message, [field::line::FUNCTION, field::line::NUMBER])?;
        let FunctionNames { name, system_name, file } = *self.functions.get(&function)?;
        let name = if name == 0 { system_name } else { name };
        Some(Function { name: self.text(name), file: self.text(file), line })
    }

    /// All samples.
    pub fn samples(&self) -> impl Iterator<Item = Sample<'a>> {
        self.messages(field::SAMPLE).map(|message| Sample { message })
    }

    fn messages(&self, wanted: u32) -> impl Iterator<Item = &'a [u8]> {
        let fields = Fields::new(self.message).flatten().filter(move |(number, _)| *number == wanted);
        fields.filter_map(|(_, value)| value.bytes())
    }

    /// What a sample's labels of a key say, in their order.
    pub fn labels(&self, sample: Sample<'a>, key: &[u8]) -> Vec<Vec<u8>> {
        use field::label::{KEY, NUMBER, TEXT};
        let labels =
            sample.fields(field::sample::LABEL).filter_map(|label| numbers(label.bytes()?, [KEY, TEXT, NUMBER]));
        let wanted = labels.filter(|[name, ..]| self.text(*name) == key);
        wanted
            .map(|[_, text, number]| match text {
                0 => number.cast_signed().to_string().into_bytes(),
                text => self.text(text).to_vec(),
            })
            .collect()
    }
}

impl<'a> Sample<'a> {
    fn fields(self, wanted: u32) -> impl Iterator<Item = Value<'a>> {
        Fields::new(self.message).flatten().filter(move |(number, _)| *number == wanted).map(|(_, value)| value)
    }

    /// The ids of its locations, leaf first.
    pub fn locations(self) -> impl Iterator<Item = u64> {
        self.fields(field::sample::LOCATION).flat_map(Value::numbers)
    }

    /// Its values, one a sample type.
    pub fn values(self) -> impl Iterator<Item = i64> {
        self.fields(field::sample::VALUE).flat_map(Value::numbers).map(u64::cast_signed)
    }
}

/// The numbers in some fields of a message, 0 for those that are not there.
fn numbers<const N: usize>(message: &[u8], wanted: [u32; N]) -> Option<[u64; N]> {
    let mut found = [0; N];
    for field in Fields::new(message) {
        let (number, value) = field?;
        if let Some(place) = wanted.iter().position(|wanted| *wanted == number) {
            found[place] = value.number()?;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::{Pprof, is_begin};

    #[test]
    fn a_profile_is_told_from_text_and_from_other_bytes() {
        let message = b"\x0a\x04\x08\x01\x10\x02\x12\x04\x0a\x00\x10\x05\x32\x00\x32\x03cpu\x32\x02ns";
        assert!(is_begin(message) && is_begin(&message[..9]));
        for text in [&b""[..], b"\na;b 1\n", b"\n\n\n\n", b"main;a 1\n", b"\x00\x01", b"2\x00", b"\x08\x01"] {
            assert!(!is_begin(text), "{text:?}");
        }
    }

    #[test]
    fn numbers_without_a_text_or_function_are_no_failure() {
        let message = b"\x0a\x04\x08\x63\x10\x02\x12\x05\x0a\x01\x07\x10\x05\x22\x06\x08\x01\x22\x02\x08\x09";
        let pprof = Pprof::parse(message).unwrap();
        assert_eq!(pprof.sample_types().collect::<Vec<_>>(), [(&b""[..], &b""[..])]);
        assert!(pprof.locations().all(|location| location.functions.is_empty()));
        assert!(Pprof::parse(b"\x12\x7f").is_err() && Pprof::parse(b"").is_err());
    }
}
