//! Walks a stack from its innermost frame to its root.

use addr2line::gimli;
use framehop::FrameAddress;

use super::Unwinder;
use super::after_syscall::Interrupted;
use super::arch::{Architecture, Registers, StepOutcome};
use super::cfi_stepper::CfiStepper;
use super::code::Code;
use super::frame::Frame;
use super::go;
use super::handlers::has_installed_handler;
use super::modules::UnwindInfo;
use super::native::Native;
use super::signal_return::{self, returns_from_signal};
use super::snapshot::ProcessSnapshot;
use super::stack::Stack;
use crate::perf::event::Address;
use crate::perf::objects::vsyscall::is_vsyscall;
use crate::perf::stop_reason::StopReason;

/// The registers that framehop follows.
type Regs = <Native as Architecture>::Regs;

impl Unwinder {
    /// Walks a stack from `ip` on, and appends its frames.
    pub(super) fn walk(
        &mut self,
        snapshot: ProcessSnapshot<'_>,
        ip: u64,
        regs: &mut Regs,
        registers: &Registers<'_>,
        stack: &mut Stack<'_>,
    ) -> StopReason {
        let mut address = Address { value: ip, in_kernel: false, exact: true };
        let mut mapping = snapshot.find_mapping(address);
        let mut interrupted = Some(Interrupted::in_sample(ip, registers));
        loop {
            let code = mapping.and_then(|mapping| Code::find(mapping, address.lookup(), snapshot.objects));
            let at_interrupt = code.as_ref().zip(interrupted.take());
            let after_creation = at_interrupt.as_ref().and_then(|(code, registers)| code.after_creation(registers));
            let at_syscall = at_interrupt.as_ref().and_then(|(code, registers)| code.at_syscall(registers));
            let at_syscall = at_syscall.filter(|_| mapping.is_some_and(|mapping| mapping.start < address.value));
            if at_interrupt
                .is_some_and(|(code, registers)| code.may_be_at_syscall(&registers) && self.begins_function(code))
            {
                return StopReason::NoUnwindInformation;
            }
            // Its name is that of the function that calls.
            let named = Address { exact: address.exact && at_syscall.is_none(), ..address };
            self.frames.push(Frame { address: named, mapping, stack_pointer: Native::stack_pointer(regs) });
            if self.frames.len() >= self.max_frames {
                return StopReason::TooDeep;
            }
            if let Some(code) = &code {
                // The registers of another architecture must not be taken for ours.
                if !Native::runs(code.elf.architecture()) {
                    return StopReason::NoUnwindInformation;
                }
                if code.is_entry_point() {
                    return StopReason::Root;
                }
            }
            let at_syscall =
                at_syscall.filter(|code| self.has_unwind_information(code) || returns_from_signal(code, code.svma));
            if let Some(start) = &after_creation
                && !self.has_unwind_information(start)
                && start.starts_thread()
            {
                return StopReason::Root;
            }
            let code = after_creation.or(at_syscall).or(code);
            let stack_pointer = Native::stack_pointer(regs);
            let next = match self.step(snapshot, address, code.as_ref(), regs, registers, stack) {
                StepOutcome::Root => return StopReason::Root,
                // The kernel interrupted this function, which runs on another stack than the handler.
                StepOutcome::Unreadable | StepOutcome::Failed
                    if address.exact && self.frames.len() > 1 && !stack.is_recorded_at(Native::stack_pointer(regs)) =>
                {
                    return StopReason::OtherStack;
                }
                StepOutcome::Unreadable => return StopReason::DumpTooSmall,
                StepOutcome::Overwritten => return StopReason::Overwritten,
                StepOutcome::Failed => return StopReason::NoUnwindInformation,
                StepOutcome::Caller(next) => next,
            };
            let same = mapping.filter(|mapping| (mapping.start..mapping.end).contains(&next.lookup()));
            let Some(next_mapping) = same.or_else(|| snapshot.find_mapping(next)) else {
                return StopReason::NoUnwindInformation;
            };
            if next.exact {
                let caller_sp = Native::stack_pointer(regs);
                interrupted = Interrupted::in_signal_frame(stack_pointer, next.value, caller_sp, stack);
            }
            (address, mapping) = (next, Some(next_mapping));
        }
    }

