//! fg-collapse: the options that select samples by event, time, thread, CPU and span, and the order of samples.

use crate::collapse::{collapse, long_text};
use crate::support::{data, directory, run};

const EVENTS: &str =
    "aa 1 2.0: 5 cycles:u:\n\t 7f00 f (/x)\n\naa 1 2.0: 7 cycles:\n\t 7f00 f (/x)\n\nbb 1 2.0: faults:\n\n";

#[test]
fn takes_the_first_event_and_reports_the_others() {
    let outcome = collapse(&[], EVENTS).ok();
    assert_eq!(outcome.text(), "aa;f 5\n");
    assert_eq!(
        outcome.stderr,
        "fg-collapse: using samples of event cycles:u (1); left out: cycles (1), faults (1); use --event to select\n"
    );
}

#[test]
fn selects_an_event() {
    for (event, expected) in [("cycles", "aa;f 12\n"), ("cycles:u", "aa;f 5\n"), ("faults", "bb 1\n")] {
        assert_eq!(collapse(&["--event", event], EVENTS).ok().text(), expected, "{event}");
        assert_eq!(collapse(&["--event-filter", event], EVENTS).ok().text(), expected, "{event}");
    }
    assert_eq!(collapse(&["--event", "all", "--weight", "samples"], EVENTS).ok().text(), "aa;f 2\nbb 1\n");
    let refused = collapse(&["--event", "all"], EVENTS);
    assert_eq!((refused.code(), refused.text().as_str()), (1, ""));
    assert!(refused.stderr.contains("different units: cycles (1), cycles:u (1), faults (1)"), "{}", refused.stderr);
    let outcome = collapse(&["--event", "cache-misses"], EVENTS);
    assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""));
    let expected = "fg-collapse: --event cache-misses: no sample of this event; the input has cycles (1), cycles:u (1), faults (1)\n";
    assert_eq!(outcome.stderr, expected);
}

const SAMPLES: &str = "a b 1/1 [000] 10.000000: 5 cycles:
\t 7f00 g (/x)
  g.c:7
\t 7f00 f (/x)
  ??:0
\t 7f00 main (/x)

a b 1/2 [001] 10.500000: 6 cycles:
\t 7f00 g (/x)
\t 7f00 f (/x)
\t 7f00 main (/x)

c 2/2 [003] 11.000001: 7 cycles:
\t 7f00 main (/x)

";

#[test]
fn selects_samples() {
    for (options, expected) in [
        (&["--weight", "samples"][..], "a_b;main;f;g 2\nc;main 1\n"),
        (&["--weight", "period"], "a_b;main;f;g 11\nc;main 7\n"),
        (&["--time", "10.5,"], "a_b;main;f;g 6\nc;main 7\n"),
        (&["--time", ",10.5"], "a_b;main;f;g 5\n"),
        (&["--offset", "0,0.5"], "a_b;main;f;g 5\nc;main 7\n"),
        (&["--offset", "0.5,0.500001"], "a_b;main;f;g 6\n"),
        (&["--time", "10,11", "--offset", ",0.5"], "a_b;main;f;g 5\n"),
        (&["-p", "1"], "a_b;main;f;g 11\n"),
        (&["-t", "2"], "a_b;main;f;g 6\nc;main 7\n"),
        (&["--no-idle"], "a_b;main;f;g 11\nc;main 7\n"),
        (&["--time", "+0.5,+1"], "a_b;main;f;g 6\n"),
        (&["--comm", "c"], "c;main 7\n"),
        (&["--comm", "a b"], "a_b;main;f;g 11\n"),
        (&["--comm", "a_b", "--comm", "c"], "a_b;main;f;g 11\nc;main 7\n"),
        (&["--cpu", "1-3"], "a_b;main;f;g 6\nc;main 7\n"),
        (&["--srcline"], "a_b;main;f;g 6\na_b;main;f;g:g.c:7 5\nc;main 7\n"),
        (&["--skip-after", "f"], "c;main 7\nf;g 11\n"),
        (&["--inline", "--context"], "a_b;main;f;g 11\nc;main 7\n"),
    ] {
        assert_eq!(collapse(options, SAMPLES).ok().text(), expected, "{options:?}");
    }
    let none = collapse(&["--comm", "nobody"], SAMPLES).ok();
    assert_eq!(
        (none.text().as_str(), none.stderr.as_str()),
        ("", "fg-collapse: no sample matches --time, --comm and similar options\n")
    );
    for wrong in
        [["--time", "1"], ["--time", "a,b"], ["--cpu", "x"], ["--weight", "pounds"], ["-n", "0"], ["--offset", "1,2"]]
    {
        assert_eq!(collapse(&wrong, SAMPLES).code(), 2, "{wrong:?}");
    }
}

