//! fg-filter: which stacks are kept.

use crate::support::{assert_golden, data, run};

const EXAMPLE: &[u8] = b"main;A;B;C;B;D 5\nmain;A;E 2\nother;C 1\nother;F 4\n";

fn filter(options: &[&str]) -> String {
    run("fg-filter", options, EXAMPLE).ok().text()
}

#[test]
fn focus_keeps_a_stack_with_a_match_anywhere_unchanged() {
    assert_eq!(filter(&["--focus", "C"]), "main;A;B;C;B;D 5\nother;C 1\n");
    assert_eq!(filter(&["--focus=^main$"]), "main;A;B;C;B;D 5\nmain;A;E 2\n");
    assert_eq!(filter(&["--focus", "^ain"]), "");
}

#[test]
fn ignore_drops_a_stack_with_a_match_and_beats_focus() {
    assert_eq!(filter(&["--ignore", "C"]), "main;A;E 2\nother;F 4\n");
    assert_eq!(filter(&["--focus", "main", "--ignore", "C"]), "main;A;E 2\n");
    assert_eq!(filter(&["--focus", "C", "--ignore", "C"]), "");
}

#[test]
fn without_a_verb_it_is_a_merge() {
    assert_eq!(filter(&[]), "main;A;B;C;B;D 5\nmain;A;E 2\nother;C 1\nother;F 4\n");
}

#[test]
fn kept_and_dropped_weights_are_said_and_add_up() {
    let said = run("fg-filter", ["-v", "--focus", "C"], EXAMPLE).ok().stderr;
    assert!(said.contains("kept 6 + dropped 6 = 12"), "{said}");
    let said = run("fg-filter", ["-v", "--ignore", "b"], b"a 1 2\na;b 3 4\n").ok().stderr;
    assert!(said.contains("kept 1 2 + dropped 3 4 = 4 6"), "{said}");
}

#[test]
fn a_pattern_that_matches_nothing_is_said() {
    let said = run("fg-filter", ["--focus", "main", "--ignore", "Zebra"], EXAMPLE).ok().stderr;
    assert!(said.contains("--ignore Zebra: matches no frame"), "{said}");
    assert!(!said.contains("--focus"), "{said}");
}

#[test]
fn a_pattern_sees_bytes_and_suffixes() {
    let odd = b"a;b\xff_[k] 1\na;c 2\n";
    assert_eq!(run("fg-filter", ["--focus", r"_\[k]$"], odd).ok().stdout, b"a;b\xff_[k] 1\n");
    assert_eq!(run("fg-filter", ["--focus", r"(?-u:\xff)"], odd).ok().stdout, b"a;b\xff_[k] 1\n");
}

#[test]
fn a_bad_pattern_is_a_wrong_command_line() {
    let out = run("fg-filter", ["--focus", "("], EXAMPLE);
    assert_eq!((out.code(), out.text().as_str()), (2, ""));
    assert!(out.stderr.contains("--focus"), "{}", out.stderr);
    assert!(out.stderr.contains("unclosed group"), "{}", out.stderr);
}

#[test]
fn a_differential_profile_stays_one() {
    let out = run("fg-filter", ["--ignore".as_ref(), "gone".as_ref(), data("diff/plain.folded").as_os_str()], b"").ok();
    assert_golden("filter/differential.folded", &out.stdout);
}
