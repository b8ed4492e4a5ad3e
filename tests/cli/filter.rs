//! fg-filter: its verbs and their order.

use crate::support::{assert_golden, data, directory, run};

const EXAMPLE: &[u8] = b"main;A;B;C;B;D 5\nmain;A;E 2\nother;C 1\nother;F 4\n";

fn filter(options: &[&str]) -> String {
    run("fg-filter", options, EXAMPLE).ok().text()
}

#[test]
fn focus_keeps_stacks_with_a_match() {
    assert_eq!(filter(&["--focus", "C"]), "main;A;B;C;B;D 5\nother;C 1\n");
    assert_eq!(filter(&["--focus=^main$"]), "main;A;B;C;B;D 5\nmain;A;E 2\n");
    assert_eq!(filter(&["--focus", "^ain"]), "");
}

#[test]
fn ignore_drops_stacks_with_a_match_and_overrides_focus() {
    assert_eq!(filter(&["--ignore", "C"]), "main;A;E 2\nother;F 4\n");
    assert_eq!(filter(&["--focus", "main", "--ignore", "C"]), "main;A;E 2\n");
    assert_eq!(filter(&["--focus", "C", "--ignore", "C"]), "");
}

#[test]
fn merges_stacks_without_verbs() {
    assert_eq!(filter(&[]), "main;A;B;C;B;D 5\nmain;A;E 2\nother;C 1\nother;F 4\n");
}

#[test]
fn verbose_reports_kept_and_dropped_weights() {
    let message = run("fg-filter", ["-v", "--focus", "C"], EXAMPLE).ok().stderr;
    assert!(message.contains("kept 6 + dropped 6 = 12"), "{message}");
    let message = run("fg-filter", ["-v", "--ignore", "b"], b"a 1 2\na;b 3 4\n").ok().stderr;
    assert!(message.contains("kept 1 2 + dropped 3 4 = 4 6"), "{message}");
}

#[test]
fn reports_a_pattern_without_matches() {
    let message = run("fg-filter", ["--focus", "main", "--ignore", "Zebra"], EXAMPLE).ok().stderr;
    assert!(message.contains("--ignore Zebra: no frame matches"), "{message}");
    assert!(!message.contains("--focus"), "{message}");
}

/// Each option with a pattern says in one line that it matches nothing.
#[test]
fn all_patterns_without_matches_are_reported() {
    let folder = directory();
    let profile = folder.path().join("profile");
    std::fs::write(&profile, "main;f 5\nmain;g 3\n").unwrap();
    let profile = profile.to_str().unwrap();
    for (program, options, unmatched) in [
        ("fg-filter", &["--rename", "f=h", "--rename=Zebra=x"][..], "--rename Zebra=x: no frame matches"),
        ("fg-filter", &["--split", "::"], "--split ::: no frame matches"),
        ("fg-filter", &["--root", "^Zebra"], "--root ^Zebra: no frame matches"),
        ("fg-filter", &["--hide", "Zebra"], "--hide Zebra: no frame matches"),
        ("fg-filter", &["--show", "Zebra"], "--show Zebra: no frame matches"),
        ("fg-filter", &["--show-from", "Zebra"], "--show-from Zebra: no frame matches"),
        ("fg-filter", &["--prune-from", "Zebra"], "--prune-from Zebra: no frame matches"),
        ("fg-diff", &["--rename", "f=h", "--rename=Zebra=x", profile], "--rename Zebra=x: no frame matches"),
        ("fg-report", &["--own", "Zebra"], "--own Zebra: no frame matches"),
        ("fg-check", &["--self", "Zebra=5%"], "self Zebra: matches no frame"),
    ] {
        let stderr = run(program, options.iter().chain(&[profile]), b"").ok().stderr;
        assert!(stderr.contains(unmatched) && stderr.lines().count() == 1, "{program} {options:?}: {stderr}");
    }
    assert_eq!(run("fg-filter", ["--rename=f=h", "--split=a", profile], b"").ok().stderr, "");
    assert_eq!(run("fg-report", ["--own=^f$", profile], b"").ok().stderr, "");
}

