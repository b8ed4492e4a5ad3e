//! Summarizes a recording in at most five lines: how much was recorded, what is wrong with it, and what to change.

use super::counters::StackCopies;
use super::counters::sampling::CallGraph;
use super::coverage::Coverage;
use super::hints::{Hints, percentage};
use super::observer::FinishedRecording;
use super::off_cpu::totals::{Amount, StateTotals};
use super::pairs::{PairSums, PairTotals, SPARSE_EVERY};
use crate::diagnostics::plural;
use crate::perf::export::profile::UnnamedFrames;
use crate::perf::symbols::symbolize::LocationFrames;
use crate::perf::thread_state::ThreadState;

/// The largest number of lines.
const MAX_LINES: usize = 5;

/// Returns what is wrong with a recording.
pub fn hints(finished: &FinishedRecording, call_graph: CallGraph, names: &LocationFrames) -> Vec<String> {
    Hints { finished, call_graph, coverage: Coverage::new(finished), names }.lines()
}

/// Returns the lines of the summary, with hints at what is wrong.
pub fn lines(finished: &FinishedRecording, unnamed: UnnamedFrames, hints: &[String]) -> Vec<String> {
    let counts = &finished.recording.counts;
    let coverage = Coverage::new(finished);
    let seconds = finished.elapsed.as_secs_f64();
    let mut lines = vec![
        match (&finished.totals, &finished.pairs) {
            (Some(totals), _) => format!("{}, in {seconds:.2} s", time_by_state(totals)),
            (None, Some(pairs)) => format!("{}, in {seconds:.2} s", sum_of_pairs(pairs)),
            (None, None) => {
                let covered = coverage.and_then(|coverage| coverage.describe()).filter(|_| counts.samples > 0);
                let covered = covered.or_else(|| unknown_coverage(finished));
                let covered = covered.map_or(String::new(), |covered| format!("; {covered}"));
                format!("{} in {seconds:.2} s{}{covered}", samples_by_event(finished), value_sums(finished))
            }
        },
        format!(
            "{} lost, {} truncated, {} of {} unknown ({})",
            finished.pairs.as_ref().map_or(counts.lost, PairTotals::lost),
            plural(counts.truncated.total(), "stack"),
            unnamed.unnamed,
            plural(unnamed.frames, "frame"),
            percentage(unnamed.unnamed, unnamed.frames),
        ),
    ];
    lines.extend(finished.totals.as_ref().and_then(earlier_blocks));
    lines.extend(finished.totals.as_ref().and_then(sparse_stacks));
    lines.extend(finished.totals.as_ref().and_then(forgotten_waits));
    lines.extend(finished.totals.iter().flat_map(|totals| totals.path_warnings.clone()));
    lines.extend(finished.pairs.iter().flat_map(lost_pairs));
    lines.extend_from_slice(hints);
    lines.truncate(MAX_LINES);
    lines
}

/// Returns the reason why the share of the CPU time that samples cover is not known.
fn unknown_coverage(finished: &FinishedRecording) -> Option<String> {
    let is_of_time = finished.events.iter().any(|event| event.spec.is_clock());
    let reason = finished.usage.unknown_time.as_ref().filter(|_| is_of_time)?;
    Some(format!("all CPU time is not known: {reason}"))
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
            let sum = finished.recording.total(index as u32).period;
            sums.push_str(&format!(", sum of {} is {sum}", value.name()));
        }
    }
    sums
}

/// Returns the time in each state.
fn time_by_state(totals: &StateTotals) -> String {
    // After a wake-up, or preempted.
    let runnable = if totals.has_wakeups { "run-queue wait" } else { "preemption" };
    let mut parts = Vec::new();
    for (state, noun) in [
        (ThreadState::Blocked, "block"),
        (ThreadState::Asleep, "earlier sleep"),
        (ThreadState::Runnable, runnable),
        (ThreadState::Lost, "lost span"),
        (ThreadState::Running, "on-CPU sample"),
    ] {
        let Amount { count, nanoseconds } = totals.total(state);
        if count > 0 || state == ThreadState::Blocked && totals.has_blocks {
            parts.push(format!("{} ({:.3} s)", plural(count, noun), nanoseconds as f64 / 1e9));
        }
    }
    if parts.is_empty() {
        parts.push("nothing".to_owned());
    }
    format!("microseconds: {}", parts.join(", "))
}

/// Returns the number of pairs, and the time of all.
fn sum_of_pairs(PairTotals { sums, over, .. }: &PairTotals) -> String {
    let PairSums { pairs, nanoseconds, short_pairs, short_nanoseconds, open, .. } = *sums;
    let mut text = format!("microseconds: {} ({})", plural(pairs, "pair"), format_seconds(nanoseconds));
    if !over.is_zero() {
        text.push_str(&format!(
            ", {short_pairs} shorter than {over:?} left out ({})",
            format_seconds(short_nanoseconds)
        ));
    }
    if open > 0 {
        text.push_str(&format!(", {open} still open at the end"));
    }
    text
}

fn format_seconds(nanoseconds: u64) -> String {
    format!("{:.3} s", nanoseconds as f64 / 1e9)
}

/// Returns lines about pairs whose stacks are estimated, or that were lost.
fn lost_pairs(pairs: &PairTotals) -> Vec<String> {
    let sparse = (pairs.represented > 1).then(|| {
        let most = if pairs.represented > SPARSE_EVERY { format!(" to {}", pairs.represented) } else { String::new() };
        format!("where pairs were dense, stacks of one in {SPARSE_EVERY}{most}, which share the time of the others")
    });
    let lost = pairs.lost();
    let lost = (lost > 0)
        .then(|| format!("{} lost: there was no room, or one of their events was lost", plural(lost, "pair")));
    sparse.into_iter().chain(lost).collect()
}

fn earlier_blocks(totals: &StateTotals) -> Option<String> {
    let threads = plural(totals.earlier_blocks, "thread");
    (totals.earlier_blocks > 0)
        .then(|| format!("{threads} slept when the recording began: the time before it is not counted"))
}

fn sparse_stacks(totals: &StateTotals) -> Option<String> {
    let period = totals.sparse_period?;
    let longest = if totals.finds_long_blocks { " and of the longest blocks" } else { "" };
    Some(format!(
        "stacks of one in {period} switches{longest}, which share the time of other blocks of similar length \
         (--off-cpu-period 1 captures every stack)"
    ))
}

fn forgotten_waits(totals: &StateTotals) -> Option<String> {
    let seconds = format_seconds(totals.forgotten_waits);
    (totals.forgotten_waits > 0)
        .then(|| format!("{seconds} of waits have an [unknown] waker: too many blocks happened meanwhile to keep all"))
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
        "stacks truncated: {} copy too small, {} stack too large, {} on another stack, {} of another greenlet, {} overwritten, {} not in \
         memory, {} mapping changed, {} missing, {} of 32-bit programs, {} no unwind information, \
         {} too deep",
        truncated.dump_too_small,
        truncated.stack_too_large,
        truncated.other_stack,
        truncated.other_greenlet,
        truncated.overwritten,
        truncated.not_resident,
        truncated.stale_mapping,
        truncated.missing,
        truncated.abi_32,
        truncated.no_unwind_information,
        truncated.too_deep,
    )
}
