//! fg-bench: runs, their measures, and commands that fail, hang or print.

use std::path::Path;
use std::process::Stdio;

use crate::support::{Outcome, command, directory, eventually, run, run_command, tool};

/// Runs fg-bench in this folder, with the output of the commands as the measure.
fn bench(folder: &Path, before: &str, after: &str, options: &[&str]) -> Outcome {
    let mut command = command(tool("fg-bench"));
    command.current_dir(folder).args(["--measure", "sh -c \"$FG_COMMAND\"", "--before", before, "--after", after]);
    command.args(options);
    run_command(command, b"")
}

/// Writes profiles of ten functions, of which the one after has a function that grew.
fn profiles(folder: &Path) {
    let text = |grown: u32| -> String {
        let weight = |number: u32| 1000 + 37 * number + if number == 7 { grown } else { 0 };
        (0..10).map(|number| format!("main;f{number} {}\n", weight(number))).collect()
    };
    std::fs::write(folder.join("b"), text(0)).unwrap();
    std::fs::write(folder.join("a"), text(500)).unwrap();
}

#[test]
fn names_the_function_that_grew_and_keeps_the_runs() {
    let folder = directory();
    profiles(folder.path());
    let outcome = bench(folder.path(), "cat b", "cat a", &["--pairs=3"]);
    assert_eq!(outcome.code(), 1, "{outcome:?}");
    let text = outcome.text();
    assert!(
        text.starts_with("growth of 2% or more in 3 pairs of runs; all: +4.29%\nf7: self +4.29% of all before"),
        "{text}"
    );
    assert!(text.contains("(1259.0 -> 1759.0 a run), chance 0.0"), "{text}");
    let mut names: Vec<String> = std::fs::read_dir(folder.path().join("fg-bench.runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = ["after", "before"].map(|side| (1..=3).map(move |run| format!("{side}.{run:04}.folded")));
    assert_eq!(names, expected.into_iter().flatten().collect::<Vec<_>>());
}

#[test]
fn keeps_the_runs_of_the_benchmark_before() {
    let folder = directory();
    profiles(folder.path());
    let files = |name: &str| std::fs::read_dir(folder.path().join(name)).unwrap().count();
    assert_eq!(bench(folder.path(), "cat b", "cat a", &["--pairs=3"]).stderr, "");
    std::fs::write(folder.path().join("fg-bench.runs/notes"), "mine").unwrap();
    let again = bench(folder.path(), "cat b", "cat a", &["--pairs=2"]);
    assert_eq!(again.code(), 1, "{again:?}");
    assert_eq!(again.stderr, "fg-bench: the runs of the last benchmark are now in fg-bench.runs.old\n");
    assert_eq!((files("fg-bench.runs"), files("fg-bench.runs.old")), (2 * 2 + 1, 2 * 3));
    // Only the last one is kept, and no other file is touched.
    std::fs::write(folder.path().join("fg-bench.runs.old/other"), "mine").unwrap();
    bench(folder.path(), "cat b", "cat a", &["--pairs=2"]);
    assert_eq!((files("fg-bench.runs"), files("fg-bench.runs.old")), (2 * 2 + 1, 2 * 2 + 1));
}

#[test]
fn refuses_wrong_options_before_the_first_run() {
    let folder = directory();
    profiles(folder.path());
    let outcome = bench(folder.path(), "cat b", "cat a", &["--pairs=2", "--runs=a"]);
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (2, "fg-bench: --runs a: is a file; name a folder\n"));
    let outcome = run("fg-bench", ["--before=true", "--after=true", "-F0"], b"");
    let message = "invalid value '0' for '--frequency <HZ>': expected a whole number, 1 or more";
    assert!(outcome.code() == 2 && outcome.stderr.contains(message), "{outcome:?}");
}

/// Puts fg-bench beside a program that takes the place of fg-record, and says this of each run.
#[cfg(unix)]
fn bench_with_recorder(folder: &Path, summary: &str, options: &[&str]) -> Outcome {
    use std::os::unix::fs::PermissionsExt as _;
    let (own, recorder) = (folder.join("fg-bench"), folder.join("fg-record"));
    std::fs::copy(tool("fg-bench"), &own).unwrap();
    let script =
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do\ncase $1 in --summary-to) summary=$2;; -o) out=$2;; esac\nshift\ndone\n";
    let script = format!("{script}echo 'main;f 100' > \"$out\"\necho '{summary}' > \"$summary\"\n");
    std::fs::write(&recorder, script).unwrap();
    std::fs::set_permissions(&recorder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = command(&own);
    command.current_dir(folder).args(["--pairs=2", "--before=x", "--after=y"]).args(options);
    run_command(command, b"")
}

