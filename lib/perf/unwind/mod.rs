//! Unwinding: from registers and a copy of the stack to return addresses, by the unwind information of the objects.
//!
//! framehop does most of the work. Three things are added:
//!
//! - Every object is loaded once for all processes (`modules`).
//! - Frames that framehop cannot step are stepped by `cfi_stepper`.
//! - Where the copy of the stack ends before the stack does, the rest is read from the live thread (`stack`). It is
//!   accepted only after checks.

mod aarch64;
mod arch;
mod cfi_stepper;
mod code;
mod frame;
mod module;
mod modules;
pub mod native;
mod patience;
mod second_look;
mod sightings;
mod snapshot;
mod stack;
mod unsupported;
mod walk;
mod x86_64;

use std::time::Duration;

use self::arch::{Architecture, Registers};
pub use self::frame::Frame;
use self::modules::Modules;
use self::native::Native;
use self::second_look::LATER;
pub use self::snapshot::ProcessSnapshot;
pub use self::stack::Memory;
use self::stack::{Living, Stack};
use super::event::UserState;
use super::objects::object::ObjectId;
use super::stop_reason::StopReason;

/// The registers that samples must contain, as a mask for `perf_event_attr::sample_regs_user`.
pub const REGISTERS: u64 = Native::REGISTERS;

/// Returns an argument of the function that is about to run; the first argument has number 1.
pub fn read_argument(user: &UserState<'_>, number: u32) -> Option<u64> {
    let register = Native::ARGUMENTS.get(number.checked_sub(1)? as usize)?;
    Registers::new(REGISTERS, user.registers).get(*register)
}

/// The default limit of [`Unwinder::max_frames`].
const MAX_FRAMES: usize = 16 * 1024;

/// Unwinds the user stacks of samples.
pub struct Unwinder {
    modules: Modules<Native>,
    living: Option<Living>,
    /// Maximum number of frames per stack.
    pub max_frames: usize,
    /// True while the stack of a thread that leaves its CPU is unwound.
    ///
    /// All that is read from the live thread is accepted then: the caller checks later when the thread came back.
    pub is_switch_out: bool,
    /// Number of frames of the current stack that were read from the live thread.
    pub live_frames: usize,
    /// The frames of the current stack, innermost first.
    pub frames: Vec<Frame>,
}

impl std::fmt::Debug for Unwinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinder").field("objects", &self.modules.len()).finish_non_exhaustive()
    }
}

impl Unwinder {
    /// Creates an unwinder that knows no object yet.
    ///
    /// `memory` reads the stacks of live threads; with `None` only the copies in the samples are used.
    pub fn new(memory: Option<Box<dyn Memory>>) -> Self {
        Self {
            modules: Modules::new(),
            living: memory.map(Living::new),
            max_frames: MAX_FRAMES,
            is_switch_out: false,
            live_frames: 0,
            frames: Vec::new(),
        }
    }

    /// Notes the stack pointer of a sample that will be unwound before the next call of [`Self::look_again`].
    pub fn foresee(&mut self, tid: u32, time: u64, user: &UserState<'_>) {
        if let Some(living) = &mut self.living
            && let Some((_, regs)) = Native::start(&Registers::new(user.mask, user.registers))
        {
            living.sightings.add(tid, time, Native::stack_pointer(&regs));
        }
    }

    /// Forgets the noted stack pointers: all their samples were unwound.
    pub fn forget_sightings(&mut self) {
        if let Some(living) = &mut self.living {
            living.sightings.clear();
        }
    }

    /// Drops what was read from live threads. What is read from now on is of this time.
    pub fn look_again(&mut self, time: u64) {
        if let Some(living) = &mut self.living {
            living.look_again(time);
        }
    }

    /// Returns how long samples may wait before they are unwound; `None` if each must be unwound at once.
    pub fn patience(&self) -> Option<Duration> {
        self.living.as_ref().map_or(Some(Duration::MAX), |living| living.patience.wait())
    }

    /// Returns how long after [`Self::look_again`] a thread must be read once more; `None` if no thread must be.
    pub fn second_look(&self) -> Option<Duration> {
        self.living.as_ref()?.second_look.as_ref().map(|_| LATER)
    }

    /// True if the latest two stacks of a thread end their copies with the same return address, but have other callers.
    ///
    /// The callers of such stacks may be those of another call.
    pub fn has_new_callers(&self) -> bool {
        !self.is_switch_out && self.living.as_ref().is_some_and(|living| living.patience.has_new_callers)
    }

    /// Forgets an object, so that its number can be given to another.
    pub fn forget(&mut self, object: ObjectId) {
        self.modules.unload(object);
        if let Some(living) = &mut self.living {
            living.patience.forget();
        }
    }

    /// Unwinds the user stack of a sample into [`Unwinder::frames`].
    pub fn unwind(&mut self, snapshot: ProcessSnapshot<'_>, user: &UserState<'_>) -> StopReason {
        self.frames.clear();
        let registers = Registers::new(user.mask, user.registers);
        let Some((ip, mut regs)) = Native::start(&registers) else { return StopReason::NoUnwindInformation };
        let start = Native::stack_pointer(&regs);
        let mut living = self.living.take();
        // The memory of a process that runs another program by now does not belong to the sample.
        let is_same_program = !snapshot.processes.has_execed_since(snapshot.pid, snapshot.time);
        let seen = living.as_mut().map_or(0, |living| living.sightings.highest_after(snapshot.tid, snapshot.time));
        let mut stack = Stack::new(start, user.stack, snapshot.pid, living.as_mut().filter(|_| is_same_program), seen);
        let mut stop = self.walk(snapshot, ip, &mut regs, &registers, &mut stack);
        if stack.has_returned() {
            stop = self.discard_tail(&stack);
        }
        if stop != StopReason::Root && user.stack.is_empty() {
            stop = StopReason::NoStack;
        }
        let (copied, tail) = (stack.frames_in_dump(), stack.tail());
        if let Some(living) = living.as_mut().filter(|_| !self.is_switch_out) {
            stop = living.judge(snapshot, &mut self.frames, (copied, tail), stop);
        }
        self.living = living;
        self.live_frames = self.frames.len().saturating_sub(copied);
        stop
    }
}
