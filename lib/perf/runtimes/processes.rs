//! The interpreters of a recording: which process runs which, where it is, and what its functions are called.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::functions::Functions;
use super::interpreter::{
    CACHED, FIELDS, Interpreter, InterpreterFile, Library, Memory, Recognition, ScriptFrame, SentName,
};
use super::merge::NativeKind;
use super::python::TaskOffsets;
use super::thread_anchor::ThreadAnchor;
use super::{MARKERS, RECOGNIZERS};
use crate::perf::location::Location;
use crate::perf::mappings::Mapping;
use crate::perf::objects::object::{Elf, Object, ObjectId};
use crate::perf::objects::registry::{Objects, SCRIPT};

/// `struct interpreter` of the BPF program, in numbers of 4 bytes.
pub type InterpreterWords = [u32; 6 + FIELDS + 2 * CACHED];

/// The description of a process for the BPF program.
#[derive(Debug)]
pub struct InterpreterDescription {
    /// What the program gets.
    pub words: InterpreterWords,
    /// True if script functions are code that the interpreter generates.
    pub generates_code: bool,
}

/// The kinds of anchors in the BPF program.
const IN_THREAD_DATA: u32 = 1;
const IN_THREAD_STORAGE: u32 = 2;
const IN_MAIN_THREAD: u32 = 3;
const IN_MODULE_STORAGE: u32 = 4;
const IN_LIBRARY: u32 = 5;

/// The interpreters of a recording.
#[derive(Debug, Default)]
pub struct Interpreters {
    /// The interpreter of each object that was looked at.
    by_object: FxHashMap<ObjectId, Option<Arc<dyn Interpreter>>>,
    /// The names of interpreters that are not supported.
    unsupported: BTreeSet<String>,
    /// The places of tasks in each object that was looked at.
    tasks: FxHashMap<ObjectId, Option<TaskOffsets>>,
    /// The names of interpreters whose tasks cannot be told.
    without_tasks: BTreeSet<String>,
    functions: Functions,
}

/// An interpreter of a process.
#[derive(Clone, Debug)]
pub struct ProcessInterpreter {
    mapping: Mapping,
    pub(super) interpreter: Arc<dyn Interpreter>,
}

impl Interpreters {
    /// The interpreters that were met and cannot be walked, in words.
    pub fn unsupported(&self) -> impl Iterator<Item = &str> {
        self.unsupported.iter().map(String::as_str)
    }

    /// The interpreters that were met and do not tell which task a thread runs, in words.
    pub fn without_tasks(&self) -> impl Iterator<Item = &str> {
        self.without_tasks.iter().map(String::as_str)
    }

    /// Returns what only says which interpreters are not supported.
    pub fn to_report(&self) -> Self {
        let (unsupported, without_tasks) = (self.unsupported.clone(), self.without_tasks.clone());
        Self { unsupported, without_tasks, ..Self::default() }
    }

    /// Remembers a name that the BPF program sent.
    pub fn add_sent_name(&mut self, frame: ScriptFrame, sent: SentName<'_>) {
        self.functions.add_sent_name(frame, sent);
    }

    /// Forgets an object, whose number may be given to another.
    pub fn forget(&mut self, object: ObjectId) {
        self.by_object.remove(&object);
        self.tasks.remove(&object);
    }

    /// Forgets the numbers of frames: the next ones are of other [`ScriptFrames`](super::functions::ScriptFrames).
    pub fn forget_frames(&mut self) {
        self.functions.forget_frames();
    }

    /// Returns the description of a process with these mappings for the BPF program, `with_tasks` if the tasks of threads are
    /// wanted. `None` if it runs no interpreter that is known.
    pub fn describe(
        &mut self,
        mappings: &[Mapping],
        objects: &Objects,
        memory: Memory,
        with_tasks: bool,
    ) -> Option<InterpreterDescription> {
        let found = self.find(mappings.iter().copied(), objects)?;
        let library = found.library(objects, memory)?;
        let mut layout = found.interpreter.layout(library)?.clone();
        if with_tasks {
            match found.interpreter.knows_tasks() {
                Ok(()) => found.interpreter.add_tasks(&mut layout, self.find_tasks(mappings, objects)),
                Err(version) => drop(self.without_tasks.insert(version)),
            }
        }

        let (kind, anchor) = match layout.anchor {
            ThreadAnchor::ThreadData(key) => (IN_THREAD_DATA, library.loaded(key)),
            ThreadAnchor::ThreadStorage(offset) => (IN_THREAD_STORAGE, offset.cast_unsigned()),
            ThreadAnchor::ModuleStorage(index) => (IN_MODULE_STORAGE, library.loaded(index)),
            ThreadAnchor::MainThread(state) => (IN_MAIN_THREAD, library.loaded(state)),
            ThreadAnchor::Library(variable) => (IN_LIBRARY, library.loaded(variable)),
        };
        let is_musl = mappings.iter().any(|mapping| objects.get(mapping.object).is_musl());
        let mut words: InterpreterWords = [0; 6 + FIELDS + 2 * CACHED];
        words[..6].copy_from_slice(&[layout.kind, kind, anchor as u32, (anchor >> 32) as u32, is_musl.into(), 0]);
        words[6..6 + FIELDS].copy_from_slice(&layout.fields);
        Some(InterpreterDescription { words, generates_code: found.generates_code() })
    }

    /// True if the module that makes tasks is in one of these mappings.
    pub fn have_tasks(&mut self, mappings: &[Mapping], objects: &Objects) -> bool {
        self.find_tasks(mappings, objects).is_some()
    }

