//! Inputs in which another document follows the first one, as `cat` joins files.

use super::{example_texts, folder, total};
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
    for (first, second) in [
        ("heap-text-go.txt", "heap-text-mutex.txt"),
        ("heap-text-go.txt", "heap-text-go.txt"),
        ("heap-text-jemalloc.heap", "heap-text-gperftools.heap"),
        ("massif.out", "massif.out"),
        ("massif.out", "heaptrack"),
        ("heaptrack", "heaptrack"),
        ("gdb.txt", "massif.out"),
        ("goroutines.txt", "stackcount.txt"),
        ("goroutines.txt", "rprof.out"),
        ("goroutines.txt", "pmcstat.txt"),
        ("memcheck.txt", "eflame.txt"),
        ("java-exceptions.txt", "dotnet-stack.txt"),
        ("memleak.txt", "bpftrace-json.json"),
        ("jstack.txt", "async-profiler.txt"),
        ("memcheck.txt", "async-profiler.txt"),
        ("memcheck.txt", "heap-text-go.txt"),
        ("heap-text-jemalloc.heap", "cpuprofile.cpuprofile"),
        ("memcheck.txt", "speedscope.json"),
        ("memray.csv", "heaptrack"),
        ("lsan.txt", "vsprof.csv"),
    ] {
        let (alone, text) = (example(first), example(first) + &example(second));
        let outcome = collapse(&text);
        assert_eq!(outcome.code(), 1, "{first} and {second}: {outcome:?}");
        assert_eq!(outcome.text(), collapse(&alone).text(), "{first} and {second}: {outcome:?}");
        let message = format!("fg-collapse: stdin:{}: ", alone.lines().count() + 1);
        let found = outcome.stderr.lines().any(|line| line.starts_with(&message) && line.contains("begins here"));
        assert!(found, "{first} and {second}: {message}: {outcome:?}");
    }
}

/// These have no heading that tells where they begin.
const WITHOUT_HEADING: [&str; 8] = [
    "folded-austin.txt",
    "ftrace-cmd.txt",
    "ljp.txt",
    "perf-sched.txt",
    "py-spy.txt",
    "strace.txt",
    "vsprof.csv",
    "wpa.csv",
];

#[test]
fn no_document_is_lost_silently_behind_another() {
    let examples = example_texts();
    assert!(examples.len() > 80, "{}", examples.len());
    for (first, start, alone) in &examples {
        for (second, end, other) in examples.iter().filter(|(name, ..)| WITHOUT_HEADING.contains(&name.as_str())) {
            let start = if start.ends_with('\n') { start.clone() } else { format!("{start}\n") };
            let outcome = collapse(&(start + end));
            let is_whole = total(&outcome.text()) == alone + other;
            let is_told =
                outcome.code() == 1 || ["malformed", "left out"].iter().any(|word| outcome.stderr.contains(word));
            assert!(is_told || is_whole, "{first} and {second}: {outcome:?}");
        }
    }
}

#[test]
fn a_few_folded_stacks_beside_another_profile_are_not_lost_silently() {
    for (name, text, alone) in example_texts() {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        for (stacks, weight) in [
            ("main;a 100\nmain;b 200\n", 300),
            ("\nmain;a 100\n\nmain;b 200\n", 300),
            ("main;a 100\nidle 200\n", 300),
            ("main;a 100\n", 100),
            ("main 100\nidle 200\nwork 5\n", 305),
        ] {
            for joined in [format!("{text}{end}{stacks}"), format!("{stacks}{text}")] {
                let outcome = collapse(&joined);
                let is_told = outcome.code() == 1
                    || ["malformed", "of other text left out", "before the profile left out"]
                        .iter()
                        .any(|words| outcome.stderr.contains(words));
                let is_whole = total(&outcome.text()) == alone + weight * 1_000_000;
                assert!(is_told || is_whole, "{name} and {stacks:?}: {outcome:?}");
            }
        }
    }
}

