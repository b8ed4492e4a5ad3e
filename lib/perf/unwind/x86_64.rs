//! Unwinding on x86-64.
//!
//! Register numbers are those of the kernel's `arch/x86/include/uapi/asm/perf_regs.h`, and the DWARF numbers of the
//! System V ABI.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use addr2line::gimli::{self, X86_64 as dwarf};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};

use super::arch::{Architecture, Registers};
use crate::perf::cfi::Section;

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
    const REGISTERS: u64 = 0xff_03ff;
    /// rdi, rsi, rdx, rcx, r8, r9.
    const ARGUMENTS: &'static [u32] = &[5, 4, 3, 2, 16, 17];
    const SP: gimli::Register = dwarf::RSP;
    const FP: gimli::Register = dwarf::RBP;
    const RA: gimli::Register = dwarf::RA;
    const READS_CODE: bool = true;

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
        /// perf's number of each register, by DWARF number: rax rdx rcx rbx rsi rdi rbp rsp, r8 to r15, rip.
        const NUMBERS: [u32; 17] = [0, 3, 2, 1, 4, 5, BP, SP, 16, 17, 18, 19, 20, 21, 22, 23, IP];
        NUMBERS.get(usize::from(register.0)).copied()
    }
}
