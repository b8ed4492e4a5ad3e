//! fg-collapse: input formats.

use std::path::PathBuf;

use crate::support::{self, run};

mod copied;
mod cut;
mod edited;
mod examples;
mod joined;
mod json_numbers;
mod json_start;
mod malformed;
mod one_line;
mod selection;
mod strays;
mod sums;
mod texts;

pub fn folder() -> PathBuf {
    support::data("collapse/formats")
}

/// Returns the sum of the weights in millionths.
pub fn total(folded: &str) -> u128 {
    let millionths = |line: &str| {
        let (whole, fraction) = line.rsplit_once(' ').unwrap().1.split_once('.').unwrap_or((line, ""));
        let whole = if fraction.is_empty() { line.rsplit_once(' ').unwrap().1 } else { whole };
        whole.parse::<u128>().unwrap() * 1_000_000 + format!("{fraction:0<6}").parse::<u128>().unwrap()
    };
    folded.lines().map(millionths).sum()
}

/// Returns the text examples and what they give alone: name, text, total.
pub fn example_texts() -> Vec<(String, String, u128)> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.filter(|name| !name.ends_with(".folded")).collect();
    names.sort();
    let texts = names.into_iter().filter_map(|name| {
        let text = std::fs::read_to_string(folder().join(&name)).ok().filter(|text| !text.contains('\0'))?;
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        let is_small = text.len() < 60_000 && outcome.code() == 0;
        is_small.then(|| (name, text, total(&outcome.text())))
    });
    texts.collect()
}

#[test]
fn reports_options_that_a_format_cannot_satisfy() {
    for option in ["--comm=a", "--time=1,2", "--cpu=0", "-p1", "-t1"] {
        let outcome = run("fg-collapse", [option], b"a;b 1\nb 2\n");
        assert_eq!((outcome.code(), outcome.stdout.len()), (1, 0), "{outcome:?}");
        assert!(
            outcome.stderr.contains("stdin: no time, thread or CPU of samples is read from this format"),
            "{outcome:?}"
        );
    }
    let outcome = run("fg-collapse", ["--no-idle"], b"a;b 1\nb 2\n").ok();
    assert!(outcome.stderr.ends_with("--no-idle has no effect\n"), "{outcome:?}");
    let refused = run("fg-collapse", ["--event=x"], b"Samples:\na/count b/ns\n1 2: 1\n");
    assert!(
        refused.code() == 1 && refused.stderr.contains("--event x: no such value; expected one of a/count, b/ns"),
        "{refused:?}"
    );
}

#[test]
fn says_that_a_format_has_no_labels() {
    let sample = b"a 1 1.5: 3 e:\n\t            7f00 f+0x1 (/x)\n\n";
    for text in [&b"a;b 1\n"[..], sample] {
        let outcome = run("fg-collapse", ["--label=request"], text).ok();
        let expected = "fg-collapse: stdin: no labels are read from this format; --label has no effect\n";
        assert_eq!(outcome.stderr, expected, "{outcome:?}");
    }
    let path = folder().join("pprof.pb");
    let outcome = run("fg-collapse", ["--label=request".as_ref(), path.as_os_str()], b"").ok();
    assert!(!outcome.stderr.contains("labels"), "{outcome:?}");
}

#[test]
fn refuses_lines_that_end_with_a_carriage_return_alone() {
    let sample = "a 1 1.5: 3 e:\n\t            7f00 f+0x1 (/x)\n\na 1 1.6: 3 e:\n\t            7f00 g+0x1 (/x)\n\n";
    for (text, name) in [("a;b 1\na;c 2\n", "folded"), (sample, "perf-script")] {
        let text = text.replace('\n', "\r");
        for option in ["-q".to_owned(), format!("--format={name}")] {
            let outcome = run("fg-collapse", [&option], text.as_bytes());
            assert_eq!((outcome.code(), outcome.stdout.len()), (1, 0), "{option}: {outcome:?}");
            let expected =
                "its lines end with a carriage return alone; convert them: tr '\\r' '\\n' < FILE | fg-collapse";
            assert_eq!(outcome.stderr, format!("fg-collapse: stdin: {expected}\n"));
        }
    }
}

