//! The script frames of samples: merges them into the native stack.

use std::borrow::Cow;

use super::{Recording, ScriptFrameOptions};
use crate::perf::event::{Sample, StackRecord, Stamp};
use crate::perf::location::Location;
use crate::perf::mappings::Mapping;
use crate::perf::objects::object::{JitMemory, Object};
use crate::perf::objects::registry::Objects;
use crate::perf::runtimes::interpreter::{FROM_NATIVE, Memory, NO_NATIVE, ScriptFrame};
use crate::perf::runtimes::merge::{MergedFrame, NativeKind, ScriptStack, merge};
use crate::perf::runtimes::processes::ProcessInterpreter;
use crate::perf::runtimes::sleeping::{SleepingThread, WalkedScripts};
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
    /// Keeps the names of functions that came with a sample's stack, which are sent once.
    pub fn keep_sent_names(&mut self, sample: &Sample<'_>) {
        let record = sample.user.as_ref().and_then(|user| user.record);
        let frames = record.iter().flat_map(StackRecord::script_frames);
        for (frame, sent) in frames.filter_map(|(frame, sent)| Some((frame, sent?))) {
            self.interpreters.add_sent_name(frame, sent);
        }
    }

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
        let is_entering = record.is_entering_script();
        let stack = ScriptStack { frames: &scripts, cut: record.script_cut(), is_entering, loops: &[] };
        self.merge_scripts(stamp, stack, frames, stop)
    }

    /// Merges script frames into native frames, whose unwinding stopped for `stop`. `None` if there are no script frames, or
    /// they do not match.
    pub(super) fn merge_scripts(
        &mut self,
        stamp: Stamp,
        stack: ScriptStack<'_>,
        frames: &[Frame],
        stop: StopReason,
    ) -> Option<MergedStack> {
        let scripts = stack.frames;
        if scripts.is_empty() || self.options.scripts == ScriptFrameOptions::NativeOnly {
            return None;
        }
        let objects = &self.objects;
        let interpreter = self.interpreters.find(self.processes.mappings(stamp.pid), objects)?;
        if interpreter.generates_code() {
            let locations = self.merge_generated(&interpreter, self.memory(stamp.pid), scripts, frames.len());
            return Some(MergedStack { locations, stop });
        }
        let kinds = native_kinds(&interpreter, frames, stop == StopReason::Root, objects);
        let keep_interpreter = self.options.scripts == ScriptFrameOptions::WithInterpreter;
        let is_complete = stop == StopReason::Root;
        let placed = place_loops(stack, frames, is_complete);
        let stack = ScriptStack { frames: &placed, ..stack };
        let Some(merged) = merge(&kinds, is_complete, stack, interpreter.places_loops(), keep_interpreter) else {
            self.counts.unmatched_scripts += 1;
            return None;
        };
        let memory = self.memory(stamp.pid);
        let with_lines = self.options.script_lines;
        let locations = merged.frames.into_iter().map(|frame| match frame {
            MergedFrame::Native(index) => MergedLocation::Native(index),
            MergedFrame::Script(index) => {
                let objects = &mut self.objects;
                let script = self.interpreters.locate(scripts[index], &interpreter, memory, with_lines, objects);
                MergedLocation::Script(script)
            }
        });
        let locations = locations.collect();
        let cut = stack.cut.or(merged.is_cut.then_some(StopReason::OtherGreenlet));
        let stop = match stop {
            StopReason::Root => cut.unwrap_or(stop),
            _ if has_greenlet(frames, &self.objects) => StopReason::OtherGreenlet,
            _ => stop,
        };
        Some(MergedStack { locations, stop })
    }

    /// Puts the functions of generated code in the place of their native frames.
    fn merge_generated(
        &mut self,
        interpreter: &ProcessInterpreter,
        memory: Memory,
        scripts: &[ScriptFrame],
        natives: usize,
    ) -> Vec<MergedLocation> {
        let mut locations = Vec::with_capacity(natives + scripts.len());
        let mut scripts = scripts.iter().peekable();
        for native in 0..natives {
            let Some(script) = scripts.next_if(|script| usize::from(script.native) == native) else {
                locations.push(MergedLocation::Native(native));
                continue;
            };
            let with_lines = self.options.script_lines;
            let found = self.interpreters.locate_generated(*script, interpreter, memory, with_lines, &mut self.objects);
            locations.extend(found.into_iter().map(MergedLocation::Script));
        }
        locations
    }

    /// Returns the script frames of a thread that sleeps, as they are in the memory of its process. They are true if the thread
    /// does not run meanwhile. `None` if it runs no interpreter that is known, or is outside of its functions.
    pub fn walk_sleeping(&mut self, thread: SleepingThread) -> Option<WalkedScripts> {
        if self.options.scripts == ScriptFrameOptions::NativeOnly {
            return None;
        }
        let mappings: Vec<Mapping> = self.processes.mappings(thread.pid).collect();
        let memory = self.memory(thread.pid);
        self.interpreters.walk_sleeping(&mappings, &self.objects, memory, thread)
    }

    /// Returns the memory of a process.
    pub(super) fn memory(&self, pid: u32) -> Memory {
        Memory { pid, read: self.options.running.map_or(|_, _, _| 0, |running| running.read) }
    }
}

