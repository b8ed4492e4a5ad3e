//! The asyncio tasks that threads of Python run.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::support::process::Background;
use crate::support::programs::{program, sources};
use crate::support::recording::{Profile, can_record, record, record_process};
use crate::support::script_functions::functions;
use crate::support::{Outcome, command, pythons, skip, skip_optional};

/// Functions of `tasks.py`, and the task that each runs in.
const TASKS: [(&str, &str); 8] = [
    ("burn_main", "Task-1"),
    ("burn_numbered", "Task-2"),
    ("burn_named", "request 7"),
    ("burn_latin", "größe"),
    ("burn_greek", "Ωmega"),
    ("burn_long", "xxxxxxxx..."),
    ("burn_callback", "[no task]"),
    ("burn_thread", "[no task]"),
];

/// True if the recording read tasks. Otherwise reports the test as skipped.
#[track_caller]
fn has_tasks(outcome: &Outcome) -> bool {
    let is_refused = outcome.code() == 125 && outcome.stderr.contains("--split-by task: ");
    if is_refused {
        skip(&outcome.stderr);
    }
    !is_refused
}

/// Asserts that each function has the task that it runs in, and no other.
#[track_caller]
fn assert_tasks(profile: &Profile, python: &Path) {
    for (burn, task) in TASKS {
        let mut met = 0;
        for stack in profile.0.iter().filter(|stack| functions(stack).contains(&burn)) {
            let label = &stack.frames[0];
            // The recorder may not have heard of a new process yet.
            let is_right = match task.strip_suffix("...") {
                Some(start) => label.starts_with(start) && label.ends_with("x...") && label.len() < 200,
                None => label == task,
            };
            assert!(is_right || label == "[unknown]", "{}: {stack:?}", python.display());
            met += if is_right { stack.weight } else { 0 };
        }
        assert!(met > 0, "{}: {burn} was not met: {profile:?}", python.display());
    }
}

#[test]
fn shows_the_task_that_a_thread_runs() {
    let known = pythons::all().into_iter().filter(|python| pythons::is_at_least(python, (3, 14)));
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        return skip_optional("no Python 3.14");
    }
    if !can_record() {
        return;
    }
    let program = sources().join("tasks.py").display().to_string();
    for python in known {
        let path = python.display().to_string();
        let outcome = record(["-F", "997", "--split-by", "task", "--", &path, &program, "1.5"]);
        if !has_tasks(&outcome) {
            return;
        }
        assert_tasks(&Profile::from_stdout(&outcome.ok()), &python);

        // The recorder knows the interpreter, and not yet the module that makes tasks.
        let outcome = record(["-F", "997", "--split-by", "task", "--", &path, &program, "1.5", "late"]);
        let profile = Profile::from_stdout(&outcome.ok());
        let in_task = profile.0.iter().filter(|stack| functions(stack).contains(&"burn_main"));
        let labels: BTreeSet<&str> = in_task.map(|stack| stack.frames[0].as_str()).collect();
        assert!(labels.contains("[unknown]") && !labels.contains("[no task]"), "{}: {labels:?}", python.display());

        let process = Background::start(command(&python).args([&program, "100"]));
        process.wait_for_cpu_time(Duration::from_millis(500));
        let options = ["-F", "997", "--split-by", "task"];
        let profile = Profile::from_stdout(&record_process(&process, &options, Duration::from_secs(1)).ok());
        assert_tasks(&profile, &python);
    }
}

#[test]
fn says_which_python_does_not_tell_its_tasks() {
    let old = pythons::supported().into_iter().find(|python| !pythons::is_at_least(python, (3, 14)));
    let (true, Some(old)) = (can_record(), old) else { return };
    let old = old.display().to_string();
    let outcome = record(["-F", "997", "--split-by", "task", "--", &old, "-c", "sum(range(10**7))"]);
    if !has_tasks(&outcome) {
        return;
    }
    let said = "does not tell which task a thread runs; Python 3.14 and later do";
    assert_eq!(outcome.stderr.matches(said).count(), 1, "{}", outcome.stderr);
    let profile = Profile::from_stdout(&outcome.ok());
    let python = profile.0.iter().filter(|stack| stack.frames.iter().any(|frame| frame == "<module> (<string>)"));
    let mut labels: Vec<&str> = python.map(|stack| stack.frames[0].as_str()).collect();
    labels.dedup();
    assert_eq!(labels, ["[unknown]"]);
}

#[test]
fn other_programs_run_no_task() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let outcome = record(["-F", "997", "--split-by", "task", "--", &busy, "0.2"]);
    if has_tasks(&outcome) {
        let profile = Profile::from_stdout(&outcome.ok());
        assert!(profile.0.iter().any(|stack| stack.frames[0] == "[no task]"), "{profile:?}");
        assert!(profile.0.iter().all(|stack| stack.frames[0].starts_with('[')), "{profile:?}");
    }
}
