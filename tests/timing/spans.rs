//! Spans that a recorded program writes by its own clock match its samples.

use std::collections::BTreeMap;

use crate::support::programs::program;
use crate::support::recording::{Profile, Stack, can_record};
use crate::support::statistics::{ensure, statistical};
use crate::support::{command, directory, run_command, tool};

/// Returns the text between a mark and what follows its value.
fn field<'a>(text: &'a str, mark: &str, end: &str) -> &'a str {
    text.split_once(mark).and_then(|(_, rest)| rest.split_once(end)).unwrap().0
}

/// Returns a number of a span, which is a JSON object.
fn number(span: &str, key: &str) -> u64 {
    let end = if key == "end" { "}" } else { "," };
    field(span, &format!("\"{key}\": "), end).parse().unwrap()
}

/// Counts a script's samples by the name of their span. Searches all spans for each sample.
fn count_by_span(script: &str, spans: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for header in script.lines().filter(|line| line.ends_with("cpu-clock: ")) {
        let tid: u64 = field(header, "/", " ").parse().unwrap();
        let (seconds, micros) = field(header, "] ", ": ").trim().split_once('.').unwrap();
        let time = (seconds.parse::<u64>().unwrap() * 1_000_000 + micros.parse::<u64>().unwrap()) * 1000;
        let contains_sample =
            |span: &&str| number(span, "tid") == tid && (number(span, "start")..number(span, "end")).contains(&time);
        let innermost = spans.lines().filter(contains_sample).max_by_key(|span| number(span, "start"));
        let name = innermost.map_or("[no span]", |span| field(span, "\"name\": \"", "\""));
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn samples_are_below_the_spans_that_the_program_wrote() {
    let (true, Some(requests)) = (can_record(), program("requests")) else { return };
    for (clock, clock_argument) in [("monotonic", "1"), ("realtime", "0")] {
        statistical(|| {
            let folder = directory();
            let script = folder.path().join("script");
            let mut recorder = command(tool("fg-record"));
            recorder.args(["--script", "-e", "cpu-clock", "-F", "999", "--clock", clock, "-o"]).arg(&script);
            recorder.args(["--", &requests, clock_argument]);
            let spans = run_command(recorder, b"").ok();
            std::fs::write(folder.path().join("spans"), &spans.stdout).unwrap();
            let mut collapse = command(tool("fg-collapse"));
            collapse.args(["--span", "spans", "script"]).current_dir(folder.path());
            let profile = Profile::from_stdout(&run_command(collapse, b"").ok());
            // The frame before the thread is that of the innermost span.
            let innermost = |stack: &&Stack| {
                let thread = stack.frames.iter().position(|frame| frame == "requests").unwrap();
                stack.frames[thread - 1].clone()
            };
            let expected = count_by_span(&std::fs::read_to_string(script).unwrap(), &spans.text());
            ensure!(expected.len() == 3, "{expected:?}");
            for (name, count) in &expected {
                let weight: u64 =
                    profile.0.iter().filter(|stack| innermost(stack) == *name).map(|stack| stack.weight).sum();
                assert_eq!(weight, *count, "{name} by the {clock} clock: {expected:?}");
            }
            for (name, function) in [("query", "query"), ("GET /", "render")] {
                let (all, in_function) = (expected[name], profile.weight(&[name, "serve", function]));
                ensure!(in_function * 100 >= all * 95, "{in_function} of {all} of {name} are in {function}");
            }
            Ok(())
        });
    }
}
