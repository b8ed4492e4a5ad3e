//! Steps the frames that framehop cannot step, by the rules of DWARF 5, section 6.4.
//!
//! Such a frame may need a register that framehop does not follow. The frames below it tell its value: either one of
//! them has saved the register, or none has changed it.
//!
//! One rule of frames that GCC has realigned is false from the instruction that pops the frame pointer on: it says up to the return
//! that the caller's frame pointer is the word that the frame pointer points to. That is a word of the caller by then, and its frame
//! would be left out. So such a rule counts only if the code writes the frame pointer before it leaves the function.

use addr2line::gimli::{
    self, CfaRule, EhFrame, Expression, FrameDescriptionEntry, Location, RegisterRule, UnwindContext, Value,
};

use super::arch::{Architecture, StepOutcome};
use super::code_paths::find_end_with_frame_pointer;
use super::stack::Stack;
use crate::perf::cfi::{CfiEntry, CfiTable, Slice};
use crate::perf::event::Address;

/// Returns the value of a register that framehop does not follow, in the frame that is being stepped.
pub(super) type ReadRegister<'a> = &'a dyn Fn(gimli::Register, &mut Stack<'_>) -> Option<u64>;

/// The frame that is being stepped.
pub(super) struct CfiStepper<'f, 's, A: Architecture> {
    regs: &'f mut A::Regs,
    read_register: ReadRegister<'f>,
    stack: &'f mut Stack<'s>,
    /// The code from the interrupted instruction on; empty if it is not known, or has called the frame below.
    interrupted: &'f [u8],
}

/// The registers of a caller.
struct Caller {
    ip: u64,
    sp: u64,
    fp: u64,
}

impl<'f, 's, A: Architecture> CfiStepper<'f, 's, A> {
    pub(super) fn new(regs: &'f mut A::Regs, read_register: ReadRegister<'f>, stack: &'f mut Stack<'s>) -> Self {
        Self { regs, read_register, stack, interrupted: &[] }
    }

    /// Says what the code is from the interrupted instruction on.
    pub(super) fn with_interrupted(self, interrupted: &'f [u8]) -> Self {
        Self { interrupted, ..self }
    }

    /// Steps from the code at `address`, which `entry` of `table` covers, to its caller.
    pub(super) fn step(mut self, table: &CfiTable, entry: CfiEntry, address: u64) -> StepOutcome {
        let Some(caller) = self.recover_caller(table, entry, address) else {
            return if self.stack.has_passed_end() { StepOutcome::Unreadable } else { StepOutcome::Failed };
        };
        let Some(Caller { ip, sp, fp }) = caller else { return StepOutcome::Root };
        A::set(self.regs, ip, sp, fp);
        match ip {
            // Nothing called what a signal interrupts at 0: a null pointer was called.
            0 if !entry.is_signal() => StepOutcome::Root,
            _ => StepOutcome::Caller(Address { value: ip, in_kernel: false, exact: entry.is_signal() }),
        }
    }

    /// Recovers the registers of the caller.
    ///
    /// `Some(None)` if the frame is the outermost; `None` if the registers are unknown, or the step would not move.
    fn recover_caller(&mut self, table: &CfiTable, entry: CfiEntry, address: u64) -> Option<Option<Caller>> {
        let eh_frame = table.eh_frame();
        let fde = table.parse_fde(entry)?;
        let encoding = fde.cie().encoding();
        let mut context = UnwindContext::new();
        let row = fde.unwind_info_for_address(&eh_frame, table.bases(), &mut context, address).ok()?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => self.read(*register)?.wrapping_add_signed(*offset),
            CfaRule::Expression(expression) => self.evaluate(expression.get(&eh_frame).ok()?, encoding, None)?,
        };
        let frame = FrameBase { eh_frame: &eh_frame, encoding, cfa };
        let ip = self.recover(&frame, row.register(A::RA))?;
        let sp = self.recover(&frame, row.register(A::SP))?;
        let fp = match row.register(A::FP) {
            Some(RegisterRule::Expression(_)) if self.has_restored_fp(table, &fde, address) => Recovered::Unchanged,
            rule => self.recover(&frame, rule)?,
        };
        if ip == Recovered::Undefined {
            return Some(None);
        }
        let ip = ip.unwrap_or(A::get(self.regs, A::RA)?);
        // The stack pointer of the caller is the CFA unless a rule says otherwise.
        let (sp, fp) = (sp.unwrap_or(cfa), fp.unwrap_or(A::get(self.regs, A::FP)?));
        let has_moved = sp != A::get(self.regs, A::SP)? || Some(ip) != A::get(self.regs, A::RA);
        has_moved.then_some(Some(Caller { ip, sp, fp }))
    }

    /// True if the frame pointer is that of the caller again: from here on the code does not write it before it leaves the function,
    /// where the stack pointer is at the return address.
    fn has_restored_fp(&self, table: &CfiTable, fde: &FrameDescriptionEntry<Slice<'_>>, address: u64) -> bool {
        let Some(end) = find_end_with_frame_pointer(self.interrupted, address) else { return false };
        let mut context = UnwindContext::new();
        let row = fde.unwind_info_for_address(&table.eh_frame(), table.bases(), &mut context, end);
        let return_address = CfaRule::RegisterAndOffset { register: A::SP, offset: 8 };
        row.is_ok_and(|row| *row.cfa() == return_address)
    }

    /// Applies the rule by which a register of the caller is recovered.
    fn recover(&mut self, frame: &FrameBase<'_>, rule: Option<RegisterRule<usize>>) -> Option<Recovered> {
        match rule {
            None | Some(RegisterRule::SameValue) => Some(Recovered::Unchanged),
            Some(RegisterRule::Undefined) => Some(Recovered::Undefined),
            Some(RegisterRule::Offset(offset)) => {
                self.stack.read(frame.cfa.wrapping_add_signed(offset)).map(Recovered::Value)
            }
            Some(RegisterRule::ValOffset(offset)) => Some(Recovered::Value(frame.cfa.wrapping_add_signed(offset))),
            Some(RegisterRule::Register(other)) => self.read(other).map(Recovered::Value),
            Some(RegisterRule::Expression(rule)) => {
                let address = self.evaluate(rule.get(frame.eh_frame).ok()?, frame.encoding, Some(frame.cfa))?;
                self.stack.read(address).map(Recovered::Value)
            }
            Some(RegisterRule::ValExpression(rule)) => {
                self.evaluate(rule.get(frame.eh_frame).ok()?, frame.encoding, Some(frame.cfa)).map(Recovered::Value)
            }
            Some(_) => None,
        }
    }

    /// Reads a register of the frame that is being stepped.
    fn read(&mut self, register: gimli::Register) -> Option<u64> {
        A::get(self.regs, register).or_else(|| (self.read_register)(register, self.stack))
    }

    /// Evaluates a DWARF expression whose stack starts with `initial`.
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
                    evaluation.resume_with_register(Value::Generic(self.read(register)?)).ok()?
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

/// The frame to which the rules of a row refer.
struct FrameBase<'a> {
    eh_frame: &'a EhFrame<Slice<'a>>,
    encoding: gimli::Encoding,
    cfa: u64,
}

