//! PHP 7.4 to 8.4, as a program or a library (`libphp`), without thread safety (ZTS).
//!
//! Frames are a chain of `zend_execute_data`, functions are `zend_function`s (`Zend/zend_compile.h` of PHP). Their fields
//! have the same places in all builds of a version.
//!
//! Functions that were compiled (`opcache.jit`) run in the frame of `execute_ex`, which jumps to them and to which they jump
//! back, if the engine was built with GCC, as its hybrid virtual machine. Other builds call compiled functions.

use std::ops::Range;
use std::sync::Arc;

use super::function_parts::find_parts;
use super::hash::{NO_TEXT, hash_text, mix};
use super::interpreter::{
    FIELDS, Function, Interpreter, InterpreterFile, Layout, Library, Memory, Recognition, ScriptFrame,
};
use super::loop_frame::LoopFrame;
use super::merge::NativeKind;
use super::resumed_generators::{RESUME, RUNS, find_generator_flags, find_resume_registers};
use super::sleeping::{MAX_FRAMES, SleepingThread, Step, WalkedScripts};
use super::thread_anchor::ThreadAnchor;
use crate::markers;

/// The number of PHP in the BPF program.
const KIND: u32 = 2;

/// The function that runs PHP functions, by which the file is found.
pub(super) const MARKER: &[u8] = b"execute_ex";

/// The global variables of the engine.
const GLOBALS: &[u8] = b"executor_globals";

/// The place of the current frame in them.
const CURRENT_FRAME: u64 = 488;

/// The function that returns the kind of the virtual machine, and its code for the hybrid one (`ZEND_VM_KIND_HYBRID`):
/// `mov eax, 4`.
const VM_KIND: &[u8] = b"zend_vm_kind";
const RETURNS_HYBRID: [u8; 5] = [0xb8, 4, 0, 0, 0];

/// Precedes the version in the file.
const BEFORE_VERSION: &[u8] = b"X-Powered-By: PHP/";

/// The places of `opcodes`, `last`, `filename` and `line_start` in a function, by version.
const TABLE: [(&[u8], [u32; 4]); 6] = [
    (b"7.4.", [64, 60, 136, 144]),
    (b"8.0.", [72, 68, 144, 152]),
    (b"8.1.", [72, 68, 144, 152]),
    (b"8.2.", [88, 80, 152, 160]),
    (b"8.3.", [80, 76, 144, 152]),
    (b"8.4.", [104, 96, 168, 176]),
];

/// The places of the name and the class in a function, of the name in a class, and of the length and the bytes in a string.
const NAME: u64 = 8;
const CLASS: u64 = 16;
const CLASS_NAME: u64 = 8;
const STRING_LENGTH: u64 = 16;
const STRING_DATA: u64 = 24;

/// The places of the frame, of the generator to which it delegates, and of its placeholder among the frames, in a generator.
const GENERATOR_FRAME: u64 = 56;
const GENERATOR_PARENT: u64 = 152;
const GENERATOR_PLACEHOLDER: u64 = 184;

/// The size of the placeholder, before the generator's flags.
const PLACEHOLDER_SIZE: u64 = 72;

/// The type of functions in C.
const INTERNAL_FUNCTION: u64 = 1;

/// The field with the size of the frame in which compiled functions run. The next one is the place of the frame pointer in it.
const LOOP_FRAME_SIZE: usize = 5;

/// The fields with the places of the first instruction and of their number, and the size of an instruction.
const OPCODES: usize = 1;
const OPCODE_COUNT: usize = 2;
const OPCODE_SIZE: u64 = 32;

/// The field with the place of the flags in a generator. The next ones are the distance of the function that resumes generators
/// from the anchor, its size, and what it has in registers. 0 if they are not known.
const GENERATOR_FLAGS: usize = 7;

/// Flags of frames that are the outermost of a loop, and of generators.
const CALL_TOP: u64 = 0x20000;
const CALL_GENERATOR: u64 = 0x100_0000;

/// The places of the generator and of the caller in a frame.
const GENERATOR_OF_FRAME: u64 = 16;
const CALLER: u64 = 48;

