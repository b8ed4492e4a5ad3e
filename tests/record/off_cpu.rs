//! Time off the CPU: options, and what does not depend on how long threads wait.

use std::time::Instant;

use crate::support::directory;
use crate::support::process::Background;
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record_switches, finish, record, recorder};

/// Every 17th switch would always be in the same place.
#[test]
fn stacks_of_some_switches_are_chosen_at_random() {
    let Some(program) = program("chains").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let options = ["--off-cpu", "--off-cpu-period", "17", "--", &program, "turns"];
    let profile = Profile::from_stdout(&finish(recorder(options).spawn().unwrap()).ok());
    for place in 'a'..='q' {
        profile.assert_contains(&["chains", "turns", &format!("place_{place}"), "[off-cpu]"]);
    }
}

#[test]
fn a_thread_that_slept_before_the_recording_has_no_stack() {
    if !can_record_switches(&[]) {
        return;
    }
    let process = Background::sleeping();
    let outcome = record(["--off-cpu", "-d", "300ms", "-p", &process.pid()]).ok();
    assert_eq!(outcome.text(), "", "{outcome:?}");
    let started = Instant::now();
    let outcome = record(["--wall", "-d", "300ms", "-p", &process.pid()]).ok();
    let elapsed = u64::try_from(started.elapsed().as_micros()).unwrap();
    let profile = Profile::from_stdout(&outcome);
    assert_eq!(profile.0[0].frames, ["sleep", "[unsampled]", "[off-cpu]"], "{outcome:?}");
    assert!((300_000..=elapsed).contains(&profile.total()), "{elapsed} elapsed: {outcome:?}");
    assert!(outcome.stderr.contains("microseconds: 0 blocks (0.000 s), 1 earlier sleep ("), "{outcome:?}");
}

#[test]
fn rejects_options_that_exclude_each_other() {
    let folder = directory();
    for options in [
        &["--off-cpu", "--script"][..],
        &["--wall", "--script"],
        &["--wall", "--off-cpu"],
        &["--off-cpu", "-e", "cycles"],
        &["--min-block", "1ms"],
        &["--wall", "--min-block", "1ms"],
        &["--off-cpu-period", "3"],
        // clap does not look for what an option requires if another one excludes that.
        &["--run-queue", "--min-block", "1ms"],
        &["--latency", "--min-block", "1ms"],
        &["--latency", "--max-block", "1ms"],
        &["-F", "99", "--min-block", "1ms"],
        &["-F", "99", "--bpf"],
        &["--run-queue", "--waker-depth", "2"],
    ] {
        let outcome = finish(recorder([]).args(options).args(["--", "true"]).current_dir(&folder).spawn().unwrap());
        assert_eq!(outcome.code(), 2, "{outcome:?}");
    }
}