#[test]
fn a_span_is_the_root_of_its_samples() {
    let folder = directory();
    let path = folder.path().join("spans");
    let spans = r#"{"name":"GET /","trace_id":"7f","tid":1,"start":10000000000,"end":10500000000}
{"name":"inner","tid":2,"start":"10500000000","end":"10600000000","kind":"server"}
{"name":"outer","tid":2,"start":10000000000,"end":11000000000}
{"name":"too early","tid":2,"start":0,"end":11000001000}

not a span
"#;
    std::fs::write(&path, spans).unwrap();
    let message = format!("{}:6: expected an object with name, tid, start and end", path.display());
    let with = |options: &[&str], text: &str| {
        let options = options.iter().copied().chain(["--span", path.to_str().unwrap()]);
        run("fg-collapse", options, text.as_bytes())
    };
    let outcome = with(&[], SAMPLES).ok();
    assert_eq!(outcome.text(), "GET /;a_b;main;f;g 5\n[no span];c;main 7\ntoo early;outer;inner;a_b;main;f;g 6\n");
    assert_eq!(outcome.stderr, format!("fg-collapse: {message}\nfg-collapse: skipped 1 malformed line\n"));
    let outcome = with(&["--strict"], SAMPLES);
    assert_eq!((outcome.code(), outcome.stderr), (1, format!("fg-collapse: {message}\n")));
    let text = "a 1 cycles:\n\t 7f00 f (/x)\n\n";
    let outcome = with(&["-q"], text).ok();
    assert_eq!(outcome.text(), "[no span];a;f 1\n");
    assert!(with(&[], text).stderr.contains("no time or no thread ID, which --span needs"));
    let outcome = with(&[], "main 1\n");
    assert_eq!((outcome.code(), outcome.stdout.len()), (1, 0), "{outcome:?}");
    assert!(outcome.stderr.contains("no time, thread or CPU of samples is read from this format"), "{outcome:?}");
}

#[test]
fn reports_useless_spans_once() {
    let folder = directory();
    let (path, samples) = (folder.path().join("spans"), folder.path().join("samples"));
    std::fs::write(&samples, SAMPLES).unwrap();
    let span =
        |tid: u32, start: u64| format!("{{\"name\":\"x\",\"tid\":{tid},\"start\":{start},\"end\":{}}}\n", start + 1);
    for (spans, message) in [
        (String::new(), "no spans found"),
        (
            span(1, 10) + &span(77, 10_000_000_000),
            "no sample lies within a span of its thread; start and end must be nanoseconds",
        ),
    ] {
        std::fs::write(&path, spans).unwrap();
        let options = ["--span".as_ref(), path.as_os_str(), samples.as_os_str()];
        let outcome = run("fg-collapse", options, b"").ok();
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
        assert!(outcome.stderr.starts_with(&format!("fg-collapse: {}: {message}", path.display())), "{outcome:?}");
        assert!(outcome.text().lines().all(|line| line.starts_with("[no span];")), "{outcome:?}");
        assert_eq!(run("fg-collapse", options.iter().chain([&"-q".as_ref()]), b"").ok().stderr, "");
    }
    std::fs::write(&path, span(77, 10_000_000_000)).unwrap();
    let outcome = run("fg-collapse", ["--span".as_ref(), path.as_os_str(), samples.as_os_str()], b"");
    assert_eq!((outcome.code(), &outcome.stdout[..]), (1, &b""[..]), "{outcome:?}");
    assert!(
        outcome.stderr.contains("no sample belongs to a thread with a span; tid must be the thread id"),
        "{outcome:?}"
    );
}

#[test]
fn reports_options_that_sorted_folded_text_cannot_satisfy() {
    let folder = directory();
    let path = folder.path().join("sorted");
    std::fs::write(&path, "main;a 1\nmain;b 2\n").unwrap();
    for (options, code) in [(&["--time", "1,2"][..], 1), (&["--comm", "x"], 1), (&["--no-idle"], 0)] {
        let options: Vec<&std::ffi::OsStr> = options.iter().map(AsRef::as_ref).collect();
        let outcome = run("fg-collapse", options.iter().copied().chain([path.as_os_str()]), b"");
        assert!(outcome.stderr.contains(" of samples is read from this format"), "{outcome:?}");
        assert_eq!((outcome.code(), outcome.stderr.lines().count()), (code, 1), "{outcome:?}");
        let promised = options.iter().copied().chain(["--sorted".as_ref(), path.as_os_str()]);
        assert_eq!(run("fg-collapse", promised, b"").code(), 2);
    }
}

