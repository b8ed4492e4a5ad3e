//! The interface of interpreters to the recorder.

use std::ops::Range;
use std::sync::Arc;

use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _, RelocationFlags, RelocationTarget,
    SectionFlags,
};
use rustc_hash::FxHashMap;

use super::merge::NativeKind;
use super::python::TaskOffsets;
use super::sleeping::{SleepingThread, WalkedScripts};
use super::thread_anchor::ThreadAnchor;
use crate::perf::objects::object::Elf;

/// Number of fields of a layout, as in the BPF program.
pub const FIELDS: usize = 48;

/// Number of words of a description in which the BPF program keeps what it has found itself.
pub const CACHED: usize = 12;

/// The result of looking for an interpreter in an ELF file.
#[derive(Debug)]
pub enum Recognition {
    /// The file contains none.
    None,
    /// The file contains an interpreter that cannot be walked, for this reason.
    Unsupported(String),
    /// The file contains this interpreter.
    Found(Arc<dyn Interpreter>),
}

/// An interpreter in an ELF file.
pub trait Interpreter: std::fmt::Debug + Send + Sync {
    /// Returns the layout of its structures. `None` if it is not known before the interpreter has started.
    fn layout(&self, library: Library) -> Option<&Layout>;

    /// Returns the addresses of the functions that run script functions, in the address space of the file (SVMA).
    fn loops(&self) -> &[Range<u64>] {
        &[]
    }

    /// Returns the addresses of the functions that call a loop, or a compiled script function in its place.
    fn entries(&self) -> &[Range<u64>] {
        &[]
    }

    /// True if generated code that a native frame of this kind calls is a compiled script function, which keeps its script
    /// frame.
    fn calls_compiled(&self, _caller: NativeKind) -> bool {
        false
    }

    /// True if compiled script functions run in the frame of the loop, in memory that processes may share.
    fn runs_compiled_in_loop(&self) -> bool {
        false
    }

    /// True if script functions are code that it generates: then script frames are frames of the native stack.
    fn generates_code(&self) -> bool {
        false
    }

    /// Returns the functions of a frame of generated code, innermost first: those that were inlined, and the one that was
    /// called. `sent` is the name that the BPF program sent. `None` if they cannot be read.
    fn read_generated(
        &self,
        _library: Library,
        _frame: ScriptFrame,
        _sent: Option<&Function>,
        _with_lines: bool,
    ) -> Option<Vec<GeneratedFrame>> {
        None
    }

    /// True if the variables of a loop are in memory that tells which native frame it is.
    fn places_loops(&self) -> bool {
        false
    }

    /// Returns the frame of a script function whose name cannot be read.
    fn unnamed_frame(&self) -> &'static [u8];

    /// Returns the text in place of the file of a function that is written in C.
    fn native_file(&self) -> &'static [u8] {
        b""
    }

    /// Returns the hash of what is at the address of a frame's function, as the BPF program makes it. `None` if it cannot be
    /// read.
    fn hash_function(&self, _memory: Memory, _function: u64) -> Option<u64> {
        None
    }

    /// Reads the function at an address. `None` if it cannot be read.
    ///
    /// The process runs meanwhile, and may make another function there: the caller compares the hashes before and after.
    fn read_function(&self, _memory: Memory, _function: u64) -> Option<Function> {
        None
    }

    /// Returns the script frames of a thread that sleeps, from its state on. They are those that the BPF program would find.
    /// `None` if it is in no script function, or if they are not in memory of the interpreter.
    fn walk_sleeping(&self, _memory: Memory, _state: u64, _thread: SleepingThread) -> Option<WalkedScripts> {
        None
    }

    /// True if threads of the interpreter run tasks, such as those of asyncio.
    fn has_tasks(&self) -> bool {
        false
    }

    /// Returns whether the task that a thread runs can be told, if the interpreter has tasks.
    ///
    /// # Errors
    /// The interpreter and its version, if it cannot.
    fn knows_tasks(&self) -> Result<(), String> {
        Ok(())
    }

    /// Adds to a layout where the task of a thread is found. `tasks` is what the file of the module that makes tasks says;
    /// `None` if the process has not loaded it.
    fn add_tasks(&self, _layout: &mut Layout, _tasks: Option<TaskOffsets>) {}

    /// Returns the name of a task that the BPF program sent. `None` if it cannot be read.
    fn read_task_name(&self, _sent: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// Returns the line of an instruction of a function; `None` if it is not known.
    fn find_line(&self, _function: &Function, _instruction: i32) -> Option<u32> {
        None
    }
}

