//! Go programs: what the function table that the runtime needs tells of those without symbols, and where they call the kernel.

use crate::support::programs::go_program;
use crate::support::recording::{Profile, can_record, record};
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
            let profile = Profile::from_stdout(&record(["--call-graph", graph, "-F", "1999", "--", &program]).ok()).0;
            for function in ["runtime.clone", "syscall.rawVforkSyscall"] {
                let is_function = |frame: &String| frame.trim_end_matches(".abi0") == function;
                let mut stacks = profile.iter().filter(|stack| stack.frames.iter().any(is_function)).peekable();
                assert!(stacks.peek().is_some(), "{function} {graph} {options:?}");
                // The caller of `newosproc` may be on another stack, which is not copied.
                let is_cut = |frames: &[String]| frames[1] == "[truncated]" && frames.get(2).is_some_and(is_function);
                stacks.for_each(|stack| assert!(!is_cut(&stack.frames), "{graph} {options:?} {stack:?}"));
            }
            let has_command = |frames: &[String]| {
                frames.iter().any(|frame| frame == "main.main")
                    && frames.iter().any(|frame| frame.starts_with("syscall.rawVforkSyscall"))
            };
            assert!(profile.iter().any(|stack| has_command(&stack.frames)), "{graph} {options:?}");
        }
    }
}
