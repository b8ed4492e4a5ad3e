//! The layouts of CPython's structures.

use super::lines::LineTable;
use crate::perf::runtimes::hash::{hash_text, mix};
use crate::perf::runtimes::interpreter::{FIELDS, InterpreterFile, Layout, Memory};
use crate::perf::runtimes::thread_anchor::ThreadAnchor;

/// The number of CPython in the BPF program.
const KIND: u32 = 1;

/// The value of `INDIRECT_FRAME` if the thread's state points to the frame itself.
pub(super) const NONE: u32 = u32::MAX;

/// Where an interpreter loop begins, as in the BPF program.
#[derive(Clone, Copy, Debug)]
pub(super) enum LoopStart {
    /// At each frame.
    EachFrame = 0,
    /// At frames with a flag.
    Flag = 1,
    /// Before a frame that is not shown.
    EntryFrame = 2,
}

/// The offsets of one version, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offsets {
    pub thread_id: u32,
    pub first_frame: u32,
    pub indirect_frame: u32,
    pub code: u32,
    pub previous: u32,
    pub instruction: u32,
    pub is_pointer: bool,
    pub owner: u32,
    pub loop_start: LoopStart,
    first_line: u32,
    file: u32,
    name: u32,
    lines: u32,
    pub bytecode: u32,
    string: StringOffsets,
}

/// The places in strings, and in byte strings.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringOffsets {
    length: u32,
    state: u32,
    /// The place of the bytes of ASCII strings. Those of others are 24 or 16 bytes further on.
    ascii_data: u32,
    bytes_length: u32,
    bytes_data: u32,
    /// Number of bits before the size of a character in the state.
    state_shift: u32,
}

/// The offsets of the versions that do not describe themselves, from their headers. `tests/record/python.rs` compares the
/// functions and lines with those that the interpreter reports.
const TABLE: [(u32, Offsets); 5] = [
    (8, FRAME_OBJECTS),
    (9, FRAME_OBJECTS),
    (10, Offsets { instruction: 96, ..FRAME_OBJECTS }),
    (
        11,
        Offsets {
            thread_id: 152,
            first_frame: 56,
            indirect_frame: 8,
            code: 32,
            previous: 48,
            instruction: 56,
            is_pointer: true,
            owner: 68,
            loop_start: LoopStart::Flag,
            first_line: 72,
            file: 112,
            name: 128,
            lines: 136,
            bytecode: 184,
            string: OLD_STRINGS,
        },
    ),
    (
        12,
        Offsets {
            thread_id: 136,
            first_frame: 56,
            indirect_frame: 0,
            code: 0,
            previous: 8,
            instruction: 56,
            is_pointer: true,
            owner: 70,
            loop_start: LoopStart::EntryFrame,
            first_line: 68,
            file: 112,
            name: 128,
            lines: 136,
            bytecode: 192,
            string: StringOffsets { ascii_data: 40, ..OLD_STRINGS },
        },
    ),
];

/// The versions whose frames are objects.
const FRAME_OBJECTS: Offsets = Offsets {
    thread_id: 176,
    first_frame: 24,
    indirect_frame: NONE,
    code: 32,
    previous: 24,
    instruction: 104,
    is_pointer: false,
    owner: 0,
    loop_start: LoopStart::EachFrame,
    first_line: 40,
    file: 104,
    name: 112,
    lines: 120,
    bytecode: 0,
    string: OLD_STRINGS,
};

/// The strings of versions before 3.12.
const OLD_STRINGS: StringOffsets =
    StringOffsets { length: 16, state: 32, ascii_data: 48, bytes_length: 16, bytes_data: 32, state_shift: 2 };

/// The places in `_Py_DebugOffsets` of the offsets that are needed, by minor version. They are those of `current_frame` and
/// `thread_id` of a thread's state, `previous`, `executable`, `instr_ptr` and `owner` of a frame, `filename`, `qualname`,
/// `linetable`, `firstlineno` and `co_code_adaptive` of a code object, and of the size of an ASCII string's header. Then
/// follow those of `ob_type` of an object and `tp_flags` of a type.
const DEBUG_OFFSETS: [(u32, [usize; 14]); 3] = [
    (13, [184, 192, 232, 240, 248, 264, 280, 296, 304, 312, 344, 560, 368, 400]),
    (14, [208, 216, 256, 264, 272, 288, 320, 336, 344, 352, 384, 640, 408, 440]),
    (15, [208, 240, 320, 328, 336, 352, 384, 400, 408, 416, 448, 736, 472, 504]),
];

/// The places of other offsets, in bytes before that of the size of an ASCII string's header: of `length` and `state` of a
/// string, `ob_sval` and `ob_size` of a byte string, and `ob_digit` and `lv_tag` of a number.
const BEFORE_STRING_SIZE: [usize; 6] = [8, 16, 32, 40, 56, 64];

/// The place of what is not 0 if the interpreter has no global lock.
const FREE_THREADED: usize = 16;

/// The first version that says which task a thread runs.
const FIRST_WITH_TASKS: u32 = 14;

/// The index of the first field that tells which task a thread runs.
pub(super) const TASK_FIELDS: usize = 23;