#[test]
fn json_of_one_line_behind_text_without_a_line_end_is_refused() {
    let json = "{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"f\"},\"hitCount\":1}]}";
    for name in ["bpftrace.txt", "async-profiler.txt", "gdb.txt", "jstack-21.txt", "perf-report.txt", "wcp.txt"] {
        for end in ["", "\n"] {
            let text = example(name);
            let outcome = collapse(&format!("{}{end}{json}", text.trim_end()));
            assert_eq!(outcome.code(), 1, "{name}: {outcome:?}");
            assert!(outcome.stderr.contains("another profile (cpuprofile) begins here, after that of "), "{outcome:?}");
        }
    }
}

#[test]
fn a_profile_behind_folded_stacks_or_samples_of_perf_is_refused() {
    let stacks = "main;a 1\nmain;b 2\nmain;c 3\n".repeat(20);
    for (second, name) in [("phpspy.txt", "phpspy"), ("speedscope.json", "speedscope"), ("xctrace.xml", "xctrace")] {
        let outcome = collapse(&(stacks.clone() + &example(second)));
        assert_eq!(outcome.code(), 1, "{second}: {outcome:?}");
        let message = format!("stdin:61: another profile ({name}) begins here, after that of folded");
        assert!(outcome.stderr.contains(&message), "{second}: {outcome:?}");
    }
    let sample = "a 1 1.5: 3 e:\n\t            7f00 f+0x1 (/x)\n\n".repeat(30);
    for second in ["speedscope.json", "async-profiler.txt"] {
        let outcome = collapse(&(sample.clone() + &example(second)));
        assert_eq!((outcome.code(), outcome.text().as_str()), (1, "a;f 90\n"), "{second}: {outcome:?}");
        assert!(outcome.stderr.contains("begins here, after that of perf-script"), "{second}: {outcome:?}");
    }
    // Lines of these look like comments or samples of perf.
    for (second, name) in [("jstack-21.txt", "jstack"), ("massif.out", "massif"), ("gdb.txt", "gdb")] {
        let outcome = collapse(&(sample.repeat(10) + &example(second)));
        let message = format!("stdin:901: another profile ({name}) begins here, after that of perf-script");
        assert!(outcome.code() == 1 && outcome.stderr.contains(&message), "{second}: {message}: {outcome:?}");
    }
}

#[test]
fn a_document_behind_one_of_its_format_without_a_line_end_is_not_lost() {
    for name in ["pmcstat.txt", "eflame.txt"] {
        let text = example(name);
        let outcome = collapse(&format!("{}{text}", text.trim_end())).ok();
        assert_eq!(total(&outcome.text()), 2 * total(&collapse(&text).text()), "{name}: {outcome:?}");
    }
    for name in ["heap-text-gperftools.heap", "memleak.txt"] {
        let text = example(name);
        let outcome = collapse(&format!("{}{text}", text.trim_end()));
        let message = format!("stdin:{}: another profile (", text.trim_end().lines().count());
        assert_eq!((outcome.code(), outcome.text()), (1, collapse(&text).text()), "{name}: {outcome:?}");
        assert!(outcome.stderr.contains(&message), "{name}: {message}: {outcome:?}");
    }
}

#[test]
fn samples_of_perf_behind_a_report_without_a_line_end_are_no_part_of_it() {
    let report = example("ghc-prof.txt");
    let sample = "java 10488  9962.502413:   10101010 cpu-clock:\n\tffffffffaee8017b fput+0xb (/x)\n\n";
    let outcome = collapse(&format!("{}{}", report.trim_end(), sample.repeat(3)));
    assert!(total(&outcome.text()) <= total(&collapse(&report).text()), "{outcome:?}");
    assert!(outcome.code() == 1 || outcome.stderr.contains("malformed"), "{outcome:?}");
}

#[test]
fn frames_of_exceptions_behind_a_dump_are_none_of_its_threads() {
    let alone = example("jstack.txt");
    let outcome = collapse(&(alone.clone() + &example("java-exceptions.txt")));
    assert_eq!((outcome.code(), outcome.text()), (1, collapse(&alone).text()), "{outcome:?}");
    assert!(outcome.stderr.contains("another profile (java-exceptions) begins here"), "{outcome:?}");
}

