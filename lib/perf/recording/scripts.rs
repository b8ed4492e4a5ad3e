//! The script frames of samples: merges them into the native stack.

use super::{Recording, ScriptFrameOptions};
use crate::perf::event::{StackRecord, Stamp};
use crate::perf::location::Location;
use crate::perf::objects::object::Object;
use crate::perf::runtimes::interpreter::{Memory, ScriptFrame};
use crate::perf::runtimes::merge::{MergedFrame, NativeKind, ScriptStack, merge};
use crate::perf::stop_reason::StopReason;
use crate::perf::unwind::Frame;

/// A stack with script frames, innermost first.
pub(super) struct MergedStack {
    pub(super) locations: Vec<MergedLocation>,
    /// The reason why the stack ends where it ends.
    pub(super) stop: StopReason,
}

/// A frame of a stack with script frames.
pub(super) enum MergedLocation {
    /// A native frame, by its index.
    Native(usize),
    /// A script frame.
    Script(Location),
}

impl Recording {
    /// Merges the script frames of a sample into its native frames, whose unwinding stopped for `stop`. `None` if there
    /// are none, or if they do not match: then the native frames stay.
    pub(super) fn merge_script_frames(
        &mut self,
        stamp: Stamp,
        record: &StackRecord<'_>,
        frames: &[Frame],
        stop: StopReason,
    ) -> Option<MergedStack> {
        let mut scripts: Vec<ScriptFrame> = Vec::new();
        for (frame, sent) in record.script_frames() {
            scripts.push(frame);
            if let Some(sent) = sent {
                self.interpreters.add_sent_name(frame, sent);
            }
        }
        if scripts.is_empty() {
            return None;
        }
        let objects = &self.objects;
        let interpreter = self.interpreters.find(self.processes.mappings(stamp.pid), objects)?;
        let kind_of = |frame: &Frame| interpreter.kind_of(frame.address.lookup(), frame.mapping, objects);
        let mut kinds: Vec<NativeKind> = frames.iter().map(kind_of).collect();
        for index in 1..kinds.len() {
            // Generated code that calls the loop itself is a trampoline of the interpreter (`python -X perf`).
            let object = frames[index].mapping.map(|mapping| objects.get(mapping.object));
            if kinds[index - 1] == NativeKind::Loop && matches!(object, Some(Object::Jit { .. })) {
                kinds[index] = NativeKind::Interpreter;
            }
        }
        let is_cut = record.is_script_cut();
        let stack = ScriptStack { frames: &scripts, is_cut, is_entering: record.is_entering_script() };
        let keep_interpreter = self.options.scripts == ScriptFrameOptions::WithInterpreter;
        let Some(merged) = merge(&kinds, stop == StopReason::Root, stack, keep_interpreter) else {
            self.counts.unmatched_scripts += 1;
            return None;
        };
        let memory = Memory { pid: stamp.pid, read: self.options.running.map_or(|_, _, _| 0, |running| running.read) };
        let mut locate = |frame: MergedFrame| match frame {
            MergedFrame::Native(index) => MergedLocation::Native(index),
            MergedFrame::Script(index) => MergedLocation::Script(self.interpreters.locate(
                scripts[index],
                &interpreter,
                memory,
                self.options.script_lines,
                &mut self.objects,
            )),
        };
        let locations = merged.into_iter().map(&mut locate).collect();
        let stop = if is_cut && stop == StopReason::Root { StopReason::TooDeep } else { stop };
        Some(MergedStack { locations, stop })
    }
}