#[test]
fn lost_samples_are_a_root_frame() {
    let text = format!("{SAMPLES}  0/0 [000] 12.0: PERF_RECORD_LOST lost 2\n\n");
    let expected = "[lost] 12\na_b;main;f;g 11\nc;main 7\n";
    assert_eq!(collapse(&[], &text).ok().text(), expected);
    let expected = "[lost] 2\na_b;main;f;g 2\nc;main 1\n";
    assert_eq!(collapse(&["--weight=samples"], &text).ok().text(), expected);
}

#[test]
fn in_order_keeps_the_order_of_samples() {
    let text = format!("{SAMPLES}{SAMPLES}");
    let expected = "a_b;main;f;g 11\nc;main 7\na_b;main;f;g 11\nc;main 7\n";
    assert_eq!(collapse(&["--in-order"], &text).ok().text(), expected);
    assert_eq!(collapse(&["--in-order"], "b;x 1\na 2\na 3\nb;x 1\n").ok().text(), "b;x 1\na 5\nb;x 1\n");
    let reference = run("fg-collapse", ["--in-order", "-n1"], &long_text()).ok();
    assert!(reference.stdout.len() > 500_000);
    for threads in ["-n2", "-n8"] {
        assert!(run("fg-collapse", ["--in-order", threads], &long_text()).ok().stdout == reference.stdout);
    }
}

#[test]
fn selects_blocks_of_a_go_trace() {
    let trace = std::fs::read(data("collapse/formats/go-trace.trace")).unwrap();
    let sum = |options: &[&str]| {
        let folded = run("fg-collapse", [&["--event=sync"], options].concat(), &trace).ok();
        folded.text().lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum::<u64>()
    };
    let parts = (sum(&["--time=+0,+0.01"]), sum(&["--time=+0.01,+10"]));
    assert_eq!((parts.0, parts.1, sum(&[])), (13_504, 28_045_824, 28_059_328));
    assert_eq!(sum(&["--in-order"]), sum(&[]));
    assert!(run("fg-heatmap", ["--event=sync"], &trace).ok().text().contains("sync.(*Mutex).Lock"));
}

/// Without its tables, a generation has neither functions nor reasons: each block would be a `wait`.
#[test]
fn leaves_out_a_generation_of_a_go_trace_that_is_cut() {
    let trace = std::fs::read(data("collapse/formats/go-trace.trace")).unwrap();
    for (missing, what) in [(50, "cut short: the input ends within a batch; 1 generation left out"), (3000, "; 1 gene")]
    {
        let cut = run("fg-collapse", ["--event=wait"], &trace[..trace.len() - missing]);
        assert!(cut.code() == 1 && cut.stdout.is_empty(), "{cut:?}");
        assert!(cut.stderr.contains(what) && cut.stderr.lines().count() == 1, "{cut:?}");
        assert_eq!(cut.stderr.matches("standard input").count() + cut.stderr.matches("stdin").count(), 1, "{cut:?}");
    }
}

/// The origin of relative times is the earliest sample, wherever it is in the input and whether it counts or not.
#[test]
fn relative_times_begin_with_the_earliest_sample() {
    let recording = data("collapse/formats/jfr-17.jfr.gz");
    let sum = |options: &[&str]| {
        let path = recording.to_str().unwrap();
        let folded = run("fg-collapse", [&["--weight=samples"], options, &[path]].concat(), b"").ok().text();
        folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum::<u64>()
    };
    for event in ["--event=cpu", "--event=alloc", "--event=ThreadSleep"] {
        let all = sum(&[event]);
        assert_eq!(sum(&[event, "--time=+0,"]), all, "{event}");
        assert_eq!(sum(&[event, "--time=+0,", "--in-order"]), all, "{event}");
        assert_eq!(sum(&[event, "--time=,+0.7"]) + sum(&[event, "--time=+0.7,"]), all, "{event}");
    }
    let text = "a 1 10.5: 1 e:\n\t1 f (x)\n\na 1 10.2: 2 e:\n\t1 g (x)\n\nb 2 10.0: 4 e:\n\t1 h (x)\n\n";
    for (options, expected) in [
        (&["--time=+0,+0.3"][..], "a;g 2\nb;h 4\n"),
        (&["--time=+0.3,"], "a;f 1\n"),
        (&["--time=+0.2,", "--comm=a"], "a;f 1\na;g 2\n"),
        (&["--time=+0,+0.1", "--event=e", "--comm=b", "--in-order"], "b;h 4\n"),
    ] {
        assert_eq!(run("fg-collapse", options, text.as_bytes()).ok().text(), expected, "{options:?}");
    }
    let twice = [text, text].concat().replace("a 1 10.5", "a 1 9.5");
    assert_eq!(run("fg-collapse", ["-n4", "--time=+0,+0.1"], twice.as_bytes()).ok().text(), "a;f 2\n");
}

