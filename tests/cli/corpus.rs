//! The shared corpus of perf script text and documents: compares with the output of other tools for the same input,
//! except for their bugs, each of which is described here.

use std::path::Path;

use crate::collapse::{assert_same_lines, sorted};
use crate::support::{self, run};

fn read(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_none_or(|extension| extension != "gz") {
        return bytes;
    }
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).unwrap();
    text
}

/// Returns the files of a directory whose names have an ending.
fn files(folder: &Path, ending: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    found.sort();
    found
}

fn stem(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().split('.').next().unwrap().to_owned()
}

#[test]
fn agrees_with_perfs_own_resolution() {
    let Some(folder) = support::corpus("recorded") else { return };
    let texts = files(&folder, ".perf-script.txt.gz");
    assert!(!texts.is_empty());
    for text in texts {
        let truth = read(&folder.join(format!("{}.truth.folded.gz", stem(&text))));
        let folded = run("fg-collapse", ["--no-tidy".as_ref(), text.as_os_str()], b"").ok();
        assert_same_lines(&stem(&text), &sorted(&folded.stdout), &sorted(&truth));
    }
}

/// Changes the frames of every line.
fn map_frames(lines: &[String], change: impl Fn(&str) -> String) -> Vec<String> {
    let line = |line: &String| line.split(';').map(&change).collect::<Vec<_>>().join(";");
    let mut changed: Vec<String> = lines.iter().map(line).collect();
    changed.sort();
    changed
}

/// Bugs of stackcollapse-perf.pl: it drops the last sample unless a blank line follows (so we remove it from the
/// input), treats the vdso as part of the kernel, leaves Rust names half mangled (so we use --no-tidy), and keeps
/// Java's leading `L` with `--pid` and `--tid`.
#[test]
fn agrees_with_stackcollapse_perf_except_for_its_bugs() {
    let Some(folder) = support::corpus("gregg") else { return };
    for input in files(&folder, ".txt").iter().filter(|path| stem(path).starts_with("perf-")) {
        let text = read(input);
        let whole = memchr::memmem::rfind(&text, b"\n\n").unwrap() + 2;
        for option in ["addrs", "all", "jit", "kernel", "pid", "tid"] {
            let name = format!("{}-collapsed-{option}.txt", stem(input));
            let option_given = format!("--{option}");
            let verbatim = name.contains("rust").then_some("--no-tidy");
            let folded = run("fg-collapse", verbatim.into_iter().chain([&*option_given]), &text[..whole]).ok();
            let expected = map_frames(&sorted(&read(&folder.join("expected").join(&name))), |frame| {
                match frame.strip_prefix('L') {
                    Some(class) if option.ends_with("id") && class.contains('/') => class.to_owned(),
                    _ if frame.starts_with("__vdso") => frame.replace("_[k]", ""),
                    _ => frame.to_owned(),
                }
            });
            assert_same_lines(&name, &sorted(&folded.stdout), &expected);
        }
    }
}

/// Bugs of inferno-collapse-perf: it doubles the brackets of `[vdso]` (like the Perl script), leaves an underscore
/// before Rust closures and impls, merges `cycles:u` with `cycles`, and makes an empty profile of an empty input.
#[test]
fn agrees_with_inferno_on_perf_except_for_its_bugs() {
    let (Some(inferno), Some(gregg)) = (support::corpus("inferno/collapse-perf"), support::corpus("gregg")) else {
        return;
    };
    let cases = [
        (inferno.join("go-stacks.txt"), "go-stacks-collapsed.txt", "-q"),
        (inferno.join("java-inline.txt"), "java-inline-collapsed.txt", "-q"),
        (inferno.join("single-event.txt"), "single-event-collapsed.txt", "-q"),
        (inferno.join("single-line-stacks.txt"), "single-line-stacks-collapsed.txt", "--event=cycles"),
        (gregg.join("example-perf-stacks.txt.gz"), "example-perf-stacks-collapsed.txt", "-q"),
    ];
    let rust = ["addrs", "all", "jit", "kernel", "pid", "tid"].map(|option| {
        let results = format!("perf-rust-Yamakaky-dcpu-collapsed-{option}.txt");
        (gregg.join("perf-rust-Yamakaky-dcpu.txt"), results, format!("--{option}"))
    });
    let rust = rust.iter().map(|(input, results, option)| (input.clone(), results.as_str(), option.as_str()));
    for (input, results, option) in cases.into_iter().chain(rust) {
        let folded = run("fg-collapse", [option.as_ref(), input.as_os_str()], b"").ok();
        let expected = map_frames(&sorted(&read(&inferno.join("results").join(results))), |frame| {
            frame.replace("[[vdso]]", "[vdso]").replace("::_{{", "::{{").replace("::_<", "::<")
        });
        assert_same_lines(results, &sorted(&folded.stdout), &expected);
    }
}

