//! fg-collapse: perf script text, options, and outputs.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use crate::support::{self, Outcome, command, directory, run};

/// Folds a text with options.
fn collapse(options: &[&str], text: &str) -> Outcome {
    run("fg-collapse", options, text.as_bytes())
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut text).unwrap();
    text
}

/// Returns the lines in bytewise order, like `LC_ALL=C sort`.
pub fn sorted(text: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(text).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Compares lines and panics with the first few that only one side has.
#[track_caller]
pub fn assert_same_lines(name: &str, actual: &[String], expected: &[String]) {
    if actual == expected {
        return;
    }
    let only =
        |a: &[String], b: &[String]| a.iter().filter(|line| !b.contains(line)).take(3).cloned().collect::<Vec<_>>();
    panic!("{name}\nmissing: {:#?}\nunexpected: {:#?}", only(expected, actual), only(actual, expected));
}

/// Compares with perf's own resolution of the same samples: recordings of threads with odd names, of inlined C++ with
/// DWARF unwinding, and of tracepoints.
#[test]
fn folds_recordings_like_perf_itself() {
    for name in ["threads", "inlined", "tracepoints"] {
        let folder = support::data("collapse");
        let text = folder.join(format!("{name}.perf-script.txt.gz"));
        let truth = unpacked(&folder.join(format!("{name}.truth.folded.gz")));
        let folded = run("fg-collapse", ["--no-tidy".as_ref(), text.as_os_str()], b"").ok();
        assert_same_lines(name, &sorted(&folded.stdout), &sorted(&truth));
    }
}

#[test]
fn reads_the_source_line_of_an_inlined_function() {
    let text = b"cc 26598 86.5:    2004008 cpu-clock:ppp: \n\t            1854 inner\n  c.cc:9 (inlined)\n\
        \t            1854 outer+0xa4 (/tmp/cc)\n  c.cc:12\n\n";
    let placed = run("fg-collapse", ["--strict", "--srcline"], text).ok().text();
    assert_eq!(placed, "cc;outer:c.cc:12;inner:c.cc:9 2004008\n");
    assert_eq!(run("fg-collapse", ["--strict"], text).ok().text(), "cc;outer;inner 2004008\n");
}

#[test]
fn reads_every_form_of_sample_headers() {
    const FRAME: &str = "\t            7f00 f+0x1 (/x)\n";
    let framed = |header: &str| format!("{header}\n{FRAME}\n");
    for (text, expected) in [
        (framed("x 25607 4794564.1: cycles:"), "x;f 1\n"),
        (framed("           padded 1 2.0: 3 cycles:"), "padded;f 3\n"),
        (framed(":-1 -1 2.0: 3 cycles:"), ":-1;f 3\n"),
        (framed("Thread 12 25607 2.0: cycles:"), "Thread_12;f 1\n"),
        (framed("my 7/8 app 25607 2.0: cycles:"), "my_7/8_app;f 1\n"),
        (framed("a;b 1 2.0: cycles:"), "a:b;f 1\n"),
        (framed("#1 1 2.0: cycles:"), "#1;f 1\n"),
        (framed("aa 1 2.0: 0 cycles:"), "aa;f 0\n"),
        (framed("aa 1"), "aa;f 1\n"),
        (framed("aa 1/2 [003]"), "aa;f 1\n"),
        (framed("aa 1 cycles:"), "aa;f 1\n"),
        (framed("aa 1 2.0: 5 sched:sched_switch: prev_comm=a ==> next_comm=b"), "aa;f 5\n"),
        (format!("aa 1 2.0: 2 cycles:\r\n{}\r\n", FRAME.replace('\n', "\r\n")), "aa;f 2\n"),
        (format!("aa 1 2.0: cycles:\n{FRAME}  \t \naa 1 3.0: cycles:\n{FRAME}"), "aa;f 2\n"),
        (format!("aa 1 2.0: cycles:\n{FRAME}bb 1 3.0: cycles:\n{FRAME}"), "aa;f 1\nbb;f 1\n"),
        (format!("aa 1 2.0: cycles:\n{FRAME}dead 1 3.0: cycles:\n{FRAME}"), "aa;f 1\ndead;f 1\n"),
        (format!("aa 1 2.0: cycles:\n\n{FRAME}\naa 1 2.0: cycles:\n{FRAME}"), "aa;f 2\n"),
        ("aa 1 2.0: 7 cycles:\n\nbb 1 2.0: cycles:\n".to_owned(), "aa 7\nbb 1\n"),
        ("aa 1 2.0: 7 cycles:  7f00 f+0x1 (/x)\n".to_owned(), "aa;f 7\n"),
        (
            format!(
                "aa 1 2.0: PERF_RECORD_COMM exec: aa:1/1\naa 1 2.0: cycles:\n{FRAME}\naa 1 3.0: PERF_RECORD_EXIT(1:1):(1:1)\n"
            ),
            "aa;f 1\n",
        ),
        (format!("# captured on: Thu Aug 17 14:14:43 2017\n#\naa 1 2.0: cycles:\n{FRAME}"), "aa;f 1\n"),
        (
            format!("aa 1 2.0: cycles:\n{FRAME}  f.c:12\n\t            7f01 [unknown] ([unknown])\n  ??:0\n"),
            "aa;[unknown];f 1\n",
        ),
        (format!("aa 1 2.0: cycles:\n{FRAME} 0x4005d0/0x4005e0/P/-/-/0  0x1/0x2/P/-/-/0\n\n"), "aa;f 1\n"),
    ] {
        let outcome = collapse(&[], &text).ok();
        assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), (expected, ""), "{text}");
    }
}

