//! Time off the CPU, and all time, beside what the recorded programs measured themselves.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::folded::{Background, Folded, end, may_record, record, recorder, send};
use crate::programs::program;
use crate::support::{Outcome, directory, has, run, skip};

/// Whether this machine lets us record switches; and the program that waits.
fn waits() -> Option<String> {
    waits_by(&[])
}

/// The same where switches are recorded in this way.
pub fn waits_by(way: &[&str]) -> Option<String> {
    let program = program("waits").filter(|_| may_record())?;
    let probe = run("fg-record", [&["--off-cpu"], way, &["--", "true"]].concat(), b"");
    if !probe.status.success() {
        skip(&probe.stderr);
        return None;
    }
    Some(program)
}

/// What a thread of the program measured, in microseconds.
#[derive(Debug)]
pub struct Truth {
    pub name: String,
    pub blocked: f64,
    /// The bounds of its life.
    least: f64,
    pub most: f64,
    /// What other machines and interrupts took, of which no switch tells: at most this much is measured wrongly.
    pub stolen: f64,
}

/// What the program printed; its standard output goes elsewhere, and ours are the lines with its numbers.
pub fn truths(outcome: &Outcome) -> Vec<Truth> {
    let number = |word: &str| word.parse().unwrap_or(f64::NAN);
    let ours = |line: &&str| !line.starts_with("fg-record:");
    let truth = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words.len(), 5, "{line}");
        let [blocked, least, most, stolen] = [1, 2, 3, 4].map(|nth| number(words[nth]));
        Truth { name: words[0].to_owned(), blocked, least, most, stolen: stolen.max(0.0) }
    };
    outcome.stderr.lines().filter(ours).map(truth).collect()
}

/// The weight of stacks with these frames in that order.
pub fn weight(profile: &Folded, frames: &[&str]) -> f64 {
    profile.share(frames) * profile.total() as f64
}

pub fn is_near(measured: f64, truth: f64, percent: f64, slack: f64) -> bool {
    (measured - truth).abs() <= truth * percent / 100.0 + slack
}

/// Records the program that waits in known ways, which also reads from a disk.
pub fn record_waits(waits: &str, options: &[&str]) -> Outcome {
    let folder = directory_on_disk();
    let file = folder.path().join("waits.disk");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    let mut command = recorder([]);
    command.args(options).args(["--", waits]).env("WAITS_FILE", file);
    end(command.spawn().unwrap()).ok()
}

/// The system's own folder for what is passing may be in memory.
fn directory_on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// How exactly the ends of a thread's waits are known, in microseconds: the kernel accounts a switch at another place than
/// it tells of it. A thread waits sixty times, and each preemption may have been its.
pub fn edges(outcome: &Outcome) -> f64 {
    let preempted = outcome.stderr.split(" preemption").next().and_then(|said| said.rsplit(' ').next());
    6.0 * (60.0 + preempted.and_then(|number| number.parse().ok()).unwrap_or(0.0))
}

#[test]
fn each_wait_is_as_long_as_the_program_says_and_in_its_stack() {
    let Some(waits) = waits() else { return };
    let outcome = record_waits(&waits, &["--off-cpu"]);
    assert!(outcome.stderr.contains("fg-record: microseconds: "), "{outcome:?}");
    let profile = Folded::of(&outcome);
    let truths = truths(&outcome);
    assert_eq!(truths.len(), 6, "{outcome:?}");
    for Truth { name, blocked, stolen, .. } in truths {
        let measured = weight(&profile, &[&name, "work", &format!("wait_{name}")]);
        let said = format!("{name}: {measured} and not {blocked}, {stolen} stolen: {outcome:?}");
        assert!(is_near(measured, blocked, 2.0, edges(&outcome) + stolen), "{said}");
        let is_burning = name == "burn";
        // Nobody blocks by computing, and nobody else is kept from running most of the time.
        let part = weight(&profile, &[&name, &format!("wait_{name}"), "[off-cpu]"]);
        assert!(if is_burning { part < 1000.0 } else { part > measured / 2.0 }, "{name}: {part} of {measured}");
    }
    let leaves = |stack: &[String]| ["[off-cpu]", "[runnable]", "[lost]"].contains(&&**stack.last().unwrap());
    assert!(profile.0.iter().all(|(stack, _)| leaves(stack)), "{profile:?}");
}