/// The layout of an interpreter's structures, by which the BPF program walks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of the interpreter in the BPF program.
    pub kind: u32,
    /// The place of a thread's state.
    pub anchor: ThreadAnchor,
    /// The offsets of fields, and other numbers, as the BPF program names them.
    pub fields: [u32; FIELDS],
}

/// A frame of a script function, as the BPF program sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptFrame {
    /// The address of the function's description.
    pub code: u64,
    /// The index of the instruction.
    pub instruction: i32,
    /// The first line of the function.
    pub first_line: u32,
    /// A hash of what makes up the function's name.
    pub hash: u64,
    /// True if the frame is the outermost of an interpreter loop.
    pub is_outermost: bool,
    /// The index of the native frame, innermost first, for code that the runtime generated. Of other code, where the loop is of
    /// which this is the outermost frame: see [`Self::place_of_loop`].
    pub native: u16,
}

/// The bit of a place from which on a loop is.
pub const FROM_NATIVE: u16 = 1 << 13;

/// A place that is not known.
pub const NO_NATIVE: u16 = (1 << 14) - 1;

/// The place of a loop of an interpreter in the native stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is the native frame with this index.
    At(usize),
    /// It is this one or further out: the BPF program walked no more.
    From(usize),
    /// It is not known.
    Unknown,
}

impl ScriptFrame {
    /// Returns the place of the loop of which this is the outermost frame, if the interpreter places its loops.
    pub fn place_of_loop(&self) -> Place {
        match self.native {
            _ if !self.is_outermost => Place::Unknown,
            NO_NATIVE.. => Place::Unknown,
            native if native & FROM_NATIVE != 0 => Place::From(usize::from(native & !FROM_NATIVE)),
            native => Place::At(usize::from(native)),
        }
    }
}

/// A frame of a function whose code the runtime generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedFrame {
    /// The name, with its line if that was asked for.
    pub name: Vec<u8>,
    /// True if the compiler inlined the function into its caller.
    pub is_inlined: bool,
}

impl GeneratedFrame {
    /// Returns the frames of code that contains no inlined function.
    pub(super) fn without_inlined(name: Vec<u8>) -> Vec<Self> {
        vec![Self { name, is_inlined: false }]
    }
}

/// The file of an interpreter in a process that runs.
#[derive(Clone, Copy, Debug)]
pub struct Library<'a> {
    /// The file that contains the interpreter.
    pub elf: &'a Elf,
    /// The distance from addresses of the file (SVMA) to those of the process.
    pub bias: u64,
    /// The memory of the process.
    pub memory: Memory,
}

impl Library<'_> {
    /// Returns the address in the process of an address of the file.
    pub fn loaded(&self, address: u64) -> u64 {
        self.bias.wrapping_add(address)
    }
}

/// The name of a script function, as the BPF program sends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentName<'a> {
    /// The name, or its end.
    pub name: &'a [u8],
    /// The path of the file, or its end. Empty for a function that is written in C.
    pub file: &'a [u8],
    /// The name of the class, or its end. Empty if there is none.
    pub class: &'a [u8],
    /// True if the start of the name is missing.
    pub is_name_cut: bool,
    /// True if the start of the path is missing.
    pub is_file_cut: bool,
    /// True if the start of the class is missing.
    pub is_class_cut: bool,
}

/// A script function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name. Empty for the code of a file outside of functions.
    pub name: Vec<u8>,
    /// The name of its class. Empty if there is none, or if the name contains it.
    pub class: Vec<u8>,
    /// The file that defines it. Empty if it is written in C.
    pub file: Vec<u8>,
    /// The first line.
    pub first_line: u32,
    /// The lines of instructions, in the format of the interpreter. `None` if they could not be read.
    pub lines: Option<Vec<u8>>,
}

