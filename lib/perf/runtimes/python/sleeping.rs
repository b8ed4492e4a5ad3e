//! The frames of a thread that sleeps: see `step_python` in the BPF program.

use super::layout::{LOOP_CALLER, LoopStart, NONE, PythonLayout};
use crate::perf::runtimes::interpreter::{Memory, NO_NATIVE, ScriptFrame};
use crate::perf::runtimes::sleeping::{SleepingThread, Step, WalkedScripts};

/// The first kind of frames that are not shown (`FRAME_OWNED_BY_INTERPRETER`, `FRAME_OWNED_BY_CSTACK`).
const ENTRY_FRAME: u8 = 3;

impl PythonLayout {
    /// Returns the frames of a thread with this state. `None` if it is not its state.
    pub(super) fn walk_sleeping(&self, memory: Memory, state: u64, thread: SleepingThread) -> Option<WalkedScripts> {
        let offsets = &self.offsets;
        if memory.field(state, offsets.thread_id.into())? != thread.pointer {
            return None;
        }
        let first = memory.field(state, offsets.first_frame.into())?;
        let frame = match first {
            1.. if offsets.indirect_frame != NONE => memory.field(first, offsets.indirect_frame.into())?,
            _ => first,
        };
        let mut scripts = WalkedScripts::walk(frame, |frame| self.read_frame(memory, frame));
        if matches!(offsets.loop_start, LoopStart::Flag) {
            let loops = std::iter::successors(Some(first), |place| memory.field(*place, LOOP_CALLER.into()));
            let count = scripts.stack().frames.iter().filter(|frame| frame.is_outermost).count();
            scripts.loops = loops.take(count).collect();
        }
        Some(scripts)
    }

    fn read_frame(&self, memory: Memory, frame: u64) -> Option<Step> {
        let offsets = &self.offsets;
        // The lower bits of references are flags.
        let code = memory.field(frame, offsets.code.into())? & !7;
        let previous = memory.field(frame, offsets.previous.into())?;
        let mut instruction = memory.field(frame, offsets.instruction.into())?;
        let owner = *memory.bytes(frame.checked_add(offsets.owner.into())?, 1)?.first()?;
        let is_outermost = match offsets.loop_start {
            LoopStart::EntryFrame if owner >= ENTRY_FRAME => return Some(Step::LoopEntry(previous)),
            LoopStart::EntryFrame => false,
            LoopStart::EachFrame => true,
            LoopStart::Flag => owner != 0,
        };
        if offsets.is_pointer {
            instruction = instruction.wrapping_sub(code).wrapping_sub(offsets.bytecode.into());
        }
        let read = self.read_code(memory, code)?;
        let frame = ScriptFrame {
            code,
            instruction: (instruction as u32).cast_signed(),
            first_line: read.first_line,
            hash: read.hash(self, memory)?,
            is_outermost,
            native: NO_NATIVE,
        };
        Some(Step::Frame(frame, previous))
    }
}