/// The offset of `previous` in `_PyCFrame`, the variables of a loop, of Python 3.11.
pub(super) const LOOP_CALLER: u32 = 16;

/// The first bytes of `_Py_DebugOffsets`.
const COOKIE: &[u8] = b"xdebugpy";

/// The symbols that each version exported first, the newest version first.
const FIRST_SYMBOLS: [(u32, &[u8]); 3] =
    [(10, b"PyModule_AddObjectRef"), (9, b"PyFrame_GetCode"), (8, b"PyCode_NewWithPosOnlyArgs")];

/// The size of the memory of a structure that the BPF program reads at once, at most.
const MAX_READ: u32 = 240;

/// The largest name, path or line table that is read.
const MAX_LENGTH: u64 = 1 << 20;

/// The layout of a version of CPython.
#[derive(Debug)]
pub(super) struct PythonLayout {
    /// The offsets for the BPF program.
    pub layout: Layout,
    pub line_table: LineTable,
    pub strings: StringOffsets,
    /// Where the name of a task is found; the version, if it does not say which task a thread runs.
    pub task_names: Result<TaskNameOffsets, u32>,
    pub offsets: Offsets,
}

/// The places of what tells whether an object is a string or a number, and in numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskNameOffsets {
    pub object_type: u32,
    pub type_flags: u32,
    pub int_tag: u32,
    pub int_digits: u32,
}

/// The parts of a code object that make up a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    pub first_line: u32,
    pub name: u64,
    pub file: u64,
    pub lines: u64,
}

impl PythonLayout {
    /// Finds the layout of an interpreter.
    ///
    /// # Errors
    /// The version, if its layout is not known.
    pub(super) fn find(file: &InterpreterFile<'_>, anchor: ThreadAnchor) -> Result<Self, String> {
        let version = file.symbol(b"Py_Version").and_then(|symbol| file.u32_at(symbol.start));
        let (minor, offsets, task_names) = match version {
            Some(version) if version >> 24 == 3 => {
                let minor = version >> 16 & 0xff;
                match described_offsets(file, minor) {
                    Some((offsets, names)) => (minor, offsets, Some(names).filter(|_| minor >= FIRST_WITH_TASKS)),
                    None => (minor, table_offsets(minor).ok_or_else(|| format!("3.{minor}"))?, None),
                }
            }
            Some(version) => return Err(format!("{}.{}", version >> 24, version >> 16 & 0xff)),
            None => {
                let minor = FIRST_SYMBOLS.iter().find(|(_, symbol)| file.symbol(symbol).is_some());
                let minor = minor.map(|(minor, _)| *minor).ok_or("before 3.8")?;
                (minor, table_offsets(minor).ok_or("before 3.8")?, None)
            }
        };
        let layout = offsets.layout(anchor).ok_or_else(|| format!("3.{minor} with unusual structures"))?;
        let line_table = match minor {
            ..10 => LineTable::Pairs,
            10 => LineTable::Ranges,
            _ => LineTable::Locations,
        };
        Ok(Self { layout, line_table, strings: offsets.string, task_names: task_names.ok_or(minor), offsets })
    }

    /// Reads a code object.
    pub(super) fn read_code(&self, memory: Memory, address: u64) -> Option<Code> {
        let Offsets { first_line, file, name, lines, .. } = self.offsets;
        // A number of 4 bytes.
        let first_line = memory.field(address, first_line.into())? as u32;
        let [name, file, lines] = [name, file, lines].map(|offset| memory.field(address, offset.into()));
        Some(Code { first_line, name: name?, file: file?, lines: lines? })
    }

    /// Reads the content of a byte string.
    pub(super) fn read_bytes(&self, memory: Memory, address: u64) -> Option<Vec<u8>> {
        let StringOffsets { bytes_length, bytes_data, .. } = self.strings;
        let length = memory.field(address, bytes_length.into()).filter(|length| *length <= MAX_LENGTH)?;
        memory.bytes(address.checked_add(bytes_data.into())?, length as usize)
    }
}

impl Code {
    /// Returns the hash that the BPF program makes.
    pub(super) fn hash(&self, layout: &PythonLayout, memory: Memory) -> Option<u64> {
        let texts = [layout.strings.hash(memory, self.name)?, layout.strings.hash(memory, self.file)?];
        Some(texts.into_iter().fold(mix(self.first_line.into(), self.lines), mix))
    }
}

impl StringOffsets {
    /// Returns the hash of a string, as the BPF program makes it.
    fn hash(self, memory: Memory, string: u64) -> Option<u64> {
        let Characters { start, count, size } = self.find_characters(memory, string)?;
        hash_text(memory, start, count * size as u64)
    }

    /// Reads a string as UTF-8.
    pub(super) fn read(self, memory: Memory, string: u64) -> Option<Vec<u8>> {
        let Characters { start, count, size } = self.find_characters(memory, string)?;
        Some(decode(&memory.bytes(start, count as usize * size)?, size).into_bytes())
    }

