//! Inputs that end too early.

use super::folder;
use crate::support::run;

#[test]
fn text_that_is_cut_within_a_stack_is_reported() {
    for (text, folded) in [
        ("heap profile: 1: 5 [1: 5] @ heap/2\n1: 5 [1: 5] @ 0x1\n#\t0x1\tf+0x1\t/a.go:1\n", "f 5\n"),
        ("--- mutex:\ncycles/second=1000000000\nsampling period=1\n7 1 @ 0x1\n#\t0x1\tf+0x1\t/a.go", "f 7\n"),
        ("goroutine profile: total 3\n2 @ 0x1\n#\t0x1\tf+0x1\t/a.go:1\n\n", "f 2\n"),
        ("goroutine profile: total 2\n2 @ 0x11 0x22 0x33\n#\t0x11\tf+0x1\t/a.go:1\n", "f 2\n"),
        ("goroutine 1 [running]:\nf()\n\t/a.go:1 +0x1\n\ngoroutine 2 [running]:\n", "[unknown] 1\nf 1\n"),
        ("goroutine 1 [running]:\nf()\n\t/a.go:1 +0x1\ng(0x1)\n", "g;f 1\n"),
        (
            "allocator,num_allocations,size,tid,thread_name,stack_trace\r\nMALLOC,1,7,1,a,f;a;1|g;a;2\r\nMALLOC,1,8,1,a,f;a;1|ma",
            "f 8\ng;f 7\n",
        ),
        ("a 1 1.5: 3 e:\n\t            7f00 f+0x1 (/x)\n\t    ", "a;[truncated];f 3\n"),
        // The heading of a stack without the stack, or of a list without its end.
        ("Thread 3 (LWP 4):\n#0  f () at a.c:1\n\nThread 2 (LWP 3):\n#0  g () at a.c:1\n", "f 1\ng 1\n"),
        ("Thread 1 (LWP 4):\n#0  f () at a.c:1\n\nThread 2 (LWP 3):\n", "f 1\n"),
        (
            "[1:1:1] Top 2 stacks with outstanding allocations:\n\t5 bytes in 1 allocations from stack\n\t\t0x1\tf+0x1 [a]\n",
            "f 5\n",
        ),
        ("50.0% = (3 samples)\n  1: f\n\n50.0% = (2 samples)\n", "f 3\n"),
        ("TRACE 1:\n\tA.f(A.java:1)\nCPU SAMPLES BEGIN (total = 2) x\n   1 100.00% 100.00%     2 1 A.f\n", "A.f 2\n"),
        (
            "Thread 0x1 (most recent call first):\n  File \"a\", line 1 in f\n\nThread 0x2 (most recent call first):\n",
            "a:1:f 1\n",
        ),
        ("PID 1 - a\nTID 1:\n#0  0x1 f\nTID 2:\n", "f 1\n"),
        ("Thread (0x1):\n  a!f()\n\nThread (0x2):\n", "f 1\n"),
        (
            "1: a\n---------- tid# 1 (pthread ID: 1) ----------\n0x1  f() + 0x1\n---------- tid# 2 (pthread ID: 2) ----------\n",
            "a;f 1\n",
        ),
        ("goroutine 7 [running]:\nf()\n\t/a.go:1 +0x1\n", "f 1\n"),
        ("0 work /srv/a.php:3\n1 <main> /srv/a.php:9\n", "<main>;work 1\n"),
        ("sample:\n  event_type: e\n  event_count: 1\n  symbol: f\nsample:\n  event_type: e\n", "f 1\n"),
        (
            "a 1 1.5: 3 e:\n\t            7f00 f+0x1 (/x)\n\na 1 1.6: 4 e:\n\t            7f00 pars",
            "a;[truncated] 4\na;f 3\n",
        ),
    ] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        let is_told = outcome.stderr.contains("cut short");
        assert!(is_told, "{text}: {outcome:?}");
        if folded != "f 8\ng;f 7\n" {
            assert_eq!(outcome.text(), folded, "{text}: {outcome:?}");
        }
        assert_eq!(run("fg-collapse", ["--strict"], text.as_bytes()).code(), 1, "{text}");
    }
}