#[test]
fn text_behind_a_binary_document_is_no_record_of_it() {
    for name in
        ["art-trace.trace", "austin.mojo", "austin-memory.mojo", "sysprof.syscap", "perfetto.pftrace", "otlp-1.9.pb"]
    {
        let bytes = std::fs::read(folder().join(name)).unwrap();
        let alone = run("fg-collapse", [""; 0], &bytes).ok();
        for second in ["gdb.txt", "bcc.txt", "speedscope.json"] {
            let outcome =
                run("fg-collapse", [""; 0], &[bytes.clone(), std::fs::read(folder().join(second)).unwrap()].concat());
            assert_eq!((outcome.code(), outcome.text()), (1, alone.text()), "{name} and {second}: {outcome:?}");
            assert!(outcome.stderr.contains("at byte "), "{name} and {second}: {outcome:?}");
        }
    }
}

#[test]
fn lines_that_are_no_frames_are_malformed() {
    let separator = "-----------+-------------------------------------------------------\n";
    let value = "      10ms   main.hash\n";
    for (text, folded) in [
        (format!("{separator}{value}hello\n             main.main\n{separator}"), "main.main;main.hash 10\n"),
        ("\n  app`a\nhello\n  app`main\n   3\n".to_owned(), "app`main;app`a 3\n"),
        (
            "4 2  a.B.f(B.java:1)\n     hello\n     a.B.main(B.java:2)\nTotal trace count: 4\n".to_owned(),
            "a.B.main;a.B.f 4\n",
        ),
        ("Stack,Count\n[Root]/a!f,1\n[Root]/a!g,2,3\n".to_owned(), "a`f 1\n"),
        ("Process 7: a\n\nThread 7 (idle): \"b\"\n    f (a.py:1)\n  hello\n    g (a.py:2)\n".to_owned(), "b;g;f 1\n"),
        ("Thread (0x1):\n  a!f()\n  hello\n  a!g()\n".to_owned(), "g;f 1\n"),
    ] {
        let outcome = collapse(&text).ok();
        assert_eq!(outcome.text(), folded, "{text}: {outcome:?}");
        assert!(outcome.stderr.contains("skipped 1 malformed line"), "{text}: {outcome:?}");
    }
}

#[test]
fn json_without_a_line_end_is_no_frame_of_the_stacks_behind_it() {
    let profile = example("cpuprofile.cpuprofile");
    let outcome = collapse(&format!("{}main;a 100\nmain;b 200\n", profile.trim_end()));
    assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{outcome:?}");
    assert!(outcome.stderr.contains("expected the end of the file"), "{outcome:?}");
}

#[test]
fn a_sample_behind_a_frame_without_a_line_end_counts() {
    let sample = |name: &str| {
        format!(
            "{name} 1 1.5: 3 e:\n\t            7f00 f+0x1 (/x)\n\n{name} 1 1.5: 3 e:\n\t            7f00 g+0x1 (/x)"
        )
    };
    let outcome = collapse(&(sample("a") + &sample("b"))).ok();
    assert_eq!(outcome.text(), "a;f 3\na;g 3\nb;f 3\nb;g 3\n", "{outcome:?}");
}

#[test]
fn a_refused_input_names_its_events() {
    let outcome = collapse(&format!("{}{}", example("jstack.txt"), example("massif.out")));
    assert!(outcome.code() == 1 && outcome.stderr.contains("using samples of event"), "{outcome:?}");
}

