//! Names with line numbers: an edit moves all lines below it, which is no change of the functions.

use std::path::{Path, PathBuf};

use crate::support::{directory, run};
use crate::verdicts::random::Random;

/// The functions of a file with their lines and the mean weights of these.
const FUNCTIONS: [(&str, &[(u32, f64)]); 4] = [
    ("tokenize", &[(4, 90.0), (5, 70.0)]),
    ("score", &[(9, 30.0), (10, 140.0), (11, 330.0)]),
    ("render", &[(14, 250.0)]),
    ("rare", &[(70, 1.0), (71, 1.0), (72, 1.0), (73, 1.0)]),
];

/// Returns a run of a script in which all lines have moved, and `score` costs `factor` times as much.
fn simulate(random: &mut Random, name: impl Fn(&str, u32) -> String, moved: u32, factor: f64) -> String {
    let mut text = String::new();
    for (function, lines) in FUNCTIONS {
        for (line, mean) in lines {
            let count = random.count(if function == "score" { mean * factor } else { *mean });
            let stack =
                [("main", 23), ("handle", 18), (function, *line)].map(|(name_, line)| name(name_, line + moved));
            if count > 0 {
                text.push_str(&format!("app;run (io.py:7);{} {count}\n", stack.join(";")));
            }
        }
    }
    text
}

fn python(function: &str, line: u32) -> String {
    format!("{function} (app.py:{line})")
}

/// Writes runs of two sides, and returns the arguments that compare them.
fn write_runs(folder: &Path, runs: usize, mut simulate: impl FnMut(&str) -> String) -> Vec<PathBuf> {
    let mut arguments = Vec::new();
    for side in ["before", "after"] {
        arguments.push(format!("--{side}").into());
        for number in 0..runs {
            let path = folder.join(format!("{side}.{number}"));
            std::fs::write(&path, simulate(side)).unwrap();
            arguments.push(path);
        }
    }
    arguments
}

/// Runs a program with options on files.
fn compare(program: &str, options: &[&str], files: &[PathBuf]) -> crate::support::Outcome {
    run(program, options.iter().map(PathBuf::from).chain(files.iter().cloned()), b"")
}

const MESSAGE: &str = "lines of app.py are left out: they moved";

#[test]
fn moved_lines_are_no_change() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for runs in [1, 3] {
        let folder = directory();
        let files = write_runs(folder.path(), runs, |side| {
            simulate(&mut random, python, if side == "before" { 0 } else { 3 }, 1.0)
        });
        let page = compare("fg-report", &[], &files).ok().text();
        assert!(page.contains(&format!("names     {MESSAGE}\n")) && page.contains("nothing changed"), "{page}");
        let exact = compare("fg-report", &["--exact-names"], &files).ok().text();
        assert!(!exact.contains(MESSAGE) && exact.contains("score (app.py:14)"), "{exact}");
        let diff = compare("fg-diff", &["--significant", "--exit-code"], &files).ok();
        let message = format!("{MESSAGE}; --exact-names compares names as they are\n");
        assert_eq!(diff.stderr, format!("fg-diff: {message}"));
        assert!(diff.text().contains("app;run (io.py:7);main (app.py);handle (app.py);score (app.py) "), "{diff:?}");
        let check = compare("fg-check", &["--growth=5%", "--inclusive-growth=5%"], &files);
        assert!(check.code() == 0 && check.stderr.contains(&message), "{check:?}");
        let csv = compare("fg-csv", &["--sort=function"], &files).ok().text();
        assert!(csv.contains("score (app.py),") && !csv.contains("app.py:"), "{csv}");
        // Sums of runs have no lines either, but two files keep them. A report reads them without.
        let plain = compare("fg-diff", &[], &files).ok().text();
        assert_eq!(plain.contains("score (app.py:14) "), runs == 1, "{plain}");
        let page = run("fg-report", [""; 0], plain.as_bytes()).ok().text();
        assert!(page.contains("nothing changed") && page.contains(MESSAGE) == (runs == 1), "{page}");
    }
}

#[test]
fn a_slower_function_in_a_file_whose_lines_moved_is_named() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for runs in [1, 3] {
        let folder = directory();
        let files = write_runs(folder.path(), runs, |side| match side {
            "before" => simulate(&mut random, python, 0, 1.0),
            _ => simulate(&mut random, python, 1, 1.3),
        });
        let page = compare("fg-report", &[], &files).ok().text();
        assert!(page.contains("1 grew") && page.contains("score (app.py)"), "{page}");
        let check = compare("fg-check", &["--inclusive-growth=score=5%"], &files);
        assert_eq!(check.code(), 1, "{check:?}");
    }
}

#[test]
fn lines_of_all_profilers_are_left_out() {
    let mut random = Random(0x853c_49e6_748f_ea9b);
    let forms: [fn(&str, u32) -> String; 7] = [
        |name, line| format!("Shop#{name} - /srv/app.py:{line}"),
        |name, line| format!("shop::{name}:app.rs:{line}"),
        |name, line| format!("JS:*{name} /srv/app.js:{line}:9"),
        |name, line| format!("{name} (https://example.org:8080/app.js:{line}:9)"),
        |name, line| format!("main.{name} /src/app.go:{line}"),
        |name, line| format!("/srv/app.py:{name}:{line}"),
        |name, line| format!("acme.Shop.{name}:{line}_[j]"),
    ];
    for form in forms {
        let folder = directory();
        let files = write_runs(folder.path(), 1, |side| {
            simulate(&mut random, form, if side == "before" { 20 } else { 19 }, 1.0)
        });
        let diff = compare("fg-diff", &["--significant", "--exit-code"], &files);
        assert!(diff.code() == 0 && diff.stderr.contains(" are left out: they moved; "), "{}: {diff:?}", form("f", 1));
    }
}

/// `FG_LINE_CASES` is the number of comparisons, 10 by default.
#[test]
fn profiles_of_the_same_code_keep_their_lines() {
    let cases: u64 = std::env::var("FG_LINE_CASES").map_or(10, |cases| cases.parse().unwrap());
    let mut random = Random(0x1405_7b7e_f767_814f);
    for case in 0..cases {
        let folder = directory();
        let factor = if case % 2 == 0 { 1.0 } else { 1.5 };
        let runs = if case % 3 == 0 { 3 } else { 1 };
        let files = write_runs(folder.path(), runs, |side| {
            simulate(&mut random, python, 0, if side == "before" { 1.0 } else { factor })
        });
        let csv = compare("fg-csv", &[], &files).ok();
        assert!(csv.stderr.is_empty() && csv.text().contains("score (app.py:11),"), "{csv:?}");
    }
}
