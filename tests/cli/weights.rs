//! No weight is lost: inputs that cannot be read in whole are reported with a failing status.

use crate::support::{command, directory, run, run_command, tool};

/// All programs that read folded stacks and need no second input, with the options that make them read a profile.
const READERS: [(&str, &[&str]); 8] = [
    ("fg-collapse", &[]),
    ("fg-collapse", &["--sorted"]),
    ("fg-filter", &[]),
    ("fg-csv", &[]),
    ("fg-csv", &["--by=stack"]),
    ("fg-check", &["--self", "a=100%"]),
    ("fg-pprof", &[]),
    ("fg-svg", &[]),
];

/// Returns the status of a reader for the text, from a pipe and from a file, and the messages of both.
fn read(program: &str, options: &[&str], text: &str) -> [(i32, String); 2] {
    let folder = directory();
    std::fs::write(folder.path().join("stdin"), text).unwrap();
    let mut from_file = command(tool(program));
    from_file.current_dir(folder.path()).args(options).arg("stdin");
    let outcomes = [run(program, options, text.as_bytes()), run_command(from_file, b"")];
    outcomes.map(|outcome| (outcome.code(), outcome.stderr))
}

#[test]
fn a_mixture_of_kinds_fails_and_names_both_lines() {
    let inputs = [
        ("main;a 5\nmain;b 7\nmain;c 2 2\nmain;d 3 5\n", "stdin:3: has two weights, but line 1 has one"),
        ("main;a 2 2\nmain;b 3 5\nmain;c 7\n", "stdin:3: has one weight, but line 1 has two"),
        ("main;a 9\nmain;b 3 5\nmain;c 7 8\n", "stdin:1: has one weight, but line 2 has two"),
    ];
    for (program, options) in READERS {
        for (text, message) in inputs {
            let failure = if program == "fg-check" { 2 } else { 1 };
            for (status, stderr) in read(program, options, text) {
                assert_eq!(status, failure, "{program} {options:?} {text:?}: {stderr}");
                let is_sorted = options == ["--sorted"];
                assert!(is_sorted || stderr.contains(message), "{program} {text:?}: {stderr}");
            }
        }
    }
}

#[test]
fn single_names_that_end_in_a_number_are_names() {
    let text = "Thread 3 5\nmain;b 200\nmain;c 700\n";
    for program in ["fg-collapse", "fg-filter"] {
        assert_eq!(run(program, [""; 0], text.as_bytes()).ok().text(), "Thread_3 5\nmain;b 200\nmain;c 700\n");
    }
    let table = run("fg-csv", ["--by=comm"], text.as_bytes()).ok().text();
    assert_eq!(table, "comm,samples,pct\nmain,900,99.4475\nThread_3,5,0.5525\n");
}

#[test]
fn a_large_mixture_is_found_in_a_file_read_by_several_threads() {
    let plain: String = (0..20_000).map(|number| format!("main;f{:05} 3\n", number * 7 % 20_000)).collect();
    let text = plain.clone() + &plain.replace('\n', " 4\n");
    for (program, options) in READERS {
        for (status, stderr) in read(program, options, &text) {
            assert_ne!(status, 0, "{program} {options:?}: {stderr}");
        }
    }
}

#[test]
fn an_input_most_of_whose_lines_are_malformed_fails() {
    let text = "usage: ls [OPTION]\nlist files\nmain;a 3\n  -l  long 80\nnothing\nnor here\n";
    for (program, options) in READERS.into_iter().filter(|(_, options)| *options != ["--sorted"]) {
        for (status, stderr) in read(program, options, text) {
            assert_ne!(status, 0, "{program} {options:?}: {stderr}");
        }
        for (status, stderr) in read(program, options, "main;a 1\nnothing\nmain;b 2\n") {
            assert_eq!(status, 0, "{program} {options:?}: {stderr}");
            assert!(stderr.contains("skipped 1 malformed line"), "{program}: {stderr}");
        }
    }
    let outcome = run("fg-csv", [""; 0], text.as_bytes());
    assert!(outcome.stderr.contains("stdin: 4 of 6 lines are not folded stacks"), "{}", outcome.stderr);
}

#[test]
fn stacks_without_names_keep_their_weights() {
    for (options, text, expected) in [
        (&["--hide=x"][..], ";x 28\na 1\n", "[unknown] 28\na 1\n"),
        (&["--hide=x"], " ;x 28\na 1\n", "[unknown] 28\na 1\n"),
        (&["--collapse-recursion"], ";; 4 5\na;b 1 2\n", ";[unknown] 4 5\na;b 1 2\n"),
        (&["--hide=b"], "# x : y;b 5\na 1\n", "#_x : y 5\na 1\n"),
        (&[], "a; 5\n", "a;[unknown] 5\n"),
    ] {
        let filtered = run("fg-filter", options, text.as_bytes()).ok().stdout;
        assert_eq!(String::from_utf8_lossy(&filtered), expected, "{options:?} {text:?}");
        for program in ["fg-collapse", "fg-filter"] {
            let outcome = run(program, ["--strict"], &filtered).ok();
            assert_eq!(outcome.stdout, filtered, "{program} reads what fg-filter writes");
        }
    }
}

#[test]
fn self_weight_is_at_most_inclusive_weight() {
    let table = run("fg-csv", ["--tsv"], b"main;x 12;q 7\nmain;x 12 100\n").ok().text();
    assert!(table.contains("\nx_12\t100\t93.4579\t100\t"), "{table}");
}

#[test]
fn reads_the_numbers_that_awk_prints() {
    let text = b"main;a 4e+09\nmain;b 2.5E3\nmain;c 5.\n";
    let expected = "main;a 4000000000\nmain;b 2500\nmain;c 5\n";
    for program in ["fg-collapse", "fg-filter"] {
        let outcome = run(program, [""; 0], text).ok();
        assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), (expected, ""), "{program}");
    }
}

#[test]
fn invalid_utf_8_is_matched_and_not_taken_for_utf_16() {
    let text = b"\xff\xfename;f\xff 1\n";
    assert_eq!(run("fg-filter", ["--focus=^f.$"], text).ok().stdout, text);
    assert_eq!(run("fg-collapse", [""; 0], text).ok().stdout, text);
}

#[test]
#[cfg(target_os = "linux")]
fn a_closed_standard_output_is_a_failure() {
    for program in ["fg-csv", "fg-filter", "fg-collapse"] {
        let mut shell = command("sh");
        shell.args(["-c", "exec \"$0\" >&-", tool(program)]);
        let outcome = run_command(shell, b"main;a 1\n");
        assert_eq!(outcome.code(), 1, "{outcome:?}");
        assert!(outcome.stderr.contains("stdout: cannot write"), "{outcome:?}");
    }
}
