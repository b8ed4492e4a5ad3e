//! Writes OpenTelemetry profiles as protobuf, by the schema of version 1.10 and later.

use std::borrow::Cow;
use std::io::{self, Write};

use super::field;
use crate::pprof::Metadata;
use crate::profile::{FrameId, Profile};
use crate::protobuf::{put_bytes, put_fixed, put_number, put_varint};

/// The first strings of the table; frames follow.
mod string {
    pub const KIND: u64 = 1;
    pub const UNIT: u64 = 2;
    pub const FIRST_FRAME: u64 = 3;
}

/// Writes a profile that is no comparison as a `ProfilesData` message with one profile. Comments are left out.
///
/// # Errors
/// The errors of `out`.
pub fn write_profile(profile: &Profile, metadata: &Metadata<'_>, mut out: impl Write) -> io::Result<()> {
    let mut tables = Tables { ids: vec![0; profile.frames.len()], frames: Vec::new(), stacks: Vec::new() };
    let mut message = Vec::new();
    let kind = build(|inner| {
        put_number(inner, field::value_type::NAME, string::KIND);
        put_number(inner, field::value_type::UNIT, string::UNIT);
    });
    put_bytes(&mut message, field::profile::SAMPLE_TYPE, &kind);
    let mut stacks = 0;
    profile.for_each_sorted(|stack| {
        stacks += 1;
        let locations = build(|packed| {
            stack.frames.iter().rev().for_each(|frame| put_varint(packed, tables.intern(*frame)));
        });
        let locations = build(|inner| put_bytes(inner, field::stack::LOCATIONS, &locations));
        put_bytes(&mut tables.stacks, field::dictionary::STACK, &locations);
        let value = metadata.unit.to_value(stack.weights.after);
        let sample = build(|inner| {
            put_number(inner, field::sample::STACK, stacks);
            put_bytes(inner, field::sample::VALUES, &build(|packed| put_varint(packed, value.cast_unsigned())));
        });
        put_bytes(&mut message, field::profile::SAMPLE, &sample);
        io::Result::Ok(())
    })?;
    put_fixed(&mut message, field::profile::TIME, metadata.time);
    let scope = build(|inner| put_bytes(inner, field::scope_profiles::PROFILES, &message));
    let resource = build(|inner| put_bytes(inner, field::resource_profiles::SCOPE_PROFILES, &scope));
    let mut data = Vec::new();
    put_bytes(&mut data, field::RESOURCE_PROFILES, &resource);
    put_bytes(&mut data, field::DICTIONARY, &tables.into_dictionary(profile, metadata));
    out.write_all(&data)
}

/// The tables of the dictionary. Each frame has one location and one function with the same index.
struct Tables {
    /// The index of each frame; zero for frames without one.
    ids: Vec<u64>,
    /// The frames that have an index, in order.
    frames: Vec<FrameId>,
    /// The fields of all stacks.
    stacks: Vec<u8>,
}

impl Tables {
    /// Returns the index of a frame. A new frame gets the next index.
    fn intern(&mut self, frame: FrameId) -> u64 {
        let id = &mut self.ids[frame.index()];
        if *id == 0 {
            self.frames.push(frame);
            *id = self.frames.len() as u64;
        }
        *id
    }

    fn into_dictionary(self, profile: &Profile, metadata: &Metadata<'_>) -> Vec<u8> {
        use field::dictionary::{ATTRIBUTE, FUNCTION, LINK, LOCATION, MAPPING, STACK, STRING};
        let mut out = Vec::new();
        // The first entry of each table means "none".
        for table in [MAPPING, LOCATION, FUNCTION, LINK, STRING, ATTRIBUTE, STACK] {
            put_bytes(&mut out, table, b"");
        }
        for (id, _) in (1..).zip(&self.frames) {
            let line = build(|inner| put_number(inner, field::line::FUNCTION, id));
            put_bytes(&mut out, LOCATION, &build(|inner| put_bytes(inner, field::location::LINE, &line)));
            let name = string::FIRST_FRAME + id - 1;
            put_bytes(&mut out, FUNCTION, &build(|inner| put_number(inner, field::function::NAME, name)));
        }
        let frames = self.frames.iter().map(|frame| profile.frames.name(*frame));
        for string in [metadata.sample_type.as_bytes(), metadata.unit.name.as_bytes()].into_iter().chain(frames) {
            put_bytes(&mut out, STRING, escape_name(string).as_bytes());
        }
        out.extend_from_slice(&self.stacks);
        out
    }
}

/// Returns a name as UTF-8, as strings of protobuf are. Other bytes become `\xNN`, so that names that differ still do.
fn escape_name(name: &[u8]) -> Cow<'_, str> {
    if let Ok(name) = std::str::from_utf8(name) {
        return name.into();
    }
    let mut escaped = String::with_capacity(name.len() + 4);
    for chunk in name.utf8_chunks() {
        escaped.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| escaped.push_str(&format!("\\x{byte:02x}")));
    }
    escaped.into()
}

/// Returns the number of frames whose names are not UTF-8. [`write_profile`] escapes the bytes that are not.
pub fn count_escaped_names(profile: &Profile) -> u64 {
    profile.frames.iter().filter(|(_, name)| std::str::from_utf8(name).is_err()).count() as u64
}

fn build(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut message = Vec::new();
    fill(&mut message);
    message
}
