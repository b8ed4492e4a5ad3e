//! What a recording has to say of itself, in five lines at most.

use super::Recorded;
use super::counters::sampling::{CallGraph, LARGEST_COPY, Rate};
use super::events::spec::EventSpec;
use super::off_cpu::Times;
use crate::diagnostics::plural;
use crate::perf::export::profile::Unknown;
use crate::perf::recording::Counts;
use crate::perf::thread_state::ThreadState;

/// How much was recorded, what is wrong with it, and what to change.
pub fn lines(recorded: &Recorded, call_graph: CallGraph, unknown: Unknown) -> Vec<String> {
    let counts = &recorded.recording.counts;
    let events: Vec<String> =
        recorded.metrics.iter().map(|(metric, rate)| format!("{} {rate}", metric.name())).collect();
    let (samples, seconds) = (plural(counts.samples, "sample"), recorded.elapsed.as_secs_f64());
    let mut lines = vec![
        match &recorded.times {
            Some(times) => format!("{}, in {seconds:.2} s", charged(times)),
            None => format!("{samples} of {} in {seconds:.2} s{}", events.join(", "), quantities(recorded)),
        },
        format!(
            "{} lost, {} cut before the root, {} of {} unknown ({})",
            counts.lost,
            plural(counts.truncated.total(), "stack"),
            unknown.unknown,
            plural(unknown.frames, "frame"),
            share(unknown.unknown, unknown.frames),
        ),
    ];
    lines.extend(recorded.times.as_ref().and_then(sparse));
    lines.extend(nothing(recorded));
    lines.extend(advice(counts, call_graph, cure(recorded, call_graph)));
    lines.truncate(5);
    lines
}

/// What events add up to that are more than their number.
fn quantities(recorded: &Recorded) -> String {
    let quantity = |(number, (metric, _)): (usize, &(EventSpec, Rate))| {
        let name = metric.quantity.as_ref()?.name();
        Some(format!(", {} of {name} in all", recorded.recording.total_period(number as u32)))
    };
    recorded.metrics.iter().enumerate().filter_map(quantity).collect()
}

/// Where the time went.
fn charged(times: &Times) -> String {
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    let mut parts = Vec::new();
    for (state, what) in [
        (ThreadState::Blocked, "block"),
        (ThreadState::Asleep, "earlier sleep"),
        (ThreadState::Runnable, "preemption"),
        (ThreadState::Lost, "lost span"),
    ] {
        let (count, nanoseconds) = times.sum(state);
        if count > 0 || state == ThreadState::Blocked {
            parts.push(format!("{} of {:.3} s", plural(count, what), seconds(nanoseconds)));
        }
    }
    let (samples, nanoseconds) = times.sum(ThreadState::Running);
    if samples > 0 {
        parts.push(format!("{:.3} s on CPUs in {}", seconds(nanoseconds), plural(samples, "sample")));
    }
    format!("microseconds: {}", parts.join(", "))
}

fn sparse(times: &Times) -> Option<String> {
    let period = times.sparse?;
    Some(format!(
        "stacks of every {period} switches: what lasted equally long shares its time out among them \
         (--off-cpu-period 1 takes each)"
    ))
}

/// What cut stacks before their root.
pub fn cuts(recorded: &Recorded) -> String {
    let cut = &recorded.recording.counts.truncated;
    format!(
        "stacks cut: {} copy too small, {} changed before the rest was read, {} no stack (within execve), \
         {} no unwind information, {} too deep",
        cut.dump_too_small, cut.stale_tail, cut.no_stack, cut.no_unwind_information, cut.too_deep,
    )
}

/// What makes samples fewer or smaller.
fn cure(recorded: &Recorded, call_graph: CallGraph) -> &'static str {
    let by_period = recorded.metrics.iter().any(|(_, rate)| rate.period().is_some());
    match (by_period, call_graph) {
        _ if recorded.times.is_some() => "raise --off-cpu-period",
        (true, CallGraph::Dwarf(_)) => "raise -c, or take --call-graph fp",
        (true, _) => "raise -c",
        (false, _) => "lower -F",
    }
}

/// Why there is no sample. Of time off the CPU the sums have said it.
fn nothing(recorded: &Recorded) -> Option<String> {
    let counts = &recorded.recording.counts;
    if counts.samples + counts.lost > 0 || recorded.times.is_some() {
        return None;
    }
    if counts.passed_over > 0 {
        let all = plural(counts.passed_over, "sample");
        return Some(format!("nothing was recorded: passed over {all}, for fewer were to be taken"));
    }
    let [first, ..] = &recorded.metrics[..] else { return None };
    let name = first.0.name();
    let is_time = ["clock", "cycles", "instructions"].iter().any(|time| name.contains(time));
    Some(match is_time || recorded.metrics.len() > 1 {
        true => "nothing was recorded: it ran too briefly, or slept all the time".to_owned(),
        false => format!("nothing was recorded: no {name} happened"),
    })
}

/// What to change, where something is worth changing; and why stacks were cut.
fn advice(counts: &Counts, call_graph: CallGraph, cure: &str) -> Vec<String> {
    let mut advice = Vec::new();
    let cut = &counts.truncated;
    let often = |part: u64| part * 20 > counts.samples;
    if let CallGraph::Dwarf(bytes) = call_graph {
        let cure = match (bytes * 2).min(LARGEST_COPY) {
            LARGEST_COPY if bytes == LARGEST_COPY => String::new(),
            more => format!("; try --call-graph dwarf,{more}"),
        };
        if often(cut.dump_too_small + cut.stale_tail) {
            let share = share(cut.dump_too_small + cut.stale_tail, counts.samples);
            advice.push(format!("{share} of stacks are cut at the copy of {bytes} bytes{cure}"));
        }
        if often(counts.new_callers) {
            let change = "callers beyond it change within milliseconds and may be another call's";
            advice.push(format!("of stacks larger than the copy of {bytes} bytes, {change}{cure}"));
        }
    }
    if often(cut.no_unwind_information) {
        let share = share(cut.no_unwind_information, counts.samples);
        advice.push(format!(
            "{share} of stacks end in code without unwind information \
             (java: -XX:+PreserveFramePointer; node: --perf-basic-prof; python: -X perf)"
        ));
    }
    if call_graph == CallGraph::FramePointers && counts.user_frames * 2 < counts.user_stacks * 5 {
        let advised = "built without frame pointers? Try --call-graph dwarf";
        advice.push(format!("most stacks have one or two frames of the program: {advised}"));
    }
    if counts.lost_switches > 0 {
        advice.push(format!("{} lost: their time is [lost]", plural(counts.lost_switches, "switch record")));
    }
    if counts.lost > 0 {
        let all = counts.samples + counts.lost;
        let share = share(counts.lost, all);
        advice.push(format!("lost {} of {all} samples ({share}); raise -m or {cure}", counts.lost));
    }
    if counts.lost_side_band > 0 {
        let lost = plural(counts.lost_side_band, "record");
        advice.push(format!("{lost} of new mappings and threads lost: some names may be missing"));
    }
    if counts.throttled > 0 {
        advice.push(format!("the kernel held sampling back {}; {cure}", plural(counts.throttled, "time")));
    }
    advice
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}
