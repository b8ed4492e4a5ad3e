//! Hints at what is wrong with a recording and what helps, each by its cause, as it was counted.

mod scripts;
mod truncation;
mod uncovered;

use object::Object as _;

use super::advice;
use super::counters::sampling::CallGraph;
use super::coverage::{Coverage, seconds};
use super::observer::FinishedRecording;
use crate::diagnostics::{plural, printable};
use crate::perf::objects::object::{Elf, JitMemory, Object, UPROBES};
use crate::perf::recording::Counts;
use crate::perf::runtime::Runtime;
use crate::perf::symbols::symbolize::LocationFrames;
use crate::perf::thread_context::VARIABLE_NAME;
use crate::perf::thread_state::ThreadState;

/// The facts that hints are drawn from.
#[derive(Clone, Copy)]
pub struct Hints<'a> {
    pub finished: &'a FinishedRecording,
    pub call_graph: CallGraph,
    pub coverage: Option<Coverage<'a>>,
    /// The names of all locations.
    pub names: &'a LocationFrames,
}

impl Hints<'_> {
    /// Returns all hints, the most useful first.
    pub fn lines(self) -> Vec<String> {
        let hints = [
            self.no_samples(),
            self.no_waits(),
            self.earlier_sleeps(),
            self.unread_stacks(),
            self.lost_samples(),
            self.lost_stacks(),
            self.lost_switches(),
            self.low_coverage(),
            self.throttled(),
            self.no_unwind_information(),
            self.small_copies(),
            self.large_stacks(),
            self.other_stack(),
            self.other_greenlet(),
            self.overwritten(),
            self.not_resident(),
            self.changed_mappings(),
            self.programs_of_32_bits(),
            self.unnamed_generated_code(),
            self.unsupported_interpreters(),
            self.unnamed_scripts(),
            self.unpublished_contexts(),
            self.unknown_tasks(),
            self.no_frame_pointers(),
            self.lost_sideband(),
        ];
        hints.into_iter().flatten().collect()
    }

    /// Says that no process publishes the contexts that are shown.
    fn unpublished_contexts(&self) -> Option<String> {
        let recording = &self.finished.recording;
        let label = recording.options.roots.context_label().filter(|_| !recording.has_thread_contexts())?;
        Some(match recording.hidden_thread_context() {
            Some(path) => format!(
                "--split-by {label}: {} does not export {VARIABLE_NAME}, the variable with its spans; \
                 link it with -Wl,--export-dynamic-symbol={VARIABLE_NAME}",
                printable(&String::from_utf8_lossy(path))
            ),
            None => format!(
                "--split-by {label}: no process publishes its spans: none exports {VARIABLE_NAME} \
                 (thread context of OpenTelemetry, OTEP 4947)"
            ),
        })
    }

    /// Returns the interpreters that do not tell which task a thread runs.
    fn unknown_tasks(&self) -> Option<String> {
        let names: Vec<String> = self.finished.recording.interpreters_without_tasks().map(printable).collect();
        let names = (!names.is_empty()).then(|| names.join(" and "))?;
        Some(format!("--split-by task: {names} does not tell which task a thread runs; Python 3.14 and later do"))
    }

    fn counts(&self) -> &Counts {
        &self.finished.recording.counts
    }

    /// Returns the reason why there is no sample, if there is none. Recordings of time off the CPU show their totals
    /// instead.
    fn no_samples(&self) -> Option<String> {
        let counts = self.counts();
        if counts.samples + counts.lost > 0 || self.finished.totals.is_some() || self.finished.pairs.is_some() {
            return None;
        }
        let reason = if counts.skipped > 0 {
            format!("--max-overhead left {} out; raise it", plural(counts.skipped, "sample"))
        } else {
            self.reason_for_no_samples()?
        };
        Some(format!("nothing was recorded: {reason}"))
    }

    /// Returns what an empty recording of time off the CPU means.
    fn no_waits(&self) -> Option<String> {
        let totals = self.finished.totals.as_ref()?;
        let is_unexplained = totals.has_blocks && totals.is_empty();
        let reason = if totals.is_bounded {
            "no wait was within --min-block and --max-block"
        } else if totals.includes_sleepers {
            "no thread of the target waited; leave out --off-cpu to record what they run"
        } else {
            "no thread of the target began to wait; --bpf, -C and --cgroup leave out threads that already sleep"
        };
        (is_unexplained && self.counts().lost == 0).then(|| format!("nothing was recorded: {reason}"))
    }

    /// Returns what helps to see where threads sleep that never ran.
    fn earlier_sleeps(&self) -> Option<String> {
        let sleeps = self.finished.totals.as_ref()?.total(ThreadState::Asleep);
        let help = match &self.finished.copy_reason {
            Some(reason) => format!("a BPF program reads it, but {reason}"),
            None if self.call_graph == CallGraph::FramePointers || self.finished.stack_copies.is_some() => {
                "leave out --call-graph to see it".to_owned()
            }
            None => "a longer recording may see them run".to_owned(),
        };
        // Some of many threads wake up while the recording begins.
        let is_long = u128::from(sleeps.nanoseconds) * 1000 > self.finished.elapsed.as_nanos();
        is_long
            .then(|| format!("{} began before the recording, without a stack; {help}", plural(sleeps.count, "sleep")))
    }

    /// Says that the stacks of threads that slept could not be read.
    fn unread_stacks(&self) -> Option<String> {
        let unread = self.finished.totals.as_ref()?.unread_stacks;
        (unread > 0).then(|| {
            format!(
                "the stacks of {} that slept when the recording began are truncated: reading them needs CAP_SYS_PTRACE",
                plural(unread, "thread")
            )
        })
    }

    /// True if stacks are shown that no sample was taken of: of threads that slept when the recording began.
    fn shows_sleepers(&self) -> bool {
        self.finished.totals.as_ref().is_some_and(|totals| totals.earlier_blocks > 0)
    }

    fn reason_for_no_samples(&self) -> Option<String> {
        let [first, ..] = &self.finished.events[..] else { return None };
        let elapsed = self.finished.elapsed.as_nanos() as f64;
        let Some((coverage, used)) = self.coverage.and_then(|coverage| Some((coverage, coverage.used_time()?))) else {
            return Some(match first.spec.is_discrete() {
                true if first.rate.period() == Some(1) => format!("no {} event happened", first.spec.name()),
                true => format!(
                    "too few {} events happened for a sample in the threads that were recorded",
                    first.spec.name()
                ),
                false => "the target ran too briefly, or slept all the time; see -F and --off-cpu".to_owned(),
            });
        };
        let time = seconds(used);
        Some(match used / elapsed < 0.01 && elapsed > 0.1e9 {
            _ if coverage.is_low() => format!("no sample was taken in {time} of CPU time"),
            // No rate is high enough for that.
            _ if used < 2e4 => "the target ran too briefly, or slept all the time; see --off-cpu".to_owned(),
            true => format!("the target slept ({time} CPU time in {}); see --off-cpu", seconds(elapsed)),
            false => format!("the target used {time} CPU time, and a sample stands for {}; raise -F", {
                seconds(coverage.sample())
            }),
        })
    }

    fn lost_samples(&self) -> Option<String> {
        let Counts { lost, samples, .. } = *self.counts();
        let all = samples + lost;
        let help = self.reduce_samples();
        (lost > 0).then(|| format!("lost {lost} of {all} samples ({}); raise -m or {help}", percentage(lost, all)))
    }

    /// Says that stacks which the BPF program took were lost, if no sample was: a stack is written before its sample.
    fn lost_stacks(&self) -> Option<String> {
        let FinishedRecording { copy_reason, stack_copies, totals, .. } = self.finished;
        let Counts { lost, samples, .. } = *self.counts();
        let (missing, help) = (self.counts().truncated.missing, self.reduce_samples());
        let are_taken = copy_reason.is_none() && stack_copies.is_none() && totals.is_none();
        (are_taken && lost == 0 && missing * 1000 > samples)
            .then(|| format!("lost the stacks of {}; raise -m or {help}", plural(missing, "sample")))
    }

    fn lost_switches(&self) -> Option<String> {
        let lost = self.counts().lost_switches;
        let spans = self.finished.totals.as_ref().map_or(0, |totals| totals.total(ThreadState::Lost).count);
        (lost > 0).then(|| describe_lost_switches(lost, spans))
    }

    fn lost_sideband(&self) -> Option<String> {
        let lost = self.counts().lost_sideband;
        let records = plural(lost, "record");
        (lost > 0).then(|| format!("{records} of new mappings and threads lost: some names may be missing"))
    }

    fn throttled(&self) -> Option<String> {
        let throttled = self.counts().throttled;
        let times = plural(throttled, "time");
        (throttled > 0).then(|| format!("the kernel throttled sampling {times}; {}", self.reduce_samples()))
    }

    /// Returns the options that make samples fewer or smaller.
    fn reduce_samples(&self) -> &'static str {
        let FinishedRecording { events, totals, has_ring, .. } = self.finished;
        let has_period = events.iter().any(|event| event.rate.period().is_some());
        let needs_every_stack = totals.as_ref().map(|totals| *has_ring || totals.is_path);
        advice::reduce_samples(needs_every_stack, has_period, self.call_graph)
    }

    /// Returns where most of the stacks end that end in code without unwind information, and what helps there.
    fn no_unwind_information(&self) -> Option<String> {
        self.frequent_share(self.counts().truncated.no_unwind_information)?;
        let (object, stacks) = self.finished.recording.unwind_gaps().into_iter().next()?;
        let share = percentage(stacks, self.counts().samples);
        let name = file_name(object);
        let place = match object {
            Object::Elf(elf) if is_go(elf) => format!("{name} where Go switches stacks; use --call-graph fp"),
            Object::Elf(elf) if Runtime::from_path(elf.path()) == Some(Runtime::Node) => {
                format!("built-in code of {name}, which has no unwind information; use --call-graph fp")
            }
            // The interpreter has unwind information, but not the compiled code that calls it.
            Object::Elf(elf) if Runtime::from_path(elf.path()) == Some(Runtime::Ruby) && self.has_yjit() => {
                format!("functions of {name} that code of YJIT calls, which has no unwind information")
            }
            Object::Elf(_) => format!(
                "code without unwind information in {name}: assembler, or built without -fasynchronous-unwind-tables"
            ),
            Object::Missing { path, .. } if path == UPROBES => {
                let help = match &self.finished.copy_reason {
                    Some(reason) => format!("; a BPF program finds both, but {reason}"),
                    None if self.finished.stack_copies.is_some() => {
                        "; a BPF program finds both, but captures no stacks of these events".to_owned()
                    }
                    None => String::new(),
                };
                format!(
                    "probed functions, of which the kernel executes an instruction elsewhere (uprobe) or hides the return \
                     address (uretprobe){help}"
                )
            }
            Object::Missing { reason, .. } => format!("{name}, whose file cannot be read: {}", printable(reason)),
            Object::Jit { pid, memory: JitMemory::Private | JitMemory::Shared } => {
                let (program, help) = match self.finished.recording.runtime(*pid) {
                    Some(Runtime::Java) if self.shows_sleepers() => {
                        ("java".to_owned(), advice::print_java_stacks(*pid))
                    }
                    Some(Runtime::Java) => {
                        let help = format!("start it with -XX:+PreserveFramePointer{}", self.suggest_bpf("unwinds"));
                        ("java".to_owned(), help)
                    }
                    Some(Runtime::Node) => ("node".to_owned(), "use --call-graph fp".to_owned()),
                    Some(Runtime::Ruby) => ("YJIT".to_owned(), "start ruby without --yjit".to_owned()),
                    _ => (format!("process {pid}"), "--call-graph fp helps if it keeps frame pointers".to_owned()),
                };
                format!("code that {program} generated, without unwind information; {help}")
            }
            Object::Unknown | Object::Kernel | Object::Script | Object::Jit { memory: JitMemory::Unmapped, .. } => {
                let is_denied = self.counts().denied_mappings > 0;
                let cause = if is_denied {
                    ": those of other users' processes cannot be read; run fg-record with sudo"
                } else {
                    ""
                };
                format!("code without a known mapping{cause}")
            }
        };
        Some(format!("{share} of stacks end in {place}"))
    }

    /// True if Ruby has generated code in a process that was recorded.
    fn has_yjit(&self) -> bool {
        !self.finished.recording.processes_with(Runtime::Ruby).is_empty()
    }

    fn no_frame_pointers(&self) -> Option<String> {
        let counts = self.counts();
        let is_flat = counts.user_frames * 2 < counts.user_stacks * 5;
        let help = if self.finished.totals.is_some() {
            "leave out --bpf and --call-graph fp"
        } else {
            "use --call-graph dwarf"
        };
        (self.call_graph == CallGraph::FramePointers && is_flat).then(|| {
            format!(
                "most stacks have only one or two user frames; if the program was built without frame pointers, {help}"
            )
        })
    }

    /// Returns the share of the samples if it is more than one in twenty.
    fn frequent_share(&self, affected: u64) -> Option<String> {
        let samples = self.counts().samples;
        (affected * 20 > samples).then(|| percentage(affected, samples))
    }
}

/// Describes what lost records of switches mean. If the record of a switch-out is lost, or those of a switch-out and of the
/// switch-in after it, nothing tells that the thread waited.
fn describe_lost_switches(records: u64, spans: u64) -> String {
    let waits = if spans > 0 { "[lost] or missing" } else { "missing" };
    format!("{} lost: the waits that they begin or end are {waits}", plural(records, "switch record"))
}

fn file_name(object: &Object) -> String {
    let path = object.path();
    printable(&String::from_utf8_lossy(&path[memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)..]))
}

/// True if a program was built by the Go compiler.
fn is_go(elf: &Elf) -> bool {
    object::File::parse(&**elf.bytes()).is_ok_and(|file| file.section_by_name(".gopclntab").is_some())
}

/// Formats a part of a whole as percentage.
pub fn percentage(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::describe_lost_switches;

    #[test]
    fn time_is_called_lost_only_if_some_is() {
        let of = |spans| describe_lost_switches(7, spans);
        assert_eq!(of(0), "7 switch records lost: the waits that they begin or end are missing");
        assert_eq!(of(2), "7 switch records lost: the waits that they begin or end are [lost] or missing");
    }
}
