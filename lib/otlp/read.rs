//! Reads OpenTelemetry profiles from protobuf.

use super::field;
use super::{Dictionary, Function, Location, Profile, ProfilesData, Sample};
use crate::protobuf::{Fields, Value, read_messages, read_numbers};

/// The number of bytes by which profiles are recognized.
const SNIFFED_BYTES: usize = 64 * 1024;

/// Returns true if `head` is the start of profiles: their first resource has a profile with a sample type or with
/// samples. The last message may be truncated.
pub fn is_otlp(head: &[u8]) -> bool {
    use field::resource_profiles::{SCHEMA_URL, SCOPE_PROFILES};
    let head = &head[..head.len().min(SNIFFED_BYTES)];
    let Some((field::RESOURCE_PROFILES, resource)) = first_message(head) else { return false };
    let mut rest = resource;
    while let Some((number, message)) = first_message(rest) {
        if number == SCOPE_PROFILES {
            return is_scope(message);
        }
        if number > SCHEMA_URL || message.len() + 2 > rest.len() {
            return false;
        }
        // The next field begins where this one ends.
        let end = message.as_ptr() as usize - rest.as_ptr() as usize + message.len();
        rest = &rest[end..];
    }
    false
}

/// Returns the offset at which the profiles end: that of the first field which OpenTelemetry profiles do not have. A field that
/// is cut short is still part of them.
pub fn find_end(bytes: &[u8]) -> usize {
    let mut fields = Fields::new(bytes);
    let mut end = 0;
    while let Some(Some((number, value))) = fields.next() {
        let is_own = match number {
            field::RESOURCE_PROFILES => value.bytes().is_some_and(is_resource),
            _ => number == field::DICTIONARY,
        };
        if !is_own {
            return end;
        }
        end = bytes.len() - fields.rest().len();
    }
    // No field has the number 0.
    if bytes.get(end) == Some(&0) { end } else { bytes.len() }
}

/// Returns true if all fields of a message may be those of the profiles of a resource.
fn is_resource(message: &[u8]) -> bool {
    use field::resource_profiles::{DEPRECATED, SCHEMA_URL};
    let may_be =
        |(number, value): (u32, Value<'_>)| (number <= SCHEMA_URL || number == DEPRECATED) && value.bytes().is_some();
    Fields::new(message).flatten().all(may_be)
}

/// Splits messages that follow each other, as `cat` joins files. Each has its own dictionary, which ends it.
pub fn split_messages(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut fields, mut ends) = (Fields::new(bytes), Vec::new());
    while let Some(Some((number, _))) = fields.next() {
        if number == field::DICTIONARY {
            ends.push(bytes.len() - fields.rest().len());
        }
    }
    // Fields may follow the last dictionary.
    ends.pop();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends.iter().copied().chain([bytes.len()])).map(|(start, end)| &bytes[start..end]).collect()
}

/// Returns true if a scope's first profile has a type or samples.
fn is_scope(mut rest: &[u8]) -> bool {
    while let Some((number, message)) = first_message(rest) {
        if number == field::scope_profiles::PROFILES {
            let Some((number, inner)) = first_message(message) else { return false };
            let is_type = Fields::new(inner).flatten().all(|(number, value)| number <= 2 && value.number().is_some());
            return number == field::profile::SAMPLE_TYPE && is_type || number == field::profile::SAMPLE;
        }
        if number > 3 {
            return false;
        }
        let end = message.as_ptr() as usize - rest.as_ptr() as usize + message.len();
        rest = &rest[end..];
    }
    false
}

/// Returns the number and the bytes of the first field, which may be truncated.
fn first_message(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut rest = bytes;
    let tag = crate::protobuf::read_varint(&mut rest)?;
    let length = usize::try_from(crate::protobuf::read_varint(&mut rest)?).ok()?;
    (tag & 7 == 2).then(|| ((tag >> 3) as u32, &rest[..rest.len().min(length)]))
}

/// The reason why profiles cannot be read.
const DAMAGED: &str = "a protobuf message that is truncated or damaged";

