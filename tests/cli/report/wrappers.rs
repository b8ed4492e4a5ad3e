//! New functions that only call what was there before: the page names them, with what all calls of the others cost.

use std::path::Path;

use crate::support::{command, directory, run_command, tool};

const BEFORE: &str = "app;main;load 1503\napp;main;rank;sort_keys 811\napp;main;rank 407\napp;main;dump 211\n";
const WRAPPED: &str = "app;main;load 1497\napp;main;run_stage;rank;sort_keys 823\napp;main;run_stage;rank 399\n\
                       app;main;run_stage 3\napp;main;dump 207\n";

/// Returns the page about two profiles, with one run a side and with three. fg-diff must find a difference, and fg-check growth or none.
fn compare(before: &str, after: &str, has_grown: bool) -> [String; 2] {
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
    sides.map(|sides| judge(folder.path(), sides, has_grown))
}

fn judge(folder: &Path, sides: &[&str], has_grown: bool) -> String {
    let run = |program: &str, options: &[&str]| {
        let mut command = command(tool(program));
        command.current_dir(folder).args(options).args(sides);
        run_command(command, b"")
    };
    assert_eq!(run("fg-diff", &["--significant", "--exit-code"]).code(), 1);
    let check = run("fg-check", &["--growth=1%", "--inclusive-growth=1%"]);
    assert_eq!(check.code(), i32::from(has_grown), "{check:?}");
    run("fg-report", &[]).ok().text()
}

#[test]
fn a_wrapper_has_a_line_of_its_own() {
    for (before, after, said) in
        [(BEFORE, WRAPPED, "wrapper   run_stage is new +4"), (WRAPPED, BEFORE, "wrapper   run_stage is gone -4")]
    {
        for page in compare(before, after, false) {
            assert!(
                page.contains("run_stage with all that it calls ") && page.contains("but no function by itself"),
                "{page}"
            );
            assert!(page.contains(said) && page.contains("%, all calls of rank "), "{page}");
        }
    }
}

/// What it calls is not called by its caller, but by a function that took its place.
#[test]
fn a_function_that_was_replaced_is_no_wrapper() {
    let others =
        ["orders", "users", "cart"].map(|name| format!("app;serve;{name};query 181\napp;serve;{name};render 119\n"));
    let with = |name: &str, rest: i32| {
        let calls = [(";query", 180 + rest), (";render", 130), ("", 20)];
        let calls = calls.map(|(callee, weight)| format!("app;serve;{name}{callee} {weight}\n"));
        [&others[..], &calls].concat().concat() + "app;load 1500\n"
    };
    let [single, several] = compare(&with("items", 0), &with("invoice", -3), false);
    assert!(single.contains("items with all that it calls -") && single.contains(" and invoice +"), "{single}");
    assert!(several.contains("of the own functions 1 appeared, 1 vanished"), "{several}");
    assert!(!single.contains("wrapper") && !several.contains("wrapper"), "{single}\n{several}");
}

/// The first functions of stacks that begin with no name of a thread.
#[test]
fn a_new_root_that_calls_the_former_one_is_a_function() {
    let before = BEFORE.replace("app;main;", "serve;");
    let after = before.replace("serve;", "traced;serve;");
    for page in compare(&before, &after, false) {
        assert!(page.contains("wrapper   traced is new +") && page.contains("all calls of serve "), "{page}");
        assert!(!page.contains("grew at"), "{page}");
    }
}

/// What grew below a new function is no reason to take it for a wrapper.
#[test]
fn a_function_that_is_wrapped_and_slower_has_grown() {
    let slower = WRAPPED.replace("sort_keys 823", "sort_keys 1523").replace("rank 399", "rank 799");
    for page in compare(BEFORE, &slower, true) {
        assert!(page.contains("of the own functions 2 grew") && !page.contains("wrapper"), "{page}");
        let path = page.lines().find(|line| line.starts_with("grew at")).unwrap_or_else(|| panic!("{page}"));
        assert!(path.starts_with("grew at   app > main > run_stage > rank"), "{page}");
    }
}

/// All that was there before may become less in the same time, so that what is called more often does not seem to grow.
#[test]
fn new_calls_of_a_function_with_other_callers_are_in_the_verdict() {
    let pages: String = (0..40).map(|page| format!("app;serve;page{page};fmt 60\napp;serve;page{page} 90\n")).collect();
    let fewer: String = (0..40).map(|page| format!("app;serve;page{page};fmt 34\napp;serve;page{page} 66\n")).collect();
    let after = format!("{fewer}app;serve;audit;fmt 1700\napp;serve;audit 300\n");
    for page in compare(&pages, &after, true) {
        assert!(page.contains("audit") && page.contains("beyond noise"), "{page}");
        assert!(page.lines().any(|line| line.starts_with("grew at") && line.contains("audit")), "{page}");
    }
}

/// A recursive function contains what new code in it adds.
#[test]
fn a_caller_is_not_taken_for_what_a_function_calls() {
    let before = "app;eval;eval_add;eval;get 3011\napp;eval;eval_add 1012\n";
    let after = "app;eval;eval_retry;eval;eval_add;eval;get 1611\napp;eval;eval_retry;eval;eval_add 512\n\
                 app;eval;eval_add;eval;get 1407\napp;eval;eval_add 506\n";
    for page in compare(before, after, false) {
        assert!(page.contains("eval_retry with all that it calls +"), "{page}");
        assert!(!page.contains("all calls of eval "), "{page}");
    }
}