#[test]
fn reads_every_form_of_frames() {
    for (frame, expected) in [
        ("[unknown] (/usr/lib/libfoo.so)", "[libfoo.so]"),
        ("[unknown] ([unknown])", "[unknown]"),
        ("[unknown] ([kernel.kallsyms])", "[kernel.kallsyms]"),
        ("+0x10 (/usr/lib/libfoo.so)", "[libfoo.so]"),
        ("foo+0x7 (/opt/My App/x)", "foo"),
        ("foo+0x7 (/tmp/x (deleted))", "foo"),
        ("[unknown] (/tmp/x (deleted))", "[x (deleted)]"),
        ("foo", "foo"),
        ("foo (inlined)", "foo"),
        ("(anonymous namespace)::f(int)+0x7 (/x)", "(anonymous namespace)::f"),
        ("P<int>::operator->() const+0x7 (/x)", "P<int>::operator->"),
        ("<fn(u8) -> u8 as m::T>::call+0x7 (/x)", "<fn(u8) -> u8 as m::T>::call"),
        ("<[u8; 8] as m::T>::call+0x7 (/x)", "<[u8: 8] as m::T>::call"),
        ("decltype(auto) f<int>(int&&)+0x7 (/x)", "decltype(auto) f<int>"),
        ("La;::f->Lb;::<init>+0x7 (/tmp/perf-1.map)", "La:::f;Lb:::<init>_[i]"),
        ("net/http.(*Client).Do+0x7 (/x)", "net/http.(*Client).Do"),
        ("say \"it's\"+0x7 (/x)", "say \"it's\""),
    ] {
        let outcome = collapse(&[], &format!("aa 1 2.0: cycles:\n\t            7f00 {frame}\n\n")).ok();
        assert_eq!(outcome.text(), format!("aa;{expected} 1\n"), "{frame}");
    }
}

const OPTIONS: &str = "java 12/13 [000] 2.0: cycles:
\tffffffff81000000 read+0x1 ([kernel.kallsyms])
\t            7f00 [unknown] (/usr/lib/libc.so)
\t            7f01 La/b/C;::f(I)V+0x1 (/tmp/perf-12.map)
\t            7f02 clock_gettime+0x1 ([vdso])
\t            7f03 main+0x1 (/usr/bin/java)

";

