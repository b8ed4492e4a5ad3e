//! Stacks of programs without frame pointers reach their root.

use crate::folded::{Folded, may_record, record};
use crate::programs::program;

/// Records one of the ways of `unwound`, and the share of its stacks that begin at its first function and hold all of
/// these in this order.
fn share_of(way: &str, frames: &[&str]) -> f64 {
    let outcome = record(["--", &program("unwound").unwrap(), way]);
    let profile = Folded::of(&outcome.ok());
    let holds = |stack: &[String]| {
        let mut rest = stack.iter();
        stack[1] == "_start" && frames.iter().all(|frame| rest.any(|other| other == frame))
    };
    let held: u64 = profile.0.iter().filter(|(stack, _)| holds(stack)).map(|(_, weight)| weight).sum();
    held as f64 / profile.total() as f64
}

#[test]
fn a_deep_stack_is_followed_to_its_root() {
    if may_record() && program("unwound").is_some() {
        let share = share_of("deep", &["main", "deep", "deep", "deep"]);
        assert!(share > 0.9, "{share}");
    }
}

#[test]
fn frames_larger_than_the_copy_are_followed_in_the_living_stack() {
    if may_record() && program("unwound").is_some() {
        let share = share_of("wide", &["main", "wide"]);
        assert!(share > 0.6, "{share}");
    }
}

#[test]
fn a_signal_handler_stands_above_what_it_interrupted() {
    if may_record() && program("unwound").is_some() {
        let share = share_of("alarmed", &["main", "alarmed"]);
        assert!(share > 0.5, "{share}");
    }
}
