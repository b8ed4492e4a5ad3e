//! `perf script` text of `sched:sched_switch`, read as time off the CPU: each stack at which a thread was switched out
//! weighs the microseconds until it runs again, or what a `sched_stat` event says that it slept.
//!
//! The same text is a profile of switches too, so that this reading is to be asked for with `--format perf-sched`.

use std::collections::HashMap;

use bstr::ByteSlice as _;

use super::frame;
use super::header::{self, Header, Line};
use super::name::Naming;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::filter::args::parse_seconds;
use crate::collapse::formats::{Format, FormatReader};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::text;
use crate::markers;
use crate::profile::{FrameId, Weight};
use crate::symbol_name::inlined;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "perf-sched",
    description: "perf script of sched:sched_switch, as time off the CPU; only if named by --format",
    has_times: false,
    recognizes: |_| false,
    reader: FormatReader::Lines(read),
};

/// The states that a thread leaves off the CPU in, as the recorder names them.
const BLOCKED: &[u8] = markers::OFF_CPU;
const PREEMPTED: &[u8] = markers::RUNNABLE;

/// A switch of a CPU from one thread to another.
struct Switch {
    time: u64,
    from: u64,
    to: u64,
    ended: bool,
    root: FrameId,
    java: bool,
    /// Leaf first.
    frames: Vec<FrameId>,
}

/// The threads that wait.
#[derive(Default)]
struct Waiting {
    since: HashMap<u64, (u64, Vec<FrameId>)>,
    last: u64,
    ended: u64,
    /// Of how many waits the end was not recorded.
    unknown: u64,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let naming = Naming::new(document.options);
    let (mut line, mut switch, mut waiting) = (Vec::new(), None::<Switch>, Waiting::default());
    document.unit("microseconds");
    while document.line(&mut line)? {
        let parsed = if line.starts_with(b"\t") { None } else { header::parse(&line) };
        if let Some(Line::Sample(header)) = parsed {
            waiting.take(switch.take(), sink)?;
            match header.event.map(|event| event.trim_end_with(|last| last == ':')) {
                Some(b"sched:sched_switch") => match begin(&header, &naming, sink) {
                    Some(begun) => switch = Some(begun),
                    None => document.malformed("expected a time and the two threads of a switch")?,
                },
                Some(event) if event.starts_with(b"sched:sched_stat_") => waiting.slept(header.rest, sink)?,
                _ => {}
            }
        } else if let (Some(switch), Some(frame)) = (&mut switch, frame::parse(&line)) {
            let names = naming.names(&frame, switch.java);
            switch.frames.extend(names.iter().rev().map(|name| sink.intern(name)));
        }
    }
    waiting.take(switch, sink)?;
    waiting.finish(document, sink)
}

fn begin(header: &Header<'_>, naming: &Naming, sink: &mut Sink) -> Option<Switch> {
    let (before, after) = text::split_once(header.rest, "==>")?;
    let (from, state) = thread(before)?;
    let (to, _) = thread(after)?;
    let name = naming.thread(header);
    let leaf = if state.starts_with(b"R") { PREEMPTED } else { BLOCKED };
    Some(Switch {
        time: parse_seconds(header.time?)?,
        from,
        to,
        ended: state.starts_with(b"X") || state.starts_with(b"Z") || state.starts_with(b"x"),
        root: sink.intern(&name),
        java: inlined::is_java_thread(&name),
        frames: vec![sink.intern(leaf)],
    })
}

/// The number and the state of `prev_comm=a prev_pid=1 prev_prio=120 prev_state=S` or `a:1 [120] S`.
fn thread(text: &[u8]) -> Option<(u64, &[u8])> {
    let after = |key: &str| text.rfind(key).map(|at| text::split_word(&text[at + key.len()..]).0);
    if let Some(pid) = after("_pid=") {
        return Some((text::number(pid)?, after("_state=").unwrap_or_default()));
    }
    let text = text.trim();
    let bracket = text.rfind(" [")?;
    let colon = memchr::memrchr(b':', &text[..bracket])?;
    let state = text::split_once(&text[bracket..], "] ").map(|(_, state)| state.trim()).unwrap_or_default();
    Some((text::number(&text[colon + 1..bracket])?, state))
}

impl Waiting {
    fn take(&mut self, switch: Option<Switch>, sink: &mut Sink) -> Result<(), Error> {
        let Some(mut switch) = switch else { return Ok(()) };
        self.last = self.last.max(switch.time);
        if let Some((since, stack)) = self.since.remove(&switch.to) {
            self.ended += 1;
            add(&stack, switch.time.saturating_sub(since), sink)?;
        }
        switch.frames.push(switch.root);
        // The idle thread waits for nothing.
        if switch.from != 0 && !switch.ended && self.since.insert(switch.from, (switch.time, switch.frames)).is_some() {
            self.unknown += 1;
        }
        Ok(())
    }

    /// Takes `comm=a pid=1 delay=1234 [ns]`.
    fn slept(&mut self, text: &[u8], sink: &mut Sink) -> Result<(), Error> {
        let after =
            |key: &str| text.rfind(key).and_then(|at| text::number(text::split_word(&text[at + key.len()..]).0));
        let Some((pid, delay)) = after("pid=").zip(after("delay=")) else { return Ok(()) };
        match self.since.remove(&pid) {
            Some((_, stack)) => {
                self.ended += 1;
                add(&stack, delay, sink)
            }
            None => Ok(()),
        }
    }

    /// Those who still wait have done so up to the end, unless most ends were not recorded.
    fn finish(self, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        if self.unknown > 0 {
            let (unknown, all) = (self.unknown, self.ended.saturating_add(self.unknown));
            document.warn(&format!(
                "{unknown} of {all} waits left out, whose end was not recorded (is that all CPUs, -a?)"
            ));
        }
        if self.unknown > self.ended {
            return Ok(());
        }
        for (since, stack) in self.since.values() {
            add(stack, self.last.saturating_sub(*since), sink)?;
        }
        Ok(())
    }
}

fn add(frames: &[FrameId], nanoseconds: u64, sink: &mut Sink) -> Result<(), Error> {
    let mut stack = Stack::default();
    stack.extend(frames);
    stack.add_leaf_first(Weight::from_millionths(u128::from(nanoseconds) * 1000), sink)
}

#[cfg(test)]
mod tests {
    use super::thread;

    #[test]
    fn both_forms_of_a_switch_are_read() {
        let long = b"prev_comm=a b prev_pid=12 prev_prio=120 prev_state=S ";
        assert_eq!(thread(long), Some((12, &b"S"[..])));
        assert_eq!(thread(b" next_comm=swapper/0 next_pid=0 next_prio=120"), Some((0, &b""[..])));
        assert_eq!(thread(b"a b:c:12 [120] R+ "), Some((12, &b"R+"[..])));
        assert_eq!(thread(b" swapper/0:0 [120]"), Some((0, &b""[..])));
    }
}
