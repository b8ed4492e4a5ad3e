//! The share of the CPU time that samples cover: it is right, and low where threads are too short to be sampled.

use std::process::{Command, Stdio};

use crate::support::process::Background;
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record, record, recorder};
use crate::support::statistics::{Check, ensure, statistical};
use crate::support::{Outcome, command, directory, eventually, require, run_bounded, skip};

/// A shell script that runs 400 programs one after the other, each shorter than a millisecond.
const SHORT_PROCESSES: &str = "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done";

/// Returns the share in percent and the CPU time in seconds that a summary states.
fn stated_coverage(outcome: &Outcome) -> Option<(f64, f64)> {
    let (_, coverage) = outcome.stderr.split_once("samples cover ")?;
    let mut words = coverage.split_whitespace();
    let share = words.next()?.parse().ok()?;
    let time: f64 = words.nth(2)?.parse().ok()?;
    Some((share, if words.next()? == "ms" { time / 1000.0 } else { time }))
}

/// Checks that samples cover all CPU time, as far as that many samples can say.
fn check_covered(outcome: &Outcome, hertz: f64) -> Check {
    let Some((share, time)) = stated_coverage(outcome) else { return Err(format!("no coverage: {outcome:?}")) };
    let deviation = 100.0 / (time * hertz).sqrt();
    ensure!((share - 100.0).abs() < 6.0 + 3.0 * deviation, "{share} % of {time} s: {outcome:?}");
    ensure!(!outcome.stderr.contains(" has no sample;"), "{outcome:?}");
    Ok(())
}

/// Returns true if a BPF program took the stacks. Otherwise reports the test as skipped.
#[track_caller]
fn took_stacks(outcome: &Outcome) -> bool {
    let is_copied = outcome.stderr.contains("stacks copied");
    if is_copied {
        skip("no BPF program takes the stacks");
    }
    !is_copied
}

/// Records a shell that runs the script as soon as the recording has begun, for some seconds.
fn record_from_start(hertz: u32, seconds: u32, script: &str) -> Outcome {
    record_from_stop(command("sh").args(["-c", &format!("kill -STOP $$; {script}")]), hertz, seconds).ok()
}

