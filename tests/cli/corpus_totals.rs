//! The shared corpus: the format of every file is detected by its content, and its total is known.

use std::path::Path;

use crate::support::{self, run};

/// Every input of the corpus: its format, empty if it has no known one, and its total. Comments say how the total is
/// known.
const INPUTS: [(&str, &str, &str); 92] = [
    // The totals of inferno and stackcollapse-perf.pl, whose output other tests compare stack by stack.
    ("gregg/example-dtrace-stacks.txt", "dtrace", "57441"),
    ("gregg/example-perf-stacks.txt.gz", "perf-script", "1315"),
    ("gregg/perf-cycles-instructions-01.txt", "perf-script", "333"),
    ("gregg/perf-dd-stacks-01.txt", "perf-script", "111111110"),
    ("gregg/perf-funcab-cmd-01.txt", "perf-script", "169"),
    ("gregg/perf-funcab-pid-01.txt", "perf-script", "228"),
    ("gregg/perf-iperf-stacks-pidtid-01.txt", "perf-script", "201"),
    ("gregg/perf-java-stacks-01.txt", "perf-script", "46"),
    ("gregg/perf-java-stacks-02.txt", "perf-script", "2"),
    ("gregg/perf-mirageos-stacks-01.txt", "perf-script", "53"),
    ("gregg/perf-rust-Yamakaky-dcpu.txt", "perf-script", "6850637"),
    ("inferno/collapse-dtrace/flamegraph-bug.txt", "dtrace", "1"),
    ("inferno/collapse-dtrace/hex-addresses.txt", "dtrace", "4"),
    ("inferno/collapse-dtrace/java.txt", "dtrace", "1"),
    ("inferno/collapse-dtrace/only-header-lines.txt", "dtrace", "0"),
    ("inferno/collapse-dtrace/stack-ustack.txt", "dtrace", "4"),
    ("inferno/collapse-ghcprof/percent.prof", "ghc-prof", "1000"),
    ("inferno/collapse-ghcprof/ticks.prof", "ghc-prof", "999"),
    // Stated in the text: one sample of this period. The other file has no known format.
    ("inferno/collapse-guess/invalid-perf-with-empty-line-after-event-line.txt", "perf-script", "10101010"),
    ("inferno/collapse-guess/unknown-format.txt", "", "0"),
    ("inferno/collapse-perf/empty-line.txt", "perf-script", "500000"),
    ("inferno/collapse-perf/go-stacks.txt", "perf-script", "1250000"),
    ("inferno/collapse-perf/java-inline.txt", "perf-script", "222222220"),
    ("inferno/collapse-perf/no-events.txt", "perf-script", "0"),
    ("inferno/collapse-perf/single-event.txt", "perf-script", "10101010"),
    ("inferno/collapse-perf/single-line-stacks.txt", "perf-script", "1"),
    // The sum of the last words.
    ("inferno/collapse-recursive/basic.txt", "folded", "7"),
    // 825 samples for each thread. The complete file has three threads.
    ("inferno/collapse-sample/bad-stack-line.txt", "sample", "825"),
    ("inferno/collapse-sample/end-before-call-graph-end.txt", "sample", "825"),
    ("inferno/collapse-sample/end-before-call-graph-start.txt", "sample", "0"),
    ("inferno/collapse-sample/invalid-samples-field.txt", "sample", "825"),
    ("inferno/collapse-sample/no-four-spaces.txt", "sample", "825"),
    ("inferno/collapse-sample/odd-indentation.txt", "sample", "825"),
    ("inferno/collapse-sample/sample.txt", "sample", "2475"),
    ("inferno/collapse-sample/skipped-indentation.txt", "sample", "825"),
    ("inferno/collapse-sample/stack-line-only-indent-chars.txt", "sample", "825"),
    // The sum of the column of calls. Malformed rows do not count.
    ("inferno/collapse-vsprof/CallTreeSummary.csv", "vsprof", "63576647"),
    ("inferno/collapse-vsprof/empty-file.csv", "vsprof", "0"),
    ("inferno/collapse-vsprof/incorrect-header.csv", "", "0"),
    ("inferno/collapse-vsprof/invalid-depth.csv", "vsprof", "0"),
    ("inferno/collapse-vsprof/invalid-function-name.csv", "vsprof", "0"),
    ("inferno/collapse-vsprof/invalid-number-of-calls.csv", "vsprof", "0"),
    ("inferno/collapse-vsprof/missing-function-name.csv", "vsprof", "0"),
    // The sum of the column of self time, in milliseconds.
    ("inferno/collapse-vtune/bad-stack-line.csv", "vtune", "168.572"),
    ("inferno/collapse-vtune/end-before-header.csv", "", "0"),
    ("inferno/collapse-vtune/invalid-time-field.csv", "vtune", "168.572"),
    ("inferno/collapse-vtune/vtune.csv", "vtune", "168.572"),
    // 9581 rows of one millisecond.
    ("inferno/collapse-xctrace/basic.xml.gz", "xctrace", "9581000000"),
    // The sum of the last words, without lines that end in no number, or in `20.`.
    ("inferno/diff-folded/after.txt", "folded", "80"),
    ("inferno/diff-folded/bad_before.txt", "folded", "54"),
    ("inferno/diff-folded/before.txt", "folded", "65"),
    ("inferno/diff-folded/before_fractionals.txt", "folded", "67.084398"),
    ("inferno/flamegraph/austin-flames.txt", "folded", "291"),
    ("inferno/flamegraph/bad-lines-bad-lines.txt", "folded", "607"),
    ("inferno/flamegraph/base-flames.txt", "folded", "598400"),
    ("inferno/flamegraph/colors-async-profiler-collapsed-part.txt", "folded", "3279"),
    ("inferno/flamegraph/differential-perf-cycles-instructions-01-collapsed-all-diff.txt", "folded", "513"),
    // The sum of the periods by perf script.
    ("perf-data/sleep.compressed.data", "perf-data", "2201546"),
    ("perf-data/sleep.compressed.pipe.data", "perf-data", "2171147"),
    ("perf-data/sleep.data", "perf-data", "668601"),
    // The totals of perf's own resolution, which another test compares stack by stack.
    ("recorded/cpp.perf-script.txt.gz", "perf-script", "2999999457"),
    ("recorded/java.perf-script.txt.gz", "perf-script", "4112224416"),
    ("recorded/multi.perf-script.txt.gz", "perf-script", "792489"),
    // The costs of lines that are not calls: 20, 100 and 700.
    ("speedscope/callgrind/callgrind.example.log", "callgrind", "820"),
    ("speedscope/callgrind/callgrind.multiple-event-types.log", "callgrind", "820"),
    ("speedscope/callgrind/callgrind.name-compression.log", "callgrind", "820"),
    // From the first timestamp to the last.
    ("speedscope/chrome/node-10.cpuprofile", "cpuprofile", "45920"),
    ("speedscope/chrome/simple.cpuprofile", "cpuprofile", "47892"),
    // Rows of samples.
    ("speedscope/firefox/simple-firefox.json.gz", "firefox", "38"),
    // "96.08 Gc 100.0%", the sum of rounded parts.
    ("speedscope/instruments/cycles-example-deep-copy.txt", "instruments", "96086420532"),
    // The sum of the periods: 96 samples, 137 without a period, and one.
    ("speedscope/linux-perf/rust-mangled.linux-perf.txt", "perf-script", "1627118592"),
    ("speedscope/linux-perf/simple-with-pid.linux-perf.txt", "perf-script", "137"),
    ("speedscope/linux-perf/simple.linux-perf.txt", "perf-script", "1001001"),
    // [7447] and [5156], the root functions.
    ("speedscope/pmcstat/simple.txt", "pmcstat", "12603"),
    // go tool pprof: "Total samples = 1.50s".
    ("speedscope/pprof/simple.prof", "pprof", "1500000000"),
    // The sums of "weights", and of the last words.
    ("speedscope/speedscope/simple.speedscope.json", "speedscope", "14"),
    ("speedscope/speedscope/two-sampled.speedscope.json", "speedscope", "28"),
    ("speedscope/stackcollapse/alternating.txt", "folded", "182"),
    ("speedscope/stackcollapse/recursion.txt", "folded", "10"),
    ("speedscope/stackcollapse/simple-crlf.txt", "folded", "14"),
    ("speedscope/stackcollapse/simple-utf16-le.txt", "folded", "14"),
    ("speedscope/stackcollapse/simple-with-invalids.txt", "folded", "14"),
    ("speedscope/stackcollapse/simple.txt", "folded", "14"),
    // The sum of "raw_timestamp_deltas".
    ("speedscope/stackprof/simple-cpu-stackprof.json.gz", "stackprof", "6650772"),
    // The time in which each thread runs something.
    ("speedscope/trace-event/matching-x.json", "trace-event", "10"),
    ("speedscope/trace-event/multiprocess.json", "trace-event", "8"),
    ("speedscope/trace-event/out-of-order.json", "trace-event", "10"),
    ("speedscope/trace-event/simple-object.json", "trace-event", "14"),
    ("speedscope/trace-event/simple.json", "trace-event", "14"),
    ("speedscope/trace-event/simultaneous-anonymous-calls.json", "trace-event", "5"),
    ("speedscope/trace-event/too-many-end-events.json", "trace-event", "14"),
    ("speedscope/trace-event/zero-duration-events.json", "trace-event", "10"),
];

