//! Options that select samples have an effect on every format, or are said to have none.

use super::folder;
use crate::support::{Outcome, directory, run};

fn collapse(options: &[&str], text: &str) -> Outcome {
    run("fg-collapse", options, text.as_bytes())
}

const SLICES: &str = r#"[{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"main"}},
{"ph":"B","pid":1,"tid":1,"ts":1000000,"name":"main"},
{"ph":"X","pid":1,"tid":1,"ts":1000010,"dur":60,"name":"work"},
{"ph":"E","pid":1,"tid":1,"ts":1000100,"name":"main"},
{"ph":"X","pid":1,"tid":2,"ts":1000010,"dur":60,"name":"other"}]
"#;

#[test]
fn slices_of_a_trace_are_selected_by_time_and_thread() {
    for (options, expected) in [
        (&[][..], "1/2;other 60\nmain;main 40\nmain;main;work 60\n"),
        (&["--time=1.00002,1.00003"], "1/2;other 10\nmain;main;work 10\n"),
        (&["--time=+0.00006,"], "1/2;other 10\nmain;main 30\nmain;main;work 10\n"),
        (&["--comm=main"], "main;main 40\nmain;main;work 60\n"),
        (&["-t", "2"], "1/2;other 60\n"),
        (&["-p", "1", "--time=,1.00001"], "main;main 10\n"),
    ] {
        let outcome = collapse(options, SLICES).ok();
        assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), (expected, ""), "{options:?}");
    }
    for options in ["--comm=x", "--time=7,8"] {
        let outcome = collapse(&[options], SLICES).ok();
        let expected = "fg-collapse: no sample matches --time, --comm and similar options\n";
        assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), ("", expected), "{options}");
    }
    for options in ["--cpu=1", "--offset=0,0.5"] {
        let outcome = collapse(&[options], SLICES);
        assert_eq!(outcome.code(), 1, "{outcome:?}");
        assert!(outcome.stderr.contains("needs samples, but the input has slices or sums"), "{outcome:?}");
    }
}

#[test]
fn differences_of_times_are_no_times() {
    let text = |times: [&str; 3]| {
        let sample = |time: &str| format!("app 1/1 [000] {time}: 5 cycles: \n\t            7f00 f+0x1 (/x)\n\n");
        times.map(sample).concat()
    };
    let [deltas, relative] = [text(["0.000000", "0.000300", "0.000200"]), text(["0.000000", "0.000300", "0.000300"])];
    assert_eq!(collapse(&[], &deltas).ok().text(), "app;f 15\n");
    assert_eq!(collapse(&["--time=0.0002,"], &relative).ok().text(), "app;f 10\n");
    for options in [&["--time=0,1"][..], &["--offset=0,0.5"], &["--format=perf-sched"]] {
        let outcome = collapse(options, &deltas);
        assert_eq!((outcome.code(), outcome.stdout.len()), (1, 0), "{outcome:?}");
        assert!(outcome.stderr.contains("its times are differences"), "{outcome:?}");
    }
    // The first record is no sample.
    let fork = "app 1/1 [000] 0.000000: PERF_RECORD_FORK(2:2):(1:1)\n";
    let outcome = collapse(&["--time=0,1"], &(fork.to_owned() + &text(["0.000300", "0.000200", "0.000300"])));
    assert!(outcome.code() == 1 && outcome.stderr.contains("its times are differences"), "{outcome:?}");
    // The beginning is missing.
    let rest = text(["0.000300", "0.000200", "0.000250"]).repeat(8);
    assert_eq!(collapse(&["--time=0,1"], &rest).code(), 1);
    let joined = text(["5.000000", "6.000300", "7.000200"]).repeat(2);
    assert_eq!(collapse(&["--time=5.5,9"], &joined).ok().text(), "app;f 20\n");
    assert_eq!(run("fg-heatmap", [""; 0], relative.as_bytes()).code(), 0);
    assert_eq!(run("fg-heatmap", [""; 0], deltas.as_bytes()).code(), 1);
}

#[test]
fn samples_of_v8_are_selected_by_time() {
    let path = folder().join("cpuprofile.cpuprofile");
    let outcome = |option: &str| run("fg-collapse", [option.as_ref(), path.as_os_str()], b"").ok();
    let all = super::total(&outcome("--time=0,").text());
    let parts = ["--time=,0.002", "--time=0.002,"].map(|option| super::total(&outcome(option).text()));
    assert!(parts[0] > 0 && parts[1] > 0 && parts[0] + parts[1] == all, "{parts:?} of {all}");
    let untimed = folder().join("cpuprofile-untimed.cpuprofile");
    let refused = run("fg-collapse", ["--time=0,1".as_ref(), untimed.as_os_str()], b"");
    assert_eq!((refused.code(), refused.stdout.len()), (1, 0), "{refused:?}");
}

