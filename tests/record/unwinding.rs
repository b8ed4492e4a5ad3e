//! Stacks of programs without frame pointers reach their root.

use crate::folded::{Folded, may_record, record};
use crate::programs::program;
use crate::support::Outcome;

/// Records one of the ways of `unwound`: of the stacks that hold `leaf`, the share that begin at the program's first
/// function and hold `main` too.
fn rooted(way: &str, leaf: &str) -> f64 {
    let outcome = record(["--", &program("unwound").unwrap(), way]);
    let profile = Folded::of(&outcome.ok());
    let has = |stack: &[String], name: &str| stack.iter().any(|frame| frame == name);
    let (mut all, mut rooted) = (0, 0);
    for (stack, weight) in profile.0.iter().filter(|(stack, _)| has(stack, leaf)) {
        all += weight;
        rooted += if stack[1] == "_start" && has(stack, "main") { *weight } else { 0 };
    }
    assert!(all > 10, "{all} samples in {leaf}");
    rooted as f64 / all as f64
}

#[test]
fn a_deep_stack_is_followed_to_its_root() {
    if may_record() && program("unwound").is_some() {
        let share = rooted("deep", "deep");
        assert!(share > 0.9, "{share}");
    }
}

#[test]
fn frames_larger_than_the_copy_are_followed_in_the_living_stack() {
    if may_record() && program("unwound").is_some() {
        let share = rooted("wide", "wide");
        assert!(share > 0.8, "{share}");
    }
}

/// Of stacks of a thread that is now in the odd functions, now in the even ones, in the same places of its stack: the share
/// in which both are, and of the others the share that is cut.
fn mixed(outcome: &Outcome) -> (f64, f64) {
    let profile = Folded::of(outcome);
    let has = |stack: &[String], what: &str| stack.iter().any(|frame| frame.starts_with(what));
    let (mut all, mut mixed, mut cut) = (0, 0, 0);
    for (stack, weight) in &profile.0 {
        let (odd, even) = (has(stack, "odd"), has(stack, "even"));
        all += if odd || even { *weight } else { 0 };
        mixed += if odd && even { *weight } else { 0 };
        cut += if has(stack, "[truncated]") { *weight } else { 0 };
    }
    assert!(all > 200, "{outcome:?}");
    (mixed as f64 / all as f64, cut as f64 / all as f64)
}

#[test]
fn what_a_thread_does_next_is_no_caller_of_what_it_did() {
    if may_record() && program("unwound").is_some() {
        for (hertz, [way, length]) in
            [("997", ["requests", "10"]), ("997", ["turns", ""]), ("199", ["requests", "0.3"])]
        {
            let outcome = record(["-F", hertz, "--", &program("unwound").unwrap(), way, length]).ok();
            let (share, _) = mixed(&outcome);
            assert!(share < 0.05, "{way} {length}: {share}");
            // Calls that are the same as before, from elsewhere, cannot all be told from those that last.
            let is_said = outcome.stderr.contains("callers beyond it change within milliseconds");
            assert_eq!(is_said, way == "requests", "{way} {length}: {outcome:?}");
        }
    }
}

#[test]
fn what_calls_of_before_have_left_in_buffers_is_not_on_the_stack() {
    if may_record() && program("unwound").is_some() {
        let outcome = record(["--", &program("unwound").unwrap(), "buffers"]).ok();
        let (share, cut) = mixed(&outcome);
        assert!(share < 0.01 && cut < 0.9, "{share} mixed, {cut} cut");
    }
}

#[test]
fn what_stands_below_a_thread_that_has_returned_is_not_on_its_stack() {
    if may_record() && program("unwound").is_some() {
        let (share, _) = mixed(&record(["--", &program("unwound").unwrap(), "shallows"]).ok());
        assert!(share < 0.005, "{share}");
    }
}

#[test]
fn within_execve_there_is_no_stack_and_no_advice() {
    if may_record() {
        let script = "for n in $(seq 300); do sh -c 'exec /bin/true'; done";
        let outcome = record(["-v", "-F", "4999", "--", "sh", "-c", script]).ok();
        let cuts = outcome.stderr.lines().find_map(|line| line.strip_prefix("fg-record: stacks cut: ")).unwrap();
        let count = |cause: &str| {
            let part = cuts.split(", ").find_map(|part| part.strip_suffix(cause));
            part.unwrap_or_else(|| panic!("{cuts}")).parse::<u64>().unwrap()
        };
        assert!(count(" no stack (within execve)") > 10, "{outcome:?}");
        assert_eq!(count(" copy too small"), 0, "{outcome:?}");
        assert!(!outcome.stderr.contains("without unwind information ("), "{outcome:?}");
    }
}

#[test]
fn a_sleepers_stack_is_what_is_read_until_it_wakes() {
    if may_record() && program("unwound").is_some() {
        // The rings are read every tenth of a second.
        for (length, most_cut) in [("2", 1.0), ("400", 0.4)] {
            let program = program("unwound").unwrap();
            let (mixed, cut) = mixed(&record(["--off-cpu", "--", &program, "naps", length]).ok());
            assert!(mixed == 0.0 && cut <= most_cut, "{length} ms: {mixed} mixed, {cut} cut");
        }
    }
}

#[test]
fn a_frame_whose_address_is_in_a_register_is_passed_above_one_that_saved_it() {
    if may_record() && program("unwound").is_some() {
        let share = rooted("realigned", "saver");
        assert!(share > 0.9, "{share}");
    }
}

#[test]
fn a_signal_handler_stands_above_what_it_interrupted() {
    if may_record() && program("unwound").is_some() {
        let share = rooted("alarmed", "alarmed");
        assert!(share > 0.9, "{share}");
    }
}