/// Records a program that stops itself, for some seconds from there.
fn record_from_stop(program: &mut Command, hertz: u32, seconds: u32) -> Outcome {
    let process = Background::start(program.stderr(Stdio::null()));
    let stat = format!("/proc/{}/stat", process.pid());
    assert!(eventually(|| std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "))));
    let start = format!("kill -CONT {}; sleep {seconds}", process.pid());
    record(["-v", "-F", &hertz.to_string(), "-p", &process.pid(), "--", "sh", "-c", &start])
}

#[test]
fn counters_of_cpus_cover_short_processes_and_threads() {
    let (true, Some(pool)) = (can_record(), program("pool")) else { return };
    statistical(|| {
        let outcome = record(["-v", "-F", "997", "--", "sh", "-c", SHORT_PROCESSES]).ok();
        if !took_stacks(&outcome) {
            return Ok(());
        }
        check_covered(&outcome, 997.0)?;
        check_covered(&record(["-F", "99", "--", &pool, "200", "3"]).ok(), 99.0)
    });
}

#[test]
fn running_processes_are_covered_with_what_they_start_and_what_ends() {
    let (true, Some(pool)) = (can_record(), program("pool")) else { return };
    statistical(|| {
        let outcome = record_from_start(997, 2, &format!("{SHORT_PROCESSES}; exec sleep 30"));
        if !took_stacks(&outcome) {
            return Ok(());
        }
        check_covered(&outcome, 997.0)?;
        // The process ends before the recording does.
        check_covered(&record_from_start(99, 5, &format!("exec {pool} 200 8")), 99.0)
    });
}

#[test]
fn children_that_go_on_after_a_command_are_covered() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    statistical(|| {
        let outcome =
            record(["-v", "-F", "997", "--", "sh", "-c", &format!("{busy} 3 > /dev/null 2>&1 & {busy} 0.5")]).ok();
        if !took_stacks(&outcome) {
            return Ok(());
        }
        check_covered(&outcome, 997.0)
    });
}

#[test]
fn threads_that_are_shorter_than_a_period_are_reported() {
    let (true, Some(pool)) = (can_record(), program("pool")) else { return };
    statistical(|| {
        // Each thread uses at most 15 ms. They are few: where one follows another on a CPU, the kernel hands its counter on, with the
        // time that has passed, and the threads are sampled.
        for command in [&["sh", "-c", SHORT_PROCESSES][..], &[&pool, "50", "1"]] {
            let outcome = run_bounded(recorder(["--call-graph", "fp", "-F", "49", "--"]).args(command)).ok();
            ensure!(
                outcome.stderr.contains(" CPU time each: one that uses less than 20 ms has no sample; "),
                "{outcome:?}"
            );
            let share = stated_coverage(&outcome).map_or(0.0, |(share, _)| share);
            ensure!(share < 50.0, "{share}: {outcome:?}");
        }
        Ok(())
    });
}

#[test]
fn threads_that_sleep_at_the_pace_of_the_samples_are_covered() {
    let (true, Some(naps)) = (can_record(), program("naps")) else { return };
    statistical(|| ["7000", "15000", "21000", "30000"].iter().try_for_each(|steps| check_naps(&naps, steps)));
}

/// Checks that both functions of a program that sleeps often have the samples that their CPU time is worth.
fn check_naps(naps: &str, steps: &str) -> Check {
    let folder = directory();
    let folded = folder.path().join("naps.folded");
    let outcome = record(["-v", "-F", "4999", "-o", &folded.to_string_lossy(), "--", naps, "2000", steps]).ok();
    if !took_stacks(&outcome) {
        return Ok(());
    }
    let profile = Profile::parse(&std::fs::read(&folded).unwrap());
    let printed = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let times: Vec<f64> = printed.split_whitespace().map(|time| time.parse().unwrap()).collect();
    assert_eq!(times.len(), 2, "{outcome:?}");
    for (function, time) in ["first_half", "second_half"].into_iter().zip(times) {
        let samples = profile.weight(&[function]) as f64;
        let expected = time * 4.999;
        ensure!(
            (samples - expected).abs() < 0.1 * expected + 3.0 * expected.sqrt(),
            "{function}: {samples} of {time} ms"
        );
    }
    Ok(())
}

#[test]
fn the_sleeps_of_processes_that_end_are_counted() {
    let (true, Some(naps)) = (can_record(), program("naps")) else { return };
    // With this slack, the timers of the samples wake the program, and what it does then is not sampled.
    let script = format!("echo 5000000 > /proc/$$/timerslack_ns; {naps} 150 40000; {naps} 150 40000; exec sleep 6");
    statistical(|| {
        let running = record_from_start(997, 4, &script);
        if !took_stacks(&running) {
            return Ok(());
        }
        check_sleeps(&running, 300)?;
        check_sleeps(&record(["-F", "997", "-d", "3", "--", "sh", "-c", &script]), 300)
    });
}

/// A program whose thread sleeps 3,000 times, before it stops itself. After that it sleeps 300 times.
const EARLIER_THREAD: &str = r#"
import os, signal, threading, time
def sleep():
    for _ in range(3000):
        time.sleep(1e-5)
thread = threading.Thread(target=sleep)
thread.start()
thread.join()
open("/proc/self/timerslack_ns", "w").write("5000000")
os.kill(os.getpid(), signal.SIGSTOP)
for _ in range(300):
    time.sleep(2e-4)
    end = time.thread_time() + 3e-4
    while time.thread_time() < end:
        pass
"#;

#[test]
fn sleeps_of_threads_that_ended_before_are_not_counted() {
    if !can_record() || !require("python3") {
        return;
    }
    statistical(|| {
        let outcome = record_from_stop(command("python3").args(["-c", EARLIER_THREAD]), 997, 4);
        if !took_stacks(&outcome) {
            return Ok(());
        }
        check_sleeps(&outcome, 300)
    });
}

#[test]
fn the_time_that_taking_stacks_takes_is_reported() {
    if !can_record() || !require("python3") {
        return;
    }
    let script = |depth: u32| {
        format!(
            "import sys, time\nsys.setrecursionlimit(5000)\ndef call(depth):\n    if depth:\n        return call(depth - 1)\n    \
             end = time.thread_time() + 0.5\n    while time.thread_time() < end:\n        pass\ncall({depth})"
        )
    };
    let outcome = record(["-v", "-F", "4999", "--", "python3", "-c", &script(900)]).ok();
    if !took_stacks(&outcome) {
        return;
    }
    assert!(outcome.stderr.contains("taking stacks took "), "{outcome:?}");
    let waits = record(["--wall", "-F", "4999", "--", "python3", "-c", &script(900)]).ok();
    assert!(waits.stderr.contains("taking stacks took "), "{waits:?}");
    let shallow = record(["-v", "-F", "997", "--", "python3", "-c", &script(2)]).ok();
    assert!(!shallow.stderr.contains("taking stacks took "), "{shallow:?}");
}

#[test]
fn the_time_that_taking_stacks_takes_is_not_sampled() {
    let (true, Some(halves)) = (can_record(), program("halves")) else { return };
    statistical(|| {
        // Short halves lie between the samples of a timer, long ones contain many.
        for [rounds, steps] in [["14000", "15000"], ["20", "10000000"]] {
            let outcome = record(["-v", "-F", "1997", "--", &halves, "3000", rounds, steps]).ok();
            if !took_stacks(&outcome) {
                return Ok(());
            }
            let profile = Profile::from_stdout(&outcome);
            let [deep, shallow] = ["deep_half", "shallow_half"].map(|half| profile.weight(&[half]) as f64);
            let difference = (deep - shallow).abs();
            ensure!(
                difference < 0.06 * shallow + 2.0 * (deep + shallow).sqrt(),
                "{deep}, {shallow}: {}",
                outcome.stderr
            );
            ensure!(outcome.stderr.contains(" CPU time, taking them took "), "{outcome:?}");
        }
        // The timers of two clocks are due at the same time: the stacks of one would hide those of the other.
        let folder = directory();
        let path = |event: &str| folder.path().join(format!("{event}.folded"));
        let pattern = path("%e").display().to_string();
        let clocks = ["-F", "1997", "-e", "cpu-clock", "-e", "task-clock", "-o", &pattern, "--"];
        run_bounded(recorder(clocks).args([&halves, "3000", "20", "10000000"])).ok();
        for clock in ["cpu-clock", "task-clock"] {
            let profile = Profile::parse(&std::fs::read(path(clock)).unwrap());
            let [deep, shallow] = ["deep_half", "shallow_half"].map(|half| profile.weight(&[half]));
            ensure!(deep > shallow * 9 / 10, "{clock}: {deep}, {shallow}");
        }
        Ok(())
    });
}

/// Checks that the summary gives sleeps as the reason of a low coverage, and how many they were.
fn check_sleeps(outcome: &Outcome, expected: u32) -> Check {
    ensure!(stated_coverage(outcome).is_some_and(|(share, _)| share < 80.0), "{outcome:?}");
    let slept = outcome.stderr.split_once("threads slept ").and_then(|(_, slept)| slept.split_once(" times"));
    let sleeps: u32 = slept.map_or(0, |(sleeps, _)| sleeps.parse().unwrap());
    ensure!((expected..expected + 50).contains(&sleeps), "{sleeps}: {outcome:?}");
    Ok(())
}

#[test]
fn a_recording_without_samples_says_why() {
    if !can_record() {
        return;
    }
    statistical(|| {
        let slept = record(["-F", "1", "--", "sleep", "0.7"]).ok();
        ensure!(slept.stderr.contains("nothing was recorded: the target slept ("), "{slept:?}");
        let brief = record(["-F", "1", "--", "true"]).ok();
        ensure!(brief.stderr.contains(" CPU time, and a sample stands for 1.00 s; raise -F"), "{brief:?}");
        Ok(())
    });
}

#[test]
fn the_whole_system_and_user_code_are_covered() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let process = Background::start(command(&busy).arg("100000"));
    statistical(|| {
        let outcome = record(["-a", "-F", "199", "-d", "2", "--call-graph", "fp", "--no-inline"]);
        if outcome.stderr.contains("cannot record all CPUs") {
            skip(&outcome.stderr);
            return Ok(());
        }
        check_covered(&outcome.ok(), 199.0)?;
        check_covered(&record(["-F", "199", "-d", "1", "-p", &process.pid()]).ok(), 199.0)?;
        let of_user = record(["-e", "cpu-clock:u", "-F", "199", "-d", "2", "-p", &process.pid()]).ok();
        ensure!(of_user.stderr.contains(" CPU time in user space"), "{of_user:?}");
        check_covered(&of_user, 199.0)
    });
}