/// Returns the script frames with the native frames of loops, if the places of these are known.
fn place_loops<'a>(stack: ScriptStack<'a>, natives: &[Frame], is_complete: bool) -> Cow<'a, [ScriptFrame]> {
    let mut frames = Cow::Borrowed(stack.frames);
    // A handler of a signal may have a stack of its own.
    if !natives.is_sorted_by_key(|native| native.stack_pointer) {
        return frames;
    }
    let outermost = (0..stack.frames.len()).filter(|index| stack.frames[*index].is_outermost);
    for (index, place) in outermost.zip(stack.loops) {
        let native = natives.partition_point(|native| native.stack_pointer <= *place);
        let is_last = native == natives.len() && !is_complete;
        frames.to_mut()[index].native = match native.checked_sub(1).and_then(|native| u16::try_from(native).ok()) {
            Some(native) if native < FROM_NATIVE => native | if is_last { FROM_NATIVE } else { 0 },
            _ => NO_NATIVE,
        };
    }
    frames
}

/// True if one of the frames is of Python's module of greenlets: unwinding leaves the greenlet's part of the native stack.
fn has_greenlet(frames: &[Frame], objects: &Objects) -> bool {
    let objects = frames.iter().filter_map(|frame| Some(objects.get(frame.mapping?.object)));
    let mut names = objects.map(|object| object.path().rsplit(|byte| *byte == b'/').next().unwrap_or_default());
    names.any(|name| name.starts_with(b"_greenlet."))
}

/// Returns the parts of native frames in an interpreter, innermost first. `is_complete` says that they reach the root.
fn native_kinds(
    interpreter: &ProcessInterpreter,
    frames: &[Frame],
    is_complete: bool,
    objects: &Objects,
) -> Vec<NativeKind> {
    let is_generated =
        |frame: &Frame| frame.mapping.is_some_and(|mapping| matches!(objects.get(mapping.object), Object::Jit { .. }));
    let mut kinds: Vec<NativeKind> =
        frames.iter().map(|frame| interpreter.kind_of(frame.address.lookup(), frame.mapping, objects)).collect();
    for index in 1..kinds.len() {
        // Generated code that calls the loop itself is a trampoline of the interpreter (`python -X perf`).
        if kinds[index - 1] == NativeKind::Loop && is_generated(&frames[index]) {
            kinds[index] = NativeKind::Interpreter;
        }
    }
    // True behind the function that calls the loop, up to the loop.
    let mut is_entering = false;
    for index in (0..kinds.len()).rev() {
        // Unwinding may end in such code, whose caller is not known then.
        let unknown = if is_complete { NativeKind::Other } else { NativeKind::Loop };
        let caller = kinds.get(index + 1).copied().unwrap_or(unknown);
        if interpreter.calls_compiled(caller) && is_generated(&frames[index]) {
            kinds[index] = if is_entering { NativeKind::Loop } else { NativeKind::Compiled };
        }
        is_entering = match kinds[index] {
            NativeKind::Entry => true,
            NativeKind::Loop => false,
            _ => is_entering,
        };
    }
    if interpreter.runs_compiled_in_loop() {
        for (kind, frame) in kinds.iter_mut().zip(frames) {
            if let Some(mapping) = frame.mapping
                && let Object::Jit { memory: JitMemory::Shared, .. } = objects.get(mapping.object)
            {
                *kind = NativeKind::Loop;
            }
        }
    }
    kinds
}
