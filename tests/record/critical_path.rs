//! `--critical-path`: whose time is recorded. How long each part took is in the target `timing`.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::process::Background;
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record_switches, finish, record, recorder};
use crate::support::{command, directory, eventually, run};

#[test]
fn names_the_threads_of_the_path() {
    let Some(program) = program("paths").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let outcome = record(["--critical-path", "main", "--", &program, "join"]).ok();
    let profile = Profile::from_stdout(&outcome);
    // Whichever worker took longer on a busy machine.
    assert!(["long_work", "short_work"].iter().any(|work| profile.weight(&["paths", work]) > 0), "{outcome:?}");
    assert_eq!(profile.total(), profile.thread_weight("paths"), "{outcome:?}");
    assert!(!outcome.stderr.contains("--critical-path"), "{outcome:?}");
}

#[test]
fn says_that_there_is_no_such_thread() {
    if !can_record_switches(&["--wakers"]) {
        return;
    }
    for thread in ["nobody", "4194304"] {
        let outcome = record(["--critical-path", thread, "--", "true"]);
        let message = format!("--critical-path {thread}: no recorded thread has this name or ID; recorded: true");
        assert!(outcome.stderr.contains(&message), "{outcome:?}");
        assert_eq!((outcome.code(), &outcome.stdout[..]), (125, &b""[..]), "{outcome:?}");
    }
}

/// Starts a program whose main thread waits for ever for a worker, and waits until it does.
fn start_hanging(program: &str) -> Background {
    let process = Background::start(command(program).arg("hang"));
    let main = format!("/proc/{0}/task/{0}/status", process.pid());
    let waits = || std::fs::read_to_string(&main).is_ok_and(|status| status.contains("State:\tS"));
    assert!(eventually(|| waits() && threads(&process).contains(&"a worker".to_owned())));
    process
}

/// Returns the names of the threads of a process.
fn threads(process: &Background) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.pid())).unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.map(|name| name.trim_end().to_owned()).collect()
}

#[test]
fn finds_threads_by_name() {
    let Some(program) = program("paths").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let process = start_hanging(&program);
    for (thread, printed) in [("a worker", "a_worker"), ("a_worker", "a_worker"), ("paths", "paths")] {
        let outcome = record(["--critical-path", thread, "-d", "0.2", "-p", &process.pid()]).ok();
        let profile = Profile::from_stdout(&outcome);
        assert!(profile.total() > 0, "{outcome:?}");
        assert_eq!(profile.total(), profile.thread_weight(printed), "{outcome:?}");
    }
}

#[test]
fn finds_threads_by_the_name_that_they_had_before() {
    let Some(program) = program("paths").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let folder = directory();
    let renamed = folder.path().join("renamed").to_str().unwrap().to_owned();
    for thread in ["early name", "early_name"] {
        let recorder = recorder(["--critical-path", thread, "--", &program, "hang", &renamed]).spawn().unwrap();
        assert!(eventually(|| Path::new(&renamed).exists()));
        kill_process(Pid::from_child(&recorder), Signal::TERM).unwrap();
        let outcome = finish(recorder);
        let profile = Profile::from_stdout(&outcome);
        profile.assert_contains(&["a_worker", "endless_work"]);
        // It is preempted under the name that it is created with, if at all.
        let weights = ["a_worker", "early_name", "paths"].map(|name| profile.thread_weight(name));
        assert_eq!(profile.total(), weights.iter().sum::<u64>(), "{outcome:?}");
        profile.assert_lacks(&["paths", "wait_for_ever"]);
        std::fs::remove_file(&renamed).unwrap();
    }
}

#[test]
fn says_that_the_thread_waits_at_the_end() {
    let Some(program) = program("paths").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let process = start_hanging(&program);
    let outcome = record(["--critical-path", "main", "-d", "0.2", "-p", &process.pid()]).ok();
    Profile::from_stdout(&outcome).assert_contains(&["paths", "wait_for_ever", "[off-cpu]"]);
    assert!(outcome.stderr.contains("--critical-path main: it waits at the end, for "), "{outcome:?}");
    assert!(outcome.stderr.contains("record until the wait ends, or name another thread: a worker"), "{outcome:?}");
}

