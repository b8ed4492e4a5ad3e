//! `perf script` text or `perf.data` of `sched:sched_switch` events, read as off-CPU time. Record with
//! `perf record -e sched:sched_switch -a -g`, or without stacks with `perf sched record`.
//!
//! ```text
//! app 4242/4242 [001] 94564.109216: sched:sched_switch: prev_comm=app prev_pid=4242 prev_state=S ==> next_comm=…
//!         ffffffff8103d0ca __schedule+0x1c ([kernel.kallsyms])
//!                   401136 main+0x10 (/srv/app)
//! ```
//! A stack at which a thread is switched out weighs the microseconds until the thread runs again, or the delay that a
//! `sched:sched_stat_*` event states. Its leaf is `[off-cpu]`, or `[runnable]` if the thread was preempted. The idle
//! thread and threads that exit are left out. Options select a wait by the time, thread and CPU of its beginning.
//!
//! The same input is also a profile of switches, so this format is never detected: `--format perf-sched` selects it.

use std::collections::HashMap;

use bstr::ByteSlice as _;

use super::frame;
use super::header::{self, Header, Line};
use super::naming::Naming;
use super::selection;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::filter::args::{EventChoice, parse_seconds};
use crate::collapse::filter::event::EventFilter;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::formats::perf_data::{self, SWITCH_EVENT as EVENT};
use crate::collapse::line_helpers::{parse_number, split_once, split_word};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::timed_samples::TimedSamples;
use crate::collapse::timeline::SampleTime;
use crate::markers;
use crate::profile::{FrameId, SampleWeight, Weights};
use crate::symbol_name::inlined;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "perf-sched",
    description: "perf.data or perf script of sched:sched_switch, as off-CPU time; only if named by --format",
    tested_with: "perf 6.1, published files",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|_| false),
    reader: FormatReader::Bytes(read),
};

/// A context switch.
struct Switch {
    /// Time of the switch in nanoseconds.
    time: u64,
    /// The thread that is switched out.
    prev_pid: u64,
    /// The thread that is switched in.
    next_pid: u64,
    /// True if the thread that is switched out exits.
    is_exit: bool,
    /// The frames of the thread that is switched out and, if spans are wanted, of its span.
    roots: Vec<FrameId>,
    is_java: bool,
    /// Frames of the stack, leaf first.
    frames: Vec<FrameId>,
    /// `None` if times are not needed.
    sample_time: Option<SampleTime>,
    /// True if the options select the wait that begins.
    is_selected: bool,
}

/// A wait that has not ended.
struct Wait {
    /// Time of the switch-out in nanoseconds.
    start: u64,
    /// The frames of its stack, the root first.
    stack: Vec<FrameId>,
    sample_time: Option<SampleTime>,
}

/// The threads that are off the CPU.
#[derive(Default)]
struct OffCpuThreads {
    /// The waits by thread.
    switched_out: HashMap<u64, Wait>,
    weight: SampleWeight,
    /// The time of the last switch.
    last_time: u64,
    /// Number of waits whose end was recorded.
    ended: u64,
    /// Number of waits whose end was not recorded.
    unended: u64,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    check_event(&document.options.event)?;
    if document.options.weight != SampleWeight::Samples {
        document.set_unit("microseconds");
    }
    match perf_data::recognizes(document.head()?) {
        true => perf_data::read_off_cpu(document, sink),
        false => read_text(document, sink),
    }
}

fn read_text(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let naming = Naming::new(document.options);
    let selection = TimedSamples::new(document.options);
    let (mut line, mut switch, mut threads) = (Vec::new(), None::<Switch>, OffCpuThreads::default());
    threads.weight = document.options.weight;
    document.events = EventFilter::for_names(vec![EVENT.to_vec()]);
    while document.read_line(&mut line)? {
        let parsed = if line.starts_with(b"\t") { None } else { header::parse(&line) };
        if let Some(Line::Sample(header)) = parsed {
            threads.add_switch(switch.take(), sink)?;
            match header.event.map(|event| event.trim_end_with(|last| last == ':')) {
                Some(EVENT) => match parse_switch(&header, &naming, document.options, sink) {
                    Some(mut parsed) => {
                        document.events.accept(EVENT);
                        parsed.is_selected = selection.accept(&selection::sample_info(&header), sink)?;
                        switch = Some(parsed);
                    }
                    None => document.report_malformed("expected a time and the two threads of a switch")?,
                },
                Some(event) if event.starts_with(b"sched:sched_stat_") => threads.add_delay(header.rest, sink)?,
                _ => {}
            }
        } else if let (Some(switch), Some(frame)) = (&mut switch, frame::parse(&line)) {
            let names = naming.frame_names(&frame, switch.is_java);
            switch.frames.extend(names.iter().rev().map(|name| sink.intern(name)));
        } else if parsed.is_none() && !is_detail(&line) {
            document.report_malformed("expected the first line of a sample or a frame")?;
        }
    }
    threads.add_switch(switch, sink)?;
    threads.finish(document, sink)
}

/// Returns true for a blank line, a comment, what perf adds to a frame, and the frames of samples of other events.
fn is_detail(line: &[u8]) -> bool {
    line.trim_ascii().is_empty() || line.starts_with(b"#") || frame::is_annotation(line) || frame::is_frame(line)
}

/// Returns an error if an event is wanted that has no waits.
fn check_event(choice: &EventChoice) -> Result<(), Error> {
    match choice {
        EventChoice::First => Ok(()),
        EventChoice::Named(name) if name == EVENT => Ok(()),
        _ => Err(Error::Invalid(
            "--event: --format perf-sched reads the waits between samples of sched:sched_switch only; omit --format \
             to read the samples of other events"
                .to_owned(),
        )),
    }
}