/// The longest name or path that is read.
const MAX_LENGTH: u64 = 1 << 16;

/// A PHP interpreter.
#[derive(Debug)]
struct Php {
    layout: Layout,
    loops: Vec<Range<u64>>,
    file: u64,
    first_line: u64,
}

/// Recognizes PHP in an ELF file.
pub(super) fn recognize(file: &InterpreterFile<'_>) -> Recognition {
    let Some(function) = file.symbol(MARKER) else { return Recognition::None };
    let Some(version) = find_version(file) else { return Recognition::None };
    let Some(globals) = file.symbol(GLOBALS) else {
        return Recognition::Unsupported("PHP with thread safety (ZTS)".to_owned());
    };
    let Some((_, places)) = TABLE.iter().find(|(known, _)| version.starts_with(known)) else {
        let version = String::from_utf8_lossy(version);
        return Recognition::Unsupported(format!("PHP {version} (7.4 to 8.4 are supported)"));
    };
    let [opcodes, count, path, first_line] = *places;
    let mut fields = [0; FIELDS];
    fields[..5].copy_from_slice(&[first_line + 4, opcodes, count, path, first_line]);
    if let Some(frame) = find_frame_of_compiled(file) {
        fields[LOOP_FRAME_SIZE..][..2].copy_from_slice(&[frame.size, frame.saved_bp.cast_unsigned()]);
    }
    if let Some(resume) = read_resume(file, globals.start + CURRENT_FRAME) {
        fields[GENERATOR_FLAGS..][..4].copy_from_slice(&resume);
    }
    let anchor = ThreadAnchor::MainThread(globals.start + CURRENT_FRAME);
    let layout = Layout { kind: KIND, anchor, fields };
    let loops = find_parts(file, function);
    Recognition::Found(Arc::new(Php { layout, loops, file: path.into(), first_line: first_line.into() }))
}

/// Returns the fields from `GENERATOR_FLAGS` on.
fn read_resume(file: &InterpreterFile<'_>, anchor: u64) -> Option<[u32; 4]> {
    let resume = file.symbol(RESUME)?;
    let size = resume.end - resume.start;
    let code = file.elf.code_from(resume.start);
    let code = code.get(..(size as usize).min(code.len()))?;
    let flags = find_generator_flags(code, (GENERATOR_PLACEHOLDER + PLACEHOLDER_SIZE) as u32);
    let distance = i32::try_from(resume.start.wrapping_sub(anchor).cast_signed()).ok()?;
    let registers = find_resume_registers(code, (GENERATOR_PLACEHOLDER + CALLER) as u32);
    Some([flags.unwrap_or(0), distance.cast_unsigned(), u32::try_from(size).ok()?, registers.unwrap_or(0)])
}

/// Returns the version in a file: up to 8 characters of it.
fn find_version<'a>(file: &InterpreterFile<'a>) -> Option<&'a [u8]> {
    let (_, data) = file.section(".rodata")?;
    let start = memchr::memmem::find(data, BEFORE_VERSION)? + BEFORE_VERSION.len();
    let version = &data[start..data.len().min(start + 8)];
    let length = version.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    Some(&version[..length])
}

/// Returns the frame in which compiled functions run. `None` if the file is not of PHP, or if they have frames of their own.
pub(super) fn find_frame_of_compiled(file: &InterpreterFile<'_>) -> Option<LoopFrame> {
    let function = file.symbol(MARKER)?;
    find_version(file)?;
    let kind = file.symbol(VM_KIND)?;
    let code = file.elf.code_from(kind.start);
    let code = code.get(..((kind.end - kind.start) as usize).min(code.len()))?;
    let is_hybrid = memchr::memmem::find(code, &RETURNS_HYBRID).is_some();
    is_hybrid.then(|| LoopFrame::find(file.elf.code_from(function.start)))?
}

impl Interpreter for Php {
    fn layout(&self, _: Library) -> Option<&Layout> {
        Some(&self.layout)
    }

    fn loops(&self) -> &[Range<u64>] {
        &self.loops
    }

    fn calls_compiled(&self, caller: NativeKind) -> bool {
        // Regular expressions are compiled, too, and called by other functions.
        matches!(caller, NativeKind::Loop | NativeKind::Compiled)
    }

