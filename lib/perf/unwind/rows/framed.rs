//! Rows of functions without unwind information that have a frame pointer.
//!
//! Runtimes of scripts contain some that are written in assembly: V8's `PushAllRegistersAndIterateStack` saves registers where
//! the garbage collector finds them. What runs below has script functions as callers, which only a walk in place can name.

use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, Register};
use object::{Object as _, ObjectSymbol as _, SymbolKind};

use super::{Functions, MIN_GENERATED, kind, rule};
use crate::perf::objects::object::Elf;
use crate::perf::unwind::code_paths::writes_frame_pointer;

/// Maximum number of bytes of such a function.
const MAX_SIZE: usize = 1024;

impl Functions<'_> {
    /// True if an address is in a gap between the sorted ranges that is too small for generated code.
    fn is_in_small_gap(&self, address: u64) -> bool {
        let next = self.ranges.partition_point(|(range, _)| range.start <= address);
        let after = next.checked_sub(1).map_or(0, |last| self.ranges[last].0.end);
        let before = self.ranges.get(next).map_or(0, |(range, _)| range.start);
        (after..before).contains(&address) && before - after < MIN_GENERATED
    }

    /// Adds the functions of a file that begin in gaps of the unwind information, except those of generated code.
    pub(super) fn read_framed(&mut self, elf: &Elf, file: &object::File<'_>) {
        self.ranges.sort_unstable_by_key(|(range, _)| range.start);
        let functions =
            file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text).map(|symbol| symbol.address());
        let mut starts: Vec<u64> = functions.filter(|address| self.is_in_small_gap(*address)).collect();
        starts.sort_unstable();
        starts.dedup();
        for start in starts {
            let code = elf.code_from(start);
            let Some(framed) = FramedFunction::find(&code[..code.len().min(MAX_SIZE)], start) else { continue };
            let first = self.changes.len();
            self.push(start, rule(kind::STACK_POINTER, 8, 0));
            self.push(framed.pushed, rule(kind::STACK_POINTER, 16, -2));
            self.push(framed.complete, rule(kind::FRAME_POINTER, 16, -2));
            self.push(framed.returning, rule(kind::STACK_POINTER, 8, 0));
            self.ranges.push((start..framed.end, first..self.changes.len()));
        }
    }
}

/// A function that begins with `push rbp; mov rbp, rsp`, ends with `pop rbp; ret` or `leave; ret`, and does not write rbp in
/// between.
#[derive(Debug, PartialEq, Eq)]
struct FramedFunction {
    /// The address behind `push`.
    pushed: u64,
    /// The address behind `mov`.
    complete: u64,
    /// The address of `ret`.
    returning: u64,
    end: u64,
}

impl FramedFunction {
    /// Reads the function at the start of `code`. `None` if it is not of this kind.
    fn find(code: &[u8], start: u64) -> Option<Self> {
        let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let push = decoder.decode();
        let copy = decoder.decode();
        let is_start = push.mnemonic() == Mnemonic::Push
            && push.op0_register() == Register::RBP
            && copy.mnemonic() == Mnemonic::Mov
            && (copy.op0_register(), copy.op1_register()) == (Register::RBP, Register::RSP);
        if !is_start {
            return None;
        }
        let (mut factory, mut last_target) = (InstructionInfoFactory::new(), 0);
        loop {
            let instruction = decoder.decode();
            let is_end = instruction.mnemonic() == Mnemonic::Leave
                || instruction.mnemonic() == Mnemonic::Pop && instruction.op0_register() == Register::RBP;
            if is_end {
                let after = decoder.decode();
                // A jump beyond would lead to a part with another end.
                let is_whole = after.mnemonic() == Mnemonic::Ret && last_target <= instruction.ip();
                let (pushed, complete, returning) = (push.next_ip(), copy.next_ip(), after.ip());
                return is_whole.then(|| Self { pushed, complete, returning, end: after.next_ip() });
            }
            match instruction.flow_control() {
                FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => {}
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
                    if instruction.near_branch_target() >= copy.next_ip() =>
                {
                    last_target = last_target.max(instruction.near_branch_target());
                }
                _ => return None,
            }
            if instruction.is_invalid() || writes_frame_pointer(&mut factory, &instruction) {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FramedFunction;

    #[test]
    fn finds_functions_with_a_frame_pointer() {
        // push rbp; mov rbp, rsp; push rbx; call *r8; add rsp, 8; pop rbp; ret
        let code = [0x55, 0x48, 0x89, 0xe5, 0x53, 0x41, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0x5d, 0xc3];
        let found = FramedFunction { pushed: 0x101, complete: 0x104, returning: 0x10d, end: 0x10e };
        assert_eq!(FramedFunction::find(&code, 0x100), Some(found));
        assert_eq!(FramedFunction::find(&code[..12], 0x100), None, "no end");
        assert_eq!(FramedFunction::find(&code[1..], 0x100), None, "no start");
    }

    #[test]
    fn does_not_find_what_may_have_another_frame_pointer() {
        for (middle, why) in [
            (&[0x48, 0x89, 0xc5][..], "mov rbp, rax"),
            (&[0x74, 0x10], "je beyond the end"),
            (&[0xeb, 0xfa], "jmp to the start"),
            (&[0xc3], "another ret"),
            (&[0xff, 0xe0], "jmp rax"),
            (&[0x06], "invalid"),
        ] {
            let code = [&[0x55, 0x48, 0x89, 0xe5], middle, &[0xc9, 0xc3]].concat();
            assert_eq!(FramedFunction::find(&code, 0x100), None, "{why}");
        }
        // je to leave
        assert!(FramedFunction::find(&[0x55, 0x48, 0x89, 0xe5, 0x74, 0x00, 0xc9, 0xc3], 0x100).is_some());
    }
}