impl ProfilesData {
    /// Parses a `ProfilesData` message, or a request to export profiles, which has the same fields.
    ///
    /// # Errors
    /// The reason why the message cannot be read.
    pub fn parse(message: &[u8]) -> Result<Self, &'static str> {
        let mut data = Self::default();
        // The dictionary may come last, and resources refer to it.
        for field in Fields::new(message) {
            let (number, value) = field.ok_or(DAMAGED)?;
            if number == field::DICTIONARY {
                data.dictionary.add(value.bytes().ok_or(DAMAGED)?).ok_or(DAMAGED)?;
            }
        }
        for resource in read_messages(message, field::RESOURCE_PROFILES) {
            data.add_resource(resource)?;
        }
        Ok(data)
    }

    fn add_resource(&mut self, message: &[u8]) -> Result<(), &'static str> {
        use field::resource_profiles::{RESOURCE, SCOPE_PROFILES};
        let attributes = read_messages(message, RESOURCE)
            .flat_map(|resource| read_messages(resource, field::resource::ATTRIBUTES))
            .filter_map(|attribute| self.dictionary.parse_key_value(attribute))
            .collect();
        self.resources.push(attributes);
        for field in Fields::new(message) {
            let (number, value) = field.ok_or(DAMAGED)?;
            if number != SCOPE_PROFILES {
                continue;
            }
            for field in Fields::new(value.bytes().ok_or(DAMAGED)?) {
                let (number, value) = field.ok_or(DAMAGED)?;
                if number == field::scope_profiles::PROFILES {
                    self.profiles.push(parse_profile(value.bytes().ok_or(DAMAGED)?, self.resources.len() - 1)?);
                }
            }
        }
        Ok(())
    }
}

fn parse_profile(message: &[u8], resource: usize) -> Result<Profile, &'static str> {
    let (mut profile, mut samples) = (Profile { resource, ..Profile::default() }, Vec::new());
    for field in Fields::new(message) {
        let (number, value) = field.ok_or(DAMAGED)?;
        match number {
            field::profile::SAMPLE_TYPE => {
                let wanted = [field::value_type::NAME, field::value_type::UNIT];
                let [kind, unit] = read_numbers(value.bytes().ok_or(DAMAGED)?, wanted).ok_or(DAMAGED)?;
                (profile.kind, profile.unit) = (kind, unit);
            }
            field::profile::SAMPLE => samples.push(RawSample::parse(value.bytes().ok_or(DAMAGED)?).ok_or(DAMAGED)?),
            // Before version 1.8, profiles had lists of locations here.
            field::profile::TIME if !matches!(value, Value::Fixed(_)) => {
                return Err("an OpenTelemetry profile of a schema before 1.8; update the program that wrote it");
            }
            _ => {}
        }
    }
    let is_renumbered = is_renumbered(&samples);
    profile.samples = samples.into_iter().map(|sample| sample.into_sample(is_renumbered)).collect();
    Ok(profile)
}

/// A sample whose fields 2 to 4 have either of two meanings.
#[derive(Debug, Default)]
struct RawSample {
    stack: u64,
    second: Vec<u64>,
    third: Vec<u64>,
    fourth: Vec<u64>,
    /// True if the third field is a list, which it is only before version 1.10, or the fourth, which it is only from then on.
    has_third_list: bool,
    has_fourth_list: bool,
    times: Vec<u64>,
}

impl RawSample {
    fn parse(message: &[u8]) -> Option<Self> {
        use field::sample::{SECOND, STACK, THIRD, TIMES, VALUES};
        let mut sample = Self::default();
        for field in Fields::new(message) {
            let (number, value) = field?;
            match number {
                STACK => sample.stack = value.number()?,
                SECOND => sample.second.extend(value.numbers()),
                THIRD => {
                    sample.has_third_list |= value.bytes().is_some();
                    sample.third.extend(value.numbers());
                }
                VALUES => {
                    sample.has_fourth_list |= value.bytes().is_some();
                    sample.fourth.extend(value.numbers());
                }
                TIMES => sample.times.extend(value.fixed_numbers()),
                _ => {}
            }
        }
        Some(sample)
    }

    fn into_sample(self, is_renumbered: bool) -> Sample {
        let Self { stack, second, third, fourth, times, .. } = self;
        let (attributes, values) = if is_renumbered { (second, fourth) } else { (third, second) };
        Sample { stack, values: values.into_iter().map(u64::cast_signed).collect(), attributes, times }
    }

    /// True if the second field has values, as in versions before 1.10.
    fn has_old_numbers(&self) -> bool {
        let values = self.second.len();
        self.has_third_list || values == 1 && self.times.is_empty() || values > 0 && values == self.times.len()
    }
}

/// Returns true if samples have the fields of version 1.10 and later. If neither list is there, the second field decides: before
/// 1.10 it has one value, or one for each time.
fn is_renumbered(samples: &[RawSample]) -> bool {
    if samples.iter().any(|sample| sample.has_fourth_list) {
        return true;
    }
    !samples.iter().any(RawSample::has_old_numbers)
}