    fn runs_compiled_in_loop(&self) -> bool {
        self.layout.fields[LOOP_FRAME_SIZE] != 0
    }

    fn unnamed_frame(&self) -> &'static [u8] {
        markers::PHP
    }

    fn native_file(&self) -> &'static [u8] {
        b"php"
    }

    fn hash_function(&self, memory: Memory, function: u64) -> Option<u64> {
        let FunctionParts { name, class, file, first_line } = self.read_parts(memory, function)?;
        let mut texts = [name, file, class].into_iter().map(|string| hash_string(memory, string));
        texts.try_fold(first_line.into(), |hash, text| Some(mix(hash, text?)))
    }

    fn read_function(&self, memory: Memory, function: u64) -> Option<Function> {
        let FunctionParts { name, class, file, first_line } = self.read_parts(memory, function)?;
        let [name, class, file] = [name, class, file].map(|string| read_string(memory, string));
        Some(Function { name: name?, class: class?, file: file?, first_line, lines: None })
    }

    fn walk_sleeping(&self, memory: Memory, state: u64, _: SleepingThread) -> Option<WalkedScripts> {
        let mut walk = SleepingWalk { php: self, memory, generators: Vec::new(), caller: 0, innermost: None };
        Some(WalkedScripts::walk(state, |frame| walk.step(frame)))
    }

    fn find_line(&self, _: &Function, instruction: i32) -> Option<u32> {
        u32::try_from(instruction).ok().filter(|line| *line > 0)
    }
}

/// The parts of a function: the addresses of strings, 0 for those that it does not have, and the first line.
struct FunctionParts {
    name: u64,
    class: u64,
    file: u64,
    first_line: u32,
}

impl Php {
    fn read_parts(&self, memory: Memory, function: u64) -> Option<FunctionParts> {
        let is_internal = memory.field(function, 0)? & 0xff == INTERNAL_FUNCTION;
        let (name, class) = (memory.field(function, NAME)?, memory.field(function, CLASS)?);
        Some(FunctionParts {
            name,
            class: if class == 0 { 0 } else { memory.field(class, CLASS_NAME)? },
            file: if is_internal { 0 } else { memory.field(function, self.file)? },
            first_line: if is_internal { 0 } else { memory.field(function, self.first_line)? as u32 },
        })
    }
}

impl Php {
    /// Reads a frame of a thread that sleeps. `None` for the placeholder of generators that delegate to others.
    fn read_frame(&self, memory: Memory, frame: u64) -> Option<Step> {
        let [instruction, code, flags, caller] = [0, 24, 40, CALLER].map(|offset| memory.field(frame, offset));
        let (instruction, code, flags, caller) = (instruction?, code.filter(|code| *code != 0)?, flags?, caller?);
        let is_internal = memory.u64(code)? & 0xff == INTERNAL_FUNCTION;
        let parts = self.read_parts(memory, code)?;
        // A fiber begins behind a function without a name. Its caller is on another stack.
        if is_internal && parts.name == 0 {
            return Some(Step::Hidden(0));
        }
        let line = if is_internal { 0 } else { self.read_line(memory, code, instruction)? };
        let frame = ScriptFrame {
            code,
            instruction: line.cast_signed(),
            first_line: parts.first_line,
            hash: self.hash_function(memory, code)?,
            is_outermost: flags & CALL_TOP != 0,
            native: 0,
        };
        Some(Step::Frame(frame, caller))
    }

    /// Returns the line of an instruction of a function; 0 if it is in another one.
    fn read_line(&self, memory: Memory, function: u64, instruction: u64) -> Option<u32> {
        let [opcodes, count] = [OPCODES, OPCODE_COUNT].map(|field| u64::from(self.layout.fields[field]));
        let (first, count) = (memory.field(function, opcodes)?, memory.field(function, count)? & 0xffff_ffff);
        let is_inside = instruction.wrapping_sub(first) < count * OPCODE_SIZE;
        if is_inside { memory.field(instruction, 24).map(|line| line as u32) } else { Some(0) }
    }
}

