//! Frames that framehop cannot step: signal frames, and functions that realign their stack. Their frame address is not a
//! register and an offset but an expression that reads memory (`DW_CFA_def_cfa_expression`), or an offset from a
//! register that framehop does not follow.
//!
//! They are few (5 in glibc, 84 in OpenSSL, 16 in rustc), so an object's unwind information is searched for them once,
//! and frames in them are stepped here by the letter of DWARF 5, section 6.4.

use addr2line::gimli::{
    self, BaseAddresses, CallFrameInstruction, CfaRule, CieOrFde, CommonInformationEntry, EhFrame, EndianSlice,
    Expression, LittleEndian, Location, RegisterRule, UnwindContext, UnwindSection as _, Value,
};

use super::arch::{Architecture, Registers, Unwound};
use super::module::Section;
use super::stack::Stack;
use crate::perf::event::Address;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The frames of an object that need this.
#[derive(Clone, Debug, Default)]
pub struct SpecialFrames {
    eh_frame: Section,
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
        let (mut frames, mut shared) = (Vec::new(), None);
        let mut entries = eh_frame.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            // Nearly all have the same common part.
            let common = |eh_frame: &EhFrame<_>, bases: &_, offset| match &shared {
                Some((at, cie)) if *at == offset => Ok(CommonInformationEntry::clone(cie)),
                _ => Ok(shared.insert((offset, eh_frame.cie_from_offset(bases, offset)?)).1.clone()),
            };
            let Ok(fde) = partial.parse(common) else { continue };
            let is_signal = fde.cie().is_signal_trampoline();
            if all || is_signal || (may_need_this(section, &fde) && needs_this(&eh_frame, &bases, &fde)) {
                let (start, end) = (fde.initial_address(), fde.end_address());
                frames.push(SpecialFrame { start, end, fde: fde.offset(), is_signal });
            }
        }
        frames.sort_unstable_by_key(|frame| frame.start);
        Self { eh_frame: section.clone(), bases, frames }
    }

    /// The frame that holds an address.
    pub fn find(&self, address: u64) -> Option<SpecialFrame> {
        let after = self.frames.partition_point(|frame| frame.start <= address);
        let frame = *self.frames.get(after.checked_sub(1)?)?;
        (address < frame.end).then_some(frame)
    }

    /// Steps to the caller of the code at an address. `registers` are all of them, known only in the first frame.
    pub(super) fn step<A: Architecture>(
        &self,
        frame: SpecialFrame,
        address: u64,
        regs: &mut A::Regs,
        registers: Option<&Registers<'_>>,
        stack: &mut Stack<'_>,
    ) -> Unwound {
        let mut frame_of = FrameState::<A> { regs, registers, stack };
        match frame_of.caller(self, frame, address) {
            Some(Some(caller)) => Unwound::Caller(Address { value: caller, in_kernel: false, exact: frame.is_signal }),
            Some(None) => Unwound::Root,
            None if stack.missed_above() => Unwound::Unreadable,
            None => Unwound::Lost,
        }
    }
}

/// Whether any byte of an entry, which lies in a section, may be an instruction that makes it need this: most have none, and
/// are read no further.
fn may_need_this(section: &Section, fde: &gimli::FrameDescriptionEntry<Slice<'_>>) -> bool {
    use gimli::constants::{DW_CFA_def_cfa, DW_CFA_def_cfa_expression, DW_CFA_def_cfa_register, DW_CFA_def_cfa_sf};
    // Behind its length and the place of the common part; in the long format all is longer.
    let (start, end) = (fde.offset() + 8, fde.offset().saturating_add(fde.entry_len() + 12));
    let entry = section.get(start..end.min(section.len())).unwrap_or_default();
    entry.iter().any(|byte| {
        let instructions = [DW_CFA_def_cfa, DW_CFA_def_cfa_expression, DW_CFA_def_cfa_register, DW_CFA_def_cfa_sf];
        instructions.iter().any(|instruction| instruction.0 == *byte)
    })
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

/// A frame that is being stepped.
struct FrameState<'f, 's, 'r, A: Architecture> {
    regs: &'f mut A::Regs,
    registers: Option<&'f Registers<'r>>,
    stack: &'f mut Stack<'s>,
}

impl<A: Architecture> FrameState<'_, '_, '_, A> {
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

    fn get(&self, register: gimli::Register) -> Option<u64> {
        A::get(self.regs, register).or_else(|| self.registers?.get(A::bit(register)?))
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
            let mut entries = eh_frame.entries(&bases);
            while let Ok(Some(entry)) = entries.next() {
                let CieOrFde::Fde(partial) = entry else { continue };
                let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else { continue };
                if needs_this(&eh_frame, &bases, &fde) {
                    assert!(may_need_this(&section, &fde), "{:x}", fde.initial_address());
                    found += 1;
                }
            }
        }
        // The frame to which signal handlers return is one.
        assert!(found > 0 || !maps.contains("/libc.so.6"));
    }
}
