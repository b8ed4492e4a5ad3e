//! Time off the CPU, and all time, compared with what the recorded programs measured themselves.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::process::Background;
use crate::support::programs::program;
use crate::support::recording::{Profile, Stack, can_record_switches, finish, record, recorder, wait_until_recording};
use crate::support::signals::send;
use crate::support::statistics::{ensure, statistical};
use crate::support::{Outcome, command, require};

/// Returns the path of the program `waits` if context switches can be recorded with these options.
pub fn waits(options: &[&str]) -> Option<String> {
    program("waits").filter(|_| can_record_switches(options))
}

/// What a thread of the program measured, in microseconds.
#[derive(Debug)]
pub struct Measurement {
    pub thread: String,
    pub blocked: f64,
    /// Bounds of its lifetime.
    least: f64,
    pub most: f64,
    /// What other virtual machines and interrupts took. No context switch shows it: our times may be wrong by this
    /// much.
    pub stolen: f64,
}

impl Measurement {
    /// Parses what the program printed on standard error: `THREAD BLOCKED LEAST MOST STOLEN`.
    pub fn parse_all(outcome: &Outcome) -> Vec<Self> {
        outcome.stderr.lines().filter(|line| !line.starts_with("fg-record:")).map(Self::parse).collect()
    }

    fn parse(line: &str) -> Self {
        let fields: Vec<&str> = line.split(' ').collect();
        assert_eq!(fields.len(), 5, "{line}");
        let [blocked, least, most, stolen] = [1, 2, 3, 4].map(|field| fields[field].parse().unwrap_or(f64::NAN));
        Self { thread: fields[0].to_owned(), blocked, least, most, stolen: stolen.max(0.0) }
    }
}

/// Returns the weight of stacks with these frames in this order.
pub fn weight(profile: &Profile, frames: &[&str]) -> f64 {
    profile.weight(frames) as f64
}

fn is_near(measured: f64, expected: f64, percent: f64, slack: f64) -> bool {
    (measured - expected).abs() <= expected * percent / 100.0 + slack
}

/// Records the program that waits in known ways, one of which is to read from a disk.
pub fn record_waits(waits: &str, options: &[&str]) -> Outcome {
    // The temporary directory of the system may be in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("waits.disk");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    let mut recorder = recorder([]);
    recorder.args(options).args(["--", waits]).env("WAITS_FILE", file);
    finish(recorder.spawn().unwrap()).ok()
}

/// Returns the weight of a thread up to its end as others see it: while the kernel takes it down, it may have to wait for a CPU.
pub fn life_weight(profile: &Profile, thread: &str) -> f64 {
    profile.thread_weight(thread) as f64 - weight(profile, &[thread, "do_exit"])
}

/// Returns how exactly the ends of a thread's waits are known, in microseconds.
///
/// The kernel accounts a context switch at another moment than it records it. A thread waits sixty times, and each
/// preemption may be one of its own.
pub fn accounting_slack(outcome: &Outcome) -> f64 {
    let preemptions = outcome.stderr.split(" preemption").next().and_then(|text| text.rsplit(' ').next());
    6.0 * (60.0 + preemptions.and_then(|number| number.parse().ok()).unwrap_or(0.0))
}

/// Starts a thread that sleeps again and again.
fn start_sleeper(waits: &str) -> Background {
    Background::start(command(waits).arg("for-ever").stderr(Stdio::null()))
}

#[test]
fn each_wait_is_as_long_as_measured_and_in_its_stack() {
    let Some(waits) = waits(&[]) else { return };
    statistical(|| {
        let outcome = record_waits(&waits, &["--off-cpu"]);
        assert!(outcome.stderr.contains("fg-record: microseconds: "), "{outcome:?}");
        let profile = Profile::from_stdout(&outcome);
        let measurements = Measurement::parse_all(&outcome);
        assert_eq!(measurements.len(), 6, "{outcome:?}");
        for Measurement { thread, blocked, stolen, .. } in measurements {
            let recorded = weight(&profile, &[&thread, "work", &format!("wait_{thread}")]);
            let is_right = is_near(recorded, blocked, 2.0, accounting_slack(&outcome) + stolen);
            ensure!(is_right, "{thread}: {recorded} instead of {blocked}, {stolen} stolen: {outcome:?}");
            // Computing does not block, and no other thread is preempted most of the time.
            let off_cpu = weight(&profile, &[&thread, &format!("wait_{thread}"), "[off-cpu]"]);
            let is_right = if thread == "burn" { off_cpu < 1000.0 } else { off_cpu > recorded / 2.0 };
            ensure!(is_right, "{thread}: {off_cpu} of {recorded}");
        }
        let has_state = |stack: &Stack| ["[off-cpu]", "[runnable]", "[lost]"].contains(&stack.leaf());
        assert!(profile.0.iter().all(has_state), "{profile:?}");
        Ok(())
    });
}

