//! Reads the script frames of a thread that sleeps from the memory of its process.
//!
//! The BPF program walks the frames of the current thread only. This is the same walk from outside. Frames belong to their
//! thread: while it does not run, nobody changes them, nor frees the functions that they refer to. The caller makes sure of that.

use super::interpreter::{Library, Memory, ScriptFrame};
use super::merge::ScriptStack;
use super::processes::Interpreters;
use super::thread_anchor::ThreadAnchor;
use crate::perf::mappings::Mapping;
use crate::perf::objects::registry::Objects;
use crate::perf::stop_reason::StopReason;

/// The largest number of script frames: that of the BPF program.
pub(super) const MAX_FRAMES: usize = 4096;

/// A thread that sleeps.
#[derive(Clone, Copy, Debug)]
pub struct SleepingThread {
    /// The ID of its process.
    pub pid: u32,
    /// Its ID.
    pub tid: u32,
    /// The start of its thread-local storage.
    pub pointer: u64,
}

/// Script frames that were read from the memory of a process.
#[derive(Clone, Debug, Default)]
pub struct WalkedScripts {
    frames: Vec<ScriptFrame>,
    cut: Option<StopReason>,
    is_entering: bool,
    /// The places of the variables of loops, if they are known: those of the loops that end at the outermost frames, in their order.
    pub(super) loops: Vec<u64>,
}

/// A step of a walk.
pub(super) enum Step {
    /// A frame, and whose address follows.
    Frame(ScriptFrame, u64),
    /// A variable of a loop, before the frame at this address. The frame before was the outermost of the loop.
    LoopEntry(u64),
    /// Nothing that is shown, before the frame at this address.
    Hidden(u64),
    /// Nothing that is shown, before the frame at this address. The same loop runs it and the frame before.
    SameLoop(u64),
    /// A frame whose caller is not known.
    Cut(ScriptFrame),
}

impl WalkedScripts {
    /// Walks from a frame on, until there is no next one. `step` reads a frame; `None` if it cannot be read.
    pub(super) fn walk(first: u64, mut step: impl FnMut(u64) -> Option<Step>) -> Self {
        let mut scripts = Self::default();
        let mut next = first;
        for _ in 0..2 * MAX_FRAMES {
            if next == 0 {
                return scripts;
            }
            match step(next).filter(|_| scripts.frames.len() < MAX_FRAMES) {
                Some(Step::Frame(frame, caller)) => {
                    scripts.frames.push(frame);
                    next = caller;
                }
                Some(Step::LoopEntry(caller)) => {
                    match scripts.frames.last_mut() {
                        Some(last) => {
                            last.is_outermost = true;
                            scripts.loops.push(next);
                        }
                        // The loop is about to begin, or to end.
                        None => scripts.is_entering = true,
                    }
                    next = caller;
                }
                Some(Step::Hidden(caller)) => next = caller,
                Some(Step::SameLoop(caller)) => {
                    scripts.frames.iter_mut().last().into_iter().for_each(|last| last.is_outermost = false);
                    next = caller;
                }
                Some(Step::Cut(frame)) => {
                    scripts.frames.push(frame);
                    break;
                }
                None => break,
            }
        }
        let is_full = scripts.frames.len() >= MAX_FRAMES;
        scripts.cut = Some(if is_full { StopReason::TooDeep } else { StopReason::NotResident });
        scripts
    }

    /// Returns the frames for merging.
    pub fn stack(&self) -> ScriptStack<'_> {
        ScriptStack { frames: &self.frames, cut: self.cut, is_entering: self.is_entering, loops: &self.loops }
    }
}

impl Interpreters {
    /// Returns the script frames of a thread that sleeps, in a process with these mappings.
    pub fn walk_sleeping(
        &mut self,
        mappings: &[Mapping],
        objects: &Objects,
        memory: Memory,
        thread: SleepingThread,
    ) -> Option<WalkedScripts> {
        let found = self.find(mappings.iter().copied(), objects).filter(|found| !found.generates_code())?;
        let library = found.library(objects, memory)?;
        let anchor = found.interpreter.layout(library)?.anchor;
        let is_musl = mappings.iter().any(|mapping| objects.get(mapping.object).is_musl());
        let state = find_state(anchor, library, is_musl, thread).filter(|state| *state != 0)?;
        found.interpreter.walk_sleeping(memory, state, thread)
    }
}

