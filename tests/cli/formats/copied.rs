//! Texts whose blanks or lines changed when they were copied: from a terminal, an issue, a browser.

use std::path::Path;

use super::folder;
use crate::support::{Outcome, run};

/// A change of each line of a text.
struct Change {
    name: &'static str,
    apply: fn(&str) -> String,
}

/// Changes each line of a text.
fn map_lines(text: &str, change: impl Fn(&str) -> String) -> String {
    text.split_inclusive('\n').map(change).collect()
}

/// Replaces the tabs of a line by the blanks that a terminal shows.
fn expand_tabs(line: &str) -> String {
    let (mut expanded, mut column) = (String::new(), 0);
    for character in line.chars() {
        let width = if character == '\t' { 8 - column % 8 } else { 1 };
        match character {
            '\t' => expanded.extend(std::iter::repeat_n(' ', width)),
            _ => expanded.push(character),
        }
        column += width;
    }
    expanded
}

/// Replaces each run of blanks by a single one.
fn squeeze_blanks(line: &str) -> String {
    let (mut squeezed, mut was_blank) = (String::new(), false);
    for character in line.chars() {
        let is_blank = matches!(character, ' ' | '\t');
        match is_blank {
            true if was_blank => {}
            true => squeezed.push(' '),
            false => squeezed.push(character),
        }
        was_blank = is_blank;
    }
    squeezed
}

const CHANGES: [Change; 5] = [
    Change {
        name: "without indentation",
        apply: |text| map_lines(text, |line| line.trim_start_matches([' ', '\t']).to_owned()),
    },
    Change {
        name: "double-spaced",
        apply: |text| map_lines(text, |line| format!("{}\n\n", line.trim_end_matches('\n'))),
    },
    Change { name: "with expanded tabs", apply: |text| map_lines(text, expand_tabs) },
    Change { name: "with single blanks", apply: |text| map_lines(text, squeeze_blanks) },
    Change { name: "indented", apply: |text| map_lines(text, |line| format!("    {line}")) },
];

/// Returns the examples that are text.
fn text_examples() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let examples = entries.filter(|name| Path::new(name).extension().is_none_or(|extension| extension != "folded"));
    let texts = examples.filter_map(|name| Some((name.clone(), std::fs::read_to_string(folder().join(name)).ok()?)));
    let mut texts: Vec<(String, String)> = texts.filter(|(_, text)| !text.contains('\0')).collect();
    texts.sort();
    assert!(texts.len() > 80);
    texts
}

/// Returns the outcome for a text, of which samples that are not the default must be named.
fn collapse(name: &str, text: &str) -> Outcome {
    let options: &[&str] = match name {
        "ftrace-cmd.txt" => &["--event=all"],
        "perf-sched.txt" => &["--format=perf-sched"],
        _ => &[],
    };
    run("fg-collapse", options, text.as_bytes())
}

/// Texts whose changed form gives another result: example and change.
const EXCEPTIONS: [(&str, &str); 2] = [
    // Blanks may be a part of the name of a folded stack's root.
    ("async-profiler.txt", "indented"),
    // It is a tree of two levels then. VTune writes such ones if stacks were not recorded.
    ("vtune.csv", "with single blanks"),
];

#[test]
fn changed_blanks_and_lines_give_the_same_stacks_or_are_reported() {
    let mut different = Vec::new();
    for (name, text) in text_examples() {
        let original = collapse(&name, &text);
        for change in CHANGES {
            let outcome = collapse(&name, &(change.apply)(&text));
            let is_reported = outcome.code() == 1 || outcome.stderr.contains("malformed");
            if !is_reported && (outcome.code(), &outcome.stdout) != (original.code(), &original.stdout) {
                different.push((name.clone(), change.name, outcome));
            }
        }
    }
    let unknown: Vec<_> = different.iter().filter(|(name, change, _)| !EXCEPTIONS.contains(&(name, change))).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert_eq!(different.len(), EXCEPTIONS.len());
}

/// Returns the change with this name of an example.
fn changed(name: &str, change: &str) -> String {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    (CHANGES.iter().find(|known| known.name == change).unwrap().apply)(&text)
}

#[test]
fn trees_without_their_indentation_are_refused() {
    for name in [
        "bpftrace.txt",
        "ghc-prof.txt",
        "ljp.txt",
        "pmcstat.txt",
        "pprof-raw.txt",
        "pprof-traces.txt",
        "sample.txt",
        "vtune.csv",
    ] {
        let outcome = run("fg-collapse", [""; 0], changed(name, "without indentation").as_bytes());
        assert_eq!(
            (outcome.code(), outcome.stdout.len(), outcome.stderr.lines().count()),
            (1, 0, 1),
            "{name}: {outcome:?}"
        );
        let what = "the indentation, which tells who calls whom, is lost; give the text as it was written";
        assert!(outcome.stderr.contains(what), "{name}: {outcome:?}");
    }
    // Functions without callers are not indented.
    let flat = "@ e [30 samples]\n\n66.67%  [20]       memcpy @ /lib/libc.so.7\n\n33.33%  [10]       hash @ /bin/app\n";
    assert_eq!(run("fg-collapse", [""; 0], flat.as_bytes()).ok().text(), "hash 10\nmemcpy 20\n");
}

#[test]
fn what_tells_the_stacks_without_blanks_is_read() {
    for (name, change) in [
        ("massif.out", "without indentation"),
        ("hprof-text.txt", "without indentation"),
        ("jstack.txt", "without indentation"),
        ("hprof-text.txt", "with expanded tabs"),
        ("heap-text-go.txt", "with expanded tabs"),
        ("heap-text-mutex.txt", "with expanded tabs"),
        ("goroutines-shared.txt", "with expanded tabs"),
        ("jstack.txt", "indented"),
        ("procstack.txt", "double-spaced"),
        ("phpspy.txt", "double-spaced"),
        ("gdb.txt", "double-spaced"),
        ("goroutines.txt", "double-spaced"),
        ("bpftrace.txt", "double-spaced"),
        ("jstack.txt", "double-spaced"),
    ] {
        let original = run("fg-collapse", [folder().join(name)], b"").ok();
        let outcome = run("fg-collapse", [""; 0], changed(name, change).as_bytes()).ok();
        assert_eq!(outcome.text(), original.text(), "{name} {change}: {outcome:?}");
    }
    let go = changed("goroutines-shared.txt", "with expanded tabs").replace("  ", " ");
    let original =
        run("fg-collapse", ["--srcline".as_ref(), folder().join("goroutines-shared.txt").as_os_str()], b"").ok();
    assert_eq!(run("fg-collapse", ["--srcline"], go.as_bytes()).ok().text(), original.text());
}

#[test]
fn blank_lines_between_all_lines_are_counted_but_end_no_stack() {
    let text = "0 f a.php:1\n\n1 <main> a.php:3\n\n\n\nwhat\n\n0 g a.php:1\n\n1 <main> a.php:3\n\n\n\n";
    let outcome = run("fg-collapse", ["--format=phpspy"], text.as_bytes()).ok();
    assert_eq!(outcome.text(), "<main>;f 1\n<main>;g 1\n");
    assert!(outcome.stderr.contains("stdin:7: expected a number"), "{outcome:?}");
}

#[test]
fn a_phpspy_stack_begins_with_its_leaf() {
    let text = "0 f a.php:1\n1 <main> a.php:3\n\n1 <main> a.php:3\n\n0 f a.php:1\n\n";
    let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
    assert_eq!(outcome.text(), "<main>;f 1\nf 1\n");
    assert!(outcome.stderr.contains("stdin:4: expected frame 0"), "{outcome:?}");
}
