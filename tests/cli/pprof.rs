//! fg-pprof: `go tool pprof` reads its output, and fg-collapse folds it back to the input.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{self, Outcome, command, directory, require, run, run_command};

const PROFILE: &str = "main 2\nmain;parse_[i] 3\nmain;parse_[i];read_[k] 12\nmain;write 5\n";
const COMPARISON: &str = "main 2 0\nmain;parse 3 4\nmain;parse;read 0 12\nmain;write 5 5\n";

/// Converts a folded profile to pprof.
fn convert(options: &[&str], folded: &[u8]) -> Vec<u8> {
    run("fg-pprof", options, folded).ok().stdout
}

/// Decompresses gzip data.
fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut text).unwrap();
    text
}

/// Asserts that fg-collapse makes the same of a text and of its conversion to pprof.
#[track_caller]
fn assert_round_trip(name: &str, options: &[&str], folded: &[u8]) {
    let direct = run("fg-collapse", ["-q", "--format=folded"], folded).ok().stdout;
    let back = run("fg-collapse", ["-q"], &convert(options, folded)).ok();
    assert!(!direct.is_empty() && back.stdout == direct, "{name}: {:?}", back.text());
}

#[test]
fn round_trips_are_the_identity() {
    assert_round_trip("suffixes", &[], PROFILE.as_bytes());
    assert_round_trip("a comparison", &[], COMPARISON.as_bytes());
    assert_round_trip("all new", &[], b"a;b 0 1\nc 0 2\n");
    assert_round_trip("all gone", &[], b"a;b 1 0\nc 2 0\n");
    assert_round_trip("nothing", &[], b"a;b 0 0\nc 0 0\n");
    assert_round_trip("no weight", &[], b"a;b 0\na 1\n");
    assert_round_trip("fractions", &["--unit=apples"], b"a;b 0.25\na 100\nb 0.000001\n");
    assert_round_trip("odd names", &[], b"a;;b\xff\x01 1\n;a 2\n  x ;y z 3\n[unknown];[lost] 4\n");
    let deep = format!("{}leaf 7\n", "f;".repeat(5_000));
    assert_round_trip("a deep stack", &[], deep.as_bytes());
    assert_round_trip("the largest", &[], format!("a {}\n", i64::MAX).as_bytes());
}

/// Asserts that every folded file below a directory survives the round trip, and returns their number.
fn assert_round_trips_below(folder: &Path) -> usize {
    let mut count = 0;
    for file in files(folder) {
        let direct = run("fg-collapse", ["-q".as_ref(), "--format=folded".as_ref(), file.as_os_str()], b"");
        let name = file.to_string_lossy();
        // Only folded text, of which at least one stack is accepted.
        if name.contains("perf-script") || direct.code() != 0 || direct.stdout.is_empty() {
            continue;
        }
        let pprof = run("fg-pprof", [""; 0], &direct.stdout).ok();
        let back = run("fg-collapse", ["-q"], &pprof.stdout).ok();
        assert!(back.stdout == direct.stdout, "{name}");
        count += 1;
    }
    count
}

#[test]
fn round_trips_every_folded_file_of_the_tests() {
    let folders = ["collapse", "diff", "filter"];
    let count: usize = folders.iter().map(|folder| assert_round_trips_below(&support::data(folder))).sum();
    assert!(count > 80, "{count}");
}

#[test]
fn round_trips_every_folded_file_of_the_corpus() {
    let Some(corpus) = support::corpus(".") else { return };
    let folders =
        ["recorded", "gregg/expected", "inferno/diff-folded", "inferno/flamegraph", "speedscope/stackcollapse"];
    let count: usize = folders.iter().map(|folder| assert_round_trips_below(&corpus.join(folder))).sum();
    assert!(count > 70, "{count}");
}

/// Returns all files below a directory, sorted.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn output_is_deterministic_and_has_a_time_on_request() {
    let mut lines: Vec<&str> = PROFILE.lines().collect();
    let once = convert(&[], PROFILE.as_bytes());
    lines.reverse();
    assert_eq!(convert(&[], lines.join("\n").as_bytes()), once);
    assert_eq!(once[4..8], [0; 4], "the gzip header has no time");
    assert_ne!(convert(&["--time=1700000000"], PROFILE.as_bytes()), once);
    let wrong = run("fg-pprof", ["--time=soon"], b"");
    assert_eq!(wrong.code(), 2, "{wrong:?}");
}

#[test]
fn reports_a_total_that_overflows() {
    let large = format!("a {}\nb 1\n", i64::MAX);
    for (text, unit) in [(large.as_str(), "count"), ("a 9223372036854775807\nb 0.5\n", "count/10")] {
        let outcome = run("fg-pprof", [""; 0], text.as_bytes());
        assert_eq!((outcome.code(), outcome.stdout.len(), outcome.stderr.lines().count()), (1, 0, 1), "{outcome:?}");
        assert!(outcome.stderr.contains("2^63") && outcome.stderr.contains(unit), "{outcome:?}");
    }
}

#[test]
fn rejects_a_mixture_of_profiles_and_comparisons() {
    let folder = directory();
    std::fs::write(folder.path().join("a"), PROFILE).unwrap();
    std::fs::write(folder.path().join("b"), convert(&[], COMPARISON.as_bytes())).unwrap();
    let outcome = run("fg-collapse", ["a", "b"].map(|name| folder.path().join(name)), b"");
    assert_eq!((outcome.code(), outcome.text().lines().count()), (1, 4), "{outcome:?}");
    assert!(outcome.stderr.contains("negative values"), "{outcome:?}");
}

