//! Lines of other text within an input: of the program that is profiled, or of the shell.

use super::example_texts;
use crate::support::run;

/// The lines are inserted one at a time. They look like folded stacks, or like a log.
const STRAYS: [&str; 3] = ["Starting worker 5", "WARN queue full", "2026-11-26 05:00:00 INFO took 7"];

/// Most places at which lines are inserted into an example.
const PLACES: usize = 24;

/// A line of these is a folded stack.
const FOLDED: [&str; 2] = ["async-profiler.txt", "folded-austin.txt"];

/// Text may be anywhere in these.
const WITH_TEXT: [&str; 4] = ["hprof-text.txt", "hprof-text-times.txt", "perfview.perfView.xml", "xctrace.xml"];

#[test]
fn a_line_of_other_text_is_no_frame_and_is_counted() {
    let examples = example_texts();
    for (name, text, _) in examples.iter().filter(|(name, ..)| !FOLDED.contains(&name.as_str())) {
        let alone = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let step = lines.len().div_ceil(PLACES);
        for place in (0..lines.len()).step_by(step) {
            let stray = STRAYS[place / step % STRAYS.len()];
            let joined = [&lines[..place].concat(), stray, "\n", &lines[place..].concat()].concat();
            let outcome = run("fg-collapse", [""; 0], joined.as_bytes());
            assert!(place > 0 || outcome.code() == 0, "{name}: {outcome:?}");
            if outcome.code() == 1 {
                continue;
            }
            assert!(!outcome.text().contains(stray.rsplit_once(' ').unwrap().0), "{name}, line {place}: {outcome:?}");
            let is_told = outcome.stderr != alone.stderr;
            let may_be_text = WITH_TEXT.contains(&name.as_str()) && outcome.text() == alone.text();
            assert!(is_told || may_be_text, "{name}, line {place}: {outcome:?}");
        }
    }
}

#[test]
fn one_line_within_a_stack_does_not_end_it() {
    for (text, folded) in [
        ("x.Y: z\n\tat a.B.f(B.java:1)\nhello there\n\tat a.B.main(B.java:2)\n", "a.B.main;a.B.f 1\n"),
        ("goroutine 1 [running]:\nf()\nhello\n\t/a.go:1 +0x1\nhello\nmain.main()\n\t/a.go:2 +0x1\n", "main.main;f 1\n"),
        ("goroutine profile: total 2\n2 @ 0x1 0x2\nhello\n#\t0x1\tf+0x1\t/a.go:1\n\n", "f 2\n"),
        ("@[\n    f\nhello 5\n    g\n]: 3\n", "g;f 3\n"),
        ("\n  app`a\nhello\n  app`main\n   3\n", "app`main;app`a 3\n"),
        (
            "TRACE 1:\n\tA.f(A.java:1)\nhello\n\tA.g(A.java:2)\nCPU SAMPLES BEGIN (total = 2) x\n   1 100.00% 100.00%     2 1 A.f\nCPU SAMPLES END\n",
            "A.g;A.f 2\n",
        ),
        ("\"a\" #1\n  java.lang.Thread.State: RUNNABLE\n\tat f(A)\nhello\n\tat g(A)\n", "a;g;f 1\n"),
        ("Samples:\na/count\n 1: 1\nLocations\n 1: 0x1 M=1 f x:1 s=1\nhello 5\nMappings\n1: 0x1/0x2/0x0 a\n", "f 1\n"),
    ] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        assert_eq!(outcome.text(), folded, "{text}: {outcome:?}");
        let is_told = ["malformed", "of other text left out"].iter().any(|words| outcome.stderr.contains(words));
        assert!(is_told, "{text}: {outcome:?}");
    }
}

#[test]
fn a_line_with_a_zero_byte_is_other_text() {
    let sample = "a 1 1.5: 3 e:\n\t            7f00 f+0x1 (/x)\n\n";
    let stack = "Thread 3 (Thread 0x7f1 (LWP 4) \"a\"):\n#0  f () at a.c:1\n#1  main () at a.c:2\n\n";
    for (part, folded) in [(sample, "a;f 12\n"), (stack, "main;f 4\n")] {
        let text = format!("{part}{part}zero\0byte here\n{part}{part}");
        for text in [text.clone(), format!("{}{text}", sample.repeat(6000)).replace("\t", " \t")] {
            if text.len() > 100_000 && part != sample {
                continue;
            }
            let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
            assert!(text.len() > 100_000 || outcome.text() == folded, "{outcome:?}");
            assert!(["malformed", "left out"].iter().any(|words| outcome.stderr.contains(words)), "{outcome:?}");
        }
    }
}

