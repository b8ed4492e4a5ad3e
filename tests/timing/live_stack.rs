//! Accuracy of unwinding from the live stack. Each sample is unwound twice: from a large copy of the stack, and from a small
//! copy continued with what is on the thread's stack a moment later.
//!
//! `FG_TAIL_COMMAND='cargo build --release' cargo test --test timing live_stack -- --nocapture` measures another command.

use std::ffi::OsString;
use std::time::Duration;

use fgkit::perf::event::{Event, Mmap, Stamp, UserState};
use fgkit::perf::objects::registry::Objects;
use fgkit::perf::process::{Mapping, Processes};
use fgkit::perf::stop_reason::StopReason;
use fgkit::perf::unwind::{ProcessSnapshot, Unwinder};
use fgkit::record::ProcessMemory;
use fgkit::record::clock::now;
use fgkit::record::command::SuspendedCommand;
use fgkit::record::counters::sampling::{CallGraph, Rate, Sampling};
use fgkit::record::counters::{Counters, CpuRings};
use fgkit::record::events::spec::EventSpec;
use fgkit::record::target::Target;

use crate::support::programs::program;
use crate::support::skip;
use crate::support::statistics::{Check, ensure, statistical};

/// Sizes of the copies that are compared.
const LARGE: u32 = 65528;
const SMALL: usize = 16384;

/// The target's state, both unwinders, and counts of samples.
struct Comparison {
    processes: Processes,
    objects: Objects,
    large: Unwinder,
    small: Unwinder,
    samples: u64,
    /// Samples that reach the root from the small copy.
    rooted: u64,
    /// Samples that reach the root from both copies.
    rooted_twice: u64,
    /// Of these, samples whose stacks differ.
    different: u64,
}

impl Comparison {
    fn new() -> Self {
        Self {
            processes: Processes::default(),
            objects: Objects::default(),
            large: Unwinder::new(None),
            small: Unwinder::new(Some(Box::new(ProcessMemory))),
            samples: 0,
            rooted: 0,
            rooted_twice: 0,
            different: 0,
        }
    }

    fn read(&mut self, counters: &Counters) {
        for rings in &counters.rings {
            let mut records = rings.sideband.sampler().iter().unwrap().into_cow();
            while let Some(record) = records.lending_next() {
                match rings.sideband.parse(record.as_raw().as_bytes()) {
                    Some((stamp, Event::Mmap(mmap))) => self.map(stamp, &mmap),
                    Some((stamp, Event::Comm { pid, exec: true, .. })) => self.processes.exec(pid, stamp.time),
                    Some((stamp, Event::Fork { pid, tid, parent_pid, parent_tid })) => {
                        self.processes.fork((pid, tid), (parent_pid, parent_tid), stamp.time);
                    }
                    _ => {}
                }
            }
        }
        let mut found = Vec::new();
        for rings in &counters.rings {
            let mut records = rings.samples.sampler().iter().unwrap().into_cow();
            while let Some(record) = records.lending_next() {
                found.push((rings, record.as_raw().as_bytes().to_vec()));
            }
        }
        self.small.look_again(now());
        let sample_of = |(rings, record): &'_ (&CpuRings, Vec<u8>), take: &mut dyn FnMut(Stamp, UserState<'_>)| {
            if let Some((stamp, Event::Sample(sample))) = rings.samples.parse(record)
                && let Some(user) = sample.user
            {
                take(stamp, user);
            }
        };
        for record in &found {
            sample_of(record, &mut |stamp, user| self.small.foresee(stamp.tid, stamp.time, &user));
        }
        for record in &found {
            sample_of(record, &mut |stamp, user| self.compare(stamp, user));
        }
        self.small.forget_sightings();
    }

    fn map(&mut self, stamp: Stamp, mmap: &Mmap<'_>) {
        if mmap.executable {
            let object = self.objects.open_mapping(mmap);
            let (start, end, offset) = (mmap.start, mmap.start + mmap.length, mmap.offset);
            self.processes.map(mmap.pid, Mapping { start, end, offset, object }, stamp.time);
        }
    }

    fn compare(&mut self, stamp: Stamp, user: UserState<'_>) {
        let moment = ProcessSnapshot {
            pid: stamp.pid,
            tid: stamp.tid,
            time: stamp.time,
            processes: &self.processes,
            objects: &self.objects,
        };
        let short = UserState { stack: &user.stack[..user.stack.len().min(SMALL)], ..user };
        // From the live stack first, as a recorder does.
        let small = self.small.unwind(moment, &short);
        let large = self.large.unwind(moment, &user);
        self.samples += 1;
        self.rooted += u64::from(small == StopReason::Root);
        if small == StopReason::Root && large == StopReason::Root {
            self.rooted_twice += 1;
            let same =
                self.small.frames.iter().map(|step| step.address).eq(self.large.frames.iter().map(|step| step.address));
            self.different += u64::from(!same);
        }
    }
}

/// Records a command and compares the stacks of its samples.
fn check_live_stacks(words: &[OsString]) -> Check {
    let Ok(held) = SuspendedCommand::start(words, true, None) else {
        skip("no command can be started");
        return Ok(());
    };
    let target = Target::Command(held.pid());
    let sampling = Sampling::new(EventSpec::cpu_clock(), Rate::Frequency(997), CallGraph::Dwarf(LARGE));
    let counters = match Counters::open(&target, &sampling) {
        Ok(counters) => counters,
        Err(error) => {
            skip(&error.to_string());
            return Ok(());
        }
    };
    let mut running = held.resume().unwrap();
    let waiter = std::thread::spawn(move || running.wait());
    let mut comparison = Comparison::new();
    while !waiter.is_finished() {
        comparison.read(&counters);
        std::thread::sleep(comparison.small.patience().unwrap_or(Duration::from_micros(100)));
    }
    comparison.read(&counters);
    let Comparison { samples, rooted, rooted_twice, different, .. } = comparison;
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    println!(
        "{samples} samples, {:.2} % reach the root from {SMALL} bytes; \
         of {rooted_twice} that reach it from both copies, {different} differ ({:.2} %)",
        percent(rooted, samples),
        percent(different, rooted_twice)
    );
    ensure!(samples > 50 && percent(rooted, samples) > 50.0, "{rooted} of {samples}");
    ensure!(percent(different, rooted_twice) < 5.0, "{different} of {rooted_twice}");
    Ok(())
}

#[test]
fn the_live_stack_continues_the_copied_one() {
    let words = match std::env::var("FG_TAIL_COMMAND") {
        Ok(command) => vec!["sh".into(), "-c".into(), OsString::from(command)],
        Err(_) => match program("unwound") {
            Some(program) => vec![program.into(), "wide".into()],
            None => return,
        },
    };
    statistical(|| check_live_stacks(&words));
}
