//! Loads the BPF program, and charges the time that it sums up.

use std::time::Instant;

use aya::maps::MapError;
use aya::programs::RawTracePoint;
use aya::{Ebpf, EbpfLoader};

use super::maps::{Counts, Maps, SwitchContext};
use super::{WINDOW, errors};
use crate::Error;
use crate::diagnostics::plural;
use crate::perf::event::{Callchain, Sample, Stamp};
use crate::perf::recording::Recording;
use crate::perf::thread_state::ThreadState;
use crate::record::bpf::{BoxError, Refusal, repeat_if_interrupted};
use crate::record::off_cpu::OffCpuOptions;
use crate::record::off_cpu::totals::{Amount, StateTotals};
use crate::record::target::Target;
use crate::record::{procfs, sys};

/// The object that `scripts/build-bpf` makes from `off_cpu.bpf.c`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("off_cpu.bpf.o");

/// The functions of the program, each with the tracepoint that it is attached to.
const FUNCTIONS: [(&str, &str); 4] = [
    ("on_switch", "sched_switch"),
    ("on_fork", "sched_process_fork"),
    ("on_exec", "sched_process_exec"),
    ("on_exit", "sched_process_exit"),
];

/// A loaded BPF program that sums blocks up.
pub struct Aggregation {
    program: Ebpf,
    maps: Maps,
    /// The shortest and the longest block to record, in nanoseconds.
    block_bounds: (u64, u64),
    /// The open window, 0 or 1.
    window: usize,
    window_start: Instant,
    counts: Counts,
    totals: StateTotals,
    /// The first error of reading a map.
    map_error: Option<MapError>,
}

/// A window that the program does not add to any more.
#[derive(Debug)]
pub struct ClosedWindow(usize);

impl Aggregation {
    /// Loads the program for a target.
    ///
    /// # Errors
    /// [`Error::System`] with the reason if the kernel rejects it, [`Error::Invalid`] for a cgroup.
    pub fn open(target: &Target, options: &OffCpuOptions) -> Result<Self, Error> {
        if let Target::Cgroup(_) = target {
            return Err(Error::Invalid("--bpf does not support --cgroup; use -a or -p".to_owned()));
        }
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        errors::check_release(&release)?;
        Refusal::check_pid_namespace().map_err(errors::refusal_error)?;
        repeat_if_interrupted(|| Self::load(target, options, std::process::id()))
            .map_err(|error| errors::load_error(&*error))
    }

    /// Loads the program. The process `own_pid` is not recorded.
    fn load(target: &Target, options: &OffCpuOptions, own_pid: u32) -> Result<Self, BoxError> {
        let (scope, chosen): (u64, &[u32]) = match target {
            Target::Command(pid) => (1, std::slice::from_ref(pid)),
            Target::Processes { pids, .. } => (1, pids),
            Target::Threads(tids) => (2, tids),
            Target::Cgroup(_) | Target::System => (0, &[]),
        };
        let block_bounds = options.block_bounds();
        let mut program = EbpfLoader::new()
            .override_global("scope", &scope, true)
            .override_global("own", &u64::from(own_pid), true)
            .override_global("shortest", &block_bounds.0, true)
            .override_global("longest", &block_bounds.1, true)
            .load(OBJECT)?;
        for (name, _) in FUNCTIONS {
            function(&mut program, name)?.load()?;
        }
        let mut maps = Maps::open(&mut program)?;
        for id in chosen {
            maps.choose(*id, matches!(target, Target::Command(_)))?;
        }
        let (window_start, counts, totals) = (Instant::now(), Counts::default(), StateTotals::new(options));
        Ok(Self { program, maps, block_bounds, window: 0, window_start, counts, totals, map_error: None })
    }

    /// Attaches the program.
    ///
    /// # Errors
    /// [`Error::System`] with the reason if the kernel rejects it.
    pub(in crate::record) fn start(&mut self, target: &Target) -> Result<(), Error> {
        self.attach(target).map_err(|error| errors::load_error(&*error))?;
        self.window_start = Instant::now();
        Ok(())
    }

