//! Stacks that the BPF program takes: whole and right, however deep, and of every process from its first instant.

use crate::support::programs::program;
use crate::support::recording::{Profile, Stack, can_record, record};
use crate::support::{Outcome, skip};

/// Returns true if a recording with `-v` took its stacks with the BPF program. Otherwise reports the test as skipped.
#[track_caller]
fn took_stacks(outcome: &Outcome) -> bool {
    let copied = outcome.stderr.lines().find(|line| line.contains("stacks copied"));
    if let Some(copied) = copied {
        skip(copied);
    }
    copied.is_none()
}

/// True if a stack is in one of the program's leaves, or in what they call.
fn has_leaf(stack: &Stack) -> bool {
    stack.frames.iter().any(|frame| frame.ends_with("_leaf"))
}

/// Asserts that no stack is truncated, and that each leaf of the program has its own caller.
#[track_caller]
fn assert_right_callers(profile: &Profile) {
    let is_wrong = |frames: &[String]| {
        let has = |name: &str| frames.iter().any(|frame| frame == name);
        frames.iter().any(|frame| frame == "[truncated]")
            || !has("main")
            || has("odd_leaf") != has("odd_caller")
            || has("even_leaf") != has("even_caller")
    };
    let wrong: Vec<_> = profile.0.iter().filter(|stack| has_leaf(stack) && is_wrong(&stack.frames)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(profile.0.iter().any(has_leaf), "{profile:?}");
}

#[test]
fn every_leaf_has_its_own_caller_at_any_depth() {
    let (true, Some(callers)) = (can_record(), program("callers")) else { return };
    for depth in ["1", "60", "500", "900"] {
        let outcome = record(["-v", "-F", "997", "--", &callers, "0.3", depth]).ok();
        if !took_stacks(&outcome) {
            return;
        }
        let profile = Profile::from_stdout(&outcome);
        assert_right_callers(&profile);
        let depth: usize = depth.parse().unwrap();
        let descents = |frames: &[String]| frames.iter().filter(|frame| *frame == "descend").count();
        let leaves = profile.0.iter().filter(|stack| has_leaf(stack));
        let counts: Vec<usize> = leaves.map(|stack| descents(&stack.frames)).collect();
        assert!(counts.iter().all(|count| *count == depth), "{counts:?} of {depth}");
    }
}

#[test]
fn copies_leave_out_what_is_deeper_than_they_are() {
    let (true, Some(callers)) = (can_record(), program("callers")) else { return };
    let outcome = record(["--call-graph", "dwarf,65528", "-F", "997", "--", &callers, "0.3", "500"]).ok();
    let profile = Profile::from_stdout(&outcome);
    let leaves = || profile.0.iter().filter(|stack| has_leaf(stack));
    assert!(leaves().all(|stack| stack.frames[1] == "[truncated]"), "{profile:?}");
    assert!(leaves().next().is_some() && leaves().all(|stack| !stack.contains(&["main"])), "{profile:?}");
}

#[test]
fn samples_belong_to_the_target_and_its_children_alone() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let mut stranger = crate::support::command(&busy);
    let stranger = crate::support::process::Background::start(stranger.arg("30"));
    let script = "i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done; exec \"$0\" 0.2";
    let outcome = record(["--script", "-F", "997", "--", "sh", "-c", script, &busy]).ok();
    let text = String::from_utf8(outcome.stdout).unwrap();
    // The first line of a sample begins with the thread's name and its ID.
    let headers = text.lines().filter(|line| !line.is_empty() && !line.starts_with(char::is_whitespace));
    let ids: Vec<&str> = headers.filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert!(ids.len() > 100 && !ids.contains(&&*stranger.pid()), "{ids:?}");
    assert!(text.lines().any(|line| line.starts_with("busy ")), "{text}");
}
