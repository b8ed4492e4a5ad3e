//! Unwinding on 64-bit ARM.
//!
//! Register numbers are those of the kernel's `arch/arm64/include/uapi/asm/perf_regs.h`. They equal the DWARF numbers.

#![cfg_attr(not(target_arch = "aarch64"), allow(dead_code))]

use addr2line::gimli::{self, AArch64 as dwarf};
use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};

use super::arch::{Architecture, Registers};
use crate::perf::cfi::Section;

/// The 64-bit ARM architecture.
pub(super) enum Aarch64 {}

const FP: u32 = 29;
const LR: u32 = 30;
const SP: u32 = 31;
const PC: u32 = 32;

impl Architecture for Aarch64 {
    type Unwinder = UnwinderAarch64<Section>;
    type Cache = CacheAarch64;
    type Regs = UnwindRegsAarch64;

    /// x0 to x30, the stack pointer and the program counter.
    const REGISTERS: u64 = (1 << 33) - 1;
    /// x0 to x5.
    const ARGUMENTS: &'static [u32] = &[0, 1, 2, 3, 4, 5];
    const SP: gimli::Register = dwarf::SP;
    const FP: gimli::Register = dwarf::X29;
    const RA: gimli::Register = dwarf::X30;
    const READS_CODE: bool = false;

    fn runs(elf: object::Architecture) -> bool {
        matches!(elf, object::Architecture::Aarch64 | object::Architecture::Aarch64_Ilp32)
    }

    fn start(registers: &Registers<'_>) -> Option<(u64, Self::Regs)> {
        let (lr, sp, fp) = (registers.get(LR)?, registers.get(SP)?, registers.get(FP)?);
        Some((registers.get(PC)?, UnwindRegsAarch64::new(lr, sp, fp)))
    }

    fn stack_pointer(regs: &Self::Regs) -> u64 {
        regs.sp()
    }

    fn get(regs: &Self::Regs, register: gimli::Register) -> Option<u64> {
        match register {
            dwarf::X30 => Some(regs.lr()),
            dwarf::SP => Some(regs.sp()),
            dwarf::X29 => Some(regs.fp()),
            _ => None,
        }
    }

    fn set(regs: &mut Self::Regs, ip: u64, sp: u64, fp: u64) {
        regs.set_lr(ip);
        regs.set_sp(sp);
        regs.set_fp(fp);
    }

    fn perf_register(register: gimli::Register) -> Option<u32> {
        (u32::from(register.0) <= SP).then(|| u32::from(register.0))
    }
}
