//! The shared corpus of other text formats: compares with the output of other tools for the same input, except for
//! their bugs, each of which is described here. Where there is no such output, compares with the total that the input
//! states itself.

use std::collections::BTreeMap;
use std::path::Path;

use bstr::ByteSlice as _;

use crate::support::{self, run};

/// Stacks with their weights in thousandths.
type Folded = BTreeMap<String, u64>;

fn thousandths(weight: &str) -> u64 {
    (weight.parse::<f64>().unwrap() * 1000.0).round() as u64
}

fn parse(text: &str) -> Folded {
    let mut folded = Folded::new();
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        *folded.entry(stack.to_owned()).or_default() += thousandths(weight);
    }
    folded
}

fn fold(path: &Path, options: &[&str]) -> Folded {
    let arguments = options.iter().map(AsRef::as_ref).chain([path.as_os_str()]);
    parse(&run("fg-collapse", arguments, b"").ok().text())
}

/// Reads the output of another tool, without stacks of weight zero.
fn read_expected(path: &Path) -> Folded {
    let mut folded = parse(&std::fs::read_to_string(path).unwrap());
    folded.retain(|_, weight| *weight > 0);
    folded
}

/// Changes the frames of every stack.
fn map_frames(folded: Folded, change: impl Fn(&str) -> String) -> Folded {
    let mut changed = Folded::new();
    for (stack, weight) in folded {
        *changed.entry(stack.split(';').map(&change).collect::<Vec<_>>().join(";")).or_default() += weight;
    }
    changed
}

fn total(folded: &Folded) -> u64 {
    folded.values().sum()
}

#[track_caller]
fn assert_same(name: &str, actual: &Folded, expected: &Folded) {
    let only = |a: &Folded, b: &Folded| -> Vec<_> {
        let differs = |(stack, weight): &(&String, &u64)| b.get(*stack) != Some(*weight);
        a.iter().filter(differs).take(3).map(|(stack, weight)| format!("{stack} {weight}")).collect()
    };
    assert!(
        actual == expected,
        "{name}\nmissing: {:#?}\nunexpected: {:#?}",
        only(expected, actual),
        only(actual, expected)
    );
}

/// inferno cuts names that contain `::` at the last `<` or `(`, even inside of brackets, keeps the arguments of other
/// names, and leaves parts of mangled Rust names. So names are compared up to the first bracket.
#[test]
fn agrees_with_inferno_on_dtrace() {
    let (Some(inferno), Some(gregg)) = (support::corpus("inferno/collapse-dtrace"), support::corpus("gregg")) else {
        return;
    };
    let results = inferno.join("results");
    let large = gregg.join("example-dtrace-stacks.txt");
    assert_same("dtrace", &fold(&large, &[]), &read_expected(&results.join("dtrace-example.txt")));
    // inferno prints no offsets of leaves.
    let mut offsets = Folded::new();
    for (stack, weight) in fold(&large, &["--no-tidy"]) {
        let leaf = stack.rfind(';').unwrap_or(0);
        let end = stack[leaf..].find('+').map_or(stack.len(), |plus| leaf + plus);
        *offsets.entry(stack[..end].to_owned()).or_default() += weight;
    }
    assert_same("offsets", &offsets, &read_expected(&results.join("dtrace-example-offsets.txt")));
    let stem = |frame: &str| {
        let (module, name) = frame.split_once('`').unwrap_or(("", frame));
        let name = name.replace("_$u7b$$u7b$", "{{").replace("::_{{", "::{{");
        let end = name.char_indices().find(|(at, end)| *at > 0 && matches!(end, '<' | '(' | '{' | '+'));
        format!("{module}`{}", &name[..end.map_or(name.len(), |(at, _)| at)])
    };
    for name in ["java.txt", "hex-addresses.txt", "flamegraph-bug.txt", "stack-ustack.txt"] {
        let (ours, theirs) = (fold(&inferno.join(name), &[]), read_expected(&results.join(name)));
        if name == "java.txt" || name == "hex-addresses.txt" {
            assert_same(name, &map_frames(ours, stem), &map_frames(theirs, stem));
        } else {
            assert_eq!((total(&ours), ours.len()), (total(&theirs), theirs.len()), "{name}");
        }
    }
    assert_eq!(run("fg-collapse", [inferno.join("only-header-lines.txt")], b"").code(), 1);
}

