//! x86-64. Registers by the kernel's `arch/x86/include/uapi/asm/perf_regs.h` and by the System V ABI's DWARF numbers.

use addr2line::gimli::{self, X86_64 as dwarf};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};

use super::arch::{Architecture, Registers, Unwound};
use super::module::Section;
use super::stack::Stack;
use crate::perf::event::Address;

/// The architecture.
pub enum X86_64 {}

const BP: u32 = 6;
const SP: u32 = 7;
const IP: u32 = 8;

impl Architecture for X86_64 {
    type Unwinder = UnwinderX86_64<Section>;
    type Cache = CacheX86_64;
    type Regs = UnwindRegsX86_64;

    /// All general registers and the instruction pointer.
    const REGISTERS: u64 = 0xff_01ff;
    /// rdi, rsi, rdx, rcx, r8, r9.
    const ARGUMENTS: [u32; 6] = [5, 4, 3, 2, 16, 17];
    const SP: gimli::Register = dwarf::RSP;
    const FP: gimli::Register = dwarf::RBP;
    const RA: gimli::Register = dwarf::RA;
    const LONGEST_CALL: usize = 7;

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

    fn bit(register: gimli::Register) -> Option<u32> {
        /// For each DWARF number the kernel's: rax rdx rcx rbx rsi rdi rbp rsp, r8 to r15, rip.
        const BITS: [u32; 17] = [0, 3, 2, 1, 4, 5, BP, SP, 16, 17, 18, 19, 20, 21, 22, 23, IP];
        BITS.get(usize::from(register.0)).copied()
    }

    fn follows_call(code: &[u8]) -> bool {
        let ends_with_near_call = code.len() >= 5 && code[code.len() - 5] == 0xe8;
        ends_with_near_call || (2..=code.len().min(7)).any(|length| is_indirect_call(&code[code.len() - length..]))
    }

    /// CPython's trampolines around a call of the interpreter, one a Python function (`-X perf`).
    fn step_trampoline(address: Address, regs: &mut Self::Regs, stack: &mut Stack<'_>) -> Option<Unwound> {
        // Of the page alone: those beside it may be no code.
        let mut around = [0; 21];
        let (before, behind) = ((address.value % 4096).min(10), (4096 - address.value % 4096).min(11));
        let read = &mut around[10 - before as usize..10 + behind as usize];
        stack.read_process(address.value - before, read)?;
        let pushed = pushed_in_trampoline(&around, address.exact)?;
        let sp = regs.sp();
        let Some(caller) = stack.read(sp.checked_add(pushed)?) else { return Some(Unwound::Unreadable) };
        let bp = regs.bp();
        Self::set(regs, caller, sp.checked_add(pushed + 8)?, bp);
        Some(Unwound::Caller(Address { value: caller, in_kernel: false, exact: false }))
    }
}

/// `sub rsp, 8; call rcx; add rsp, 8; ret`
const TRAMPOLINE: [u8; 11] = [0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3];

/// How many bytes the trampoline has pushed behind its return address at the middle one of these bytes, if it is one.
fn pushed_in_trampoline(around: &[u8; 21], exact: bool) -> Option<u64> {
    let behind_call = 6;
    match exact {
        false => (around[10 - behind_call..].starts_with(&TRAMPOLINE)).then_some(8),
        // Where its instructions begin.
        true => [(0, 0), (4, 8), (6, 8), (10, 0)]
            .into_iter()
            .find_map(|(offset, pushed)| around[10 - offset..].starts_with(&TRAMPOLINE).then_some(pushed)),
    }
}

/// Whether the bytes are, from first to last, `call` through a register or memory: `FF /2`.
fn is_indirect_call(code: &[u8]) -> bool {
    let [0xff, modrm, ..] = code else { return false };
    if (modrm >> 3) & 7 != 2 {
        return false;
    }
    let has_sib = modrm & 7 == 4 && modrm >> 6 != 3;
    let displacement = match (modrm >> 6, modrm & 7) {
        (0, 5) => 4,
        // A base of 5 without displacement stands for a displacement without base.
        (0, 4) if code.get(2).is_some_and(|sib| sib & 7 == 5) => 4,
        (1, _) => 1,
        (2, _) => 4,
        _ => 0,
    };
    code.len() == 2 + usize::from(has_sib) + displacement
}

#[cfg(test)]
mod tests {
    use super::{Architecture as _, TRAMPOLINE, X86_64, pushed_in_trampoline};

    #[test]
    fn in_a_trampoline_the_return_address_is_below_what_it_pushed() {
        let pushed = |offset: usize, exact| {
            let mut around = [0x90; 21];
            around[10 - offset..][..11].copy_from_slice(&TRAMPOLINE);
            pushed_in_trampoline(&around, exact)
        };
        assert_eq!([0, 4, 6, 10].map(|offset| pushed(offset, true)), [Some(0), Some(8), Some(8), Some(0)]);
        assert_eq!((pushed(6, false), pushed(4, false), pushed(5, true)), (Some(8), None, None));
    }

    #[test]
    fn calls_are_known_by_their_bytes() {
        for call in [
            &[0xe8, 1, 2, 3, 4][..],         // call rel32
            &[0xff, 0xd0],                   // call rax
            &[0x41, 0xff, 0xd3],             // call r11
            &[0xff, 0x15, 1, 2, 3, 4],       // call [rip+disp32]
            &[0xff, 0x50, 0x18],             // call [rax+0x18]
            &[0xff, 0x94, 0x24, 1, 2, 3, 4], // call [rsp+disp32]
            &[0xff, 0x14, 0xc5, 1, 2, 3, 4], // call [rax*8+disp32]
            &[0xff, 0x14, 0x24],             // call [rsp]
        ] {
            let code: Vec<u8> = [0x90; 7].into_iter().chain(call.iter().copied()).collect();
            assert!(X86_64::follows_call(&code[code.len() - 7..]), "{call:x?}");
        }
        for other in [&[0x90; 7][..], &[0xff, 0xe0], &[0xff, 0x50], &[0xe9, 1, 2, 3, 4]] {
            let code: Vec<u8> = [0x90; 7].into_iter().chain(other.iter().copied()).collect();
            assert!(!X86_64::follows_call(&code[code.len() - 7..]), "{other:x?}");
        }
    }
}
