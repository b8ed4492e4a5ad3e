//! Tests of the charges of switches.

use super::{OffCpuOptions, SwitchEventKind, SwitchTracker, Target};
use crate::perf::event::{Event, Stamp};
use crate::perf::recording::{Options, Recording};
use crate::perf::symbols::frame::SymbolizeOptions;
use crate::perf::symbols::symbolize::symbolize;
use crate::profile::SampleWeight;

fn options(wall: bool) -> OffCpuOptions {
    OffCpuOptions {
        wall,
        period: None,
        min_block: None,
        max_block: None,
        waker_depth: None,
        latency: false,
        run_queue_only: false,
        in_kernel: false,
    }
}

#[test]
fn time_counts_from_the_start_on() {
    let options = Options { weight: SampleWeight::Microseconds, ..Options::default() };
    let mut recording = Recording::new(options);
    let mut switches = SwitchTracker::new(&self::options(true), Vec::new(), &Target::System);
    let out = Event::Switch { out: true, preempted: false };
    switches.add_existing_thread(7, 10_000);
    switches.add_existing_thread(8, 10_000);
    switches.add_event(Stamp { time: 30_000, tid: 8, ..Stamp::default() }, &out);
    switches.start(50_000);
    switches.finish(80_000, &mut recording);
    let names = symbolize(&recording.objects, recording.locations(), &SymbolizeOptions::default());
    let (profile, _) = recording.to_profile(0, &names).unwrap();
    // Both slept for 30 us.
    assert_eq!(profile.total().after.to_string(), "60");
}

#[test]
fn a_switch_in_takes_effect_when_the_previous_thread_left() {
    let mut switches = SwitchTracker::new(&options(false), Vec::new(), &Target::System);
    let mut time = |time, tid, cpu, kind| switches.accounted_time(Stamp { time, tid, cpu, ..Stamp::default() }, kind);
    let out = SwitchEventKind::Out { preempted: false, selected: true };
    assert_eq!((time(1000, 1, 0, out), time(1500, 2, 0, SwitchEventKind::In)), (1000, 1000));
    // Not after a switch-out on another CPU, after idle time, or by the same thread.
    assert_eq!((time(2000, 2, 0, out), time(2500, 3, 1, SwitchEventKind::In)), (2000, 2500));
    assert_eq!((time(9000, 3, 1, out), time(90_000, 2, 1, SwitchEventKind::In)), (9000, 90_000));
    assert_eq!((time(100_000, 2, 1, out), time(101_000, 2, 1, SwitchEventKind::In)), (100_000, 101_000));
    // Only once for each switch-out.
    assert_eq!((time(200_000, 2, 1, out), time(201_000, 3, 1, SwitchEventKind::In)), (200_000, 200_000));
    assert_eq!(time(201_500, 4, 1, SwitchEventKind::In), 201_500);
}