#[test]
fn says_that_frames_of_speedscope_are_not_closed() {
    let events = |events: &str| {
        format!(
            r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{{"name":"a"}},{{"name":"b"}}]}},"profiles":[{{"type":"evented","name":"t","unit":"none","startValue":0,"endValue":9,"events":[{events}]}},{{"type":"evented","name":"u","unit":"none","startValue":0,"endValue":5,"events":[{events}]}}]}}"#
        )
    };
    let opened = r#"{"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":3}"#;
    let outcome = run("fg-collapse", [""; 0], events(opened).as_bytes()).ok();
    assert_eq!(outcome.text(), "t;a 3\nt;a;b 6\nu;a 3\nu;a;b 2\n");
    let expected = "4 frames without a close event: open until the profile ends";
    assert_eq!(outcome.stderr, format!("fg-collapse: stdin: {expected}\n"));
    let closed = format!(r#"{opened},{{"type":"C","frame":1,"at":4}},{{"type":"C","frame":0,"at":5}}"#);
    assert_eq!(run("fg-collapse", [""; 0], events(&closed).as_bytes()).ok().stderr, "");
}

#[test]
fn reports_what_to_do_about_inputs_without_stacks() {
    let waiting = run("fg-collapse", [""; 0], b"\"a\" #1\n java.lang.Thread.State: WAITING\n\tat f(A)\n");
    let expected = "fg-collapse: no sample is of the default event; the input has WAITING (1); use --event to select one, or all\n";
    assert_eq!((waiting.code(), waiting.stdout.len(), waiting.stderr.as_str()), (1, 0, expected));
    let texts: [(&[u8], &str); 16] = [
        (b"# Children      Self  Command  Symbol\n 1.0%  [.] f\n", "give it --no-children"),
        (b"# Overhead  Symbol\n 5.0%  [.] f\n   |\n   ---f\n", "-g folded"),
        (b"FLR\0\0\x02\0\0", "no chunk begins at byte 0"),
        (b"File: p\nType: cpu\nShowing nodes accounting for 30ms, 100% of 30ms total\n flat  flat%\n", "-traces"),
        (b"gmon\x01\0\0\0\0\0\0\0", "a gprof profile, "),
        (b"Flat profile:\n\nEach sample counts as 0.01 seconds.\n", "a gprof profile, "),
        (b"\xfb\xa9\x03\xfa\x04a.py", "py-spy record -f raw"),
        (b"1\n         4 function calls in 0.005 seconds\n\n", "py-spy record -f raw"),
        (b"   Random listing order was used\n\nFunction    was called by...\n  a.py:1(f)  <-  1  0.0  0.0  b.py:2(g)\n", "py-spy record"),
        (b"42:\n num  #instances  #bytes  class name (module)\n---\n 1:  14  940 [B (java.base@17)\n", "a histogram of Java"),
        (b"PK\x03\x04\x14\0", "unzip -p"),
        (b"<?xml version=\"1.0\"?>\n<svg width=\"1\">", "an SVG picture"),
        (b"\n<!DOCTYPE html>\n<html>", "an HTML page"),
        (b"\x01\x02 lying\n", "a binary file of unknown format"),
        (b"Attaching 1 probe...\n\n@start: 5\n", "no map in it is keyed by a stack"),
        (b"Samples:\nalloc/count inuse/bytes\n1 2: 1\n", "no such value"),
    ];
    for (text, expected) in texts {
        let options = if expected.starts_with("no such value") { &["--event=cpu"][..] } else { &[] };
        let outcome = run("fg-collapse", options, text);
        assert_eq!((outcome.code(), outcome.stdout.len(), outcome.stderr.lines().count()), (1, 0, 1), "{outcome:?}");
        assert!(outcome.stderr.contains(expected), "{outcome:?}");
    }
}

#[test]
fn blank_lines_and_byte_order_marks_change_nothing() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Ok(text) = std::fs::read_to_string(folder().join(&name)) else { continue };
        if name.ends_with(".folded") || text.contains('\0') || text.starts_with('\u{feff}') {
            continue;
        }
        let alone = run("fg-collapse", [""; 0], text.as_bytes());
        for start in ["\u{feff}", "\n", "\r\n  \n", "\u{feff}\n"] {
            let outcome = run("fg-collapse", [""; 0], format!("{start}{text}").as_bytes());
            assert_eq!((outcome.code(), outcome.text()), (alone.code(), alone.text()), "{name} {start:?}: {outcome:?}");
        }
    }
}