#[test]
fn wall_time_of_a_thread_is_its_lifetime() {
    let Some(waits) = waits(&[]) else { return };
    statistical(|| {
        let outcome = record_waits(&waits, &["--wall"]);
        let profile = Profile::from_stdout(&outcome);
        let measurements = Measurement::parse_all(&outcome);
        for Measurement { thread, least, most, .. } in &measurements {
            let lifetime = life_weight(&profile, thread);
            let is_right = lifetime >= least * 0.99 && lifetime <= most * 1.01;
            ensure!(is_right, "{thread}: {lifetime}, not {least} to {most}: {outcome:?}");
        }
        let running = weight(&profile, &["burn", "wait_burn"]) - weight(&profile, &["burn", "wait_burn", "[runnable]"]);
        let slack = 5000.0 + accounting_slack(&outcome) + measurements[0].stolen;
        ensure!(is_near(running, 300_000.0, 5.0, slack), "{running}: {outcome:?}");
        Ok(())
    });
}

#[test]
fn times_are_right_if_only_some_switches_have_stacks() {
    let Some(waits) = waits(&[]) else { return };
    statistical(|| {
        let outcome = record_waits(&waits, &["--off-cpu", "--off-cpu-period", "7", "--call-graph", "fp"]);
        assert!(outcome.stderr.contains("stacks of one in 7 switches"), "{outcome:?}");
        let profile = Profile::from_stdout(&outcome);
        for Measurement { thread, blocked, stolen, .. } in Measurement::parse_all(&outcome) {
            // The mutex's thread also waits for a semaphore, which is not in `blocked`.
            let recorded = profile.thread_weight(&thread) as f64;
            let least = blocked * 0.97 - accounting_slack(&outcome) - stolen;
            ensure!(thread == "burn" || recorded >= least, "{thread}: {recorded} instead of {blocked}: {outcome:?}");
        }
        Ok(())
    });
}

#[test]
fn takes_no_more_stacks_than_requested() {
    let Some(waits) = waits(&[]) else { return };
    statistical(|| {
        let outcome = record(["--off-cpu", "--off-cpu-period", "1000000", "--", &waits, "pingpong", "0.1"]).ok();
        let profile = Profile::from_stdout(&outcome);
        let unsampled = profile.weight(&["[unsampled]", "[off-cpu]"]) + profile.weight(&["[unsampled]", "[runnable]"]);
        ensure!(unsampled == profile.total(), "{unsampled}: {outcome:?}");
        Ok(())
    });
}

#[test]
fn takes_fewer_stacks_at_high_switch_rates() {
    let Some(waits) = waits(&[]) else { return };
    statistical(|| {
        let outcome = record(["--off-cpu", "--", &waits, "pingpong", "0.8"]).ok();
        let measurement = &Measurement::parse_all(&outcome)[0];
        let (per_second, blocked) = (measurement.most / measurement.least * 1e6, measurement.blocked);
        let is_sparse = outcome.stderr.contains("stacks of one in 17 switches");
        ensure!(is_sparse || per_second < 40_000.0, "{per_second} a second: {outcome:?}");
        let profile = Profile::from_stdout(&outcome);
        // Each block is so short that its inexact ends matter as much as its length.
        let recorded = profile.thread_weight("waits") as f64;
        ensure!(is_near(recorded, blocked, 20.0, 0.0), "{recorded} instead of {blocked}: {outcome:?}");
        profile.check_share(&["wait_pong"], 0.2)
    });
}

#[test]
fn a_block_that_does_not_end_counts_until_the_end_of_the_recording() {
    if waits(&[]).is_none() {
        return;
    }
    statistical(|| {
        let started = Instant::now();
        let outcome = record(["--off-cpu", "-d", "0.7", "--", "sleep", "100000"]);
        let most = started.elapsed().as_micros() as f64;
        let slept = weight(&Profile::from_stdout(&outcome), &["sleep", "[off-cpu]"]);
        ensure!(slept > 0.5e6 && slept < most, "{slept} of {most}: {outcome:?}");
        Ok(())
    });
}

