//! fg-check: verdicts on profiles.

use crate::support::{Outcome, directory, run};

const PROFILE: &[u8] = b"app;main;parse;malloc 30\napp;main;parse 20\napp;main;write;[libc.so.6] 40\n[lost] 5\n\
    app;[truncated];x 5\n";

fn check(rules: &[&str], profile: &[u8]) -> Outcome {
    run("fg-check", rules, profile)
}

/// The exit status, and what it wrote.
fn verdict(rules: &[&str], profile: &[u8]) -> (i32, String) {
    let outcome = check(rules, profile);
    (outcome.code(), outcome.text())
}

#[test]
fn a_limit_that_is_kept_is_silent() {
    let rules =
        ["--self", "malloc=30%", "--inclusive", "parse=50", "--lost", "5%", "--truncated", "5%", "--unknown", "40%"];
    assert_eq!(verdict(&rules, PROFILE), (0, String::new()));
}

#[test]
fn each_limit_that_is_broken_has_a_line_with_its_worst_stack() {
    for (rule, expected) in [
        (
            ["--self", "malloc|parse=49%"],
            "self malloc|parse: 50.00% (50), more than 49%; most in app;main;parse;malloc (30)\n",
        ),
        (
            ["--inclusive", "^parse$=49"],
            "inclusive ^parse$: 50.00% (50), more than 49%; most in app;main;parse;malloc (30)\n",
        ),
        (
            ["--category", "allocator=29"],
            "category allocator: 30.00% (30), more than 29%; most in app;main;parse;malloc (30)\n",
        ),
        (["--lost", "4.9"], "lost: 5.00% (5), more than 4.9%; most in [lost] (5)\n"),
        (["--truncated", "4.9%"], "truncated: 5.00% (5), more than 4.9%; most in app;[truncated];x (5)\n"),
        (["--unknown", "39%"], "unknown: 40.00% (40), more than 39%; most in app;main;write;[libc.so.6] (40)\n"),
    ] {
        assert_eq!(verdict(&rule, PROFILE), (1, expected.to_owned()));
    }
}

#[test]
fn growth_is_of_all_before_and_more_than_noise() {
    let diff = b"main;a 5000 5051\nmain;b 4000 4800\nmain;c 1000 149\n";
    let expected = "growth b: +8.00% of all before (4000 -> 4800), more than 2%; most in main;b (4000 -> 4800)\n";
    assert_eq!(verdict(&["--growth", "2%"], diff), (1, expected.to_owned()));
    assert_eq!(verdict(&["--growth", "9%"], diff), (0, String::new()));
    assert_eq!(verdict(&["--growth", "a|c=0"], diff).0, 0);
    assert_eq!(verdict(&["--inclusive-growth", "main=0"], diff).0, 0);
    // Eight in a hundred, but of so few samples that it may be chance.
    assert_eq!(verdict(&["--growth", "2%"], b"main;a 50 51\nmain;b 40 48\nmain;c 10 1\n").0, 0);
}

#[test]
fn growth_needs_two_weights() {
    let outcome = check(&["--growth", "2%"], PROFILE);
    assert_eq!(outcome.code(), 2);
    assert!(outcome.stderr.contains("as fg-diff writes it"), "{}", outcome.stderr);
}

#[test]
fn a_runtime_that_does_nothing_is_a_busy_loop() {
    let busy = b"app;tokio::runtime::poll;tracing::span::Span::enter 60\napp;tokio::runtime::poll;epoll_wait 30\n\
        app;tokio::runtime::poll;app::handle 5\napp;main 5\n";
    let (code, said) = verdict(&["--busy-loop"], busy);
    assert_eq!(code, 1);
    assert!(said.starts_with("busy-loop: 94.74% of the runtime (90), more than 80%; most in app;tokio"), "{said}");
    let works = b"app;tokio::runtime::poll;app::handle;parse 60\napp;tokio::runtime::poll;epoll_wait 30\n";
    assert_eq!(verdict(&["--busy-loop"], works).0, 0);
    let elsewhere = b"app;tokio::runtime::poll 10\napp;main;parse 30\n";
    assert_eq!(verdict(&["--busy-loop"], elsewhere).0, 0, "the runtime is not what it spends its time on");
}

#[test]
fn rules_come_from_a_file_too() {
    let folder = directory();
    let rules = folder.path().join("rules");
    std::fs::write(&rules, "# the gate\nself malloc=10%\nbusy-loop 80\n").unwrap();
    assert_eq!(check(&["--rules", rules.to_str().unwrap()], PROFILE).code(), 1);
    std::fs::write(&rules, "self malloc=10%\nself x\n").unwrap();
    let outcome = check(&["--rules", rules.to_str().unwrap()], PROFILE);
    assert_eq!(outcome.code(), 2);
    assert!(outcome.stderr.contains("rules:2: expected WHAT=PERCENT"), "{}", outcome.stderr);
}

#[test]
fn reports_for_machines_hold_any_name() {
    let folder = directory();
    let file = folder.path().join("junit.xml");
    let profile = b"a<b>&\"\x1b[31m\xff 100%;x 9\nmain 1\n";
    let rules = ["--github", "--inclusive", "a<b>=10%", "--self", "main=50", "--junit", file.to_str().unwrap()];
    let (code, said) = verdict(&rules, profile);
    assert_eq!(code, 1);
    assert!(said.starts_with("::error title=fg-check inclusive::inclusive a<b>: 90.00%25 (9)"), "{said}");
    assert!(!said.contains('\x1b'));
    let xml = std::fs::read_to_string(&file).unwrap();
    let document = roxmltree::Document::parse(&xml).unwrap();
    let suite = document.root_element();
    assert_eq!((suite.attribute("tests"), suite.attribute("failures")), (Some("2"), Some("1")));
    let failed: Vec<_> = suite.descendants().filter(|node| node.has_tag_name("failure")).collect();
    assert!(failed.len() == 1 && failed[0].attribute("message").unwrap().contains("a<b>&\""), "{xml}");
}

#[test]
fn what_cannot_be_read_is_no_verdict() {
    for (profile, said) in [(&b""[..], "the profile is empty"), (b"no stack\n", "no line of the input")] {
        let outcome = check(&["--self", "x=1%"], profile);
        assert_eq!(outcome.code(), 2);
        assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    }
    let outcome = check(&["--self", "x=1%", "/nonexistent/a"], b"");
    assert_eq!((outcome.code(), outcome.stderr.lines().count()), (2, 1), "{}", outcome.stderr);
    assert_eq!(check(&[], PROFILE).code(), 2, "no rule");
}

#[test]
fn a_comparison_with_nothing_is_no_verdict() {
    for diff in [&b"a;c 0 50\na;d 0 50\n"[..], b"a;c 50 0\na;d 50 0\n"] {
        let outcome = check(&["--growth", "2%"], diff);
        assert_eq!(outcome.code(), 2, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("nothing to compare"), "{}", outcome.stderr);
    }
}

#[test]
fn few_round_weights_are_counts_all_the_same() {
    assert_eq!(check(&["--growth", "2%"], b"a;c 100 1000\na;d 10000 10000\n").code(), 1);
    let excused = check(&["--growth", "2%"], b"main;a 50 51\nmain;b 40 48\nmain;c 10 1\n");
    assert_eq!(excused.code(), 0);
    assert!(excused.stderr.contains("may be noise"), "{}", excused.stderr);
}