#[test]
fn colours_are_no_part_of_names() {
    let text = "\u{1b}[1ma 1 1.5: 3 e:\u{1b}[0m\n\t            7f00 \u{1b}[31mf\u{1b}[0m+0x1 (/x)\n";
    let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
    assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), ("a;f 3\n", ""));
}

#[test]
fn lines_are_numbered_from_the_first_one_even_if_it_is_blank() {
    for (text, line) in [("\n\nsample.interval=10\n\"f\" \nwhat\n", 5), ("\n\na;b 1\nwhat\na;c 2\n", 4)] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        assert!(outcome.stderr.contains(&format!("stdin:{line}: ")), "{outcome:?}");
    }
}

/// Texts that are no profiles but have lines that look like those of one, and what they look like.
const NO_PROFILES: &[(&str, &str)] = &[
    ("openat(AT_FDCWD, \"a;b\", O_RDONLY) = 3\nread(3, \"x;y\", 832) = 832\nclose(3) = 0\n", "output of strace"),
    ("Stack,Process,Weight\n\"a;b\",x.exe, 12\n\"a;c\",x.exe, 7\n\"a;d\",x.exe, 9\n", "a table (CSV)"),
    ("2026-11-23 10:00:00 app;main started 12\n2026-11-23 10:00:01 app;main took 7\n", "a log"),
    ("[    0.000000] Linux;version 6\n[    0.100000] Memory;available 12\n", "a log"),
    // Constants whose names are hexadecimal.
    ("const (\n\tf1 = 1\n\tf2 = f1 * 2\n\tf3 = f2 * 3\n\tf4 = f3 * 4\n)\n", " of unknown format"),
    (
        "draw(expression(x + y), i, nr); i <- i + 1\ndraw(expression(x - y), i, nr); i <- i + 1\nindex <- index + 2\n",
        "names and numbers",
    ),
    ("/* Copyright 2012\n * f();x 12\n */\nint f() {\n  return 0;\n}\nint g() {\n  return 1;\n}\n", "source code"),
    (
        "// A test.\n\npackage main\n\nfunc f() {\n\tg()\n}\n\n/*\ngoroutine 1 [running]:\nmain.f()\n\t/a.go:1 +0x1\nmain.main()\n\t/a.go:2 +0x1\n*/\n",
        "source code",
    ),
    ("total 64\n    0 bin\n    4 boot\n   16 dev\n    4 etc\n", "names and numbers"),
    ("total 8\n 1234567 drwxr-xr-x 2 root root 4096 a\n 7654321 -rw-r--r-- 1 root root 12 b\n", "names and numbers"),
    (
        "      1 # Services 2\n      1 tcpmux\t\t1/tcp\n      2 echo\t\t7/tcp\n      1 x 3\n      1 y\n",
        "names and numbers",
    ),
    ("digraph {\n    0 [label=\"a\"]\n    1 [label=\"b\"]\n    0 -> 1\n    1 -> 0\n}\n", "a graph (DOT)"),
    ("memray\0\u{c}", "memray transform csv"),
    ("<module> (a.py:1);work (a.py:3", "text of unknown format"),
    ("name: 5\nsize: 7\nvalue: 8\nother: 9\n", "names and numbers"),
    ("nr_a 1\nnr_b 2\nnr_c 3\nnr_d 4\nnr_e 5\nnr_f 6\nnr_g 7\nnr_h 8\nnr_i 9\n", "names and numbers"),
    ("0.00 0.01 0.05 1/200 12345\n", "names and numbers"),
    ("head\n<8ea1> <8efe> 8500\n<a1a1> <a1fe> 633\n<a2a1> <a2fe> 727\n", "names and numbers"),
    ("lo 0 1 2 3\neth0 4 5 6 7\neth1 0 0 0 0\n", "names and numbers"),
    ("TCP: inuse 1 mem 355\nUDP: inuse 0 mem 2\n", "names and numbers"),
    ("mode: set\na.go:1.1,2.2 1 1\na.go:3.1,4.2 1 0\n", "a coverage profile of Go"),
    ("go 1.21 trace\0\0\0\u{1}", "an execution trace of Go 1.21 or older"),
    ("# Marker file for PEP 561.\n", "names and numbers"),
    ("# A comment.\n# RUN: true\n", "text of unknown format"),
    ("{\n \"name\": \"x\",\n \"version\": 1\n}\n", "JSON"),
    ("10.0.0.1 - - [27/Nov/2026:07:00:00 +0000] \"GET /a?x=1;y=2 HTTP/1.1\" 200 4463\n", "a log"),
    (
        "10.0.0.1 - - [27/Nov/2026:07:00:00 +0000] \"GET / HTTP/1.1\" 304 -\n10.0.0.1 - - [27/Nov/2026:07:00:01 +0000] \"GET / HTTP/1.1\" 200 944\n",
        "a log",
    ),
    ("COMMAND                  RSS\n[kthreadd]                0\n[rcu_gp]               812\n", "names and numbers"),
    (
        "commit 1f\nAuthor: a <a@b>\n\n    Change.\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n main;a 1\n-main;b 2\n+main;b 3\n",
        "a diff",
    ),
    (
        "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n main;a 1\n-main;b 2\n+main;b 3\n",
        "a diff",
    ),
    (
        "JOB \"app +RTS -hc\"\nDATE \"Fri Nov 27\"\nSAMPLE_UNIT \"seconds\"\nVALUE_UNIT \"bytes\"\nBEGIN_SAMPLE 0.1\nMAIN\t12\nEND_SAMPLE 0.1\n",
        "a heap profile of GHC",
    ),
    (
        "# HELP requests_total Requests.\n# TYPE requests_total counter\nrequests_total{code=\"200\"} 1027\n",
        "metrics of Prometheus",
    ),
    ("  File \"<gen>\", line 8\n  File \"<gen>\", line 8\n  File \"<gen>\", line 6\n", "names and numbers"),
    // Instructions of Python.
    (
        "  1           2 LOAD_CONST               0 ('a (b)')\n              4 STORE_NAME               0 (__doc__)\n\n 16           6 BUILD_LIST               0\n              8 LOAD_CONST               1 (('x', 'y'))\n             10 LIST_EXTEND              1\n             12 STORE_NAME               1 (__all__)\n",
        "names and numbers",
    ),
];