#[test]
fn samples_of_perf_that_are_cut_have_no_wrong_names() {
    let frame = |name: &str| format!("\t            7f00 {name}+0x1 (/x)\n");
    let whole = format!("app 1/1 [000] 1.5: 100 cycles: \n{}{}\n", frame("f"), frame("main"));
    let next = "app 1/1 [000] 1.6: 250 cycles: \n";
    let one_line = "             app 1 1.6:        250 cycles:      5611fdabd1cb leafB (/x)\n";
    for (text, folded) in [
        ("app 1/1 [000] 1.5: 100 cycles: \n\t 401b97 main (/a".to_owned(), "app;[truncated] 100\n"),
        (format!("{whole}{next}\t            7f00 (anonymous namespace)"), "app;[truncated] 250\napp;main;f 100\n"),
        (format!("{whole}{next}{}\t            7f00 ma", frame("f")), "app;[truncated];f 250\napp;main;f 100\n"),
        (format!("{whole}{next}\tffffffff9b"), "app;[truncated] 250\napp;main;f 100\n"),
        (format!("{whole}{next}"), "app;main;f 100\n"),
        (format!("{whole}{}", &next[..25]), "app;main;f 100\n"),
        (format!("{whole}{}", &next[..9]), "app;main;f 100\n"),
        (one_line.to_owned() + &one_line[..65], "app;leafB 250\n"),
        (one_line.to_owned() + &one_line[..30], "app;leafB 250\n"),
    ] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        let expected = "cut short: the input ends before its last sample does; its last line is left out";
        assert_eq!(outcome.stderr, format!("fg-collapse: stdin: {expected}\n"), "{text}");
        assert_eq!(outcome.text(), folded, "{text}");
        assert_eq!(run("fg-collapse", ["--strict"], text.as_bytes()).code(), 1, "{text}");
    }
    let unterminated = run("fg-collapse", ["--strict"], whole.trim_ascii_end().as_bytes()).ok();
    assert_eq!((unterminated.text().as_str(), unterminated.stderr.as_str()), ("app;main;f 100\n", ""));
}

#[test]
fn stacks_that_the_total_of_pprof_lacks_are_reported() {
    let text = std::fs::read_to_string(folder().join("pprof-traces.txt")).unwrap();
    let end = text.rfind("     250ms").unwrap();
    let outcome = run("fg-collapse", [""; 0], text.as_bytes()[..end].as_ref()).ok();
    assert!(outcome.stderr.contains("add up to 1200 of the 1450 milliseconds that it states"), "{outcome:?}");
    assert_eq!(run("fg-collapse", [""; 0], text.as_bytes()).ok().stderr, "");
}

#[test]
fn a_missing_blank_line_tells_that_callers_may_be_missing() {
    let sample = |frames: &[&str]| {
        let frames = frames.iter().map(|name| format!("\t            7f00 {name}+0x1 (/x)\n"));
        format!("app 1/1 [000] 1.5: 100 cycles: \n{}", frames.collect::<String>())
    };
    let whole = sample(&["f", "main"]) + "\n";
    let warning = "fg-collapse: stdin: no blank line follows its last stack: the input may be cut short\n";
    for (text, expected) in [
        (whole.repeat(3) + &sample(&["g", "f"]), warning),
        (whole.repeat(3) + &sample(&["main", "f"]), warning),
        // Editors remove blank lines at the end.
        (whole.repeat(3) + &sample(&["g", "main"]), ""),
        (whole.repeat(3) + &sample(&["g", "f"]) + "\n", ""),
        // Texts without any blank line.
        (sample(&["f", "main"]).repeat(3) + &sample(&["g", "f"]), ""),
    ] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        assert_eq!(outcome.stderr, expected, "{text}");
        assert_eq!(run("fg-collapse", ["--strict"], text.as_bytes()).code() == 1, !expected.is_empty(), "{text}");
    }
    // The first and the last block are read by different threads.
    let large = whole.repeat(60_000);
    for (end, expected) in [(sample(&["g", "f"]), warning), (sample(&["g", "main"]), "")] {
        let outcome = run("fg-collapse", ["--nthreads=4"], (large.clone() + &end).as_bytes()).ok();
        assert_eq!(outcome.stderr, expected);
    }
}

