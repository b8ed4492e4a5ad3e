//! Tests of call trees.

use super::super::measure::Measure;
use super::CallTree;
use crate::profile::{Profile, Weight, Weights};

fn profile(stacks: &[(&str, u64)]) -> Profile {
    let mut profile = Profile::new(false);
    for (stack, weight) in stacks {
        let frames: Vec<_> = stack.split(';').map(|name| profile.frames.intern(name.as_bytes())).collect();
        profile.add(&frames, Weights::plain(Weight::new(*weight))).unwrap();
    }
    profile
}

/// Returns the lines of a tree as text: indentation, functions, weight, weight of the last alone, callees left out.
fn lines(stacks: &[(&str, u64)], limit: usize) -> Vec<String> {
    let profile = profile(stacks);
    let tree = CallTree::new(&profile, Measure::After).unwrap();
    let lines = tree.largest_lines(limit, Weight::ZERO).into_iter().map(|line| {
        let names = line.chain.iter().map(|frame| String::from_utf8_lossy(profile.frames.name(*frame)).into_owned());
        let names = names.collect::<Vec<_>>().join(">");
        let indent = " ".repeat(line.depth);
        let (others, itself) = (line.other_weights.after, line.itself.after);
        format!("{indent}{names} {} {itself} {}/{others}", line.weights.after, line.others)
    });
    lines.collect()
}

const STACKS: &[(&str, u64)] = &[("a;b;c;d", 50), ("a;b;c;e", 30), ("a;b;c;f", 15), ("a;b;c", 5), ("g", 10)];

#[test]
fn shows_the_largest_lines_and_counts_the_rest() {
    let whole = ["a>b>c 100 5 0/0", " d 50 50 0/0", " e 30 30 0/0", " f 15 15 0/0", "g 10 10 0/0"];
    assert_eq!(lines(STACKS, 10), whole);
    assert_eq!(lines(STACKS, 2), ["a>b>c 100 5 2/45", " d 50 50 0/0"]);
    assert_eq!(lines(&[], 9), [""; 0]);
}

#[test]
fn cuts_small_branches() {
    assert_eq!(lines(&[("a", 99_999), ("a;b;c", 1)], 9), ["a 100000 99999 1/1"]);
}

#[test]
fn the_hot_path_ends_where_the_weight_splits() {
    let profile = profile(STACKS);
    let tree = CallTree::new(&profile, Measure::After).unwrap();
    let path: Vec<_> = tree.hot_path().iter().map(|node| node.weights.after.to_string()).collect();
    assert_eq!(path, ["100", "100", "100"]);
}

#[test]
fn the_hot_path_does_not_lead_to_little_weight() {
    let profile = profile(&[("a", 35), ("a;b", 25), ("a;b;c", 15), ("a;b;c;d", 25)]);
    let tree = CallTree::new(&profile, Measure::After).unwrap();
    let path: Vec<_> = tree.hot_path().iter().map(|node| node.weights.after.to_string()).collect();
    assert_eq!(path, ["100", "65", "40"]);
}
