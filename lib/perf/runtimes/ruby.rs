//! Ruby (MRI) 3.0 to 3.4, as a program or a library (`libruby`).
//!
//! Frames are `rb_control_frame_t`s at the upper end of a thread's stack of values, methods are `rb_iseq_t`s (`vm_core.h` of
//! Ruby). The places of fields depend on the version only; the loop that runs methods has no symbol in stripped files
//! ([`find_dispatcher`]).

use std::ops::Range;
use std::sync::Arc;

use super::function_parts::{find_callers, find_dispatcher, find_parts};
use super::hash::{hash_text, mix};
use super::interpreter::{
    FIELDS, Function, Interpreter, InterpreterFile, Layout, Library, Memory, Recognition, ScriptFrame,
};
use super::merge::NativeKind;
use super::sleeping::{SleepingThread, Step, WalkedScripts};
use super::thread_anchor::find_anchor;
use crate::markers;

/// The number of Ruby in the BPF program.
const KIND: u32 = 3;

/// The version, by which the file is found.
pub(super) const MARKER: &[u8] = b"ruby_version";

/// The fields of a version.
#[derive(Clone, Copy, Debug)]
struct Fields {
    /// The size of a frame.
    frame_size: u32,
    /// True if the first line of a method is a tagged number.
    is_line_tagged: bool,
    /// True if the length of a short string is in its flags.
    is_length_in_flags: bool,
    /// The places in a method of the lines' entries, their number, and the index of instructions.
    lines: [u64; 3],
    /// The size of an entry. The line is its first number.
    entry_size: u64,
}

/// Ruby 3.3 and 3.4.
const NEWEST: Fields =
    Fields { frame_size: 56, is_line_tagged: false, is_length_in_flags: false, lines: [112, 128, 136], entry_size: 12 };

/// The fields by version.
const TABLE: [(&[u8], Fields); 5] = [
    (b"3.0.", Fields { frame_size: 56, entry_size: 8, ..OLDEST }),
    (b"3.1.", OLDEST),
    (b"3.2.", Fields { frame_size: 64, ..NEWEST }),
    (b"3.3.", NEWEST),
    (b"3.4.", NEWEST),
];

/// Ruby 3.1.
const OLDEST: Fields =
    Fields { frame_size: 64, is_line_tagged: true, is_length_in_flags: true, lines: [120, 136, 144], entry_size: 12 };

/// The places in a method of the number of its instructions, the first of them, the path, the name, and the first line.
const INSTRUCTION_COUNT: u64 = 4;
const CODE: u64 = 8;
const PATH: u64 = 64;
const LABEL: u64 = 80;
const FIRST_LINE: u64 = 88;

/// The type of an object in its flags, arrays, and a flag: the content of an array is in the object, that of a string is not.
const TYPE: u64 = 0x1f;
const ARRAY: u64 = 7;
const STORAGE_FLAG: u64 = 0x2000;

/// The kind of a frame in its flags, the kinds without a method in Ruby, and a flag of frames that are the outermost of a loop.
const FRAME_KIND: u64 = 0x7fff_0001;
const HIDDEN_KINDS: [u64; 3] = [0x5555_0001, 0x6666_0001, 0x7999_0001];
const FINISH: u64 = 0x20;

/// The longest name or path, and the largest number of lines, that are read.
const MAX_LENGTH: u64 = 1 << 16;

/// Number of instructions whose entry is at the start of the index, 9 in each word.
const DIRECT: u64 = 54;

/// A Ruby interpreter.
#[derive(Debug)]
struct Ruby {
    layout: Layout,
    loops: Vec<Range<u64>>,
    entries: Vec<Range<u64>>,
    fields: Fields,
}

/// Recognizes Ruby in an ELF file.
pub(super) fn recognize(file: &InterpreterFile<'_>) -> Recognition {
    let version = file.symbol(MARKER).and_then(|symbol| file.data_from(symbol.start));
    let Some(version) = version.and_then(|data| data.split(|byte| *byte == 0).next()) else { return Recognition::None };
    let Some((_, fields)) = TABLE.iter().find(|(known, _)| version.starts_with(known)) else {
        let version: String = version.iter().take(8).map(|byte| char::from(*byte)).collect();
        return Recognition::Unsupported(format!("Ruby {} (3.0 to 3.4 are supported)", version.escape_default()));
    };
    let (Some(anchor), Some(dispatcher)) = (find_anchor(file, b"rb_thread_current"), find_dispatcher(file)) else {
        return Recognition::Unsupported("a build of Ruby whose threads or methods cannot be found".to_owned());
    };
    let mut numbers = [0; FIELDS];
    numbers[..3].copy_from_slice(&[fields.frame_size, fields.is_line_tagged.into(), fields.is_length_in_flags.into()]);
    let layout = Layout { kind: KIND, anchor, fields: numbers };
    let entries = find_callers(file, dispatcher.start);
    Recognition::Found(Arc::new(Ruby { layout, loops: find_parts(file, dispatcher), entries, fields: *fields }))
}