#[test]
fn records_a_running_process_and_the_whole_system() {
    let Some(waits) = waits(&[]) else { return };
    let process = start_sleeper(&waits);
    for target in [&["-p", &*process.pid()][..], &["-a"]] {
        statistical(|| {
            let mut recorder = recorder(["--off-cpu", "-d", "0.5", "--no-inline"]);
            let outcome = finish(recorder.args(target).spawn().unwrap()).ok();
            let profile = Profile::from_stdout(&outcome);
            // On a busy machine some samples are lost, and reported.
            let lost = weight(&profile, &["[lost]"]);
            let slept = weight(&profile, &["waits", "main", "wait_sleep", "[off-cpu]"]);
            // The process hardly does anything else. With -a, programs of other test runs sleep too.
            let most = if target == ["-a"] { f64::MAX } else { 1_500_000.0 };
            ensure!(slept + lost > 200_000.0 && slept < most, "{slept}: {outcome:?}");
            Ok(())
        });
    }
}

#[test]
fn two_recorders_of_the_same_switches_do_not_disturb_each_other() {
    let Some(waits) = waits(&[]) else { return };
    let process = start_sleeper(&waits);
    statistical(|| {
        let start = |options: &[&str]| {
            let mut recorder = recorder(["--off-cpu", "--off-cpu-period", "1", "-p", &process.pid()]);
            recorder.args(options).spawn().unwrap()
        };
        let by_copied_stack = start(&["-d", "2.5"]);
        std::thread::sleep(Duration::from_millis(500));
        let by_frame_pointer = finish(start(&["--call-graph", "fp", "-d", "1"]));
        let profile = Profile::from_stdout(&finish(by_copied_stack).ok());
        let repeats_main = |stack: &Stack| stack.contains(&["main", "main"]);
        assert!(!profile.0.iter().any(repeats_main), "{profile:?}");
        ensure!(profile.share(&["[lost]"]) < 0.2, "{profile:?}");
        assert!(by_frame_pointer.status.success(), "{by_frame_pointer:?}");
        Ok(())
    });
}

#[test]
fn filters_blocks_by_length() {
    let Some(waits) = waits(&[]) else { return };
    let process = start_sleeper(&waits);
    statistical(|| {
        // The blocks last five milliseconds, or longer on a busy machine.
        let outcome = record(["--off-cpu", "--max-block", "2ms", "-d", "300ms", "-p", &process.pid()]).ok();
        // The end of the recording may have cut one.
        ensure!(weight(&Profile::from_stdout(&outcome), &["wait_sleep", "[off-cpu]"]) < 2000.0, "{outcome:?}");
        let outcome = record(["--off-cpu", "--min-block", "2ms", "-d", "300ms", "-p", &process.pid()]).ok();
        Profile::from_stdout(&outcome).check_share(&["wait_sleep", "[off-cpu]"], 0.5)
    });
}

#[test]
fn recorders_of_one_process_do_not_take_its_switches_from_each_other() {
    let Some(waits) = waits(&[]) else { return };
    let process = start_sleeper(&waits);
    statistical(|| {
        // The counters of the one that began later come first in the kernel.
        let earlier = recorder(["--off-cpu", "-d", "900ms", "-p", &process.pid()]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let later = record(["--off-cpu", "-d", "300ms", "-p", &process.pid()]).ok();
        for outcome in [finish(earlier).ok(), later] {
            Profile::from_stdout(&outcome).check_share(&["wait_sleep", "[off-cpu]"], 0.8)?;
        }
        Ok(())
    });
}

#[test]
fn a_block_counts_on_the_cpu_where_it_began() {
    let Some(waits) = waits(&[]) else { return };
    if !require("taskset") {
        return;
    }
    let process = Background::start(command("taskset").args(["-c", "0", &waits, "for-ever"]).stderr(Stdio::null()));
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    statistical(|| {
        let blocked_on = |cpu| {
            let outcome = record(["--off-cpu", "-C", cpu, "-d", "300ms", "-p", &process.pid()]).ok();
            // With or without [off-cpu]: it may also wait for its CPU, where others run too.
            weight(&Profile::from_stdout(&outcome), &["waits", "wait_sleep"])
        };
        let blocked = blocked_on("0");
        ensure!(blocked > 200_000.0, "{blocked}");
        assert!(cpus == 1 || blocked_on("1") == 0.0);
        Ok(())
    });
}

#[test]
fn an_interrupted_recording_has_no_more_time_than_elapsed() {
    let Some(waits) = waits(&[]) else { return };
    let process = start_sleeper(&waits);
    statistical(|| {
        let started = Instant::now();
        let mut recorder = recorder(["--wall", "-v", "-p", &process.pid()]).spawn().unwrap();
        wait_until_recording(&mut recorder);
        std::thread::sleep(Duration::from_millis(300));
        send(&recorder, libc::SIGINT);
        let outcome = finish(recorder).ok();
        let (total, most) = (Profile::from_stdout(&outcome).total() as f64, started.elapsed().as_micros() as f64);
        ensure!(total > 100_000.0 && total < most, "{total} of {most}: {outcome:?}");
        Ok(())
    });
}
