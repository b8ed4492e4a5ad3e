//! Threads that sleep since before the recording, in functions of scripts.

use std::path::Path;

use crate::php::has_php;
use crate::ruby::has_ruby;
use crate::support::process::Background;
use crate::support::programs::sources;
use crate::support::recording::{Profile, can_record_switches, finish, recorder};
use crate::support::script_functions::functions;
use crate::support::{command, eventually, pythons};

/// The system calls in which the programs sleep: `poll`, `select`, `nanosleep`, `futex`, `clock_nanosleep`, `pselect6`, `ppoll`.
const SLEEPS: [&str; 7] = ["7", "23", "35", "202", "230", "270", "271"];

/// Starts a script of `tests/programs`, and waits until it has so many threads, which sleep for good.
fn start_sleeping(interpreter: &Path, script: &str, threads: usize) -> Background {
    let process = Background::start(command(interpreter).arg(sources().join(script)));
    let tasks = format!("/proc/{}/task", process.pid());
    // What the threads do is the same twice.
    let states = || -> Vec<(String, String)> {
        let tasks = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
        let states = tasks.map(|task| {
            let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let status = read("status");
            (read("syscall"), status.lines().filter(|line| line.contains("ctxt_switches")).collect())
        });
        states.collect()
    };
    let sleep = |states: &[(String, String)]| {
        let number = |call: &str| call.split_whitespace().next().unwrap_or_default().to_owned();
        states.len() == threads && states.iter().all(|(call, _)| SLEEPS.contains(&&*number(call)))
    };
    let mut before = Vec::new();
    assert!(eventually(|| {
        let now = states();
        let is_same = sleep(&now) && now == before;
        before = now;
        is_same
    }));
    process
}

/// Asserts that a recording of a process has a stack with each of these chains of functions, innermost first, and no other.
fn assert_functions(process: &Background, options: &[&str], expected: &[&[&str]]) {
    let outcome = finish(recorder(["-d", "200ms", "-p", &process.pid()]).args(options).spawn().unwrap()).ok();
    let profile = Profile::from_stdout(&outcome);
    assert_eq!(profile.0.len(), expected.len(), "{outcome:?}");
    for chain in expected {
        let has_chain = |functions: &[&str]| functions.windows(chain.len()).any(|window| window == *chain);
        assert!(profile.0.iter().any(|stack| has_chain(&functions(stack))), "{chain:?}: {outcome:?}");
    }
}

/// Asserts that the threads that sleep in a script have these functions, innermost first, unless they are not wanted.
fn assert_functions_if_wanted(interpreter: &str, script: &str, expected: &[&[&str]]) {
    let process = start_sleeping(Path::new(interpreter), script, expected.len());
    assert_functions(&process, &["--off-cpu"], expected);
    assert_functions(&process, &["--wall", "--wakers"], expected);
    let mut natives = recorder(["--off-cpu", "-d", "100ms", "--native-only", "-p", &process.pid()]);
    let profile = Profile::from_stdout(&finish(natives.spawn().unwrap()).ok());
    assert!(profile.0.iter().all(|stack| functions(stack).is_empty()), "{profile:?}");
}

#[test]
fn python_functions_in_which_threads_sleep() {
    if !can_record_switches(&["--wakers"]) {
        return;
    }
    for python in pythons::supported() {
        let main: &[&str] = &["wait_innermost", "middle", "middle", "middle", "by_key", "outer", "<module>"];
        let thread = &["acquire", "generator", "in_thread", "run", "_bootstrap_inner", "_bootstrap"];
        let process = start_sleeping(&python, "sleeping.py", 2);
        assert_functions(&process, &["--off-cpu"], &[main, thread]);
    }
}

/// The thread's script frames are those of one interpreter, its native frames those of both.
#[test]
fn python_functions_of_another_interpreter() {
    if !can_record_switches(&["--wakers"]) {
        return;
    }
    for python in pythons::supported().into_iter().filter(|python| pythons::is_at_least(python, (3, 12))) {
        let process = start_sleeping(&python, "sleeping_interpreter.py", 1);
        let outcome = finish(recorder(["--off-cpu", "-d", "200ms", "-p", &process.pid()]).spawn().unwrap()).ok();
        let profile = Profile::from_stdout(&outcome);
        let [stack] = &profile.0[..] else { panic!("{outcome:?}") };
        assert_eq!(functions(stack), ["wait_innermost", "by_key", "<module>"], "{outcome:?}");
        assert_eq!(stack.frames[1], "[truncated]", "{outcome:?}");
    }
}

#[test]
fn ruby_methods_in_which_threads_sleep() {
    if can_record_switches(&["--wakers"]) && has_ruby() {
        let main: &[&str] = &["wait_innermost", "middle", "middle", "middle", "block in outer", "outer", "<main>"];
        assert_functions_if_wanted("ruby", "sleeping.rb", &[main, &["acquire", "block in <main>"]]);
    }
}

#[test]
fn php_functions_in_which_a_process_sleeps() {
    if can_record_switches(&["--wakers"]) && has_php() {
        let innermost = ["sleep", "wait_innermost", "middle", "middle", "middle"];
        let outermost = ["delegating", "delegating", "delegating", "{closure}", "array_map", "outer", "{main}"];
        assert_functions_if_wanted("php", "sleeping.php", &[&[&innermost[..], &outermost].concat()]);
    }
}
