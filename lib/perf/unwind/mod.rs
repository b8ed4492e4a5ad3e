//! Unwinding: from registers and a copy of the stack to return addresses, by the unwind information of the objects.
//!
//! framehop does most of the work. Three things are added:
//!
//! - Every object is loaded once for all processes (`modules`).
//! - Frames that framehop cannot step are stepped by `cfi_stepper`, Go functions by `go`, and code without unwind
//!   information by `bare_code`.
//! - A stack that the BPF program took is either walked already, and its frames are checked here, or is unwound from
//!   the words that the program kept (`sparse`).

mod aarch64;
mod after_syscall;
mod arch;
mod bare_code;
mod cfi_stepper;
mod code;
mod code_paths;
mod frame;
mod go;
mod handlers;
mod module;
mod modules;
pub mod native;
pub mod rows;
mod signal_return;
mod snapshot;
mod sparse;
mod stack;
mod unsupported;
mod walk;
mod x86_64;

use self::arch::{Architecture, Registers};
use self::bare_code::BareCode;
pub use self::code::RunningProcesses;
pub use self::frame::Frame;
use self::modules::Modules;
use self::native::Native;
pub use self::snapshot::ProcessSnapshot;
use self::sparse::SparseWords;
use self::stack::Stack;
use super::event::{Address, StackRecord, UserState};
use super::mappings::Mapping;
use super::objects::object::{Object, ObjectId};
use super::stop_reason::StopReason;

/// The registers that samples must contain, as a mask for `perf_event_attr::sample_regs_user`.
pub const REGISTERS: u64 = Native::REGISTERS;

/// Returns an argument of the function that is about to run; the first argument has number 1.
pub fn read_argument(user: &UserState<'_>, number: u32) -> Option<u64> {
    let register = Native::ARGUMENTS.get(number.checked_sub(1)? as usize)?;
    Registers::new(REGISTERS, user.registers).get(*register)
}

/// Returns the instruction pointer and the stack pointer of a sample.
pub fn read_position(user: &UserState<'_>) -> Option<(u64, u64)> {
    let (ip, regs) = Native::start(&Registers::new(user.mask, user.registers))?;
    Some((ip, Native::stack_pointer(&regs)))
}

/// The default limit of [`Unwinder::max_frames`].
const MAX_FRAMES: usize = 16 * 1024;

/// Unwinds the user stacks of samples.
pub struct Unwinder {
    modules: Modules<Native>,
    bare_code: BareCode,
    /// Maximum number of frames per stack.
    pub max_frames: usize,
    /// The frames of the current stack, innermost first.
    pub frames: Vec<Frame>,
    /// Memory for the words of a stack.
    words: SparseWords,
}

impl std::fmt::Debug for Unwinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinder").field("objects", &self.modules.len()).finish_non_exhaustive()
    }
}

impl Default for Unwinder {
    fn default() -> Self {
        Self {
            modules: Modules::new(),
            bare_code: BareCode::default(),
            max_frames: MAX_FRAMES,
            frames: Vec::new(),
            words: SparseWords::default(),
        }
    }
}

impl Unwinder {
    /// Forgets an object, so that its number can be given to another.
    pub fn forget(&mut self, object: ObjectId) {
        self.modules.unload(object);
        self.bare_code.forget(object);
    }

    /// Unwinds the user stack of a sample into [`Unwinder::frames`].
    pub fn unwind(&mut self, snapshot: ProcessSnapshot<'_>, user: &UserState<'_>) -> StopReason {
        self.frames.clear();
        self.bare_code.start_stack();
        if user.mask != 0 && user.registers.is_empty() {
            return StopReason::Abi32;
        }
        let registers = Registers::new(user.mask, user.registers);
        let Some((ip, mut regs)) = Native::start(&registers) else { return StopReason::NoUnwindInformation };
        if let Some(record) = &user.record {
            if record.has_no_stack() {
                return StopReason::Execve;
            }
            if record.is_walked() {
                return self.check_walk(snapshot, record);
            }
            let ip = record.probed.unwrap_or(ip);
            let words = std::mem::take(&mut self.words).with_record(record);
            let mut stack = Stack::from_words(&words);
            let stop = match self.walk(snapshot, ip, &mut regs, &registers, &mut stack) {
                StopReason::Root => StopReason::Root,
                _ if record.is_unreadable() && self.is_old_program(snapshot) => {
                    self.frames.clear();
                    StopReason::Execve
                }
                StopReason::DumpTooSmall if stack.has_met_hole() => StopReason::NotResident,
                stop => record.explain(stop),
            };
            self.words = words;
            return stop;
        }
        let copy = user.stack.unwrap_or_default();
        let mut stack = Stack::from_copy(Native::stack_pointer(&regs), copy);
        match self.walk(snapshot, ip, &mut regs, &registers, &mut stack) {
            StopReason::Root => StopReason::Root,
            _ if user.stack == Some(&[]) && self.is_old_program(snapshot) => {
                self.frames.clear();
                StopReason::Execve
            }
            _ if copy.is_empty() => StopReason::Missing,
            StopReason::DumpTooSmall if user.is_copy_short => StopReason::NotResident,
            stop => stop,
        }
    }

