//! Decodes instructions, and calls before a return address.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

/// The longest instruction, in bytes.
pub(in crate::perf::unwind) const MAX_INSTRUCTION: usize = 15;

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

#[cfg(test)]
mod tests {
    use super::{direct_call_target, ends_with_call};

    #[test]
    fn recognizes_calls_before_an_address() {
        assert!(ends_with_call(&[0x90, 0x90, 0xe8, 1, 0, 0, 0]) && ends_with_call(&[0x41, 0xff, 0x54, 0x24, 0x08]));
        assert!(!ends_with_call(&[0x90, 0x48, 0x89, 0xe5, 0x55]) && !ends_with_call(&[]));
        assert_eq!(direct_call_target(&[0xe8, 0xfb, 0xff, 0xff, 0xff], 0x1005), Some(0x1000));
        assert_eq!(direct_call_target(&[0x90, 0x90, 0x90, 0xff, 0xd0], 0x1005), None);
    }
}
