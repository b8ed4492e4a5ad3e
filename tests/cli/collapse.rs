//! fg-collapse: perf script text, options, and outputs.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use crate::support::{self, Outcome, command, run};

/// Folds a text with options.
pub fn collapse(options: &[&str], text: &str) -> Outcome {
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
        (framed("aa 1"), "aa;f 1\n"),
        (framed("aa 1/2 [003]"), "aa;f 1\n"),
        (framed("aa 1 cycles:"), "aa;f 1\n"),
        (framed("aa 28473    2004008 "), "aa;f 2004008\n"),
        (framed("aa 3 28473/28473    2004008 "), "aa_3;f 2004008\n"),
        (framed("aa 3   28473 "), "aa_3;f 1\n"),
        (framed("41657.144542: "), "f 1\n"),
        (framed("28473 41657.144542: "), "f 1\n"),
        (framed("aa 1 2.0: 5 sched:sched_switch: prev_comm=a ==> next_comm=b"), "aa;f 5\n"),
        (format!("aa 1 2.0: 2 cycles:\r\n{}\r\n", FRAME.replace('\n', "\r\n")), "aa;f 2\n"),
        (format!("aa 1 2.0: cycles:\n{FRAME}  \t \naa 1 3.0: cycles:\n{FRAME}"), "aa;f 2\n"),
        (format!("aa 1 2.0: cycles:\n{FRAME}bb 1 3.0: cycles:\n{FRAME}"), "aa;f 1\nbb;f 1\n"),
        (format!("aa 1 2.0: cycles:\n{FRAME}dead 1 3.0: cycles:\n{FRAME}"), "aa;f 1\ndead;f 1\n"),
        (format!("aa 1 2.0: cycles:\n\n{FRAME}\naa 1 2.0: cycles:\n{FRAME}"), "aa;f 2\n"),
        ("aa 1 2.0: 7 cycles:\n\nbb 1 2.0: 0 cycles:\n".to_owned(), "aa 7\nbb 0\n"),
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

#[test]
fn reports_unreadable_input_in_one_line() {
    for (input, message) in [
        (&b"PERFILE2\0\0\0"[..], "stdin: cut short within its header"),
        (
            b"count callee caller time\n1 a.B.c()V a.B.d()V 5\n",
            "stdin: a table of pairs of Java methods (cpu=old), which has no stacks; record with cpu=samples",
        ),
        (
            b"Line #, Process, Stack, Count\n6, ,   |    |- a.sys!f, 46\n7, ,   |    |    a.sys!g, 46\n",
            "stdin: a tree that Windows Performance Analyzer copied, whose weights are sums; export the table with \
             wpaexporter, with one row for each stack",
        ),
        (b"\x7fELF\x02\x01\0", "stdin: a program, not a profile; record it with fg-record"),
        (
            b"ab\0\x01",
            "stdin: a binary file of unknown format; name the format with --format, see fg-collapse --list-formats",
        ),
        (
            b"once upon a time\nthere was\n",
            "stdin: text of unknown format; name the format with --format, see fg-collapse --list-formats",
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
pub fn long_text() -> Vec<u8> {
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
fn sorted_files_may_be_compressed_or_in_units_of_two_bytes() {
    let folder = support::directory();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(b"a 1\nb 2\n").unwrap();
    // The text `a 1` and a line end, compressed by xz 5.4.
    let xz = b"\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x16\x00\x00\x00\x74\x2f\xe5\xa3\
        \x01\x00\x03\x61\x20\x31\x0a\x00\x1f\xe3\x29\xfb\x8a\xe3\xf5\xdc\x00\x01\x1c\x04\x6f\x2c\x9c\xc1\
        \x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a";
    let units = "a 1\nb 2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (bytes, expected) in [(bzip2.finish().unwrap(), "a 1\nb 2\n"), (xz.to_vec(), "a 1\n"), (units, "a 1\nb 2\n")] {
        let path = folder.path().join("sorted");
        std::fs::write(&path, bytes).unwrap();
        let outcome = run("fg-collapse", [path], b"").ok();
        assert_eq!(outcome.text(), expected, "{outcome:?}");
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
    let (odd, malformed) =
        (file("odd", "a 1\na;line 12 1\n"), file("malformed", "a;x 1\na;y 1\na;z 1\nnothing\nb 1\n"));
    let differential = file("differential", "a;b 1 2\n");
    for (files, expected) in [
        (vec![&one, &two], "a 0.5\na;b 4\na;b;c 2\na;b.cold 4\nz 1\n"),
        (vec![&one], "a;b 1\na;b;c 2\nz 1\n"),
        (vec![&one, &unsorted], "a;b 4\na;b;c 2\nz 2\n"),
        (vec![&windows, &one], "a;b 8\na;b;c 2\nz 2\n"),
        (vec![&one, &odd], "a 1\na;b 1\na;b;c 2\na;line_12 1\nz 1\n"),
        (vec![&malformed, &one], "a;b 1\na;b;c 2\na;x 1\na;y 1\na;z 1\nb 1\nz 1\n"),
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
    assert_eq!(outcome.text(), "app;[truncated];main;leaf 1\n");
    assert!(outcome.stderr.contains("stdin: cut short: "), "{}", outcome.stderr);
    let whole = b"app 1 1.0: cycles:\n\t10 leaf+0x1 (/bin/app)\n\t20 main+0x1 (/bin/app)";
    let outcome = run("fg-collapse", [""; 0], whole).ok();
    assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), ("app;main;leaf 1\n", ""));
}
