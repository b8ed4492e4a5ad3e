//! Frames that framehop cannot step: signal frames, and functions that realign their stack. Their frame address is not a
//! register and an offset but an expression that reads memory (`DW_CFA_def_cfa_expression`), or an offset from a
//! register that framehop does not follow.
//!
//! They are few (5 in glibc, 84 in OpenSSL, 16 in rustc), so an object's unwind information is searched for them once,
//! and frames in them are stepped here by the letter of DWARF 5, section 6.4. What a register that framehop does not follow
//! held in such a frame is told by the frames below it: one of them has saved it, or nobody touched it.

use std::ops::Range;

use addr2line::gimli::{
    self, BaseAddresses, CallFrameInstruction, CfaRule, CommonInformationEntry, EhFrame, EhFrameHdr, EndianSlice,
    Expression, LittleEndian, Location, RegisterRule, UnwindContext, UnwindSection as _, Value,
};

use super::arch::{Architecture, Unwound};
use super::module::Section;
use super::stack::Stack;
use crate::perf::event::Address;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The frames of an object that need this.
#[derive(Clone, Debug, Default)]
pub struct SpecialFrames {
    eh_frame: Section,
    /// Where the entry of any function is, in order (`.eh_frame_hdr`).
    index: Section,
    bases: BaseAddresses,
    frames: Vec<SpecialFrame>,
}

/// A function that needs this.
#[derive(Clone, Copy, Debug)]
pub struct SpecialFrame {
    start: u64,
    end: u64,
    fde: usize,
    is_signal: bool,
}

impl SpecialFrame {
    /// Whether it is the frame to which a signal handler returns: the kernel put it there, and nobody called it.
    pub fn is_signal(&self) -> bool {
        self.is_signal
    }
}

/// `DW_OP_deref`.
const DEREF: u8 = 0x06;

impl SpecialFrames {
    /// Searches the `.eh_frame` section that stands at an address.
    pub(super) fn scan(address: u64, section: &Section, text: u64) -> Self {
        Self::select(address, section, text, false)
    }

    /// All frames of an `.eh_frame` section that stands at an address.
    pub fn all(address: u64, eh_frame: Vec<u8>, text: u64) -> Self {
        Self::select(address, &Section::Own(eh_frame.into()), text, true)
    }

    fn select(address: u64, section: &Section, text: u64, all: bool) -> Self {
        let bases = BaseAddresses::default().set_eh_frame(address).set_text(text);
        let eh_frame = EhFrame::new(section, LittleEndian);
        let (mut frames, mut shared) = (Vec::new(), None::<(usize, CommonInformationEntry<_>)>);
        for (entry, common) in entries(section) {
            // Nearly all have the same common part.
            if shared.as_ref().is_none_or(|(at, _)| *at != common) {
                shared = eh_frame.cie_from_offset(&bases, common.into()).ok().map(|cie| (common, cie));
            }
            let Some((_, cie)) = &shared else { continue };
            let is_signal = cie.is_signal_trampoline();
            if !all && !is_signal && !may_need_this(&section[entry.clone()], cie) {
                continue;
            }
            let known = |_: &EhFrame<_>, _: &BaseAddresses, _| Ok(CommonInformationEntry::clone(cie));
            let Ok(fde) = eh_frame.fde_from_offset(&bases, entry.start.into(), known) else { continue };
            if all || is_signal || needs_this(&eh_frame, &bases, &fde) {
                let (start, end) = (fde.initial_address(), fde.end_address());
                frames.push(SpecialFrame { start, end, fde: entry.start, is_signal });
            }
        }
        frames.sort_unstable_by_key(|frame| frame.start);
        Self { eh_frame: section.clone(), index: Section::default(), bases, frames }
    }

    /// With the `.eh_frame_hdr` section that stands at an address.
    pub(super) fn with_index(self, address: u64, index: Section) -> Self {
        Self { index, bases: self.bases.set_eh_frame_hdr(address), ..self }
    }

    /// How far from its frame address the code at an address has saved a register: `Some(None)` if it left that alone.
    pub(super) fn saves(&self, register: gimli::Register, address: u64) -> Option<Option<i64>> {
        let header = EhFrameHdr::new(&self.index, LittleEndian).parse(&self.bases, 8).ok()?;
        let (eh_frame, mut context) = (EhFrame::new(&self.eh_frame, LittleEndian), UnwindContext::new());
        let cie = EhFrame::cie_from_offset;
        let row = header.table()?.unwind_info_for_address(&eh_frame, &self.bases, &mut context, address, cie).ok()?;
        match row.register(register) {
            None | Some(RegisterRule::SameValue) => Some(None),
            Some(RegisterRule::Offset(offset)) => Some(Some(offset)),
            Some(_) => None,
        }
    }

