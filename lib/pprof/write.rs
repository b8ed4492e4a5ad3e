//! Writes pprof profiles.

use std::io::{self, Write};

use super::{BASE_LABEL, Unit, field};
use crate::profile::{FrameId, Profile, Weights};
use crate::protobuf::{put_bytes, put_number, put_varint};

/// The description of a profile.
#[derive(Clone, Debug)]
pub struct Metadata<'a> {
    /// The name of the quantity that was counted.
    pub sample_type: &'a str,
    /// The unit of the values.
    pub unit: &'a Unit,
    /// The time of the recording in nanoseconds since 1970; 0 if unknown.
    pub time: u64,
    /// Free text for the reader.
    pub comments: &'a [String],
}

/// The first indices in the string table. Comments and frame names follow.
mod string {
    pub const SAMPLE_TYPE: u64 = 1;
    pub const UNIT: u64 = 2;
    pub const BASE_LABEL: u64 = 3;
    pub const TRUE: u64 = 4;
    pub const FIRST_COMMENT: u64 = 5;
}

/// Writes a profile as a gzipped protobuf message, as all programs of pprof do.
///
/// # Errors
/// The errors of `out`.
pub fn write_gzipped(profile: &Profile, metadata: &Metadata<'_>, out: impl Write) -> io::Result<()> {
    let mut out = flate2::write::GzEncoder::new(out, flate2::Compression::default());
    write(profile, metadata, &mut out)?;
    out.finish().map(drop)
}

/// Writes a profile as a protobuf message.
///
/// A differential profile is written as `pprof -diff_base` does: the values from before are negative and have the label
/// `pprof::base`.
///
/// # Errors
/// The errors of `out`.
pub fn write(profile: &Profile, metadata: &Metadata<'_>, mut out: impl Write) -> io::Result<()> {
    let mut message = Vec::new();
    let sample_type = build_message(|inner| {
        put_number(inner, field::value_type::NAME, string::SAMPLE_TYPE);
        put_number(inner, field::value_type::UNIT, string::UNIT);
    });
    put_bytes(&mut message, field::SAMPLE_TYPE, &sample_type);
    let mut ids = LocationIds { by_frame: vec![0; profile.frames.len()], frames: Vec::new() };
    profile.for_each_sorted(|stack| {
        let Weights { before, after } = stack.weights;
        // The first stack always gets a base sample: without any, the profile would not read as differential.
        let is_first = ids.frames.is_empty();
        let locations = build_message(|packed| {
            stack.frames.iter().rev().for_each(|frame| put_varint(packed, ids.intern(*frame)));
        });
        if profile.is_differential() && (is_first || !before.is_zero() || after.is_zero()) {
            put_sample(&mut message, &locations, -metadata.unit.to_value(before), true);
        }
        if !profile.is_differential() || !after.is_zero() {
            put_sample(&mut message, &locations, metadata.unit.to_value(after), false);
        }
        out.write_all(&message)?;
        message.clear();
        io::Result::Ok(())
    })?;
    put_tables(&mut message, profile, &ids.frames, metadata);
    out.write_all(&message)
}

/// The ids of locations and functions, from 1. Each frame has one location and one function.
struct LocationIds {
    /// The id of each frame; zero for frames without an id.
    by_frame: Vec<u64>,
    /// The frames that have an id, in the order of their ids.
    frames: Vec<FrameId>,
}

impl LocationIds {
    /// Returns the id of a frame. A new frame gets the next id.
    fn intern(&mut self, frame: FrameId) -> u64 {
        let id = &mut self.by_frame[frame.index()];
        if *id == 0 {
            self.frames.push(frame);
            *id = self.frames.len() as u64;
        }
        *id
    }
}

fn put_sample(out: &mut Vec<u8>, locations: &[u8], value: i64, is_base: bool) {
    let sample = build_message(|inner| {
        put_bytes(inner, field::sample::LOCATION, locations);
        put_bytes(inner, field::sample::VALUE, &build_message(|packed| put_varint(packed, value.cast_unsigned())));
        if is_base {
            let label = build_message(|inner| {
                put_number(inner, field::label::KEY, string::BASE_LABEL);
                put_number(inner, field::label::TEXT, string::TRUE);
            });
            put_bytes(inner, field::sample::LABEL, &label);
        }
    });
    put_bytes(out, field::SAMPLE, &sample);
}

/// Appends the tables: a location and a function for each frame, the strings, and the fields of the metadata.
fn put_tables(out: &mut Vec<u8>, profile: &Profile, frames: &[FrameId], metadata: &Metadata<'_>) {
    let first_name = string::FIRST_COMMENT + metadata.comments.len() as u64;
    for id in 1..=frames.len() as u64 {
        let line = build_message(|inner| put_number(inner, field::line::FUNCTION, id));
        let location = build_message(|inner| {
            put_number(inner, field::location::ID, id);
            put_bytes(inner, field::location::LINE, &line);
        });
        put_bytes(out, field::LOCATION, &location);
        let function = build_message(|inner| {
            put_number(inner, field::function::ID, id);
            // No system name: pprof would treat the name as mangled and shorten it.
            put_number(inner, field::function::NAME, first_name + id - 1);
        });
        put_bytes(out, field::FUNCTION, &function);
    }
    let fixed = [&b""[..], metadata.sample_type.as_bytes(), metadata.unit.name.as_bytes(), BASE_LABEL, b"true"];
    let comments = metadata.comments.iter().map(String::as_bytes);
    let frames = frames.iter().map(|frame| profile.frames.name(*frame));
    for string in fixed.into_iter().chain(comments).chain(frames) {
        put_bytes(out, field::STRING, string);
    }
    put_number(out, field::TIME, metadata.time);
    for comment in string::FIRST_COMMENT..first_name {
        put_number(out, field::COMMENT, comment);
    }
}

fn build_message(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut message = Vec::new();
    fill(&mut message);
    message
}
