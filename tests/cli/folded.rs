//! The folded format, through real pipes.

use crate::support::{command, directory, run, run_command, tool};

#[test]
fn merges_and_sorts_equal_stacks() {
    let merged = run("fg-collapse", [""; 0], b"main;b 1\nmain;a 2.5\r\nmain;b 3\n").ok();
    assert_eq!(merged.text(), "main;a 2.5\nmain;b 4\n");
}

#[test]
fn accepts_long_lines_and_null_bytes_in_names() {
    for name in ["x".repeat(400_000), "a\0b".to_owned()] {
        let line = format!("main;{name} 1\n");
        assert_eq!(run("fg-collapse", [""; 0], line.as_bytes()).ok().text(), line);
    }
}

#[test]
fn rejects_a_mixture_of_profiles_and_comparisons() {
    let folder = directory();
    for (name, text) in [
        ("plain", "main;a 1\nmain;b 2\n"),
        ("more-plain", "main;c 1\n"),
        ("both", "main;a 1 2\nmain;b 2 3\n"),
        ("more-both", "main;c 1 1\n"),
        ("bad", "x\n\n"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let run_in = |program: &str, options: &[&str], files: &[&str]| {
        let mut command = command(tool(program));
        command.current_dir(folder.path()).args(options).args(files);
        run_command(command, b"")
    };
    for (program, options) in [
        ("fg-collapse", &[][..]),
        ("fg-collapse", &["--sorted"]),
        ("fg-filter", &[]),
        ("fg-csv", &[]),
        ("fg-pprof", &[]),
        ("fg-svg", &[]),
        ("fg-svg", &["--sorted"]),
        ("fg-svg", &["--flamechart"]),
        ("fg-check", &["--self", "b=99%"]),
    ] {
        for (files, has) in
            [(["plain", "bad", "both"], "has two weights"), (["both", "bad", "plain"], "has one weight")]
        {
            let outcome = run_in(program, options, &files);
            let failure = if program == "fg-check" { 2 } else { 1 };
            assert_eq!(outcome.code(), failure, "{program} {options:?} {files:?}: {outcome:?}");
            let message = format!("{program}: {}: {has}", files[2]);
            assert!(outcome.stderr.contains(&message), "{program} {options:?} {files:?}: {}", outcome.stderr);
        }
        for alike in [["plain", "more-plain"], ["both", "more-both"]] {
            run_in(program, options, &alike).ok();
        }
    }
}

/// A few lines of a comparison among many of a profile are found, and one name may end in a number.
#[test]
fn few_lines_with_two_weights_are_a_mixture() {
    let folder = directory();
    let [mixture, names, one] = ["mixture", "names", "one"].map(|name| folder.path().join(name));
    let plain: String = (0..40_000).map(|number| format!("main;step_{number:05};read 7\n")).collect();
    std::fs::write(&mixture, format!("{plain}main;a 3 4\nmain;b 5 6\n")).unwrap();
    std::fs::write(&names, format!("{plain}main;x;Thread 3 4\nmain;y;Thread 3 4\n")).unwrap();
    std::fs::write(&one, "main;b 3\nmain;c 3 4\n").unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, "main;b 9\n").unwrap();
    for (program, options) in [
        ("fg-collapse", &[][..]),
        ("fg-filter", &[]),
        ("fg-csv", &[]),
        ("fg-diff", &[other.to_str().unwrap()]),
        ("fg-pprof", &[]),
        ("fg-report", &[]),
        ("fg-svg", &[]),
        ("fg-check", &["--self", "read=100%"]),
    ] {
        let run_with = |file: &std::path::Path| {
            let mut command = command(tool(program));
            run_command(
                {
                    command.args(options).arg(file);
                    command
                },
                b"",
            )
        };
        let outcome = run_with(&mixture);
        let message = format!("{}:40001: has two weights, but line 1 has one", mixture.display());
        assert!(outcome.code() != 0 && outcome.stderr.contains(&message), "{program} {options:?}: {outcome:?}");
        for (file, line, name) in [(&names, 40_001, "Thread 3"), (&one, 2, "c 3")] {
            let outcome = run_with(file).ok();
            let message = format!("{}:{line}: ends in two numbers; read as the function {name:?}", file.display());
            assert!(outcome.stderr.contains(&message), "{program} {options:?}: {}", outcome.stderr);
        }
    }
}

#[test]
fn colours_are_dropped_wherever_they_begin() {
    let many: String = (0..20_000).map(|number| format!("main;function_{number} 1\n")).collect();
    let late = "main;\u{1b}[38;5;208mhot\u{1b}[0m;\u{1b}]8;;http://host\u{1b}\\leaf\u{1b}]8;;\u{1b}\\ 5\n";
    let folder = directory();
    let file = folder.path().join("late");
    std::fs::write(&file, format!("{many}{late}")).unwrap();
    for program in ["fg-filter", "fg-collapse"] {
        let text = run(program, [&file], b"").ok().text();
        assert!(text.contains("\nmain;hot;leaf 5\n") && !text.contains('\u{1b}'), "{program}");
    }
    let page = run("fg-report", [&file], b"").ok().text();
    assert!(!page.contains(['\u{1b}']) && !page.contains("u{1b}"), "{page}");
}

#[test]
fn colours_are_no_part_of_names() {
    let folder = directory();
    let [sorted, unsorted, other] = ["sorted", "unsorted", "other"].map(|name| folder.path().join(name));
    std::fs::write(&sorted, "main;a\u{1b}[0m 5\nmain;b\u{1b}[1;31m 3\n").unwrap();
    std::fs::write(&unsorted, "main;b\u{1b}[0m 3\n\u{1b}[32mmain;a 5\n").unwrap();
    std::fs::write(&other, "main;a 2\n").unwrap();
    for file in [&sorted, &unsorted] {
        assert_eq!(run("fg-filter", [file], b"").ok().text(), "main;a 5\nmain;b 3\n");
        assert_eq!(run("fg-diff", [&other, file], b"").ok().text(), "main;a 2 5\nmain;b 0 3\n");
        let csv = run("fg-csv", [file], b"").ok().text();
        assert!(csv.contains("\na,5,") && !csv.contains('\x1b'), "{csv}");
        let text = std::fs::read(file).unwrap();
        assert_eq!(run("fg-filter", [""; 0], &text).ok().text(), "main;a 5\nmain;b 3\n", "from a pipe");
    }
}

#[test]
fn skips_comments_of_other_tools() {
    let text = "# captured on    : Thu Nov 19 22:10:03 2026\n# interval: 100\n# foo;bar 3\na 1\nb 1\n";
    let folder = directory();
    let file = folder.path().join("sorted");
    std::fs::write(&file, text).unwrap();
    let expected = "# foo;bar 3\na 1\nb 1\n";
    assert_eq!(run("fg-collapse", [&file], b"").ok().text(), expected);
    assert_eq!(run("fg-collapse", [""; 0], text.as_bytes()).ok().text(), expected);
}

#[test]
fn merges_more_files_than_may_be_open() {
    let folder = directory();
    for number in 100..160 {
        std::fs::write(folder.path().join(number.to_string()), format!("a;b{number} 1\n")).unwrap();
    }
    let script = "ulimit -n 40; exec \"$0\" 1*";
    let mut command = command("sh");
    command.args(["-c", script]).arg(tool("fg-collapse")).current_dir(folder.path());
    let outcome = command.output().unwrap();
    assert_eq!(outcome.stdout.split(|byte| *byte == b'\n').count(), 61, "{outcome:?}");
}

#[test]
fn rejects_comparisons_with_in_order() {
    let outcome = run("fg-collapse", ["--in-order"], b"b 1 2\na 2 3\n");
    assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{outcome:?}");
    assert!(outcome.stderr.contains("--in-order: stacks must have one weight each"), "{outcome:?}");
}