    /// The frame that holds an address.
    pub fn find(&self, address: u64) -> Option<SpecialFrame> {
        let after = self.frames.partition_point(|frame| frame.start <= address);
        let frame = *self.frames.get(after.checked_sub(1)?)?;
        (address < frame.end).then_some(frame)
    }

    /// Steps to the caller of the code at an address. `other` tells what framehop does not follow.
    pub(super) fn step<A: Architecture>(
        &self,
        frame: SpecialFrame,
        address: u64,
        regs: &mut A::Regs,
        other: OtherRegister<'_>,
        stack: &mut Stack<'_>,
    ) -> Unwound {
        let mut frame_of = FrameState::<A> { regs, other, stack };
        match frame_of.caller(self, frame, address) {
            Some(Some(caller)) => Unwound::Caller(Address { value: caller, in_kernel: false, exact: frame.is_signal }),
            Some(None) => Unwound::Root,
            None if stack.missed_above() => Unwound::Unreadable,
            None => Unwound::Lost,
        }
    }
}

/// The functions' entries of an `.eh_frame` section, each with the place of its common part: a length, of 4 bytes or of 8
/// behind 4 set ones, then how far back the common part begins, which itself has 0 there.
fn entries(section: &[u8]) -> impl Iterator<Item = (Range<usize>, usize)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        loop {
            let start = next;
            let (body, length) = match number(section, start, 4)? {
                0xffff_ffff => (start + 12, number(section, start + 4, 8)?),
                length => (start + 4, length),
            };
            next = body.checked_add(length)?;
            if length < 4 {
                continue;
            }
            let back = number(section, body, 4)?;
            if back > 0 && next <= section.len() {
                return Some((start..next, body.checked_sub(back)?));
            }
        }
    })
}

/// A number of so many bytes.
fn number(section: &[u8], at: usize, size: usize) -> Option<usize> {
    let mut bytes = [0; 8];
    bytes[..size].copy_from_slice(section.get(at..at.checked_add(size)?)?);
    usize::try_from(u64::from_le_bytes(bytes)).ok()
}

/// Whether any byte of an entry may be an instruction that makes it need this: most have none, and are read no further.
fn may_need_this(entry: &[u8], cie: &CommonInformationEntry<Slice<'_>>) -> bool {
    use gimli::constants::{
        DW_CFA_def_cfa, DW_CFA_def_cfa_expression, DW_CFA_def_cfa_register, DW_CFA_def_cfa_sf, DW_EH_PE_sdata4,
    };
    // Behind its length and the place of the common part, and behind the function's place and size if these are short.
    let is_short = cie.fde_address_encoding().is_some_and(|encoding| encoding.format() == DW_EH_PE_sdata4);
    let instructions = entry.get(if is_short { 16 } else { 8 }..).unwrap_or_default();
    memchr::memchr3(DW_CFA_def_cfa.0, DW_CFA_def_cfa_expression.0, DW_CFA_def_cfa_register.0, instructions)
        .or_else(|| memchr::memchr(DW_CFA_def_cfa_sf.0, instructions))
        .is_some()
}

fn needs_this(
    eh_frame: &EhFrame<Slice<'_>>,
    bases: &BaseAddresses,
    fde: &gimli::FrameDescriptionEntry<Slice<'_>>,
) -> bool {
    let mut instructions = fde.instructions(eh_frame, bases);
    while let Ok(Some(instruction)) = instructions.next() {
        let special = match instruction {
            CallFrameInstruction::DefCfaExpression { expression } => {
                expression.get(eh_frame).is_ok_and(|expression| expression.0.slice().contains(&DEREF))
            }
            CallFrameInstruction::DefCfa { register, .. }
            | CallFrameInstruction::DefCfaSf { register, .. }
            | CallFrameInstruction::DefCfaRegister { register } => !is_followed(register),
            _ => false,
        };
        if special {
            return true;
        }
    }
    false
}

/// Whether framehop follows a register: stack or frame pointer of either architecture.
fn is_followed(register: gimli::Register) -> bool {
    use gimli::{AArch64, X86_64};
    let followed = if cfg!(target_arch = "aarch64") { [AArch64::SP, AArch64::X29] } else { [X86_64::RSP, X86_64::RBP] };
    followed.contains(&register)
}