/// The result of a rule for a register of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovered {
    Unchanged,
    Undefined,
    Value(u64),
}

impl Recovered {
    fn unwrap_or(self, other: u64) -> u64 {
        match self {
            Self::Value(value) => value,
            Self::Unchanged | Self::Undefined => other,
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use addr2line::gimli::Register;

    use super::*;
    use crate::perf::unwind::native::Native;

    /// The address of the function.
    const START: u64 = 0x1000;

    /// lea 8(%rsp), %r10; and $-64, %rsp; push -8(%r10); push %rbp; mov %rsp, %rbp; push %r10; mov -8(%rbp), %r10; leave;
    /// lea -8(%r10), %rsp; ret
    const CODE: [u8; 29] = [
        0x4c, 0x8d, 0x54, 0x24, 0x08, 0x48, 0x83, 0xe4, 0xc0, 0x41, 0xff, 0x72, 0xf8, 0x55, 0x48, 0x89, 0xe5, 0x41,
        0x52, 0x4c, 0x8b, 0x55, 0xf8, 0xc9, 0x49, 0x8d, 0x62, 0xf8, 0xc3,
    ];

    /// Offsets of the last three instructions.
    const LEAVE: usize = 23;
    const LEA: usize = 24;
    const RET: usize = 28;

    /// Returns what GCC 12 says of the function: the CFA is rsp + 8 (and the return address below it), behind `lea` r10, behind
    /// `push %r10` the word at rbp - 8, behind `mov` r10, and at the end rsp + 8. From `mov %rsp, %rbp` on, rbp is at rbp + 0.
    fn table() -> CfiTable {
        let cie = [&[0; 4][..], &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0]].concat();
        let instructions = [
            &[0x45, 0x0c, 10, 0, 0x4c, 0x10, 6, 2, 0x76, 0][..],
            &[0x42, 0x0f, 3, 0x76, 0x78, 6, 0x44, 0x0c, 10, 0, 0x45, 0x0c, 7, 8],
        ]
        .concat();
        let distance = (4 + cie.len() + 4) as u32;
        let fde =
            [&distance.to_le_bytes()[..], &START.to_le_bytes(), &(CODE.len() as u64).to_le_bytes(), &instructions]
                .concat();
        let entries = [cie, fde].map(|entry| [&(entry.len() as u32).to_le_bytes()[..], &entry].concat());
        CfiTable::read_all(0x10_0000, entries.concat(), 0)
    }

    /// Steps from an instruction of the function, at which the registers have these values, and returns the caller's
    /// instruction pointer, stack pointer and frame pointer. `interrupted` is what is known of the code from there on.
    fn step(offset: usize, sp: u64, fp: u64, interrupted: &[u8]) -> [Option<u64>; 3] {
        let words: [u64; 10] = [0x8040, 0x8048, 0x5000, 0, 0, 0, 0, 0x5000, 0, 0xbad];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let (table, mut stack) = (table(), Stack::from_copy(0x8000, &bytes));
        let mut regs = framehop::x86_64::UnwindRegsX86_64::new(START + offset as u64, sp, fp);
        let read = |register, _: &mut Stack<'_>| (register == Register(10)).then_some(0x8040);
        let stepper = CfiStepper::<Native>::new(&mut regs, &read, &mut stack).with_interrupted(interrupted);
        let outcome = stepper.step(&table, table.find(START).unwrap(), START + offset as u64);
        assert!(matches!(outcome, StepOutcome::Caller(Address { value: 0x5000, .. })), "{outcome:?}");
        [Native::RA, Native::SP, Native::FP].map(|register| Native::get(&regs, register))
    }

    #[test]
    fn a_realigned_frame_has_the_callers_frame_pointer_up_to_its_return() {
        let caller = [0x5000, 0x8040, 0x8048].map(Some);
        assert_eq!(step(LEAVE, 0x8000, 0x8008, &CODE[LEAVE..]), caller);
        assert_eq!(step(LEA, 0x8010, 0x8048, &CODE[LEA..]), caller);
        assert_eq!(step(RET, 0x8038, 0x8048, &CODE[RET..]), caller);
    }

    #[test]
    fn the_rule_of_a_frame_pointer_counts_if_the_code_goes_elsewhere() {
        let by_rule = [0x5000, 0x8040, 0xbad].map(Some);
        assert_eq!(step(LEA, 0x8010, 0x8048, &[]), by_rule, "what runs next is not known");
        assert_eq!(step(LEA, 0x8010, 0x8048, &[0xeb, 0]), by_rule, "jmp to code in the same frame");
        assert_eq!(step(LEA, 0x8010, 0x8048, &[0x5d, 0x90, 0x90, 0x90, 0xc3]), by_rule, "pop %rbp");
    }
}
