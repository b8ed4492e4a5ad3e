//! The program in the kernel: loading it, and charging what it added up.

use std::time::Instant;

use aya::maps::MapError;
use aya::programs::RawTracePoint;
use aya::{Ebpf, EbpfLoader};

use super::tables::{Counts, Place, Tables};
use super::{WINDOW, errors};
use crate::Error;
use crate::diagnostics::plural;
use crate::perf::event::{Callchain, Sample, Stamp};
use crate::perf::recording::Recording;
use crate::perf::thread_state::ThreadState;
use crate::record::off_cpu::{OffCpu, Times};
use crate::record::procfs;
use crate::record::sys;
use crate::record::target::Target;

/// What `scripts/build-bpf` makes of `off_cpu.bpf.c`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("off_cpu.bpf.o");

/// Its parts, each beside where it stands in the kernel.
const PROGRAMS: [(&str, &str); 4] = [
    ("on_switch", "sched_switch"),
    ("on_fork", "sched_process_fork"),
    ("on_exec", "sched_process_exec"),
    ("on_exit", "sched_process_exit"),
];

/// The kernel adding up.
pub struct Aggregation {
    program: Ebpf,
    tables: Tables,
    bounds: (u64, u64),
    /// The window that is open: they take turns.
    window: usize,
    since: Instant,
    counts: Counts,
    times: Times,
    /// The first time that a table could not be read.
    failure: Option<MapError>,
}

/// A window to which nothing is added any more.
#[derive(Debug)]
pub struct Closed(usize);

type Failure = Box<dyn std::error::Error>;

impl Aggregation {
    /// Loads the program, for a target.
    ///
    /// # Errors
    /// [`Error::System`] with the reason.
    pub fn open(target: &Target, asked: &OffCpu) -> Result<Self, Error> {
        if let Target::Cgroup(_) = target {
            return Err(Error::Invalid("--bpf does not know cgroups: use -a or -p".to_owned()));
        }
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        if let Some(refusal) = errors::of_release(&release) {
            return Err(refusal);
        }
        Self::load(target, asked, std::process::id()).map_err(|failure| errors::of(&*failure))
    }

    /// Loads it, for all but this process.
    fn load(target: &Target, asked: &OffCpu, own: u32) -> Result<Self, Failure> {
        let (scope, chosen): (u64, &[u32]) = match target {
            Target::Command(pid) => (1, std::slice::from_ref(pid)),
            Target::Processes(pids) => (1, pids),
            Target::Threads(tids) => (2, tids),
            Target::Cgroup(_) | Target::System => (0, &[]),
        };
        let bounds = asked.bounds();
        let mut program = EbpfLoader::new()
            .override_global("scope", &scope, true)
            .override_global("own", &u64::from(own), true)
            .override_global("shortest", &bounds.0, true)
            .override_global("longest", &bounds.1, true)
            .load(OBJECT)?;
        for (name, _) in PROGRAMS {
            part(&mut program, name)?.load()?;
        }
        let mut tables = Tables::of(&mut program)?;
        for number in chosen {
            tables.choose(*number, matches!(target, Target::Command(_)))?;
        }
        let (since, counts, times) = (Instant::now(), Counts::default(), Times::default());
        Ok(Self { program, tables, bounds, window: 0, since, counts, times, failure: None })
    }

