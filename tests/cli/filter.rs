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

/// The worked example of pprof's semantics: one stack that recurs.
fn worked(options: &[&str]) -> String {
    run("fg-filter", options, b"main;A;B;C;B;D 5\n").ok().text()
}

#[test]
fn each_verb_does_to_the_worked_example_what_pprof_does() {
    let whole = "main;A;B;C;B;D 5\n";
    for (options, expected) in [
        (&["--focus=C"][..], whole),
        (&["--focus=Z"], ""),
        (&["--ignore=C"], ""),
        (&["--ignore=Z"], whole),
        (&["--hide=B"], "main;A;C;D 5\n"),
        (&["--hide=D"], "main;A;B;C;B 5\n"),
        (&["--hide=."], ""),
        (&["--show=A|D"], "A;D 5\n"),
        (&["--show=Z"], ""),
        (&["--show-from=B"], "B;C;B;D 5\n"),
        (&["--show-from=Z"], ""),
        (&["--prune-from=B"], "main;A;B;C;B 5\n"),
        (&["--prune-from=Z"], whole),
        // Focus sees what is hidden later; show-from does not.
        (&["--hide=B", "--focus=B"], "main;A;C;D 5\n"),
        (&["--hide=B", "--show-from=B"], ""),
        (&["--show-from=B", "--hide=^B$", "--prune-from=C"], ""),
        (&["--show-from=A", "--hide=^B$", "--prune-from=C"], "A;C 5\n"),
        (&["--hide=C", "--collapse-recursion"], "main;A;B;D 5\n"),
        (&["--collapse-recursion=all"], "main;A;B;C;D 5\n"),
        (&["--collapse-recursion=adjacent"], whole),
        (&["--comm=^main$"], whole),
        (&["--comm=A"], ""),
    ] {
        assert_eq!(worked(options), expected, "{options:?}");
    }
}

#[test]
fn prune_from_does_not_see_arguments() {
    let out = run("fg-filter", ["--prune-from=Arg|two"], b"main;one(Arg);three 1\nmain;two(int);three 2\n").ok();
    assert_eq!(out.text(), "main;one(Arg);three 1\nmain;two(int) 2\n");
}

#[test]
fn names_are_changed_before_anything_is_judged() {
    let kernel = b"sh-1/2;read_[k];f<int>_[k] 1\nsh-1/3;read_[k];f<char>_[k] 2\n";
    for (options, expected) in [
        (&["--strip-suffix"][..], "sh-1/2;read;f<int> 1\nsh-1/3;read;f<char> 2\n"),
        (&["--merge-threads", "--shorten"], "sh-*/*;read_[k];f_[k] 3\n"),
        (&["--shorten=1", "--rename=<.*>=<_>", "--rename=^sh-.*=sh"], "sh;read_[k];f<_>_[k] 3\n"),
        (&["--rename=f<int>=g", "--focus=g"], "sh-1/2;read_[k];g_[k] 1\n"),
        (&["--rename=.*="], "[unknown];[unknown];[unknown] 3\n"),
    ] {
        assert_eq!(run("fg-filter", options, kernel).ok().text(), expected, "{options:?}");
    }
}

#[test]
fn what_says_nothing_is_taken_out() {
    let out =
        run("fg-filter", ["--drop-unknown", "--no-delimiters"], b"a;-;[unknown];b;--;[unknown]_[k] 1\n[unknown] 2\n");
    assert_eq!(out.ok().text(), "a;b 1\n");
}

#[test]
fn light_stacks_are_dropped_and_the_heaviest_kept() {
    let stacks = b"a 1\nb 10\nc 5\nd 5\ne 29\n";
    let kept = |options: &[&str]| run("fg-filter", options, stacks).ok().text();
    assert_eq!(kept(&["--min", "5"]), "b 10\nc 5\nd 5\ne 29\n");
    assert_eq!(kept(&["--min", "20%"]), "b 10\ne 29\n");
    assert_eq!(kept(&["--top", "3"]), "b 10\nc 5\ne 29\n");
    assert_eq!(kept(&["--top", "1", "--ignore", "e"]), "b 10\n");
    assert_eq!(run("fg-filter", ["--top=1"], b"a 9 1\nb 2 8\n").ok().text(), "a 9 1\n");
    let said = run("fg-filter", ["-v", "--top", "1"], stacks).ok().stderr;
    assert!(said.contains("kept 29 + dropped 21 = 50"), "{said}");
    assert_eq!(run("fg-filter", ["--min", "5x"], stacks).code(), 2);
}
