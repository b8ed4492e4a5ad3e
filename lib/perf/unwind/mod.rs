//! Unwinding: from registers and a copy of the stack to return addresses, by the unwind information of the objects.
//!
//! framehop does most of the work. Two things are added:
//!
//! - Every object is loaded once for all processes (`modules`).
//! - Frames that framehop cannot step are stepped by `cfi_stepper`.

mod aarch64;
mod arch;
mod cfi_stepper;
mod code;
mod frame;
mod module;
mod modules;
pub mod native;
mod snapshot;
mod stack;
mod unsupported;
mod walk;
mod x86_64;

use self::arch::{Architecture, Registers};
pub use self::code::ReadCode;
pub use self::frame::Frame;
use self::modules::Modules;
use self::native::Native;
pub use self::snapshot::ProcessSnapshot;
use self::stack::Stack;
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
    /// Maximum number of frames per stack.
    pub max_frames: usize,
    /// The frames of the current stack, innermost first.
    pub frames: Vec<Frame>,
}

impl std::fmt::Debug for Unwinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinder").field("objects", &self.modules.len()).finish_non_exhaustive()
    }
}

impl Default for Unwinder {
    fn default() -> Self {
        Self { modules: Modules::new(), max_frames: MAX_FRAMES, frames: Vec::new() }
    }
}

impl Unwinder {
    /// Forgets an object, so that its number can be given to another.
    pub fn forget(&mut self, object: ObjectId) {
        self.modules.unload(object);
    }

    /// Unwinds the user stack of a sample into [`Unwinder::frames`].
    pub fn unwind(&mut self, snapshot: ProcessSnapshot<'_>, user: &UserState<'_>) -> StopReason {
        self.frames.clear();
        let registers = Registers::new(user.mask, user.registers);
        let Some((ip, mut regs)) = Native::start(&registers) else { return StopReason::NoUnwindInformation };
        let mut stack = Stack::from_copy(Native::stack_pointer(&regs), user.stack);
        match self.walk(snapshot, ip, &mut regs, &registers, &mut stack) {
            StopReason::Root => StopReason::Root,
            _ if user.stack.is_empty() => StopReason::NoStack,
            stop => stop,
        }
    }
}
