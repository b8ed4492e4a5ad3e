//! Go programs without symbols, which are named by the function table that the runtime needs.

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
    let program = go_program(folder.path(), &["-ldflags=-s -w"]);
    let profile = Profile::from_stdout(&record(["-F", "997", "--", &program]).ok());
    assert_named(&profile, ["main.main", "main.work", "sort.Strings"]);
    let profile = Profile::from_stdout(&record(["--lines", "-F", "997", "--", &program]).ok());
    assert_named(&profile, ["main.main:goroutines.go:19", "main.work:goroutines.go:12", "sort.Strings:sort.go:"]);
}
