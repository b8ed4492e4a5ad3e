//! The state of a generator of PHP while it is resumed, read from the code that resumes generators.
//!
//! The place of a generator's flags is not the same in all versions. The registers are the compiler's choice.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, MemorySize, Mnemonic, OpKind, Register};

/// The function that resumes a generator. It first tests the flag `ZEND_GENERATOR_CURRENTLY_RUNNING`.
pub(super) const RESUME: &[u8] = b"zend_generator_resume";

/// That flag.
pub(super) const RUNS: u64 = 1;

/// Maximum number of instructions before the test.
const MAX_INSTRUCTIONS: usize = 256;

/// The registers that functions keep for their callers, with their places among the kernel's registers, from 1 on.
const KEPT: [Register; 6] = [Register::R15, Register::R14, Register::R13, Register::R12, Register::RBP, Register::RBX];

/// Returns the registers in which `RESUME` keeps the generator that is resumed, in bits 0 to 3, and the frame that resumes it, in
/// bits 4 to 7. It stores the frame in the generator, at `place`. `None` if the code does not tell.
pub(super) fn find_resume_registers(code: &[u8], place: u32) -> Option<u32> {
    let mut found = None;
    for instruction in Decoder::new(64, code, DecoderOptions::NONE) {
        let is_store = instruction.mnemonic() == Mnemonic::Mov
            && instruction.op0_kind() == OpKind::Memory
            && instruction.op1_kind() == OpKind::Register
            && instruction.memory_displacement32() == place
            && instruction.memory_index() == Register::None;
        if !is_store || instruction.memory_base() == Register::RSP {
            continue;
        }
        let number = |kept: Register| KEPT.iter().position(|register| *register == kept).map(|index| index as u32 + 1);
        let registers = number(instruction.memory_base())? | number(instruction.op1_register())? << 4;
        if found.is_some_and(|other| other != registers) {
            return None;
        }
        found = Some(registers);
    }
    found
}

/// Returns the place of the flags in a generator, which is `from` or above. `None` if the code of `RESUME` does not tell.
pub(super) fn find_generator_flags(code: &[u8], from: u32) -> Option<u32> {
    let mut loaded = (Register::None, 0);
    for instruction in Decoder::new(64, code, DecoderOptions::NONE).into_iter().take(MAX_INSTRUCTIONS) {
        if instruction.code() == Code::INVALID {
            return None;
        }
        let register = instruction.op0_register().full_register();
        let is_test = instruction.mnemonic() == Mnemonic::Test && is_immediate(instruction.op1_kind());
        let place = match is_test && instruction.immediate(1) == RUNS {
            true if instruction.op0_kind() == OpKind::Memory => byte_place(&instruction, from),
            true => Some(loaded.1).filter(|place| register == loaded.0 && *place != 0),
            false => None,
        };
        if place.is_some() {
            return place;
        }
        if instruction.mnemonic() == Mnemonic::Movzx {
            loaded = (register, byte_place(&instruction, from).unwrap_or(0));
        } else if !matches!(instruction.mnemonic(), Mnemonic::Test | Mnemonic::Cmp) && register == loaded.0 {
            loaded = (Register::None, 0);
        }
    }
    None
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(kind, OpKind::Immediate8 | OpKind::Immediate32)
}

/// Returns the place in an object of the byte that an instruction reads.
fn byte_place(instruction: &Instruction, from: u32) -> Option<u32> {
    let is_field = instruction.memory_size() == MemorySize::UInt8
        && !matches!(instruction.memory_base(), Register::None | Register::RIP | Register::RSP)
        && instruction.memory_index() == Register::None;
    Some(instruction.memory_displacement32()).filter(|place| is_field && (from..4096).contains(place))
}

#[cfg(test)]
mod tests {
    use super::{find_generator_flags, find_resume_registers};

    #[test]
    fn finds_the_flag_that_is_tested() {
        let found = |code: &[u8]| find_generator_flags(code, 256);
        // cmp qword [rdi+0x98], 0; jne; test byte [rbx+0x108], 1
        let tested = [0x48, 0x83, 0xbf, 0x98, 0, 0, 0, 0, 0x75, 0x10, 0xf6, 0x83, 0x08, 0x01, 0, 0, 1];
        assert_eq!(found(&tested), Some(0x108));
        // movzx eax, byte [rbx+0x110]; test al, 1
        let loaded = [0x0f, 0xb6, 0x83, 0x10, 0x01, 0, 0, 0xa8, 1];
        assert_eq!(found(&loaded), Some(0x110));
    }

    #[test]
    fn finds_the_registers_of_a_generator_and_of_its_caller() {
        // mov [rbp+0xe8], r13; mov [rbx+0xe8], r13; mov [rbp+0xe8], rax; mov [rsp+0xe8], r13
        let [first, second] = [[0x4c, 0x89, 0xad, 0xe8, 0, 0, 0], [0x4c, 0x89, 0xab, 0xe8, 0, 0, 0]];
        let (lost, local) = ([0x48, 0x89, 0x85, 0xe8, 0, 0, 0], [0x4c, 0x89, 0xac, 0x24, 0xe8, 0, 0, 0]);
        let found = |stores: &[&[u8]]| find_resume_registers(&stores.concat(), 0xe8);
        assert_eq!(found(&[&local, &first, &first]), Some(5 | 3 << 4));
        assert_eq!(found(&[&first, &second]), None);
        assert_eq!(found(&[&lost]), None);
        assert_eq!(found(&[&local]), None);
    }

    #[test]
    fn does_not_guess() {
        for (code, why) in [
            (&[0xf6, 0x83, 0x08, 0x01, 0, 0, 8][..], "another flag"),
            (&[0xf6, 0x43, 0x38, 1], "before what precedes the flags"),
            (&[0x0f, 0xb6, 0x83, 0x10, 0x01, 0, 0, 0x31, 0xc0, 0xa8, 1], "movzx eax, …; xor eax, eax; test al, 1"),
            (&[0x0f, 0xb6, 0x83, 0x10, 0x01, 0, 0, 0xf6, 0xc1, 1], "movzx eax, …; test cl, 1"),
            (&[0xf6, 0x83, 0x08], "the end"),
        ] {
            assert_eq!(find_generator_flags(code, 256), None, "{why}");
        }
    }
}