    fn attach(&mut self, target: &Target) -> Result<(), BoxError> {
        // Switches last: by then every new process of the target is noticed.
        for (name, tracepoint) in FUNCTIONS.iter().rev() {
            function(&mut self.program, name)?.attach(tracepoint)?;
        }
        // Again, because a process may have created others before the program followed it.
        target.attach_to_processes(|pid| self.maps.choose(pid, false))?;
        Ok(())
    }

    /// Closes the window and opens the other one if [`WINDOW`] has passed.
    pub fn close_window(&mut self) -> Option<ClosedWindow> {
        if self.window_start.elapsed() < WINDOW {
            return None;
        }
        self.window_start = Instant::now();
        let closed = self.window;
        self.window ^= 1;
        let opened = self.maps.open_window(self.window);
        self.note_error(opened);
        sys::wait_for_cpus();
        Some(ClosedWindow(closed))
    }

    /// Charges the sums of a closed window.
    pub fn charge_window(&mut self, ClosedWindow(window): ClosedWindow, recording: &mut Recording) {
        let (sums, result) = self.maps.drain_window(window);
        self.note_error(result);
        for sum in sums {
            let stamp = Stamp { pid: sum.context.pid, time: sum.last, ..Stamp::default() };
            let amount = Amount { count: sum.blocks, nanoseconds: sum.nanoseconds };
            self.charge(stamp, Some(sum.comm()), sum.context, amount, recording);
        }
        let counts = self.maps.counts();
        let counts = self.note_error(counts);
        let before = std::mem::replace(&mut self.counts, counts);
        let lost = Amount {
            count: counts.lost_blocks - before.lost_blocks,
            nanoseconds: counts.lost_nanoseconds - before.lost_nanoseconds,
        };
        if lost.count > 0 {
            charge_lost(recording, lost);
        }
        let removed = self.maps.remove_stacks(counts.stored_stacks);
        self.note_error(removed);
    }

    /// Unloads the program and charges all that is left, including blocks that are not over. The recording ended at
    /// `time`. Returns the totals, and notes for the user about what was lost.
    pub fn finish(mut self, time: u64, recording: &mut Recording) -> (StateTotals, Vec<String>) {
        for (name, _) in FUNCTIONS {
            if let Ok(function) = function(&mut self.program, name) {
                let _ = function.unload();
            }
        }
        sys::wait_for_cpus();
        self.charge_window(ClosedWindow(self.window ^ 1), recording);
        self.charge_window(ClosedWindow(self.window), recording);
        let (absences, result) = self.maps.read_absences();
        self.note_error(result);
        for absence in absences {
            let nanoseconds = time.saturating_sub(absence.since);
            if (self.block_bounds.0.max(1)..=self.block_bounds.1).contains(&nanoseconds) {
                let stamp = Stamp { pid: absence.context.pid, tid: absence.tid, time, ..Stamp::default() };
                self.charge(stamp, None, absence.context, Amount { count: 1, nanoseconds }, recording);
            }
        }
        let notes = self.notes();
        (self.totals.with_sums_of(recording), notes)
    }

    /// Charges blocks of one context: of threads with this name, or of the stamp's thread if there is none.
    fn charge(
        &mut self,
        stamp: Stamp,
        name: Option<&[u8]>,
        context: SwitchContext,
        amount: Amount,
        recording: &mut Recording,
    ) {
        let Some((kernel, user)) = self.maps.stacks(context, recording.options.max_stack) else {
            return charge_lost(recording, amount);
        };
        if !user.is_empty() && !recording.knows_process(stamp.pid)
            || name.is_none() && !recording.knows_thread(stamp.tid)
        {
            procfs::load_process(stamp.pid, recording);
        }
        let mut bytes = Vec::new();
        let callchain = Callchain::write(kernel, user, &mut bytes);
        let sample = Sample { in_kernel: true, callchain, ..Sample::default() };
        let stack = match name {
            Some(name) => recording.intern_stack_with_comm(name, stamp, &sample),
            None => recording.intern_stack(stamp, &sample),
        };
        let state = if context.preempted { ThreadState::Runnable } else { ThreadState::Blocked };
        recording.charge(stack, &[], state, amount.since(None));
    }