#[test]
fn text_with_brackets_and_numbers_is_no_profile() {
    for line in ["[INFO] Building module 1 of 4 took", "<bob> I have", "- [Chapter](ch1.md)", "<li>item</li>"] {
        let text: String = (1..12).map(|number| format!("{line} {number}\n")).collect();
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        assert_eq!((outcome.code(), outcome.stdout.len(), outcome.stderr.lines().count()), (1, 0, 1), "{outcome:?}");
    }
}

#[test]
fn lines_without_callers_are_mentioned() {
    let message = "fg-collapse: stdin: each line was read as a stack of one frame, and none has a caller\n";
    for (text, stderr) in
        [("f(int) 5\ng(int) 3\nh(int) 2\n", message), ("f(int);g 5\ng(int) 3\nh(int) 2\n", ""), ("f(int) 5\n", "")]
    {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.folded");
        std::fs::write(&file, text).unwrap();
        assert_eq!(run("fg-collapse", [""; 0], text.as_bytes()).ok().stderr, stderr, "{text}");
        let outcome = run("fg-collapse", [&file], b"").ok();
        assert_eq!(outcome.stderr, stderr.replace("stdin", file.to_str().unwrap()), "{text}");
    }
}

#[test]
fn refuses_texts_that_are_no_profiles() {
    for (text, kind) in NO_PROFILES {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        assert_eq!((outcome.code(), outcome.stdout.len(), outcome.stderr.lines().count()), (1, 0, 1), "{outcome:?}");
        assert!(outcome.stderr.contains(kind), "{kind}: {outcome:?}");
    }
}

#[test]
fn refuses_a_directory_that_perf_did_not_write() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data"), b"PERX").unwrap();
    let outcome = run("fg-collapse", [folder.path()], b"");
    assert!(outcome.code() == 1 && outcome.stderr.contains("is a directory"), "{outcome:?}");
}

#[test]
fn refuses_an_input_of_which_nearly_all_lines_are_malformed() {
    let text = "main;a 1\n".to_owned() + &"no stack\n".repeat(20);
    let outcome = run("fg-collapse", ["--format=folded"], text.as_bytes());
    assert_eq!((outcome.code(), outcome.text().as_str()), (1, "main;a 1\n"), "{outcome:?}");
    assert!(outcome.stderr.contains("20 of 21 lines are malformed"), "{outcome:?}");
}

