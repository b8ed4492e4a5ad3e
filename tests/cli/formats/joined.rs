//! Inputs in which another document follows the first one, as `cat` joins files.

use super::{folder, total};
use crate::support::{Outcome, run};

fn example(name: &str) -> String {
    match name {
        "heaptrack" => HEAPTRACK.to_owned(),
        _ => std::fs::read_to_string(folder().join(name)).unwrap(),
    }
}

const HEAPTRACK: &str = "v 10400 3\nX a\ns 1 f\ni 1 0 1 0 0\nt 1 0\na 5 1\n+ 0\n";

fn collapse(text: &str) -> Outcome {
    run("fg-collapse", [""; 0], text.as_bytes())
}

#[test]
fn another_document_is_refused_with_its_first_line() {
    for (first, second, offset) in [
        ("heap-text-go.txt", "heap-text-mutex.txt", 0),
        ("heap-text-go.txt", "heap-text-go.txt", 0),
        ("heap-text-jemalloc.heap", "heap-text-gperftools.heap", 0),
        // The line of the unit is the third.
        ("massif.out", "massif.out", 2),
        ("massif.out", "heaptrack", 0),
        ("heaptrack", "heaptrack", 0),
        ("memcheck.txt", "heap-text-go.txt", 0),
        ("heap-text-jemalloc.heap", "cpuprofile.cpuprofile", 0),
        ("memcheck.txt", "speedscope.json", 0),
        ("memray.csv", "heaptrack", 0),
        ("lsan.txt", "vsprof.csv", 0),
    ] {
        let (alone, text) = (example(first), example(first) + &example(second));
        let outcome = collapse(&text);
        assert_eq!(outcome.code(), 1, "{first} and {second}: {outcome:?}");
        assert_eq!(outcome.text(), collapse(&alone).text(), "{first} and {second}: {outcome:?}");
        let message = format!("fg-collapse: stdin:{}: ", alone.lines().count() + 1 + offset);
        let found = outcome.stderr.lines().any(|line| line.starts_with(&message) && line.contains("begins here"));
        assert!(found, "{first} and {second}: {message}: {outcome:?}");
    }
}

#[test]
fn formats_that_any_line_may_begin_are_refused_together() {
    for (first, second, names) in [
        ("jstack.txt", "goroutines-shared.txt", "goroutines and jstack"),
        ("heap-text-go.txt", "goroutines-shared.txt", "goroutines and heap-text"),
        ("gdb.txt", "pprof-traces.txt", "pprof-traces and gdb"),
        ("wcp.txt", "memcheck.txt", "wcp and memcheck"),
        // Only the beginning shows the first format.
        ("eflame.txt", "wcp.txt", "eflame and wcp"),
        ("rprof.out", "java-exceptions.txt", "rprof and java-exceptions"),
    ] {
        let outcome = collapse(&(example(first) + &example(second)));
        assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{first} and {second}: {outcome:?}");
        assert!(
            outcome.stderr.contains(&format!("text of several formats ({names})")),
            "{first}, {second}: {outcome:?}"
        );
    }
}

#[test]
fn documents_after_the_end_of_xml_or_json_are_reported() {
    for (first, second, message) in [
        ("xctrace.xml", "goroutines.txt", "another document follows its end"),
        ("perfview.perfView.xml", "perfview.perfView.xml", "another document follows its end"),
        ("otlp-json.json", "speedscope.json", "a JSON document follows that is no OpenTelemetry profile"),
        ("cpuprofile.cpuprofile", "cpuprofile.cpuprofile", "expected the end of the file"),
    ] {
        let outcome = collapse(&(example(first) + &example(second)));
        assert_eq!(outcome.code(), 1, "{first} and {second}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{first} and {second}: {outcome:?}");
    }
    let outcome = collapse("[{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"name\":\"a\"},\n{\"nodes\":[]}\n").ok();
    assert!(outcome.stderr.contains("1 element of its list left out: no events"), "{outcome:?}");
}

#[test]
fn folded_stacks_within_another_format_are_reported() {
    for (first, malformed) in [("jstack.txt", 1), ("memcheck.txt", 1), ("goroutines.txt", 1)] {
        let alone = example(first);
        let outcome = collapse(&format!("{alone}main;a 100\nmain;b 200\nmain;c 300\n"));
        assert_eq!(outcome.text(), collapse(&alone).text(), "{first}: {outcome:?}");
        let message = format!("stdin:{}: folded stacks begin here", alone.lines().count() + 1);
        assert!(outcome.stderr.contains(&message), "{first}: {message}: {outcome:?}");
        assert!(outcome.stderr.contains(&format!("skipped {malformed} malformed line")), "{outcome:?}");
    }
}

#[test]
fn documents_that_may_recur_are_added_up() {
    for name in ["jstack.txt", "memcheck.txt", "goroutines-shared.txt", "memray.csv"] {
        let text = example(name);
        let outcome = collapse(&format!("{text}{text}")).ok();
        assert_eq!(total(&outcome.text()), 2 * total(&collapse(&text).text()), "{name}: {outcome:?}");
    }
}
