//! What a sample weighs decides what is a difference: few samples are none, exact counts always are.

use fgkit::diff::Scaling;
use fgkit::stats::sample_weight::{WeightKind, WeightOptions};

use super::runs::Runs;
use crate::support::{directory, run};

#[test]
fn a_run_that_is_given_twice_is_reported() {
    let stacks = ["a;b", "a;c", "b", "b;d", "c;e"].map(|stack| stack.split(';').map(str::to_owned).collect());
    let (one, other) = (vec![48, 610, 39, 165, 21], vec![40, 624, 40, 159, 28]);
    let runs = |before: [&Vec<u64>; 2], exact| Runs {
        stacks: stacks.to_vec(),
        before: before.map(Clone::clone).to_vec(),
        after: vec![vec![47, 635, 32, 162, 18], vec![45, 601, 37, 171, 25]],
        scaling: Scaling::Runs,
        weights: WeightOptions { exact, ..WeightOptions::default() },
    };
    let caveat = |before, exact| runs(before, exact).compare().caveat;
    assert!(caveat([&one, &one], false).is_some_and(|caveat| caveat.contains("two runs of one side are identical")));
    assert_eq!(caveat([&one, &other], false), None);
    assert_eq!(caveat([&one, &one], true), None, "exact counts are equal in each run");
}

/// Writes the sides to files, and returns what fg-diff --significant --exit-code says, and fg-diff | fg-check.
fn judge_files(before: &str, after: &str, options: &[&str]) -> (i32, i32) {
    let folder = directory();
    let [b, a] = [("b", before), ("a", after)].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let significant = run("fg-diff", [&["--significant", "--exit-code", &b, &a], options].concat(), b"").code();
    let compared = run("fg-diff", [&b, &a], b"").ok().stdout;
    (
        significant,
        run("fg-check", [&["--growth", "1%", "--inclusive-growth", "1%"], options].concat(), &compared).code(),
    )
}

#[test]
fn few_samples_of_varying_periods_are_no_difference() {
    let before = "m;a 61000001\nm;b 59000017\nm;c 30000003\nm;d 29999999\nm;e 2999993\n";
    let after = "m;a 79000001\nm;b 50000017\nm;c 24000003\nm;d 26999999\nm;e 3000029\n";
    assert_eq!(judge_files(before, after, &[]), (0, 0));
}

#[test]
fn few_samples_of_a_fixed_period_are_no_difference() {
    let (before, after) = ("m;a 50150450\nm;b 50150450\n", "m;a 62186558\nm;b 38114342\n");
    assert_eq!(judge_files(before, after, &[]), (0, 0));
    // With the weight of a sample at hand, it makes no difference either.
    assert_eq!(judge_files(before, after, &["--per-sample", "1003009"]), (0, 0));
    assert_eq!(judge_files(before, after, &["--exact"]), (1, 1));
}

#[test]
fn any_change_of_exact_counts_is_a_difference() {
    let before = "main;parse 7200018\nmain;read 3100007\nmain;write 900011\nmain;init 12\n";
    assert_eq!(judge_files(before, &before.replace("7200018", "7344018"), &[]), (1, 1));
    assert_eq!(judge_files(before, before, &[]), (0, 0));
    let table =
        run("fg-csv", ["--top=1"], b"main;parse 7200018 7344018\nmain;read 3100007 3100007\nmain;w 70007 70007\n");
    assert!(table.ok().text().contains("\nparse,7200018,7344018,144000,0.0000,"));
    let kind = WeightKind::Exact.describe();
    assert_eq!(kind, "weights are exact counts");
}
