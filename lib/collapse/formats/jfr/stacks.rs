//! The stack traces of a chunk to which the selected events refer.
//!
//! Most bytes of a recording are frames, and the frames of a program repeat. So a stack trace is a list of numbers of
//! distinct frames, and only what the names of frames need is decoded.

use rustc_hash::FxHashMap;

use super::keys::KeyTable;
use super::metadata::{Layout, Value};
use super::wire::{Cursor, VarintGroup};

/// The path of a value that is not needed: no field has it.
const UNWANTED: &[u8] = b"\0";

/// Indices of the values of a stack trace.
mod slot {
    pub const TRUNCATED: u8 = 0;
    pub const FRAMES: u8 = 1;
    pub const METHOD: u8 = 2;
    pub const LINE: u8 = 3;
    pub const KIND: u8 = 4;
}

/// The number of no frame.
const NONE: u32 = u32::MAX;

/// The binary logarithm of the number of frames in [`FrameNumbers::recent`].
const RECENT_BITS: u32 = 12;

/// The stack traces of a chunk.
#[derive(Default)]
pub(super) struct StackTraces {
    /// The numbers of those that are wanted, by key.
    numbers: KeyTable,
    /// Those that are wanted, by number, as far as they have been read.
    traces: Vec<Option<StackTrace>>,
    /// The frames of all stack traces, as numbers.
    frames: Vec<u32>,
    distinct: FrameNumbers,
    details: FrameDetails,
}

/// The distinct frames, which are numbered from 0.
#[derive(Default)]
struct FrameNumbers {
    frames: Vec<StackFrame>,
    numbers: FxHashMap<StackFrame, u32>,
    /// The bytes of the last frame with each hash, and its number: most frames are found here and not decoded.
    recent: Vec<(u128, u32)>,
}

/// The positions of a frame's values among its integers, if integers have a variable length.
struct FramePositions {
    /// Number of integers.
    count: usize,
    method: usize,
    line: Option<usize>,
    kind: Option<usize>,
}

/// The values of a frame that are needed besides its method. The others are 0 in each frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameDetails {
    pub(super) line: bool,
    pub(super) kind: bool,
}

/// A stack trace, leaf first.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackTrace {
    pub(super) is_truncated: bool,
    /// The range of its frames in those of all.
    start: u32,
    end: u32,
}

/// A frame of a stack trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct StackFrame {
    /// The key of the method.
    pub(super) method: u64,
    pub(super) line: u32,
    /// The key of the frame's type, how its code was compiled: a small number.
    pub(super) kind: u32,
}

impl StackTraces {
    /// Returns a table that keeps these values of frames.
    pub(super) fn new(details: FrameDetails) -> Self {
        Self { details, ..Self::default() }
    }

    /// Returns the number of the stack trace with a key, which is kept from now on.
    pub(super) fn want(&mut self, key: u64) -> Option<u32> {
        let number = self.numbers.intern(key)?;
        if number as usize == self.traces.len() {
            self.traces.push(None);
        }
        Some(number)
    }

    /// Returns the number of a stack trace that is wanted.
    pub(super) fn find(&self, key: u64) -> Option<u32> {
        self.numbers.get(key)
    }

    /// Returns the paths of the values that [`add`](Self::add) needs.
    pub(super) fn wanted_values(&self) -> [&'static [u8]; 5] {
        let FrameDetails { line, kind } = self.details;
        let line: &[u8] = if line { b"frames.lineNumber" } else { UNWANTED };
        let kind: &[u8] = if kind { b"frames.type" } else { UNWANTED };
        [b"truncated", b"frames", b"frames.method", line, kind]
    }

    /// Adds the stack trace that follows if it is wanted and not known, else skips it. Returns `None` if it is malformed.
    pub(super) fn add(&mut self, cursor: &mut Cursor<'_>, key: u64, layout: &Layout) -> Option<()> {
        let entry = self.numbers.get(key).and_then(|number| self.traces.get_mut(number as usize));
        let Some(entry @ None) = entry else { return layout.skip(cursor) };
        let start = u32::try_from(self.frames.len()).ok()?;
        let mut is_truncated = false;
        let (frames, numbers) = (&mut self.frames, &mut self.distinct);
        let elements = layout.integer_elements().filter(|_| cursor.has_varints());
        let read = match elements.and_then(|elements| Some((elements, FramePositions::new(elements)?))) {
            Some((elements, positions)) => {
                read_frames(cursor, elements, &positions, &mut is_truncated, numbers, frames)
            }
            None => visit_frames(cursor, layout, &mut is_truncated, |frame| frames.push(numbers.intern(frame))),
        };
        let end = u32::try_from(self.frames.len()).ok()?;
        *entry = Some(StackTrace { is_truncated, start, end });
        read
    }