/// A walk over the frames of a thread that sleeps: see `step_php` in the BPF program.
struct SleepingWalk<'a> {
    php: &'a Php,
    memory: Memory,
    /// The generators that delegate to others and were not stepped to yet, from the outermost one on.
    generators: Vec<u64>,
    /// The frame that called the outermost of them.
    caller: u64,
    /// The generator of the frame before; 0 if it has none. `None` before the first frame.
    innermost: Option<u64>,
}

impl SleepingWalk<'_> {
    fn step(&mut self, frame: u64) -> Option<Step> {
        if self.memory.field(frame, 24)? == 0 {
            return self.enter_generators(frame);
        }
        let step = self.php.read_frame(self.memory, frame)?;
        let Step::Frame(function, caller) = step else { return Some(step) };
        let is_generator = self.memory.field(frame, 40)? & CALL_GENERATOR != 0;
        let generator = if is_generator { self.memory.field(frame, GENERATOR_OF_FRAME)? } else { 0 };
        let is_first = self.innermost.replace(generator).is_none();
        if self.generators.pop().is_some() {
            let function = ScriptFrame { is_outermost: self.generators.is_empty(), ..function };
            return Some(Step::Frame(function, self.next_generator()?));
        }
        // A generator is called by another frame, which it has while a loop runs it.
        let has_caller = caller != 0 && (!is_first || self.is_running(generator, frame).unwrap_or(false));
        Some(if generator == 0 || has_caller { step } else { Step::Cut(function) })
    }

    /// True if a loop runs the generator with this frame. Before and after that, the frame may still have the caller of the time
    /// before, or none.
    fn is_running(&self, generator: u64, frame: u64) -> Option<bool> {
        let place = self.php.layout.fields[GENERATOR_FLAGS];
        let own = self.memory.field(generator, GENERATOR_FRAME)?;
        // One that ends has no frame.
        let is_own = own == frame || own == 0;
        Some(place != 0 && is_own && self.memory.field(generator, place.into())? & RUNS != 0)
    }

    /// Keeps the generators for which a placeholder is among the frames: those that delegate to the one of the frame before.
    fn enter_generators(&mut self, placeholder: u64) -> Option<Step> {
        let mut generator = self.memory.field(placeholder, 32)?;
        if !self.generators.is_empty() || placeholder != generator.checked_add(GENERATOR_PLACEHOLDER)? {
            return None;
        }
        self.caller = self.memory.field(placeholder, CALLER).filter(|caller| *caller != 0)?;
        let innermost = self.innermost.unwrap_or(0);
        // The innermost one may be about to delegate, too: then it has a parent, which does not run yet.
        while generator != innermost {
            let parent = self.memory.field(generator, GENERATOR_PARENT)?;
            if parent == 0 {
                // One that ends has no frame. What runs meanwhile are destructors.
                let is_end = innermost == 0 || self.memory.field(generator, GENERATOR_FRAME)? == 0;
                if is_end { break } else { return None }
            }
            self.generators.push(generator);
            generator = parent;
            if self.generators.len() > MAX_FRAMES {
                return None;
            }
        }
        self.generators.last()?;
        Some(Step::SameLoop(self.next_generator()?))
    }

    /// Returns the frame of the innermost generator that was not stepped to yet, or that of the caller.
    fn next_generator(&self) -> Option<u64> {
        match self.generators.last() {
            Some(generator) => self.memory.field(*generator, GENERATOR_FRAME).filter(|frame| *frame != 0),
            None => Some(self.caller),
        }
    }
}

fn hash_string(memory: Memory, string: u64) -> Option<u64> {
    if string == 0 {
        return Some(NO_TEXT);
    }
    hash_text(memory, string.checked_add(STRING_DATA)?, memory.field(string, STRING_LENGTH)?)
}

fn read_string(memory: Memory, string: u64) -> Option<Vec<u8>> {
    if string == 0 {
        return Some(Vec::new());
    }
    let length = memory.field(string, STRING_LENGTH).filter(|length| *length <= MAX_LENGTH)?;
    memory.bytes(string.checked_add(STRING_DATA)?, length as usize)
}