#[test]
fn a_few_lines_before_a_profile_are_left_out() {
    let json = std::fs::read_to_string(super::folder().join("speedscope.json")).unwrap();
    let table = "Function Stack,CPU Time:Self,Module\nf,1.0,a\n".to_owned();
    for profile in [json, table, "sample.interval=10\n\"f\" \n".to_owned()] {
        let alone = run("fg-collapse", [""; 0], profile.as_bytes()).ok();
        let outcome = run("fg-collapse", [""; 0], format!("$ tool --run\nWARN slow disk\n\n{profile}").as_bytes()).ok();
        assert_eq!(outcome.text(), alone.text(), "{outcome:?}");
        let is_told = ["2 lines before the profile left out", "skipped 2 malformed"];
        assert!(is_told.iter().any(|words| outcome.stderr.contains(words)), "{outcome:?}");
    }
    // A table with a heading, the lines of a log, and the profile of another format are no such lines.
    for text in [
        "Stack,Process,Weight\n\"a;b\",x.exe, 12\n\"a;c\",x.exe, 7\n\"a;d\",x.exe, 9\n",
        "main;f 5\nsample.interval=10\n\"f\" \n",
        "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nsample.interval=10\n\"f\" \n",
    ] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        assert_eq!(outcome.code(), 1, "{text}: {outcome:?}");
    }
}

#[test]
fn a_log_with_few_stacks_names_their_format() {
    let line = "2026-11-26 05:00:00 INFO request took 7 ms\n".repeat(1600);
    let stack = "java.lang.RuntimeException: boom\n\tat a.B.f(B.java:1)\n\tat a.B.main(B.java:2)\n";
    let log = format!("{stack}{line}").repeat(3);
    let outcome = run("fg-collapse", [""; 0], log.as_bytes());
    assert_eq!((outcome.code(), outcome.stderr.lines().count()), (1, 1), "{outcome:?}");
    assert!(outcome.stderr.contains("--format java-exceptions"), "{outcome:?}");
    let outcome = run("fg-collapse", ["--format=java-exceptions"], log.as_bytes()).ok();
    assert_eq!(outcome.text(), "a.B.main;a.B.f 3\n", "{outcome:?}");
    assert!(outcome.stderr.contains("4800 lines of other text left out"), "{outcome:?}");
}

#[test]
fn maps_of_bpftrace_without_stacks_are_left_out() {
    let plain = "@begin[1234]: 5678901234567\n@begin[4321]: 5678901299999\n\n@us[cat]:\n[1, 2)  3 |@@@|\n\n";
    let text = format!("Attaching 3 probes...\n\n{plain}@ns[\n    f+1\n    g+8\n]: 812\n@ns[cat]: 3\n");
    let json = r#"{"type": "map", "data": {"@begin": {"1234": 5678901234567}}}
{"type": "map", "data": {"@us": {"cat": 3}}}
{"type": "map", "data": {"@ns": {"\n    f+1\n    g+8\n": 812, "cat": 3}}}
"#;
    for text in [&text, json] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        let message = "fg-collapse: stdin: left out maps that are not keyed by stacks: @begin, @us\n";
        assert_eq!(outcome.text(), "cat 3\ng;f 812\n", "{outcome:?}");
        assert_eq!(outcome.stderr, message);
        let outcome = run("fg-collapse", ["--event=@begin"], text.as_bytes());
        assert!(outcome.code() == 1 && outcome.stdout.is_empty(), "{outcome:?}");
    }
}

#[test]
fn frames_that_gdb_left_out_are_truncated() {
    for (text, folded) in [
        ("#0  a (n=1) at a.c:9\n#1  b () at a.c:8\n(More stack frames follow...)\n", "[truncated];b;a 1\n"),
        ("#0  a (n=1) at a.c:9\n#6  f () at a.c:8\n#7  main () at a.c:7\n", "main;f;[truncated];a 1\n"),
        (
            "#6  f () at a.c:8\n#7  main () at a.c:7\n#2  g () at a.c:8\n#0  a () at a.c:7\n",
            "a 1\ng;[truncated] 1\nmain;f;[truncated] 1\n",
        ),
        (
            "#0  a (n=1) at a.c:9\n(More stack frames follow...)\n#6  f () at a.c:8\n#7  main () at a.c:7\n",
            "main;f;[truncated];a 1\n",
        ),
    ] {
        assert_eq!(run("fg-collapse", [""; 0], text.as_bytes()).ok().text(), folded, "{text}");
    }
}

#[test]
fn a_record_of_v8_may_have_no_fields() {
    let text = "v8-version,11,3,244,8,-node.38,0\nshared-library,/usr/bin/a,0x10,0x20,0\nshared-library-end\n";
    let outcome = run("fg-collapse", ["--strict"], format!("{text}tick,0x11,1,0,0x0,0\n").as_bytes()).ok();
    assert_eq!((outcome.text().as_str(), &*outcome.stderr), ("[a] 1\n", ""));
}