    /// Returns the stack trace with a number, if it has been read.
    pub(super) fn get(&self, number: u32) -> Option<StackTrace> {
        *self.traces.get(number as usize)?
    }

    /// Returns the frames of a stack trace, leaf first, by their numbers.
    pub(super) fn frames(&self, stack: StackTrace) -> &[u32] {
        &self.frames[stack.start as usize..stack.end as usize]
    }

    /// Returns the distinct frames, in the order of their numbers.
    pub(super) fn distinct_frames(&self) -> &[StackFrame] {
        &self.distinct.frames
    }
}

impl FrameNumbers {
    /// Returns the number of a frame; a new one gets the next.
    fn intern(&mut self, frame: StackFrame) -> u32 {
        *self.numbers.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            (self.frames.len() - 1) as u32
        })
    }

    /// Returns the number of a frame whose integers these are.
    #[inline]
    fn intern_group(&mut self, group: VarintGroup, positions: &FramePositions) -> u32 {
        let bytes = group.bytes();
        let halves = bytes as u64 ^ ((bytes >> 64) as u64).rotate_left(32);
        // The highest bits of the product depend on all bits.
        let index = (halves.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT_BITS)) as usize;
        match self.recent.get(index) {
            Some((known, number)) if *known == bytes && *number != NONE => *number,
            _ => self.intern_rare(group, positions, index),
        }
    }

    #[cold]
    fn intern_rare(&mut self, group: VarintGroup, positions: &FramePositions, index: usize) -> u32 {
        let number = self.intern(StackFrame {
            method: group.get(positions.method),
            line: positions.line.map_or(0, |position| line(group.get(position))),
            kind: positions.kind.map_or(0, |position| kind(group.get(position))),
        });
        self.recent.resize(1 << RECENT_BITS, (0, NONE));
        self.recent[index] = (group.bytes(), number);
        number
    }
}

impl FramePositions {
    /// Returns the positions in the elements of a stack trace, which have only integers.
    fn new(elements: &Layout) -> Option<Self> {
        let [method, line, kind] = [slot::METHOD, slot::LINE, slot::KIND].map(|slot| elements.position(slot));
        Some(Self { count: elements.len(), method: method?, line, kind })
    }
}

/// Reads a stack trace whose frames have only integers of variable length.
#[inline]
fn read_frames(
    cursor: &mut Cursor<'_>,
    elements: &Layout,
    positions: &FramePositions,
    is_truncated: &mut bool,
    numbers: &mut FrameNumbers,
    frames: &mut Vec<u32>,
) -> Option<()> {
    *is_truncated = cursor.read_byte()? != 0;
    for _ in 0..elements.read_count(cursor)? {
        let Some(group) = cursor.read_varint_group(positions.count) else {
            let mut frame = StackFrame::default();
            elements.visit(cursor, &mut |slot, value| frame.set(slot, &value))?;
            frames.push(numbers.intern(frame));
            continue;
        };
        frames.push(numbers.intern_group(group, positions));
    }
    Some(())
}

/// Reads a stack trace of any layout.
fn visit_frames(
    cursor: &mut Cursor<'_>,
    layout: &Layout,
    is_truncated: &mut bool,
    mut each: impl FnMut(StackFrame),
) -> Option<()> {
    let mut frame = StackFrame::default();
    layout.visit(cursor, &mut |slot, value| match (slot, value) {
        (slot::TRUNCATED, Value::Number(truncated)) => *is_truncated = truncated != 0,
        (slot::FRAMES, Value::End) => each(std::mem::take(&mut frame)),
        (slot, value) => frame.set(slot, &value),
    })
}

impl StackFrame {
    /// Sets the value with an index of [`StackTraces::wanted_values`].
    fn set(&mut self, slot: u8, value: &Value<'_>) {
        match (slot, value) {
            (slot::METHOD, Value::Number(method)) => self.method = *method,
            (slot::LINE, Value::Number(number)) => self.line = line(*number),
            (slot::KIND, Value::Number(key)) => self.kind = kind(*key),
            _ => {}
        }
    }
}

/// Converts the key of a frame's type. A large one, which no JVM writes, becomes 0.
fn kind(key: u64) -> u32 {
    u32::try_from(key).unwrap_or_default()
}

/// Converts a line, which is -1 if it is not known, to a number that is 0 then.
fn line(number: u64) -> u32 {
    u32::try_from(number as i32).unwrap_or_default()
}
