//! Cost that only moved between functions is no growth, and names of copies are one: fg-bench, and the programs that judge the
//! runs that it leaves.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::{Outcome, command, directory, run_command, tool};
use crate::verdicts::random::Random;

/// Stacks with the mean weight of a run before and after.
type Stacks<'a> = &'a [(&'a str, f64, f64)];

const PAIRS: usize = 3;

/// Writes the runs of both sides to files `b.1`, `a.1` and so on. `name` changes the stacks of the side after.
fn write_runs(folder: &Path, stacks: Stacks<'_>, seed: u64, name: impl Fn(&str) -> String) {
    let mut random = Random(seed);
    for number in 1..=PAIRS {
        let (mut before, mut after) = (String::new(), String::new());
        for (stack, weight_before, weight_after) in stacks {
            let mut count = |mean: f64| if mean == 0.0 { 0 } else { random.count(mean) };
            writeln!(before, "{stack} {}", count(*weight_before)).unwrap();
            writeln!(after, "{} {}", name(stack), count(*weight_after)).unwrap();
        }
        std::fs::write(folder.join(format!("b.{number}")), before).unwrap();
        std::fs::write(folder.join(format!("a.{number}")), after).unwrap();
    }
}

/// Runs fg-bench on the runs in files.
fn bench(folder: &Path) -> Outcome {
    let measure = "n=$(($(cat n.$FG_SIDE 2> /dev/null || echo 0) + 1)); echo $n > n.$FG_SIDE; cat $FG_SIDE.$n";
    let mut command = command(tool("fg-bench"));
    command.current_dir(folder).args([&format!("--pairs={PAIRS}"), "--before=x", "--after=x", "--measure", measure]);
    run_command(command, b"")
}

/// Runs a program on the runs that fg-bench left.
fn judge(folder: &Path, program: &str, options: &[&str]) -> Outcome {
    let mut command = command(tool(program));
    let files =
        |side: &str| (1..=PAIRS).map(|number| format!("fg-bench.runs/{side}.{number:04}.folded")).collect::<Vec<_>>();
    command.current_dir(folder).args(options).arg("--before").args(files("before")).arg("--after").args(files("after"));
    run_command(command, b"")
}

/// Returns the exit statuses of fg-bench and fg-check, which must agree, and what fg-bench prints.
fn verdict(stacks: Stacks<'_>) -> (i32, String) {
    let folder = directory();
    write_runs(folder.path(), stacks, 0x9e37_79b9_7f4a_7c15, str::to_owned);
    let benched = bench(folder.path());
    let checked = judge(folder.path(), "fg-check", &["--growth=2%", "--inclusive-growth=2%"]);
    assert_eq!(benched.code(), checked.code(), "{benched:?} {checked:?}");
    // The sums are judged alike, if they can be judged.
    let compared = judge(folder.path(), "fg-diff", &[]).ok().stdout;
    let mut check = command(tool("fg-check"));
    check.args(["--growth=2%", "--inclusive-growth=2%"]);
    let sums = run_command(check, &compared);
    assert!(sums.code() <= benched.code(), "{sums:?}");
    (benched.code(), benched.text())
}

const OTHERS: [(&str, f64, f64); 6] = [
    ("app;main;read", 1500.0, 1500.0),
    ("app;main;sort;swap", 900.0, 900.0),
    ("app;main;sort;less", 1100.0, 1100.0),
    ("app;main;write", 700.0, 700.0),
    ("app;main;hash", 1200.0, 1200.0),
    ("app;main;init", 400.0, 400.0),
];

#[test]
fn moved_cost_is_no_growth() {
    let moved: [(&str, Stacks<'_>); 5] = [
        ("extracted", &[("app;main;parse", 2000.0, 1300.0), ("app;main;parse;skip", 0.0, 700.0)]),
        (
            "wrapped",
            &[
                ("app;main;parse", 0.0, 0.0),
                ("app;main;parse;get", 2000.0, 0.0),
                ("app;main;parse;try;get", 0.0, 2000.0),
            ],
        ),
        (
            "renamed",
            &[
                ("app;main;parse", 1300.0, 0.0),
                ("app;main;parse;get", 700.0, 0.0),
                ("app;main;parse2", 0.0, 1300.0),
                ("app;main;parse2;get", 0.0, 700.0),
            ],
        ),
        ("inlined", &[("app;main;parse", 1300.0, 2000.0), ("app;main;parse;skip", 700.0, 0.0)]),
        ("another thread", &[("worker;main;parse", 2000.0, 0.0), ("pool;main;parse", 0.0, 2000.0)]),
    ];
    for (what, stacks) in moved {
        let (code, text) = verdict(&[&OTHERS[..], stacks].concat());
        assert_eq!(code, 0, "{what}: {text}");
        assert!(!text.starts_with("growth"), "{what}: {text}");
    }
}

#[test]
fn a_new_cost_is_growth() {
    let grown: [(&str, Stacks<'_>, &str); 5] = [
        (
            "new function",
            &[("app;main;parse", 2000.0, 2000.0), ("app;main;parse;validate", 0.0, 400.0)],
            "parse: self +",
        ),
        (
            "extracted and slower",
            &[("app;main;parse", 2000.0, 1300.0), ("app;main;parse;skip", 0.0, 1100.0)],
            "parse: self +",
        ),
        (
            "inlined and slower",
            &[("app;main;parse", 1300.0, 2400.0), ("app;main;parse;skip", 700.0, 0.0)],
            "parse: self +",
        ),
        ("new thread", &[("app;main;parse", 2000.0, 2000.0), ("logger;run", 0.0, 400.0)], "[unmatched]: self +"),
        (
            "more calls by a function of both sides",
            &[("app;main;parse", 2000.0, 0.0), ("app;main;again;parse", 15.0, 2000.0)],
            "again: inclusive +",
        ),
    ];
    for (what, stacks, expected) in grown {
        let (code, text) = verdict(&[&OTHERS[..], stacks].concat());
        assert!(code == 1 && text.contains(expected), "{what}: {text}");
    }
    let (_, text) = verdict(&[&OTHERS[..], grown[0].1].concat());
    assert!(text.contains("; new: validate\n"), "{text}");
}

/// Returns what the programs say of runs: fg-bench, fg-check, fg-diff, fg-csv and fg-report.
fn all_verdicts(folder: &Path) -> [String; 5] {
    let benched = bench(folder);
    let show = |outcome: Outcome| format!("{} {}", outcome.code(), outcome.text());
    let report = judge(folder, "fg-report", &["--json", "--own=."]).ok();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let changes = ["grew", "shrank"].map(|key| report[key].clone());
    let verdict = &report["verdict"];
    [
        show(benched),
        show(judge(folder, "fg-check", &["--growth=2%", "--inclusive-growth=2%"])),
        show(judge(folder, "fg-diff", &["--significant", "--exit-code"])),
        show(judge(folder, "fg-csv", &["--sort=function"])),
        format!("{verdict} {changes:?}"),
    ]
}

/// The copies are compared as one, whatever the names of the program and its folder are: all programs say what they say of runs
/// with equal names.
#[test]
fn copies_are_one_program_for_all() {
    let cases: u64 = std::env::var("FG_COPY_CASES").map_or(3, |cases| cases.parse().unwrap());
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let names: [(&str, &str, &str); 4] = [
        ("python3", "old/app.py", "new/app.py"),
        ("old/app.py", "old/app.py", "new/app.py"),
        ("app-1.2", "app-1.2", "app-1.3"),
        ("main_a", "main_a", "main_b"),
    ];
    for case in 0..cases {
        for (root, from, to) in names {
            let factor = if random.uniform() < 0.5 { 1.0 } else { 1.3 };
            // Without a folder, only the program has another name.
            let file = if from.contains('/') { from } else { "app.py" };
            let functions: Vec<(String, f64)> = (0..8)
                .map(|number| match number % 3 {
                    0 => (format!("{root};<module>:{file}:3;f{number}:{file}:{number}"), 900.0),
                    1 => (format!("{root};<module>:{file}:3;f{number} ({file})"), 500.0 + 400.0 * random.uniform()),
                    _ => (format!("{root};<module>:{file}:3;f{number} ({file});g{number}"), 700.0 * random.uniform()),
                })
                .collect();
            let stacks: Vec<(&str, f64, f64)> = functions
                .iter()
                .enumerate()
                .map(|(number, (stack, mean))| (stack.as_str(), *mean, if number == 4 { factor * mean } else { *mean }))
                .collect();
            let rename = |stack: &str| stack.replace(from, to);
            let (equal, copies) = (directory(), directory());
            let seed = random.0;
            write_runs(equal.path(), &stacks, seed, str::to_owned);
            write_runs(copies.path(), &stacks, seed, rename);
            // The names after are those of the comparison.
            for number in 1..=PAIRS {
                let path = equal.path().join(format!("a.{number}"));
                std::fs::write(&path, rename(&std::fs::read_to_string(&path).unwrap())).unwrap();
                let path = equal.path().join(format!("b.{number}"));
                std::fs::write(&path, rename(&std::fs::read_to_string(&path).unwrap())).unwrap();
            }
            let (expected, found) = (all_verdicts(equal.path()), all_verdicts(copies.path()));
            assert_eq!(found, expected, "case {case}: {root} {from} {to}");
            let said = judge(copies.path(), "fg-check", &["--growth=2%"]).stderr;
            assert!(said.contains(" is compared as "), "{said}");
            let exact = judge(copies.path(), "fg-csv", &["--exact-names"]).ok();
            assert!(exact.stderr.is_empty() && exact.text().contains(from), "{exact:?}");
        }
    }
}

/// Returns the status and the output of [`run_beside_noise`].
fn check_beside_noise(
    rule: &str,
    main: [(u32, u32); 3],
    before: &[(&str, u32)],
    after: &[(&str, u32)],
) -> (i32, String) {
    let outcome = run_beside_noise(rule, main, before, after);
    (outcome.code(), outcome.text())
}

/// Runs fg-check on three runs a side of a `main` that varies, with other functions in the runs before and after.
fn run_beside_noise(rule: &str, main: [(u32, u32); 3], before: &[(&str, u32)], after: &[(&str, u32)]) -> Outcome {
    let folder = directory();
    let write = |name: &str, main: u32, others: &[(&str, u32)], run: usize| {
        let mut text = format!("app;main {main}\n");
        for number in 0..20 {
            writeln!(text, "app;main;f{number} {}", 68 + (number * 7 + main) % 5).unwrap();
        }
        for (function, weight) in others {
            writeln!(text, "app;main;{function} {}", [*weight, weight - weight / 40, weight + weight / 40][run])
                .unwrap();
        }
        std::fs::write(folder.path().join(name), text).unwrap();
    };
    for (run, (main_before, main_after)) in main.into_iter().enumerate() {
        write(&format!("b{run}"), main_before, before, run);
        write(&format!("a{run}"), main_after, after, run);
    }
    let mut command = command(tool("fg-check"));
    command.current_dir(folder.path()).arg(rule);
    command.args(["--before", "b0", "b1", "b2", "--after", "a0", "a1", "a2"]);
    run_command(command, b"")
}

const RULES: [&str; 4] = ["--growth=2%", "--inclusive-growth=2%", "--edge-growth=2%", "--category-growth=2%"];

/// A caller that varies does not hide what it calls now, be it one function or several small ones.
#[test]
fn new_functions_fail_although_their_caller_varies() {
    let main = [(620, 570), (560, 640), (610, 600)];
    for rule in RULES {
        let (code, text) = check_beside_noise(rule, main, &[], &[("validate", 82)]);
        assert!(code == 1 && text.contains("validate: +4.11%"), "{rule}: {text}");
        assert_eq!(
            check_beside_noise(rule, main, &[], &[("validate", 20)]),
            (0, String::new()),
            "{rule}: below the limit"
        );
        let small = [("new_1", 19), ("new_2", 23), ("new_3", 20), ("new_4", 22)];
        let (code, text) = check_beside_noise(rule, main, &[], &small);
        // The category is all there is, and grew by more than noise itself.
        let expected = if rule == RULES[3] { "category-growth other: +4." } else { " and 1 more: +4." };
        assert!(code == 1 && text.contains(expected), "{rule}: {text}");
        assert!(rule == RULES[3] || text.contains("[new functions] ") && text.contains("new_2, "), "{rule}: {text}");
    }
}

/// A caller that varies by as much as the new function may have lost that cost.
#[test]
fn new_functions_that_may_be_moved_cost_are_named() {
    let main = [(610, 520), (500, 690), (700, 640)];
    for rule in RULES {
        let outcome = run_beside_noise(rule, main, &[], &[("validate", 82)]);
        assert_eq!(outcome.code(), 0, "{rule}: {outcome:?}");
        let said = "validate: +4.09% of all before (0 -> 246), limit 2%; most in app;main;validate";
        assert!(outcome.stderr.contains(said), "{rule}: {outcome:?}");
        assert!(outcome.stderr.contains("exceeded, but within noise"), "{rule}: {outcome:?}");
    }
}

/// What a new function costs is what it and its callers have grown by, if that is less.
#[test]
fn the_growth_of_new_code_is_net_of_its_callers() {
    let main = [(620, 520), (560, 590), (610, 550)];
    let (code, text) = check_beside_noise("--growth=2%", main, &[], &[("validate", 160)]);
    let said = "growth validate with what it may replace: +5.84% of all before (1790 -> 2140), more than 2%; most in app;main;validate (0 -> 480)";
    assert!(code == 1 && text.contains(said), "{text}");
}

/// Work that moves to a new thread counts as that of the functions that do it, whoever calls them.
#[test]
fn work_that_moves_to_a_new_thread_has_not_grown() {
    let folder = directory();
    // Mean growth of `parse` by 3 % of all, within its noise.
    for (run, (before, after)) in [(250, 310), (300, 290), (350, 390)].into_iter().enumerate() {
        let text = |caller: &str, parse: u32| {
            format!("{caller};parse {parse}\n{caller};sort {}\napp;main;print 400\n", 600 - parse)
        };
        std::fs::write(folder.path().join(format!("b{run}")), text("app;main", before)).unwrap();
        std::fs::write(folder.path().join(format!("a{run}")), text("pool;work", after)).unwrap();
    }
    for rule in RULES {
        let mut command = command(tool("fg-check"));
        command.current_dir(folder.path()).arg(rule);
        command.args(["--before", "b0", "b1", "b2", "--after", "a0", "a1", "a2"]);
        let outcome = run_command(command, b"");
        assert_eq!((outcome.code(), outcome.text()), (0, String::new()), "{rule}: {outcome:?}");
    }
}

/// The noise of callers makes no growth of what was extracted from them.
#[test]
fn extracted_functions_beside_noise_have_not_grown() {
    let main = [(610, 510), (500, 500), (700, 620)];
    for rule in RULES {
        let extracted = check_beside_noise(rule, main, &[], &[("helper", 120)]);
        assert_eq!(extracted, (0, String::new()), "{rule}");
    }
}

/// New functions whose callers are many grow as a whole.
#[test]
fn new_functions_of_many_callers_add_up() {
    let check = |rule: &str, own: u32| {
        let folder = directory();
        for (side, new) in [("b", 0), ("a", 9)] {
            for run in 0..3 {
                let lines = (0..20).map(|number| {
                    let vary = |weight: u32, by: u32| weight + (number * 7 + run * by + new) % 3;
                    let own = if new > 0 { own } else { 70 };
                    let call = if new > 0 { format!("main;f{number};log {}\n", vary(new, 5)) } else { String::new() };
                    format!("main;f{number} {}\n{call}", vary(own, 11))
                });
                std::fs::write(folder.path().join(format!("{side}{run}")), lines.collect::<String>()).unwrap();
            }
        }
        let mut command = command(tool("fg-check"));
        command.current_dir(folder.path()).arg(rule);
        command.args(["--before", "b0", "b1", "b2", "--after", "a0", "a1", "a2"]);
        let outcome = run_command(command, b"");
        (outcome.code(), outcome.text())
    };
    let (code, text) = check("--growth=2%", 70);
    assert!(code == 1 && text.contains("growth log: +"), "{text}");
    assert_eq!(check("--growth=2%", 61).0, 0, "extracted from all of its callers");
}

/// A function that replaces another one has grown only as far as it costs more.
#[test]
fn a_replaced_function_beside_noise_has_not_grown() {
    let main = [(610, 570), (570, 630), (600, 610)];
    for rule in RULES {
        let replaced = check_beside_noise(rule, main, &[("parse_v1", 100)], &[("parse_v2", 102)]);
        assert_eq!(replaced, (0, String::new()), "{rule}");
        let (code, text) = check_beside_noise(rule, main, &[("parse_v1", 100)], &[("parse_v2", 180)]);
        assert!(code == 1 && (rule == RULES[3] || text.contains("parse_v2: +")), "{rule}: {text}");
    }
}

/// A function of which a part becomes another one has callers that cost as much as before.
#[test]
fn a_divided_function_is_no_growth_with_callees() {
    let diff = b"main;g;a 1000000 400000\nmain;g;new 0 600000\nmain;b 2000000 2000000\n";
    for rule in ["--inclusive-growth=0%", "--edge-growth=0%"] {
        let mut command = command(tool("fg-check"));
        command.args(["--exact", rule]);
        let outcome = run_command(command, diff);
        assert_eq!((outcome.code(), outcome.text()), (0, String::new()), "{rule}");
    }
}
