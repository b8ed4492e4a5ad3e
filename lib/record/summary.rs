//! Summarizes a recording in at most five lines: how much was recorded, what is wrong with it, and what to change.

use super::counters::StackCopies;
use super::counters::ring_size::MAX_STACK_COPY;
use super::counters::sampling::CallGraph;
use super::observer::FinishedRecording;
use super::off_cpu::totals::{Amount, StateTotals};
use crate::diagnostics::plural;
use crate::perf::export::profile::UnnamedFrames;
use crate::perf::recording::Counts;
use crate::perf::thread_state::ThreadState;

/// The largest number of lines.
const MAX_LINES: usize = 5;

/// Returns the lines of the summary.
pub fn lines(finished: &FinishedRecording, call_graph: CallGraph, unnamed: UnnamedFrames) -> Vec<String> {
    let counts = &finished.recording.counts;
    let seconds = finished.elapsed.as_secs_f64();
    let mut lines = vec![
        match &finished.totals {
            Some(totals) => format!("{}, in {seconds:.2} s", time_by_state(totals)),
            None => format!("{} in {seconds:.2} s{}", samples_by_event(finished), value_sums(finished)),
        },
        format!(
            "{} lost, {} truncated, {} of {} unknown ({})",
            counts.lost,
            plural(counts.truncated.total(), "stack"),
            unnamed.unnamed,
            plural(unnamed.frames, "frame"),
            percentage(unnamed.unnamed, unnamed.frames),
        ),
    ];
    lines.extend(finished.totals.as_ref().and_then(sparse_stacks));
    lines.extend(reason_for_no_samples(finished));
    let reduce_samples = how_to_reduce_samples(finished, call_graph);
    lines.extend(advice(counts, call_graph, finished.stack_copies, reduce_samples));
    lines.truncate(MAX_LINES);
    lines
}

/// Returns the number of samples, and the events that were sampled.
fn samples_by_event(finished: &FinishedRecording) -> String {
    let events = finished.events.iter().map(|event| format!("{} {}", event.spec.name(), event.rate));
    format!("{} of {}", plural(finished.recording.counts.samples, "sample"), events.collect::<Vec<_>>().join(", "))
}

/// Returns the sums of the values that were summed up instead of counting samples.
fn value_sums(finished: &FinishedRecording) -> String {
    let mut sums = String::new();
    for (index, event) in finished.events.iter().enumerate() {
        if let Some(value) = &event.spec.value {
            let sum = finished.recording.total_period(index as u32);
            sums.push_str(&format!(", sum of {} is {sum}", value.name()));
        }
    }
    sums
}

/// Returns the time in each state.
fn time_by_state(totals: &StateTotals) -> String {
    let mut parts = Vec::new();
    for (state, noun) in [
        (ThreadState::Blocked, "block"),
        (ThreadState::Asleep, "earlier sleep"),
        (ThreadState::Runnable, "preemption"),
        (ThreadState::Lost, "lost span"),
        (ThreadState::Running, "sample on CPU"),
    ] {
        let Amount { count, nanoseconds } = totals.total(state);
        if count > 0 || state == ThreadState::Blocked {
            parts.push(format!("{} ({:.3} s)", plural(count, noun), nanoseconds as f64 / 1e9));
        }
    }
    format!("microseconds: {}", parts.join(", "))
}

fn sparse_stacks(totals: &StateTotals) -> Option<String> {
    let period = totals.sparse_period?;
    Some(format!(
        "stacks of one in {period} switches: blocks of similar length share their time among them \
         (--off-cpu-period 1 takes every stack)"
    ))
}

/// Returns the lines that are shown on request: how stacks were taken, and why they were truncated.
pub fn details(finished: &FinishedRecording, call_graph: CallGraph) -> Vec<String> {
    let is_taken = finished.stack_copies.is_none() && matches!(call_graph, CallGraph::Dwarf(_));
    let taken = is_taken.then(|| "stacks taken by a BPF program".to_owned());
    let copies = finished.stack_copies.map(|StackCopies { copy, ring }| {
        let because = finished.copy_reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        format!("stacks copied: up to {copy} bytes each, into a ring of {} KiB for each CPU{because}", ring >> 10)
    });
    let execve = finished.recording.counts.execve;
    let execve =
        (execve > 0).then(|| format!("{} within execve, where there is no user stack", plural(execve, "sample")));
    copies.into_iter().chain(taken).chain([truncation_details(finished)]).chain(execve).collect()
}