/// A trace with a sample of V8's profiler and a slice.
const BOTH: &str = r#"[{"ph":"P","name":"Profile","pid":1,"tid":1,"ts":0,"id":"1","args":{"data":{"startTime":0}}},
{"ph":"P","name":"ProfileChunk","pid":1,"tid":1,"ts":1,"id":"1","args":{"data":{"cpuProfile":{"nodes":
[{"id":1,"callFrame":{"functionName":"(root)"}},{"id":2,"parent":1,"callFrame":{"functionName":"f"}}],
"samples":[2,2]},"timeDeltas":[0,5]}}},{"ph":"X","pid":1,"tid":1,"ts":0,"dur":7,"name":"slice"}]"#;

#[test]
fn samples_or_slices_of_a_trace_are_chosen_by_event() {
    let outcome = collapse(&[], BOTH).ok();
    let message = "fg-collapse: stdin: samples have samples, slices; using samples; use --event to select\n";
    assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), ("f 5\n", message));
    assert_eq!(collapse(&["--event=slices"], BOTH).ok().text(), "slice 7\n");
}

#[test]
fn the_largest_census_of_the_span_of_time_counts() {
    let path = folder().join("ghc-eventlog.eventlog");
    let heap = |option: &str| run("fg-collapse", ["--event=heap".as_ref(), option.as_ref(), path.as_os_str()], b"");
    let (all, first) = (heap("--time=0,").ok(), heap("--time=+0,+0.000001").ok());
    assert!(super::total(&first.text()) > 0 && super::total(&first.text()) <= super::total(&all.text()));
    let none = heap("--time=1000,").ok();
    assert!(none.stdout.is_empty() && none.stderr.contains("no sample matches --time"), "{none:?}");
    assert!(heap("--comm=x").stderr.contains("select a census by --time alone"));
}

#[test]
fn heaps_of_perfetto_are_chosen_by_event() {
    let path = folder().join("perfetto-heaps.pftrace");
    let read = |event: &str| run("fg-collapse", [format!("--event={event}").as_ref(), path.as_os_str()], b"").ok();
    assert_eq!(super::total(&read("allocated-bytes/custom").text()), 24_000_000);
    assert_eq!(super::total(&read("allocated-bytes").text()), 1_500_000_000);
    let refused = run("fg-collapse", ["--time=0,1".as_ref(), path.as_os_str()], b"");
    assert!(refused.code() == 1 && refused.stderr.contains("--time needs samples"), "{refused:?}");
}

#[test]
fn slices_of_perfetto_are_selected_by_time() {
    let path = folder().join("perfetto-tracks.pftrace");
    let read = |option: &str| {
        let options = ["--event=slices".as_ref(), option.as_ref(), path.as_os_str()];
        super::total(&run("fg-collapse", options, b"").ok().text())
    };
    let parts = [read("--time=,+0.000000200"), read("--time=+0.000000200,")];
    assert!(parts[0] > 0 && parts[1] > 0 && parts[0] + parts[1] == read("--time=0,"), "{parts:?}");
}

#[test]
fn options_without_effect_on_folded_stacks_are_said() {
    let folder = directory();
    let path = folder.path().join("sorted");
    std::fs::write(&path, "main;a 5\nmain;b 3\n").unwrap();
    for sorted in [&[][..], &["--sorted"]] {
        for (option, code, message) in [
            ("--event=x", 1, "samples of this format have one value and no event"),
            ("--weight=samples", 0, "--weight samples has no effect"),
            ("--label=x", 0, "--label has no effect"),
            ("--pid", 0, "--pid has no effect on folded stacks"),
            ("--all", 0, "--kernel, --jit has no effect"),
            ("--skip-after=a", 0, "--skip-after has no effect"),
        ] {
            let options = sorted.iter().copied().chain([option, path.to_str().unwrap()]);
            let outcome = run("fg-collapse", options, b"");
            assert_eq!((outcome.code(), outcome.stderr.lines().count()), (code, 1), "{outcome:?}");
            assert!(outcome.stderr.contains(message), "{option}: {outcome:?}");
        }
    }
}

#[test]
fn weights_of_samples_are_left_out_if_samples_are_counted() {
    let chrome = r#"{"traceEvents":[],"samples":[{"cpu":0,"tid":1,"ts":1000.0,"name":"cycles","sf":"1","weight":3},
{"cpu":1,"tid":1,"ts":2000.0,"name":"cycles","sf":"1","weight":4}],"stackFrames":{"1":{"name":"f"}}}"#;
    let firefox = r#"{"meta":{"interval":1},"libs":[],"threads":[{"name":"main","pid":"7","tid":8,
"samples":{"stack":[0,0],"weight":[3,4],"weightType":"bytes"},"stackTable":{"prefix":[null],"frame":[0]},
"frameTable":{"func":[0]},"funcTable":{"name":[0]},"stringArray":["f"]}]}"#;
    for (text, stack) in [(chrome, "f"), (firefox, "main;f")] {
        assert_eq!(collapse(&[], text).ok().text(), format!("{stack} 7\n"));
        assert_eq!(collapse(&["--weight=samples"], text).ok().text(), format!("{stack} 2\n"));
    }
    assert_eq!(collapse(&["--time=0.0015,"], chrome).ok().text(), "f 4\n");
    assert_eq!(collapse(&["--cpu=0"], chrome).ok().text(), "f 3\n");
}