#[test]
fn says_which_value_it_took_if_there_was_a_choice() {
    let raw = b"Samples:\na/count b/nanoseconds\n1 2: 1\nLocations\n1: 0x1 M=1 f x:1 s=1\nMappings\n";
    let outcome = run("fg-collapse", [""; 0], raw).ok();
    let expected = "samples have a/count, b/nanoseconds; using b/nanoseconds; use --event to select";
    assert_eq!(outcome.stderr, format!("fg-collapse: stdin: {expected}\n"));
    let outcome = run("fg-collapse", ["--event=a"], raw).ok();
    assert_eq!((outcome.stderr.as_str(), outcome.text().as_str()), ("", "f 1\n"));
}

#[test]
fn refuses_an_event_where_samples_have_none() {
    for name in ["cpuprofile.cpuprofile", "gperftools.prof", "async-profiler.txt", "gdb.txt"] {
        let outcome = run("fg-collapse", ["--event=Nope".as_ref(), folder().join(name).as_os_str()], b"");
        assert_eq!((outcome.code(), outcome.stdout.len()), (1, 0), "{name}: {outcome:?}");
        let last = outcome.stderr.lines().last().unwrap_or_default();
        assert!(last.contains("--event Nope: samples of this format have one value"), "{name}: {outcome:?}");
    }
    // The unit of the weights is a name of the value.
    run("fg-collapse", ["--event=samples".as_ref(), folder().join("gperftools.prof").as_os_str()], b"").ok();
}

#[test]
fn says_in_one_line_that_an_input_is_not_folded() {
    let recording = folder().join("jfr-11.jfr");
    for program in ["fg-csv", "fg-pprof", "fg-svg", "fg-filter", "fg-report"] {
        let outcome = run(program, [&recording], b"");
        assert_eq!((outcome.code(), outcome.stderr.lines().count()), (1, 1), "{program}: {outcome:?}");
        assert!(
            outcome.stderr.contains("a JFR recording, not folded stacks; convert it with fg-collapse"),
            "{outcome:?}"
        );
    }
    let outcome = run("fg-diff", [&recording, &recording], b"");
    assert!(outcome.code() == 2 && outcome.stderr.contains("a JFR recording"), "{outcome:?}");
}

#[test]
fn says_if_samples_of_several_events_cannot_be_told_apart() {
    for (events, is_mixed) in [
        ("\"-e\",\"cycles,faults\"", true),
        ("\"-ecycles\",\"-e\",\"faults\"", true),
        ("\"-e\",\"cpu/a=1,b=2/\"", false),
    ] {
        let text = format!(
            "{{\"linux-perf-json-version\":1,\"headers\":{{\"cmdline\":[\"perf\",\"record\",{events}]}},\"samples\":[{{\"timestamp\":1,\"pid\":1,\"tid\":1,\"comm\":\"a\",\"callchain\":[{{\"ip\":\"0x1\",\"symbol\":\"f\"}}]}}]}}"
        );
        let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        assert_eq!(
            (outcome.text().as_str(), outcome.stderr.contains("several events")),
            ("a;f 1\n", is_mixed),
            "{outcome:?}"
        );
    }
}

#[test]
fn printed_recordings_have_the_sums_of_the_recording() {
    let printed = |options: &[&str], name: &str| {
        let path = folder().join(name);
        let arguments = options.iter().map(AsRef::as_ref).chain([path.as_os_str()]);
        run("fg-collapse", arguments, b"").ok().text()
    };
    for options in
        [&["--event=lock"][..], &["--event=lock", "--srcline", "--label=monitorClass"], &["--event=lock", "--tid"]]
    {
        assert_eq!(printed(options, "jfr-json.json"), printed(options, "jfr-17.jfr.gz"), "{options:?}");
    }
    for (name, options) in [("jfr-print.txt", &[][..]), ("jfr-print-25.txt", &["--event=alloc", "--weight=samples"])] {
        assert_eq!(total(&printed(options, name)), total(&printed(options, "jfr-17.jfr.gz")), "{name}");
    }
}

#[test]
fn addresses_that_bpftrace_prints_have_no_symbol() {
    let text = b"@[\n    0x7faf4b9df24a\n    main+16\n    0x555f8d72a34a\n, t]: 5\n";
    assert_eq!(run("fg-collapse", [""; 0], text).ok().text(), "t;[unknown];main;[unknown] 5\n");
}