#[test]
fn says_that_no_stack_is_left() {
    for options in [["--hide", "."], ["--ignore", "f|g"], ["--min", "6"]] {
        let done = run("fg-filter", options, b"main;f 5\nmain;g 3\n").ok();
        assert!(done.stdout.is_empty(), "{options:?}");
        assert!(done.stderr.contains("no stack is left") && done.stderr.lines().count() == 1, "{}", done.stderr);
    }
    assert_eq!(run("fg-filter", ["--hide", "main"], b"main;f 5\n").ok().stderr, "");
}

#[test]
fn says_how_much_weight_has_no_frame_left() {
    let profile = b"b 500\na;c 3\n[unknown] 40\n--;- 9\n";
    for (option, weight) in [("--hide=^b$", "500"), ("--drop-unknown", "40"), ("--no-delimiters", "9")] {
        let outcome = run("fg-filter", [option], profile).ok();
        let message = format!("fg-filter: stacks with weight {weight} are left out: they have no frame left\n");
        assert_eq!(outcome.stderr, message, "{option}");
    }
    let outcome = run("fg-filter", ["--hide=^b$"], b"b 5 6\na;b 1 2\n").ok();
    assert!(outcome.stderr.contains("weight 5 6 are left out"), "{outcome:?}");
    // These options select stacks.
    for option in ["--show=b", "--show-from=b", "--ignore=b", "--focus=b"] {
        assert_eq!(run("fg-filter", [option], profile).ok().stderr, "", "{option}");
    }
}

#[test]
fn patterns_match_bytes_and_suffixes() {
    let odd = b"a;b\xff_[k] 1\na;c 2\n";
    assert_eq!(run("fg-filter", ["--focus", r"_\[k]$"], odd).ok().stdout, b"a;b\xff_[k] 1\n");
    assert_eq!(run("fg-filter", ["--focus", r"(?-u:\xff)"], odd).ok().stdout, b"a;b\xff_[k] 1\n");
}

#[test]
fn rejects_an_invalid_pattern() {
    let out = run("fg-filter", ["--focus", "("], EXAMPLE);
    assert_eq!((out.code(), out.text().as_str()), (2, ""));
    assert!(out.stderr.contains("--focus"), "{}", out.stderr);
    assert!(out.stderr.contains("unclosed group"), "{}", out.stderr);
}

#[test]
fn filters_a_comparison() {
    let out = run("fg-filter", ["--ignore".as_ref(), "gone".as_ref(), data("diff/plain.folded").as_os_str()], b"").ok();
    assert_golden("filter/differential.folded", &out.stdout);
}

/// What fg-diff --significant says of the weights before is true of any part of its output.
#[test]
fn every_verb_keeps_the_marker_of_flattened_differences() {
    let flattened = b"Zeta;f 3 3\n[flattened] 0 0\nmain;f 100 300\nmain;g 900 900\n";
    for options in [
        "--focus=f",
        "--root=main",
        "--ignore=.",
        "--show-from=g",
        "--show=g",
        "--hide=.",
        "--rename=.*=x",
        "--split=a",
        "--top=1",
        "--min=50%",
        "--drop-unknown",
    ] {
        let text = run("fg-filter", [options], flattened).ok().text();
        assert_eq!(text.lines().filter(|line| *line == "[flattened] 0 0").count(), 1, "{options}: {text}");
    }
    let text = run("fg-filter", ["--top=1"], flattened).ok().text();
    assert_eq!(text, "[flattened] 0 0\nmain;g 900 900\n");
    // Neither a second marker nor a longer stack is lost.
    let twice = b"[flattened] 0 0\n[flattened] 0 0\n[flattened];f 1 2\nmain 1 1\n";
    assert_eq!(run("fg-filter", ["--focus=f"], twice).ok().text(), "[flattened] 0 0\n[flattened];f 1 2\n");
}

/// Filters the example of pprof's documentation, a recursive stack.
fn filter_pprof_example(options: &[&str]) -> String {
    run("fg-filter", options, b"main;A;B;C;B;D 5\n").ok().text()
}

#[test]
fn verbs_act_like_those_of_pprof() {
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
        (&["--root=^main$"], whole),
        (&["--comm=A"], ""),
    ] {
        assert_eq!(filter_pprof_example(options), expected, "{options:?}");
    }
}

#[test]
fn prune_from_ignores_arguments() {
    let out = run("fg-filter", ["--prune-from=Arg|two"], b"main;one(Arg);three 1\nmain;two(int);three 2\n").ok();
    assert_eq!(out.text(), "main;one(Arg);three 1\nmain;two(int) 2\n");
}