impl Interpreter for Ruby {
    fn layout(&self, _: Library) -> Option<&Layout> {
        Some(&self.layout)
    }

    fn loops(&self) -> &[Range<u64>] {
        &self.loops
    }

    fn entries(&self) -> &[Range<u64>] {
        &self.entries
    }

    fn calls_compiled(&self, caller: NativeKind) -> bool {
        caller != NativeKind::Other
    }

    fn unnamed_frame(&self) -> &'static [u8] {
        markers::RUBY
    }

    fn hash_function(&self, memory: Memory, method: u64) -> Option<u64> {
        let MethodParts { first_line, code, label, path } = self.read_parts(memory, method)?;
        let texts = [hash_text(memory, label.0, label.1)?, hash_text(memory, path.0, path.1)?];
        Some(texts.into_iter().fold(mix(first_line.into(), code), mix))
    }

    fn read_function(&self, memory: Memory, method: u64) -> Option<Function> {
        let MethodParts { first_line, label, path, .. } = self.read_parts(memory, method)?;
        Some(Function {
            name: memory.bytes(label.0, label.1 as usize)?,
            class: Vec::new(),
            file: memory.bytes(path.0, path.1 as usize)?,
            first_line,
            lines: self.read_lines(memory, method),
        })
    }

    fn walk_sleeping(&self, memory: Memory, state: u64, _: SleepingThread) -> Option<WalkedScripts> {
        // The frames are at the upper end of the thread's stack of values.
        let (start, size, first) = (memory.u64(state)?, memory.field(state, 8)?, memory.field(state, 16)?);
        let end = start.checked_add(size.checked_mul(8)?)?;
        (first >= start).then(|| {
            WalkedScripts::walk(first, |frame| match frame < end {
                true => self.read_frame(memory, frame),
                false => Some(Step::Hidden(0)),
            })
        })
    }

    fn find_line(&self, function: &Function, instruction: i32) -> Option<u32> {
        let lines = function.lines.as_ref()?;
        let (count, lines) = lines.split_first_chunk().map(|(count, lines)| (u32::from_le_bytes(*count), lines))?;
        let (entries, index) = lines.split_at_checked(count as usize * self.fields.entry_size as usize)?;
        // A frame's instruction is the next one.
        let position = u64::try_from(instruction).ok()?.saturating_sub(1);
        let entry = if count == 1 { 0 } else { find_entry(index, position)? };
        let entry = entries.get(entry as usize * self.fields.entry_size as usize..)?;
        Some(u32::from_le_bytes(*entry.first_chunk()?))
    }
}

/// The parts of a method. Strings are a start and a length.
struct MethodParts {
    first_line: u32,
    code: u64,
    label: (u64, u64),
    path: (u64, u64),
}

impl Ruby {
    fn read_parts(&self, memory: Memory, method: u64) -> Option<MethodParts> {
        let first_line = memory.field(method, FIRST_LINE)?;
        Some(MethodParts {
            first_line: if self.fields.is_line_tagged { first_line >> 1 } else { first_line } as u32,
            code: memory.field(method, CODE)?,
            label: self.string(memory, memory.field(method, LABEL)?)?,
            path: self.string(memory, path(memory, memory.field(method, PATH)?)?)?,
        })
    }

    /// Reads a frame of a thread that sleeps: see `step_ruby` in the BPF program.
    fn read_frame(&self, memory: Memory, frame: u64) -> Option<Step> {
        let (next, method) = (memory.u64(frame)?, memory.field(frame, 16)?);
        let flags = memory.u64(memory.field(frame, 32)?)?;
        let caller = frame.checked_add(self.fields.frame_size.into())?;
        // Methods in C are native frames, and the outermost frame of a thread is none.
        if method == 0 || HIDDEN_KINDS.contains(&(flags & FRAME_KIND)) {
            return Some(Step::Hidden(caller));
        }
        let code = memory.field(method, 16)?;
        let parts = self.read_parts(memory, code)?;
        let instruction = if next == 0 { 0 } else { next.wrapping_sub(parts.code) / 8 };
        let frame = ScriptFrame {
            code,
            instruction: (instruction as u32).cast_signed(),
            first_line: parts.first_line,
            hash: self.hash_function(memory, code)?,
            is_outermost: flags & FINISH != 0,
            native: 0,
        };
        Some(Step::Frame(frame, caller))
    }