#[test]
fn options_annotate_frames_and_threads() {
    for (options, expected) in [
        (&[][..], "java;main;clock_gettime;a/b/C:::f;[libc.so];read 1\n"),
        (&["--pid"], "java-12;main;clock_gettime;a/b/C:::f;[libc.so];read 1\n"),
        (&["--tid"], "java-12/13;main;clock_gettime;a/b/C:::f;[libc.so];read 1\n"),
        (&["--kernel"], "java;main;clock_gettime;a/b/C:::f;[libc.so];read_[k] 1\n"),
        (&["--jit"], "java;main;clock_gettime;a/b/C:::f_[j];[libc.so];read 1\n"),
        (&["--all"], "java;main;clock_gettime;a/b/C:::f_[j];[libc.so];read_[k] 1\n"),
        (&["--addrs"], "java;main;clock_gettime;a/b/C:::f;[libc.so <7f00>];read 1\n"),
        (&["--no-tidy"], "java;main;clock_gettime;La/b/C:::f(I)V;[libc.so];read 1\n"),
    ] {
        assert_eq!(collapse(options, OPTIONS).ok().text(), expected, "{options:?}");
    }
}

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
    for (event, expected) in
        [("all", "aa;f 12\nbb 1\n"), ("cycles", "aa;f 12\n"), ("cycles:u", "aa;f 5\n"), ("faults", "bb 1\n")]
    {
        assert_eq!(collapse(&["--event", event], EVENTS).ok().text(), expected, "{event}");
        assert_eq!(collapse(&["--event-filter", event], EVENTS).ok().text(), expected, "{event}");
    }
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
    assert_eq!(outcome.text(), "GET /;a_b;main;f;g 5\n[no span];c;main 7\ninner;a_b;main;f;g 6\n");
    assert_eq!(outcome.stderr, format!("fg-collapse: {message}\nfg-collapse: skipped 1 malformed line\n"));
    let outcome = with(&["--strict"], SAMPLES);
    assert_eq!((outcome.code(), outcome.stderr), (1, format!("fg-collapse: {message}\n")));
    let text = "a 1 cycles:\n\t 7f00 f (/x)\n\n";
    let outcome = with(&["-q"], text).ok();
    assert_eq!(outcome.text(), "[no span];a;f 1\n");
    assert!(with(&[], text).stderr.contains("no time or no thread ID, which --span needs"));
    assert!(with(&[], "main 1\n").stderr.contains("samples of this format have no time, thread or CPU"));
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
        (span(77, 10_000_000_000), "no sample belongs to a thread with a span; tid must be the thread id"),
    ] {
        std::fs::write(&path, spans).unwrap();
        let options = ["--span".as_ref(), path.as_os_str(), samples.as_os_str()];
        let outcome = run("fg-collapse", options, b"").ok();
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
        assert!(outcome.stderr.starts_with(&format!("fg-collapse: {}: {message}", path.display())), "{outcome:?}");
        assert!(outcome.text().lines().all(|line| line.starts_with("[no span];")), "{outcome:?}");
        assert_eq!(run("fg-collapse", options.iter().chain([&"-q".as_ref()]), b"").ok().stderr, "");
    }
}

