//! Go programs: what the function table that the runtime needs tells of those without symbols, and where they call the kernel.

use crate::support::programs::go_program;
use crate::support::recording::{Profile, Stack, can_record, record};
use crate::support::{directory, require};

/// Asserts that a stack contains three calls, the last of which begins with the given text, and that all code is named.
#[track_caller]
fn assert_named(profile: &Profile, [main, work, sort]: [&str; 3]) {
    let is_named = |frames: &[String]| {
        frames.windows(3).any(|frames| frames[0] == main && frames[1] == work && frames[2].starts_with(sort))
    };
    assert!(profile.0.iter().any(|stack| is_named(&stack.frames)), "{profile:?}");
    profile.assert_lacks(&["[goroutines]"]);
}

#[test]
fn names_functions_lines_and_inlined_calls_of_stripped_programs() {
    if !can_record() || !require("go") {
        return;
    }
    let folder = directory();
    let program = go_program(folder.path(), "goroutines", &["-ldflags=-s -w"]);
    let profile = Profile::from_stdout(&record(["-F", "997", "--", &program]).ok());
    assert_named(&profile, ["main.main", "main.work", "sort.Strings"]);
    let profile = Profile::from_stdout(&record(["--lines", "-F", "997", "--", &program]).ok());
    assert_named(&profile, ["main.main:goroutines.go:19", "main.work:goroutines.go:12", "sort.Strings:sort.go:"]);
}

fn is_function(frame: &str, function: &str) -> bool {
    frame.trim_end_matches(".abi0") == function
}

fn calls<'a>(profile: &'a [Stack], function: &str) -> impl Iterator<Item = &'a Stack> {
    profile.iter().filter(move |stack| stack.frames.iter().any(|frame| is_function(frame, function)))
}

/// True if the stack is of the start of a command.
fn runs_command(stack: &Stack) -> bool {
    stack.contains(&["main.main"]) && stack.frames.iter().any(|frame| frame.starts_with("syscall.rawVforkSyscall"))
}

/// `runtime.clone` returns in the thread that called and goes on in the new one. `syscall.rawVforkSyscall` keeps its return address
/// in a register while both processes run on the same stack.
#[test]
fn threads_and_commands_are_started_by_their_callers() {
    if !can_record() || !require("go") {
        return;
    }
    let folder = directory();
    for options in [&[][..], &["-ldflags=-s -w"]] {
        let program = go_program(folder.path(), "commands", options);
        for graph in ["dwarf", "dwarf,65528"] {
            // A recording has few samples of these functions, and may have none.
            let mut profile = Vec::new();
            for _ in 0..10 {
                profile.extend(
                    Profile::from_stdout(&record(["--call-graph", graph, "-F", "1999", "--", &program]).ok()).0,
                );
                if ["runtime.clone", "syscall.rawVforkSyscall"]
                    .iter()
                    .all(|function| calls(&profile, function).count() > 0)
                    && profile.iter().any(runs_command)
                {
                    break;
                }
            }
            assert!(profile.iter().any(runs_command), "{graph} {options:?}");
            for function in ["runtime.clone", "syscall.rawVforkSyscall"] {
                assert!(calls(&profile, function).count() > 0, "{function} {graph} {options:?}");
                // The caller of `newosproc` may be on another stack, which is not copied.
                let is_cut = |frames: &[String]| {
                    frames[1] == "[truncated]" && frames.get(2).is_some_and(|frame| is_function(frame, function))
                };
                calls(&profile, function)
                    .for_each(|stack| assert!(!is_cut(&stack.frames), "{graph} {options:?} {stack:?}"));
            }
        }
    }
}
