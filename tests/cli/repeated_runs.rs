//! A run that is given twice makes noise look smaller than it is: all programs that compare runs notice.

use std::path::Path;

use crate::support::{Outcome, command, directory, run_command, tool};

/// The programs, each with the options with which it judges differences, and the one that only adds runs up.
const PROGRAMS: [(&str, &[&str]); 5] = [
    ("fg-diff", &["--significant"]),
    ("fg-diff", &[]),
    ("fg-csv", &[]),
    ("fg-check", &["--inclusive-growth=3%"]),
    ("fg-report", &[]),
];

fn compare(folder: &Path, (program, options): (&str, &[&str]), before: &[&str], after: &[&str]) -> Outcome {
    let mut command = command(tool(program));
    command.current_dir(folder).args(options).arg("--before").args(before).arg("--after").args(after);
    run_command(command, b"")
}

/// Writes a profile as a short recording has it: many stacks, most of them with few samples.
fn write_run(folder: &Path, name: &str, run: usize) {
    let stacks = (0..60).map(|number| {
        let samples = if number == 0 { 700 } else { 1 + (number * 7 + run * run * 5) % 4 };
        format!("app;main;f{};g{number} {samples}\n", number % 7)
    });
    std::fs::write(folder.join(name), stacks.collect::<String>()).unwrap();
}

#[test]
fn a_file_is_one_run_whatever_its_name() {
    let folder = directory();
    let path = folder.path();
    for (run, name) in ["b1", "b2", "a1", "a2"].into_iter().enumerate() {
        write_run(path, name, run);
    }
    std::os::unix::fs::symlink("b1", path.join("link")).unwrap();
    std::fs::hard_link(path.join("b1"), path.join("second")).unwrap();
    for program in PROGRAMS {
        for (before, after, message) in [
            (&["b1", "b1"][..], &["a1"][..], "--before: b1 is given twice; give each run once"),
            (&["b1", "b2", "./b1"], &["a1"], "--before: b1 and ./b1 are the same file;"),
            (&["b1", "link"], &["a1"], "--before: b1 and link are the same file;"),
            (&["b1", "second"], &["a1"], "--before: b1 and second are the same file;"),
            (&["b1", "b2"], &["a1", "a2", "a1"], "--after: a1 is given twice;"),
        ] {
            let outcome = compare(path, program, before, after);
            assert_eq!((outcome.code(), outcome.text().as_str()), (2, ""), "{outcome:?}");
            assert!(outcome.stderr.contains(message), "{outcome:?}");
        }
        let equal = compare(path, program, &["b1", "b2"], &["b1", "b2"]);
        assert_eq!(equal.code(), 0, "the sides may be equal: {equal:?}");
    }
}

#[test]
fn copies_of_a_short_recording_are_reported() {
    let folder = directory();
    let path = folder.path();
    for (run, name) in ["b1", "b2", "a1", "a2"].into_iter().enumerate() {
        write_run(path, name, run);
    }
    std::fs::copy(path.join("a1"), path.join("copy")).unwrap();
    let said = |outcome: &Outcome| outcome.stderr.clone() + &outcome.text().replace("\n          ", " ");
    for program in PROGRAMS {
        let repeated = compare(path, program, &["b1", "b2"], &["a1", "a2", "copy"]);
        assert!(said(&repeated).contains("two runs of one side are identical: 1 and 3 after;"), "{repeated:?}");
        let distinct = compare(path, program, &["b1", "b2"], &["a1", "a2"]);
        assert!(!said(&distinct).contains("identical"), "{distinct:?}");
    }
}