#[test]
fn formats_that_any_line_may_begin_are_refused_together() {
    for (first, second, names) in [
        ("jstack.txt", "goroutines-shared.txt", ["jstack", "goroutines"]),
        ("heap-text-go.txt", "goroutines-shared.txt", ["heap-text", "goroutines"]),
        ("gdb.txt", "pprof-traces.txt", ["gdb", "pprof-traces"]),
        ("gdb.txt", "systemtap.txt", ["gdb", "systemtap"]),
        ("wcp.txt", "memcheck.txt", ["wcp", "memcheck"]),
        ("heap-text-go.txt", "perf-sched.txt", ["heap-text", "perf-script"]),
        // Only the beginning shows the first format.
        ("eflame.txt", "wcp.txt", ["eflame", "wcp"]),
        ("rprof.out", "java-exceptions.txt", ["rprof", "java-exceptions"]),
    ] {
        let outcome = collapse(&(example(first) + &example(second)));
        assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{first} and {second}: {outcome:?}");
        assert!(
            names.iter().all(|name| outcome.stderr.contains(name)) && outcome.stderr.contains(", from line "),
            "{first}, {second}: {outcome:?}"
        );
    }
}

#[test]
fn documents_after_the_end_of_xml_or_json_are_reported() {
    for (first, second, message) in [
        ("xctrace.xml", "goroutines.txt", "another document follows its end"),
        ("perfview.perfView.xml", "perfview.perfView.xml", "another document follows its end"),
        ("otlp-json.json", "speedscope.json", "a JSON document that is not an OpenTelemetry profile follows"),
        ("cpuprofile.cpuprofile", "cpuprofile.cpuprofile", "expected the end of the file"),
    ] {
        let outcome = collapse(&(example(first) + &example(second)));
        assert_eq!(outcome.code(), 1, "{first} and {second}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{first} and {second}: {outcome:?}");
    }
    let events = "[{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"name\":\"a\"},\n";
    for second in ["{\"nodes\":[]}\n", events] {
        let outcome = collapse(&format!("{events}{second}"));
        assert_eq!((outcome.code(), outcome.text()), (1, collapse(events).text()), "{outcome:?}");
        assert!(outcome.stderr.contains(&format!("at byte {}", events.len())), "{outcome:?}");
    }
    let cut = collapse(&format!("{events}{{\"args\":{{\"name\":\"b"));
    assert_eq!((cut.code(), cut.text()), (0, collapse(events).text()), "{cut:?}");
    assert!(cut.stderr.contains("cut short"), "{cut:?}");
    let recording = std::fs::read(folder().join("jfr-11.jfr")).unwrap();
    let outcome = run("fg-collapse", [""; 0], &[&recording[..], b"MOJ\x03\x02"].concat());
    let message = format!("another profile (austin) begins at byte {}", recording.len());
    assert!(outcome.code() == 1 && !outcome.text().is_empty() && outcome.stderr.contains(&message), "{outcome:?}");
}