    /// Returns the result, or notes the error and returns the default.
    fn note_error<T: Default>(&mut self, result: Result<T, MapError>) -> T {
        result.unwrap_or_else(|error| {
            self.map_error.get_or_insert(error);
            T::default()
        })
    }

    /// Returns notes for the user about what was lost.
    fn notes(&self) -> Vec<String> {
        let Counts { lost_stacks, lost_absences, lost_processes, lost_blocks, .. } = self.counts;
        let mut notes = Vec::new();
        for (count, noun, what) in [
            (lost_stacks, "stack", "did not fit into the BPF map: the time of their blocks is [lost]"),
            (lost_blocks, "block", "did not fit into the BPF map: their time is [lost]"),
            (lost_absences, "block", "left out: more threads than fit into the BPF map"),
            (lost_processes, "fork", "not followed: more processes than fit into the BPF map"),
        ] {
            if count > 0 {
                notes.push(format!("{} {what}", plural(count, noun)));
            }
        }
        notes.extend(self.map_error.as_ref().map(|error| format!("cannot read a BPF map: {error}")));
        notes
    }
}

/// Returns a function of the program, by its name.
fn function<'a>(program: &'a mut Ebpf, name: &str) -> Result<&'a mut RawTracePoint, BoxError> {
    Ok(program.program_mut(name).ok_or_else(|| format!("the BPF object has no program {name}"))?.try_into()?)
}

/// Charges blocks of unknown threads and stacks.
fn charge_lost(recording: &mut Recording, amount: Amount) {
    let stack = recording.intern_unknown_stack(0, 0);
    recording.charge(stack, &[], ThreadState::Lost, amount.since(None));
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use aya::TestRun as _;
    use aya::programs::RawTracePointRunOptions;

    use super::{Aggregation, Amount, function};
    use crate::perf::recording::{Options, Recording};
    use crate::perf::thread_state::ThreadState;
    use crate::record::off_cpu::OffCpuOptions;
    use crate::record::target::Target;

    /// The kernel may exclude some threads from tracing. A thread that runs after one of them is not seen coming back,
    /// only leaving again. The program is not attached here: the test calls it for this thread.
    #[test]
    fn charges_a_block_whose_end_was_not_traced_when_the_thread_leaves_again() {
        let options = OffCpuOptions {
            wall: false,
            period: None,
            min_block: None,
            max_block: None,
            waker_depth: None,
            latency: false,
            run_queue_only: false,
            in_kernel: true,
        };
        // Needs root.
        let Ok(mut aggregation) = Aggregation::load(&Target::System, &options, 0) else { return };
        let start = Instant::now();
        switch_out(&mut aggregation);
        std::thread::sleep(Duration::from_millis(80));
        switch_out(&mut aggregation);
        let elapsed = start.elapsed().as_nanos() as u64;
        let mut recording = Recording::new(Options::default());
        let (totals, notes) = aggregation.finish(0, &mut recording);
        let Amount { count, nanoseconds } = totals.total(ThreadState::Blocked);
        assert_eq!((count, notes), (1, Vec::<String>::new()));
        assert!((80_000_000..elapsed).contains(&nanoseconds), "{nanoseconds} of {elapsed}");
    }

    /// Reports that this thread is blocked and leaves its CPU to the idle task.
    fn switch_out(aggregation: &mut Aggregation) {
        let mut switch = RawTracePointRunOptions::new();
        switch.args[3] = 1;
        function(&mut aggregation.program, "on_switch").unwrap().test_run(switch).unwrap();
    }
}
