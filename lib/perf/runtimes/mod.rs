//! Interpreters whose script functions are named as they run: without a restart, options or agents.
//!
//! An interpreter keeps the frames of script functions in memory of its own. The BPF program walks them at each sample
//! (`record/bpf/interpreters.bpf.h`), by a layout that the recorder finds in the interpreter's ELF file. The names are read
//! from the process when a function is first met ([`functions`]), and the script frames replace the interpreter's own
//! frames in the native stack ([`merge`]).
//!
//! A runtime that compiles functions while they run, such as HotSpot, has their frames on the native stack. No unwind
//! information describes them: the BPF program steps through them by what the runtime knows, and notes the function of each
//! (`record/bpf/generated.bpf.h`). One native frame may contain several functions, if some were inlined.
//!
//! To add an interpreter, implement [`Interpreter`](interpreter::Interpreter), add a row to `RECOGNIZERS`, and a step
//! function to the BPF program.

mod function_parts;
pub mod functions;
mod hash;
mod hotspot;
pub mod interpreter;
pub mod loop_frame;
pub mod merge;
mod php;
pub mod processes;
mod python;
mod resumed_generators;
mod ruby;
pub mod sleeping;
mod thread_anchor;
mod v8;

use object::{Object as _, ObjectSection as _};

use self::interpreter::{InterpreterFile, Recognition};
use self::loop_frame::LoopFrame;
use super::objects::object::Elf;

/// Recognizes the interpreter in an ELF file. One function for each interpreter.
type Recognizer = fn(&InterpreterFile<'_>) -> Recognition;

/// All known interpreters.
const RECOGNIZERS: [Recognizer; 5] =
    [python::recognize, php::recognize, ruby::recognize, hotspot::recognize, v8::recognize];

/// A symbol that each of them exports. Files without one are not looked at.
const MARKERS: [&[u8]; 5] = [python::MARKER, php::MARKER, ruby::MARKER, hotspot::MARKER, v8::MARKER];

/// True if a file contains code that a runtime generated when it was built: the builtins of V8.
pub fn contains_generated_code(file: &object::File<'_>) -> bool {
    let names = file.section_by_name(".dynstr").and_then(|section| section.data().ok());
    names.is_some_and(|names| memchr::memmem::find(names, v8::MARKER).is_some())
}

/// Returns the frame of the interpreter's loop in a file, if compiled script functions run in it, in memory that processes may
/// share.
pub fn find_frame_of_compiled(elf: &Elf) -> Option<LoopFrame> {
    php::find_frame_of_compiled(&InterpreterFile::open(elf, &[php::MARKER])?)
}
