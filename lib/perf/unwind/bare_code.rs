//! Steps to the caller of code that has no unwind information: assembler, objects without `.eh_frame`, generated code.
//!
//! A word is taken for a return address if it points behind a call instruction, or into generated code. These ways find
//! that of a frame, in this order:
//!
//! 1. The paths of the code, see [`code_paths`](super::code_paths). A doubtful result counts if the frame pointer says the
//!    same, if the return address is behind a call of a function from whose entry the paths give the same, or if no word
//!    between the stack pointer and the return address is another.
//! 2. The frame pointer, if its return address is behind such a call, or if no word between the stack pointer and the
//!    frame that it points to is a return address: then no frame is skipped. The saved frame pointer must point further up.
//! 3. The lowest return address on the stack, if it is in the program's first function: then there is no other frame.
//!
//! A stack is truncated where none holds. The second is wrong only where the frame pointer is used for other data, which
//! happens to point to a pointer up the stack with an address of code behind a call beside it, in the function's own frame.

use std::ops::Range;

use object::{Object as _, ObjectSymbol as _, SymbolKind};
use rustc_hash::FxHashMap;

use super::Unwinder;
use super::arch::{Architecture, Registers, StepOutcome};
use super::code::Code;
use super::code_paths::{
    CallerRule, MAX_INSTRUCTION, Paths, Place, ReadInstructions, Returns, SP, Value, direct_call_target, ends_with_call,
};
use super::native::Native;
use super::snapshot::ProcessSnapshot;
use super::stack::Stack;
use crate::perf::event::Address;
use crate::perf::objects::object::{Elf, Object, ObjectId};
use crate::perf::process::Mapping;

/// The registers that are followed.
type Regs = <Native as Architecture>::Regs;

/// Findings about code without unwind information.
#[derive(Debug, Default)]
pub(super) struct BareCode {
    /// The functions of objects, by address.
    functions: FxHashMap<ObjectId, Vec<Range<u64>>>,
    /// Findings about the code of objects.
    objects: Findings,
    /// Findings about generated code, since a time.
    generated: Findings,
    generated_since: u64,
    /// Tells by process ID if all code that a process generates keeps frame pointers.
    frame_pointers: FxHashMap<u32, FramePointers>,
    /// Number of instructions that may still be followed for the current stack.
    budget: usize,
}

/// Tells if all code that a process generates keeps frame pointers.
#[derive(Clone, Copy, Debug)]
struct FramePointers {
    /// The time of the sample for which the process was read.
    since: u64,
    are_kept: bool,
}

/// The number of an object, or the ID of the process that has generated code.
type Owner = u32;

/// Findings about code, by its owner and address.
#[derive(Debug, Default)]
struct Findings {
    rules: FxHashMap<(Owner, u64), Rules>,
    /// By entry and address.
    rules_from_entry: FxHashMap<(Owner, u64, u64), Option<CallerRule>>,
}

/// The findings of the paths of code about its caller.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    from_entry: Option<CallerRule>,
    returns: Returns,
}

/// For so many nanoseconds, generated code is not read again.
///
/// Compilers replace code seldom, and reading it costs a system call for each frame.
const MAX_AGE: u64 = 1_000_000_000;

/// Maximum number of addresses that are remembered.
const MAX_ADDRESSES: usize = 1 << 18;

/// Maximum number of instructions that are followed for one stack, so that no program stops the recorder with code made
/// for it. On average 30 are followed for an address, once.
const MAX_INSTRUCTIONS_PER_STACK: usize = 1_000_000;

/// The largest frame of generated code that is searched for other return addresses, in bytes.
const MAX_FRAME: u64 = 1 << 16;

/// The largest distance of a frame pointer to the one that was saved, in bytes.
const MAX_DISTANCE: u64 = 8 << 20;

/// Stands for a frame pointer that is not known. Nothing can be read there.
const UNKNOWN_FRAME_POINTER: u64 = 1;

/// The largest distance of an address from its function's entry, if that is known from a call only, in bytes.
const MAX_FUNCTION: u64 = 1 << 16;

/// The largest distance of the program's first return address from the stack pointer of the function that it called.
const MAX_ROOT_FRAME: u64 = 4096;

/// The longest call instruction, in bytes.
const MAX_CALL: usize = 8;