    fn find_characters(self, memory: Memory, string: u64) -> Option<Characters> {
        let count = memory.field(string, self.length.into()).filter(|count| *count <= MAX_LENGTH)?;
        let (offset, size) = self.characters(memory.field(string, self.state.into())? as u32)?;
        Some(Characters { start: string.checked_add(u64::from(self.ascii_data) + offset as u64)?, count, size })
    }

    /// Returns where the characters begin behind the head of an ASCII string, and their size. `None` if they are elsewhere.
    pub(super) fn characters(self, state: u32) -> Option<(usize, usize)> {
        let state = state >> self.state_shift;
        let (size, is_compact, is_ascii) = (state & 7, state >> 3 & 1 == 1, state >> 4 & 1 == 1);
        if !is_compact || !matches!(size, 1 | 2 | 4) {
            return None;
        }
        Some((if is_ascii { 0 } else { self.wide_data() as usize }, size as usize))
    }

    /// Returns by how much the header of strings that are not ASCII is longer: before 3.12 by 24 bytes, since then by 16.
    fn wide_data(self) -> u32 {
        if self.ascii_data == OLD_STRINGS.ascii_data { 24 } else { 16 }
    }
}

/// The characters of a string: the address of the first one, how many there are, and their size in bytes.
struct Characters {
    start: u64,
    count: u64,
    size: usize,
}

/// Decodes text whose characters have `size` bytes.
pub(super) fn decode(bytes: &[u8], size: usize) -> String {
    let characters = bytes.chunks_exact(size).map(|character| {
        let code = character.iter().rev().fold(0, |code, byte| code << 8 | u32::from(*byte));
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    characters.collect()
}

fn table_offsets(minor: u32) -> Option<Offsets> {
    TABLE.iter().find(|(known, _)| *known == minor).map(|(_, offsets)| *offsets)
}

/// Reads the offsets that the interpreter itself states.
fn described_offsets(file: &InterpreterFile<'_>, minor: u32) -> Option<(Offsets, TaskNameOffsets)> {
    let (_, places) = DEBUG_OFFSETS.iter().find(|(known, _)| *known == minor)?;
    let data = file.data_from(file.symbol(b"_PyRuntime")?.start).filter(|data| data.starts_with(COOKIE))?;
    let read = |place: usize| Some(u64::from_le_bytes(*data.get(place..)?.first_chunk()?));
    // The version of the description.
    if read(8)? >> 16 & 0xff != u64::from(minor) {
        return None;
    }
    let mut values = [0u32; 20];
    let header_place = places[11];
    let before = BEFORE_STRING_SIZE.map(|distance| header_place - distance);
    for (value, place) in values.iter_mut().zip(places.iter().chain(&before)) {
        *value = u32::try_from(read(*place)?).ok()?;
    }
    let [first_frame, thread_id, previous, code, instruction, owner, file, name, lines, first_line, bytecode, ..] =
        values;
    let [.., ascii_data, object_type, type_flags, length, state, bytes_data, bytes_length, int_digits, int_tag] =
        values;
    // From 3.14 on a byte of the state is the first one, if there is no global lock.
    let state_shift = if minor >= 14 && read(FREE_THREADED)? != 0 { 8 } else { 2 };
    let string = StringOffsets { length, state, ascii_data, bytes_length, bytes_data, state_shift };
    let offsets = Offsets {
        thread_id,
        first_frame,
        indirect_frame: NONE,
        code,
        previous,
        instruction,
        is_pointer: true,
        owner,
        loop_start: LoopStart::EntryFrame,
        first_line,
        file,
        name,
        lines,
        bytecode,
        string,
    };
    Some((offsets, TaskNameOffsets { object_type, type_flags, int_tag, int_digits }))
}

impl Offsets {
    /// Returns what the BPF program needs. `None` if it could not read the structures at once.
    fn layout(&self, anchor: ThreadAnchor) -> Option<Layout> {
        let frame_end = [self.code + 8, self.previous + 8, self.instruction + 8, self.owner + 1].into_iter().max()?;
        let in_code = [self.first_line, self.name, self.file, self.lines];
        let (code_start, code_last) = (*in_code.iter().min()?, *in_code.iter().max()?);
        let code_size = code_last + 8 - code_start;
        if frame_end > MAX_READ || code_size > MAX_READ {
            return None;
        }
        let mut fields = [0; FIELDS];
        let values = [
            self.thread_id,
            self.first_frame,
            self.indirect_frame,
            frame_end,
            self.code,
            self.previous,
            self.instruction,
            u32::from(self.is_pointer),
            self.owner,
            self.loop_start as u32,
            self.bytecode,
            code_start,
            code_size,
            self.first_line - code_start,
            self.name - code_start,
            self.file - code_start,
            self.lines - code_start,
            self.string.ascii_data,
            self.string.length,
            self.string.state,
            self.string.state_shift,
            self.string.wide_data(),
            if matches!(self.loop_start, LoopStart::Flag) { LOOP_CALLER } else { NONE },
            // A process whose tasks are wanted gets more (`tasks.rs`).
            NONE,
        ];
        fields[..=TASK_FIELDS].copy_from_slice(&values);
        Some(Layout { kind: KIND, anchor, fields })
    }
}