#[cfg(unix)]
#[test]
fn shows_the_commands_time_and_what_was_wrong_with_recordings() {
    let folder = directory();
    let summary = r#"{ "elapsed_seconds": 12.5, "warnings": ["lost 5 of 105 samples (4.8 %)"] }"#;
    let text = bench_with_recorder(folder.path(), summary, &["-q"]).text();
    assert!(text.contains("\nelapsed time: +0.00% (12.50 s -> 12.50 s a run), chance "), "{text}");
    assert!(text.contains(", run 1 and 3 other runs: lost 5 of 105 samples (4.8 %)\n"), "{text}");
    let json = bench_with_recorder(folder.path(), summary, &["-q", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(json["warnings"][0].as_str().unwrap().ends_with("lost 5 of 105 samples (4.8 %)"), "{json}");
    assert_eq!(json["elapsed_seconds"]["before"], 12.5, "{json}");
}

#[cfg(unix)]
#[test]
fn shows_progress_on_a_terminal_only() {
    use crate::support::{run_bounded, terminal::Terminal};
    for (options, expected) in [(&["--pairs=2"][..], true), (&["--pairs=2", "-q"], false)] {
        let folder = directory();
        let terminal = Terminal::open();
        let mut command = command(tool("fg-bench"));
        // Progress is shown after a second.
        let slow = "sleep 0.6; echo 5";
        command.current_dir(folder.path()).args(options).args(["--measure", "sh -c \"$FG_COMMAND\""]);
        command.args(["--before", slow, "--after", slow]).stdout(Stdio::null()).stderr(terminal.stream());
        run_bounded(&mut command);
        drop(command);
        let shown = terminal.shown();
        assert_eq!(shown.contains("\rfg-bench: 1 of 2 pairs, "), expected, "{shown:?}");
        // The line is gone at the end.
        assert!(shown.is_empty() || shown.ends_with('\r'), "{shown:?}");
    }
}

#[test]
fn writes_the_verdict_as_json() {
    let folder = directory();
    profiles(folder.path());
    let json = |after: &str, runs: &str| -> serde_json::Value {
        let outcome = bench(folder.path(), "cat b", after, &["--pairs=3", "--json", "--runs", runs]);
        serde_json::from_slice(&outcome.stdout).unwrap()
    };
    let grown = json("cat a", "grown");
    assert_eq!((&grown["verdict"], &grown["pairs"]), (&"growth".into(), &3.into()), "{grown}");
    let change = &grown["changes"][0];
    assert_eq!((&change["function"], &change["weight"]), (&"f7".into(), &"self".into()), "{grown}");
    assert_eq!((&change["before"], &change["after"]), (&1259.0.into(), &1759.0.into()), "{grown}");
    let same = json("cat b", "same");
    assert_eq!((&same["verdict"], &same["changes"]), (&"no growth".into(), &serde_json::json!([])), "{same}");
}

/// The numbers that a measure writes are judged alike by all programs: they are no samples.
#[test]
fn numbers_are_judged_alike_by_all_programs() {
    let folder = directory();
    for (side, numbers) in [("b", ["1000", "1010", "990", "1005"]), ("a", ["1043", "1052", "1035", "1049"])] {
        for (number, text) in (1..).zip(numbers) {
            std::fs::write(folder.path().join(format!("{side}.{number}")), text).unwrap();
        }
    }
    let measure = "n=$(($(cat n.$FG_SIDE 2> /dev/null || echo 0) + 1)); echo $n > n.$FG_SIDE; cat $FG_SIDE.$n";
    let mut command = command(tool("fg-bench"));
    command.current_dir(folder.path()).args(["--pairs=4", "--before=x", "--after=x", "--measure", measure]);
    assert_eq!(run_command(command, b"").code(), 1);
    let judge = |program: &str, options: &[&str]| {
        let mut command = crate::support::command(tool(program));
        let files = |side: &str| (1..=4).map(|n| format!("fg-bench.runs/{side}.{n:04}.folded")).collect::<Vec<_>>();
        command.current_dir(folder.path()).args(options);
        command.arg("--before").args(files("before")).arg("--after").args(files("after"));
        run_command(command, b"").code()
    };
    assert_eq!(judge("fg-check", &["--growth=2%"]), 1);
    assert_eq!(judge("fg-diff", &["--significant", "--exit-code"]), 1);
}

#[test]
fn ends_when_no_growth_is_possible() {
    let folder = directory();
    profiles(folder.path());
    let outcome = bench(folder.path(), "cat b", "cat b", &["--min-growth=5%"]).ok();
    assert!(outcome.text().starts_with("no growth of 5% or more in "), "{outcome:?}");
    assert_eq!(outcome.text().lines().count(), 1);
    // Programs of different names are one program.
    std::fs::write(
        folder.path().join("x"),
        std::fs::read_to_string(folder.path().join("b")).unwrap().replace("main", "catb"),
    )
    .unwrap();
    let outcome = bench(folder.path(), "cat b", "cat x", &["--pairs=2", "--runs=other"]).ok();
    assert_eq!(outcome.stderr, "fg-bench: main is compared as catb; --exact-names compares names as they are\n");
}

#[test]
fn two_checkouts_are_one_program() {
    let folder = directory();
    let text =
        "python3;<module> (/w/SIDE/app.py);run (/w/SIDE/lib/run.py) 500\npython3;<module> (/w/SIDE/app.py) 300\n";
    std::fs::write(folder.path().join("b"), text.replace("SIDE", "old")).unwrap();
    std::fs::write(folder.path().join("a"), text.replace("SIDE", "new")).unwrap();
    let outcome = bench(folder.path(), "cat b", "cat a", &["--pairs=3", "--json"]).ok();
    assert_eq!(outcome.stderr, "fg-bench: /w/old/ is compared as /w/new/; --exact-names compares names as they are\n");
    let json: serde_json::Value = serde_json::from_slice(&outcome.stdout).unwrap();
    assert_eq!(json["counterparts"], serde_json::json!([["/w/old", "/w/new"]]));
}

#[test]
fn compares_numbers_and_exact_counts() {
    let folder = directory();
    let number = bench(folder.path(), "echo 100", "echo 110", &["--pairs=4", "--runs=numbers"]);
    assert_eq!(number.code(), 1, "{number:?}");
    assert!(number.text().contains("value: self +10.00% of all before (100.0 -> 110.0 a run)"), "{number:?}");
    let exact = |before: &str, after: &str, runs: &str| {
        bench(folder.path(), before, after, &["--exact", "--min-growth=0.01%", "--runs", runs]).code()
    };
    let counts = |parse: u32| format!("printf 'main;parse {parse}\\nmain;read 5000000\\n'");
    assert_eq!(exact(&counts(1_000_000), &counts(1_001_000), "grown"), 1);
    assert_eq!(exact(&counts(1_000_000), &counts(1_000_000), "same"), 0);
}

#[test]
fn reports_commands_that_fail_or_hang() {
    let folder = directory();
    profiles(folder.path());
    for (after, options, message) in [
        (
            "echo oops >&2; exit 3",
            &["--pairs=2"][..],
            "after, run 1: the command failed (exit status: 3); it wrote: oops",
        ),
        ("sleep 1000", &["--pairs=2", "--timeout=0.1"], "after, run 1: the command took longer than --timeout"),
        (
            "sleep 1000",
            &["--max-time=0.3"],
            "the time is over after 0 complete pairs of runs, at least 2 are needed; raise --max-time",
        ),
        ("/nonexistent/program", &["--pairs=2"], "after, run 1: the command failed (exit status: 127); it wrote: "),
        (
            "true",
            &["--pairs=2"],
            "after, run 1: no weight: --measure wrote nothing; it must write a profile or a number",
        ),
        (
            "echo not a profile",
            &["--pairs=2"],
            "after, run 1: the result is neither a number nor a profile that fg-collapse reads; it begins with: not a profile\n",
        ),
        (
            "echo 0.0000011",
            &["--pairs=2"],
            "--measure wrote 0.0000011: six decimal places are too few for it; write a smaller unit, such as nanoseconds",
        ),
        ("echo 1e-12", &["--pairs=2"], "--measure wrote 1e-12: six decimal places are too few for it"),
        ("echo 0", &["--pairs=2"], "--measure wrote 0: only numbers above 0 can be compared"),
        ("echo -5", &["--pairs=2"], "--measure wrote -5: only numbers above 0 can be compared"),
    ] {
        let outcome = bench(folder.path(), "cat b", after, &[options, &["--seed=1"]].concat());
        assert_eq!((outcome.code(), outcome.text().as_str()), (2, ""), "{outcome:?}");
        assert!(outcome.stderr.contains(message), "{outcome:?}");
        assert!(!folder.path().join("fg-bench.runs").exists(), "{outcome:?}");
    }
    assert_eq!(bench(folder.path(), "cat b", "cat a", &["--pairs=1"]).code(), 2);
    assert_eq!(bench(folder.path(), "", "cat a", &["--pairs=2"]).code(), 2);
    // A folder is of one benchmark at a time.
    let inner = "cat b; FG_SIDE=x \"$BENCH\" --runs=shared --pairs=2 --before x --after x --measure 'echo 5' >&2";
    let mut command = command(tool("fg-bench"));
    command.current_dir(folder.path()).env("BENCH", tool("fg-bench")).args(["--runs=shared", "--pairs=2"]);
    command.args(["--measure", "sh -c \"$FG_COMMAND\"", "--before", inner, "--after", inner]);
    let outcome = run_command(command, b"");
    assert!(outcome.stderr.contains("shared: in use by another fg-bench; if none runs"), "{outcome:?}");
    // Complete pairs stay, without what the failed one left.
    let third = "echo >> n; [ $(wc -l < n) -lt 3 ] && cat a";
    let outcome = bench(folder.path(), "cat b", third, &["--pairs=3"]);
    assert!(outcome.stderr.contains("the profiles of 2 pairs of runs are in fg-bench.runs\n"), "{outcome:?}");
    assert_eq!(std::fs::read_dir(folder.path().join("fg-bench.runs")).unwrap().count(), 4);
}

#[cfg(unix)]
#[test]
fn says_that_it_was_interrupted() {
    let folder = directory();
    profiles(folder.path());
    // The command interrupts the benchmark, which is its grandparent: $FG_COMMAND runs in a shell of the measure.
    let interrupt = "kill -INT $(ps -o ppid= -p $PPID); sleep 1000";
    let outcome = bench(folder.path(), "cat b", interrupt, &[]);
    assert_eq!((outcome.code(), outcome.text().as_str()), (130, ""), "{outcome:?}");
    let message = "interrupted after 0 complete pairs of runs, at least 2 are needed\n";
    assert!(outcome.stderr.ends_with(message), "{outcome:?}");
    assert!(!folder.path().join("fg-bench.runs").exists(), "{outcome:?}");
}

/// The benchmark cannot end its run itself then.
#[cfg(unix)]
#[test]
fn a_benchmark_that_is_killed_leaves_nothing_behind() {
    let recorded: &[&[&str]] = if crate::support::recording::can_record() { &[&[]] } else { &[] };
    for options in [&["--measure", "sh -c \"$FG_COMMAND\""][..]].iter().chain(recorded) {
        let folder = directory();
        let wait = "sleep 1000 & echo $! $$ $PPID > pids.new; mv pids.new pids; wait";
        let mut command = command(tool("fg-bench"));
        command.current_dir(folder.path()).args(*options).args(["--before", wait, "--after", wait]);
        let mut bench = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let read_pids = || std::fs::read_to_string(folder.path().join("pids")).unwrap_or_default();
        assert!(eventually(|| !read_pids().is_empty()));
        bench.kill().unwrap();
        bench.wait().unwrap();
        // The process that nobody waits for is a zombie for a moment.
        let is_alive =
            |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        assert!(eventually(|| !read_pids().split_whitespace().any(is_alive)), "{options:?}: {}", read_pids());
    }
}

#[test]
fn what_commands_print_does_not_mix_with_the_verdict() {
    let folder = directory();
    profiles(folder.path());
    let loud = "cat a; seq 100000 >&2";
    let outcome = bench(folder.path(), "cat b; echo noise >&2", loud, &["--pairs=2"]);
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (1, ""));
    assert_eq!(outcome.text().lines().next(), Some("growth of 2% or more in 2 pairs of runs; all: +4.29%"));
}

#[test]
fn records_samples_of_commands() {
    if !crate::support::recording::can_record() {
        return;
    }
    let folder = directory();
    let spin = "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done; echo printed; echo loud >&2";
    let mut command = command(tool("fg-bench"));
    command.current_dir(folder.path()).args(["--pairs=2", "--before", spin, "--after", spin]);
    let outcome = run_command(command, b"");
    assert!(outcome.code() < 2, "{outcome:?}");
    assert!(!outcome.text().contains("printed") && !outcome.stderr.contains("loud"), "{outcome:?}");
    let profile = std::fs::read_to_string(folder.path().join("fg-bench.runs/after.0002.folded")).unwrap();
    assert!(profile.lines().all(|line| line.starts_with("sh")), "{profile}");
    // Of a command that fails, the message shows what the command wrote, not the recorder.
    let mut failing = crate::support::command(tool("fg-bench"));
    let oops = format!("{spin}; echo oops >&2; exit 3");
    failing.current_dir(folder.path()).args(["--pairs=2", "--runs=failed", "--before", &oops, "--after", &oops]);
    let outcome = run_command(failing, b"");
    assert!(outcome.code() == 2 && outcome.stderr.ends_with("; it wrote: oops\n"), "{outcome:?}");
}
