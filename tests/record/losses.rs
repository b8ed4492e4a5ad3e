//! Lost samples are counted.

use perf_event_open::config::{Cpu, OnExecve, Opts, Proc};
use perf_event_open::count::Counter;

use fgkit::perf::recording::{Options, Recording};
use fgkit::record::command::SuspendedCommand;
use fgkit::record::counters::Counters;
use fgkit::record::counters::sampling::{CallGraph, Rate, Sampling};
use fgkit::record::cpus;
use fgkit::record::events::spec::EventSpec;
use fgkit::record::request::CommandLine;
use fgkit::record::rings::reader::RingReader;
use fgkit::record::target::Target;

use crate::support::programs::program;
use crate::support::recording::{Profile, can_record, record};
use crate::support::skip;

/// Opens counters of page faults beside the recorder's, which do not sample.
fn open_reference_counters(pid: u32) -> Vec<Counter> {
    let mut options = Opts::default();
    options.exclude.hv = true;
    options.on_execve = Some(OnExecve::Enable);
    let open = |cpu| Counter::new(&EventSpec::parse("page-faults").unwrap(), (Proc(pid), Cpu(cpu)), &options).unwrap();
    cpus::online_cpus().into_iter().map(open).collect()
}

#[test]
fn taken_and_lost_samples_add_up_to_the_kernels_count() {
    let (true, Some(faults)) = (can_record(), program("faults")) else { return };
    let held =
        SuspendedCommand::start(&CommandLine { words: vec![faults.into()], quiet_stdout: true, user: None }).unwrap();
    let target = Target::Command(held.pid());
    let metric = EventSpec::parse("page-faults").unwrap();
    let sampling = Sampling { ring_order: Some(0), ..Sampling::new(metric, Rate::Period(1), CallGraph::FramePointers) };
    let counters = match Counters::open(&target, &sampling, None) {
        Ok(counters) => counters,
        Err(error) => return skip(&error.to_string()),
    };
    let reference = open_reference_counters(held.pid());
    let options = Options { max_stack: 127, ..Options::default() };
    let (mut reader, mut recording) = (RingReader::new(None), Recording::new(options));
    let mut running = held.resume().unwrap();
    let waiter = std::thread::spawn(move || running.wait());
    let counted = || reference.iter().map(|counter| counter.stat().unwrap().count).sum::<u64>();
    let mut before = 0;
    while !waiter.is_finished() {
        // More faults than fit into a ring buffer.
        if counted() > before + 300 {
            before = counted();
            reader.read(&counters, &mut recording);
        }
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    counters.disable();
    reader.finish(&counters, &mut recording);
    recording.set_lost(counters.lost_samples());
    let counted = counted();
    let (taken, lost) = (recording.counts.samples, recording.counts.lost);
    assert!(counted > 2000 && taken > 0 && lost > 0, "{counted} {taken} {lost}");
    assert_eq!(taken + lost, counted, "{taken} taken, {lost} lost");
}

#[test]
fn reports_lost_samples_in_profile_and_summary() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let outcome = record(["-m", "1", "--call-graph", "fp", "-e", "cpu-clock", "-c", "50000", "--", &busy, "0.3"]).ok();
    let profile = Profile::from_stdout(&outcome);
    let number_before = |text: &str| {
        let mut lines = outcome.stderr.lines();
        let (number, _) = lines.find_map(|line| line.strip_prefix("fg-record: ")?.split_once(text)).unwrap();
        number.parse::<u64>().unwrap()
    };
    let (samples, lost) = (number_before(" samples of cpu-clock every 50000 "), number_before(" lost, "));
    assert!(samples > 0, "{outcome:?}");
    assert_eq!((profile.thread_weight("[lost]"), profile.total()), (lost, samples + lost), "{}", outcome.stderr);
}
