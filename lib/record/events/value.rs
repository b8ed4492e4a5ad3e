//! What an event adds up to, where it is more than its number: a tracepoint's field, or a function's argument.

use crate::Error;
use crate::perf::event::Sample;
use crate::perf::unwind;

use super::pmu;

/// A number that each sample of an event brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleValue {
    /// A field of a tracepoint.
    Field(Field),
    /// An argument of a function, the first being 1.
    Argument(u32),
}

/// Where a number stands in what a tracepoint writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    name: String,
    offset: usize,
    size: usize,
    is_signed: bool,
}

impl SampleValue {
    /// The field of that name of a tracepoint, `SUBSYSTEM:EVENT`.
    ///
    /// # Errors
    /// [`Error::Usage`] if it has none of that name that is a number, with those that it has.
    pub fn field(tracepoint: &str, name: &str) -> Result<Self, Error> {
        let format = tracepoint
            .split_once(':')
            .map_or(Ok(String::new()), |(subsystem, event)| pmu::tracepoint_file(subsystem, event, "format"))?;
        let fields: Vec<Field> = format.lines().filter_map(parse_field).collect();
        let known = fields.iter().map(|field| &*field.name).collect::<Vec<_>>().join(", ");
        fields.into_iter().find(|field| field.name == name).map(Self::Field).ok_or_else(|| {
            let known = if known.is_empty() { "it is no tracepoint".to_owned() } else { format!("it has {known}") };
            Error::Usage(format!("{tracepoint} has no field {name}; {known}"))
        })
    }

    /// Its name, for people.
    pub fn name(&self) -> String {
        match self {
            Self::Field(field) => field.name.clone(),
            Self::Argument(number) => format!("argument {number}"),
        }
    }

    /// How much a sample brings: nothing where a field is negative, as the results of system calls that failed are.
    pub(in crate::record) fn of(&self, sample: &Sample<'_>) -> u64 {
        match self {
            Self::Field(field) => field.read(sample.raw),
            Self::Argument(number) => sample.user.and_then(|user| unwind::read_argument(&user, *number)).unwrap_or(0),
        }
    }
}

impl Field {
    fn read(&self, raw: &[u8]) -> u64 {
        let Some(bytes) = raw.get(self.offset..self.offset + self.size) else { return 0 };
        let mut word = [0; 8];
        word[..self.size].copy_from_slice(bytes);
        let value = u64::from_le_bytes(word);
        let is_negative = self.is_signed && value >> (self.size * 8 - 1) & 1 == 1;
        if is_negative { 0 } else { value }
    }
}

/// Reads a line of a tracepoint's format: `field:long ret; offset:16; size:8; signed:1;`. Only numbers are fields here.
fn parse_field(line: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declared = parts.next()?.strip_prefix("field:")?;
    let name = declared.rsplit([' ', '*']).next()?;
    let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
    let size = parts.next()?.strip_prefix("size:")?.parse().ok()?;
    let is_signed = parts.next()?.strip_prefix("signed:")? == "1";
    let is_number = !name.contains('[') && !declared.contains("__data_loc") && [1, 2, 4, 8].contains(&size);
    is_number.then(|| Field { name: name.to_owned(), offset, size, is_signed })
}

#[cfg(test)]
mod tests {
    use super::{Field, parse_field};

    #[test]
    fn fields_are_numbers() {
        let field = parse_field("\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;").unwrap();
        assert_eq!(field, Field { name: "ret".to_owned(), offset: 16, size: 8, is_signed: true });
        for line in [
            "name: sys_exit_write",
            "\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;",
            "\tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;",
            "\tfield:char c[8];\toffset:34;\tsize:8;\tsigned:0;",
        ] {
            assert_eq!(parse_field(line), None, "{line}");
        }
    }

    #[test]
    fn a_field_is_read_where_it_stands_and_what_is_negative_is_nothing() {
        let field = |size, is_signed| Field { name: String::new(), offset: 1, size, is_signed };
        let raw = [9, 0xfe, 0xff, 0xff, 0xff, 1];
        assert_eq!(field(2, false).read(&raw), 0xfffe);
        assert_eq!(field(2, true).read(&raw), 0);
        assert_eq!(field(1, true).read(&[0, 5]), 5);
        assert_eq!(field(8, false).read(&raw), 0);
    }
}