/// inferno prints only leaves, drops those whose names end like functions that wait, keeps the last of equal stacks,
/// and leaves an underscore before Rust closures. Its stacks must be among ours, and ours must add up to the samples of
/// the threads.
#[test]
fn agrees_with_inferno_on_sample() {
    let Some(folder) = support::corpus("inferno/collapse-sample") else { return };
    let ours = fold(&folder.join("sample.txt"), &[]);
    let text = std::fs::read_to_string(folder.join("sample.txt")).unwrap();
    let threads = text.lines().filter_map(|line| line.trim_start().split_once(" Thread_"));
    let samples: u64 = threads.map(|(count, _)| count.parse::<u64>().unwrap()).sum();
    assert_eq!(total(&ours), samples * 1000);
    let loose = |frame: &str| frame.replace("::_{{", "::{{").replace("::_<", "::<");
    let theirs = map_frames(read_expected(&folder.join("results/sample-default.txt")), loose);
    let missed: Vec<_> =
        theirs.iter().filter(|(stack, weight)| ours.get(*stack).is_none_or(|own| own < weight)).collect();
    assert!(missed.is_empty() && !theirs.is_empty(), "{missed:#?}\n{:#?}", ours.keys().take(3).collect::<Vec<_>>());
    let is_malformed = |line: &&str| line.contains("txt:") && !line.contains("of other text left out");
    for (name, malformed) in [
        ("bad-stack-line.txt", 1),
        ("invalid-samples-field.txt", 1),
        ("no-four-spaces.txt", 1),
        ("stack-line-only-indent-chars.txt", 1),
        ("odd-indentation.txt", 0),
        ("end-before-call-graph-end.txt", 1),
    ] {
        let outcome = run("fg-collapse", [folder.join(name)], b"").ok();
        assert_eq!(
            (total(&parse(&outcome.text())), outcome.stderr.lines().filter(is_malformed).count()),
            (825_000, malformed),
            "{name}"
        );
    }
    assert_eq!(total(&fold(&folder.join("skipped-indentation.txt"), &[])), 825_000);
    assert_eq!(run("fg-collapse", [folder.join("end-before-call-graph-start.txt")], b"").code(), 1);
}

/// inferno rounds to milliseconds. It would overwrite equal stacks, but this file has none.
#[test]
fn agrees_with_inferno_on_vtune() {
    let Some(folder) = support::corpus("inferno/collapse-vtune") else { return };
    let mut ours = fold(&folder.join("vtune.csv"), &[]);
    let text = std::fs::read_to_string(folder.join("vtune.csv")).unwrap();
    let seconds = |line: &str| line.rsplit(',').nth(1).and_then(|time| time.parse::<f64>().ok()).unwrap_or(0.0);
    assert_eq!(total(&ours), (text.lines().map(seconds).sum::<f64>() * 1e6).round() as u64);
    for weight in ours.values_mut() {
        *weight = (*weight + 500) / 1000 * 1000;
    }
    assert_same("vtune", &ours, &read_expected(&folder.join("results/vtune-default.txt")));
    for (name, malformed) in [("bad-stack-line.csv", 1), ("invalid-time-field.csv", 1)] {
        let outcome = run("fg-collapse", [folder.join(name)], b"").ok();
        assert_eq!(
            (total(&parse(&outcome.text())), outcome.stderr.matches("csv:").count()),
            (168_572, malformed),
            "{name}"
        );
    }
    assert_eq!(run("fg-collapse", [folder.join("end-before-header.csv")], b"").code(), 1);
}

/// inferno subtracts a callee's calls from its caller's if those are more, keeps the last of equal stacks, and at the
/// end prints only the deepest open function. So stacks with callees are not compared. Ours add up to the column of
/// calls.
#[test]
fn agrees_with_inferno_on_vsprof() {
    let Some(folder) = support::corpus("inferno/collapse-vsprof") else { return };
    let ours = fold(&folder.join("CallTreeSummary.csv"), &[]);
    let text = std::fs::read_to_string(folder.join("CallTreeSummary.csv")).unwrap();
    let mut rows = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let calls: u64 = rows.records().map(|row| row.unwrap()[2].replace(',', "").parse::<u64>().unwrap()).sum();
    assert_eq!(total(&ours), calls * 1000);
    let theirs = read_expected(&folder.join("results/vsprof-default.txt"));
    assert!(theirs.keys().all(|stack| ours.contains_key(stack)));
    let is_leaf =
        |stack: &str| !ours.keys().any(|other| other.strip_prefix(stack).is_some_and(|rest| rest.starts_with(';')));
    let leaves: Vec<_> = theirs.iter().filter(|(stack, _)| is_leaf(stack)).collect();
    let differing = leaves.iter().filter(|(stack, weight)| ours[*stack] < **weight).count();
    assert!(leaves.len() > 50 && differing == 0, "{differing} of {}", leaves.len());
    for name in ["invalid-depth", "invalid-function-name", "invalid-number-of-calls", "missing-function-name"] {
        let outcome = run("fg-collapse", [folder.join(format!("{name}.csv"))], b"");
        assert!(outcome.code() == 1 && outcome.stderr.contains(": expected a level, a function"), "{outcome:?}");
    }
    assert_eq!(run("fg-collapse", [folder.join("incorrect-header.csv")], b"").code(), 1);
    assert_eq!(run("fg-collapse", [folder.join("empty-file.csv")], b"").code(), 1);
}