fn parse_switch(header: &Header<'_>, naming: &Naming, options: &Options, sink: &mut Sink) -> Option<Switch> {
    let (before, after) = split_once(header.rest, "==>")?;
    let (prev_pid, state) = parse_thread(before)?;
    let (next_pid, _) = parse_thread(after)?;
    let name = naming.thread_frame(header);
    let leaf = if state.starts_with(b"R") { markers::RUNNABLE } else { markers::OFF_CPU };
    let time = parse_seconds(header.time?)?;
    let mut roots = vec![sink.intern(&name)];
    if let Some(spans) = &options.spans {
        let mut frames = Vec::new();
        spans.push_frames(None, u32::try_from(prev_pid).unwrap_or(u32::MAX), time, sink, &mut frames);
        roots.extend(frames.into_iter().rev());
    }
    Some(Switch {
        time,
        prev_pid,
        next_pid,
        is_exit: state.starts_with(b"X") || state.starts_with(b"Z") || state.starts_with(b"x"),
        roots,
        is_java: inlined::is_java_thread(&name),
        frames: vec![sink.intern(leaf)],
        sample_time: if sink.needs_times() { selection::sample_time(header, sink) } else { None },
        is_selected: true,
    })
}

/// Returns the word after the last `key` in a text.
fn find_value<'a>(text: &'a [u8], key: &str) -> Option<&'a [u8]> {
    text.rfind(key).map(|start| split_word(&text[start + key.len()..]).0)
}

/// Returns the ID and the state of `prev_comm=a prev_pid=1 prev_prio=120 prev_state=S` or `a:1 [120] S`.
fn parse_thread(text: &[u8]) -> Option<(u64, &[u8])> {
    if let Some(pid) = find_value(text, "_pid=") {
        return Some((parse_number(pid)?, find_value(text, "_state=").unwrap_or_default()));
    }
    let text = text.trim();
    let bracket = text.rfind(" [")?;
    let colon = memchr::memrchr(b':', &text[..bracket])?;
    let state = split_once(&text[bracket..], "] ").map(|(_, state)| state.trim()).unwrap_or_default();
    Some((parse_number(&text[colon + 1..bracket])?, state))
}

impl OffCpuThreads {
    /// Ends the wait of the thread that is switched in, and begins that of the thread that is switched out.
    fn add_switch(&mut self, switch: Option<Switch>, sink: &mut Sink) -> Result<(), Error> {
        let Some(mut switch) = switch else { return Ok(()) };
        self.last_time = self.last_time.max(switch.time);
        if let Some(wait) = self.switched_out.remove(&switch.next_pid) {
            self.ended += 1;
            wait.add(switch.time.saturating_sub(wait.start), self.weight, sink)?;
        }
        // A thread that is switched out has run: the end of its wait was not recorded.
        self.unended += u64::from(self.switched_out.remove(&switch.prev_pid).is_some());
        // Thread 0 is the idle thread.
        if switch.is_selected && switch.prev_pid != 0 && !switch.is_exit {
            switch.frames.extend(switch.roots);
            switch.frames.reverse();
            let wait = Wait { start: switch.time, stack: switch.frames, sample_time: switch.sample_time };
            self.switched_out.insert(switch.prev_pid, wait);
        }
        Ok(())
    }

    /// Ends the wait of a thread with the delay of `comm=a pid=1 delay=1234 [ns]`.
    fn add_delay(&mut self, text: &[u8], sink: &mut Sink) -> Result<(), Error> {
        let pid = find_value(text, "pid=").and_then(parse_number);
        let delay = find_value(text, "delay=").and_then(parse_number);
        let Some((pid, delay)) = pid.zip(delay) else { return Ok(()) };
        match self.switched_out.remove(&pid) {
            Some(wait) => {
                self.ended += 1;
                wait.add(delay, self.weight, sink)
            }
            None => Ok(()),
        }
    }

    /// Adds the threads that are still off the CPU, with the time until the last switch; unless more than half of all
    /// ends were not recorded, so that they may have run.
    fn finish(self, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        if self.unended > 0 {
            let (unended, all) = (self.unended, self.ended.saturating_add(self.unended));
            document.warn(&format!(
                "left out {unended} of {all} waits, whose end was not recorded; record all CPUs (perf record -a)"
            ));
        }
        if self.unended > self.ended {
            return Ok(());
        }
        for wait in self.switched_out.values() {
            wait.add(self.last_time.saturating_sub(wait.start), self.weight, sink)?;
        }
        Ok(())
    }
}

impl Wait {
    /// Adds the wait to the sink, unless its length is zero.
    fn add(&self, nanoseconds: u64, weight: SampleWeight, sink: &mut Sink) -> Result<(), Error> {
        let weight = perf_data::wait_weight(nanoseconds, weight);
        if weight.is_zero() {
            return Ok(());
        }
        sink.add_timed(&self.stack, Weights::plain(weight), self.sample_time)
    }
}

#[cfg(test)]
mod tests {
    use super::parse_thread;

    #[test]
    fn parses_both_forms_of_a_switch() {
        let long = b"prev_comm=a b prev_pid=12 prev_prio=120 prev_state=S ";
        assert_eq!(parse_thread(long), Some((12, &b"S"[..])));
        assert_eq!(parse_thread(b" next_comm=swapper/0 next_pid=0 next_prio=120"), Some((0, &b""[..])));
        assert_eq!(parse_thread(b"a b:c:12 [120] R+ "), Some((12, &b"R+"[..])));
        assert_eq!(parse_thread(b" swapper/0:0 [120]"), Some((0, &b""[..])));
    }
}
