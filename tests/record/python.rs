//! Python functions, as they run: without options, agents or a restart.

use std::time::Duration;

use crate::support::process::Background;
use crate::support::recording::{Profile, Stack, can_record, record, record_process};
use crate::support::script_functions::{Callers, assert_callers, functions, walked_scripts};
use crate::support::{command, directory, pythons};

/// The functions of `functions.py` that compute, each with its callers, innermost first.
pub const CALLERS: Callers<'_> = &[
    ("burn_deep", &["deep", "deep", "deep"]),
    ("burn_odd", &["odd", "even", "odd", "even"]),
    ("burn_generator", &["generator"]),
    ("burn_coroutine", &["inner", "outer", "drive", "main", "<module>"]),
    ("burn_key", &["key", "sort"]),
    ("burn_method", &["method", "method", "call_method", "main", "<module>"]),
    ("burn_thread", &["<lambda>", "run", "_bootstrap_inner", "_bootstrap"]),
    ("burn_handler", &["handler", "main", "<module>"]),
];

#[test]
fn shows_the_functions_of_every_python_that_is_installed() {
    if !can_record() {
        return;
    }
    let program = pythons::functions_program();
    for python in pythons::supported() {
        let (python_name, program) = (python.display().to_string(), program.display().to_string());
        let outcome = record(["-v", "-F", "997", "--", &python_name, &program, "0.5"]).ok();
        if !walked_scripts(&outcome) {
            return;
        }
        assert_callers(&Profile::from_stdout(&outcome), CALLERS, &python_name);
    }
}

#[test]
fn shows_the_functions_of_a_process_that_runs_already() {
    if !can_record() {
        return;
    }
    for python in pythons::supported().iter().take(1) {
        let process = Background::start(command(python).arg(pythons::functions_program()).arg("100"));
        process.wait_for_cpu_time(Duration::from_millis(200));
        let outcome = record_process(&process, &["-v", "-F", "997"], Duration::from_secs(1)).ok();
        if walked_scripts(&outcome) {
            assert_callers(&Profile::from_stdout(&outcome), CALLERS, &python.display().to_string());
        }
    }
}

#[test]
fn shows_the_line_of_each_call() {
    if !can_record() {
        return;
    }
    let folder = directory();
    let path = folder.path().join("lines.py");
    let source = "def work(n):
    total = 0
    for i in range(n):
        total += i
    return total

def call():
    x = 1
    return [
        work(100),
        work(
            1000000 + x
        ),
    ]

for _ in range(20):
    call()
";
    std::fs::write(&path, source).unwrap();
    for python in pythons::supported() {
        let (python, shown) = (python.display().to_string(), path.display());
        let outcome = record(["-v", "--lines", "-F", "997", "--", &python, &shown.to_string()]).ok();
        if !walked_scripts(&outcome) {
            return;
        }
        let profile = Profile::from_stdout(&outcome);
        let module = format!("<module> ({shown}:17)");
        // Before 3.8 the line of a call was that of its last argument.
        let calls = [format!("call ({shown}:10)"), format!("call ({shown}:11)"), format!("call ({shown}:12)")];
        for stack in profile.0.iter().filter(|stack| stack.frames.iter().any(|frame| frame.starts_with("work ("))) {
            let frame = stack.frames.iter().position(|frame| frame.starts_with("work (")).unwrap();
            let line: u32 = stack.frames[frame].rsplit(':').next().unwrap().trim_end_matches(')').parse().unwrap();
            assert!((1..=5).contains(&line), "{python}: {stack:?}");
            assert!(calls.contains(&stack.frames[frame - 1]), "{python}: {stack:?}");
            assert_eq!(stack.frames[frame - 2], module, "{python}: {stack:?}");
        }
        profile.assert_contains(&[&module, &calls[1], &format!("work ({shown}:4)")]);
    }
}

#[test]
fn options_choose_between_script_and_native_frames() {
    let (true, Some(python)) = (can_record(), pythons::supported().pop()) else { return };
    let (python, program) = (python.display().to_string(), pythons::functions_program().display().to_string());
    let shown = |option| {
        let outcome = record(["-v", option, "-F", "997", "--", &python, &program, "0.5"]).ok();
        walked_scripts(&outcome).then(|| {
            let profile = Profile::from_stdout(&outcome);
            let has = |wanted: &[&str]| {
                let has = |stack: &Stack, wanted: &str| stack.frames.iter().any(|frame| frame.starts_with(wanted));
                profile.0.iter().any(|stack| wanted.iter().all(|wanted| has(stack, wanted)))
            };
            (has(&["burn_deep ("]), has(&["burn_deep (", "Py_BytesMain"]), has(&["Py_BytesMain"]))
        })
    };
    let Some(default) = shown("-q") else { return };
    assert_eq!((default.0, default.1), (true, false));
    assert_eq!(shown("--interpreter-frames").unwrap(), (true, true, true));
    assert_eq!(shown("--native-only").unwrap(), (false, false, true));
}

