//! Time off the CPU: options, and what does not depend on how long threads wait.

use std::time::Instant;

use crate::support::process::Background;
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record_switches, finish, record, recorder};
use crate::support::{command, directory, eventually, require, run_command, tool};

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

/// Starts a program whose threads never run again, and waits until they sleep.
fn start_hanging(program: &str) -> Background {
    let process = Background::start(command(program).arg("hang"));
    let tasks = format!("/proc/{}/task", process.pid());
    let sleeps = |task: std::io::Result<std::fs::DirEntry>| {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
        status.contains("State:\tS") && (status.contains("Name:\tstuck") || status.contains("Name:\tchains"))
    };
    let count = || std::fs::read_dir(&tasks).unwrap().map(sleeps).filter(|sleeps| *sleeps).count();
    assert!(eventually(|| count() == 2));
    process
}

#[test]
fn a_thread_that_sleeps_already_has_the_stack_in_which_it_does() {
    let Some(program) = program("chains").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let process = start_hanging(&program);
    for options in
        [&["--off-cpu"][..], &["--wall"], &["--off-cpu", "--wakers"], &["--off-cpu", "--off-cpu-period", "5"]]
    {
        let started = Instant::now();
        let outcome = finish(recorder(["-d", "300ms", "-p", &process.pid()]).args(options).spawn().unwrap()).ok();
        let elapsed = u64::try_from(started.elapsed().as_micros()).unwrap();
        let profile = Profile::from_stdout(&outcome);
        profile.assert_contains(&["chains", "main", "hang", "wait_for_ever", "[off-cpu]"]);
        profile.assert_contains(&["stuck", "acquire", "futex_wait", "[off-cpu]"]);
        profile.assert_lacks(&["[unsampled]"]);
        profile.assert_lacks(&["[truncated]"]);
        // As at a switch, though the kernel leaves it out of the stacks of other threads.
        profile.assert_contains(&["hang", "wait_for_ever", "schedule", "[off-cpu]"]);
        for thread in ["chains", "stuck"] {
            assert!((300_000..=elapsed).contains(&profile.thread_weight(thread)), "{elapsed} elapsed: {outcome:?}");
        }
        assert!(outcome.stderr.contains("2 threads slept when the recording began"), "{outcome:?}");
    }
}

#[test]
fn says_that_the_memory_of_a_sleeping_thread_cannot_be_read() {
    let Some(program) = program("chains").filter(|_| can_record_switches(&["--wakers"]) && require("setpriv")) else {
        return;
    };
    let process = start_hanging(&program);
    let mut recorder = command("setpriv");
    recorder.args(["--bounding-set=-all,+bpf,+perfmon,+syslog", "--inh-caps=-all"]).arg(tool("fg-record"));
    recorder.args(["--off-cpu", "-d", "300ms", "-p", &process.pid()]);
    let outcome = run_command(recorder, b"").ok();
    Profile::from_stdout(&outcome).assert_contains(&["stuck", "[truncated]", "[off-cpu]"]);
    let message =
        "the stacks of 2 threads that slept when the recording began are truncated: reading them needs CAP_SYS_PTRACE";
    assert!(outcome.stderr.contains(message), "{outcome:?}");
}

#[test]
fn a_thread_that_sleeps_already_is_unsampled_without_bpf() {
    if !can_record_switches(&[]) {
        return;
    }
    let process = Background::sleeping();
    for mode in ["--off-cpu", "--wall"] {
        let started = Instant::now();
        let outcome = record([mode, "--call-graph", "fp", "-d", "300ms", "-p", &process.pid()]).ok();
        let elapsed = u64::try_from(started.elapsed().as_micros()).unwrap();
        let profile = Profile::from_stdout(&outcome);
        assert_eq!(profile.0[0].frames, ["sleep", "[unsampled]", "[off-cpu]"], "{outcome:?}");
        assert!((300_000..=elapsed).contains(&profile.total()), "{elapsed} elapsed: {outcome:?}");
        assert!(outcome.stderr.contains("microseconds: 0 blocks (0.000 s), 1 earlier sleep ("), "{outcome:?}");
        assert!(outcome.stderr.contains("without a stack; leave out --call-graph to see it"), "{outcome:?}");
    }
}

#[test]
fn a_recording_without_waits_says_so() {
    if !can_record_switches(&[]) {
        return;
    }
    let process = Background::sleeping();
    let outcome = record(["--off-cpu", "--min-block", "100s", "-d", "100ms", "-p", &process.pid()]).ok();
    assert_eq!(outcome.text(), "", "{outcome:?}");
    assert!(outcome.stderr.contains("nothing was recorded: no wait was within --min-block"), "{outcome:?}");
    let outcome = record(["--off-cpu", "-C", "0", "-d", "100ms", "-p", &process.pid()]).ok();
    assert_eq!(outcome.text(), "", "{outcome:?}");
    assert!(outcome.stderr.contains("-C and --cgroup leave out threads that already sleep"), "{outcome:?}");
}

/// The first wait of a new process has no sample.
#[test]
fn a_process_without_samples_is_known() {
    if !can_record_switches(&[]) {
        return;
    }
    let outcome = record(["--wall", "--split-by", "pid", "--", "sh", "-c", "sleep 0.1 & wait"]).ok();
    let profile = Profile::from_stdout(&outcome);
    assert!(profile.0.iter().any(|stack| stack.frames[0].starts_with("pid-")), "{profile:?}");
    profile.assert_lacks(&["pid-0"]);
}

/// The system calls of a library stand behind symbols without a size, those of assembler.
#[test]
fn names_no_system_call_of_musl_by_the_symbol_before_it() {
    if !can_record_switches(&[]) || !require("musl-gcc") {
        return;
    }
    let folder = directory();
    let (source, program) = (folder.path().join("nap.c"), folder.path().join("nap"));
    std::fs::write(&source, "#include <unistd.h>\nint main(void) { return sleep(100); }\n").unwrap();
    assert!(command("musl-gcc").arg("-o").args([&program, &source]).status().unwrap().success());
    let process = Background::start(&mut command(&program));
    let status = format!("/proc/{}/status", process.pid());
    assert!(eventually(|| std::fs::read_to_string(&status).unwrap().contains("Name:\tnap\n")));
    assert!(eventually(|| std::fs::read_to_string(&status).unwrap().contains("State:\tS")));
    let outcome = record(["--off-cpu", "-d", "200ms", "-p", &process.pid()]).ok();
    let profile = Profile::from_stdout(&outcome);
    profile.assert_contains(&["nap", "sleep"]);
    profile.assert_lacks(&["memset"]);
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