    /// Returns the places of tasks, from the file that contains the module which makes them.
    fn find_tasks(&mut self, mappings: &[Mapping], objects: &Objects) -> Option<TaskOffsets> {
        mappings.iter().find_map(|mapping| {
            *self.tasks.entry(mapping.object).or_insert_with(|| match objects.get(mapping.object) {
                Object::Elf(elf) => TaskOffsets::find(elf),
                _ => None,
            })
        })
    }

    /// Returns the interpreter of a process with these mappings. If there are several, the first one counts.
    pub fn find(
        &mut self,
        mut mappings: impl Iterator<Item = Mapping>,
        objects: &Objects,
    ) -> Option<ProcessInterpreter> {
        mappings.find_map(|mapping| {
            let object = mapping.object;
            let interpreter = self.by_object.entry(object).or_insert_with(|| match objects.get(object) {
                Object::Elf(elf) => recognize(elf, &mut self.unsupported),
                _ => None,
            });
            Some(ProcessInterpreter { mapping, interpreter: interpreter.clone()? })
        })
    }

    /// Returns the location of a script frame. Reads the function's name if it is new.
    pub fn locate(
        &mut self,
        frame: ScriptFrame,
        of: &ProcessInterpreter,
        memory: Memory,
        with_lines: bool,
        objects: &mut Objects,
    ) -> Location {
        let names = &mut objects.script_frames;
        let number = self.functions.find_frame(frame, &*of.interpreter, memory, with_lines, names);
        Location { object: SCRIPT, address: number.into(), ip: 0, loaded_at: 0 }
    }

    /// Returns the locations of a frame of generated code, innermost first: those of inlined functions, and that of the
    /// function. Reads the functions if they are new.
    pub fn locate_generated(
        &mut self,
        frame: ScriptFrame,
        of: &ProcessInterpreter,
        memory: Memory,
        with_lines: bool,
        objects: &mut Objects,
    ) -> Vec<Location> {
        let mut names = std::mem::take(&mut objects.script_frames);
        let numbers = of
            .library(objects, memory)
            .map(|library| self.functions.find_generated(frame, &*of.interpreter, library, with_lines, &mut names));
        objects.script_frames = names;
        let numbers = numbers.as_deref().unwrap_or_default();
        numbers
            .iter()
            .map(|number| Location { object: SCRIPT, address: (*number).into(), ip: 0, loaded_at: 0 })
            .collect()
    }
}

impl ProcessInterpreter {
    /// True if script frames are frames of the native stack.
    pub fn generates_code(&self) -> bool {
        self.interpreter.generates_code()
    }

    /// True if the outermost frames of loops tell which native frames the loops are.
    pub fn places_loops(&self) -> bool {
        self.interpreter.places_loops()
    }

    /// True if the interpreter knows no tasks at all.
    pub fn has_no_tasks(&self) -> bool {
        !self.interpreter.has_tasks()
    }

    /// Returns the name of a task that the BPF program sent. `None` if it cannot be read.
    pub fn read_task_name(&self, sent: &[u8]) -> Option<Vec<u8>> {
        self.interpreter.read_task_name(sent)
    }

    /// True if generated code that a native frame of this kind calls is a compiled script function.
    pub fn calls_compiled(&self, caller: NativeKind) -> bool {
        self.interpreter.calls_compiled(caller)
    }

    /// True if compiled script functions run in the frame of the loop, in memory that processes may share.
    pub fn runs_compiled_in_loop(&self) -> bool {
        self.interpreter.runs_compiled_in_loop()
    }

    /// Returns the file of the interpreter in the process.
    pub(super) fn library<'a>(&self, objects: &'a Objects, memory: Memory) -> Option<Library<'a>> {
        let Mapping { start, end, offset, object, .. } = self.mapping;
        let Object::Elf(elf) = objects.get(object) else { return None };
        let bias = elf.bias_of_mapping(start, offset, end - start)?;
        Some(Library { elf, bias, memory })
    }

    /// Returns the part of a native frame in the interpreter, from what is mapped at its address.
    pub fn kind_of(&self, address: u64, mapping: Option<Mapping>, objects: &Objects) -> NativeKind {
        let Some(mapping) = mapping.filter(|mapping| mapping.object == self.mapping.object) else {
            return NativeKind::Other;
        };
        let Object::Elf(elf) = objects.get(mapping.object) else { return NativeKind::Other };
        let address = elf.address_of_offset((address - mapping.start).wrapping_add(mapping.offset));
        let is_in =
            |ranges: &[Range<u64>]| address.is_some_and(|address| ranges.iter().any(|range| range.contains(&address)));
        match (is_in(self.interpreter.loops()), is_in(self.interpreter.entries())) {
            (true, _) => NativeKind::Loop,
            (false, true) => NativeKind::Entry,
            (false, false) => NativeKind::Interpreter,
        }
    }
}

/// Returns the interpreter in a file; notes why, if there is one that cannot be walked.
fn recognize(elf: &Elf, unsupported: &mut BTreeSet<String>) -> Option<Arc<dyn Interpreter>> {
    let file = InterpreterFile::open(elf, &MARKERS)?;
    RECOGNIZERS.iter().find_map(|recognize| match recognize(&file) {
        Recognition::None => None,
        Recognition::Unsupported(reason) => {
            unsupported.insert(reason);
            None
        }
        Recognition::Found(interpreter) => Some(interpreter),
    })
}