#[test]
fn a_profile_of_pprof_without_all_its_names_is_reported() {
    let bytes = std::fs::read(folder().join("pprof.pb")).unwrap();
    let alone = run("fg-collapse", [""; 0], &bytes).ok().text();
    for end in 60..bytes.len() {
        let outcome = run("fg-collapse", [""; 0], &bytes[..end]);
        let is_told = outcome.code() == 1 || outcome.stderr.contains("cut short");
        assert!(is_told || outcome.text() == alone, "{end}: {outcome:?}");
    }
}

#[test]
fn a_cut_is_said_once() {
    let text = std::fs::read_to_string(folder().join("jfr-print.txt")).unwrap();
    for end in (300..text.len()).step_by(171).filter(|end| !text[..*end].ends_with('\n')) {
        let outcome = run("fg-collapse", [""; 0], &text.as_bytes()[..end]);
        let told = |words: &str| outcome.stderr.lines().filter(|line| line.contains(words)).count();
        assert_eq!((told("cut short"), told("malformed")), (1, 0), "{end}: {outcome:?}");
    }
}

#[test]
fn whole_examples_are_not_said_to_be_cut() {
    for name in ["heap-text-go.txt", "heap-text-mutex.txt", "goroutines.txt", "goroutines-shared.txt", "memray.csv"] {
        let outcome = run("fg-collapse", [folder().join(name)], b"").ok();
        assert!(!outcome.stderr.contains("cut"), "{name}: {outcome:?}");
    }
}

#[test]
fn a_cut_line_of_memray_tells_no_wrong_function() {
    let heading = "allocator,num_allocations,size,tid,thread_name,stack_trace\n";
    let whole = format!("{heading}MALLOC,1,7,1,a,work;a;1|main;a;2\n");
    for end in heading.len() + 1..whole.len() {
        let outcome = run("fg-collapse", ["--format=memray"], &whole.as_bytes()[..end]);
        assert!(!outcome.stderr.is_empty(), "{end}: {outcome:?}");
    }
}

#[test]
fn text_that_is_cut_at_a_line_end_is_reported() {
    for (name, end) in [("massif.out", "snapshot=5"), ("massif.out", "n0: "), ("massif.out", "heap_tree=peak")]
        .into_iter()
        .chain([("lsan.txt", "SUMMARY"), ("memcheck.txt", "LEAK SUMMARY")])
    {
        let text = std::fs::read_to_string(folder().join(name)).unwrap();
        let at = text.find(end).unwrap();
        let start = &text[..text[..at].rfind('\n').unwrap() + 1];
        let outcome = run("fg-collapse", [""; 0], start.as_bytes());
        assert!(outcome.stderr.contains("cut short"), "{name}, {end}: {outcome:?}");
        let whole = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        assert!(!whole.stderr.contains("cut short"), "{name}: {whole:?}");
    }
}

#[test]
fn a_profile_of_goroutines_may_lack_its_last_blank_line() {
    let text = "goroutine profile: total 1\n1 @ 0x1 0x2 0x3\n#\t0x0\tf+0x1\t/a.go:1\n#\t0x1\tg+0x1\t/a.go:1\n";
    let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
    assert_eq!(outcome.text(), "g;f 1\n");
    assert!(!outcome.stderr.contains("cut"), "{outcome:?}");
}
