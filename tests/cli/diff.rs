//! fg-diff: two profiles side by side.

use std::path::PathBuf;

use crate::support::{assert_golden, data, directory, run};

fn files(before: &str, after: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = directory();
    let (a, b) = (folder.path().join("before"), folder.path().join("after"));
    std::fs::write(&a, before).unwrap();
    std::fs::write(&b, after).unwrap();
    (folder, a, b)
}

fn diff(options: &[&str], before: &str, after: &str) -> String {
    let (_folder, before, after) = files(before, after);
    let arguments = options.iter().map(PathBuf::from).chain([before, after]);
    run("fg-diff", arguments, b"").ok().text()
}

#[test]
fn every_stack_of_either_stands_once_with_both_weights() {
    let sides = [data("diff/before.folded"), data("diff/after.folded")];
    assert_golden("diff/plain.folded", &run("fg-diff", &sides, b"").ok().stdout);
    for options in ["-n", "-s", "-ns", "--normalize", "--strip-hex"] {
        let arguments = [PathBuf::from(options)].into_iter().chain(sides.clone());
        let out = run("fg-diff", arguments, b"").ok();
        let name = options.trim_start_matches('-').replace("normalize", "n").replace("strip-hex", "s");
        assert_golden(&format!("diff/{name}.folded"), &out.stdout);
    }
}

#[test]
fn normalizing_keeps_the_sum_where_each_line_alone_would_lose_its_rest() {
    let out = diff(&["-n"], "a;b 10\na;c 1000001\n", "a;b 3\n");
    assert_eq!(out, "a;b 0 3\na;c 3 0\n");
    assert_eq!(diff(&["-n"], "a 1\nb 1\nc 1\n", "a 4\n"), "a 1 4\nb 2 0\nc 1 0\n");
    assert_eq!(diff(&["-n"], "a 0.5\nb 0.25\n", "a 3\n"), "a 2 3\nb 1 0\n");
    assert_eq!(diff(&["-n"], "a 0.5\nb 1\n", "a 1\n"), "a 0.333333 1\nb 0.666667 0\n");
}

#[test]
fn a_profile_from_nothing_or_to_nothing() {
    assert_eq!(diff(&[], "", "a 1\n"), "a 0 1\n");
    assert_eq!(diff(&[], "a 1\n", ""), "a 1 0\n");
    assert_eq!(diff(&["-n"], "", "a 1\n"), "a 0 1\n");
    assert_eq!(diff(&["-n"], "", ""), "");
}

#[test]
fn one_side_may_be_standard_input() {
    let (_folder, before, _) = files("a 1\n", "");
    let out = run("fg-diff", [before.as_os_str(), "-".as_ref()], b"a 2\n").ok();
    assert_eq!(out.text(), "a 1 2\n");
    let twice = run("fg-diff", ["-", "-"], b"a 2\n");
    assert_eq!(twice.code(), 2);
    assert!(twice.stderr.contains("only once"), "{}", twice.stderr);
}

#[test]
fn half_a_comparison_is_none() {
    let (_folder, before, _) = files("a 1\n", "");
    let out = run("fg-diff", [before.as_os_str(), "/nonexistent/after".as_ref()], b"");
    assert_eq!((out.code(), out.text().as_str()), (1, ""));
    assert!(out.stderr.contains("/nonexistent/after: No such file"), "{}", out.stderr);
    let one = run("fg-diff", [before], b"");
    assert_eq!(one.code(), 2);
}

#[test]
fn a_comparison_is_not_compared_again() {
    let (_folder, before, after) = files("a 1 2\n", "a 1\n");
    let out = run("fg-diff", [&before, &after], b"");
    assert_eq!((out.code(), out.text().as_str()), (1, ""));
    assert!(out.stderr.contains("two weights a line"), "{}", out.stderr);
}