    /// Has it run from now on.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn start(&mut self) -> Result<(), Error> {
        // Switches last: by then whatever a process makes is known.
        for (name, place) in PROGRAMS.iter().rev() {
            let attached = part(&mut self.program, name).and_then(|part| Ok(part.attach(place)?));
            attached.map_err(|failure| errors::of(&*failure))?;
        }
        self.since = Instant::now();
        Ok(())
    }

    /// Closes the window and opens another, if it is time.
    pub fn close_window(&mut self) -> Option<Closed> {
        if self.since.elapsed() < WINDOW {
            return None;
        }
        self.since = Instant::now();
        let closed = self.window;
        self.window ^= 1;
        let opened = self.tables.open_window(self.window);
        self.sound(opened);
        sys::wait_for_cpus();
        Some(Closed(closed))
    }

    /// Charges what was added up in a window.
    pub fn take(&mut self, Closed(window): Closed, recording: &mut Recording) {
        let (sums, result) = self.tables.take(window);
        self.sound(result);
        for sum in sums {
            let stamp = Stamp { pid: sum.place.pid, time: sum.last, ..Stamp::default() };
            self.charge(stamp, Some(sum.comm()), sum.place, (sum.blocks, sum.nanoseconds), recording);
        }
        let counts = self.tables.counts();
        let counts = self.sound(counts);
        let before = std::mem::replace(&mut self.counts, counts);
        let missing = (counts.blocks - before.blocks, counts.nanoseconds - before.nanoseconds);
        if missing.0 > 0 {
            self.times.charge_lost(recording, missing);
        }
        let forgotten = self.tables.forget_stacks(counts.kept);
        self.sound(forgotten);
    }

    /// The recording ended at this time: charges all that is left, and what is not over. Says what was missed.
    pub fn finish(mut self, time: u64, recording: &mut Recording) -> (Times, Vec<String>) {
        for (name, _) in PROGRAMS {
            if let Ok(part) = part(&mut self.program, name) {
                let _ = part.unload();
            }
        }
        sys::wait_for_cpus();
        self.take(Closed(self.window ^ 1), recording);
        self.take(Closed(self.window), recording);
        let (absences, result) = self.tables.absences();
        self.sound(result);
        for absence in absences {
            let nanoseconds = time.saturating_sub(absence.since);
            if (self.bounds.0.max(1)..=self.bounds.1).contains(&nanoseconds) {
                let stamp = Stamp { pid: absence.place.pid, tid: absence.tid, time, ..Stamp::default() };
                self.charge(stamp, None, absence.place, (1, nanoseconds), recording);
            }
        }
        let notes = self.notes();
        (self.times, notes)
    }

    /// Charges blocks of one kind: of threads of a name, or of the stamp's.
    fn charge(
        &mut self,
        stamp: Stamp,
        name: Option<&[u8]>,
        place: Place,
        amount: (u64, u64),
        recording: &mut Recording,
    ) {
        let Some((kernel, user)) = self.tables.stacks(place, recording.options.max_stack) else {
            return self.times.charge_lost(recording, amount);
        };
        if !user.is_empty() && !recording.knows_process(stamp.pid)
            || name.is_none() && !recording.knows_thread(stamp.tid)
        {
            procfs::load_process(stamp.pid, recording);
        }
        let mut bytes = Vec::new();
        let callchain = Callchain::write(kernel, user, &mut bytes);
        let sample = Sample {
            event: 0,
            ip: 0,
            period: 0,
            in_kernel: true,
            raw: &[],
            callchain,
            branches: Default::default(),
            user: None,
        };
        let stack = match name {
            Some(name) => recording.intern_stack_by_name(name, stamp, &sample),
            None => recording.intern_stack(stamp, &sample),
        };
        let state = if place.preempted { ThreadState::Runnable } else { ThreadState::Blocked };
        self.times.charge(recording, stack, state, amount);
    }

    /// What was read of a table, or nothing.
    fn sound<T: Default>(&mut self, read: Result<T, MapError>) -> T {
        read.unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            T::default()
        })
    }

    /// What the user should know.
    fn notes(&self) -> Vec<String> {
        let Counts { stacks, absences, processes, blocks, .. } = self.counts;
        let mut notes = Vec::new();
        for (count, one, what) in [
            (stacks, "block", "whose stack did not fit into the kernel's table: their time is [lost]"),
            (blocks, "block", "did not fit into the kernel's table: their time is [lost]"),
            (absences, "block", "of more threads than the kernel's table holds left out"),
            (processes, "process", "beyond what the kernel's table holds left out"),
        ] {
            if count > 0 {
                notes.push(format!("{} {what}", plural(count, one)));
            }
        }
        notes.extend(self.failure.as_ref().map(|error| format!("a table in the kernel could not be read: {error}")));
        notes
    }
}

/// A part of the program, by its name.
fn part<'a>(program: &'a mut Ebpf, name: &str) -> Result<&'a mut RawTracePoint, Failure> {
    Ok(program.program_mut(name).ok_or("the program lacks a part")?.try_into()?)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use aya::TestRun as _;
    use aya::programs::RawTracePointRunOptions;

    use super::{Aggregation, part};
    use crate::perf::recording::{Options, Recording};
    use crate::perf::thread_state::ThreadState;
    use crate::record::off_cpu::OffCpu;
    use crate::record::target::Target;

    /// The kernel may keep the switches of some threads from being traced: who runs after them is not seen coming back, only
    /// leaving again. The program is not attached here; it is told of what it is to know of this thread.
    #[test]
    fn a_return_that_nothing_was_told_of_is_charged_when_the_thread_leaves_again() {
        let asked = OffCpu { wall: false, period: None, min_block: None, max_block: None, in_kernel: true };
        // Needs root.
        let Ok(mut aggregation) = Aggregation::load(&Target::System, &asked, 0) else { return };
        let leave = |aggregation: &mut Aggregation| {
            // Leaves its CPU for nobody, blocked.
            let mut switch = RawTracePointRunOptions::new();
            switch.args[3] = 1;
            part(&mut aggregation.program, "on_switch").unwrap().test_run(switch).unwrap();
        };
        let began = Instant::now();
        leave(&mut aggregation);
        std::thread::sleep(Duration::from_millis(80));
        leave(&mut aggregation);
        let most = began.elapsed().as_nanos() as u64;
        let mut recording = Recording::new(Options::default(), None);
        let (times, notes) = aggregation.finish(0, &mut recording);
        let (blocks, nanoseconds) = times.sum(ThreadState::Blocked);
        assert_eq!((blocks, notes), (1, Vec::<String>::new()));
        assert!((80_000_000..most).contains(&nanoseconds), "{nanoseconds} of {most}");
    }
}
