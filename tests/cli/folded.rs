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
