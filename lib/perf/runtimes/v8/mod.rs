//! V8 9.4 to 13.6 (Node.js 16 to 24), as a program or a library (`libnode`), without compressed pointers.
//!
//! Frames are on the native stack. Each frame of a JavaScript function contains the function (`JSFunction`), which leads to its
//! description (`SharedFunctionInfo`) and its name. The address of generated code leads to the code object (`code`), whose
//! tables tell which functions were inlined there.

mod code;
mod functions;
mod heap;
mod layout;
mod positions;

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use self::code::{Code, CodeFunction, CodeKind, find_code};
use self::functions::Described;
use self::heap::Heap;
use self::layout::{Offsets, find_offsets};
use self::positions::{Lines, find_position};
use super::functions::frame_name;
use super::hash::mix;
use super::interpreter::{
    FIELDS, Function, GeneratedFrame, Interpreter, InterpreterFile, Layout, Library, Recognition, ScriptFrame,
};
use super::thread_anchor::ThreadAnchor;
use crate::markers;

/// The number of V8 in the BPF program.
const KIND: u32 = 5;

/// A symbol by which the file is found.
pub(super) const MARKER: &[u8] = b"v8dbg_class_JSFunction__shared__SharedFunctionInfo";

/// Stands for the file of functions of V8, and for the name of functions without one.
const BUILTIN_FILE: &[u8] = b"v8";
const ANONYMOUS: &[u8] = b"(anonymous)";
/// Stands for the file of functions in scripts without a name.
const ANONYMOUS_SCRIPT: &[u8] = b"<anonymous>";

/// The frame of a regular expression.
const REGULAR_EXPRESSION: &[u8] = b"(regexp) (v8)";

/// Number of functions that are remembered.
const MAX_FUNCTIONS: usize = 1 << 18;
/// Number of scripts whose lines are remembered.
const MAX_SCRIPTS: usize = 1024;
/// The largest table of positions that is read.
const MAX_TABLE: u64 = 16 << 20;

/// The place of the source in a script, and of the bytecode in what a function's description may point to.
const SOURCE: u64 = 8;
const BYTECODE: u64 = 8;

/// The process of a script, and the addresses of the script and its source.
type ScriptKey = (u32, u64, u64);

/// The JavaScript engine V8.
#[derive(Debug)]
struct V8 {
    layout: Layout,
    offsets: Offsets,
    /// The lines of the scripts that were met.
    lines: Mutex<FxHashMap<ScriptKey, Option<Arc<Lines>>>>,
    /// The functions that were read: by address and hash. A process that is gone has none.
    known: Mutex<FxHashMap<(u64, u64), Function>>,
}

/// The position of a frame, as the BPF program sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramePosition {
    Unknown,
    /// The offset in the bytecode object.
    Bytecode(u32),
    /// The address in generated code, and a hash of the instructions before it.
    Code {
        pc: u64,
        is_exact: bool,
        hash: u64,
    },
}

impl FramePosition {
    fn of(frame: ScriptFrame) -> Self {
        let position = u64::from(frame.instruction.cast_unsigned()) << 32 | u64::from(frame.first_line);
        let pc = position & ((1 << 48) - 1);
        match position >> 48 & 3 {
            1 => Self::Bytecode(position as u32),
            kind @ (2 | 3) => Self::Code { pc, is_exact: kind == 3, hash: position >> 50 },
            _ => Self::Unknown,
        }
    }
}

/// Recognizes V8 in an ELF file.
pub(super) fn recognize(file: &InterpreterFile<'_>) -> Recognition {
    if file.symbol(MARKER).is_none() {
        return Recognition::None;
    }
    match find_offsets(file) {
        Ok(offsets) => Recognition::Found(Arc::new(V8::new(offsets))),
        Err(reason) => Recognition::Unsupported(reason),
    }
}

impl Interpreter for V8 {
    fn layout(&self, _: Library<'_>) -> Option<&Layout> {
        Some(&self.layout)
    }

    fn generates_code(&self) -> bool {
        true
    }