#[test]
fn renames_before_all_other_verbs() {
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
fn drops_unknown_frames_and_delimiters() {
    let out =
        run("fg-filter", ["--drop-unknown", "--no-delimiters"], b"a;-;[unknown];b;--;[unknown]_[k] 1\n[unknown] 2\n");
    assert_eq!(out.ok().text(), "a;b 1\n");
}

#[test]
fn keeps_the_heaviest_stacks() {
    let stacks = b"a 1\nb 10\nc 5\nd 5\ne 29\n";
    let kept = |options: &[&str]| run("fg-filter", options, stacks).ok().text();
    assert_eq!(kept(&["--min", "5"]), "b 10\nc 5\nd 5\ne 29\n");
    assert_eq!(kept(&["--min", "20%"]), "b 10\ne 29\n");
    assert_eq!(kept(&["--top", "3"]), "b 10\nc 5\ne 29\n");
    assert_eq!(kept(&["--top", "1", "--ignore", "e"]), "b 10\n");
    assert_eq!(run("fg-filter", ["--top=1"], b"a 9 1\nb 2 8\n").ok().text(), "a 9 1\n");
    let message = run("fg-filter", ["-v", "--top", "1"], stacks).ok().stderr;
    assert!(message.contains("kept 29 + dropped 21 = 50"), "{message}");
    assert_eq!(run("fg-filter", ["--min", "5x"], stacks).code(), 2);
}

#[test]
fn split_makes_frames_of_the_parts_of_names() {
    let names = b"pool-1;a::b::c;::d::;x<y::z>_[j] 5\npool-2;a::b;e 2\n";
    let split = |options: &[&str]| run("fg-filter", options, names).ok().text();
    assert_eq!(split(&["--split", "::"]), "pool-1;a;b;c;d;x<y::z>_[j] 5\npool-2;a;b;e 2\n");
    assert_eq!(split(&["--split=::", "--focus=^c$"]), "pool-1;a;b;c;d;x<y::z>_[j] 5\n");
    assert_eq!(split(&["--split=::", "--show=^[ab]$", "--merge-threads"]), "a;b 7\n");
    assert_eq!(
        split(&["--split=-", "--merge-threads", "--root=pool", "--top=1"]),
        "pool;1;a::b::c;::d::;x<y::z>_[j] 5\n"
    );
    let wrong = run("fg-filter", ["--split", "x*"], names);
    assert_eq!(wrong.code(), 2, "{wrong:?}");
    assert!(wrong.stderr.contains("matches the empty text"), "{wrong:?}");
}

#[test]
fn old_names_of_options_work() {
    assert_eq!(filter(&["--comm=^other$"]), filter(&["--root=^other$"]));
}

#[test]
fn a_mixture_is_refused_in_any_order() {
    for mixture in ["main;a 5\nmain;b 7\nmain;a 5 6\nmain;c 7 8\n", "main;a 5\nmain;a 5 6\nmain;b 7\nmain;c 7 8\n"] {
        let outcome = run("fg-filter", ["--hide", "x"], mixture.as_bytes());
        assert!(outcome.code() == 1 && outcome.stderr.contains("do not mix profiles and comparisons"), "{outcome:?}");
    }
}

#[test]
fn showing_functions_keeps_the_state_of_their_threads() {
    let shown = run("fg-filter", ["--show", "main"], b"main;read;[off-cpu] 5\nmain;x 2\nother;[off-cpu] 1\n").ok();
    assert_eq!(shown.text(), "main 2\nmain;[off-cpu] 5\n");
    let states = run("fg-filter", ["--show", "off-cpu"], b"main;[off-cpu] 5\nmain 2\n").ok();
    assert_eq!(states.text(), "[off-cpu] 5\n");
}

#[test]
fn an_optional_value_without_an_equals_sign_is_explained() {
    for (option, value) in [("--shorten", "2"), ("--collapse-recursion", "all")] {
        let outcome = run("fg-filter", [option, value], b"main;a 5\n");
        assert_eq!(outcome.code(), 2, "{outcome:?}");
        assert!(outcome.stderr.contains(&format!("write {option}={value}")), "{outcome:?}");
    }
    let outcome = run("fg-filter", ["--shorten", "missing.folded"], b"");
    assert!(outcome.stderr.contains("missing.folded: No such file"), "{outcome:?}");
}
