//! Functions that unwind the stack for an exception.
//!
//! At its end, such a function (`_Unwind_Resume`, made with `__builtin_eh_return`) calls another one that writes the registers of the
//! handler over those that it has saved itself. Then it writes the handler's address over a return address, restores the registers,
//! and sets the stack pointer to that of the handler. From that call on, the saved registers are those of the handler's function, and
//! what is found with them may be wrong: the stack is cut there.

use iced_x86::Mnemonic;

use super::code::Code;
use super::code_paths::decode;
use crate::perf::cfi::{CfiEntry, CfiTable};

/// Number of bytes from the instruction that sets the stack pointer to the end of the function.
pub(super) const AFTER_HANDLER: u64 = 16;

/// True if a function that is at `code` may have written the registers of an exception's handler over those that it has saved. `entry`
/// of `cfi` covers the code.
pub(super) fn has_installed_handler(code: &Code<'_>, cfi: &CfiTable, entry: CfiEntry) -> bool {
    cfi.handler_call(entry).is_some_and(|end| {
        let function = code.elf.code_from(entry.start);
        let is_empty = |address| returns_at_once(code.elf.code_from(address));
        code.svma < end + AFTER_HANDLER
            && last_call(function, entry.start, end, is_empty).is_some_and(|call| code.svma >= call)
    })
}

/// Returns the address of the last call before `end` in the code that begins at `start`, without calls of empty functions: there is
/// one for debuggers (`_Unwind_DebugHook`).
fn last_call(code: &[u8], start: u64, end: u64, is_empty: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut next, mut last) = (start, None);
    while next < end {
        let instruction = decode(code.get((next - start) as usize..)?, next)?;
        if instruction.mnemonic() == Mnemonic::Call && !is_empty(instruction.near_branch_target()) {
            last = Some(next);
        }
        next = instruction.next_ip();
    }
    last
}

/// True for the code of an empty function.
fn returns_at_once(code: &[u8]) -> bool {
    let first = decode(code, 0).filter(|first| first.mnemonic() != Mnemonic::Endbr64);
    let code = if first.is_some() { code } else { code.get(4..).unwrap_or_default() };
    decode(code, 0).is_some_and(|first| first.mnemonic() == Mnemonic::Ret)
}

#[cfg(test)]
mod tests {
    use super::{last_call, returns_at_once};

    #[test]
    fn finds_the_last_call_before_the_end() {
        // `call 0x1005; call 0x100b; mov %rax, %rcx; mov %rcx, %rsp; call 0x1017`
        let code = [0xe8, 0, 0, 0, 0, 0xe8, 1, 0, 0, 0, 0x48, 0x89, 0xc1, 0x48, 0x89, 0xcc, 0xe8, 2, 0, 0, 0];
        assert_eq!(last_call(&code, 0x1000, 0x100d, |_| false), Some(0x1005));
        assert_eq!(last_call(&code, 0x1000, 0x100d, |callee| callee == 0x100b), Some(0x1000));
        assert_eq!(last_call(&code[10..], 0x1000, 0x1003, |_| false), None);
        assert_eq!(last_call(&[], 0x1000, 0x100d, |_| false), None);
    }

    #[test]
    fn an_empty_function_returns_at_once() {
        // `endbr64; ret`, `ret`, `endbr64; push %rbp`
        assert!(returns_at_once(&[0xf3, 0x0f, 0x1e, 0xfa, 0xc3]) && returns_at_once(&[0xc3]));
        assert!(!returns_at_once(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55]) && !returns_at_once(&[]));
    }
}
