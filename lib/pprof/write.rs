//! Writing a profile.

use std::io::{self, Write};

use super::wire::{put_bytes, put_number, put_varint};
use super::{BASE_LABEL, Unit, field};
use crate::profile::{FrameId, Profile, Weights};

/// What a profile says of itself.
#[derive(Clone, Debug)]
pub struct About<'a> {
    /// What was counted.
    pub sample_type: &'a str,
    /// What a weight of 1 means.
    pub unit: &'a Unit,
    /// When it was recorded, in nanoseconds since 1970; 0 says nothing.
    pub time: u64,
    /// Whatever there is to say.
    pub comments: &'a [String],
}

/// The first places in the table of texts; frames' names follow.
mod text {
    pub const SAMPLE_TYPE: u64 = 1;
    pub const UNIT: u64 = 2;
    pub const BASE_LABEL: u64 = 3;
    pub const TRUE: u64 = 4;
    pub const FIRST_FREE: u64 = 5;
}

/// Writes a profile as a protobuf message, gzipped as is the custom. A differential profile is one as `pprof
/// -diff_base` makes it: what was before has negative values and a label of pprof's own.
///
/// # Errors
/// Those of `out`.
pub fn write_gzipped(profile: &Profile, about: &About<'_>, out: impl Write) -> io::Result<()> {
    let mut out = flate2::write::GzEncoder::new(out, flate2::Compression::default());
    write(profile, about, &mut out)?;
    out.finish().map(drop)
}

fn write(profile: &Profile, about: &About<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut message = Vec::new();
    let sample_type = message_of(|inner| {
        put_number(inner, field::value_type::NAME, text::SAMPLE_TYPE);
        put_number(inner, field::value_type::UNIT, text::UNIT);
    });
    put_bytes(&mut message, field::SAMPLE_TYPE, &sample_type);
    let mut numbers = Numbers { of: vec![0; profile.frames.len()], frames: Vec::new() };
    profile.for_each_sorted(|stack| {
        let Weights { before, after } = stack.weights;
        // One at least, which says that the profile is differential.
        let first = numbers.frames.is_empty();
        let locations = message_of(|row| {
            stack.frames.iter().rev().for_each(|frame| put_varint(row, numbers.number(*frame)));
        });
        if profile.is_differential() && (first || !before.is_zero() || after.is_zero()) {
            put_sample(&mut message, &locations, -about.unit.value(before), true);
        }
        if !profile.is_differential() || !after.is_zero() {
            put_sample(&mut message, &locations, about.unit.value(after), false);
        }
        out.write_all(&message)?;
        message.clear();
        io::Result::Ok(())
    })?;
    put_tables(&mut message, profile, &numbers.frames, about);
    out.write_all(&message)
}

/// The frames that stacks have, numbered from 1: a location and a function each.
struct Numbers {
    of: Vec<u64>,
    frames: Vec<FrameId>,
}

impl Numbers {
    fn number(&mut self, frame: FrameId) -> u64 {
        let number = &mut self.of[frame.index()];
        if *number == 0 {
            self.frames.push(frame);
            *number = self.frames.len() as u64;
        }
        *number
    }
}

fn put_sample(out: &mut Vec<u8>, locations: &[u8], value: i64, base: bool) {
    let sample = message_of(|inner| {
        put_bytes(inner, field::sample::LOCATION, locations);
        put_bytes(inner, field::sample::VALUE, &message_of(|row| put_varint(row, value.cast_unsigned())));
        if base {
            let label = message_of(|inner| {
                put_number(inner, field::label::KEY, text::BASE_LABEL);
                put_number(inner, field::label::TEXT, text::TRUE);
            });
            put_bytes(inner, field::sample::LABEL, &label);
        }
    });
    put_bytes(out, field::SAMPLE, &sample);
}

/// A location and a function a frame, and what they are called.
fn put_tables(out: &mut Vec<u8>, profile: &Profile, frames: &[FrameId], about: &About<'_>) {
    let names = text::FIRST_FREE + about.comments.len() as u64;
    for id in 1..=frames.len() as u64 {
        let line = message_of(|inner| put_number(inner, field::line::FUNCTION, id));
        let location = message_of(|inner| {
            put_number(inner, field::location::ID, id);
            put_bytes(inner, field::location::LINE, &line);
        });
        put_bytes(out, field::LOCATION, &location);
        let function = message_of(|inner| {
            put_number(inner, field::function::ID, id);
            // Not as the system's name too: pprof would take the name for mangled and shorten it.
            put_number(inner, field::function::NAME, names + id - 1);
        });
        put_bytes(out, field::FUNCTION, &function);
    }
    let fixed = [&b""[..], about.sample_type.as_bytes(), about.unit.name.as_bytes(), BASE_LABEL, b"true"];
    let comments = about.comments.iter().map(String::as_bytes);
    let frames = frames.iter().map(|frame| profile.frames.name(*frame));
    for text in fixed.into_iter().chain(comments).chain(frames) {
        put_bytes(out, field::STRING, text);
    }
    put_number(out, field::TIME, about.time);
    for place in text::FIRST_FREE..names {
        put_number(out, field::COMMENT, place);
    }
}

fn message_of(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut message = Vec::new();
    fill(&mut message);
    message
}
