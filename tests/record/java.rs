//! Java methods, as they run: without options, agents or a restart.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use crate::support::java::{Transitions, installed_javas};
use crate::support::process::Background;
use crate::support::programs::sources;
use crate::support::recording::{Profile, Stack, can_record, record, record_process};
use crate::support::script_functions::walked_scripts;
use crate::support::{command, directory, require, skip, skip_optional};

/// The methods of `Functions.java` that compute, each with its callers, innermost first.
const CALLERS: &[(&str, &[&str])] = &[
    ("burnDeep", &["deep", "deep", "deep"]),
    ("burnOdd", &["odd", "even", "odd", "even"]),
    ("burnSquare", &["draw", "shapes", "main"]),
    ("burnCircle", &["draw", "shapes", "main"]),
    ("burnHandler", &["handler", "main"]),
    ("burnCompare", &["compare"]),
    ("burnThread", &["locked"]),
    ("compareTexts", &["main"]),
    ("burnInlined", &["inner", "middle", "outer", "main"]),
];

/// True if this machine has a JDK whose methods are shown. Otherwise reports the test as skipped.
#[track_caller]
pub fn has_java() -> bool {
    let has_java = command("java").arg("-version").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !has_java {
        skip_optional("no Java");
    }
    has_java
}

/// Returns the methods of a stack, innermost first, without their classes and lines.
fn methods(stack: &Stack) -> Vec<&str> {
    let names = stack.frames.iter().rev().filter(|frame| !frame.contains("::"));
    names.map(|frame| frame.split(':').next().unwrap_or(frame).rsplit('.').next().unwrap_or(frame)).collect()
}

/// Asserts that every stack of a method that computes has its callers, and that each of them was met.
#[track_caller]
fn assert_callers(profile: &Profile) {
    for (burn, callers) in CALLERS {
        let mut met = 0;
        for stack in &profile.0 {
            let methods = methods(stack);
            let Some(index) = methods.iter().position(|name| name == burn) else { continue };
            assert!(methods[index + 1..].starts_with(callers), "{methods:?}");
            met += stack.weight;
        }
        assert!(met > 0, "{burn} was not met: {profile:?}");
    }
}

#[test]
fn shows_the_methods_of_a_process_that_runs_already() {
    if !can_record() || !has_java() {
        return;
    }
    let program = sources().join("Functions.java").display().to_string();
    // Without the first two, the compiler does not say where in the innermost method it inlined another one. Even with them, it
    // sometimes says of a whole sort that it is the method that sorts. Java Flight Recorder then shows the same.
    let options = [
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:+DebugNonSafepoints",
        "-XX:CompileCommand=dontinline,Functions.burnCompare",
    ];
    let process = Background::start(command("java").args(options).args([&program, "100"]));
    process.wait_for_cpu_time(Duration::from_secs(4));
    let outcome = record_process(&process, &["-v", "-F", "997"], Duration::from_secs(2)).ok();
    if !walked_scripts(&outcome) {
        return;
    }
    let profile = Profile::from_stdout(&outcome);
    assert_callers(&profile);
    let weigh = |is_counted: &dyn Fn(&Stack) -> bool| -> u64 {
        profile.0.iter().filter(|stack| is_counted(stack)).map(|stack| stack.weight).sum()
    };
    let of_program = |stack: &Stack| stack.frames.iter().any(|frame| frame.starts_with("Functions."));
    let cut = |stack: &Stack| stack.frames.iter().any(|frame| frame == "[truncated]" || frame == "[java]");
    let is_complete =
        |stack: &Stack| of_program(stack) && !cut(stack) && stack.frames.iter().any(|f| f == "start_thread");
    let (complete, all) = (weigh(&is_complete), weigh(&|stack| of_program(stack) || cut(stack)));
    assert!(complete * 100 >= all * 99, "{complete} of {all}: {profile:?}");
}

#[test]
fn shows_the_lines_of_calls_in_a_command() {
    if !can_record() || !has_java() {
        return;
    }
    let program = sources().join("Functions.java").display().to_string();
    let outcome = record(["-v", "--lines", "-F", "997", "--", "java", &program, "2"]).ok();
    if !walked_scripts(&outcome) {
        return;
    }
    let profile = Profile::from_stdout(&outcome);
    let source = std::fs::read_to_string(sources().join("Functions.java")).unwrap();
    let line_of = |text: &str| 1 + source.lines().position(|line| line.contains(text)).unwrap();
    let middle = line_of("static void middle");
    profile.assert_contains(&[&format!("Functions.middle:{middle}"), &format!("Functions.inner:{}", middle - 1)]);
    let handler = format!("Functions.handler:{}", line_of("burnHandler(10_000)"));
    for stack in profile.0.iter().filter(|stack| stack.frames.iter().any(|frame| frame.contains(".burnHandler"))) {
        assert!(stack.frames.contains(&handler), "{stack:?}");
    }
}