#[test]
fn all_time_of_a_thread_is_its_life() {
    let Some(waits) = waits() else { return };
    let outcome = record_waits(&waits, &["--wall"]);
    let profile = Folded::of(&outcome);
    let truths = truths(&outcome);
    for Truth { name, least, most, .. } in &truths {
        let life = profile.0.iter().filter(|(stack, _)| stack[0] == *name).map(|(_, weight)| *weight as f64);
        let life: f64 = life.sum();
        assert!(life >= least * 0.99 && life <= most * 1.01, "{name}: {life}, not {least} to {most}: {outcome:?}");
    }
    let burnt = weight(&profile, &["burn", "wait_burn"]) - weight(&profile, &["burn", "wait_burn", "[runnable]"]);
    assert!(is_near(burnt, 300_000.0, 5.0, 5000.0 + edges(&outcome) + truths[0].stolen), "{burnt}: {outcome:?}");
}

#[test]
fn the_time_is_right_too_where_only_some_switches_bring_their_stacks() {
    let Some(waits) = waits() else { return };
    let outcome = record_waits(&waits, &["--off-cpu", "--off-cpu-period", "7", "--call-graph", "fp"]);
    assert!(outcome.stderr.contains("stacks of every 7 switches"), "{outcome:?}");
    let profile = Folded::of(&outcome);
    for Truth { name, blocked, stolen, .. } in truths(&outcome).into_iter().filter(|truth| truth.name != "burn") {
        let measured: u64 = profile.0.iter().filter(|(stack, _)| stack[0] == name).map(|(_, weight)| weight).sum();
        // All of the thread: at the semaphores of its turn the mutex's waits too.
        assert!(
            measured as f64 >= blocked * 0.97 - edges(&outcome) - stolen,
            "{name}: {measured} and not {blocked}: {outcome:?}"
        );
    }
}

#[test]
fn the_kernel_takes_no_more_stacks_than_were_asked_for() {
    let Some(waits) = waits() else { return };
    let outcome = record(["--off-cpu", "--off-cpu-period", "1000000", "--", &waits, "pingpong", "0.1"]).ok();
    let profile = Folded::of(&outcome);
    assert_eq!(profile.share(&["[unsampled]", "[off-cpu]"]) + profile.share(&["[unsampled]", "[runnable]"]), 1.0);
}

#[test]
fn where_switches_are_very_many_not_each_brings_its_stack() {
    let Some(waits) = waits() else { return };
    let outcome = record(["--off-cpu", "--", &waits, "pingpong", "0.8"]).ok();
    let truth = &truths(&outcome)[0];
    let (per_second, blocked) = (truth.most / truth.least * 1e6, truth.blocked);
    let sparse = outcome.stderr.contains("stacks of every 17 switches");
    assert!(sparse || per_second < 40_000.0, "{per_second} a second: {outcome:?}");
    let profile = Folded::of(&outcome);
    let of_main: u64 = profile.0.iter().filter(|(stack, _)| stack[0] == "waits").map(|(_, w)| w).sum();
    // Each block is short here, and its ends count for as much as itself.
    assert!(is_near(of_main as f64, blocked, 20.0, 0.0), "{of_main} and not {blocked}: {outcome:?}");
    profile.assert_share(&["wait_pong"], 0.2);
}

#[test]
fn who_is_still_blocked_at_the_end_counts_up_to_it() {
    let (Some(_), true) = (waits(), may_record()) else { return };
    let began = Instant::now();
    let outcome = record(["--off-cpu", "-d", "0.7", "--", "sleep", "20"]);
    let most = began.elapsed().as_micros() as f64;
    let profile = Folded::of(&outcome);
    let slept = weight(&profile, &["sleep", "[off-cpu]"]);
    assert!(slept > 0.5e6 && slept < most, "{slept} of {most}: {outcome:?}");
}

#[test]
fn who_slept_before_the_recording_has_no_stack() {
    let (Some(_), true) = (waits(), may_record()) else { return };
    let process = Background::sleeping();
    let outcome = record(["--off-cpu", "-d", "300ms", "-p", &process.pid()]).ok();
    assert_eq!(outcome.text(), "", "{outcome:?}");
    let outcome = record(["--wall", "-d", "300ms", "-p", &process.pid()]).ok();
    let profile = Folded::of(&outcome);
    assert_eq!(profile.0[0].0, ["sleep", "[unsampled]", "[off-cpu]"], "{outcome:?}");
    assert!((300_000..3_000_000).contains(&profile.total()), "{outcome:?}");
    assert!(outcome.stderr.contains("microseconds: 0 blocks of 0.000 s, 1 earlier sleep of "), "{outcome:?}");
}