impl BareCode {
    /// Forgets an object, so that its number can be given to another.
    pub(super) fn forget(&mut self, object: ObjectId) {
        self.functions.remove(&object);
        self.objects.rules.retain(|(owner, _), _| *owner != object.0);
        self.objects.rules_from_entry.retain(|(owner, ..), _| *owner != object.0);
    }

    /// Prepares for the next stack.
    pub(super) fn start_stack(&mut self) {
        self.budget = MAX_INSTRUCTIONS_PER_STACK;
    }

    /// Forgets what is too old, or too much.
    fn expire(&mut self, time: u64) {
        if time.abs_diff(self.generated_since) > MAX_AGE || self.generated.len() > MAX_ADDRESSES {
            self.generated = Findings::default();
            self.generated_since = time;
        }
        if self.objects.len() > MAX_ADDRESSES {
            self.objects = Findings::default();
        }
    }

    /// True if all code that a process generates keeps frame pointers. That is so until it runs another program.
    fn keeps_frame_pointers(&mut self, snapshot: ProcessSnapshot<'_>) -> bool {
        let known = self.frame_pointers.get(&snapshot.pid);
        let valid = known.filter(|known| !snapshot.processes.has_execed_since(snapshot.pid, known.since));
        if let Some(valid) = valid {
            return valid.are_kept;
        }
        let read = FramePointers { since: snapshot.time, are_kept: snapshot.keeps_frame_pointers() };
        self.frame_pointers.insert(snapshot.pid, read);
        read.are_kept
    }

    /// Returns the rules at an address of an ELF file, or of generated code without `code`.
    fn find_rules(&mut self, snapshot: ProcessSnapshot<'_>, address: Address, code: Option<&Code<'_>>) -> Rules {
        let Some(code) = code else {
            return *self.generated.rules.entry((snapshot.pid, address.value)).or_insert_with(|| {
                let returns =
                    Paths::new(&mut ProcessCode::new(snapshot), &mut self.budget).follow_to_return(None, address.value);
                Rules { from_entry: None, returns }
            });
        };
        let svma = ip_in_file(code, address);
        let functions = self.functions.entry(code.object).or_insert_with(|| read_functions(code.elf));
        *self.objects.rules.entry((code.object.0, svma)).or_insert_with(|| {
            let mut source = FileCode { elf: code.elf, functions };
            let function = source.find_function(code.svma);
            let mut paths = Paths::new(&mut source, &mut self.budget);
            let from_entry = function.clone().and_then(|function| paths.follow_from_entry(function, svma));
            Rules { from_entry, returns: paths.follow_to_return(function, svma) }
        })
    }

    /// Returns the rule at an address by the paths from the entry of a function that was called.
    fn find_rule_from_entry(
        &mut self,
        snapshot: ProcessSnapshot<'_>,
        address: Address,
        code: Option<&Code<'_>>,
        entry: u64,
    ) -> Option<CallerRule> {
        let distance = address.value.checked_sub(entry).filter(|distance| *distance < MAX_FUNCTION)?;
        let Some(code) = code else {
            return *self.generated.rules_from_entry.entry((snapshot.pid, entry, address.value)).or_insert_with(|| {
                Paths::new(&mut ProcessCode::new(snapshot), &mut self.budget)
                    .follow_from_entry(entry..u64::MAX, address.value)
            });
        };
        let svma = ip_in_file(code, address);
        let entry = svma.checked_sub(distance)?;
        let functions = self.functions.get(&code.object).map_or(&[][..], |functions| functions);
        *self.objects.rules_from_entry.entry((code.object.0, entry, svma)).or_insert_with(|| {
            Paths::new(&mut FileCode { elf: code.elf, functions }, &mut self.budget)
                .follow_from_entry(entry..u64::MAX, svma)
        })
    }

    /// True if a word may be a return address: behind a call instruction of an ELF file, or anywhere in generated code.
    /// Interpreters that are generated push addresses to which they return themselves.
    fn is_return_address(snapshot: ProcessSnapshot<'_>, word: u64) -> bool {
        let Some(mapping) = snapshot.find_mapping(return_address(word)) else { return false };
        let is_elf = matches!(snapshot.objects.get(mapping.object), Object::Elf(_));
        !is_elf || read_before(snapshot, word, mapping).is_some_and(|bytes| ends_with_call(&bytes))
    }
}

impl Findings {
    fn len(&self) -> usize {
        self.rules.len() + self.rules_from_entry.len()
    }
}

fn return_address(value: u64) -> Address {
    Address { value, in_kernel: false, exact: false }
}

