//! Unwinding of Go functions on x86-64, by the function table of their program.
//!
//! The table has, for each instruction, the number of bytes that its function has pushed. That is exact, except in
//! functions of the runtime that write the stack pointer: they switch between the stack of a goroutine and the stack of
//! the thread's scheduler (`g0`), on which the runtime and C code run. Their rules follow Go's own `traceback.go` and
//! `asm_amd64.s`:
//!
//! - `runtime.systemstack` and `runtime.asmcgocall` call a function on the other stack. Before they switch, they save
//!   the goroutine's stack pointer in its description, which is found by the thread's storage.
//! - `runtime.newstack` runs on the other stack while it copies the goroutine's stack to a larger one. Then it resumes
//!   what is saved in the goroutine's description.
//! - `runtime.mcall` leaves the goroutine to run another one, so it is a root. So is `runtime.morestack` if it preempts
//!   the goroutine instead.
//! - `runtime.clone` begins a thread, which loads its stack pointer: from there on there is no caller.
//! - `runtime.nanotime1` and the like call the vDSO on the other stack, and keep the frame pointer.
//!
//! The scheduler's stack ends at `runtime.mstart`, a goroutine's at `runtime.goexit`.

mod rule;
mod stack_switches;

use std::ops::Range;

pub(in crate::perf) use self::rule::{GoRule, RuleChange};
use self::rule::{add_deltas, rule_at};
pub(in crate::perf) use self::stack_switches::GoroutineOffsets;
use self::stack_switches::find_special_functions;
use super::arch::{Architecture, StepOutcome};
use super::cfi_stepper::ReadRegister;
use super::code::Code;
use super::stack::Stack;
use crate::perf::event::Address;
use crate::perf::go::locate::TableLocation;
use crate::perf::objects::object::{Bytes, Elf};

/// A frame pointer that is not known. No frame is there.
const UNKNOWN_FRAME_POINTER: u64 = 1;

/// The unwind information of the Go functions of an object.
#[derive(Debug)]
pub(in crate::perf) struct GoUnwindInfo {
    bytes: Bytes,
    location: TableLocation,
    /// The rules of functions for which the table has other ones, by the functions' first addresses.
    special: Vec<(u64, Vec<RuleChange>)>,
    /// `None` if the code that uses them was not understood.
    pub(in crate::perf) goroutine: Option<GoroutineOffsets>,
}

impl GoUnwindInfo {
    /// Reads the unwind information of an object. `None` if it is not a Go program for x86-64.
    pub(in crate::perf) fn load(elf: &Elf) -> Option<Self> {
        if elf.architecture() != object::Architecture::X86_64 {
            return None;
        }
        let location = TableLocation::find(elf.bytes())?;
        let file = object::File::parse(&**elf.bytes()).ok()?;
        let (special, goroutine) = find_special_functions(file, &location.open(elf.bytes())?);
        Some(Self { bytes: elf.bytes().clone(), location, special, goroutine })
    }

    /// Returns the rule of some code. `None` if it is not in a Go function.
    pub(super) fn find(&self, code: &Code<'_>) -> Option<GoRule> {
        let address = code.svma;
        let function = self.location.open(&self.bytes)?.find(address)?;
        if let Some(changes) = self.find_special(function.start) {
            let after = changes.partition_point(|(start, _)| *start <= address);
            return Some(after.checked_sub(1).map_or(GoRule::Unknown, |last| changes[last].1));
        }
        if function.is_top_frame() {
            return Some(GoRule::Root);
        }
        Some(rule_at(&function, address, code.elf))
    }

    /// Calls `add` with each function's addresses and the rules that hold from addresses on.
    pub(in crate::perf) fn for_each_function(&self, mut add: impl FnMut(Range<u64>, &[RuleChange])) {
        let Some(table) = self.location.open(&self.bytes) else { return };
        let mut changes = Vec::new();
        for function in table.functions() {
            let range = function.start..function.end;
            if let Some(changes) = self.find_special(function.start) {
                add(range, changes);
                continue;
            }
            changes.clear();
            if function.is_top_frame() {
                changes.push((function.start, GoRule::Root));
            } else {
                add_deltas(&function, &mut changes);
            }
            add(range, &changes);
        }
    }

    fn find_special(&self, start: u64) -> Option<&[RuleChange]> {
        let index = self.special.binary_search_by_key(&start, |(start, _)| *start).ok()?;
        Some(&self.special[index].1)
    }
}

/// Steps from a Go function to its caller, by `rule`.
///
/// The stack of a goroutine is not in the copy of another one, so what needs it fails.
pub(super) fn step<A: Architecture>(
    rule: GoRule,
    regs: &mut A::Regs,
    read_register: ReadRegister<'_>,
    stack: &mut Stack<'_>,
) -> StepOutcome {
    let sp = A::stack_pointer(regs);
    let caller = match rule {
        GoRule::Root => return StepOutcome::Root,
        GoRule::Unknown | GoRule::SavedStackPointer(_) | GoRule::Resumed => None,
        GoRule::StackPointer(offset) | GoRule::Callback(offset) => {
            sp.checked_add(offset.into()).and_then(|cfa| Some((stack.read(cfa - 8)?, cfa, UNKNOWN_FRAME_POINTER)))
        }
        GoRule::FramePointer => A::get(regs, A::FP).and_then(|fp| {
            let cfa = fp.checked_add(16)?;
            Some((stack.read(cfa - 8)?, cfa, stack.read(fp)?))
        }),
        GoRule::Popped(register) => read_register(register, stack).map(|ip| (ip, sp, UNKNOWN_FRAME_POINTER)),
    };
    let Some((ip, sp, fp)) = caller else {
        return if stack.has_passed_end() { StepOutcome::Unreadable } else { StepOutcome::Failed };
    };
    A::set(regs, ip, sp, fp);
    match ip {
        0 => StepOutcome::Root,
        _ => StepOutcome::Caller(Address { value: ip, in_kernel: false, exact: matches!(rule, GoRule::Callback(_)) }),
    }
}
