//! What is lost is counted: nothing goes in silence.

use perf_event_open::config::{Cpu, OnExecve, Opts, Proc};
use perf_event_open::count::Counter;

use fgkit::perf::recording::{Options, Recording};
use fgkit::record::command::SuspendedCommand;
use fgkit::record::counters::Counters;
use fgkit::record::counters::sampling::{CallGraph, Rate, Sampling};
use fgkit::record::cpus;
use fgkit::record::events::spec::EventSpec;
use fgkit::record::rings::Reader;
use fgkit::record::target::Target;

use crate::folded::{Folded, may_record, record};
use crate::programs::program;

/// Counts page faults beside the recorder, in the kernel alone.
fn kernels_count(pid: u32) -> Vec<Counter> {
    let mut options = Opts::default();
    options.exclude.hv = true;
    options.on_execve = Some(OnExecve::Enable);
    let open = |cpu| Counter::new(&EventSpec::named("page-faults").unwrap(), (Proc(pid), Cpu(cpu)), &options).unwrap();
    cpus::online_cpus().into_iter().map(open).collect()
}

#[test]
fn printed_and_lost_samples_are_all_that_the_kernel_counted() {
    let (true, Some(faults)) = (may_record(), program("faults")) else { return };
    let held = SuspendedCommand::start(&[faults.into()], true, None).unwrap();
    let target = Target::Command(held.pid());
    let metric = EventSpec::named("page-faults").unwrap();
    let sampling = Sampling { ring: Some(0), ..Sampling::of(metric, Rate::Period(1), CallGraph::FramePointers) };
    let counters = match Counters::open(&target, &sampling) {
        Ok(counters) => counters,
        Err(error) => return crate::support::skip(&error.to_string()),
    };
    let beside = kernels_count(held.pid());
    let options = Options { max_stack: 127, ..Options::default() };
    let (mut reader, mut recording) = (Reader::default(), Recording::new(options, None));
    let mut running = held.resume().unwrap();
    let waiter = std::thread::spawn(move || running.wait());
    let counted = || beside.iter().map(|counter| counter.stat().unwrap().count).sum::<u64>();
    let mut before = 0;
    while !waiter.is_finished() {
        // More than a ring holds.
        if counted() > before + 300 {
            before = counted();
            reader.read(&counters, &mut recording);
        }
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    counters.stop();
    reader.finish(&counters, &mut recording);
    recording.set_lost(counters.lost());
    let counted = counted();
    let (taken, lost) = (recording.counts.samples, recording.counts.lost);
    assert!(counted > 2000 && taken > 100 && lost > 100, "{counted} {taken} {lost}");
    assert_eq!(taken + lost, counted, "{taken} taken, {lost} lost");
}

#[test]
fn lost_samples_stand_in_the_profile_and_in_the_summary() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["-m", "1", "--call-graph", "fp", "-e", "cpu-clock", "-c", "50000", "--", &busy, "0.3"]).ok();
    let profile = Folded::of(&outcome);
    let number = |end: &str| {
        let line = outcome.stderr.lines().find_map(|line| line.strip_prefix("fg-record: ")?.split_once(end)).unwrap();
        line.0.parse::<u64>().unwrap()
    };
    let (samples, lost) = (number(" samples of cpu-clock every 50000 "), number(" lost, "));
    let of_lost: u64 = profile.0.iter().filter(|(stack, _)| *stack == ["[lost]"]).map(|(_, weight)| weight).sum();
    assert!(samples > 100, "{outcome:?}");
    assert_eq!((of_lost, profile.total()), (lost, samples + lost), "{}", outcome.stderr);
}
