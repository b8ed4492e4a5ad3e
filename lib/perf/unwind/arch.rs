//! What differs between CPU architectures.

use addr2line::gimli;

use super::Module;
use super::stack::Stack;
use crate::perf::event::Address;

/// A step up the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwound {
    /// To the caller.
    Caller(Address),
    /// There is no caller.
    Root,
    /// What would tell lies beyond the part of the stack that can be read.
    Unreadable,
    /// Nothing tells where the caller is.
    Lost,
}

/// A CPU architecture, as far as unwinding must know it.
pub trait Architecture {
    /// framehop's unwinder for it.
    type Unwinder: framehop::Unwinder<UnwindRegs = Self::Regs, Module = Module, Cache = Self::Cache> + Default;
    /// framehop's cache for it.
    type Cache: Default;
    /// The registers that are followed up the stack.
    type Regs;

    /// The registers wanted of the kernel, a bit each (`enum perf_event_..._regs` of the architecture).
    const REGISTERS: u64;
    /// The kernel's bits for the registers that bring a function's first arguments.
    const ARGUMENTS: [u32; 6];
    /// The stack pointer's number in DWARF.
    const SP: gimli::Register;
    /// The frame pointer's.
    const FP: gimli::Register;
    /// The return address's.
    const RA: gimli::Register;
    /// The length of the longest call instruction.
    const LONGEST_CALL: usize;

    /// Where the sample was taken, and the registers there.
    fn start(registers: &Registers<'_>) -> Option<(u64, Self::Regs)>;
    /// The stack pointer.
    fn stack_pointer(regs: &Self::Regs) -> u64;
    /// A register that is followed up the stack, by its number in DWARF.
    fn get(regs: &Self::Regs, register: gimli::Register) -> Option<u64>;
    /// Moves to the caller.
    fn set(regs: &mut Self::Regs, ip: u64, sp: u64, fp: u64);
    /// The kernel's bit for a register's number in DWARF.
    fn bit(register: gimli::Register) -> Option<u32>;
    /// Whether this code ends with a call.
    fn follows_call(code: &[u8]) -> bool;
    /// Steps over code that was generated, has no unwind information, keeps no frame pointer, and is known by its bytes.
    fn step_trampoline(address: Address, regs: &mut Self::Regs, stack: &mut Stack<'_>) -> Option<Unwound>;
}

/// The registers of a sample: those whose bits are set in a mask, in the order of the bits.
#[derive(Clone, Copy, Debug)]
pub struct Registers<'a> {
    mask: u64,
    values: &'a [u8],
}

impl<'a> Registers<'a> {
    /// Eight bytes a register.
    pub fn new(mask: u64, values: &'a [u8]) -> Self {
        Self { mask, values }
    }

    /// A register by its bit.
    pub fn get(&self, bit: u32) -> Option<u64> {
        if self.mask & (1 << bit) == 0 {
            return None;
        }
        let before = (self.mask & ((1 << bit) - 1)).count_ones() as usize;
        Some(u64::from_le_bytes(self.values.get(before * 8..before * 8 + 8)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::Registers;

    #[test]
    fn registers_stand_in_the_order_of_their_bits() {
        let bytes: Vec<u8> = [10u64, 20, 30].iter().flat_map(|value| value.to_le_bytes()).collect();
        let registers = Registers::new(1 << 6 | 1 << 7 | 1 << 16, &bytes);
        assert_eq!([6, 7, 16, 8].map(|bit| registers.get(bit)), [Some(10), Some(20), Some(30), None]);
        assert_eq!(Registers::new(1 << 6 | 1 << 7, &bytes[..8]).get(7), None);
    }
}
