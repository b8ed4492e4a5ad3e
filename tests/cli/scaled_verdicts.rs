//! Verdicts on comparisons whose weights before fg-diff scaled.

use crate::support::{directory, run};

/// What a program says when the verdict on a scaled comparison may be another than that on the profiles.
const HINT: &str = "give the profiles with --before and --after";

/// Returns a profile of a function that takes two fifths of the samples, and of others.
fn profile(samples: u64, share: u64) -> String {
    let own = samples * share / 100;
    let rest: String = (1..9).map(|number| format!("m;f{number} {}\n", (samples - own) / 36 * number)).collect();
    format!("m;a {own}\n{rest}")
}

/// Checks profiles, and their comparison by fg-diff. Returns the statuses and the messages about the comparison.
fn check(before: &str, after: &str, scaling: &[&str]) -> (i32, i32, String) {
    let folder = directory();
    let [before, after] = [("before", before), ("after", after)].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let rules = ["--growth=2%"];
    let direct = [&rules[..], scaling, &["--before", &before, "--after", &after]].concat();
    let compared = run("fg-diff", [scaling, &[&before, &after]].concat(), b"").ok().stdout;
    let piped = run("fg-check", rules, &compared);
    (run("fg-check", direct, b"").code(), piped.code(), piped.stderr.clone())
}

#[test]
fn a_scaled_comparison_contradicts_its_profiles_only_with_a_hint() {
    let mut contradictions = 0;
    for factor in [1, 2, 3, 10, 40] {
        for growth in 0..12 {
            for [before, after] in [[100, 100 * factor], [100 * factor, 100], [1000, 1000 * factor]] {
                let (before, after) = (profile(before, 40), profile(after, 40 + growth * 2));
                let (direct, piped, messages) = check(&before, &after, &["-n"]);
                contradictions += u32::from(direct != piped);
                assert!(direct == piped || messages.contains(HINT), "{before}{after}{direct} {piped}: {messages}");
            }
        }
    }
    assert!(contradictions > 0, "the hint was not needed");
}

#[test]
fn programs_that_judge_say_that_a_comparison_is_scaled() {
    let compared = b"main;parse 300 350\nmain;read 500 450\n";
    for program in [&["fg-check", "--growth=2%"][..], &["fg-csv"]] {
        let outcome = run(program[0], &program[1..], compared);
        assert!(outcome.stderr.contains(HINT), "{outcome:?}");
    }
    assert!(run("fg-report", ["--json"], compared).ok().text().contains(HINT));
    let unequal = run("fg-csv", [""; 0], b"main;parse 300 350\nmain;read 500 451\n");
    assert!(!unequal.stderr.contains(HINT), "{unequal:?}");
}