#[test]
fn is_given_once() {
    let arguments = ["--critical-path", "main", "--critical-path", "worker", "--", "true"];
    let outcome = run("fg-record", arguments, b"");
    assert_eq!(outcome.code(), 2, "{outcome:?}");
    assert!(outcome.stderr.contains("--critical-path is given twice"), "{outcome:?}");
}

#[test]
fn the_main_thread_is_no_other_thread() {
    let Some(program) = program("paths") else { return };
    let process = start_hanging(&program);
    let pid = process.pid();
    let mut tids = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|entry| entry.unwrap().file_name());
    let worker = tids.find(|tid| *tid != *pid).unwrap().into_string().unwrap();
    let outcome = record(["--critical-path", "main", "-d", "0.1", "-t", &worker]);
    assert_eq!(outcome.code(), 2, "{outcome:?}");
    let message = format!("thread {worker} is not the main thread of its process; use -p {pid}");
    assert!(outcome.stderr.contains(&message), "{outcome:?}");
}

#[test]
fn the_main_thread_must_be_that_of_one_process() {
    for target in [&["-a"][..], &["-p", "1,2"]] {
        let arguments = [&["--critical-path", "main", "-d", "1"], target].concat();
        let outcome = run("fg-record", arguments, b"");
        assert_eq!(outcome.code(), 2, "{outcome:?}");
        assert!(outcome.stderr.contains("--critical-path main needs a command or one process"), "{outcome:?}");
    }
}

#[test]
fn the_path_of_a_span_leads_through_the_thread_that_serves_it() {
    let Some(program) = program("paths").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let folder = directory();
    let spans = folder.path().join("spans").to_str().unwrap().to_owned();
    let outcome = record(["--critical-path", &format!("spans:{spans}"), "--", &program, "requests", &spans]).ok();
    let profile = Profile::from_stdout(&outcome);
    profile.assert_contains(&["request", "answer", "server", "serve_requests"]);
    profile.assert_lacks(&["do_other_work"]);
    let lines = std::fs::read_to_string(&spans).unwrap();
    let durations = |name: &str| -> u64 {
        let numbers = |line: &str| -> Vec<u64> {
            line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
        };
        let spans = lines.lines().filter(|line| line.contains(name)).map(numbers);
        spans.map(|numbers| numbers[2] - numbers[1]).sum::<u64>() / 1000
    };
    // Each stack is rounded to microseconds.
    let stacks = outcome.text().lines().count() as u64;
    assert!(profile.total().abs_diff(durations("request")) <= stacks, "{lines}: {outcome:?}");
    assert_eq!(profile.total(), profile.thread_weight("request"), "{outcome:?}");
    // A span within another one is a part of it.
    let inner: Vec<_> = profile.0.iter().filter(|stack| stack.frames[1] == "answer").collect();
    let weight = inner.iter().map(|stack| stack.weight).sum::<u64>();
    assert!(weight.abs_diff(durations("answer")) <= stacks, "{lines}: {outcome:?}");
    assert!(inner.iter().all(|stack| !stack.contains(&["prepare_request"])), "{outcome:?}");
}

#[test]
fn says_that_no_span_is_of_a_recorded_thread() {
    if !can_record_switches(&["--wakers"]) {
        return;
    }
    let folder = directory();
    let spans = folder.path().join("spans");
    let option = format!("spans:{}", spans.display());
    let missing = record(["--critical-path", &option, "--", "true"]);
    assert_eq!(missing.code(), 125, "{missing:?}");
    assert!(missing.stderr.contains("spans: No such file"), "{missing:?}");
    std::fs::write(&spans, "{\"name\":\"x\",\"tid\":4194304,\"start\":1,\"end\":2}\n").unwrap();
    let other = record(["--critical-path", &option, "--", "true"]);
    assert_eq!((other.code(), &other.stdout[..]), (125, &b""[..]), "{other:?}");
    assert!(
        other.stderr.contains("no span lies within the recording of its thread: 1 span of other threads"),
        "{other:?}"
    );
}
