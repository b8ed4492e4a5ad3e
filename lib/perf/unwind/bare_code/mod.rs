//! Steps to the caller of code that has no unwind information: assembler, objects without `.eh_frame`, generated code.
//!
//! A word is taken for a return address if it points behind a call instruction, or into generated code. These ways find
//! that of a frame, in this order:
//!
//! 1. The paths of the code, see [`code_paths`](super::code_paths). A doubtful result counts if the frame pointer says
//!    the same, if the return address is behind a call of a function from whose entry the paths give the same, or if no
//!    word between the stack pointer and the return address is another.
//! 2. The frame pointer, if its return address is behind such a call, or if no word between the stack pointer and the
//!    frame that it points to is a return address: then no frame is skipped. The saved frame pointer must point further
//!    up.
//! 3. The lowest return address on the stack, if it is in the program's first function: then there is no other frame.
//!
//! Compiled script functions that run in the frame of the interpreter's loop have its return address (`compiled_in_loop`).
//!
//! A stack is truncated where none holds. The second is wrong only where the frame pointer is used for other data,
//! which happens to point to a pointer up the stack with an address of code behind a call beside it, in the function's
//! own frame.

mod compiled_in_loop;
mod findings;
mod read;
mod return_address;

pub(super) use self::findings::BareCode;
use self::findings::Rules;
pub(super) use self::return_address::is_return_address;
use self::return_address::{MAX_FRAME, find_call_target, has_return_address, return_address};
use super::Unwinder;
use super::arch::{Architecture, Registers, StepOutcome};
use super::code::Code;
use super::code_paths::{CallerRule, Place, Returns, SP, Value};
use super::native::Native;
use super::snapshot::ProcessSnapshot;
use super::stack::Stack;
use crate::perf::event::Address;
use crate::perf::objects::object::Object;

/// The registers that are followed.
type Regs = <Native as Architecture>::Regs;

/// The largest distance of a frame pointer to the one that was saved, in bytes.
const MAX_DISTANCE: u64 = 8 << 20;

/// Replaces a frame pointer that is not known. Nothing can be read there.
pub(super) const UNKNOWN_FRAME_POINTER: u64 = 1;

/// The largest distance of the program's first return address from the stack pointer of the function that it called.
const MAX_ROOT_FRAME: u64 = 4096;

/// An instruction without unwind information.
#[derive(Clone, Copy)]
struct BareInstruction<'a> {
    snapshot: ProcessSnapshot<'a>,
    address: Address,
    /// The code of an ELF file. `None` if the code was generated.
    code: Option<&'a Code<'a>>,
}