#[test]
fn frames_that_bpftrace_prints_as_perf_does_have_their_names() {
    let frames = |last: &str| {
        "\t55bdc7f29050 0x55bdc7f29050 ([unknown])\n\t55bdc7f2925c A<int> (*)(x)::f+9 (/a b (deleted))\n\t55bdc7f29290 "
            .to_owned()
            + last
    };
    for (user, kernel) in [("main+30 (/x)\n", "\tffffffff8104f45a read+12\n\tffffffff8104f45b do_syscall_64+113\n")] {
        let text = format!("Attaching 1 probe...\n\n\n@[\n{}\n{kernel}]: 4\n@[\n{}]: 3\n", frames(user), frames(user));
        let key = |text: String| text.replace('\n', "\\n").replace('\t', "\\t");
        let keys = [format!("\n{}\n{kernel}", frames(user)), format!("\n{}", frames(user))].map(key);
        let json = format!("{{\"type\": \"map\", \"data\": {{\"@\": {{\"{}\": 4, \"{}\": 3}}}}}}\n", keys[0], keys[1]);
        for text in [text, json] {
            let outcome = run("fg-collapse", ["--strict"], text.as_bytes()).ok();
            let stack = "main;A<int> (*)(x)::f;[unknown]";
            let expected = format!("{stack} 3\n{stack};do_syscall_64;read 4\n");
            assert_eq!((outcome.text(), outcome.stderr.as_str()), (expected, ""), "{text}");
        }
    }
}