/// Returns all inputs below a directory, without the expected outputs.
fn inputs(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let inputs_and_folders = entries.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        !matches!(&*name, "results" | "expected" | "README.md") && !name.contains(".truth.")
    });
    inputs_and_folders.flat_map(|path| if path.is_dir() { inputs(&path) } else { vec![path] }).collect()
}

#[test]
fn detects_the_format_of_every_file() {
    let Some(folder) = support::corpus("") else { return };
    for (file, format, stated) in INPUTS {
        let path = folder.join(file);
        let detected = run("fg-collapse", [&path], b"");
        let sum = crate::formats::total(&String::from_utf8_lossy(&detected.stdout));
        assert_eq!(sum, crate::formats::total(&format!("x {stated}")), "{file}: {}", detected.stderr);
        match format {
            "" => assert!(detected.code() == 1 && detected.stderr.contains("of unknown format"), "{detected:?}"),
            _ => {
                let named = format!("--format={format}");
                let named = run("fg-collapse", [named.as_ref(), path.as_os_str()], b"");
                assert!(named.stdout == detected.stdout && !detected.stderr.contains("of no known"), "{file}");
            }
        }
    }
    let known = |path: &std::path::PathBuf| INPUTS.iter().any(|(file, ..)| folder.join(file) == *path);
    let forgotten: Vec<_> = inputs(&folder).into_iter().filter(|path| !known(path)).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}
