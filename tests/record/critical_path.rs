//! `--critical-path`: whose time is recorded. How long each part took is in the target `timing`.

use crate::support::process::Background;
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record_switches, record};
use crate::support::{Outcome, command, directory, eventually, run};

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

/// Records a program whose main thread waits for ever for a worker.
fn record_hanging(program: &str, thread: &str) -> Outcome {
    record(["--critical-path", thread, "-d", "0.5", "--", program, "hang"])
}

#[test]
fn finds_threads_by_each_name_that_they_had() {
    let Some(program) = program("paths").filter(|_| can_record_switches(&["--wakers"])) else { return };
    for thread in ["a worker", "a_worker", "early name", "early_name"] {
        let outcome = record_hanging(&program, thread);
        let profile = Profile::from_stdout(&outcome);
        // Its name at that time.
        profile.assert_contains(&["a_worker", "endless_work"]);
        assert_eq!(profile.total(), profile.thread_weight("a_worker"), "{outcome:?}");
    }
    let outcome = record_hanging(&program, "paths");
    Profile::from_stdout(&outcome).assert_contains(&["paths", "wait_for_ever"]);
}

#[test]
fn says_that_the_thread_still_waits_at_the_end() {
    let Some(program) = program("paths").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let outcome = record_hanging(&program, "main");
    Profile::from_stdout(&outcome).assert_contains(&["paths", "wait_for_ever", "[off-cpu]"]);
    assert!(outcome.stderr.contains("--critical-path main: it waits at the end, for 0."), "{outcome:?}");
    assert!(outcome.stderr.contains("record until then, or name another thread: a worker"), "{outcome:?}");
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
    let process = Background::start(command(&program).arg("hang"));
    let pid = process.pid();
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(eventually(|| threads().count() == 2));
    let worker = threads().find(|tid| *tid != *pid).unwrap().into_string().unwrap();
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
    profile.assert_contains(&["request", "server", "serve_requests"]);
    profile.assert_lacks(&["do_other_work"]);
    let lines = std::fs::read_to_string(&spans).unwrap();
    let numbers = |line: &str| -> Vec<u64> {
        line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
    };
    let durations = lines.lines().map(numbers).map(|numbers| numbers[2] - numbers[1]).sum::<u64>() / 1000;
    // Each stack is rounded to microseconds.
    let stacks = outcome.text().lines().count() as u64;
    assert!(profile.total().abs_diff(durations) <= stacks, "{durations}: {outcome:?}");
    assert_eq!(profile.total(), profile.thread_weight("request"), "{outcome:?}");
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