#[test]
fn functions_that_come_and_go_have_their_own_names() {
    let (true, Some(python)) = (can_record(), pythons::supported().pop()) else { return };
    let folder = directory();
    let path = folder.path().join("churn.py");
    // The functions of each round are made where those of the round before were.
    let source = "import os, time
def round(n):
    space = {}
    exec(f'''
def inner_{n}(k):
    s = 0
    for i in range(k):
        s += i
    return s
class Outer_{n}:
    def call(self, k):
        return inner_{n}(k)
''', space)
    space[f'Outer_{n}']().call(20000)
def run(first, end):
    n = first
    while time.process_time() < end:
        round(n)
        n += 1
pids = [os.fork() for _ in range(2)]
run(sum(1 << 20 + i for i, pid in enumerate(pids) if pid), 0.7)
";
    std::fs::write(&path, source).unwrap();
    let outcome = record(["-v", "-F", "997", "--", &python.display().to_string(), &path.display().to_string()]).ok();
    if !walked_scripts(&outcome) {
        return;
    }
    let profile = Profile::from_stdout(&outcome);
    let number = |name: &str| name.split_once('_').map(|(_, rest)| rest.split(['.', ' ']).next().unwrap().to_owned());
    let mut met = 0;
    for stack in &profile.0 {
        let find =
            |prefix: &str| stack.frames.iter().find(|frame| frame.starts_with(prefix)).map(|frame| number(frame));
        if let (Some(outer), Some(inner)) = (find("Outer_"), find("inner_")) {
            assert_eq!(outer, inner, "{stack:?}");
            met += stack.weight;
        }
    }
    assert!(met > 100, "{profile:?}");
}

#[test]
fn says_which_python_is_not_known() {
    let old = pythons::all().into_iter().find(|python| !pythons::is_at_least(python, (3, 8)));
    let (true, Some(old)) = (can_record(), old) else { return };
    let outcome = record(["-v", "-F", "997", "--", &old.display().to_string(), "-c", "sum(range(10**7))"]).ok();
    if walked_scripts(&outcome) {
        assert!(outcome.stderr.contains("functions are not shown for Python before 3.8"), "{}", outcome.stderr);
    }
}

/// A thread that runs another interpreter has script frames of that one only, but the native frames of both.
#[test]
fn stacks_of_another_interpreter_end_where_it_began() {
    if !can_record() {
        return;
    }
    let folder = directory();
    let path = folder.path().join("interpreters.py");
    let source = "import sys
if sys.version_info >= (3, 13):
    import _interpreters
    run = _interpreters.exec
else:
    import _xxsubinterpreters as _interpreters
    run = _interpreters.run_string

SOURCE = '''
def burn_inside():
    return sum(range(3000))

def call(_):
    burn_inside()
    return 0

for _ in range(2000):
    burn_inside()
    sorted([3, 1, 2], key=call)
'''

def outside(interpreter):
    run(interpreter, SOURCE)

outside(_interpreters.create())
";
    std::fs::write(&path, source).unwrap();
    for python in pythons::supported().into_iter().filter(|python| pythons::is_at_least(python, (3, 12))) {
        let (python, path) = (python.display().to_string(), path.display().to_string());
        let outcome = record(["-v", "-F", "1999", "--", &python, &path]).ok();
        if !walked_scripts(&outcome) {
            return;
        }
        let expected = [&["<module>"][..], &["call", "<module>"]];
        let mut met = [0; 2];
        for stack in Profile::from_stdout(&outcome).0 {
            let functions = functions(&stack);
            let Some(index) = functions.iter().position(|name| *name == "burn_inside") else { continue };
            let kind = expected.iter().position(|expected| functions[index + 1..] == **expected);
            let is_cut = stack.frames[1] == "[truncated]";
            met[kind.filter(|_| is_cut).unwrap_or_else(|| panic!("{python}: {stack:?}"))] += stack.weight;
        }
        assert!(met.iter().all(|weight| *weight > 0), "{python}: {met:?}: {outcome:?}");
    }
}
