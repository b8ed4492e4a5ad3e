//! `--critical-path`: whose time is recorded. How long each part took is in the target `timing`.

use crate::support::programs::program;
use crate::support::recording::{Profile, can_record_switches, record};

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
        let message = format!("--critical-path {thread}: no recorded thread has this name or ID");
        assert!(outcome.stderr.contains(&message), "{outcome:?}");
    }
}

#[test]
fn the_main_thread_must_be_that_of_one_process() {
    for target in [&["-a"][..], &["-p", "1,2"]] {
        let arguments = [&["--critical-path", "main", "-d", "1"], target].concat();
        let outcome = crate::support::run("fg-record", arguments, b"");
        assert_eq!(outcome.code(), 2, "{outcome:?}");
        assert!(outcome.stderr.contains("--critical-path main needs a command or one process"), "{outcome:?}");
    }
}