/// This file has a blank line between the header of a sample and its stack. inferno loses the stack.
#[test]
fn reads_frames_after_a_stray_blank_line() {
    let Some(input) = support::corpus("inferno/collapse-perf/empty-line.txt") else { return };
    assert_eq!(run("fg-collapse", [input.as_os_str()], b"").ok().text(), "inline-counter;main 500000\n");
}

/// inferno counts rows, and leaves an underscore before Rust closures and impls.
#[test]
fn agrees_with_inferno_on_xctrace_except_for_its_bugs() {
    let Some(folder) = support::corpus("inferno/collapse-xctrace") else { return };
    let input = folder.join("basic.xml.gz");
    let expected = map_frames(&sorted(&read(&folder.join("results/basic.folded"))), |frame| {
        frame.replace("::_{{", "::{{").replace("::_<", "::<")
    });
    let rows = run("fg-collapse", ["--weight=samples".as_ref(), input.as_os_str()], b"").ok();
    assert_same_lines("basic.xml.gz", &sorted(&rows.stdout), &expected);
    // 9581 rows of one millisecond.
    let weighed = run("fg-collapse", [input.as_os_str()], b"").ok();
    assert_eq!(total(&weighed.text()), 9_581_000_000);
}

fn total(folded: &str) -> u64 {
    folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

/// Documents without another tool's output: the total that they state themselves, and a stack found by reading them.
#[test]
fn documents_have_the_totals_that_they_state() {
    let Some(folder) = support::corpus("speedscope") else { return };
    for (file, stated, stack) in [
        // startTime and endTime: 163140599286 and 163140647178
        ("chrome/simple.cpuprofile", 47_892, "(anonymous);a;b;d 17002"),
        // timestamps: 163140599286 to 163140645206
        ("chrome/node-10.cpuprofile", 45_920, "(anonymous);a;b;d 16788"),
        // 38 rows of samples
        (
            "firefox/simple-firefox.json.gz",
            38,
            "GeckoMain;XRE_InitChildProcess;nsAppShell::ProcessGeckoEvents;nsHtml5TreeOpExecutor::RunFlushLoop 1",
        ),
        // go tool pprof: Total samples = 1.50s
        ("pprof/simple.prof", 1_500_000_000, "runtime.main;main.main;main.delta;main.alpha 220000000"),
        ("speedscope/simple.speedscope.json", 14, "a;b;d 4"),
        ("speedscope/two-sampled.speedscope.json", 28, "two;a;b;c 5"),
        // The sum of raw_timestamp_deltas
        ("stackprof/simple-cpu-stackprof.json.gz", 6_650_772, "(garbage collection);(marking) 131454"),
        ("trace-event/matching-x.json", 10, "alpha;gamma;beta 1"),
        ("trace-event/multiprocess.json", 8, "p2t1;phi 1"),
        ("trace-event/out-of-order.json", 10, "A;B;C 6"),
        ("trace-event/simple-object.json", 14, "alpha;beta 8"),
        ("trace-event/simple.json", 14, "alpha;beta;gamma 5"),
        ("trace-event/simultaneous-anonymous-calls.json", 5, "anonymous;anonymous;function1;anonymous 2"),
        ("trace-event/too-many-end-events.json", 14, "alpha;beta 12"),
        ("trace-event/zero-duration-events.json", 10, "A;C 8"),
    ] {
        let folded = run("fg-collapse", [folder.join(file)], b"").ok().text();
        assert_eq!(total(&folded), stated, "{file}");
        assert!(folded.lines().any(|line| line == stack), "{file}: {folded}");
    }
    let samples =
        run("fg-collapse", ["--weight=samples".into(), folder.join("stackprof/simple-cpu-stackprof.json.gz")], b"");
    assert_eq!(total(&samples.ok().text()), 489, "its \"samples\"");
}