/// Returns the address of a thread's state in an interpreter; 0 if it has none. See `find_thread_state` in the BPF program.
fn find_state(anchor: ThreadAnchor, library: Library<'_>, is_musl: bool, thread: SleepingThread) -> Option<u64> {
    let memory = library.memory;
    match anchor {
        ThreadAnchor::ThreadStorage(offset) => memory.u64(thread.pointer.wrapping_add_signed(offset)),
        ThreadAnchor::ModuleStorage(index) => {
            // The C library keeps the addresses of modules' storage in a table of 16 bytes each.
            let modules = memory.field(thread.pointer, 8)?;
            let module = memory.u64(library.loaded(index))?;
            let storage = memory.u64(modules.wrapping_add(module.wrapping_mul(16)))?;
            memory.u64(storage.wrapping_add(memory.field(library.loaded(index), 8)?))
        }
        ThreadAnchor::MainThread(state) if thread.pid == thread.tid => memory.u64(library.loaded(state)),
        ThreadAnchor::ThreadData(key) => {
            let key = memory.u64(library.loaded(key))? & 0xffff_ffff;
            if is_musl {
                return memory.field(memory.field(thread.pointer, 0x80)?, 8 * key);
            }
            // glibc's struct pthread has the first 32 keys, and pointers to blocks of 32 keys.
            match key {
                ..32 => memory.field(thread.pointer, 0x310 + 16 * key + 8),
                32..1024 => memory.field(memory.field(thread.pointer, 0x510 + 8 * (key / 32))?, 16 * (key % 32) + 8),
                _ => None,
            }
        }
        ThreadAnchor::MainThread(_) | ThreadAnchor::Library(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_FRAMES, ScriptFrame, Step, StopReason, WalkedScripts};

    fn frame(code: u64) -> ScriptFrame {
        ScriptFrame { code, instruction: 0, first_line: 0, hash: 0, is_outermost: false, native: 0 }
    }

    #[test]
    fn the_frame_before_an_entry_is_the_outermost_of_its_loop() {
        let scripts = WalkedScripts::walk(9, |address| {
            Some(match address {
                9 | 6 => Step::LoopEntry(address - 1),
                4 => Step::Hidden(3),
                _ => Step::Frame(frame(address), address - 1),
            })
        });
        let stack = scripts.stack();
        let frames: Vec<(u64, bool)> = stack.frames.iter().map(|frame| (frame.code, frame.is_outermost)).collect();
        assert_eq!(frames, [(8, false), (7, true), (5, false), (3, false), (2, false), (1, false)]);
        assert!(stack.is_entering && stack.cut.is_none());
        assert_eq!(stack.loops, [6]);
    }

    #[test]
    fn a_walk_ends_where_memory_cannot_be_read_and_in_circles() {
        let scripts = WalkedScripts::walk(3, |address| (address > 1).then(|| Step::Frame(frame(address), address - 1)));
        assert_eq!((scripts.stack().frames.len(), scripts.stack().cut), (2, Some(StopReason::NotResident)));
        let scripts = WalkedScripts::walk(3, |address| Some(Step::Frame(frame(address), address)));
        assert_eq!((scripts.stack().frames.len(), scripts.stack().cut), (MAX_FRAMES, Some(StopReason::TooDeep)));
        let scripts = WalkedScripts::walk(3, |address| Some(Step::Cut(frame(address))));
        assert_eq!((scripts.stack().frames.len(), scripts.stack().cut), (1, Some(StopReason::NotResident)));
        let scripts = WalkedScripts::walk(3, |address| Some(Step::Hidden(address)));
        assert_eq!((scripts.stack().frames.len(), scripts.stack().cut), (0, Some(StopReason::NotResident)));
    }
}