#[test]
fn stacks_of_as_many_frames_as_are_printed_by_default_are_cut() {
    let event = |frames: usize| {
        let frames = (0..frames).map(|frame| format!(r#"{{"method":{{"type":{{"name":"A"}},"name":"f{frame}"}}}}"#));
        let frames = frames.collect::<Vec<String>>().join(",");
        format!(
            r#"{{"type":"jdk.ExecutionSample","values":{{"stackTrace":{{"truncated":false,"frames":[{frames}]}}}}}}"#
        )
    };
    let collapse = |events: &[String]| {
        let text = format!(r#"{{"recording":{{"events":[{}]}}}}"#, events.join(","));
        run("fg-collapse", [""; 0], text.as_bytes()).ok()
    };
    let outcome = collapse(&[event(2), event(5)]);
    assert_eq!(outcome.text(), "[unknown];A.f1;A.f0 1\n[unknown];[truncated];A.f4;A.f3;A.f2;A.f1;A.f0 1\n");
    assert!(outcome.stderr.contains("stacks are cut; give the recording, or"), "{outcome:?}");
    let outcome = collapse(&[event(5), event(6)]);
    assert!(!outcome.text().contains("[truncated]") && outcome.stderr.is_empty(), "{outcome:?}");
}

#[test]
fn printed_events_of_one_type_need_not_all_have_a_stack() {
    let event = |kind: &str, stack: &str| format!("{kind} {{\n  startTime = 23:49:17.712\n{stack}}}\n\n");
    let stack = "  eventThread = \"main\" (javaThreadId = 1)\n  stackTrace = [\n    A.f(int) line: 4\n  ]\n";
    let kind = "jdk.ExecutionSample";
    let text = event(kind, stack) + &event("jdk.CPULoad", "") + &event(kind, "");
    let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
    assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), ("[unknown];[unknown] 1\nmain;A.f 1\n", ""));
}

#[test]
fn printed_events_may_contain_thread_dumps_and_few_stacks() {
    let stack = "  stackTrace = [\n    A.f(int) line: 4\n  ]\n";
    let dump = "  result = \"2026-11-23 23:49:17\nFull thread dump OpenJDK 64-Bit Server VM:\n\n\
                \"main\" #1 prio=5 os_prio=0 tid=0x1 nid=0x2 runnable\n   java.lang.Thread.State: RUNNABLE\n\tat A.g(A.java:1)\n\n\"\n";
    let event = |kind: &str, fields: &str| format!("jdk.{kind} {{\n  startTime = 23:49:17.712\n{fields}}}\n\n");
    let settings = event("ActiveSetting", "  name = \"period\"\n").repeat(100);
    let text = event("ThreadDump", dump)
        + &settings
        + &event("ExecutionSample", stack).repeat(60)
        + &event("ThreadDump", dump);
    assert_eq!(run("fg-collapse", [""; 0], text.as_bytes()).ok().text(), "[unknown];A.f 60\n");
}

#[test]
fn folds_small_hostile_inputs() {
    // A graph with 12^40 paths: forty layers of functions, each of which calls all of the next layer.
    let mut graph = "events: Ir\n".to_owned();
    for layer in 0..40 {
        for function in 0..12 {
            graph += &format!("fn=f{layer}_{function}\n1 1000000\n");
            for callee in 0..12 {
                graph += &format!("cfn=f{}_{callee}\ncalls=1 1\n1 {}\n", layer + 1, 40 - layer);
            }
        }
    }
    let folded = run("fg-collapse", [""; 0], graph.as_bytes()).ok().text();
    assert_eq!(total(&folded), 480 * 1_000_000 * 1_000_000);
    // A tree so deep that all its stacks together would not fit into memory.
    let deep: String = (1..100_000).map(|level| format!("{level},\"f{}\",1,\n", level % 10)).collect();
    let deep = format!("Level,Function Name,Number of Calls,\n{deep}");
    let outcome = run("fg-collapse", [""; 0], deep.as_bytes()).ok();
    assert!(outcome.stderr.contains("more than 1024 frames"), "{outcome:?}");
}

#[test]
fn reads_utf_16() {
    let text: Vec<u8> =
        [0xfeffu16].into_iter().chain("größe;b 3\r\nc 4\r\n".encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for format in [&[][..], &["--format=folded"]] {
        assert_eq!(run("fg-collapse", format, &text).ok().text(), "c 4\ngröße;b 3\n");
    }
    let csv = std::fs::read_to_string(folder().join("vsprof.csv")).unwrap();
    let wide: Vec<u8> = csv.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(run("fg-collapse", [""; 0], &wide).ok().text(), run("fg-collapse", [""; 0], csv.as_bytes()).ok().text());
}

#[test]
fn skips_locals_between_frames_of_gdb() {
    let text = "Thread 1 (LWP 42):\n#0  0x00007f10 in poll () from /lib/libc.so.6\nNo locals.\n\
        #1  0x00400512 in wait_io (fd=3) at io.c:10\n        ret = 3\n\nThread 2 (LWP 43):\n#0  main () at a.c:1\n";
    assert_eq!(run("fg-collapse", [""; 0], text.as_bytes()).ok().text(), "main 1\nwait_io;poll 1\n");
}

#[test]
fn accepts_go_threads_without_frames() {
    let text = "threadcreate profile: total 4\n3 @\n#\t0x0\n\n1 @ 0x44b1e5 0x1\n#\t0x44b1e4\truntime.newm+0x4\t/a.go:1\n#\t0x1\n\n";
    let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
    assert_eq!((outcome.text().as_str(), &*outcome.stderr), ("[unknown] 3\n[unknown];runtime.newm 1\n", ""));
}

#[test]
fn adds_up_two_reports_in_one_file() {
    let text = std::fs::read_to_string(folder().join("ghc-prof.txt")).unwrap();
    for divider in ["", "\n"] {
        let outcome = run("fg-collapse", ["--event=bytes"], format!("{text}{divider}{text}").as_bytes()).ok();
        assert_eq!((total(&outcome.text()), &*outcome.stderr), (13_000_000_000, ""));
    }
}

#[test]
fn reports_truncated_reports() {
    for file in [
        "ghc-prof.txt",
        "javacore.txt",
        "procstack.txt",
        "simpleperf.txt",
        "v8-prof.txt",
        "vsprof.csv",
        "vtune.csv",
        "wcp.txt",
    ] {
        let format = format!("--format={}", file.split('.').next().unwrap());
        let text = std::fs::read(folder().join(file)).unwrap();
        for end in (2..text.len()).step_by(11).filter(|end| text[end - 1] != b'\n') {
            let outcome = run("fg-collapse", [&*format], &text[..end]);
            assert!(!outcome.stderr.is_empty(), "{file}, {end} bytes: {outcome:?}");
            assert_ne!(run("fg-collapse", [&*format, "--strict"], &text[..end]).code(), 0, "{file}, {end} bytes");
        }
    }
    let stacks = "Full stacks (2 unique):\n\n1.0% (3 samples)\n 1: f\n\n";
    let dump = "0SECTION       TITLE subcomponent dump routine\n3XMTHREADINFO \"a\" x\n4XESTACKTRACE at f(A)\n";
    for (text, folded, message) in [
        (stacks, "f 3\n", "cut short: the input ends before the last of its stacks"),
        (dump, "a;f 1\n", "cut short: the input ends before END OF DUMP"),
    ] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        assert_eq!((outcome.text().as_str(), outcome.stderr), (folded, format!("fg-collapse: stdin: {message}\n")));
    }
    let dump = format!("{dump}NULL   ---------------------- END OF DUMP -------------------------------------\n");
    assert_eq!(run("fg-collapse", [""; 0], dump.as_bytes()).ok().stderr, "");
}

#[test]
fn text_with_numbers_at_line_ends_is_not_folded_text() {
    let status = "Name:\tcat\nUmask:\t0022\nState:\tR (running)\nTgid:\t42\nSeccomp: x\n";
    let values = "42 true false true +1.5e+000 world 0x0 [0/0]0x0 0x0 0x0 255\n";
    for text in [status, "goroutine profile: total 2\n", values] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    }
}

