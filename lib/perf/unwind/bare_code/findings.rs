//! What the paths of code without unwind information tell of its caller, remembered by address.

use rustc_hash::FxHashMap;

use super::read::{FileCode, FileFunctions, ProcessCode};
use crate::perf::event::Address;
use crate::perf::objects::object::ObjectId;
use crate::perf::runtimes::loop_frame::LoopFrame;
use crate::perf::unwind::code::Code;
use crate::perf::unwind::code_paths::{CallerRule, Paths, ReadInstructions as _, Returns};
use crate::perf::unwind::snapshot::ProcessSnapshot;

/// Findings about code without unwind information.
#[derive(Debug, Default)]
pub(in crate::perf::unwind) struct BareCode {
    /// The functions of objects.
    functions: FxHashMap<ObjectId, FileFunctions>,
    /// Findings about the code of objects.
    objects: Findings,
    /// Findings about generated code, since a time.
    generated: Findings,
    generated_since: u64,
    /// Tells by process ID if all code that a process generates keeps frame pointers.
    frame_pointers: FxHashMap<u32, FramePointers>,
    /// The frame of the interpreter's loop in each object that was looked at, if compiled functions run in it.
    pub(super) loop_frames: FxHashMap<ObjectId, Option<LoopFrame>>,
    /// Number of instructions that may still be followed for the current stack.
    budget: usize,
}

/// Tells if all code that a process generates keeps frame pointers.
#[derive(Clone, Copy, Debug)]
struct FramePointers {
    /// The time of the sample for which the process was read.
    since: u64,
    are_kept: bool,
}

/// The number of an object, or the ID of the process that has generated code.
type Owner = u32;

/// Findings about code, by its owner and address.
#[derive(Debug, Default)]
struct Findings {
    /// The findings at an address.
    rules: FxHashMap<(Owner, u64), Rules>,
    /// The rule at an address on the paths from the entry of its function. The entry comes first in the key.
    rules_from_entry: FxHashMap<(Owner, u64, u64), Option<CallerRule>>,
}

/// The findings of the paths of code about its caller.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    pub(super) from_entry: Option<CallerRule>,
    pub(super) returns: Returns,
}

/// The time in nanoseconds for which findings about generated code hold.
///
/// Compilers replace code seldom, and reading it costs a system call for each frame.
const MAX_AGE: u64 = 1_000_000_000;

/// Maximum number of addresses that are remembered.
const MAX_ADDRESSES: usize = 1 << 18;

/// Maximum number of instructions that are followed for one stack, so that no program stops the recorder with code made
/// for it. On average 30 are followed for an address, once.
const MAX_INSTRUCTIONS_PER_STACK: usize = 1_000_000;

/// The largest distance of an address from its function's entry, if that is known from a call only, in bytes.
const MAX_FUNCTION: u64 = 1 << 16;

impl BareCode {
    /// Forgets an object, so that its number can be given to another.
    pub(in crate::perf::unwind) fn forget(&mut self, object: ObjectId) {
        self.functions.remove(&object);
        self.loop_frames.remove(&object);
        self.objects.rules.retain(|(owner, _), _| *owner != object.0);
        self.objects.rules_from_entry.retain(|(owner, ..), _| *owner != object.0);
    }

    /// Prepares for the next stack.
    pub(in crate::perf::unwind) fn start_stack(&mut self) {
        self.budget = MAX_INSTRUCTIONS_PER_STACK;
    }

    /// Forgets what is too old, or too much.
    pub(super) fn expire(&mut self, time: u64) {
        if time.abs_diff(self.generated_since) > MAX_AGE || self.generated.len() > MAX_ADDRESSES {
            self.generated = Findings::default();
            self.generated_since = time;
        }
        if self.objects.len() > MAX_ADDRESSES {
            self.objects = Findings::default();
        }
    }

    /// True if all code that a process generates keeps frame pointers. That is so until it runs another program.
    pub(super) fn keeps_frame_pointers(&mut self, snapshot: ProcessSnapshot<'_>) -> bool {
        let known = self.frame_pointers.get(&snapshot.pid);
        let valid = known.filter(|known| !snapshot.processes.has_execed_since(snapshot.pid, known.since));
        if let Some(valid) = valid {
            return valid.are_kept;
        }
        let read = FramePointers { since: snapshot.time, are_kept: snapshot.keeps_frame_pointers() };
        self.frame_pointers.insert(snapshot.pid, read);
        read.are_kept
    }

    /// Returns the rules at an address of an ELF file, or of generated code without `code`.
    pub(super) fn find_rules(
        &mut self,
        snapshot: ProcessSnapshot<'_>,
        address: Address,
        code: Option<&Code<'_>>,
    ) -> Rules {
        let Some(code) = code else {
            return *self.generated.rules.entry((snapshot.pid, address.value)).or_insert_with(|| {
                let returns =
                    Paths::new(&mut ProcessCode::new(snapshot), &mut self.budget).follow_to_return(None, address.value);
                Rules { from_entry: None, returns }
            });
        };
        let svma = ip_in_file(code, address);
        let functions = self.functions.entry(code.object).or_default();
        *self.objects.rules.entry((code.object.0, svma)).or_insert_with(|| {
            let mut source = FileCode { elf: code.elf, functions };
            let function = source.find_function(code.svma);
            let mut paths = Paths::new(&mut source, &mut self.budget);
            let from_entry = function.clone().and_then(|function| paths.follow_from_entry(function, svma));
            Rules { from_entry, returns: paths.follow_to_return(function, svma) }
        })
    }

    /// Returns the rule at an address by the paths from the entry of a function that was called.
    pub(super) fn find_rule_from_entry(
        &mut self,
        snapshot: ProcessSnapshot<'_>,
        address: Address,
        code: Option<&Code<'_>>,
        entry: u64,
    ) -> Option<CallerRule> {
        let distance = address.value.checked_sub(entry).filter(|distance| *distance < MAX_FUNCTION)?;
        let Some(code) = code else {
            return *self.generated.rules_from_entry.entry((snapshot.pid, entry, address.value)).or_insert_with(|| {
                Paths::new(&mut ProcessCode::new(snapshot), &mut self.budget)
                    .follow_from_entry(entry..u64::MAX, address.value)
            });
        };
        let svma = ip_in_file(code, address);
        let entry = svma.checked_sub(distance)?;
        let functions = self.functions.entry(code.object).or_default();
        *self.objects.rules_from_entry.entry((code.object.0, entry, svma)).or_insert_with(|| {
            Paths::new(&mut FileCode { elf: code.elf, functions }, &mut self.budget)
                .follow_from_entry(entry..u64::MAX, svma)
        })
    }
}

impl Findings {
    fn len(&self) -> usize {
        self.rules.len() + self.rules_from_entry.len()
    }
}

/// Returns the instruction pointer as an address of the file. The address that was looked up is that of the call.
fn ip_in_file(code: &Code<'_>, address: Address) -> u64 {
    code.svma + u64::from(!address.exact)
}