/// Runs `go tool pprof` on a profile.
fn go_pprof(options: &[&str], profile: &[u8]) -> Outcome {
    let folder = directory();
    let file = folder.path().join("profile.pb.gz");
    std::fs::write(&file, profile).unwrap();
    let mut command = command("go");
    command.args(["tool", "pprof"]).args(options).arg(file);
    command.env("HOME", folder.path()).env("PPROF_TMPDIR", folder.path()).env("GOTOOLCHAIN", "local");
    run_command(command, b"").ok()
}

/// Parses self and inclusive weight of each function from the output of `go tool pprof -top`.
fn parse_top(text: &str) -> BTreeMap<String, (i64, i64)> {
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
    rows.map(|row| {
        let words: Vec<&str> = row.split_whitespace().collect();
        (words[5..].join(" "), (words[0].parse().unwrap(), words[3].parse().unwrap()))
    })
    .collect()
}

/// Returns the same from two columns of fg-csv.
fn csv_table(folded: &[u8], columns: [usize; 2]) -> BTreeMap<String, (i64, i64)> {
    let text = run("fg-csv", ["--tsv"], folded).ok().text();
    let number = |row: &[&str], column: usize| row[columns[column]].parse().unwrap();
    let rows = text.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.map(|row| (row[0].to_owned(), (number(&row, 0), number(&row, 1)))).collect()
}

const SHOW_ALL: [&str; 3] = ["-nodefraction=0", "-edgefraction=0", "-nodecount=100000"];

#[test]
fn go_tool_pprof_agrees_with_fg_csv() {
    if !require("go") {
        return;
    }
    let inlined = support::data("collapse/inlined.truth.folded.gz");
    let recorded = run("fg-collapse", [inlined.as_os_str()], b"").ok().stdout;
    for folded in [PROFILE.as_bytes(), &recorded] {
        let profile = convert(&["--type=hits", "--unit=count"], folded);
        let shown = go_pprof(&[&["-top"], &SHOW_ALL[..]].concat(), &profile).text();
        assert!(shown.starts_with("Type: hits\n"), "{shown}");
        assert_eq!(parse_top(&shown), csv_table(folded, [1, 3]));
    }
}

#[test]
fn go_tool_pprof_shows_every_stack() {
    if !require("go") {
        return;
    }
    let shown = go_pprof(&["-traces"], &convert(&[], PROFILE.as_bytes())).text();
    let mut stacks: Vec<String> = Vec::new();
    for trace in shown.split("-----------+-------------------------------------------------------\n").skip(1) {
        let mut frames: Vec<&str> = trace.lines().map(str::trim).collect();
        let Some((weight, leaf)) = frames.first().and_then(|first| first.split_once("   ")) else { continue };
        frames[0] = leaf;
        frames.reverse();
        stacks.push(format!("{} {weight}\n", frames.join(";")));
    }
    stacks.sort();
    assert_eq!(stacks.concat(), PROFILE, "{shown}");
}

#[test]
fn go_tool_pprof_shows_a_comparison() {
    if !require("go") {
        return;
    }
    let shown = go_pprof(&[&["-top"], &SHOW_ALL[..]].concat(), &convert(&[], COMPARISON.as_bytes())).text();
    assert!(shown.contains("of 10 total"), "shares are relative to the total before: {shown}");
    let expected = [("main", (-2, 11)), ("parse", (1, 13)), ("read", (12, 12))];
    let changed = expected.into_iter().map(|(name, weights)| (name.to_owned(), weights));
    assert_eq!(parse_top(&shown), changed.collect());
}

#[test]
fn go_tool_pprof_shows_units_time_and_comments() {
    if !require("go") {
        return;
    }
    let options = ["--type=delay", "--unit=seconds", "--time=1700000000", "--comment=by hand", "--comment=twice"];
    let profile = convert(&options, b"main;wait 1.5\nmain 0.25\n");
    let top = go_pprof(&["-top"], &profile).text();
    assert!(top.contains("Type: delay\nTime: Nov 14, 2023") && top.contains("1750ms"), "{top}");
    let comments = go_pprof(&["-comments"], &profile).text();
    assert!(comments.contains("by hand\ntwice\n"), "{comments}");
    assert!(gunzip(&profile).windows(12).any(|window| window == b"milliseconds"));
}

#[test]
fn rejects_an_empty_unit_or_type() {
    for option in ["--unit", "--type"] {
        for name in ["", " "] {
            let outcome = run("fg-pprof", [option, name], b"a 1\n");
            assert_eq!((outcome.code(), outcome.stdout.len()), (2, 0), "{outcome:?}");
            assert!(outcome.stderr.contains(option) && outcome.stderr.contains("expected a name"), "{outcome:?}");
        }
    }
}

#[test]
fn otlp_keeps_names_that_are_not_utf_8_apart() {
    let written = run("fg-pprof", ["--otlp"], b"a;b\xff 1\na;b\xfe 2\nc 3\n").ok();
    assert!(written.stderr.contains("--otlp: 2 names with bytes that are not UTF-8, written as \\xNN"), "{written:?}");
    let back = run("fg-collapse", ["-q"], &written.stdout).ok().text();
    assert_eq!(back, "a;b\\xfe 2\na;b\\xff 1\nc 3\n");
    assert_eq!(run("fg-pprof", ["--otlp"], "é 1\n".as_bytes()).ok().stderr, "");
}

#[test]
fn says_that_all_weights_are_0() {
    for text in [&b"a;b 0\na;c 0\n"[..], b"a;b 0 0\n"] {
        for options in [&[][..], &["--unit=bytes"]] {
            let outcome = run("fg-pprof", options, text).ok();
            assert_eq!(outcome.stderr, "fg-pprof: all stacks have weight 0\n", "{outcome:?}");
        }
    }
    assert_eq!(run("fg-pprof", [""; 0], b"a;b 1 0\n").ok().stderr, "");
}
