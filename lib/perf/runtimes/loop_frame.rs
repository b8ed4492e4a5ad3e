//! The frame of a function that runs script functions, read from the code at its start.
//!
//! Compiled script functions may run in it: then no unwind information is at their addresses. If the loop has a frame pointer, its
//! own describes the frame by that, and compiled code may use the register for other things.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind, Register};

/// The frame of a function behind its first instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopFrame {
    /// The distance from the stack pointer to the caller's stack pointer (CFA), in bytes.
    pub size: u32,
    /// The place of the saved frame pointer, in words from the CFA. 0 if it is not saved.
    pub saved_bp: i32,
}

/// The sizes in bytes that compiled code may have pushed (`ext/opcache/jit/zend_jit_x86.dasc`): nothing, the number of an exit
/// of its trace, a return address and the frame of a helper, the same with the padding of engines without a red zone, or all
/// registers. The BPF program has the same list.
pub const PUSHED_SIZES: [u64; 6] = [0, 8, 16, 24, 32, 256];

/// Maximum number of instructions that make a frame.
const MAX_INSTRUCTIONS: usize = 32;

impl LoopFrame {
    /// Finds the frame of the function that begins with this code. `None` if it has none of a fixed size.
    pub(super) fn find(code: &[u8]) -> Option<Self> {
        let mut frame = Self { size: 8, saved_bp: 0 };
        for instruction in Decoder::new(64, code, DecoderOptions::NONE).into_iter().take(MAX_INSTRUCTIONS) {
            if instruction.is_invalid() || instruction.flow_control() != FlowControl::Next {
                return None;
            }
            let is_stack_pointer = instruction.op0_register() == Register::RSP;
            match instruction.mnemonic() {
                Mnemonic::Push => {
                    frame.size += 8;
                    if instruction.op0_register() == Register::RBP {
                        frame.saved_bp = -(frame.size.cast_signed() / 8);
                    }
                }
                Mnemonic::Sub if is_stack_pointer => {
                    frame.size = frame.size.checked_add(instruction.immediate32())?;
                    return (instruction.op1_kind() != OpKind::Register).then_some(frame);
                }
                _ if is_stack_pointer => return None,
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::LoopFrame;

    /// push r13; push r12; push rbp; push rbx
    const PUSHES: [u8; 6] = [0x41, 0x55, 0x41, 0x54, 0x55, 0x53];

    #[test]
    fn finds_the_size_of_a_frame() {
        let found = |start: &[u8], rest: &[u8]| {
            LoopFrame::find(&[start, rest].concat()).map(|frame| (frame.size, frame.saved_bp))
        };
        // sub rsp, 0x78
        assert_eq!(found(&PUSHES, &[0x48, 0x83, 0xec, 0x78]), Some((160, -4)));
        // endbr64; push rbp; mov rbp, rsp; push rbx; sub rsp, 0x188
        let framed = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x81, 0xec, 0x88, 0x01, 0, 0];
        assert_eq!(found(&framed, &[]), Some((0x1a0, -2)));
        // push rbx; sub rsp, 8
        assert_eq!(found(&[0x53], &[0x48, 0x83, 0xec, 0x08]), Some((24, 0)));
    }

    #[test]
    fn does_not_guess() {
        for (rest, why) in [
            (&[0x48, 0x83, 0xe4, 0xf0][..], "and rsp, -16"),
            (&[0x48, 0x29, 0xc4], "sub rsp, rax"),
            (&[0x48, 0x89, 0xc4], "mov rsp, rax"),
            (&[0x74, 0x10], "je"),
            (&[0x06], "invalid"),
            (&[], "end of code"),
        ] {
            assert_eq!(LoopFrame::find(&[&PUSHES, rest].concat()), None, "{why}");
        }
    }
}
