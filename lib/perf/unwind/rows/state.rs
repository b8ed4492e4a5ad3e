//! What the call frame information says at an address of a function, as far as rules can express it.

use addr2line::gimli::{
    self, BaseAddresses, CallFrameInstruction, CommonInformationEntry, EhFrame, UnwindExpression, X86_64,
};

use super::{kind, rule};
use crate::perf::cfi::Slice;

/// How the CFA of a frame is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cfa {
    Unknown,
    Register(gimli::Register, i64),
    /// The word at an offset from the frame pointer: frames that realign the stack.
    Deref(i64),
    /// Entries of a procedure linkage table: each pushes a word at this byte.
    Plt {
        boundary: u8,
    },
}

/// Where the return address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReturnAddress {
    /// Right below the CFA, where the program reads it.
    BelowCfa,
    /// The function has no caller.
    Undefined,
    Elsewhere,
}

/// What holds at an address of a function, as far as rules can express it.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) cfa: Cfa,
    /// The place of the saved frame pointer, in bytes from the CFA; 0 if it is not saved.
    saved: i64,
    /// True if the stack pointer and the frame pointer are found by rules that we know.
    is_known: bool,
    return_address: ReturnAddress,
    pub(super) code_alignment: u64,
    data_alignment: i64,
}

impl State {
    /// Returns the state at the start of all functions of a CIE.
    pub(super) fn initial(
        eh_frame: &EhFrame<Slice<'_>>,
        bases: &BaseAddresses,
        cie: &CommonInformationEntry<Slice<'_>>,
    ) -> Option<Self> {
        let mut state = Self {
            cfa: Cfa::Unknown,
            saved: 0,
            is_known: cie.return_address_register() == X86_64::RA,
            return_address: ReturnAddress::Elsewhere,
            code_alignment: cie.code_alignment_factor(),
            data_alignment: cie.data_alignment_factor(),
        };
        let before = state;
        let mut instructions = cie.instructions(eh_frame, bases);
        while let Some(instruction) = instructions.next().ok()? {
            state.apply(&instruction, &before, eh_frame);
        }
        Some(state)
    }

    /// Applies an instruction that does not change the address.
    pub(super) fn apply(
        &mut self,
        instruction: &CallFrameInstruction<usize>,
        initial: &Self,
        eh_frame: &EhFrame<Slice<'_>>,
    ) {
        use CallFrameInstruction as I;
        match *instruction {
            I::DefCfa { register, offset } => self.cfa = Cfa::Register(register, offset.cast_signed()),
            I::DefCfaSf { register, factored_offset } => {
                self.cfa = Cfa::Register(register, factored_offset.wrapping_mul(self.data_alignment));
            }
            I::DefCfaRegister { register } => {
                self.cfa = if let Cfa::Register(_, offset) = self.cfa {
                    Cfa::Register(register, offset)
                } else {
                    Cfa::Unknown
                };
            }
            I::DefCfaOffset { offset } => self.set_offset(offset.cast_signed()),
            I::DefCfaOffsetSf { factored_offset } => self.set_offset(factored_offset.wrapping_mul(self.data_alignment)),
            I::DefCfaExpression { expression } => self.cfa = parse_cfa_expression(expression, eh_frame),
            I::Offset { register, factored_offset } => {
                self.set_saved(register, factored_offset.cast_signed().wrapping_mul(self.data_alignment));
            }
            I::OffsetExtendedSf { register, factored_offset } => {
                self.set_saved(register, factored_offset.wrapping_mul(self.data_alignment));
            }
            I::Restore { register: X86_64::RBP } => self.saved = initial.saved,
            I::Restore { register: X86_64::RA } => self.return_address = initial.return_address,
            I::Undefined { register: X86_64::RA } => self.return_address = ReturnAddress::Undefined,
            I::Register { dest_register: X86_64::RA, .. }
            | I::Expression { register: X86_64::RA, .. }
            | I::ValExpression { register: X86_64::RA, .. }
            | I::ValOffset { register: X86_64::RA, .. }
            | I::ValOffsetSf { register: X86_64::RA, .. }
            | I::SameValue { register: X86_64::RA } => self.return_address = ReturnAddress::Elsewhere,
            I::Undefined { register: X86_64::RBP } | I::SameValue { register: X86_64::RBP } => self.saved = 0,
            I::Register { dest_register: X86_64::RBP | X86_64::RSP, .. }
            | I::Expression { register: X86_64::RBP | X86_64::RSP, .. }
            | I::ValExpression { register: X86_64::RBP | X86_64::RSP, .. }
            | I::ValOffset { register: X86_64::RBP | X86_64::RSP, .. }
            | I::ValOffsetSf { register: X86_64::RBP | X86_64::RSP, .. } => self.is_known = false,
            _ => {}
        }
    }