/// What a register holds that framehop does not follow, in the frame that is being stepped.
pub(super) type OtherRegister<'a> = &'a dyn Fn(gimli::Register, &mut Stack<'_>) -> Option<u64>;

/// A frame that is being stepped.
struct FrameState<'f, 's, A: Architecture> {
    regs: &'f mut A::Regs,
    other: OtherRegister<'f>,
    stack: &'f mut Stack<'s>,
}

impl<A: Architecture> FrameState<'_, '_, A> {
    /// Moves to the caller and tells its address; `Some(None)` if there is none, `None` if that cannot be told.
    fn caller(&mut self, frames: &SpecialFrames, frame: SpecialFrame, address: u64) -> Option<Option<u64>> {
        let eh_frame = EhFrame::new(&frames.eh_frame, LittleEndian);
        let fde = eh_frame.fde_from_offset(&frames.bases, frame.fde.into(), EhFrame::cie_from_offset).ok()?;
        let encoding = fde.cie().encoding();
        let mut context = UnwindContext::new();
        let row = fde.unwind_info_for_address(&eh_frame, &frames.bases, &mut context, address).ok()?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => self.get(*register)?.wrapping_add_signed(*offset),
            CfaRule::Expression(expression) => self.evaluate(expression.get(&eh_frame).ok()?, encoding, None)?,
        };
        let mut recover = |register| match row.register(register) {
            None | Some(RegisterRule::SameValue) => Some(Recovered::Same),
            Some(RegisterRule::Undefined) => Some(Recovered::Undefined),
            Some(RegisterRule::Offset(offset)) => {
                self.stack.read(cfa.wrapping_add_signed(offset)).map(Recovered::Value)
            }
            Some(RegisterRule::ValOffset(offset)) => Some(Recovered::Value(cfa.wrapping_add_signed(offset))),
            Some(RegisterRule::Register(other)) => self.get(other).map(Recovered::Value),
            Some(RegisterRule::Expression(expression)) => {
                let place = self.evaluate(expression.get(&eh_frame).ok()?, encoding, Some(cfa))?;
                self.stack.read(place).map(Recovered::Value)
            }
            Some(RegisterRule::ValExpression(expression)) => {
                self.evaluate(expression.get(&eh_frame).ok()?, encoding, Some(cfa)).map(Recovered::Value)
            }
            Some(_) => None,
        };
        let (ip, sp, fp) = (recover(A::RA)?, recover(A::SP)?, recover(A::FP)?);
        let ip = match ip {
            Recovered::Undefined => return Some(None),
            other => other.or(A::get(self.regs, A::RA)?),
        };
        let (sp, fp) = (if sp == Recovered::Same { cfa } else { sp.or(cfa) }, fp.or(A::get(self.regs, A::FP)?));
        if sp == A::get(self.regs, A::SP)? && Some(ip) == A::get(self.regs, A::RA) {
            return None;
        }
        A::set(self.regs, ip, sp, fp);
        Some((ip != 0).then_some(ip))
    }

    fn get(&mut self, register: gimli::Register) -> Option<u64> {
        A::get(self.regs, register).or_else(|| (self.other)(register, self.stack))
    }

    fn evaluate(
        &mut self,
        expression: Expression<Slice<'_>>,
        encoding: gimli::Encoding,
        initial: Option<u64>,
    ) -> Option<u64> {
        let mut evaluation = expression.evaluation(encoding);
        evaluation.set_max_iterations(1000);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                gimli::EvaluationResult::Complete => break,
                gimli::EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.get(register)?)).ok()?
                }
                gimli::EvaluationResult::RequiresMemory { address, .. } => {
                    evaluation.resume_with_memory(Value::Generic(self.stack.read(address)?)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result().last()?.location {
            Location::Address { address } => Some(address),
            _ => None,
        }
    }
}

/// What is known of a caller's register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovered {
    Same,
    Undefined,
    Value(u64),
}

impl Recovered {
    fn or(self, other: u64) -> u64 {
        match self {
            Self::Value(value) => value,
            Self::Same | Self::Undefined => other,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use gimli::CieOrFde;
    use object::{Object as _, ObjectSection as _};

    use super::*;

    #[test]
    fn the_quick_look_passes_over_no_frame_that_needs_this() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut files: Vec<&str> = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).collect();
        files.dedup();
        let mut found = 0;
        for bytes in files.iter().filter_map(|file| std::fs::read(file).ok()) {
            let Ok(file) = object::File::parse(&*bytes) else { continue };
            let Some(section) = file.section_by_name(".eh_frame") else { continue };
            let bases = BaseAddresses::default().set_eh_frame(section.address());
            let section = Section::Own(section.uncompressed_data().unwrap().into());
            let eh_frame = EhFrame::new(&section, LittleEndian);
            let mut ours = entries(&section).map(|(entry, _)| entry);
            let mut theirs = eh_frame.entries(&bases);
            while let Ok(Some(entry)) = theirs.next() {
                let CieOrFde::Fde(partial) = entry else { continue };
                let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
                let entry = ours.next().unwrap();
                assert_eq!(entry.start, fde.offset());
                if needs_this(&eh_frame, &bases, &fde) {
                    assert!(may_need_this(&section[entry], fde.cie()), "{:x}", fde.initial_address());
                    found += 1;
                }
            }
            assert_eq!(ours.next(), None);
        }
        // The frame to which signal handlers return is one.
        assert!(found > 0 || !maps.contains("/libc.so.6"));
    }
}
