//! Unwinding on x86-64.
//!
//! Register numbers are those of the kernel's `arch/x86/include/uapi/asm/perf_regs.h`, and the DWARF numbers of the
//! System V ABI.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use addr2line::gimli::{self, X86_64 as dwarf};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};

use super::arch::{Architecture, Registers, StepOutcome};
use super::snapshot::ProcessSnapshot;
use super::stack::Stack;
use crate::perf::cfi::Section;
use crate::perf::event::Address;

/// The x86-64 architecture.
pub(super) enum X86_64 {}

const BP: u32 = 6;
const SP: u32 = 7;
const IP: u32 = 8;

impl Architecture for X86_64 {
    type Unwinder = UnwinderX86_64<Section>;
    type Cache = CacheX86_64;
    type Regs = UnwindRegsX86_64;

    /// All general-purpose registers, the instruction pointer and the flags.
    const REGISTERS: u64 = 0xff_01ff;
    /// rdi, rsi, rdx, rcx, r8, r9.
    const ARGUMENTS: &'static [u32] = &[5, 4, 3, 2, 16, 17];
    const SP: gimli::Register = dwarf::RSP;
    const FP: gimli::Register = dwarf::RBP;
    const RA: gimli::Register = dwarf::RA;

    fn runs(elf: object::Architecture) -> bool {
        matches!(elf, object::Architecture::X86_64 | object::Architecture::X86_64_X32)
    }

    fn start(registers: &Registers<'_>) -> Option<(u64, Self::Regs)> {
        let (ip, sp, bp) = (registers.get(IP)?, registers.get(SP)?, registers.get(BP)?);
        Some((ip, UnwindRegsX86_64::new(ip, sp, bp)))
    }

    fn stack_pointer(regs: &Self::Regs) -> u64 {
        regs.sp()
    }

    fn get(regs: &Self::Regs, register: gimli::Register) -> Option<u64> {
        match register {
            dwarf::RA => Some(regs.ip()),
            dwarf::RSP => Some(regs.sp()),
            dwarf::RBP => Some(regs.bp()),
            _ => None,
        }
    }

    fn set(regs: &mut Self::Regs, ip: u64, sp: u64, fp: u64) {
        regs.set_ip(ip);
        regs.set_sp(sp);
        regs.set_bp(fp);
    }

    fn perf_register(register: gimli::Register) -> Option<u32> {
        /// By DWARF number: rax rdx rcx rbx rsi rdi rbp rsp, r8 to r15, rip.
        const NUMBERS: [u32; 17] = [0, 3, 2, 1, 4, 5, BP, SP, 16, 17, 18, 19, 20, 21, 22, 23, IP];
        NUMBERS.get(usize::from(register.0)).copied()
    }

    /// Steps over a trampoline of CPython: with `-X perf` there is one per Python function, around a call of the
    /// interpreter.
    fn step_trampoline(
        snapshot: ProcessSnapshot<'_>,
        address: Address,
        regs: &mut Self::Regs,
        stack: &mut Stack<'_>,
    ) -> Option<StepOutcome> {
        // Reads no further than the page of the address: the pages beside it may not be code.
        let mut around = [0; AROUND];
        let (before, after) = ((address.value % 4096).min(10), (4096 - address.value % 4096).min(11));
        let read = &mut around[MIDDLE - before as usize..MIDDLE + after as usize];
        snapshot.read_generated_code(address.value - before, read)?;
        let pushed = bytes_pushed_in_trampoline(&around, address.exact)?;
        let sp = regs.sp();
        let Some(caller) = stack.read(sp.checked_add(pushed)?) else { return Some(StepOutcome::Unreadable) };
        let bp = regs.bp();
        Self::set(regs, caller, sp.checked_add(pushed + 8)?, bp);
        Some(StepOutcome::Caller(Address { value: caller, in_kernel: false, exact: false }))
    }
}

/// `sub rsp, 8; call rcx; add rsp, 8; ret`
const TRAMPOLINE: [u8; 11] = [0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3];

/// Number of bytes around an address in which a trampoline is looked for, and the index of the address among them.
const AROUND: usize = 2 * TRAMPOLINE.len() - 1;
const MIDDLE: usize = TRAMPOLINE.len() - 1;

/// Returns how many bytes a trampoline has pushed below its return address; `None` if the bytes are no trampoline.
///
/// `exact` is true if the address in the middle is that of an instruction, and false if it is a return address.
fn bytes_pushed_in_trampoline(around: &[u8; AROUND], exact: bool) -> Option<u64> {
    const RETURN_OFFSET: usize = 6;
    /// The offset of each instruction, and how many bytes are pushed when it runs.
    const INSTRUCTIONS: [(usize, u64); 4] = [(0, 0), (4, 8), (6, 8), (10, 0)];
    if !exact {
        return around[MIDDLE - RETURN_OFFSET..].starts_with(&TRAMPOLINE).then_some(8);
    }
    let found = INSTRUCTIONS.into_iter().find(|(offset, _)| around[MIDDLE - offset..].starts_with(&TRAMPOLINE));
    found.map(|(_, pushed)| pushed)
}

#[cfg(test)]
mod tests {
    use super::{AROUND, MIDDLE, TRAMPOLINE, bytes_pushed_in_trampoline};

    #[test]
    fn finds_the_return_address_of_a_trampoline() {
        let pushed = |offset: usize, exact| {
            let mut around = [0x90; AROUND];
            around[MIDDLE - offset..][..TRAMPOLINE.len()].copy_from_slice(&TRAMPOLINE);
            bytes_pushed_in_trampoline(&around, exact)
        };
        assert_eq!([0, 4, 6, 10].map(|offset| pushed(offset, true)), [Some(0), Some(8), Some(8), Some(0)]);
        assert_eq!((pushed(6, false), pushed(4, false), pushed(5, true)), (Some(8), None, None));
    }
}
