//! Decodes instructions, calls before a return address, and the last instructions of a function.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register,
};

/// The longest instruction, in bytes.
pub(in crate::perf::unwind) const MAX_INSTRUCTION: usize = 15;

/// Maximum number of instructions that are decoded in search of a return. GCC 12 writes 2 to 5 behind the one that restores the frame
/// pointer of a realigned frame.
const MAX_BEFORE_RETURN: usize = 16;

/// Decodes an instruction. `None` if the bytes are none.
pub(in crate::perf::unwind) fn decode(bytes: &[u8], address: u64) -> Option<Instruction> {
    let bytes = &bytes[..bytes.len().min(MAX_INSTRUCTION)];
    let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// Returns true if the bytes before an address end with a call.
pub(in crate::perf::unwind) fn ends_with_call(bytes: &[u8]) -> bool {
    (2..=bytes.len()).any(|length| {
        let call = &bytes[bytes.len() - length..];
        decode(call, 0).is_some_and(|call| call.len() == length && call.mnemonic() == Mnemonic::Call)
    })
}

/// Returns the target of the direct call before a return address, by the bytes before that.
pub(in crate::perf::unwind) fn direct_call_target(bytes: &[u8], return_address: u64) -> Option<u64> {
    let call = bytes.last_chunk::<5>()?;
    let call = decode(call, return_address.checked_sub(5)?)?;
    (call.flow_control() == FlowControl::Call && call.next_ip() == return_address).then(|| call.near_branch_target())
}

/// Returns the address of the return, or of the jump, to which the code at an address goes straight on without writing the frame
/// pointer.
pub(in crate::perf::unwind) fn find_end_with_frame_pointer(code: &[u8], address: u64) -> Option<u64> {
    let mut factory = InstructionInfoFactory::new();
    let mut instructions =
        Decoder::with_ip(64, code, address, DecoderOptions::NONE).into_iter().take(MAX_BEFORE_RETURN);
    let last = instructions.find(|next| {
        next.is_invalid() || next.flow_control() != FlowControl::Next || writes_frame_pointer(&mut factory, next)
    })?;
    matches!(last.flow_control(), FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch)
        .then_some(last.ip())
}

/// True if an instruction writes the frame pointer, or a part of it.
pub(in crate::perf::unwind) fn writes_frame_pointer(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
) -> bool {
    let is_read =
        |access| matches!(access, OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
    let registers = factory.info(instruction).used_registers();
    registers.iter().any(|used| used.register().full_register() == Register::RBP && !is_read(used.access()))
}

#[cfg(test)]
mod tests {
    use super::{direct_call_target, ends_with_call, find_end_with_frame_pointer};

    #[test]
    fn finds_the_return_behind_the_code_that_restores_the_frame_pointer() {
        // lea -0x10(%rbp), %rsp; pop %rbx; pop %r13; pop %rbp; lea -0x10(%r13), %rsp; pop %r13; add %ecx, %eax
        let code =
            [&[0x48, 0x8d, 0x65, 0xf0, 0x5b, 0x41, 0x5d, 0x5d][..], &[0x49, 0x8d, 0x65, 0xf0, 0x41, 0x5d, 0x01, 0xc8]]
                .concat();
        // ret, jmp, jmp *%rcx
        for end in [&[0xc3][..], &[0xeb, 0x10], &[0xff, 0xe1]] {
            let code = [&code, end].concat();
            let find = |start: usize| find_end_with_frame_pointer(&code[start..], 0x1000 + start as u64);
            assert_eq!([0, 4, 5, 7].map(find), [None; 4], "the frame pointer is popped later");
            assert_eq!([8, 12, 14, 16].map(find), [Some(0x1010); 4]);
        }
    }

    #[test]
    fn code_that_writes_the_frame_pointer_or_calls_has_no_such_end() {
        for (code, why) in [
            (&[0xc9, 0xc3][..], "leave"),
            (&[0x89, 0xc5, 0xc3], "mov %eax, %ebp"),
            (&[0x74, 0x00, 0xc3], "je"),
            (&[0xff, 0xd0, 0xc3], "call *%rax"),
            (&[0x0f, 0x05, 0xc3], "syscall"),
            (&[0x0f, 0x0b, 0xc3], "ud2"),
            (&[0x06, 0xc3], "no instruction"),
            (&[0x90], "the end of what is known"),
            (&[], "nothing"),
        ] {
            assert_eq!(find_end_with_frame_pointer(code, 0x1000), None, "{why}");
        }
        let far = [&[0x90; 16][..], &[0xc3]].concat();
        assert_eq!([0, 1].map(|start| find_end_with_frame_pointer(&far[start..], 0)), [None, Some(15)]);
    }

    #[test]
    fn recognizes_calls_before_an_address() {
        assert!(ends_with_call(&[0x90, 0x90, 0xe8, 1, 0, 0, 0]) && ends_with_call(&[0x41, 0xff, 0x54, 0x24, 0x08]));
        assert!(!ends_with_call(&[0x90, 0x48, 0x89, 0xe5, 0x55]) && !ends_with_call(&[]));
        assert_eq!(direct_call_target(&[0xe8, 0xfb, 0xff, 0xff, 0xff], 0x1005), Some(0x1000));
        assert_eq!(direct_call_target(&[0x90, 0x90, 0x90, 0xff, 0xd0], 0x1005), None);
    }
}
