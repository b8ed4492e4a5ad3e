//! V8 9.4 to 14.6 (Node.js 16 to 26), as a program or a library (`libnode`), without compressed pointers.
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
/// The instructions of optimized code that make its frame are among these bytes.
const MAX_PROLOGUE: u64 = 128;
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
        if frame.code == 0 {
            return self.name_by_code(heap, position, with_lines);
        }
        let shared = frame.code + 1;
        let described = Described::read(heap, shared).filter(|described| described.has_hash(heap, frame.hash));
        let inlined = match position {
            FramePosition::Code { is_exact, .. } if described.is_some() => {
                find_inlined(heap, position, shared, is_exact)
            }
            // The function is gone, and what it told of its code.
            FramePosition::Code { .. } => Inlined::Unknown,
            _ => Inlined::Known(Vec::new()),
        };
        let own_position = match (&inlined, position) {
            (Inlined::Known(functions), _) if !functions.is_empty() => functions.last().and_then(|own| own.position),
            (_, FramePosition::Bytecode(offset)) if with_lines && described.is_some() => {
                bytecode_position(heap, shared, offset)
            }
            _ => None,
        };
        let own = CodeFunction { shared, position: own_position };
        let own = self.name_own(heap, frame, described, own, with_lines).or_else(|| Some(shown_name(sent?, None)))?;
        let mut frames = self.name_inlined(heap, position, shared, inlined, with_lines);
        frames.push(GeneratedFrame { name: own, is_inlined: false });
        Some(frames)
    }
}

/// The functions that run in a frame of optimized code.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Inlined {
    /// Those that were inlined, innermost first, and the function of the frame. Empty if the code contains one function only.
    Known(Vec<CodeFunction>),
    /// The frame's function has called this one, whose own frame is not complete. What was inlined where it did is not known.
    Called(CodeFunction),
    /// The code is not there any more, or other code is in its place.
    Unknown,
}

/// Finds the functions at a position of a frame of `shared`.
fn find_inlined(heap: Heap<'_>, position: FramePosition, shared: u64, is_exact: bool) -> Inlined {
    let Some((code, offset)) = code_at(heap, position) else { return Inlined::Unknown };
    if !matches!(code.kind, CodeKind::Optimized { .. }) {
        return Inlined::Known(Vec::new());
    }
    let Some(mut functions) = code.functions_at(heap, offset) else { return Inlined::Unknown };
    match functions.last() {
        None => Inlined::Known(functions),
        Some(last) if last.shared == shared => Inlined::Known(functions),
        Some(_) if is_exact && offset < MAX_PROLOGUE => functions.pop().map_or(Inlined::Unknown, Inlined::Called),
        Some(_) => Inlined::Unknown,
    }
}

/// Returns the frame that replaces inlined functions that are not known.
fn unknown_inlined() -> GeneratedFrame {
    GeneratedFrame { name: markers::V8.to_vec(), is_inlined: true }
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

    /// Names the frame of a function that is not complete, or not any more: its code tells what it is. What was inlined there is
    /// not running.
    fn name_by_code(&self, heap: Heap<'_>, position: FramePosition, with_lines: bool) -> Option<Vec<GeneratedFrame>> {
        let (code, offset) = code_at(heap, position)?;
        let name = match code.kind {
            CodeKind::RegularExpression => REGULAR_EXPRESSION.to_vec(),
            CodeKind::Optimized { .. } => {
                let function = code.functions_at(heap, offset)?.pop()?;
                let name = self.name(heap, function, with_lines)?;
                // Nothing changed meanwhile.
                let again = code_at(heap, position).and_then(|(code, offset)| code.functions_at(heap, offset)?.pop());
                (again == Some(function)).then_some(name)?
            }
            CodeKind::Baseline | CodeKind::Other => return None,
        };
        Some(GeneratedFrame::without_inlined(name))
    }

    /// Names the functions that run in the frame of `shared`, without `shared` itself. `[v8]` replaces those that are not known.
    fn name_inlined(
        &self,
        heap: Heap<'_>,
        position: FramePosition,
        shared: u64,
        inlined: Inlined,
        with_lines: bool,
    ) -> Vec<GeneratedFrame> {
        let name = |function: CodeFunction| {
            let name = self.name(heap, function, with_lines)?;
            Some(GeneratedFrame { name, is_inlined: true })
        };
        let named: Option<Vec<GeneratedFrame>> = match &inlined {
            Inlined::Known(functions) => {
                functions.split_last().map_or(&[][..], |(_, inlined)| inlined).iter().copied().map(name).collect()
            }
            Inlined::Called(function) => name(*function).map(|called| vec![called, unknown_inlined()]),
            Inlined::Unknown => None,
        };
        let named = named.filter(|named| match position {
            // The code must still be the same.
            FramePosition::Code { is_exact, .. } if !named.is_empty() => {
                find_inlined(heap, position, shared, is_exact) == inlined
            }
            _ => true,
        });
        named.unwrap_or_else(|| vec![unknown_inlined()])
    }

    /// Names the function of a frame, of which `described` was read. `None` if the process has another one there by now, and
    /// it was not read before.
    fn name_own(
        &self,
        heap: Heap<'_>,
        frame: ScriptFrame,
        described: Option<Described>,
        own: CodeFunction,
        with_lines: bool,
    ) -> Option<Vec<u8>> {
        let read = described.and_then(|described| Some((described.function(heap)?, described)));
        // Another function may be there since it was compared.
        let read = read.filter(|(_, described)| described.has_hash(heap, frame.hash));
        let Some((function, described)) = read else {
            return self.recall(frame).map(|function| shown_name(&function, None));
        };
        self.remember(frame, &function);
        let offset = own.position.filter(|_| with_lines);
        Some(shown_name(&function, offset.and_then(|offset| self.find_line(heap, described.script, offset))))
    }

    /// Names a function that code contains.
    fn name(&self, heap: Heap<'_>, function: CodeFunction, with_lines: bool) -> Option<Vec<u8>> {
        let described = Described::read(heap, function.shared)?;
        let offset = function.position.filter(|_| with_lines);
        let line = offset.and_then(|offset| self.find_line(heap, described.script, offset));
        Some(shown_name(&described.function(heap)?, line))
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
            let table = heap.array_bytes(table, MAX_TABLE)?;
            return find_position(&table, offsets.encoding, code_offset)?.offset();
        }
        let next = if kind == types.code { u64::from(offsets.code.deoptimization) } else { BYTECODE };
        object = heap.field(object, next)?;
    }
    None
}

/// Returns the name of a function as it is shown.
fn shown_name(function: &Function, line: Option<u32>) -> Vec<u8> {
    frame_name(&shown(function), line, BUILTIN_FILE)
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
