//! Advice for recordings with too many samples, or without names.

use super::counters::sampling::CallGraph;

/// Returns the options that make samples fewer or smaller. `off_cpu` is given if time off the CPU was recorded, and is true if
/// that was for `--ring` or `--critical-path`, which take the stack of every switch.
pub fn reduce_samples(off_cpu: Option<bool>, has_period: bool, call_graph: CallGraph) -> &'static str {
    match (off_cpu, has_period, call_graph) {
        // --latency samples running threads only.
        (_, false, _) => "lower -F",
        (Some(true), ..) => "record fewer threads",
        (Some(false), ..) => "raise --off-cpu-period, or record fewer threads",
        (None, true, CallGraph::Dwarf(_)) => "raise -c, or use --call-graph fp",
        (None, true, _) => "raise -c",
    }
}

/// Returns how to see the methods of Java threads that slept before the recording: nothing that the recorder reads names them.
pub fn print_java_stacks(pid: u32) -> String {
    format!("`jstack {pid}` prints those of threads that slept before the recording")
}

#[cfg(test)]
mod tests {
    use super::reduce_samples;
    use crate::record::counters::sampling::CallGraph;

    #[test]
    fn the_period_of_switches_is_no_option_of_a_ring() {
        let advice = |off_cpu| reduce_samples(off_cpu, true, CallGraph::FramePointers);
        assert_eq!(advice(Some(true)), "record fewer threads");
        assert_eq!(advice(Some(false)), "raise --off-cpu-period, or record fewer threads");
        assert_eq!(advice(None), "raise -c");
        assert_eq!(reduce_samples(Some(false), false, CallGraph::FramePointers), "lower -F");
    }
}