    /// True if the registers of a sample whose stack is gone are those of the program that the process ran before.
    /// Within execve they still are when the memory has been replaced.
    fn is_old_program(&self, snapshot: ProcessSnapshot<'_>) -> bool {
        let ProcessSnapshot { pid, time, processes, .. } = snapshot;
        let has_execed = processes.has_execed_since(pid, 0) && !processes.has_execed_since(pid, time);
        has_execed && matches!(self.frames[..], [Frame { mapping: None, .. }])
    }

    /// Takes the frames of a stack that the BPF program walked.
    ///
    /// The program knew the mappings of the time when they were published to it. A frame whose code was replaced
    /// between that time and the sample ends the stack: the program walked on by the rules of other code.
    fn check_walk(&mut self, snapshot: ProcessSnapshot<'_>, record: &StackRecord<'_>) -> StopReason {
        let [then, now] = [record.published, snapshot.time].map(|time| snapshot.processes.version(snapshot.pid, time));
        let is_current = then.is_some() && then == now;
        let find_published =
            |address: Address| snapshot.processes.find_in_ancestry(snapshot.pid, address.lookup(), record.published);
        let mut last = None::<Mapping>;
        for (value, exact) in record.frames() {
            let address = Address { value, in_kernel: false, exact };
            let same = last.filter(|mapping| (mapping.start..mapping.end).contains(&address.lookup()));
            let mapping = same.or_else(|| snapshot.find_mapping(address));
            // Generated code is walked by what the runtime knows.
            let is_generated =
                mapping.is_some_and(|mapping| !matches!(snapshot.objects.get(mapping.object), Object::Elf(_)));
            let is_known = same.is_some() || is_current || is_generated || mapping == find_published(address);
            if mapping.is_none() || !is_known {
                return StopReason::StaleMapping;
            }
            if self.frames.len() >= self.max_frames {
                return StopReason::TooDeep;
            }
            self.frames.push(Frame { address, mapping, stack_pointer: 0 });
            last = mapping;
        }
        match last.map(|mapping| snapshot.objects.get(mapping.object)) {
            _ if !record.is_walk_cut() => StopReason::Root,
            // The program did not know the unwind information of the file yet.
            Some(Object::Elf(_)) => StopReason::StaleMapping,
            _ => StopReason::NoUnwindInformation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, ProcessSnapshot, REGISTERS, StopReason, Unwinder, UserState};
    use crate::perf::objects::registry::Objects;
    use crate::perf::process::Processes;

    /// The kernel starts some threads with registers of 0, which look like those behind a system call at the address 0.
    #[test]
    fn a_thread_without_registers_is_at_the_address_0() {
        let (processes, objects) = (Processes::default(), Objects::default());
        let snapshot = ProcessSnapshot { pid: 1, time: 1, processes: &processes, objects: &objects, running: None };
        let registers = vec![0; 8 * REGISTERS.count_ones() as usize];
        let user = UserState { mask: REGISTERS, registers: &registers, stack: Some(&[0; 16]), ..UserState::default() };
        let mut unwinder = Unwinder::default();
        assert_eq!(unwinder.unwind(snapshot, &user), StopReason::NoUnwindInformation);
        let addresses: Vec<Address> = unwinder.frames.iter().map(|frame| frame.address).collect();
        assert_eq!(addresses, [Address { value: 0, in_kernel: false, exact: true }]);

        let of_32_bits = UserState { registers: &[], ..user };
        assert_eq!((unwinder.unwind(snapshot, &of_32_bits), unwinder.frames.len()), (StopReason::Abi32, 0));
    }
}
