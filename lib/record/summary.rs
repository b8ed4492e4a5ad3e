//! What a recording has to say of itself, in five lines at most.

use super::Recorded;
use super::sampling::{CallGraph, LARGEST_COPY};
use crate::diagnostics::plural;
use crate::perf::naming::Unknown;
use crate::perf::recording::Counts;

/// How much was recorded, what is wrong with it, and what to change.
pub fn lines(recorded: &Recorded, call_graph: CallGraph, unknown: Unknown) -> Vec<String> {
    let counts = &recorded.recording.counts;
    let events: Vec<String> =
        recorded.metrics.iter().map(|(metric, rate)| format!("{} {rate}", metric.name())).collect();
    let (samples, seconds) = (plural(counts.samples, "sample"), recorded.elapsed.as_secs_f64());
    let mut lines = vec![
        format!("{samples} of {} in {seconds:.2} s", events.join(", ")),
        format!(
            "{} lost, {} cut before the root, {} of {} unknown ({})",
            counts.lost,
            plural(counts.truncated.total(), "stack"),
            unknown.unknown,
            plural(unknown.frames, "frame"),
            share(unknown.unknown, unknown.frames),
        ),
    ];
    lines.extend(advice(counts, call_graph));
    lines.truncate(5);
    lines
}

/// What cut stacks before their root.
pub fn cuts(recorded: &Recorded) -> String {
    let cut = &recorded.recording.counts.truncated;
    format!(
        "stacks cut: {} copy too small, {} changed before the rest was read, {} no unwind information, {} too deep",
        cut.dump_too_small, cut.stale_tail, cut.no_unwind_information, cut.too_deep,
    )
}

/// What to change, where something is worth changing; and why stacks were cut.
fn advice(counts: &Counts, call_graph: CallGraph) -> Vec<String> {
    let mut advice = Vec::new();
    if counts.samples + counts.lost == 0 {
        advice.push("nothing was recorded: it ran too briefly, or slept all the time".to_owned());
    }
    let cut = &counts.truncated;
    let often = |part: u64| part * 20 > counts.samples;
    if often(cut.dump_too_small + cut.stale_tail)
        && let CallGraph::Dwarf(bytes) = call_graph
    {
        let share = share(cut.dump_too_small + cut.stale_tail, counts.samples);
        let more = (bytes * 2).min(LARGEST_COPY);
        advice.push(format!("{share} of stacks are cut at the copy of {bytes} bytes; try --call-graph dwarf,{more}"));
    }
    if often(cut.no_unwind_information) {
        let share = share(cut.no_unwind_information, counts.samples);
        advice.push(format!(
            "{share} of stacks end in code without unwind information \
             (java: -XX:+PreserveFramePointer; node: --perf-basic-prof; python: -X perf)"
        ));
    }
    if counts.lost > 0 {
        let all = counts.samples + counts.lost;
        advice.push(format!("lost {} of {all} samples ({}); lower -F", counts.lost, share(counts.lost, all)));
    }
    if counts.lost_side_band > 0 {
        let lost = plural(counts.lost_side_band, "record");
        advice.push(format!("{lost} of new mappings and threads lost: some names may be missing"));
    }
    if counts.throttled > 0 {
        advice.push(format!("the kernel held sampling back {}; lower -F", plural(counts.throttled, "time")));
    }
    advice
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}