#[test]
fn reports_options_that_sorted_folded_text_cannot_satisfy() {
    let folder = directory();
    let path = folder.path().join("sorted");
    std::fs::write(&path, "main;a 1\nmain;b 2\n").unwrap();
    for options in [&["--time", "1,2"][..], &["--comm", "x"], &["--no-idle"]] {
        let options: Vec<&std::ffi::OsStr> = options.iter().map(AsRef::as_ref).collect();
        let outcome = run("fg-collapse", options.iter().copied().chain([path.as_os_str()]), b"").ok();
        assert!(outcome.stderr.contains("samples of this format have no time, thread or CPU"), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
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
fn reports_unreadable_input_in_one_line() {
    for (input, message) in [
        (&b"PERFILE2\0\0\0"[..], "stdin: cut short within its header"),
        (b"\x7fELF\x02\x01\0", "stdin: a program, not a profile"),
        (b"ab\0\x01", "stdin: a binary file of unknown format; name it with --format, see fg-collapse --list-formats"),
        (
            b"once upon a time\nthere was\n",
            "stdin: text of unknown format; name it with --format, see fg-collapse --list-formats",
        ),
    ] {
        let outcome = run("fg-collapse", [""; 0], input);
        assert_eq!((outcome.code(), outcome.text()), (1, String::new()));
        assert_eq!(outcome.stderr, format!("fg-collapse: {message}\n"));
    }
    for empty in ["", "\n", " \n\t\n"] {
        let outcome = collapse(&[], empty);
        assert_eq!((outcome.code(), outcome.text()), (1, String::new()));
        assert_eq!(outcome.stderr, "fg-collapse: stdin: no stacks in the input; check what wrote it\n");
    }
}

#[test]
fn folds_the_other_files_if_one_is_unreadable() {
    let folder = support::directory();
    let (good, bad) = (folder.path().join("good"), folder.path().join("bad"));
    std::fs::write(&good, "aa 1 2.0: cycles:\n\t 7f00 f (/x)\n").unwrap();
    std::fs::write(&bad, "nothing known\n").unwrap();
    let outcome = run("fg-collapse", [&bad, &good], b"");
    assert_eq!((outcome.code(), outcome.text().as_str()), (1, "aa;f 1\n"));
    assert!(outcome.stderr.contains("/bad: text of unknown format"), "{}", outcome.stderr);
}

#[test]
fn mixes_formats() {
    let folder = support::directory();
    let (script, folded) = (folder.path().join("a"), folder.path().join("b"));
    std::fs::write(&script, "aa 1 2.0: cycles:\n\t 7f00 f (/x)\n").unwrap();
    std::fs::write(&folded, "aa;f 2\nbb;g 0.5\n").unwrap();
    assert_eq!(run("fg-collapse", [&script, &folded], b"").ok().text(), "aa;f 3\nbb;g 0.5\n");
}

/// Makes a few megabytes of samples, some of which cross block boundaries, with malformed lines.
fn long_text() -> Vec<u8> {
    let mut text = Vec::new();
    for n in 0..30_000u32 {
        let mixed = n.wrapping_mul(2_654_435_761);
        writeln!(text, "t{} {n} 1.{n:06}: {} cycles:", mixed % 7, mixed % 11 + 1).unwrap();
        for depth in 0..mixed % 5 {
            writeln!(text, "\t{:>16x} f{}_{depth}(int)+0x{n:x} (/lib/l{}.so)", mixed, mixed >> 22, depth).unwrap();
        }
        if mixed % 1000 == 0 {
            writeln!(text, "gibberish").unwrap();
        }
        if mixed % 3 > 0 {
            text.push(b'\n');
        }
    }
    text
}

#[test]
fn output_does_not_depend_on_the_number_of_threads() {
    let folder = support::directory();
    let (plain, packed) = (folder.path().join("plain"), folder.path().join("packed"));
    let text = long_text();
    std::fs::write(&plain, &text).unwrap();
    let mut encoder =
        flate2::write::GzEncoder::new(std::fs::File::create(&packed).unwrap(), flate2::Compression::fast());
    encoder.write_all(&text).unwrap();
    encoder.finish().unwrap();
    let reference = run("fg-collapse", ["-n1".as_ref(), plain.as_os_str()], b"").ok();
    assert!(reference.stderr.lines().count() > 2, "{}", reference.stderr);
    for threads in ["-n1", "-n2", "-n8"] {
        let from_file = run("fg-collapse", [threads.as_ref(), plain.as_os_str()], b"").ok();
        let from_gzip = run("fg-collapse", [threads.as_ref(), packed.as_os_str()], b"").ok();
        let from_pipe = run("fg-collapse", [threads], &text).ok();
        let mut command = command(support::tool("fg-collapse"));
        command.arg(threads).stdin(std::fs::File::open(&plain).unwrap()).stdout(Stdio::piped());
        let from_redirection = support::run_bounded(command.stderr(Stdio::piped())).ok();
        assert_eq!(from_file.stderr, reference.stderr);
        for other in [from_file, from_gzip, from_pipe, from_redirection] {
            assert!(other.stdout == reference.stdout, "{}", other.command);
        }
    }
}

#[test]
fn strict_stops_at_the_first_malformed_line() {
    let text = String::from_utf8(long_text()).unwrap();
    let line = text.lines().position(|line| line == "gibberish").unwrap() + 1;
    for threads in ["-n1", "-n4"] {
        let outcome = collapse(&["--strict", threads], &text);
        let expected = format!("fg-collapse: stdin:{line}: expected the first line of a sample or a frame\n");
        assert_eq!((outcome.code(), outcome.stderr), (1, expected));
    }
}

#[test]
fn merges_sorted_files() {
    let folder = support::directory();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (one, two) = (file("one", "a;b 1\na;b;c 2\nz 1\n"), file("two", "a 0.5\na;b 3\na;b.cold 4\n"));
    let (unsorted, windows) = (file("unsorted", "z 1\na;b 3\n"), file("windows", "\u{feff}a;b 7\r\nz 1\r\n"));
    let (odd, malformed) = (file("odd", "a 1\na;line 12 1\n"), file("malformed", "a 1\nnothing\nb 1\n"));
    let differential = file("differential", "a;b 1 2\n");
    for (files, expected) in [
        (vec![&one, &two], "a 0.5\na;b 4\na;b;c 2\na;b.cold 4\nz 1\n"),
        (vec![&one], "a;b 1\na;b;c 2\nz 1\n"),
        (vec![&one, &unsorted], "a;b 4\na;b;c 2\nz 2\n"),
        (vec![&windows, &one], "a;b 8\na;b;c 2\nz 2\n"),
        (vec![&one, &odd], "a 1\na;b 1\na;b;c 2\na;line_12 1\nz 1\n"),
        (vec![&malformed, &one], "a 1\na;b 1\na;b;c 2\nb 1\nz 1\n"),
        (vec![&differential, &differential], "a;b 2 4\n"),
        (vec![&one; 20], "a;b 20\na;b;c 40\nz 20\n"),
    ] {
        assert_eq!(run("fg-collapse", files.clone(), b"").ok().text(), expected, "{files:?}");
    }
    let many = [vec!["--sorted".as_ref(), "-".as_ref()], vec![one.as_os_str(); 20]].concat();
    assert_eq!(run("fg-collapse", many, b"a;b 1\n").ok().text(), "a;b 21\na;b;c 40\nz 20\n");
    let mut command = command(support::tool("fg-collapse"));
    command.stdin(std::fs::File::open(&one).unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    assert_eq!(support::run_bounded(&mut command).ok().text(), "a;b 1\na;b;c 2\nz 1\n");
    let promised = run("fg-collapse", ["--sorted".as_ref(), "-".as_ref(), one.as_os_str()], b"a;b 2\nb 1\n").ok();
    assert_eq!(promised.text(), "a;b 3\na;b;c 2\nb 1\nz 1\n");
    let broken = run("fg-collapse", ["--sorted"], b"b 1\na 1\n");
    assert_eq!(
        (broken.code(), broken.stderr.as_str()),
        (1, "fg-collapse: stdin:2: out of order: --sorted needs input in the order of fg-collapse; omit --sorted\n")
    );
}

#[test]
fn drops_a_truncated_last_line_and_reports_it() {
    let text = b"app 1 1.0: cycles:\n\t10 leaf+0x1 (/bin/app)\n\t20 main+0x1 (/bin/app)\n\t30 __libc_st";
    let outcome = run("fg-collapse", [""; 0], text).ok();
    assert_eq!(outcome.text(), "app;main;leaf 1\n");
    assert!(outcome.stderr.contains("stdin:4: the input ends within this line"), "{}", outcome.stderr);
    let whole = b"app 1 1.0: cycles:\n\t10 leaf+0x1 (/bin/app)\n\t20 main+0x1 (/bin/app)";
    assert_eq!(run("fg-collapse", [""; 0], whole).ok().stderr, "");
}
