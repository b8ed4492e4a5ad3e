//! `--bpf`: the same programs and the same measurements as without it.

use std::time::Instant;

use crate::off_cpu::{Measurement, accounting_slack, life_weight, record_waits, weight};
use crate::support::command;
use crate::support::process::Background;
use crate::support::recording::{Profile, Stack, finish, record, recorder};
use crate::support::statistics::{ensure, statistical};

fn waits() -> Option<String> {
    crate::off_cpu::waits(&["--bpf"])
}

#[test]
fn each_wait_is_as_long_as_measured() {
    let Some(waits) = waits() else { return };
    statistical(|| {
        let outcome = record_waits(&waits, &["--off-cpu", "--bpf"]);
        let profile = Profile::from_stdout(&outcome);
        let measurements = Measurement::parse_all(&outcome);
        assert_eq!(measurements.len(), 6, "{outcome:?}");
        for Measurement { thread, blocked, most, stolen, .. } in measurements {
            // The whole thread, which may also be preempted elsewhere. The function that waits is missing from stacks
            // where the C library, which keeps no frame pointer, calls the kernel.
            let (all, off_cpu) = (life_weight(&profile, &thread), weight(&profile, &[&thread, "[off-cpu]"]));
            let slack = accounting_slack(&outcome);
            let times =
                format!("{thread}: {off_cpu} of {all} instead of {blocked}, {stolen} stolen: {}", outcome.stderr);
            ensure!(all <= most * 1.01, "{times}");
            if thread == "burn" {
                ensure!(off_cpu < 1000.0, "{times}");
                continue;
            }
            ensure!(all >= blocked * 0.98 - slack - stolen, "{times}");
            // The mutex's thread also waits for a semaphore, which is not in `blocked`.
            ensure!(thread == "mutex" || off_cpu <= blocked * 1.02 + slack, "{times}");
        }
        let has_state = |stack: &Stack| ["[off-cpu]", "[runnable]"].contains(&stack.leaf());
        assert!(profile.0.iter().all(has_state), "{profile:?}");
        let read = weight(&profile, &["pipe", "work", "vfs_read", "schedule", "[off-cpu]"]);
        ensure!(read >= weight(&profile, &["pipe", "[off-cpu]"]) * 0.8, "{profile:?}");
        profile.assert_lacks(&["__schedule"]);
        Ok(())
    });
}

#[test]
fn has_the_same_stacks_as_a_recording_of_switches() {
    let Some(waits) = waits() else { return };
    let process = Background::start(command(&waits).arg("for-ever"));
    statistical(|| {
        let heavy_stacks = |options: &[&str]| {
            let mut recorder = recorder(["--off-cpu", "-d", "500ms", "-p", &process.pid()]);
            let profile = Profile::from_stdout(&finish(recorder.args(options).spawn().unwrap()).ok());
            let heavy = profile.0.into_iter().filter(|stack| stack.weight > 200_000);
            let mut stacks: Vec<Vec<String>> = heavy.map(|stack| stack.frames).collect();
            stacks.sort_unstable();
            stacks
        };
        let (by_bpf, by_switches) = (heavy_stacks(&["--bpf"]), heavy_stacks(&["--call-graph", "fp"]));
        ensure!(by_bpf == by_switches && by_bpf.len() == 1, "{by_bpf:?} and {by_switches:?}");
        Ok(())
    });
}

#[test]
fn records_processes_threads_and_the_whole_system() {
    let Some(waits) = waits() else { return };
    let process = Background::start(command(&waits).arg("for-ever"));
    for target in [&["-p", &*process.pid()][..], &["-t", &*process.pid()], &["-a"]] {
        statistical(|| {
            let mut recorder = recorder(["--off-cpu", "--bpf", "-d", "1.5", "--no-inline"]);
            let outcome = finish(recorder.args(target).spawn().unwrap()).ok();
            let profile = Profile::from_stdout(&outcome);
            let slept = weight(&profile, &["waits", "do_nanosleep", "[off-cpu]"]);
            let most = if target == ["-a"] { f64::MAX } else { 2_500_000.0 };
            ensure!(slept > 700_000.0 && slept < most, "{slept}: {outcome:?}");
            let only_target = profile.thread_weight("waits") == profile.total();
            assert!(target == ["-a"] || only_target, "{outcome:?}");
            Ok(())
        });
    }
}

#[test]
fn names_functions_of_processes_that_have_exited() {
    let Some(waits) = waits() else { return };
    statistical(|| {
        let script = format!("for n in 1 2 3 4; do sleep 0.4; done; exec {waits} pingpong 0.1");
        let outcome = record(["--off-cpu", "--bpf", "--", "sh", "-c", &script]).ok();
        let profile = Profile::from_stdout(&outcome);
        let slept = weight(&profile, &["sleep", "do_nanosleep", "[off-cpu]"]);
        ensure!((1_600_000.0..2_400_000.0).contains(&slept), "{slept}: {outcome:?}");
        // The C library's function, which is the frame below the kernel's.
        profile.check_share(&["sleep", "clock_nanosleep", "do_nanosleep", "[off-cpu]"], 0.3)?;
        // The shell, which the process ran before the last program.
        profile.check_share(&["sh", "do_wait", "[off-cpu]"], 0.4)?;
        ensure!(weight(&profile, &["pong", "[off-cpu]"]) > 0.0, "{profile:?}");
        Ok(())
    });
}

#[test]
fn a_block_that_does_not_end_counts_until_the_end_of_the_recording() {
    if waits().is_none() {
        return;
    }
    statistical(|| {
        let started = Instant::now();
        let outcome = record(["--off-cpu", "--bpf", "-d", "0.7", "--", "sleep", "100000"]);
        let most = started.elapsed().as_micros() as f64;
        let slept = weight(&Profile::from_stdout(&outcome), &["sleep", "[off-cpu]"]);
        ensure!(slept > 0.5e6 && slept < most, "{slept} of {most}: {outcome:?}");
        Ok(())
    });
}

#[test]
fn filters_blocks_by_length() {
    let Some(waits) = waits() else { return };
    let process = Background::start(command(&waits).arg("for-ever"));
    // The blocks last five milliseconds, or longer on a busy machine.
    for (bound, least, most) in [("--max-block", 0.0, 2000.0), ("--min-block", 100_000.0, 900_000.0)] {
        statistical(|| {
            let outcome = record(["--off-cpu", "--bpf", bound, "2ms", "-d", "300ms", "-p", &process.pid()]).ok();
            let slept = weight(&Profile::from_stdout(&outcome), &["do_nanosleep", "[off-cpu]"]);
            ensure!((least..=most).contains(&slept), "{bound}: {slept}: {outcome:?}");
            Ok(())
        });
    }
}