/// The memory of a process that runs.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The process ID.
    pub pid: u32,
    /// Reads at an address of a process, and returns the number of bytes that were read.
    pub read: fn(u32, u64, &mut [u8]) -> usize,
}

impl Memory {
    /// Reads `length` bytes.
    pub fn bytes(self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        ((self.read)(self.pid, address, &mut bytes) == length).then_some(bytes)
    }

    /// Reads a number of 8 bytes.
    pub fn u64(self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        ((self.read)(self.pid, address, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
    }

    /// Reads a number of 8 bytes at an offset from the start of an object.
    pub fn field(self, object: u64, offset: u64) -> Option<u64> {
        self.u64(object.checked_add(offset)?)
    }
}

/// An ELF file that may contain an interpreter.
pub struct InterpreterFile<'a> {
    /// The file, parsed by our own reader.
    pub elf: &'a Elf,
    file: object::File<'a>,
    /// The exported symbols: their addresses and sizes.
    symbols: FxHashMap<&'a [u8], Range<u64>>,
}

impl<'a> InterpreterFile<'a> {
    /// Opens a file that exports one of the `markers`. `None` if it does not.
    pub(super) fn open(elf: &'a Elf, markers: &[&[u8]]) -> Option<Self> {
        let file = object::File::parse(&**elf.bytes()).ok()?;
        // Few files contain the names, and few symbols have to be read then.
        let names = file.section_by_name(".dynstr")?.data().ok()?;
        if !markers.iter().any(|marker| memchr::memmem::find(names, marker).is_some()) {
            return None;
        }
        let defined = file.dynamic_symbols().filter(object::ObjectSymbol::is_definition);
        let symbols = defined
            .filter_map(|symbol| {
                let (start, size) = (symbol.address(), symbol.size());
                Some((symbol.name_bytes().ok()?, start..start.checked_add(size)?))
            })
            .collect();
        Some(Self { elf, file, symbols })
    }

    /// Returns the address range of an exported symbol.
    pub fn symbol(&self, name: &[u8]) -> Option<Range<u64>> {
        self.symbols.get(name).cloned()
    }

    /// Returns the address and the content of a section.
    pub fn section(&self, name: &str) -> Option<(u64, &'a [u8])> {
        let section = self.file.section_by_name(name)?;
        Some((section.address(), section.data().ok()?))
    }

    /// Returns the content of the file from an address on, to the end of its section.
    pub fn data_from(&self, address: u64) -> Option<&'a [u8]> {
        let section = self
            .file
            .sections()
            .find(|section| (section.address()..section.address().saturating_add(section.size())).contains(&address))?;
        section.data().ok()?.get((address - section.address()) as usize..)
    }

    /// Returns the number of 4 bytes at an address of the file.
    pub fn u32_at(&self, address: u64) -> Option<u32> {
        Some(u32::from_le_bytes(*self.data_from(address)?.first_chunk()?))
    }

    /// True if an address of the file is in data that can be written to.
    pub fn is_writable(&self, address: u64) -> bool {
        self.file.sections().any(|section| {
            let is_inside = (section.address()..section.address().saturating_add(section.size())).contains(&address);
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return false };
            is_inside && sh_flags.contains(object::elf::SHF_WRITE)
        })
    }

    /// True if the dynamic linker writes a module ID (of thread-local storage) to an address of the file.
    pub fn is_module_number(&self, address: u64) -> bool {
        let expected = RelocationFlags::Elf { r_type: object::elf::R_X86_64_DTPMOD64 };
        let mut relocations = self.file.dynamic_relocations().into_iter().flatten();
        relocations.any(|(offset, relocation)| offset == address && relocation.flags() == expected)
    }

    /// Returns the address that the dynamic linker writes to an address of the file.
    pub fn relocated(&self, address: u64) -> Option<u64> {
        let (_, relocation) = self.file.dynamic_relocations()?.find(|(offset, _)| *offset == address)?;
        let addend = relocation.addend();
        match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = self.file.dynamic_symbol_table()?.symbol_by_index(index).ok()?;
                symbol.is_definition().then(|| symbol.address().wrapping_add_signed(addend))
            }
            _ => u64::try_from(addend).ok(),
        }
    }
}
