//! Steps the frames that framehop cannot step, by the rules of DWARF 5, section 6.4.
//!
//! Such a frame may need a register that framehop does not follow. The frames below it tell its value: either one of
//! them has saved the register, or none has changed it.

use addr2line::gimli::{self, CfaRule, EhFrame, Expression, Location, RegisterRule, UnwindContext, Value};

use super::arch::{Architecture, StepOutcome};
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
}

/// The registers of a caller.
struct Caller {
    ip: u64,
    sp: u64,
    fp: u64,
}

impl<'f, 's, A: Architecture> CfiStepper<'f, 's, A> {
    pub(super) fn new(regs: &'f mut A::Regs, read_register: ReadRegister<'f>, stack: &'f mut Stack<'s>) -> Self {
        Self { regs, read_register, stack }
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
        let fp = self.recover(&frame, row.register(A::FP))?;
        if ip == Recovered::Undefined {
            return Some(None);
        }
        let ip = ip.unwrap_or(A::get(self.regs, A::RA)?);
        // The stack pointer of the caller is the CFA unless a rule says otherwise.
        let (sp, fp) = (sp.unwrap_or(cfa), fp.unwrap_or(A::get(self.regs, A::FP)?));
        let has_moved = sp != A::get(self.regs, A::SP)? || Some(ip) != A::get(self.regs, A::RA);
        has_moved.then_some(Some(Caller { ip, sp, fp }))
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
