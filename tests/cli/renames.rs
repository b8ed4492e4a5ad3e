//! fg-diff: functions, programs and folders that have other names after.

#![allow(clippy::print_stdout)]

use crate::diff::files;
use crate::support::run;
use crate::verdicts::random::Random;

#[test]
fn renamed_functions_are_paired_unless_they_differ() {
    let compare = |before: &str, after: &str| {
        let (_folder, before, after) = files(before, after);
        run("fg-diff", ["--match-renames".as_ref(), before.as_os_str(), after.as_os_str()], b"").ok()
    };
    let before = "main;load;read 400\nmain;other 300\nmain;parse_v1;next 100\n";
    let same = compare(before, "main;load;read 410\nmain;other 290\nmain;parse;next 105\n");
    assert_eq!(same.text(), "main;load;read 400 410\nmain;other 300 290\nmain;parse;next 100 105\n");
    assert_eq!(same.stderr, "fg-diff: renamed: parse_v1 -> parse\n");
    // The weights of this pair are alike enough, but the difference is certain.
    let grown = compare(
        &before.replace("read 400", "read 40000").replace("next 100", "next 10000"),
        "main;load;read 40000\nmain;other 300\nmain;parse;next 19000\n",
    );
    assert!(grown.text().contains("parse_v1;next 10000 0\n"), "{grown:?}");
    assert_eq!(grown.stderr, "");
}

/// Simulates a run of a program with a few large functions and many small ones. `renamed` is the other name of one with 2 %.
fn simulate_rare_functions(random: &mut Random, samples: u32, renamed: Option<&str>) -> String {
    let mut text = String::new();
    for number in 0..800_u32 {
        let mean = match number {
            0..6 => f64::from(samples) * 0.1,
            6 => f64::from(samples) * 0.02,
            _ => f64::from(samples) * 0.38 / 793.0,
        };
        let count = random.count(mean);
        let caller = number % 40;
        let name = match renamed {
            Some(name) if number == 6 => name.to_owned(),
            _ => format!("f{number}"),
        };
        if count > 0 {
            text.push_str(&format!("main;g{caller};{name};leaf{number} {count}\n"));
        }
    }
    text
}

/// `FG_VERDICT_TRIALS` is the number of comparisons for each number of samples, 5 by default.
#[test]
fn renames_are_found_and_rare_functions_are_not_paired() {
    let trials: u32 = std::env::var("FG_VERDICT_TRIALS").map_or(5, |trials| trials.parse().unwrap());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for samples in [500, 1000, 3000, 20_000] {
        let (mut wrong, mut found) = (0, 0);
        for _ in 0..trials {
            for name in [None, Some("renamed")] {
                let before = simulate_rare_functions(&mut random, samples, None);
                let (_folder, before, after) = files(&before, &simulate_rare_functions(&mut random, samples, name));
                let options = ["--match-renames".as_ref(), before.as_os_str(), after.as_os_str()];
                let stderr = run("fg-diff", options, b"").ok().stderr;
                let pairs = stderr.lines().filter(|line| line.starts_with("fg-diff: renamed: "));
                let (right, others): (Vec<_>, Vec<_>) = pairs.partition(|line| line.ends_with("f6 -> renamed"));
                wrong += others.len() as u32;
                found += right.len() as u32;
            }
        }
        println!(
            "{samples} samples: {found} of {trials} renames found, {wrong} wrong pairs in {} comparisons",
            2 * trials
        );
        assert!(wrong * 20 <= 2 * trials, "{samples}: {wrong} wrong pairs");
        assert!(samples < 1000 || found * 10 >= trials * 8, "{samples}: {found} of {trials}");
    }
}

#[test]
fn hints_at_names_that_differ() {
    let compare = |options: &[&str], after: &str| {
        let (_folder, before, after) = files("main;a_1f2e 40\nmain;b_1f2e 60\nmain;c 3\n", after);
        let files = [before.to_str().unwrap(), after.to_str().unwrap()];
        run("fg-diff", [options, &files].concat(), b"").ok().stderr
    };
    let other = "main;a_77aa 41\nmain;b_77aa 58\nmain;c 3\n";
    let hint = compare(&[], other);
    assert!(
        hint.contains("97 % of the weight before and 97 % of that after are in stacks that only one side has"),
        "{hint}"
    );
    assert!(hint.contains("--match-renames") && hint.contains("--rename"), "{hint}");
    assert_eq!(compare(&["-s", "--rename", "_[0-9a-f]{4}="], other), "");
    assert_eq!(compare(&[], "main;b_1f2e 58\nmain;a_77aa 41\n"), "", "most is on both sides");
}

#[test]
fn copies_of_a_program_are_compared_as_one() {
    let (_folder, before, after) = files("app-1.2;main;run 40\nsh;x 1\n", "app-1.3;main;run 41\nsh;x 1\n");
    let paths = [before.as_os_str(), after.as_os_str()];
    let outcome = run("fg-diff", paths, b"").ok();
    assert_eq!(outcome.text(), "app-1.3;main;run 40 41\nsh;x 1 1\n");
    assert_eq!(outcome.stderr, "fg-diff: app-1.2 is compared as app-1.3; --exact-names compares names as they are\n");
    // Files that are not sorted are read in another way.
    let unsorted = std::fs::read_to_string(&before).unwrap().lines().rev().collect::<Vec<_>>().join("\n");
    std::fs::write(&before, unsorted).unwrap();
    assert_eq!(run("fg-diff", paths, b"").ok().stdout, outcome.stdout);
    let exact = run("fg-diff", ["--exact-names".as_ref(), paths[0], paths[1]], b"").ok();
    assert_eq!(exact.text(), "app-1.2;main;run 40 0\napp-1.3;main;run 0 41\nsh;x 1 1\n");
}