/// The callers that the paths of the code give.
#[derive(Default)]
struct Candidates {
    certain: Option<Caller>,
    doubtful: Option<(CallerRule, Caller)>,
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
        let rules = self.bare_code.find_rules(snapshot, address, code);
        let is_first = code.is_some_and(|code| code.is_first_of_thread(code.svma + u64::from(!address.exact)));
        if is_first || self.is_root(snapshot, address, regs, rules.returns) {
            return StepOutcome::Root;
        }
        let instruction = BareInstruction { snapshot, address, code };
        let Some(candidates) = self.find_candidates(instruction, rules, regs, registers, stack) else {
            return StepOutcome::Failed;
        };
        if candidates.certain.is_none()
            && let Some(caller) = self.find_caller_of_loop(snapshot, address, regs, stack)
        {
            return self.return_to(snapshot, caller, regs, stack);
        }
        if let Some(caller) = self.choose_caller(instruction, candidates, regs, registers, stack) {
            return self.return_to(snapshot, caller, regs, stack);
        }
        if has_frame {
            return self.step_with_framehop(None, address, regs, stack);
        }
        let is_frame =
            frame_place(regs).is_some_and(|place| self.is_called_from(instruction, place, regs, registers, stack));
        match self.step_by_frame_pointer(snapshot, is_frame, regs, stack) {
            StepOutcome::Failed => self.step_to_first_function(snapshot, regs, stack),
            outcome => outcome,
        }
    }

    /// Returns the callers that the rules give. `None` if two certain ones differ.
    fn find_candidates(
        &self,
        BareInstruction { snapshot, code, .. }: BareInstruction<'_>,
        Rules { from_entry, returns }: Rules,
        regs: &Regs,
        registers: &Registers<'_>,
        stack: &mut Stack<'_>,
    ) -> Option<Candidates> {
        let mut candidates = Candidates::default();
        for (rule, is_doubtful) in [(from_entry, false), (returns.rule, returns.is_doubtful)] {
            let Some(rule) = rule else { continue };
            let Some(caller) = self.evaluate(rule, snapshot, regs, registers, stack) else { continue };
            let keeps_stack_pointer = code.is_some() || self.keeps_stack_pointer(snapshot);
            match &mut candidates.certain {
                _ if is_doubtful || depends_on_stack_pointer(rule) && !keeps_stack_pointer => {
                    candidates.doubtful = Some((rule, caller));
                }
                None => candidates.certain = Some(caller),
                Some(other) if other.place != caller.place => return None,
                Some(other) => other.frame_pointer = other.frame_pointer.or(caller.frame_pointer),
            }
        }
        Some(candidates)
    }

    /// Returns the certain caller, or the doubtful one if something else confirms it.
    fn choose_caller(
        &mut self,
        instruction: BareInstruction<'_>,
        Candidates { certain, doubtful }: Candidates,
        regs: &Regs,
        registers: &Registers<'_>,
        stack: &mut Stack<'_>,
    ) -> Option<Caller> {
        if certain.is_some() {
            return certain;
        }
        let (rule, caller) = doubtful?;
        let words_below = Native::stack_pointer(regs)..caller.place;
        let is_confirmed = depends_on_stack_pointer(rule) && frame_place(regs) == Some(caller.place)
            || self.is_called_from(instruction, caller.place, regs, registers, stack)
            || has_return_address(instruction.snapshot, words_below, stack) == Some(false);
        is_confirmed.then_some(caller)
    }

    /// True if the return address at `place` is behind a call of a function from whose entry the paths of the code lead
    /// to the same place.
    fn is_called_from(
        &mut self,
        BareInstruction { snapshot, address, code }: BareInstruction<'_>,
        place: u64,
        regs: &Regs,
        registers: &Registers<'_>,
        stack: &mut Stack<'_>,
    ) -> bool {
        let called = stack.read(place).and_then(|word| find_call_target(snapshot, word));
        let rule = called.and_then(|entry| self.bare_code.find_rule_from_entry(snapshot, address, code, entry));
        let caller = rule.and_then(|rule| self.evaluate(rule, snapshot, regs, registers, stack));
        caller.is_some_and(|caller| caller.place == place)
    }

    /// True for code that has no caller although it calls: that of a thread which exits at its end, with a frame
    /// pointer of 0, and that of a stack which a program made itself, whose address is behind no call.
    fn is_root(&mut self, snapshot: ProcessSnapshot<'_>, address: Address, regs: &Regs, returns: Returns) -> bool {
        if address.exact || returns.rule.is_some() {
            return false;
        }
        if returns.exits && Native::get(regs, Native::FP) == Some(0) {
            return true;
        }
        let is_made = !is_return_address(snapshot, address.value);
        // Nothing called there: the program has written the address of the code itself, perhaps that of a function.
        if let Some(frame) = self.frames.last_mut().filter(|_| is_made) {
            frame.address.exact = true;
        }
        is_made
    }

    /// True if the last frame's callee keeps to the C calling convention, by which it leaves the stack pointer as it
    /// was. Generated functions may remove their arguments.
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
        let return_address = self.evaluate_value(rule.return_address, snapshot, regs, registers, stack)?;
        let frame_pointer = self.evaluate_value(rule.frame_pointer, snapshot, regs, registers, stack);
        let popped = match rule.popped {
            Some(register) => Some(self.read_register(snapshot, register, registers, stack)?),
            None => None,
        };
        Some(Caller { place: return_address, popped, frame_pointer })
    }

    /// Returns a value at the last frame. `None` if it is not known.
    fn evaluate_value(
        &self,
        value: Value,
        snapshot: ProcessSnapshot<'_>,
        regs: &Regs,
        registers: &Registers<'_>,
        stack: &mut Stack<'_>,
    ) -> Option<u64> {
        let (Value::Register(register, offset) | Value::Word(Place { register, offset }, _)) = value else {
            return None;
        };
        let base = match Native::get(regs, register) {
            Some(base) => base,
            None => self.read_register(snapshot, register, registers, stack)?,
        };
        let address = base.wrapping_add_signed(offset);
        match value {
            Value::Word(_, number) => Some(stack.read(address)?.wrapping_add_signed(number)),
            _ => Some(address),
        }
    }

    /// Steps to a caller.
    fn return_to(
        &mut self,
        snapshot: ProcessSnapshot<'_>,
        Caller { place, popped, frame_pointer }: Caller,
        regs: &mut Regs,
        stack: &mut Stack<'_>,
    ) -> StepOutcome {
        let (Some(caller), Some(sp)) = (popped.or_else(|| stack.read(place)), place.checked_add(8)) else {
            return if stack.has_passed_end() { StepOutcome::Unreadable } else { StepOutcome::Failed };
        };
        if place < Native::stack_pointer(regs) && popped.is_none() {
            return StepOutcome::Failed;
        }
        if caller == 0 && self.frames.len() > 1 {
            return StepOutcome::Root;
        }
        if !is_return_address(snapshot, caller) {
            return StepOutcome::Failed;
        }
        Native::set(regs, caller, sp, frame_pointer.unwrap_or(UNKNOWN_FRAME_POINTER));
        StepOutcome::Caller(return_address(caller))
    }

    /// Steps to the caller by the frame pointer, unless a return address lies below the frame that it points to. Frames
    /// that are known to be their function's own (`is_frame`) need no such search.
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
                self.return_to(snapshot, Caller { place, popped: None, frame_pointer: Some(saved) }, regs, stack)
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
            if is_return_address(snapshot, word) {
                let mapping = snapshot.find_mapping(return_address(word));
                let code =
                    mapping.and_then(|mapping| Code::find(mapping, return_address(word).lookup(), snapshot.objects));
                return match code.is_some_and(|code| code.is_entry_point()) {
                    true => self.return_to(snapshot, Caller { place, popped: None, frame_pointer: None }, regs, stack),
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
    /// The return address, if a register has it.
    popped: Option<u64>,
    frame_pointer: Option<u64>,
}

/// Returns the place of the return address of a function with a frame pointer.
fn frame_place(regs: &Regs) -> Option<u64> {
    Native::get(regs, Native::FP)?.checked_add(8)
}

/// True if a rule starts from the stack pointer.
fn depends_on_stack_pointer(rule: CallerRule) -> bool {
    matches!(rule.return_address, Value::Register(SP, _) | Value::Word(Place { register: SP, .. }, _))
}
