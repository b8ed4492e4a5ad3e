//! CPython 3.8 to 3.15.
//!
//! From 3.13 on the interpreter describes itself (`_Py_DebugOffsets` at the start of `_PyRuntime`); before, the layout
//! depends on the version only. Frames and code objects are those of `Include/internal/pycore_frame.h` and
//! `Include/cpython/code.h` of CPython.

mod layout;
mod lines;
mod sleeping;
mod tasks;

use std::ops::Range;
use std::sync::Arc;

use self::layout::{LoopStart, PythonLayout};
pub(super) use self::tasks::TaskOffsets;
use super::function_parts::find_parts;
use super::interpreter::{Function, Interpreter, InterpreterFile, Layout, Library, Memory, Recognition};
use super::sleeping::{SleepingThread, WalkedScripts};
use super::thread_anchor::find_anchor;
use crate::markers;

/// The function that runs Python functions. Compilers move rarely used parts of it to another place.
const LOOP: &[u8] = b"_PyEval_EvalFrameDefault";

/// A symbol by which the file of an interpreter is found.
pub(super) const MARKER: &[u8] = LOOP;

/// A CPython interpreter.
#[derive(Debug)]
struct Python {
    layout: PythonLayout,
    loops: Vec<Range<u64>>,
}

/// Recognizes CPython in an ELF file: `libpython` or a program that contains it.
pub(super) fn recognize(file: &InterpreterFile<'_>) -> Recognition {
    let Some(function) = file.symbol(LOOP) else { return Recognition::None };
    let Some(anchor) = find_anchor(file, b"PyGILState_GetThisThreadState") else {
        return Recognition::Unsupported("a build of Python whose threads cannot be found".to_owned());
    };
    match PythonLayout::find(file, anchor) {
        Ok(layout) => Recognition::Found(Arc::new(Python { layout, loops: find_parts(file, function) })),
        Err(version) => Recognition::Unsupported(format!("Python {version} (3.8 to 3.15 are supported)")),
    }
}

impl Interpreter for Python {
    fn layout(&self, _: Library) -> Option<&Layout> {
        Some(&self.layout.layout)
    }

    fn loops(&self) -> &[Range<u64>] {
        &self.loops
    }

    fn places_loops(&self) -> bool {
        !matches!(self.layout.offsets.loop_start, LoopStart::EachFrame)
    }

    fn unnamed_frame(&self) -> &'static [u8] {
        markers::PYTHON
    }

    fn hash_function(&self, memory: Memory, function: u64) -> Option<u64> {
        self.layout.read_code(memory, function)?.hash(&self.layout, memory)
    }

    fn read_function(&self, memory: Memory, function: u64) -> Option<Function> {
        let code = self.layout.read_code(memory, function)?;
        let strings = &self.layout.strings;
        Some(Function {
            name: strings.read(memory, code.name)?,
            class: Vec::new(),
            file: strings.read(memory, code.file)?,
            first_line: code.first_line,
            lines: self.layout.read_bytes(memory, code.lines),
        })
    }

    fn walk_sleeping(&self, memory: Memory, state: u64, thread: SleepingThread) -> Option<WalkedScripts> {
        self.layout.walk_sleeping(memory, state, thread)
    }

    fn has_tasks(&self) -> bool {
        true
    }

    fn knows_tasks(&self) -> Result<(), String> {
        self.layout.task_names.map(|_| ()).map_err(|minor| format!("Python 3.{minor}"))
    }

    fn add_tasks(&self, layout: &mut Layout, tasks: Option<TaskOffsets>) {
        let fields = match (tasks, self.layout.task_names) {
            (Some(tasks), Ok(names)) => tasks.fields(names),
            (None, Ok(_)) => [0; 7],
            (_, Err(_)) => return,
        };
        layout.fields[layout::TASK_FIELDS..][..fields.len()].copy_from_slice(&fields);
    }

    fn read_task_name(&self, sent: &[u8]) -> Option<Vec<u8>> {
        tasks::task_name(&self.layout, sent)
    }

    fn find_line(&self, function: &Function, instruction: i32) -> Option<u32> {
        lines::find(self.layout.line_table, function.lines.as_ref()?, function.first_line, instruction)
    }
}