    fn unnamed_frame(&self) -> &'static [u8] {
        markers::V8
    }

    fn native_file(&self) -> &'static [u8] {
        BUILTIN_FILE
    }

    fn read_generated(
        &self,
        library: Library<'_>,
        frame: ScriptFrame,
        sent: Option<&Function>,
        with_lines: bool,
    ) -> Option<Vec<GeneratedFrame>> {
        let heap = Heap { memory: library.memory, offsets: &self.offsets };
        let position = FramePosition::of(frame);
        let shared = frame.code + 1;
        let described = if frame.code == 0 { None } else { Described::read(heap, shared) };
        let described = described.filter(|described| described.has_hash(heap, frame.hash));
        let is_gone = frame.code != 0 && described.is_none();
        let code = if is_gone { None } else { code_at(heap, position) };
        if frame.code == 0 && code.is_some_and(|(code, _)| code.kind == CodeKind::RegularExpression) {
            return Some(GeneratedFrame::without_inlined(REGULAR_EXPRESSION.to_vec()));
        }
        let optimized = code.filter(|(code, _)| code.kind == CodeKind::Optimized);
        let mut functions = optimized.and_then(|(code, offset)| code.functions_at(heap, offset)).unwrap_or_default();
        let is_exact = matches!(position, FramePosition::Code { is_exact: true, .. });
        if frame.code == 0 {
            // The frame is not complete, or not any more: what was inlined is not running.
            functions = functions.pop().into_iter().collect();
        } else if functions.last().is_some_and(|last| last.shared != shared) && is_exact {
            // The function has been called, but its frame is not complete: it is that of the caller.
            functions = functions.pop().into_iter().chain([CodeFunction { shared, position: None }]).collect();
        } else if functions.last().is_none_or(|last| last.shared != shared) {
            let position = match position {
                FramePosition::Bytecode(offset) if with_lines && !is_gone => bytecode_position(heap, shared, offset),
                _ => None,
            };
            functions = vec![CodeFunction { shared, position }];
        }
        let count = functions.len();
        let frames = functions.into_iter().enumerate().map(|(index, function)| {
            let is_own = function.shared == shared && frame.code != 0;
            let read = if is_own { described } else { Described::read(heap, function.shared) };
            let read = read.and_then(|read| Some((read.function(heap)?, read)));
            // Another function may be there since it was compared.
            let read = read.filter(|(_, read)| !is_own || read.has_hash(heap, frame.hash));
            let found = match read.map(|(found, read)| (found, read.script)) {
                Some((found, script)) => {
                    if is_own {
                        self.remember(frame, &found);
                    }
                    let offset = function.position.filter(|_| with_lines);
                    Some((found, offset.and_then(|offset| self.find_line(heap, script, offset))))
                }
                None if is_own => self.recall(frame).or_else(|| sent.cloned()).map(|found| (found, None)),
                None => None,
            };
            let (found, line) = found?;
            let name = frame_name(&shown(&found), line, BUILTIN_FILE);
            Some(GeneratedFrame { name, is_inlined: index + 1 < count })
        });
        frames.collect::<Option<Vec<GeneratedFrame>>>().filter(|frames| !frames.is_empty())
    }
}

impl V8 {
    fn new(offsets: Offsets) -> Self {
        let types = &offsets.types;
        let mut fields = [0; FIELDS];
        fields[..10].copy_from_slice(&[
            offsets.shared,
            types.shared,
            offsets.name,
            offsets.script,
            offsets.literal,
            types.script,
            types.scope,
            offsets.locals,
            types.bytecode,
            types.first_non_string,
        ]);
        let layout = Layout { kind: KIND, anchor: ThreadAnchor::Library(0), fields };
        Self { layout, offsets, lines: Mutex::default(), known: Mutex::default() }
    }

    fn remember(&self, frame: ScriptFrame, function: &Function) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_FUNCTIONS {
            known.clear();
        }
        known.entry((frame.code, frame.hash)).or_insert_with(|| function.clone());
    }

    fn recall(&self, frame: ScriptFrame) -> Option<Function> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(frame.code, frame.hash)).cloned()
    }

    /// Returns the line of an offset in the source of a script.
    fn find_line(&self, heap: Heap<'_>, script: u64, offset: u32) -> Option<u32> {
        let key = (heap.memory.pid, script, heap.field(script, SOURCE)?);
        let mut scripts = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if scripts.len() >= MAX_SCRIPTS {
            scripts.clear();
        }
        let lines = scripts.entry(key).or_insert_with(|| Lines::read(heap, script).map(Arc::new));
        lines.as_ref()?.find(offset)
    }
}

/// Returns the code at a position, and the offset in it. `None` if it is not there any more.
fn code_at(heap: Heap<'_>, position: FramePosition) -> Option<(Code, u64)> {
    let FramePosition::Code { pc, is_exact, hash } = position else { return None };
    let bytes = heap.memory.bytes(pc.checked_sub(16)?, 16)?;
    let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
    if words.fold(0, mix) & 0x3fff != hash {
        return None;
    }
    let at = pc - u64::from(!is_exact);
    let code = find_code(heap, at)?;
    Some((code, at - code.start))
}

/// Returns the position in the source of an offset in the bytecode of a function.
fn bytecode_position(heap: Heap<'_>, shared: u64, offset: u32) -> Option<u32> {
    let (offsets, types) = (heap.offsets, &heap.offsets.types);
    let mut object = heap.field(shared, offsets.data.into())?;
    // The description may point to baseline code, or to a pair with the bytecode.
    for _ in 0..3 {
        let kind = heap.type_of(object)?;
        if kind == types.bytecode {
            let table = heap.field(object, offsets.bytecode_positions.into())?;
            let code_offset = i64::from(offset) - i64::from(offsets.bytecode - 1);
            return find_position(&heap.array_bytes(table, MAX_TABLE)?, code_offset)?.offset();
        }
        let next = if kind == types.code { u64::from(offsets.code.deoptimization) } else { BYTECODE };
        object = heap.field(object, next)?;
    }
    None
}

/// Returns a function as it is shown: functions without a name have one, and a file is named by its path from where modules
/// are searched for. The class of a function is not empty if it is one of a script.
fn shown(function: &Function) -> Function {
    let name = if function.name.is_empty() { ANONYMOUS.to_vec() } else { function.name.clone() };
    let is_anonymous_script = function.file.is_empty() && !function.class.is_empty();
    let file = if is_anonymous_script { ANONYMOUS_SCRIPT } else { short_path(&function.file) };
    Function { name, class: Vec::new(), file: file.to_vec(), first_line: 0, lines: None }
}

/// Returns the path of a script: without the scheme of a URL, and behind `node_modules`.
fn short_path(path: &[u8]) -> &[u8] {
    let path = path.strip_prefix(b"file://").unwrap_or(path);
    let folder = b"/node_modules/";
    memchr::memmem::rfind(path, folder).map_or(path, |index| &path[index + folder.len()..])
}

#[cfg(test)]
mod tests;