    /// Steps to the caller: with JIT unwind information, with the function table of a Go program, with the CFI of
    /// the object, with framehop, or by the code itself.
    fn step(
        &mut self,
        snapshot: ProcessSnapshot<'_>,
        address: Address,
        code: Option<&Code<'_>>,
        regs: &mut Regs,
        registers: &Registers<'_>,
        stack: &mut Stack<'_>,
    ) -> StepOutcome {
        let Some(code) = code else {
            if address.exact && Native::READS_CODE && is_vsyscall(address.value) {
                return step_vsyscall(regs, stack);
            }
            if let Some(cfi) = snapshot.find_jit_cfi(address.lookup())
                && let Some(entry) = cfi.find(address.lookup())
            {
                let read = |register, stack: &mut Stack<'_>| self.read_register(snapshot, register, registers, stack);
                return CfiStepper::<Native>::new(regs, &read, stack).step(cfi, entry, address.lookup());
            }
            // Without the process, generated code cannot be read: it is taken to keep frame pointers.
            return match Native::READS_CODE && snapshot.running.is_some() {
                true => self.step_bare_code(snapshot, address, None, regs, registers, stack),
                false => self.step_with_framehop(None, address, regs, stack),
            };
        };
        self.modules.load(code);
        if let Some(rule) = self.modules.find_go_rule(code) {
            let read = |register, stack: &mut Stack<'_>| self.read_register(snapshot, register, registers, stack);
            return go::step::<Native>(rule, regs, &read, stack);
        }
        if Native::READS_CODE && !self.modules.is_covered(code) {
            if returns_from_signal(code, code.svma + u64::from(!address.exact)) {
                if let Some(frame) = self.frames.last_mut().filter(|_| !address.exact) {
                    frame.address.exact = true;
                }
                return signal_return::step(regs, stack);
            }
            return self.step_bare_code(snapshot, address, Some(code), regs, registers, stack);
        }
        let Some(UnwindInfo::Loaded { base, cfi, .. }) = self.modules.get(code) else {
            return self.step_with_framehop(None, address, regs, stack);
        };
        if let Some(entry) = cfi.find(code.svma) {
            if Native::READS_CODE && has_installed_handler(code, cfi, entry) {
                return StepOutcome::Overwritten;
            }
            let read = |register, stack: &mut Stack<'_>| self.read_register(snapshot, register, registers, stack);
            let reads_code = address.exact && Native::READS_CODE;
            let interrupted = if reads_code { code.elf.code_from(code.svma) } else { &[] };
            let stepper = CfiStepper::<Native>::new(regs, &read, stack).with_interrupted(interrupted);
            let outcome = stepper.step(cfi, entry, code.svma);
            if let Some(frame) = self.frames.last_mut().filter(|_| entry.is_signal()) {
                frame.address.exact = true;
            }
            return outcome;
        }
        let svma = code.svma + u64::from(!address.exact);
        let lookup = match address.exact {
            true => Some(FrameAddress::from_instruction_pointer(base + svma)),
            false => FrameAddress::from_return_address(base + svma),
        };
        self.step_with_framehop(lookup, address, regs, stack)
    }

    /// True if some code has unwind information.
    fn has_unwind_information(&mut self, code: &Code<'_>) -> bool {
        self.modules.load(code);
        self.modules.find_go_rule(code).is_some() || self.modules.is_covered(code)
    }

    /// True if the unwind information of a function begins at some code.
    fn begins_function(&mut self, code: &Code<'_>) -> bool {
        self.modules.load(code);
        matches!(self.modules.get(code), Some(UnwindInfo::Loaded { cfi, .. }) if cfi.begins_at(code.svma))
    }

    /// Steps to the caller with framehop. `lookup` is the address in the address space of the modules.
    ///
    /// Without one, framehop follows frame pointers.
    pub(super) fn step_with_framehop(
        &mut self,
        lookup: Option<FrameAddress>,
        address: Address,
        regs: &mut Regs,
        stack: &mut Stack<'_>,
    ) -> StepOutcome {
        let lookup = lookup.unwrap_or_else(|| outside_of_modules(address.exact));
        let mut read = |address| stack.read(address).ok_or(());
        let is_first = self.frames.len() == 1;
        match self.modules.step(lookup, regs, &mut read) {
            // A register or a word is zero by chance: the innermost function has a caller, unless it is the entry
            // point.
            Ok(None) if is_first => StepOutcome::Failed,
            Ok(Some(0)) | Ok(None) | Err(framehop::Error::ReturnAddressIsNull) => StepOutcome::Root,
            Ok(Some(caller)) => StepOutcome::Caller(Address { value: caller, in_kernel: false, exact: false }),
            Err(framehop::Error::CouldNotReadStack(_)) if stack.has_passed_end() => StepOutcome::Unreadable,
            Err(_) => StepOutcome::Failed,
        }
    }

    /// Returns the value that a register has in the last frame, for registers that framehop does not follow.
    ///
    /// It is the value in the first frame, unless a frame between has saved the register.
    pub(super) fn read_register(
        &self,
        snapshot: ProcessSnapshot<'_>,
        register: gimli::Register,
        registers: &Registers<'_>,
        stack: &mut Stack<'_>,
    ) -> Option<u64> {
        let mut value = registers.get(Native::perf_register(register)?)?;
        for (frame, caller) in self.frames.iter().zip(&self.frames[1..]) {
            let code = Code::find(frame.mapping?, frame.address.lookup(), snapshot.objects)?;
            let UnwindInfo::Loaded { cfi, .. } = self.modules.get(&code)? else { return None };
            if let Some(offset) = cfi.saved_register(register, code.svma)? {
                value = stack.read(caller.stack_pointer.wrapping_add_signed(offset))?;
            }
        }
        Some(value)
    }
}

/// Steps from the entry of a function that the kernel executes to its caller.
fn step_vsyscall(regs: &mut Regs, stack: &mut Stack<'_>) -> StepOutcome {
    let sp = Native::stack_pointer(regs);
    let (Some(caller), Some(fp)) = (stack.read(sp), Native::get(regs, Native::FP)) else {
        return if stack.has_passed_end() { StepOutcome::Unreadable } else { StepOutcome::Failed };
    };
    Native::set(regs, caller, sp.wrapping_add(8), fp);
    StepOutcome::Caller(Address { value: caller, in_kernel: false, exact: false })
}

/// Returns an address that lies in no module, so that framehop follows frame pointers.
fn outside_of_modules(is_exact: bool) -> FrameAddress {
    let instruction = FrameAddress::from_instruction_pointer(1);
    if is_exact { instruction } else { FrameAddress::from_return_address(2).unwrap_or(instruction) }
}
