//! The rules by which the caller of a Go function is found.

use addr2line::gimli;
use iced_x86::Mnemonic;

use crate::perf::go::table::Function;
use crate::perf::objects::object::Elf;
use crate::perf::unwind::code_paths::{decode, to_dwarf};

/// The way to the caller of a Go function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::perf) enum GoRule {
    /// There is no rule.
    Unknown,
    /// The function has no caller.
    Root,
    /// The CFA is the stack pointer plus this number of bytes.
    StackPointer(u32),
    /// The same, but what looks like a return address is the address of an instruction.
    Callback(u32),
    /// The CFA is the frame pointer plus 16. It may be on another stack.
    FramePointer,
    /// The CFA is the goroutine's saved stack pointer plus this number of bytes.
    SavedStackPointer(u32),
    /// The caller is what the goroutine resumes.
    Resumed,
    /// The function has popped its return address into this register.
    Popped(gimli::Register),
}

/// An address, and the rule that holds from there on.
pub(in crate::perf) type RuleChange = (u64, GoRule);

/// Adds the rules that the table has for a function, and that there is none behind its last instruction.
pub(super) fn add_deltas(function: &Function<'_>, changes: &mut Vec<RuleChange>) {
    let mut end = function.start;
    for (range, delta) in function.stack_deltas() {
        changes.push((range.start, rule_of_delta(delta)));
        end = range.end;
    }
    changes.push((end, GoRule::Unknown));
}

/// Returns the rule of a function that has pushed `delta` bytes. Its return address is above them.
pub(super) fn rule_of_delta(delta: i32) -> GoRule {
    match u32::try_from(delta) {
        Ok(delta) if delta % 8 == 0 => GoRule::StackPointer(delta + 8),
        _ => GoRule::Unknown,
    }
}

/// Returns the rule at an address of a function whose code is in `elf`.
pub(super) fn rule_at(function: &Function<'_>, address: u64, elf: &Elf) -> GoRule {
    match function.stack_deltas().find_map(|(range, delta)| range.contains(&address).then_some((range, delta))) {
        Some((range, RETURN_ADDRESS_POPPED)) => {
            popped_register(elf, range.start).map_or(GoRule::Unknown, GoRule::Popped)
        }
        Some((_, delta)) => rule_of_delta(delta),
        None => GoRule::Unknown,
    }
}

/// The bytes that a function has pushed when it has popped its return address. `syscall.rawVforkSyscall` does: the new process runs on the
/// same stack.
const RETURN_ADDRESS_POPPED: i32 = -8;

/// Returns the register that the instruction before an address has popped.
fn popped_register(elf: &Elf, after: u64) -> Option<gimli::Register> {
    // One byte, or two for a register from r8 on: its last byte could be taken for a shorter one.
    [2, 1].into_iter().find_map(|size| {
        let pop = decode(elf.code_from(after.checked_sub(size)?), after - size)?;
        let is_pop = pop.mnemonic() == Mnemonic::Pop && pop.next_ip() == after;
        is_pop.then(|| to_dwarf(pop.op0_register())).flatten()
    })
}