impl Dictionary {
    /// Adds the tables of a message. Returns `None` if it is malformed.
    fn add(&mut self, message: &[u8]) -> Option<()> {
        use field::dictionary::{ATTRIBUTE, FUNCTION, LOCATION, MAPPING, STACK, STRING};
        // Strings first: values of attributes refer to them.
        self.strings.extend(read_messages(message, STRING).map(<[u8]>::to_vec));
        for field in Fields::new(message) {
            let (number, value) = field?;
            match number {
                MAPPING => self.mappings.push(read_numbers(value.bytes()?, [field::mapping::FILE])?[0]),
                FUNCTION => {
                    use field::function::{FILE, NAME, SYSTEM_NAME};
                    let [name, system_name, file] = read_numbers(value.bytes()?, [NAME, SYSTEM_NAME, FILE])?;
                    self.functions.push(Function { name, system_name, file });
                }
                LOCATION => self.locations.push(parse_location(value.bytes()?)?),
                STACK => {
                    let locations = Fields::new(value.bytes()?).flatten();
                    let locations = locations.filter(|(number, _)| *number == field::stack::LOCATIONS);
                    self.stacks.push(locations.flat_map(|(_, value)| value.numbers()).collect());
                }
                ATTRIBUTE => {
                    let message = value.bytes()?;
                    let [key] = read_numbers(message, [field::attribute::KEY])?;
                    let value = read_messages(message, field::attribute::VALUE).next().unwrap_or_default();
                    self.attributes.push((key, self.parse_value(value)));
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Parses an attribute of a resource.
    pub(super) fn parse_key_value(&self, message: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let key = read_messages(message, field::attribute::KEY).next();
        let index = Fields::new(message).flatten().find(|(number, _)| *number == field::attribute::KEY_INDEX);
        let index = index.and_then(|(_, value)| value.number());
        let key = key.or_else(|| index.map(|index| self.string(index)))?;
        let value = read_messages(message, field::attribute::VALUE).next().unwrap_or_default();
        Some((key.to_vec(), self.parse_value(value)))
    }

    /// Returns a value as text; lists of values are empty.
    fn parse_value(&self, message: &[u8]) -> Vec<u8> {
        use field::any_value::{BOOL, BYTES, DOUBLE, INT, STRING, STRING_INDEX};
        let Some(Some((number, value))) = Fields::new(message).next() else { return Vec::new() };
        match (number, value) {
            (STRING, Value::Bytes(text)) => text.to_vec(),
            (BOOL, Value::Number(value)) => (value != 0).to_string().into_bytes(),
            (INT, Value::Number(value)) => value.cast_signed().to_string().into_bytes(),
            (DOUBLE, Value::Fixed(bits)) => f64::from_bits(bits).to_string().into_bytes(),
            (BYTES, Value::Bytes(bytes)) => bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(),
            (STRING_INDEX, Value::Number(index)) => self.string(index).to_vec(),
            _ => Vec::new(),
        }
    }
}

fn parse_location(message: &[u8]) -> Option<Location> {
    use field::location::{ADDRESS, ATTRIBUTES, LINE, MAPPING};
    let mut location = Location::default();
    for field in Fields::new(message) {
        match field? {
            (MAPPING, value) => location.mapping = value.number()?,
            (ADDRESS, value) => location.address = value.number()?,
            (LINE, value) => {
                let [function, line] = read_numbers(value.bytes()?, [field::line::FUNCTION, field::line::NUMBER])?;
                location.lines.push((function, line));
            }
            (ATTRIBUTES, value) => location.attributes.extend(value.numbers()),
            _ => {}
        }
    }
    Some(location)
}

#[cfg(test)]
mod tests {
    use super::{RawSample, is_otlp, is_renumbered};

    fn is_new(sample: &[u8]) -> bool {
        is_renumbered(&[RawSample::parse(sample).unwrap()])
    }

    #[test]
    fn tells_the_two_numberings_of_samples_apart() {
        // Stack 1 and the value 5, in both.
        assert!(is_new(b"\x08\x01\x22\x01\x05") && !is_new(b"\x08\x01\x12\x01\x05"));
        // Attributes and a time.
        assert!(is_new(b"\x08\x01\x12\x02\x05\x06\x29\0\0\0\0\0\0\0\x01"));
        assert!(!is_new(b"\x08\x01\x12\x01\x05\x1a\x01\x02"));
    }

    #[test]
    fn tells_profiles_from_text_and_other_messages() {
        // One resource, one scope, one profile with a type.
        let message = b"\x0a\x0a\x12\x08\x12\x06\x0a\x04\x08\x01\x10\x02";
        assert!(is_otlp(message) && is_otlp(b"\x0a\x7f\x0a\x00\x12\x70\x12\x60\x0a\x04\x08\x01\x10\x02"));
        for text in
            [&b""[..], b"\na;b 1\n", b"\n\n\n\n\n\n", b"main;a 1\n", b"\x0a\x04\x08\x01\x10\x02", b"\x0a\x02\x08\x01"]
        {
            assert!(!is_otlp(text), "{text:?}");
        }
    }
}
