//! Functions that others call at equal cost are no growth: neither on the page nor for fg-diff and fg-check.

use std::path::Path;

use crate::support::{command, directory, run_command, tool};

const BEFORE: &str = "app;main;load 1503\napp;main;rank;sort_keys 811\napp;main;rank 407\napp;main;dump 211\n";
const WRAPPED: &str = "app;main;load 1497\napp;main;run_stage;rank;sort_keys 823\napp;main;run_stage;rank 399\n\
                       app;main;run_stage 3\napp;main;dump 207\n";

/// Returns the page about two profiles, and the exit status of fg-diff, with one run a side and with three.
fn compare(before: &str, after: &str) -> Vec<(String, i32)> {
    let folder = directory();
    std::fs::write(folder.path().join("a"), before).unwrap();
    std::fs::write(folder.path().join("b"), after).unwrap();
    // Runs that are equal say nothing of noise.
    let vary = |text: &str, run: usize| -> String {
        let lines = text.lines().enumerate().map(|(number, line)| {
            let (stack, weight) = line.rsplit_once(' ').unwrap();
            let weight: usize = weight.parse().unwrap();
            format!("{stack} {}\n", weight + (number * 7 + run * 5) % 11 * weight / 200)
        });
        lines.collect()
    };
    for run in 0..3 {
        std::fs::write(folder.path().join(format!("a{run}")), vary(before, run)).unwrap();
        std::fs::write(folder.path().join(format!("b{run}")), vary(after, run + 3)).unwrap();
    }
    let sides: [&[&str]; 2] =
        [&["--before", "a", "--after", "b"], &["--before", "a0", "a1", "a2", "--after", "b0", "b1", "b2"]];
    sides.map(|sides| judge(folder.path(), sides)).to_vec()
}

fn judge(folder: &Path, sides: &[&str]) -> (String, i32) {
    let run = |program: &str, options: &[&str]| {
        let mut command = command(tool(program));
        command.current_dir(folder).args(options).args(sides);
        run_command(command, b"")
    };
    let differs = run("fg-diff", &["--significant", "--exit-code"]).code();
    let grew = run("fg-check", &["--growth=1%", "--inclusive-growth=1%"]).code();
    assert!(grew <= differs, "fg-check {grew}, fg-diff {differs}");
    (run("fg-report", &[]).ok().text(), differs)
}

#[test]
fn a_wrapped_function_has_not_grown() {
    for (before, after, said) in [
        (BEFORE, WRAPPED, "moved     rank is called by run_stage now, at equal cost\n"),
        (WRAPPED, BEFORE, "moved     rank is no longer called by run_stage, at equal cost\n"),
    ] {
        for (page, differs) in compare(before, after) {
            assert!(page.contains("nothing changed beyond noise") && page.contains(said), "{page}");
            assert!(!page.contains("grew at") && differs == 0, "{page}");
        }
    }
}

/// What grew below a new wrapper is named with its own growth, at the place that both sides have.
#[test]
fn a_function_that_is_wrapped_and_slower_has_grown() {
    let slower = WRAPPED.replace("sort_keys 823", "sort_keys 1523").replace("rank 399", "rank 799");
    for (page, differs) in compare(BEFORE, &slower) {
        assert!(page.contains("moved     rank is called by run_stage now\n"), "{page}");
        let path = page.lines().find(|line| line.starts_with("grew at")).unwrap_or_else(|| panic!("{page}"));
        assert!(path.starts_with("grew at   app > main > rank") && path.contains("sort_keys +2"), "{page}");
        assert!(page.contains("of the own functions 2 grew") && differs == 1, "{page}");
    }
}

/// Nothing costs more, but what calls the function now does: another thread, request or lock may wait for it.
#[test]
fn a_function_that_another_one_calls_now_is_growth_of_that_one() {
    let others = "app;main;first;look 301\napp;main;next;look 299\n";
    let calls = |caller: &str| format!("{BEFORE}{others}app;main;{caller};store;write_block 803\n");
    for (page, differs) in compare(&calls("first"), &calls("next")) {
        assert!(page.contains("beyond noise") && differs == 1, "{page}");
        assert!(!page.lines().any(|line| line.starts_with("moved")), "{page}");
    }
}
