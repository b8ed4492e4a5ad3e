//! Stacks that the BPF program takes: whole and right, however deep, and of every process from its first instant.

use crate::support::callers::{LeafSamples, has_leaf};
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record, record};
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

#[test]
fn every_leaf_has_its_own_caller_at_any_depth() {
    let (true, Some(callers)) = (can_record(), program("callers")) else { return };
    for depth in ["1", "60", "500", "900"] {
        let outcome = record(["-v", "-F", "997", "--", &callers, "0.3", depth]).ok();
        if !took_stacks(&outcome) {
            return;
        }
        let samples = LeafSamples::count(&Profile::from_stdout(&outcome), depth.parse().unwrap());
        assert!(samples.all > 0 && samples.truncated == 0, "{samples:?} at depth {depth}");
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