/// Returns the instruction pointer as an address of the file. The address that was looked up is that of the call.
fn ip_in_file(code: &Code<'_>, address: Address) -> u64 {
    code.svma + u64::from(!address.exact)
}

/// Reads the code before an address of a mapping; `None` if it cannot be read.
fn read_before(snapshot: ProcessSnapshot<'_>, address: u64, mapping: Mapping) -> Option<[u8; MAX_CALL]> {
    let start = address.checked_sub(MAX_CALL as u64)?;
    let Object::Elf(elf) = snapshot.objects.get(mapping.object) else {
        let mut bytes = [0; MAX_CALL];
        return (snapshot.read_generated_code(start, &mut bytes) == MAX_CALL).then_some(bytes);
    };
    let svma = elf.address_of_offset(start.wrapping_sub(mapping.start).wrapping_add(mapping.offset))?;
    elf.code_from(svma).first_chunk().copied()
}

/// Returns the target of the direct call before a return address.
fn find_call_target(snapshot: ProcessSnapshot<'_>, word: u64) -> Option<u64> {
    let bytes = read_before(snapshot, word, snapshot.find_mapping(return_address(word))?)?;
    direct_call_target(&bytes, word)
}

impl Unwinder {
    /// Steps to the caller of code without unwind information: of an ELF file, or generated without `code`.
    pub(super) fn step_bare_code(
        &mut self,
        snapshot: ProcessSnapshot<'_>,
        address: Address,
        code: Option<&Code<'_>>,
        regs: &mut Regs,
        registers: &Registers<'_>,
        stack: &mut Stack<'_>,
    ) -> StepOutcome {
        let has_frame = code.is_none() && self.bare_code.keeps_frame_pointers(snapshot);
        if has_frame && !address.exact {
            return self.step_with_framehop(None, address, regs, stack);
        }
        self.bare_code.expire(snapshot.time);
        let Rules { from_entry, returns } = self.bare_code.find_rules(snapshot, address, code);
        if self.is_root(snapshot, address, regs, returns) {
            return StepOutcome::Root;
        }
        let (mut found, mut doubtful) = (None::<Caller>, None);
        for (rule, is_doubtful) in [(from_entry, false), (returns.rule, returns.is_doubtful)] {
            let Some(rule) = rule else { continue };
            let Some(caller) = self.evaluate(rule, snapshot, regs, registers, stack) else { continue };
            let keeps_stack_pointer = code.is_some() || self.keeps_stack_pointer(snapshot);
            match &mut found {
                _ if is_doubtful || depends_on_stack_pointer(rule) && !keeps_stack_pointer => {
                    doubtful = Some((rule, caller))
                }
                None => found = Some(caller),
                Some(other) if other.place != caller.place => return StepOutcome::Failed,
                Some(other) => other.frame_pointer = other.frame_pointer.or(caller.frame_pointer),
            }
        }
        let mut is_called_from = |place, stack: &mut Stack<'_>| {
            let called = stack.read(place).and_then(|word| find_call_target(snapshot, word));
            let rule = called.and_then(|entry| self.bare_code.find_rule_from_entry(snapshot, address, code, entry));
            let caller = rule.and_then(|rule| self.evaluate(rule, snapshot, regs, registers, stack));
            caller.is_some_and(|caller| caller.place == place)
        };
        let frame_place = Native::get(regs, Native::FP).and_then(|frame_pointer| frame_pointer.checked_add(8));
        if found.is_none()
            && let Some((rule, caller)) = doubtful
            && (depends_on_stack_pointer(rule) && frame_place == Some(caller.place)
                || is_called_from(caller.place, stack)
                || has_return_address(snapshot, Native::stack_pointer(regs)..caller.place, stack) == Some(false))
        {
            found = Some(caller);
        }
        if let Some(caller) = found {
            return self.return_to(snapshot, caller, regs, stack);
        }
        if has_frame {
            return self.step_with_framehop(None, address, regs, stack);
        }
        let is_frame = frame_place.is_some_and(|place| is_called_from(place, stack));
        match self.step_by_frame_pointer(snapshot, is_frame, regs, stack) {
            StepOutcome::Failed => self.step_to_first_function(snapshot, regs, stack),
            outcome => outcome,
        }
    }

    /// True for code that has no caller although it calls: that of a thread which exits at its end, with a frame pointer of
    /// 0, and that of a stack which a program made itself, whose address is behind no call.
    fn is_root(&mut self, snapshot: ProcessSnapshot<'_>, address: Address, regs: &Regs, returns: Returns) -> bool {
        let is_caller = !address.exact && returns.rule.is_none();
        let is_thread = returns.exits && Native::get(regs, Native::FP) == Some(0);
        is_caller && (is_thread || !BareCode::is_return_address(snapshot, address.value))
    }

    /// True if the last frame's callee keeps to the C calling convention, by which it leaves the stack pointer as it was.
    /// Generated functions may remove their arguments.
    fn keeps_stack_pointer(&self, snapshot: ProcessSnapshot<'_>) -> bool {
        let callee = self.frames.len().checked_sub(2).and_then(|index| self.frames[index].mapping);
        self.frames.len() == 1
            || callee.is_some_and(|mapping| matches!(snapshot.objects.get(mapping.object), Object::Elf(_)))
    }

    /// Applies a rule to the last frame.
    fn evaluate(
        &self,
        rule: CallerRule,
        snapshot: ProcessSnapshot<'_>,
        regs: &Regs,
        registers: &Registers<'_>,
        stack: &mut Stack<'_>,
    ) -> Option<Caller> {
        let mut evaluate = |value| {
            let (Value::Register(register, offset) | Value::Word(Place { register, offset }, _)) = value else {
                return None;
            };
            let read_other = |stack: &mut Stack<'_>| self.read_register(snapshot, register, registers, stack);
            let address = Native::get(regs, register).or_else(|| read_other(stack))?.wrapping_add_signed(offset);
            match value {
                Value::Word(_, number) => Some(stack.read(address)?.wrapping_add_signed(number)),
                _ => Some(address),
            }
        };
        Some(Caller { place: evaluate(rule.return_address)?, frame_pointer: evaluate(rule.frame_pointer) })
    }

    /// Steps to a caller.
    fn return_to(
        &mut self,
        snapshot: ProcessSnapshot<'_>,
        Caller { place, frame_pointer }: Caller,
        regs: &mut Regs,
        stack: &mut Stack<'_>,
    ) -> StepOutcome {
        let (Some(caller), Some(sp)) = (stack.read(place), place.checked_add(8)) else {
            return if stack.has_passed_end() { StepOutcome::Unreadable } else { StepOutcome::Failed };
        };
        if place < Native::stack_pointer(regs) {
            return StepOutcome::Failed;
        }
        if caller == 0 && self.frames.len() > 1 {
            return StepOutcome::Root;
        }
        if !BareCode::is_return_address(snapshot, caller) {
            return StepOutcome::Failed;
        }
        Native::set(regs, caller, sp, frame_pointer.unwrap_or(UNKNOWN_FRAME_POINTER));
        StepOutcome::Caller(return_address(caller))
    }

    /// Steps to the caller by the frame pointer, unless a return address lies below the frame that it points to. Frames that
    /// are known to be their function's own (`is_frame`) need no such search.
    fn step_by_frame_pointer(
        &mut self,
        snapshot: ProcessSnapshot<'_>,
        is_frame: bool,
        regs: &mut Regs,
        stack: &mut Stack<'_>,
    ) -> StepOutcome {
        let (sp, Some(bp)) = (Native::stack_pointer(regs), Native::get(regs, Native::FP)) else {
            return StepOutcome::Failed;
        };
        if bp % 8 != 0 || bp < sp || bp - sp > MAX_FRAME {
            return StepOutcome::Failed;
        }
        match has_return_address(snapshot, sp..bp, stack) {
            _ if is_frame => {}
            Some(false) => {}
            None if stack.has_passed_end() => return StepOutcome::Unreadable,
            _ => return StepOutcome::Failed,
        }
        let Some(place) = bp.checked_add(8) else { return StepOutcome::Failed };
        match stack.read(bp) {
            Some(saved) if saved > place && saved - bp <= MAX_DISTANCE && saved % 8 == 0 => {
                self.return_to(snapshot, Caller { place, frame_pointer: Some(saved) }, regs, stack)
            }
            Some(0) if stack.read(place) == Some(0) => StepOutcome::Root,
            None if stack.has_passed_end() => StepOutcome::Unreadable,
            _ => StepOutcome::Failed,
        }
    }

    /// Steps to the program's first function, if no other return address lies below the one in it.
    fn step_to_first_function(
        &mut self,
        snapshot: ProcessSnapshot<'_>,
        regs: &mut Regs,
        stack: &mut Stack<'_>,
    ) -> StepOutcome {
        let Some(sp) = Native::stack_pointer(regs).checked_next_multiple_of(8) else { return StepOutcome::Failed };
        for place in (sp..sp.saturating_add(MAX_ROOT_FRAME)).step_by(8) {
            let Some(word) = stack.read(place) else { break };
            if BareCode::is_return_address(snapshot, word) {
                let mapping = snapshot.find_mapping(return_address(word));
                let code =
                    mapping.and_then(|mapping| Code::find(mapping, return_address(word).lookup(), snapshot.objects));
                return match code.is_some_and(|code| code.is_entry_point()) {
                    true => self.return_to(snapshot, Caller { place, frame_pointer: None }, regs, stack),
                    false => StepOutcome::Failed,
                };
            }
        }
        StepOutcome::Failed
    }
}