#[test]
fn agrees_with_inferno_on_ghcprof() {
    let Some(folder) = support::corpus("inferno/collapse-ghcprof") else { return };
    for (input, event, results) in [
        ("percent.prof", "time", "percent.txt"),
        ("ticks.prof", "time", "ticks.txt"),
        ("ticks.prof", "ticks", "ticks_ticks.txt"),
        ("ticks.prof", "bytes", "ticks_bytes.txt"),
    ] {
        let ours = fold(&folder.join(input), &[&format!("--event={event}")]);
        assert_same(results, &ours, &read_expected(&folder.join("results").join(results)));
    }
}

/// Files without another tool's output: the totals that they state themselves.
#[test]
fn files_have_the_totals_that_they_state() {
    let Some(folder) = support::corpus("speedscope") else { return };
    // Self costs of the `fn=` lines, of the first event: 20, 100 and 700.
    for name in ["example", "multiple-event-types", "name-compression"] {
        let ours = fold(&folder.join(format!("callgrind/callgrind.{name}.log")), &[]);
        let expected = "main 20\nmain;func1 100\nmain;func2 400\nmain;func1;func2 300\n";
        assert_same(name, &ours, &parse(expected));
    }
    let two = fold(&folder.join("callgrind/callgrind.multiple-event-types.log"), &["--event=Memory_(bytes)"]);
    assert_eq!(total(&two), (15000 + 15000 + 8000) * 1000);
    // The two root functions: [7447] and [5156]. The file is an excerpt of 35705 samples.
    let pmcstat = fold(&folder.join("pmcstat/simple.txt"), &[]);
    assert_eq!(total(&pmcstat), (7447 + 5156) * 1000);
    // The column of self weights. The first line states 96.08 Gc.
    let instruments = fold(&folder.join("instruments/cycles-example-deep-copy.txt"), &[]);
    assert!((total(&instruments) / 1_000_000_000).abs_diff(96_080) < 20, "{}", total(&instruments));
    for (name, expected) in [("simple", 14), ("simple-crlf", 14), ("simple-utf16-le", 14), ("recursion", 10)] {
        let text = std::fs::read(folder.join(format!("stackcollapse/{name}.txt"))).unwrap();
        assert_eq!(total(&fold(&folder.join(format!("stackcollapse/{name}.txt")), &[])), expected * 1000, "{name}");
        assert!(!text.is_empty());
    }
    let outcome = run("fg-collapse", [folder.join("stackcollapse/simple-with-invalids.txt")], b"").ok();
    assert_eq!((total(&parse(&outcome.text())), outcome.stderr.matches("txt:").count()), (14_000, 2), "{outcome:?}");
}

/// Folded text of other tools: the sum of the last words of the lines.
#[test]
fn folded_dialects_have_the_total_of_their_lines() {
    let Some(folder) = support::corpus("inferno") else { return };
    for name in [
        "flamegraph/austin-flames.txt",
        "flamegraph/base-flames.txt",
        "flamegraph/colors-async-profiler-collapsed-part.txt",
        "collapse-recursive/basic.txt",
        "diff-folded/before.txt",
    ] {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let words = bytes.lines().filter(|line| !line.starts_with(b"#")).filter_map(|line| line.rsplit_str(" ").next());
        let sum: u64 =
            words.filter(|word| !word.is_empty()).map(|word| word.to_str().unwrap().parse::<u64>().unwrap()).sum();
        let outcome = run("fg-collapse", [folder.join(name)], b"").ok();
        assert_eq!((total(&parse(&outcome.text())), outcome.stderr.as_str()), (sum * 1000, ""), "{name}");
    }
}