/// The groups of functions of `Recursion.java` that call each other in turn: their class, and their number.
const TURNS: [(&str, usize); 3] = [("Recursion$Static.f", 7), ("Recursion$S", 3), ("Recursion$Throw.f", 3)];
const DEPTH: usize = 81;

/// Returns true if the functions that call each other in turn are complete from the first one on. `None` if there are none.
fn has_true_turns(stack: &Stack) -> Option<bool> {
    TURNS.iter().find_map(|(class, count)| {
        let number_of = |frame: &String| frame.strip_prefix(class)?.get(..1)?.parse::<usize>().ok();
        let numbers: Vec<usize> = stack.frames.iter().filter_map(number_of).collect();
        let is_innermost = stack.frames.iter().any(|frame| frame.starts_with("Recursion.work"));
        let (first, last) = if is_innermost { (DEPTH, DEPTH + 1) } else { (1, DEPTH + 1) };
        let is_true = numbers.iter().enumerate().all(|(index, number)| *number == index % count)
            && (first..=last).contains(&numbers.len());
        (!numbers.is_empty()).then_some(is_true)
    })
}

/// Interrupts methods everywhere: where they are called and left, stopped, compiled and thrown away.
#[test]
fn every_stack_of_a_recursion_is_true_or_marked() {
    if !can_record() || !has_java() {
        return;
    }
    let program = sources().join("Recursion.java").display().to_string();
    for mode in ["-Xint", "-XX:TieredStopAtLevel=1", "-XX:+TieredCompilation", "-XX:-TieredCompilation"] {
        // What was inlined is as exact as the compiler's records.
        let outcome = record(["-v", "-F", "4999", "--", "java", mode, "-XX:-Inline", &program, "2"]).ok();
        if !walked_scripts(&outcome) {
            return;
        }
        let is_marked = |stack: &&Stack| stack.frames.iter().any(|frame| frame == "[truncated]" || frame == "[java]");
        let stacks = Profile::from_stdout(&outcome).0;
        let met: Vec<&Stack> =
            stacks.iter().filter(|stack| !is_marked(stack) && has_true_turns(stack).is_some()).collect();
        let wrong: Vec<&&Stack> = met.iter().filter(|stack| has_true_turns(stack) == Some(false)).collect();
        assert!(!met.is_empty(), "{mode}: {outcome:?}");
        assert!(wrong.is_empty(), "{mode}: {} of {}: {wrong:?}", wrong.len(), met.len());
    }
}

/// The methods of `Transitions.java`, each with the only one that calls it.
const CALLS: &[(&str, &str)] = &[
    ("java.lang.Object.clone", "Transitions.runClone"),
    ("java.lang.String.intern", "Transitions.runIntern"),
    ("java.lang.Object.getClass", "Transitions.runClass"),
    ("Transitions.none", "Transitions$Compiled.callNone"),
    ("Transitions.one", "Transitions$Compiled.callOne"),
    ("Transitions.two", "Transitions$Compiled.callTwo"),
    ("Transitions.many", "Transitions$Compiled.callMany"),
    ("Transitions.itself", "Transitions$Compiled.callItself"),
    ("Transitions$Compiled.callNone", "Transitions.runNone"),
    ("Transitions$Compiled.callOne", "Transitions.runOne"),
    ("Transitions$Compiled.callTwo", "Transitions.runTwo"),
    ("Transitions$Compiled.callMany", "Transitions.runMany"),
    ("Transitions$Compiled.callItself", "Transitions.runItself"),
    ("Transitions.run", "Transitions.main"),
];

/// Returns true if each method behind `Transitions.main` was called by the one that calls it.
fn has_true_calls(stack: &Stack) -> bool {
    let Some(main) = stack.frames.iter().position(|frame| frame == "Transitions.main") else { return true };
    stack.frames[main..].windows(2).all(|pair| {
        let caller = CALLS.iter().find(|(callee, _)| pair[1].starts_with(callee)).map(|(_, caller)| *caller);
        caller.is_none_or(|caller| pair[0] == caller)
    })
}