#[test]
fn options_that_match_no_sample_are_reported_for_all_formats() {
    for name in ["jfr-17.jfr.gz", "nettrace.nettrace", "otlp.pb", "perfetto.pftrace", "sentry.json", "rbspy.raw"] {
        let path = data(&format!("collapse/formats/{name}"));
        for options in [&["-t", "99999"][..], &["--time", "+1000000,"]] {
            let arguments = options.iter().map(AsRef::as_ref).chain([path.as_os_str()]);
            let outcome = run("fg-collapse", arguments, b"");
            // A sample of rbspy or sentry may have no time.
            if outcome.stderr.contains("has no") {
                continue;
            }
            assert_eq!((outcome.code(), outcome.text().as_str()), (0, ""), "{name} {options:?}: {outcome:?}");
            assert!(outcome.stderr.contains("no sample matches"), "{name} {options:?}: {outcome:?}");
            assert!(!outcome.stderr.contains("no stacks found"), "{name} {options:?}: {outcome:?}");
        }
    }
}

#[test]
fn samples_of_browsers_phones_and_instruments_have_times_and_threads() {
    for (name, options, expected) in [
        ("firefox.json", &["--time=+0,+0.0011"][..], "Compositor;draw 1\nGeckoMain;js::RunScript;onload 2\n"),
        ("firefox.json", &["-t22"], "Compositor;draw 1\n"),
        ("firefox.json", &["--comm=Compositor"], "Compositor;draw 1\n"),
        ("samply.json", &["--time=+0.0011,"], "app 3\napp;main;work 1\npool;idle 1\n"),
        ("samply.json", &["-t32"], "pool;idle 1\n"),
        ("simpleperf.txt", &["-t42", "--weight=samples"], "main;poll 1\n"),
        ("simpleperf.txt", &["--time=+0,+0.0000005"], "RenderThread;__start_thread;[libc.so];android::draw 300\n"),
        ("xctrace.xml", &["--time=+0,+0.0000011"], "app::main;leaf(int&, std::pair<int, char>) 2000000\n"),
        ("xctrace.xml", &["--comm=main", "-t1", "-p7"], "app::main;leaf(int&, std::pair<int, char>) 2000000\n"),
        ("xctrace.xml", &["--comm=worker — 2", "--weight=samples"], "[unknown] 1\napp::main;other 2\n"),
        ("xctrace.xml", &["--time=+0.000003,", "--weight=samples"], "[unknown] 1\n"),
    ] {
        let path = data(&format!("collapse/formats/{name}"));
        let arguments = options.iter().map(AsRef::as_ref).chain([path.as_os_str()]);
        let outcome = run("fg-collapse", arguments, b"").ok();
        assert_eq!(outcome.text(), expected, "{name} {options:?}: {}", outcome.stderr);
        let drawn = run("fg-heatmap", [path.as_os_str()], b"").ok();
        assert!(!drawn.stderr.contains("without a time"), "{name}: {}", drawn.stderr);
    }
}

/// Firefox counts times from the start of each process.
#[test]
fn processes_of_firefox_start_at_different_times() {
    let text = std::fs::read_to_string(data("collapse/formats/firefox.json")).unwrap();
    let started = text.replacen("\"interval\":1", "\"interval\":1,\"startTime\":1700000000000.5", 1);
    let late = started.replace("{\"interval\":1}", "{\"interval\":1,\"startTime\":1700000000002}");
    let early = started.replace("{\"interval\":1}", "{\"interval\":1,\"startTime\":1699999999998}");
    for (text, expected) in [
        (text, "Compositor;draw 1\nGeckoMain;js::RunScript;onload 1\n"),
        (late, "GeckoMain;js::RunScript;onload 1\n"),
        (early, "Compositor;draw 1\n"),
    ] {
        let outcome = run("fg-collapse", ["--time=+0,+0.0009"], text.as_bytes()).ok();
        assert_eq!(outcome.text(), expected, "{}", outcome.stderr);
    }
}

#[test]
fn samples_of_perf_that_are_only_threads_and_frames_are_selected() {
    let text = "sh  4909 \n\t ffffffff817554ea elf_load\n\nbash  4911 \n\t ffffffff81755b8a load_elf_binary\n\n\
        dead  4909 \n\t ffffffff817554ea elf_load\n\nsh  4909 \n\t ffffffff81755b8a f\n\n";
    for (option, expected) in [
        ("-t4909", "dead;elf_load 1\nsh;elf_load 1\nsh;f 1\n"),
        ("-t4911", "bash;load_elf_binary 1\n"),
        ("--comm=bash", "bash;load_elf_binary 1\n"),
        ("--comm=dead", "dead;elf_load 1\n"),
    ] {
        let outcome = run("fg-collapse", [option], text.as_bytes()).ok();
        assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), (expected, ""), "{option}");
    }
}
