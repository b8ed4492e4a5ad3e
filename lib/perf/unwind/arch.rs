//! The properties of a CPU architecture on which unwinding depends.

use addr2line::gimli;

use super::module::Module;
use crate::perf::event::Address;

/// The outcome of a step from a frame to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepOutcome {
    /// The caller was found.
    Caller(Address),
    /// The frame is the outermost.
    Root,
    /// The caller is saved beyond the part of the stack that can be read.
    Unreadable,
    /// The frame has saved registers of another function over its own, for an exception's handler.
    Overwritten,
    /// There is no rule that finds the caller.
    Failed,
}

/// A CPU architecture.
pub(super) trait Architecture {
    /// framehop's unwinder for the architecture.
    type Unwinder: framehop::Unwinder<UnwindRegs = Self::Regs, Module = Module, Cache = Self::Cache> + Default;
    /// framehop's cache for the architecture.
    type Cache: Default;
    /// The registers that framehop follows up the stack.
    type Regs;

    /// The registers that samples must contain, as a mask for `perf_event_attr::sample_regs_user`.
    const REGISTERS: u64;
    /// The kernel's numbers of the registers in which a function gets its first arguments.
    const ARGUMENTS: &'static [u32];
    /// The DWARF number of the stack pointer.
    const SP: gimli::Register;
    /// The DWARF number of the frame pointer.
    const FP: gimli::Register;
    /// The DWARF number of the return address.
    const RA: gimli::Register;

    /// True if [`code_paths`](super::code_paths) decodes this architecture's instructions. If not, frame pointers are
    /// followed where there is no unwind information.
    const READS_CODE: bool;

    /// True if ELF files of an architecture contain code of this one.
    fn runs(elf: object::Architecture) -> bool;

    /// Returns the instruction pointer of a sample and the registers there.
    fn start(registers: &Registers<'_>) -> Option<(u64, Self::Regs)>;
    /// Returns the stack pointer.
    fn stack_pointer(regs: &Self::Regs) -> u64;
    /// Returns a register that is followed up the stack, by its DWARF number.
    fn get(regs: &Self::Regs, register: gimli::Register) -> Option<u64>;
    /// Sets the registers to those of the caller.
    fn set(regs: &mut Self::Regs, ip: u64, sp: u64, fp: u64);
    /// Returns the kernel's number of a register (`enum perf_event_…_regs`) by its DWARF number.
    fn perf_register(register: gimli::Register) -> Option<u32>;
}

/// The registers of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registers<'a> {
    /// A bit for each register that is present.
    mask: u64,
    /// 8 bytes per register, in the order of the bits.
    values: &'a [u8],
}

impl<'a> Registers<'a> {
    pub(super) fn new(mask: u64, values: &'a [u8]) -> Self {
        Self { mask, values }
    }

    /// Returns a register by the kernel's number.
    pub(super) fn get(&self, number: u32) -> Option<u64> {
        if self.mask & (1 << number) == 0 {
            return None;
        }
        let before = (self.mask & ((1 << number) - 1)).count_ones() as usize;
        Some(u64::from_le_bytes(self.values.get(before * 8..before * 8 + 8)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::Registers;

    #[test]
    fn reads_registers_in_the_order_of_their_bits() {
        let bytes: Vec<u8> = [10u64, 20, 30].iter().flat_map(|value| value.to_le_bytes()).collect();
        let registers = Registers::new(1 << 6 | 1 << 7 | 1 << 16, &bytes);
        assert_eq!([6, 7, 16, 8].map(|number| registers.get(number)), [Some(10), Some(20), Some(30), None]);
        assert_eq!(Registers::new(1 << 6 | 1 << 7, &bytes[..8]).get(7), None);
    }
}
