//! The way from code to its caller, by the state at the end of a path.

use addr2line::gimli;
use iced_x86::{FlowControl, Instruction, OpKind, Register};

use super::state::{self, BP, Place, SP, State, Value, to_dwarf};

/// The way to the caller of code, by the registers at the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::perf::unwind) struct CallerRule {
    /// The address of the return address.
    pub(in crate::perf::unwind) return_address: Value,
    /// The register that has the return address, if it was popped: its place is below the stack pointer then.
    pub(in crate::perf::unwind) popped: Option<gimli::Register>,
    /// The caller's frame pointer.
    pub(in crate::perf::unwind) frame_pointer: Value,
}

/// Returns the rule at an instruction that returns, or jumps to another function that does.
pub(super) fn rule_of_return(state: &State, instruction: &Instruction) -> Option<CallerRule> {
    let sp = state.get(SP);
    let target = match (instruction.flow_control(), instruction.op0_kind()) {
        (FlowControl::Return, _) => state.load(sp),
        // A jump of a procedure linkage table. Jump tables are found by other registers.
        (_, OpKind::Memory) if instruction.memory_base() == Register::RIP => state.load(sp),
        (_, OpKind::Register) => {
            to_dwarf(instruction.op0_register()).map_or(Value::Unknown, |target| state.get(target))
        }
        _ => Value::Unknown,
    };
    let return_address = match (target, sp) {
        // Code that has taken its stack pointer from its frame, such as an interpreter that goes on to the next
        // instruction, has a frame pointer.
        (Value::Unknown, _) if state.has_frame() && instruction.flow_control() == FlowControl::IndirectBranch => {
            let saved = Value::Word(Place { register: BP, offset: 0 }, 0);
            return Some(CallerRule { return_address: Value::Register(BP, 8), popped: None, frame_pointer: saved });
        }
        // The word was at the stack pointer, or was popped: it is no pointer to a function that is stored elsewhere.
        (Value::Word(place, 0), Value::Register(register, end))
            if place.register == register && place.offset <= end =>
        {
            Value::Register(register, place.offset)
        }
        (Value::Unknown, Value::Word(..)) if instruction.flow_control() == FlowControl::Return => sp,
        _ => return None,
    };
    Some(CallerRule { return_address, popped: None, frame_pointer: state.get(BP) })
}

/// Returns the rule at the end of a path from a function's entry, by the first register that still points into the
/// stack.
pub(super) fn rule_from_entry(state: &State) -> Option<CallerRule> {
    // The frame pointer is right where the stack pointer has moved by a number that differs between paths.
    let registers = [BP, SP].into_iter().chain(all_registers());
    let (register, moved) = registers
        .filter_map(|register| match state.get(register) {
            Value::Register(SP, moved) => Some((register, moved)),
            _ => None,
        })
        .next()?;
    let frame_pointer = match state.find_saved(BP) {
        _ if state.get(BP) == Value::Register(BP, 0) => Value::Register(BP, 0),
        Some(place) => Value::Word(Place { register, offset: place.offset.wrapping_sub(moved) }, 0),
        None => Value::Unknown,
    };
    let return_address = Value::Word(Place { register: SP, offset: 0 }, 0);
    let popped = match state.get(SP) {
        Value::Register(SP, 8) => all_registers().find(|register| state.get(*register) == return_address),
        _ => None,
    };
    Some(CallerRule { return_address: Value::Register(register, moved.wrapping_neg()), popped, frame_pointer })
}

fn all_registers() -> impl Iterator<Item = gimli::Register> {
    (0..state::REGISTERS as u16).map(gimli::Register)
}
