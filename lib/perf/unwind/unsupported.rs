//! The placeholder on CPU architectures where stacks cannot be unwound.
//!
//! It keeps the rest of the code free of conditions. It never walks a stack: no sample has the registers to start from.

#![cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), allow(dead_code))]

use addr2line::gimli;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};

use super::arch::{Architecture, Registers};
use crate::perf::cfi::Section;

/// An architecture whose stacks cannot be unwound.
pub(super) enum Unsupported {}

impl Architecture for Unsupported {
    // framehop has no unwinder for it; this one is never used.
    type Unwinder = UnwinderX86_64<Section>;
    type Cache = CacheX86_64;
    type Regs = UnwindRegsX86_64;

    const REGISTERS: u64 = 0;
    const ARGUMENTS: &'static [u32] = &[];
    const SP: gimli::Register = gimli::Register(u16::MAX);
    const FP: gimli::Register = gimli::Register(u16::MAX);
    const RA: gimli::Register = gimli::Register(u16::MAX);
    const READS_CODE: bool = false;

    fn runs(_: object::Architecture) -> bool {
        false
    }

    fn start(_: &Registers<'_>) -> Option<(u64, Self::Regs)> {
        None
    }

    fn stack_pointer(_: &Self::Regs) -> u64 {
        0
    }

    fn get(_: &Self::Regs, _: gimli::Register) -> Option<u64> {
        None
    }

    fn set(_: &mut Self::Regs, _: u64, _: u64, _: u64) {}

    fn perf_register(_: gimli::Register) -> Option<u32> {
        None
    }
}
