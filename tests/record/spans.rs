//! Spans that a recorded program writes by its own clock are found again in its samples.

use std::process::Command;

use crate::folded::{Folded, may_record};
use crate::programs::program;
use crate::support::{directory, run_command, tool};

/// What stands between a mark and what follows its value.
fn field<'a>(text: &'a str, mark: &str, end: &str) -> &'a str {
    text.split_once(mark).and_then(|(_, rest)| rest.split_once(end)).unwrap().0
}

/// What the samples of a script add up to under a span's name, found by going through all spans for each of them.
fn by_hand(script: &str, spans: &str) -> Vec<(String, u64)> {
    let number = |span: &str, name: &str| {
        field(span, &format!("\"{name}\": "), [",", "}"][usize::from(name == "end")]).parse::<u64>().unwrap()
    };
    let mut sums = std::collections::BTreeMap::new();
    for header in script.lines().filter(|line| line.ends_with("cpu-clock: ")) {
        let tid: u64 = field(header, "/", " ").parse().unwrap();
        let (seconds, micros) = field(header, "] ", ": ").trim().split_once('.').unwrap();
        let time = (seconds.parse::<u64>().unwrap() * 1_000_000 + micros.parse::<u64>().unwrap()) * 1000;
        let holds =
            |span: &&str| number(span, "tid") == tid && (number(span, "start")..number(span, "end")).contains(&time);
        let innermost = spans.lines().filter(holds).max_by_key(|span| number(span, "start"));
        *sums.entry(innermost.map_or("[no span]", |span| field(span, "\"name\": \"", "\""))).or_default() += 1;
    }
    sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect()
}

#[test]
fn samples_stand_under_the_spans_that_the_program_wrote() {
    let (true, Some(requests)) = (may_record(), program("requests")) else { return };
    for (clock, stamps) in [("monotonic", "1"), ("realtime", "0")] {
        let folder = directory();
        let script = folder.path().join("script");
        let mut command = Command::new(tool("fg-record"));
        command.args(["--script", "-e", "cpu-clock", "-F", "999", "--clock", clock, "-o"]).arg(&script);
        let spans = run_command(
            {
                command.args(["--", &requests, stamps]);
                command
            },
            b"",
        )
        .ok();
        std::fs::write(folder.path().join("spans"), &spans.stdout).unwrap();
        let mut command = Command::new(tool("fg-collapse"));
        command.args(["--span", "spans", "script"]).current_dir(folder.path());
        let folded = Folded::of(&run_command(command, b"").ok());
        let of = |root: &str, function: &str| -> u64 {
            let stands = |stack: &[String]| stack[0] == root && stack.iter().any(|frame| frame.contains(function));
            folded.0.iter().filter(|(stack, _)| stands(stack)).map(|(_, weight)| weight).sum()
        };
        let expected = by_hand(&std::fs::read_to_string(script).unwrap(), &spans.text());
        assert_eq!(expected.len(), 3, "{expected:?}");
        for (name, sum) in &expected {
            assert_eq!(of(name, ""), *sum, "{name} by the {clock} clock: {expected:?}");
        }
        for (name, function) in [("query", "query"), ("GET /", "render")] {
            let (in_function, all) = (of(name, function), of(name, ""));
            assert!(in_function * 100 >= all * 95, "{in_function} of {all} of {name} are in {function}");
        }
    }
}