#[test]
fn a_running_process_and_the_whole_system_are_recorded_too() {
    let Some(waits) = waits() else { return };
    let process = Background::start(Command::new(&waits).arg("for-ever"));
    std::thread::sleep(Duration::from_millis(50));
    for target in [&["-p", &*process.pid()][..], &["-a"]] {
        let mut command = recorder(["--off-cpu", "-d", "0.5", "--no-inline"]);
        let outcome = end(command.args(target).spawn().unwrap()).ok();
        let profile = Folded::of(&outcome);
        // What was lost on a busy machine is told.
        let lost = weight(&profile, &["[lost]"]);
        let slept = weight(&profile, &["waits", "main", "wait_sleep", "[off-cpu]"]);
        // It does little else; and other tests' programs sleep too.
        let most = if target == ["-a"] { f64::MAX } else { 1_500_000.0 };
        assert!(slept + lost > 200_000.0 && slept < most, "{slept}: {outcome:?}");
    }
}

#[test]
fn two_recorders_of_the_same_switches_have_each_its_own_samples() {
    let Some(waits) = waits() else { return };
    let process = Background::start(Command::new(&waits).arg("for-ever"));
    let of = |options: &[&str]| {
        recorder(["--off-cpu", "--off-cpu-period", "1", "-p", &process.pid()]).args(options).spawn().unwrap()
    };
    let unwinding = of(&["-d", "2.5"]);
    std::thread::sleep(Duration::from_millis(500));
    let following = end(of(&["--call-graph", "fp", "-d", "1"]));
    let profile = Folded::of(&end(unwinding).ok());
    let times = |stack: &[String]| stack.iter().filter(|frame| *frame == "main").count();
    assert!(profile.0.iter().all(|(stack, _)| times(stack) < 2), "{profile:?}");
    assert!(profile.share(&["[lost]"]) < 0.2, "{profile:?}");
    assert!(following.status.success(), "{following:?}");
}

#[test]
fn blocks_of_a_wrong_length_are_left_out() {
    let Some(waits) = waits() else { return };
    let process = Background::start(Command::new(&waits).arg("for-ever"));
    // They last five milliseconds, or longer where the machine is busy.
    let outcome = record(["--off-cpu", "--max-block", "2ms", "-d", "300ms", "-p", &process.pid()]).ok();
    // The end of the recording may have cut one.
    assert!(weight(&Folded::of(&outcome), &["wait_sleep", "[off-cpu]"]) < 2000.0, "{outcome:?}");
    let outcome = record(["--off-cpu", "--min-block", "2ms", "-d", "300ms", "-p", &process.pid()]).ok();
    Folded::of(&outcome).assert_share(&["wait_sleep", "[off-cpu]"], 0.5);
}

#[test]
fn blocks_count_on_the_cpu_where_they_began() {
    let Some(waits) = waits() else { return };
    if !has("taskset") {
        return;
    }
    let process = Background::start(Command::new("taskset").args(["-c", "0", &waits, "for-ever"]));
    std::thread::sleep(Duration::from_millis(100));
    let slept = |cpu| {
        let outcome = record(["--off-cpu", "-C", cpu, "-d", "300ms", "-p", &process.pid()]).ok();
        // Or waited for its CPU, where others run too.
        weight(&Folded::of(&outcome), &["waits", "wait_sleep"])
    };
    let slept_there = slept("0");
    assert!(slept_there > 200_000.0, "{slept_there}");
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        assert_eq!(slept("1"), 0.0);
    }
}

#[test]
fn an_interrupted_recording_of_all_time_adds_up() {
    let Some(waits) = waits() else { return };
    let process = Background::start(Command::new(&waits).arg("for-ever").stderr(Stdio::null()));
    let began = Instant::now();
    let recorder = recorder(["--wall", "-v", "-p", &process.pid()]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(600));
    send(&recorder, libc::SIGINT);
    let outcome = end(recorder).ok();
    let (total, most) = (Folded::of(&outcome).total() as f64, began.elapsed().as_micros() as f64);
    assert!(total > 100_000.0 && total < most, "{total} of {most}: {outcome:?}");
}

#[test]
fn what_cannot_go_together_is_refused() {
    let folder = directory();
    for options in [
        &["--off-cpu", "--script"][..],
        &["--wall", "--script"],
        &["--wall", "--off-cpu"],
        &["--off-cpu", "-e", "cycles"],
        &["--min-block", "1ms"],
        &["--wall", "--min-block", "1ms"],
        &["--off-cpu-period", "3"],
    ] {
        let outcome = end(recorder([]).args(options).args(["--", "true"]).current_dir(&folder).spawn().unwrap());
        assert_eq!(outcome.code(), 2, "{outcome:?}");
    }
}