#[test]
fn folded_stacks_within_another_format_are_refused() {
    for first in ["jstack.txt", "memcheck.txt", "goroutines.txt"] {
        let alone = example(first);
        let outcome = collapse(&format!("{alone}main;a 100\nmain;b 200\nmain;c 300\n"));
        assert_eq!((outcome.code(), outcome.text()), (1, collapse(&alone).text()), "{first}: {outcome:?}");
        let message = format!("stdin:{}: another profile (folded) begins here", alone.lines().count() + 1);
        assert!(outcome.stderr.contains(&message), "{first}: {message}: {outcome:?}");
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

#[test]
fn data_behind_the_end_of_a_binary_document_is_refused_with_its_offset() {
    for name in [
        "art-trace-streamed.trace",
        "art-trace.trace",
        "austin.mojo",
        "ghc-eventlog.eventlog",
        "go-trace.trace",
        "gperftools.prof",
        "nettrace.nettrace",
        "nettrace-6.nettrace",
        "simpleperf-proto.trace",
        "stackprof-dump.dump",
        "sysprof.syscap",
    ] {
        let bytes = std::fs::read(folder().join(name)).unwrap();
        let alone = run("fg-collapse", [""; 0], &bytes).ok();
        let outcome = run("fg-collapse", [""; 0], &bytes.repeat(2));
        assert_eq!((outcome.code(), outcome.text()), (1, alone.text()), "{name}: {outcome:?}");
        let message = format!("begins at byte {}, ", bytes.len());
        assert!(outcome.stderr.contains(&message), "{name}: {message}: {outcome:?}");
        let outcome = run("fg-collapse", [""; 0], &[&bytes[..], b"main;f 1\n"].concat());
        let is_told = !outcome.stderr.is_empty();
        assert!(is_told && total(&outcome.text()) <= total(&alone.text()), "{name}: {outcome:?}");
    }
}

#[test]
fn messages_of_opentelemetry_that_follow_each_other_are_added_up() {
    let [first, second] = ["otlp.pb", "otlp-1.9.pb"].map(|name| std::fs::read(folder().join(name)).unwrap());
    let twice = run("fg-collapse", [""; 0], &first.repeat(2)).ok();
    assert_eq!(total(&twice.text()), 2 * total(&run("fg-collapse", [""; 0], &first).ok().text()), "{twice:?}");
    let named = run("fg-collapse", ["--event=all"], &[first, second].concat());
    assert!(!named.text().contains("[unknown]"), "{named:?}");
}

#[test]
fn json_and_stacks_in_a_log_do_not_end_a_profile() {
    let exceptions = example("java-exceptions.txt");
    for line in [
        "INFO got {\"type\":\"event\",\"data\":{}}",
        "INFO;com.x.A;took 12",
        "INFO {\"code\":[{\"type\":1,\"name\":2}]}",
    ] {
        let text = format!("{exceptions}{line}\n{exceptions}");
        let outcome = collapse(&text).ok();
        assert_eq!(total(&outcome.text()), 2 * total(&collapse(&exceptions).text()), "{line}: {outcome:?}");
    }
    let jfr = example("jfr-print.txt");
    let variable =
        "jdk.InitialEnvironmentVariable {\n  startTime = 12:00:00.000\n  key = \"A\"\n  value = \"{\"a\": 1}\"\n}\n\n";
    let outcome = collapse(&format!("{variable}{jfr}")).ok();
    assert_eq!(outcome.text(), collapse(&jfr).text(), "{outcome:?}");
}

#[test]
fn stacks_behind_a_report_of_perf_without_a_line_end_are_no_part_of_it() {
    let alone = example("perf-report.txt");
    let outcome = collapse(&format!("{}{}", alone.trim_end(), example("goroutines-shared.txt")));
    assert_eq!((outcome.code(), outcome.text()), (1, collapse(&alone).text()), "{outcome:?}");
    assert!(outcome.stderr.contains("another profile (goroutines) begins here"), "{outcome:?}");
}

#[test]
fn a_document_behind_another_without_a_line_end_is_refused_with_its_line() {
    for (first, second, name) in [
        ("perf-report.txt", "pmcstat.txt", "pmcstat"),
        ("wcp.txt", "pmcstat.txt", "pmcstat"),
        ("jstack-21.txt", "firefox.json", "firefox"),
        ("jstack-21.txt", "stackprof.json", "stackprof"),
        ("eu-stack.txt", "trace-event-samples.json", "trace-event"),
        ("simpleperf.txt", "cpuprofile-untimed.cpuprofile", "cpuprofile"),
        ("massif.out", "massif.out", "massif"),
        ("heap-text-gperftools.heap", "gperftools.prof", "gperftools"),
    ] {
        let text = example(first);
        let start = text.trim_end();
        let bytes = [start.as_bytes(), &std::fs::read(folder().join(second)).unwrap()].concat();
        let outcome = run("fg-collapse", [""; 0], &bytes);
        let expected = collapse(&format!("{start}\n")).text();
        assert_eq!((outcome.code(), outcome.text()), (1, expected), "{first} and {second}: {outcome:?}");
        let message = format!("stdin:{}: another profile ({name}) begins here", start.lines().count());
        assert!(outcome.stderr.contains(&message), "{first} and {second}: {message}: {outcome:?}");
    }
    let sample = "java 1 2.500000: 3 cpu-clock:\n\n\t    ffffffffaee8017b fput+0xb (/x)\n\n";
    let dump = example("jstack-5.txt");
    let outcome = collapse(&format!("{}{sample}", dump.trim_end()));
    assert!(outcome.code() == 1 && outcome.stderr.contains("another profile (perf-script) begins here"), "{outcome:?}");
}

#[test]
fn a_document_whose_first_lines_tell_its_format_is_refused_behind_any_other() {
    for first in ["bcc.txt", "dtrace.txt", "eu-stack.txt", "callgrind.txt", "perf-report-counts.txt", "simpleperf.txt"]
    {
        let text = example(first);
        let alone = collapse(&text).text();
        let place = format!("stdin:{}: another profile (", text.lines().count() + 1);
        for (second, name) in [
            ("ljp.txt", "ljp"),
            ("strace.txt", "strace"),
            ("py-spy.txt", "py-spy"),
            ("ftrace-cmd.txt", "ftrace"),
            ("folded-austin.txt", "folded"),
            ("speedscope.json", "speedscope"),
            ("perf-sched.txt", "perf-script"),
        ] {
            let outcome = collapse(&(text.clone() + &example(second)));
            let message = match outcome.text().is_empty() {
                true => format!(" on {name}); give each file by itself"),
                false => format!("{place}{name}) begins here"),
            };
            assert!(outcome.text().is_empty() || outcome.text() == alone, "{first} and {second}: {outcome:?}");
            assert!(outcome.code() == 1 && outcome.stderr.contains(&message), "{first} and {second}: {outcome:?}");
        }
    }
    // Lines of these look like folded stacks or samples of perf.
    let samples = "a 1 1.5: 3 e:\n\t            7f00 f+0x1 (/x)\n\n".repeat(9);
    let stacks = "main;a 1\nmain;b 2\n".repeat(99);
    for (start, second, name) in [
        (&stacks, "hprof-text.txt", "hprof-text"),
        (&samples, "heap-text-go.txt", "heap-text"),
        (&samples, "ljp.txt", "ljp"),
        (&samples, "strace.txt", "strace"),
        (&samples, "py-spy.txt", "py-spy"),
    ] {
        let outcome = collapse(&(start.clone() + &example(second)));
        let message = format!("stdin:{}: another profile ({name}) begins here", start.lines().count() + 1);
        assert!(outcome.code() == 1 && outcome.stderr.contains(&message), "{second}: {message}: {outcome:?}");
    }
}

#[test]
fn a_document_behind_stacks_or_json_without_a_line_end_is_refused_with_its_line() {
    let stacks = "main;a 1\nmain;b 2\n".repeat(99);
    let samples = "a 1 1.5: 3 e:\n\t            7f00 f+0x1 (/x)\n\n".repeat(30);
    let [lines, traces] = ["bpftrace-json.json", "pprof-traces.txt"].map(example);
    for (start, second, name) in [
        (&stacks, "cpuprofile.cpuprofile", "cpuprofile"),
        (&stacks, "jstack-21.txt", "jstack"),
        (&samples, "goroutines-shared.txt", "goroutines"),
        (&lines, "sentry.json", "sentry"),
        (&traces, "pyinstrument.json", "pyinstrument"),
    ] {
        let start = start.trim_end();
        let outcome = collapse(&(start.to_owned() + &example(second)));
        let message = format!("stdin:{}: another profile ({name}) begins here", start.lines().count());
        let several = format!(" on {name}); give each file by itself");
        let is_told = [message, several].iter().any(|message| outcome.stderr.contains(message));
        assert!(outcome.code() == 1 && is_told, "{second}: {outcome:?}");
    }
}

#[test]
fn folded_stacks_are_no_stacks_of_rbspy() {
    let alone = example("rbspy.raw");
    let outcome = collapse(&(alone.clone() + "[Unknown]`Total;a 31\n[Unknown]`Total;b 15\n"));
    assert_eq!((outcome.code(), outcome.text()), (1, collapse(&alone).text()), "{outcome:?}");
    assert!(outcome.stderr.contains("another profile (folded) begins here"), "{outcome:?}");
}

#[test]
fn folded_stacks_beside_the_text_of_bpftrace_are_refused() {
    let (stacks, text) = ("main;a 1\nmain;b 2\n".repeat(99), example("bpftrace.txt"));
    for joined in [format!("{stacks}{text}"), format!("{text}{stacks}")] {
        let outcome = collapse(&joined);
        assert!(outcome.code() == 1 && outcome.stderr.contains("bpftrace"), "{outcome:?}");
    }
}

#[test]
fn reports_of_perf_with_percentages_and_with_numbers_are_not_mixed() {
    let [percents, numbers] = ["perf-report.txt", "perf-report-counts.txt"].map(example);
    let outcome = collapse(&(percents.clone() + &numbers));
    assert_eq!((outcome.code(), outcome.text()), (1, collapse(&percents).text()), "{outcome:?}");
    assert!(outcome.stderr.contains("another report, with weights of another kind"), "{outcome:?}");
}

#[test]
fn text_behind_binary_data_of_unknown_format_is_refused() {
    let trace = std::fs::read(folder().join("perfetto-peak.pftrace")).unwrap();
    let outcome = run("fg-collapse", [""; 0], &[&trace[..], example("jfr-print.txt").as_bytes()].concat());
    assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{outcome:?}");
    assert!(outcome.stderr.contains("binary data of unknown format, from line "), "{outcome:?}");
}

#[test]
fn a_sample_of_perf_before_another_profile_is_not_left_out() {
    let sample = "java 1 2.500000: 3 cpu-clock:\n\n\t    ffffffffaee8017b fput+0xb (/x)\n\n";
    for second in ["ghc-prof.txt", "bcc.txt", "sample.txt"] {
        let outcome = collapse(&(sample.to_owned() + &example(second)));
        assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{second}: {outcome:?}");
        let is_named = ["text of several formats (", "perf-script"].iter().all(|words| outcome.stderr.contains(words));
        assert!(is_named, "{second}: {outcome:?}");
    }
}

#[test]
fn unknown_data_behind_a_binary_document_are_refused() {
    for name in [
        "austin.mojo",
        "austin-memory.mojo",
        "go-trace.trace",
        "gperftools.prof",
        "otlp-1.9.pb",
        "perfetto.pftrace",
        "perfetto-heaps.pftrace",
        "perfetto-tracks.pftrace",
        "sysprof.syscap",
    ] {
        let bytes = std::fs::read(folder().join(name)).unwrap();
        let alone = run("fg-collapse", [""; 0], &bytes).ok();
        for rest in [
            &b"hello, this is no record\n"[..],
            b"\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f",
        ] {
            let outcome = run("fg-collapse", [""; 0], &[&bytes[..], rest].concat());
            assert_eq!(outcome.code(), 1, "{name}: {outcome:?}");
            // A short trace of Perfetto is not recognized.
            if name.starts_with("perfetto") && outcome.stderr.contains("a binary file of unknown format") {
                continue;
            }
            assert_eq!(outcome.text(), alone.text(), "{name}: {outcome:?}");
            let message = format!("data that is not part of the profile follows at byte {}", bytes.len());
            assert!(outcome.stderr.contains(&message), "{name}: {message}: {outcome:?}");
        }
    }
}

#[test]
fn traces_of_perfetto_and_profiles_of_opentelemetry_do_not_hide_each_other() {
    for (first, second, name) in [
        ("perfetto-heaps.pftrace", "perfetto-heaps.pftrace", "perfetto"),
        ("perfetto-heaps.pftrace", "perfetto-peak.pftrace", "perfetto"),
        ("perfetto.pftrace", "perfetto-heaps.pftrace", "perfetto"),
        ("perfetto-tracks.pftrace", "otlp.pb", "otlp"),
        ("otlp.pb", "perfetto-tracks.pftrace", "perfetto"),
    ] {
        let [start, end] = [first, second].map(|name| std::fs::read(folder().join(name)).unwrap());
        let outcome = run("fg-collapse", [""; 0], &[&start[..], &end].concat());
        assert_eq!(outcome.code(), 1, "{first} and {second}: {outcome:?}");
        let message = format!("another profile ({name}) begins at byte ");
        assert!(outcome.stderr.contains(&message), "{first} and {second}: {message}: {outcome:?}");
    }
}

#[test]
fn binary_data_behind_text_are_refused() {
    for name in ["v8-prof.txt", "bpftrace-json.json"] {
        let (text, binary) = (example(name), std::fs::read(folder().join("pprof.pb")).unwrap());
        let outcome = run("fg-collapse", [""; 0], &[text.as_bytes(), &binary].concat());
        assert_eq!((outcome.code(), outcome.text()), (1, collapse(&text).text()), "{name}: {outcome:?}");
        assert!(outcome.stderr.contains("binary data begin here, after the profile ("), "{name}: {outcome:?}");
    }
    // Neither has a line end.
    let text = example("heap-text-jemalloc.heap");
    let binary = std::fs::read(folder().join("gperftools.prof")).unwrap();
    let outcome = run("fg-collapse", [""; 0], &[text.trim_end().as_bytes(), &binary].concat());
    assert_eq!((outcome.code(), outcome.text()), (1, collapse(&text).text()), "{outcome:?}");
    let message = format!("stdin:{}: another profile (gperftools) begins here", text.trim_end().lines().count());
    assert!(outcome.stderr.contains(&message), "{message}: {outcome:?}");
    // Text behind a short binary document does not make it a text.
    for name in ["pprof.pb", "perfetto-peak.pftrace"] {
        let binary = std::fs::read(folder().join(name)).unwrap();
        let outcome = run("fg-collapse", [""; 0], &[&binary[..], example("hprof-text.txt").as_bytes()].concat());
        assert_eq!(outcome.code(), 1, "{name}: {outcome:?}");
    }
}

#[test]
fn json_of_one_line_behind_a_comment_without_a_line_end_is_refused() {
    let outcome = collapse(
        "# mode: wall\nmain;a 1\nmain;b 2\n\n# duration: 23{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"f\"},\"hitCount\":1}]}",
    );
    assert_eq!((outcome.code(), outcome.text().as_str()), (1, "main;a 1\nmain;b 2\n"), "{outcome:?}");
    assert!(outcome.stderr.contains("stdin:5: another profile (cpuprofile) begins here"), "{outcome:?}");
}

#[test]
fn a_trace_of_which_most_cannot_be_read_is_refused() {
    let trace = std::fs::read(folder().join("go-trace.trace")).unwrap();
    // A batch that is longer than any.
    let rest = [&b"\x01\x01\x01\x01\xff\xff\xff\xff\x7f"[..], &vec![7; 2 * trace.len()]].concat();
    let outcome = run("fg-collapse", [""; 0], &[&trace[..], &rest].concat());
    assert!(outcome.code() == 1 && outcome.stderr.contains("most of the input, from byte "), "{outcome:?}");
    let outcome = run("fg-collapse", [""; 0], &[&trace[..], &rest[..20]].concat());
    assert!(outcome.code() == 0 && outcome.stderr.contains("damaged"), "{outcome:?}");
}

#[test]
fn what_follows_another_document_does_not_depend_on_the_number_of_threads() {
    let sample = "a 1 1.5: 3 e:\n\t            7f00 f+0x1 (/x)\n\n".repeat(40_000);
    let text = format!("{sample}{}\n{}", example("speedscope.json"), sample.repeat(3));
    let outcome = run("fg-collapse", ["-n1"], text.as_bytes());
    assert!(outcome.code() == 1 && outcome.stderr.contains("begins here, after that of perf-script"), "{outcome:?}");
    for _ in 0..5 {
        let many = run("fg-collapse", ["-n8"], text.as_bytes());
        assert_eq!((many.code(), many.text(), &many.stderr), (1, outcome.text(), &outcome.stderr));
    }
}
