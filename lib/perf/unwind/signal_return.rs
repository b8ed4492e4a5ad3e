//! The code to which signal handlers return, where it has no unwind information: that of musl.
//!
//! It does nothing but the system call that restores the registers of the interrupted code from the stack. So these are known.

use super::after_syscall::{SIGNAL_REGISTERS, SYSCALL};
use super::arch::{Architecture, StepOutcome};
use super::bare_code::UNKNOWN_FRAME_POINTER;
use super::code::Code;
use super::native::Native;
use super::stack::Stack;
use crate::perf::event::Address;

/// `mov $15, %rax` in its two encodings: the number of the system call.
const NUMBERS: [&[u8]; 2] = [&[0x48, 0xc7, 0xc0, 15, 0, 0, 0], &[0xb8, 15, 0, 0, 0]];

/// True if the code at `svma` is that of the return from a signal handler, or the end of it.
pub(super) fn returns_from_signal(code: &Code<'_>, svma: u64) -> bool {
    let calls = |start: u64, number: &[u8]| {
        code.elf.code_from(start).strip_prefix(number).is_some_and(|rest| rest.starts_with(&SYSCALL))
    };
    NUMBERS.iter().any(|number| calls(svma, number) || calls(svma.wrapping_sub(number.len() as u64), number))
}

/// Steps to the interrupted code.
pub(super) fn step(regs: &mut <Native as Architecture>::Regs, stack: &mut Stack<'_>) -> StepOutcome {
    let context = Native::stack_pointer(regs);
    let mut read = |number: u64| stack.read(context.wrapping_add(SIGNAL_REGISTERS + number * 8));
    let (fp, sp, ip) = (read(10), read(15), read(16));
    let (Some(sp), Some(ip)) = (sp, ip) else {
        return if stack.has_passed_end() { StepOutcome::Unreadable } else { StepOutcome::Failed };
    };
    Native::set(regs, ip, sp, fp.unwrap_or(UNKNOWN_FRAME_POINTER));
    StepOutcome::Caller(Address { value: ip, in_kernel: false, exact: true })
}