/// The place of a frame's return address, and the caller's frame pointer.
#[derive(Clone, Copy, Debug)]
struct Caller {
    place: u64,
    frame_pointer: Option<u64>,
}

/// Returns true if a word in a range of the stack may be a return address; `None` if the range is too large, or not known.
fn has_return_address(snapshot: ProcessSnapshot<'_>, range: Range<u64>, stack: &mut Stack<'_>) -> Option<bool> {
    if range.end.checked_sub(range.start)? > MAX_FRAME {
        return None;
    }
    for address in (range.start.checked_next_multiple_of(8)?..range.end).step_by(8) {
        if BareCode::is_return_address(snapshot, stack.read(address)?) {
            return Some(true);
        }
    }
    Some(false)
}

fn depends_on_stack_pointer(rule: CallerRule) -> bool {
    matches!(rule.return_address, Value::Register(SP, _) | Value::Word(Place { register: SP, .. }, _))
}

/// The code of an ELF file. Addresses are those of the file.
struct FileCode<'a> {
    elf: &'a Elf,
    functions: &'a [Range<u64>],
}

impl ReadInstructions for FileCode<'_> {
    fn read(&mut self, address: u64) -> &[u8] {
        self.elf.code_from(address)
    }

    fn find_function(&mut self, address: u64) -> Option<Range<u64>> {
        let after = self.functions.partition_point(|function| function.start <= address);
        self.functions.get(after.checked_sub(1)?).filter(|function| address < function.end).cloned()
    }
}