/// Interrupts what stands between interpreted and compiled methods and those that are written in C++, of each JDK.
#[test]
fn the_callers_of_methods_of_other_kinds_are_true_or_cut() {
    if !can_record() || !has_java() {
        return;
    }
    let transitions = Transitions::compile();
    for java in installed_javas() {
        let outcome = transitions.record(&java).ok();
        if !walked_scripts(&outcome) {
            return;
        }
        let profile = Profile::from_stdout(&outcome);
        let wrong: Vec<&Stack> = profile.0.iter().filter(|stack| !has_true_calls(stack)).collect();
        assert!(wrong.is_empty(), "{java}: {} of {}: {wrong:?}", wrong.len(), profile.0.len());
        assert!(profile.0.iter().any(|stack| stack.frames.iter().any(|frame| frame == "Transitions.main")), "{java}");
    }
}

/// True if Java can be asked for the names of its methods. Otherwise reports the test as skipped.
#[track_caller]
fn answers_requests() -> bool {
    let check = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-version"];
    let is_known = command("java").args(check).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !is_known {
        skip_optional("no JDK 17 or later");
    }
    is_known
}

#[test]
fn asks_for_the_names_of_methods_where_the_kernel_takes_stacks() {
    if !can_record() || !has_java() || !answers_requests() {
        return;
    }
    let folder = directory();
    let program = sources().join("Functions.java").display().to_string();
    let start = |options: &[&str]| {
        let mut java = command("java");
        java.current_dir(folder.path()).args(["-XX:+PreserveFramePointer"]).args(options).args([&program, "100"]);
        let process = Background::start(&mut java);
        process.wait_for_cpu_time(Duration::from_secs(4));
        process
    };
    let map = |process: &Background| PathBuf::from(format!("/tmp/perf-{}.map", process.pid()));
    let record = |process: &Background, options: &[&str]| {
        let options = [&["--call-graph", "fp", "-F", "997"], options].concat();
        record_process(process, &options, Duration::from_secs(1)).ok()
    };

    let process = start(&[]);
    let silent = record(&process, &["--no-attach"]);
    assert!(!map(&process).exists() && !silent.stderr.contains("java process"), "{silent:?}");
    let asked = record(&process, &[]);
    let note = format!("asked java process {} for the names of its methods; --no-attach", process.pid());
    assert_eq!(asked.stderr.matches(&note).count(), 1, "{asked:?}");
    // Methods that were inlined have no names here.
    let is_named = |stack: &Stack| stack.frames.iter().any(|frame| frame.contains("Functions."));
    assert!(!Profile::from_stdout(&silent).0.iter().any(is_named), "{silent:?}");
    assert!(Profile::from_stdout(&asked).0.iter().any(is_named), "{asked:?}");
    std::fs::remove_file(map(&process)).unwrap();

    let process = start(&["-XX:+DisableAttachMechanism"]);
    let refused = record(&process, &[]);
    let note = format!("java process {} for the names of its methods: it runs with -XX:+DisableAttach", process.pid());
    assert_eq!(refused.stderr.matches(&note).count(), 1, "{refused:?}");
    // Nothing stays in the directory of the processes.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn believes_the_names_that_the_user_of_a_process_has_written() {
    if !can_record() || !has_java() || !answers_requests() || !require("setpriv") {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skip("not root");
    }
    let folder = directory();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("Functions.java");
    std::fs::copy(sources().join("Functions.java"), &program).unwrap();
    let mut java = command("setpriv");
    java.args(["--reuid=65534", "--regid=65534", "--clear-groups", "java", "-XX:+PreserveFramePointer"]);
    let process = Background::start(java.arg(&program).arg("100").current_dir(folder.path()));
    process.wait_for_cpu_time(Duration::from_secs(3));
    let outcome = record_process(&process, &["--call-graph", "fp", "-F", "997"], Duration::from_secs(1)).ok();
    let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", process.pid()));
    assert!(!outcome.stderr.contains(".map is ignored"), "{outcome:?}");
    let is_named = |stack: &Stack| stack.frames.iter().any(|frame| frame.contains("Functions."));
    assert!(Profile::from_stdout(&outcome).0.iter().any(is_named), "{outcome:?}");
}
