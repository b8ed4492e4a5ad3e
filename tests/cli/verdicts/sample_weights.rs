//! What a sample weighs decides what is a difference: few samples are none, exact counts always are.

use fgkit::diff::Scaling;
use fgkit::stats::sample_weight::{WeightKind, WeightOptions};

use super::random::Random;
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

/// Returns `perf script` text of a program whose periods vary by a factor of e, after the short ones with which perf begins.
/// `only` selects samples by their number.
fn perf_script(samples: u64, stacks: u64, random: &mut Random, only: impl Fn(u64) -> bool) -> String {
    let mut text = String::new();
    for number in 0..samples {
        let short = [1, 1, 7, 118, 2178, 40_254].get(number as usize).copied();
        let period = short.unwrap_or_else(|| (750_000.0 * random.normal().exp()) as u64 + 1);
        let function = (random.uniform() * stacks as f64) as u64;
        if only(number) {
            text += &format!(
                "app 7 [000] 1.{number:06}: {period} cycles:\n\t401000 f{function}+0x0 (/bin/app)\n\t402000 main+0x0 (/bin/app)\n\n"
            );
        }
    }
    text
}

/// Halves of one recording, as stacks of many or few functions, and merged into one stack for each module.
#[test]
fn varying_periods_are_no_number_of_samples() {
    for (samples, stacks) in [(58, 400), (58, 29), (58, 4), (600, 40)] {
        let mut alarms = 0;
        for seed in 1..=12 {
            let folder = directory();
            let sides = [("old", 0), ("new", 1)].map(|(name, half)| {
                let script = perf_script(samples, stacks, &mut Random(seed * 7919), |number| number % 2 == half);
                let folded = run("fg-collapse", [""; 0], script.as_bytes()).ok().stdout;
                let path = folder.path().join(name);
                std::fs::write(&path, folded).unwrap();
                path.to_str().unwrap().to_owned()
            });
            alarms += run("fg-diff", ["--significant", "--exit-code", &sides[0], &sides[1]], b"").code();
            for program in ["fg-report", "fg-csv", "fg-diff"] {
                let options = ["--before", &sides[0], "--after", &sides[1], "-v"];
                let outcome = run(program, &options[..if program == "fg-report" { 4 } else { 5 }], b"").ok();
                let all = outcome.text() + &outcome.stderr;
                assert!(!all.contains(" samples before") && !all.contains("at least"), "{program}: {all}");
                assert!(program != "fg-report" || !all.contains(" samples"), "{all}");
            }
        }
        assert!(alarms <= 3, "{alarms} of 12 with {samples} samples of {stacks} stacks");
    }
}

#[test]
fn growth_is_found_although_periods_vary() {
    for (samples, stacks) in [(3000, 400), (3000, 30)] {
        let [before, after] = [1, 2].map(|seed| {
            let script = perf_script(samples, stacks, &mut Random(seed * 7919), |_| true);
            run("fg-collapse", [""; 0], script.as_bytes()).ok().text()
        });
        let after = after + &format!("app;main;f0 {}\n", samples * 400_000);
        assert_eq!(judge_files(&before, &after, &[]), (1, 1), "{samples} samples of {stacks} stacks");
    }
}

#[test]
fn one_period_that_differs_makes_no_samples_of_weight_one() {
    let side = |odd: u64| {
        (1..30).map(|n| format!("m;f{n} {}\n", 1_000_003 * n - if n == 3 { odd } else { 0 })).collect::<String>()
    };
    assert_eq!(judge_files(&side(17), &side(0).replace("m;f29 ", "m;f28 "), &[]), (0, 0));
    let (before, after) = ("m;a 50150450\nm;b 50150449\n", "m;a 62186558\nm;b 38114342\n");
    assert_eq!(judge_files(before, after, &[]), (0, 0));
    // Periods of an event that is rarer than cycles.
    let (before, after) = ("m;a 150450\nm;b 150449\nm;c 87000\n", "m;a 186558\nm;b 114342\nm;c 81000\n");
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