#[test]
fn a_log_of_v8_may_have_few_ticks() {
    let code =
        |number: usize| format!("code-creation,JS,11,{number},0x{number:x}00,16,f{number} /srv/a.js:1:1,0x1,^\n");
    let text = format!("v8-version,11,3,244,8,-node.38,0\n{}", (1..200).map(code).collect::<String>());
    let outcome = run("fg-collapse", [""; 0], format!("{text}tick,0x700,300000,0,0x0,0\n").as_bytes()).ok();
    assert_eq!(outcome.text(), "f7 /srv/a.js:1:1 1\n", "{outcome:?}");
}

#[test]
fn a_cut_binary_profile_that_ends_like_a_weight_is_no_folded_text() {
    // The beginning of a CPU profile of gperftools that is cut within its list of mappings.
    let words: Vec<u8> =
        [0u64, 3, 0, 10_000, 0, 5, 2, 0x401136, 0x7f3a].into_iter().flat_map(u64::to_le_bytes).collect();
    let text = [&words[..], b"/usr/lib/a;b.so 00000000"].concat();
    let outcome = run("fg-collapse", [""; 0], &text);
    assert_eq!(outcome.text(), "[unknown];[unknown] 5\n");
    assert!(outcome.stderr.contains("cut short"), "{outcome:?}");
}

#[test]
fn names_the_values_with_weight_if_the_first_one_has_none() {
    let graph = "# callgrind format\nevents: RB PB DB DBk\nfn=main\n1 0 0 0 0\ncfn=f\ncalls=1 2\n1 0 0 100 1\nfn=f\n2 0 0 100 1\n";
    let outcome = run("fg-collapse", [""; 0], graph.as_bytes());
    let message = "fg-collapse: stdin: no stack has a weight of RB; use --event to select one of DB, DBk\n";
    assert_eq!((outcome.code(), &*outcome.stderr), (1, message), "{outcome:?}");
    assert_eq!(run("fg-collapse", ["--event=DB"], graph.as_bytes()).ok().text(), "main;f 100\n");
}

#[test]
fn the_snapshots_of_a_tree_of_allocations_are_values() {
    let heading = "desc: xtree.produce_report\ncmd: ./w\ntime_unit: ms\n";
    let snapshot = |number: usize, bytes: u64, root: &str| {
        let rule = "#-----------\n";
        let values = "time=5\nmem_heap_B=1\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=detailed\n";
        let nodes = format!(" n1: {bytes} 0x1091D8: f (w.c:6)\n  n0: {bytes} 0x1092A4: main (w.c:8)\n");
        format!("{rule}snapshot={number}\n{rule}{values}n1: {bytes} {root}\n{nodes}")
    };
    let bytes = snapshot(0, 100, "curB : currently allocated Bytes");
    let blocks = snapshot(1, 3, "curBk : currently allocated Blocks");
    let text = format!("{heading}{bytes}{blocks}");
    for (options, folded, message) in [
        (&[][..], "main;f 100\n", "fg-collapse: stdin: samples have curB, curBk; using curB; use --event to select\n"),
        (&["--event=curBk"], "main;f 3\n", ""),
    ] {
        let outcome = run("fg-collapse", options, text.as_bytes()).ok();
        assert_eq!((&*outcome.text(), &*outcome.stderr), (folded, message));
    }
    let cut = run("fg-collapse", [""; 0], &text.as_bytes()[..text.len() - 30]).ok();
    assert!(cut.stderr.contains("cut short"), "{cut:?}");
}