    /// Returns the start and the length of a string.
    fn string(&self, memory: Memory, object: u64) -> Option<(u64, u64)> {
        let flags = memory.u64(object)?;
        let is_embedded = flags & STORAGE_FLAG == 0;
        let (start, length) = match (is_embedded, self.fields.is_length_in_flags) {
            (true, true) => (object.checked_add(16)?, flags >> 14 & 31),
            (true, false) => (object.checked_add(24)?, memory.field(object, 16)?),
            (false, _) => (memory.field(object, 24)?, memory.field(object, 16)?),
        };
        (length <= MAX_LENGTH).then_some((start, length))
    }

    /// Reads the lines of a method: the number of entries, the entries, and the index of instructions.
    fn read_lines(&self, memory: Memory, method: u64) -> Option<Vec<u8>> {
        let [entries, count, index] = self.fields.lines;
        let count = memory.field(method, count)? & 0xffff_ffff;
        let instructions = memory.field(method, INSTRUCTION_COUNT)? & 0xffff_ffff;
        if count == 0 || count > MAX_LENGTH || instructions > MAX_LENGTH {
            return None;
        }
        let mut lines = (count as u32).to_le_bytes().to_vec();
        lines.extend(memory.bytes(memory.field(method, entries)?, (count * self.fields.entry_size) as usize)?);
        if count > 1 {
            let blocks = instructions.saturating_sub(DIRECT).div_ceil(512);
            lines.extend(memory.bytes(memory.field(method, index)?, (48 + 80 * blocks) as usize)?);
        }
        Some(lines)
    }
}

/// Returns the string of a path: the object itself, or the first element of an array.
fn path(memory: Memory, object: u64) -> Option<u64> {
    let flags = memory.u64(object)?;
    if flags & TYPE != ARRAY {
        return Some(object);
    }
    let elements = if flags & STORAGE_FLAG != 0 { object.checked_add(16)? } else { memory.field(object, 32)? };
    memory.u64(elements)
}

/// Returns the entry of an instruction: one less than the number of entries that begin at it or before.
///
/// The index has the numbers of the first instructions in 7 bits each. Then follow blocks for 512 instructions each: the
/// number at the block's start, 9 bits more for each of its parts but the first, and a bit for each instruction
/// (`succ_index_table` in Ruby's `iseq.c`).
fn find_entry(index: &[u8], position: u64) -> Option<u64> {
    let word = |at: u64| Some(u64::from_le_bytes(*index.get(at as usize..)?.first_chunk()?));
    let number = match position.checked_sub(DIRECT) {
        None => word(position / 9 * 8)? >> (position % 9 * 7) & 0x7f,
        Some(rest) => {
            let (block, part, bit) = (48 + 80 * (rest / 512), rest % 512 / 64, rest % 64);
            let part_number = if part == 0 { 0 } else { word(block + 8)? >> (9 * (part - 1)) & 0x1ff };
            let bits = word(block + 16 + 8 * part)? << (63 - bit);
            (word(block)? & 0xffff_ffff) + part_number + u64::from(bits.count_ones())
        }
    };
    number.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::find_entry;

    #[test]
    fn finds_the_entry_of_an_instruction() {
        // Entries begin at instructions 0, 3 and 60, and at 130 in the next part of the block.
        let mut index = vec![0; 48 + 80];
        for position in 0..54 {
            let number: u64 = if position < 3 { 1 } else { 2 };
            let at = position / 9 * 8;
            let word = u64::from_le_bytes(index[at..at + 8].try_into().unwrap()) | number << (position % 9 * 7);
            index[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        index[48] = 2;
        index[48 + 8..48 + 16].copy_from_slice(&1u64.to_le_bytes());
        index[48 + 16..48 + 24].copy_from_slice(&(1u64 << (60 - 54)).to_le_bytes());
        index[48 + 24..48 + 32].copy_from_slice(&(1u64 << (130 - 54 - 64)).to_le_bytes());
        let found = |position| find_entry(&index, position);
        assert_eq!([0, 2, 3, 53].map(found), [0, 0, 1, 1].map(Some));
        assert_eq!([54, 59, 60, 117, 129, 130, 181].map(found), [1, 1, 2, 2, 2, 3, 3].map(Some));
        assert_eq!(found(10_000), None);
    }
}
