//! Values that samples carry and that can be summed up instead of counting the samples: a field of a tracepoint, or an
//! argument of a function.

use super::pmu;
use crate::Error;
use crate::perf::event::Sample;
use crate::perf::unwind;

/// A number that each sample of an event carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleValue {
    /// A field of a tracepoint.
    Field(TracepointField),
    /// An argument of a function, the first being 1.
    Argument(u32),
}

/// A numeric field of a tracepoint, and its position in the raw data of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracepointField {
    name: String,
    offset: usize,
    size: usize,
    is_signed: bool,
}

impl SampleValue {
    /// Looks up a numeric field of a tracepoint, which is named `SUBSYSTEM:EVENT`.
    ///
    /// # Errors
    /// [`Error::Usage`] if the event is not a tracepoint or has no such field; the message lists the fields that it
    /// has.
    pub fn lookup_field(tracepoint: &str, name: &str) -> Result<Self, Error> {
        let format = tracepoint
            .split_once(':')
            .map_or(Ok(String::new()), |(subsystem, event)| pmu::read_tracepoint_file(subsystem, event, "format"))?;
        let fields: Vec<TracepointField> = TracepointField::list(&format);
        let known = fields.iter().map(|field| &*field.name).collect::<Vec<_>>().join(", ");
        fields.into_iter().find(|field| field.name == name).map(Self::Field).ok_or_else(|| {
            Error::Usage(match known.is_empty() {
                true => format!("--weight-field {name}: {tracepoint} is not a tracepoint"),
                false => {
                    format!("--weight-field {name}: {tracepoint} has no such field; its numeric fields are {known}")
                }
            })
        })
    }

    /// Returns the value's name for messages.
    pub fn name(&self) -> String {
        match self {
            Self::Field(field) => field.name.clone(),
            Self::Argument(number) => format!("argument {number}"),
        }
    }

    /// Returns the value that a sample carries. A negative field counts as 0: it is the result of a failed system call.
    pub(in crate::record) fn read(&self, sample: &Sample<'_>) -> u64 {
        match self {
            Self::Field(field) => field.read(sample.raw),
            Self::Argument(number) => sample.user.and_then(|user| unwind::read_argument(&user, *number)).unwrap_or(0),
        }
    }
}

impl TracepointField {
    fn read(&self, raw: &[u8]) -> u64 {
        let Some(bytes) = raw.get(self.offset..self.offset + self.size) else { return 0 };
        let mut word = [0; 8];
        word[..self.size].copy_from_slice(bytes);
        let value = u64::from_le_bytes(word);
        let is_negative = self.is_signed && value >> (self.size * 8 - 1) & 1 == 1;
        if is_negative { 0 } else { value }
    }
}

impl TracepointField {
    /// Lists the numeric fields of a tracepoint, whose `format` file this is.
    pub(in crate::record) fn list(format: &str) -> Vec<Self> {
        format.lines().filter_map(parse_field).collect()
    }

    /// Returns the name of the field.
    pub(in crate::record) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the offset of the field in a record, in bytes.
    pub(in crate::record) fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the size of the field in bytes.
    pub(in crate::record) fn size(&self) -> usize {
        self.size
    }
}

/// Parses a line of a tracepoint's `format` file: `field:long ret; offset:16; size:8; signed:1;`. Returns `None` for
/// fields that are not numbers.
fn parse_field(line: &str) -> Option<TracepointField> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let name = declaration.rsplit([' ', '*']).next()?;
    let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
    let size = parts.next()?.strip_prefix("size:")?.parse().ok()?;
    let is_signed = parts.next()?.strip_prefix("signed:")? == "1";
    let is_number = !name.contains('[') && !declaration.contains("__data_loc") && [1, 2, 4, 8].contains(&size);
    is_number.then(|| TracepointField { name: name.to_owned(), offset, size, is_signed })
}

#[cfg(test)]
mod tests {
    use super::{TracepointField, parse_field};

    #[test]
    fn parses_numeric_fields_only() {
        let field = parse_field("\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;").unwrap();
        assert_eq!(field, TracepointField { name: "ret".to_owned(), offset: 16, size: 8, is_signed: true });
        for line in [
            "name: sys_exit_write",
            "\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;",
            "\tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;",
            "\tfield:char c[8];\toffset:34;\tsize:8;\tsigned:0;",
        ] {
            assert_eq!(parse_field(line), None, "{line}");
        }
    }

    fn field(size: usize, is_signed: bool) -> TracepointField {
        TracepointField { name: String::new(), offset: 1, size, is_signed }
    }

    #[test]
    fn reads_a_field_at_its_offset_and_a_negative_one_as_zero() {
        let raw = [9, 0xfe, 0xff, 0xff, 0xff, 1];
        assert_eq!(field(2, false).read(&raw), 0xfffe);
        assert_eq!(field(2, true).read(&raw), 0);
        assert_eq!(field(1, true).read(&[0, 5]), 5);
        assert_eq!(field(8, false).read(&raw), 0);
    }
}