/// Returns the ranges of the functions that an ELF file has symbols of, sorted.
fn read_functions(elf: &Elf) -> Vec<Range<u64>> {
    let Ok(file) = object::File::parse(&**elf.bytes()) else { return Vec::new() };
    let symbols = file.symbols().chain(file.dynamic_symbols());
    // Such a part is entered by jumps from the rest of its function.
    let is_part = |symbol: &object::Symbol<'_, '_>| symbol.name_bytes().is_ok_and(|name| name.ends_with(b".cold"));
    let functions =
        symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() > 0 && !is_part(symbol));
    let mut functions: Vec<(u64, u64)> = functions.map(|symbol| (symbol.address(), symbol.size())).collect();
    // Of several symbols at one address, the one with the largest size comes last.
    functions.sort_unstable();
    let next = functions[1.min(functions.len())..].iter().map(|next| next.0).chain([u64::MAX]);
    let ranges = functions.iter().zip(next).filter(|((start, _), next)| start < next);
    ranges
        .map(|((start, size), next)| *start..if *size == 0 { next } else { start.saturating_add(*size).min(next) })
        .collect()
}

/// Code that a process has generated.
struct ProcessCode<'a> {
    snapshot: ProcessSnapshot<'a>,
    start: u64,
    bytes: [u8; 256],
    length: usize,
}

impl<'a> ProcessCode<'a> {
    fn new(snapshot: ProcessSnapshot<'a>) -> Self {
        Self { snapshot, start: 0, bytes: [0; 256], length: 0 }
    }
}

impl ReadInstructions for ProcessCode<'_> {
    fn read(&mut self, address: u64) -> &[u8] {
        let offset = address.wrapping_sub(self.start);
        if offset.saturating_add(MAX_INSTRUCTION as u64) > self.length as u64 {
            self.length = self.snapshot.read_generated_code(address, &mut self.bytes);
            self.start = address;
        }
        &self.bytes[(address - self.start) as usize..self.length]
    }

    fn find_function(&mut self, _: u64) -> Option<Range<u64>> {
        None
    }
}