/// Returns the number of stacks that were truncated, by cause.
fn truncation_details(finished: &FinishedRecording) -> String {
    let truncated = &finished.recording.counts.truncated;
    format!(
        "stacks truncated: {} copy too small, {} stack too large, {} not in memory, {} mapping changed, \
         {} missing, {} no unwind information, {} too deep",
        truncated.dump_too_small,
        truncated.stack_too_large,
        truncated.not_resident,
        truncated.stale_mapping,
        truncated.missing,
        truncated.no_unwind_information,
        truncated.too_deep,
    )
}

/// Returns the options that make samples fewer or smaller.
fn how_to_reduce_samples(finished: &FinishedRecording, call_graph: CallGraph) -> &'static str {
    let has_period = finished.events.iter().any(|event| event.rate.period().is_some());
    match (has_period, call_graph) {
        _ if finished.totals.is_some() => "raise --off-cpu-period",
        (true, CallGraph::Dwarf(_)) => "raise -c, or use --call-graph fp",
        (true, _) => "raise -c",
        (false, _) => "lower -F",
    }
}

/// Returns the reason why there is no sample, if there is none. Recordings of time off the CPU show their totals
/// instead.
fn reason_for_no_samples(finished: &FinishedRecording) -> Option<String> {
    let counts = &finished.recording.counts;
    if counts.samples + counts.lost > 0 || finished.totals.is_some() {
        return None;
    }
    if counts.skipped > 0 {
        let samples = plural(counts.skipped, "sample");
        return Some(format!("nothing was recorded: --max-overhead left {samples} out; raise it"));
    }
    let [first, ..] = &finished.events[..] else { return None };
    let name = first.spec.name();
    let measures_time = ["clock", "cycles", "instructions"].iter().any(|time| name.contains(time));
    Some(match measures_time || finished.events.len() > 1 {
        true => {
            "nothing was recorded: the target ran too briefly, or slept all the time; see -F and --off-cpu".to_owned()
        }
        false => format!("nothing was recorded: no {name} event happened"),
    })
}

/// Returns what to change, if something is worth changing, and why stacks were truncated. `reduce_samples` names the
/// options that make samples fewer or smaller.
fn advice(
    counts: &Counts,
    call_graph: CallGraph,
    stack_copies: Option<StackCopies>,
    reduce_samples: &str,
) -> Vec<String> {
    let mut advice = Vec::new();
    advice.extend(stack_copies.and_then(|copies| copy_size_advice(counts, copies.copy)));
    let no_unwind_information = counts.truncated.no_unwind_information;
    if is_frequent(no_unwind_information, counts) {
        let share = percentage(no_unwind_information, counts.samples);
        advice.push(format!(
            "{share} of stacks end in code without unwind information \
             (java: -XX:+PreserveFramePointer; node: --perf-basic-prof; python: -X perf)"
        ));
    }
    if call_graph == CallGraph::FramePointers && counts.user_frames * 2 < counts.user_stacks * 5 {
        advice.push(
            "most stacks have only one or two user frames; if the program was built without frame pointers, \
             use --call-graph dwarf"
                .to_owned(),
        );
    }
    if counts.lost_switches > 0 {
        advice.push(format!("{} lost: their time is [lost]", plural(counts.lost_switches, "switch record")));
    }
    if counts.lost > 0 {
        let all = counts.samples + counts.lost;
        let share = percentage(counts.lost, all);
        advice.push(format!("lost {} of {all} samples ({share}); raise -m or {reduce_samples}", counts.lost));
    }
    if counts.lost_sideband > 0 {
        let lost = plural(counts.lost_sideband, "record");
        advice.push(format!("{lost} of new mappings and threads lost: some names may be missing"));
    }
    if counts.throttled > 0 {
        let times = plural(counts.throttled, "time");
        advice.push(format!("the kernel throttled sampling {times}; {reduce_samples}"));
    }
    advice
}

/// Returns advice if copies of stacks are too small.
fn copy_size_advice(counts: &Counts, bytes: u32) -> Option<String> {
    let truncated = counts.truncated.dump_too_small;
    if !is_frequent(truncated, counts) {
        return None;
    }
    let share = percentage(truncated, counts.samples);
    let larger = match bytes.saturating_mul(2).min(MAX_STACK_COPY) {
        MAX_STACK_COPY if bytes == MAX_STACK_COPY => String::new(),
        larger => format!("; use --call-graph dwarf,{larger}"),
    };
    Some(format!("{share} of stacks are truncated where their copy of {bytes} bytes ends{larger}"))
}

/// True if more than one sample in twenty is affected.
fn is_frequent(affected: u64, counts: &Counts) -> bool {
    affected * 20 > counts.samples
}

fn percentage(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}