    /// True if addresses advance by bytes, and registers are saved in words below the CFA.
    pub(super) fn has_usual_units(&self) -> bool {
        self.code_alignment == 1 && self.data_alignment == -8
    }

    fn set_offset(&mut self, offset: i64) {
        self.cfa =
            if let Cfa::Register(register, _) = self.cfa { Cfa::Register(register, offset) } else { Cfa::Unknown };
    }

    fn set_saved(&mut self, register: gimli::Register, offset: i64) {
        match register {
            X86_64::RBP => self.saved = offset,
            X86_64::RA if offset == -8 => self.return_address = ReturnAddress::BelowCfa,
            X86_64::RA => self.return_address = ReturnAddress::Elsewhere,
            X86_64::RSP => self.is_known = false,
            _ => {}
        }
    }

    /// Returns the place of the saved frame pointer in words from the CFA, as rules have it.
    pub(super) fn saved_word(&self) -> i16 {
        i16::try_from(self.saved / 8).unwrap_or(0)
    }

    /// Returns the rule of the state; 0 if it cannot be expressed.
    pub(super) fn rule(&self) -> u64 {
        match self.return_address {
            ReturnAddress::BelowCfa => {}
            ReturnAddress::Undefined => return rule(kind::ROOT, 0, 0),
            ReturnAddress::Elsewhere => return 0,
        }
        if !self.is_known || self.saved % 8 != 0 || i16::try_from(self.saved / 8).is_err() {
            return 0;
        }
        let (kind, offset) = match self.cfa {
            Cfa::Register(X86_64::RSP, offset) => (kind::STACK_POINTER, offset),
            Cfa::Register(X86_64::RBP, offset) => (kind::FRAME_POINTER, offset),
            Cfa::Deref(offset) => (kind::DEREF, -offset),
            _ => return 0,
        };
        u32::try_from(offset).map_or(0, |offset| rule(kind, offset, self.saved_word()))
    }
}

/// Recognizes the two expressions of a CFA that are common: a word below the frame pointer, and that of procedure
/// linkage tables, `rsp + 8 + ((rip & 15) >= boundary) * 8`.
fn parse_cfa_expression(expression: UnwindExpression<usize>, eh_frame: &EhFrame<Slice<'_>>) -> Cfa {
    let Ok(expression) = expression.get(eh_frame) else { return Cfa::Unknown };
    match *expression.0.slice() {
        // DW_OP_breg6 (rbp) with an offset of one signed byte of LEB128, DW_OP_deref.
        [0x76, offset, 0x06] if offset & 0x80 == 0 => Cfa::Deref(i64::from((offset << 1).cast_signed() >> 1)),
        [0x77, 8, 0x80, 0, 0x3f, 0x1a, boundary @ 0x30..=0x3f, 0x2a, 0x33, 0x24, 0x22] => {
            Cfa::Plt { boundary: boundary - 0x30 }
        }
        _ => Cfa::Unknown,
    }
}
