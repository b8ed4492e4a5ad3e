//! Texts whose lines end in numbers: stacks, other texts, and what other programs print about profiles.

use super::{folder, total};
use crate::support::run;

/// Lists of functions without callers, in the order in which they are written.
const NAMES: &[&str] = &[
    "Foo.bar.getter\nclosure #1 in ViewController.viewDidLoad()\nmerged Foo.bar.setter\npartial apply for closure #1 in foo()\n\
     protocol witness for Sequence.next() in conformance Foo\nspecialized Array._copyToNewBuffer(oldCount:)\nstatic String.+ infix(_:_:)\n\
     thunk for @escaping @callee_guaranteed () -> ()\nvariable initialization\n",
    "#foo#12\n(::var\"#1#2\")()\n*\n+(::Int, ::Int)\n[inlined] foo\nbar\nfoo(::Int64, ::Float64)\ngetindex\nsetindex!\n",
    "[main tid=1] run\n[main tid=2] run\n[main tid=3] run\n[main tid=4] run\n[main tid=5] run\n[worker-1] loop()\n[worker-2] loop()\n\
     [worker-3] loop()\n[worker-4] loop()\n",
    "(eval)x1\n(eval)x2\n(eval)x3\n<main>1\n<main>2\n<main>3\n[clone]foo1\n[clone]foo2\n[clone]foo3\n",
    "func1(int) : b\nfunc1(int): a.c:12\nfunc2(int) : b\nfunc2(int): a.c:12\nfunc3(int) : b\nfunc3(int): a.c:12\n\
     func4(int) : b\nfunc4(int): a.c:12\nmain\n",
    "<0.123.0>\n<0.124.0>\n<0.125.0>\n<0.126.0>\n<0.127.0>\n<0.128.0>\n<0.129.0>\nlists:map/2\ngen_server:loop/7\n",
    "private: static unsigned int __cdecl ns::Foo::baz(struct X *)\npublic: virtual void __thiscall Foo::bar(void) const\n\
     void __cdecl Foo::bar<class A,struct B>(int) __ptr64\nmain\nmemcpy\nmalloc\nfree\nread\nwrite\n",
];

/// Returns the lines of a list with a weight each.
fn with_weights(names: &str) -> String {
    names.lines().map(|name| format!("{} 12\n", name.trim_start())).collect()
}

#[test]
fn stacks_without_callers_that_were_written_are_read_by_all_programs() {
    let folder = tempfile::tempdir().unwrap();
    for names in NAMES {
        let written = run("fg-collapse", ["--format=folded"], with_weights(names).as_bytes()).ok().text();
        assert_eq!(written.lines().count(), 9, "{written}");
        let again = run("fg-collapse", [""; 0], written.as_bytes()).ok();
        assert_eq!(again.text(), written);
        assert!(again.stderr.contains("each line was read as a stack of one frame"), "{again:?}");
        let file = folder.path().join("stacks.folded");
        std::fs::write(&file, &written).unwrap();
        for program in ["fg-svg", "fg-filter", "fg-report", "fg-csv"] {
            run(program, [&file], b"").ok();
        }
        run("fg-diff", [&file, &file], b"").ok();
    }
}

#[test]
fn a_refused_list_names_the_option_that_reads_it() {
    let lists = ["c 3\nb 4\na() 5\n".repeat(4), (0..9).map(|number| format!("package{number} 5\n")).collect()];
    for list in lists {
        let outcome = run("fg-collapse", [""; 0], list.as_bytes());
        assert_eq!((outcome.code(), outcome.stdout.len(), outcome.stderr.lines().count()), (1, 0, 1), "{outcome:?}");
        assert!(
            outcome.stderr.ends_with("if each line is a stack and its weight, name --format folded\n"),
            "{outcome:?}"
        );
        run("fg-collapse", ["--format=folded"], list.as_bytes()).ok();
    }
}

/// Texts that look like stacks line by line, and a part of the message about each.
const OTHER_TEXTS: &[(&str, &str)] = &[
    ("2c2\n< main;b 2\n---\n> main;b 7\n5c5\n< main;c 3\n---\n> main;c 4\n", "a diff; give the files"),
    ("main;a 1\t\t\tmain;a 1\nmain;b 2\t\t      |\tmain;b 7\nmain;c 3\t\t\tmain;c 3\n", "a diff; give the files"),
    ("Index: p\n=====\n--- p1\n+++ p2\n-main;f;g 1\n+main;f;g 2\n", "a diff; give the files"),
    ("Only in x: y\n--- p1\n+++ p2\n-main;f;g 1\n+main;f;g 2\n", "a diff; give the files"),
    ("-main;f;g 1\n+main;f;g 2\n", "a diff; give the files"),
    ("     1\tmain;a 1\n     2\tmain;b 2\n", "a number or a mark before each line"),
    ("1:main;a 1\n2:main;b 2\n3:main;c 3\n", "a number or a mark before each line"),
    ("> main;a 1\n> main;b 2\n", "a number or a mark before each line"),
    ("127.0.0.1 - - [Fri Nov 27 07:00:00 2026] \"GET / HTTP/1.0\" 441\n", "a log"),
    ("10.0.0.1 - - [2026-11-27 07:00:01] \"GET /a;b HTTP/1.1\" 200 441\n", "a log"),
    ("10.0.0.1;-;-;\"GET /a HTTP/1.1\";200 441\n", "a log"),
    ("INFO main(): loaded count 12\nWARN init(): took ms 13\n", "a log"),
    ("sshd[123]: session opened port 22\nsshd[124]: session closed port 23\n", "a log"),
    ("cd /tmp; sleep 3\nfor i in a b; do echo 4\ndone; exit 0\n", "of unknown format"),
    ("BEGIN; INSERT INTO x VALUES 3\nCOMMIT; BEGIN; SELECT 4\n", "of unknown format"),
    ("Set-Cookie: a=b; Path=/; Max-Age 3600\nSet-Cookie: c=d; Path=/; Max-Age 3601\n", "of unknown format"),
    ("He came; he saw; he won 3\nIt rained; see page 5\n", "of unknown format"),
    ("{\"a\": \"x;y\"} 11\n{\"a\": \"x;y\"} 12\n", "JSON of unknown format"),
    ("# TYPE a info\na{x=\"(y)\"} 12\na{x=\"z\"} 14\n", "metrics"),
    ("#define FOO(x) 12\n#define BAR(x) 13\n", "of unknown format"),
    ("Name;City;Street\nMeier;Berlin;Hill 12\nSchulz;Bonn;Lane 5\nWeber;Ulm;Ring 7\n", "name --format folded"),
    ("Meier;Anna;030 1234567\nSchulz;Bernd;040 7654321\nWeber;Carla;089 445566\n", "name --format folded"),
    ("Seed <maintainers@users.example.org> 1795763844\n", "of unknown format"),
];

#[test]
fn other_texts_with_semicolons_and_numbers_are_refused() {
    for (text, message) in OTHER_TEXTS {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        assert_eq!((outcome.code(), outcome.stdout.len(), outcome.stderr.lines().count()), (1, 0, 1), "{outcome:?}");
        assert!(outcome.stderr.contains(message), "{text}: {outcome:?}");
    }
}

#[test]
fn reports_of_other_programs_are_refused_with_what_to_do() {
    let stat = "{\"counter-value\" : \"1.292621\", \"unit\" : \"msec\", \"event\" : \"task-clock\"}\n";
    for (text, message) in [
        (
            "Statistical profiling result from v8.log, (359 ticks, 38 unaccounted, 0 excluded).\n\n [Shared]:\n",
            "isolate-*.log",
        ),
        (
            "reading file \"h.zst\" - please wait, this might take some time...\nDebuggee command was: a\n",
            "heaptrack.*.zst",
        ),
        ("<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n<protocolversion>4</protocolversion>\n", "without --xml=yes"),
        (stat, "record with `fg-record`"),
        (&format!("# started on Fri Nov 27 07:10:17 2026\n\n{stat}"), "record with `fg-record`"),
        ("#       Overhead  Command / Shared Object / Symbol\n   100.00%        w\n", "without --hierarchy"),
        (
            "# Overhead  Command  Shared Object  Symbol\n    99.42%  w        w              [.] leaf\n           99.42%\n                leaf\n                main\n",
            "-g folded",
        ),
        ("\n Performance counter stats for './a':\n\n              1.32 msec task-clock\n", "record with `fg-record`"),
    ] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        assert_eq!((outcome.code(), outcome.stdout.len(), outcome.stderr.lines().count()), (1, 0, 1), "{outcome:?}");
        assert!(outcome.stderr.contains(message), "{text}: {outcome:?}");
    }
}

#[test]
fn a_report_of_perf_may_begin_with_the_header_of_the_recording() {
    let report = std::fs::read_to_string(folder().join("perf-report.txt")).unwrap();
    let header = "# ========\n# captured on    : Fri Nov 27 07:09:56 2026\n# hostname : vm\n# ========\n#\n";
    let alone = run("fg-collapse", [""; 0], report.as_bytes()).ok();
    let outcome = run("fg-collapse", [""; 0], format!("{header}{report}").as_bytes()).ok();
    assert_eq!((outcome.text(), &*outcome.stderr), (alone.text(), ""));
}

#[test]
fn inlined_functions_of_pprof_have_the_suffix() {
    let text = "Type: cpu\n-----------+----\n      10ms   leaf (inline)\n             mid (inline)\n             main\n-----------+----\n";
    assert_eq!(run("fg-collapse", [""; 0], text.as_bytes()).ok().text(), "main;mid_[i];leaf_[i] 10\n");
    let verbatim = run("fg-collapse", ["--no-tidy"], text.as_bytes()).ok().text();
    assert_eq!(verbatim, "main;mid (inline);leaf (inline) 10\n");
}

#[test]
fn labels_of_raw_pprof_become_root_frames() {
    let text = "PeriodType: cpu nanoseconds\nSamples:\ncpu/nanoseconds\n  3: 1 2 \n                n:[1] req:[/a b]\n                \
                bytes:[512]\n  4: 1 2 \n  5: 1 2 \n                req:[/c]\nLocations\n 1: 0x1 M=1 f /x:1 s=1\n 2: 0x2 M=1 main /x:2 s=2\nMappings\n";
    for (options, folded) in [
        (&[][..], "main;f 12\n"),
        (&["--label=req", "--label=n"], "main;f 4\nreq=/a b;n=1;main;f 3\nreq=/c;main;f 5\n"),
        (&["--label=bytes"], "bytes=512;main;f 3\nmain;f 9\n"),
    ] {
        let outcome = run("fg-collapse", options, text.as_bytes()).ok();
        assert_eq!((outcome.text().as_str(), &*outcome.stderr), (folded, ""), "{options:?}");
    }
}

#[test]
fn weights_of_different_units_are_not_added_up() {
    let folder = folder();
    let temporary = tempfile::tempdir().unwrap();
    let sample = |event: &str| format!("app 1 1.0: {event}: \n\t   401136 f (/a)\n\n");
    let write = |name: &str, text: String| {
        let path = temporary.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (periods, counts) = (write("periods", sample("700 cycles")), write("counts", sample("1 cycles")));
    let (without, clock) = (write("without", sample("cycles")), write("clock", sample("700 cpu-clock")));
    let [heap, samples] = ["heapprofile.heapprofile", "gperftools.prof"].map(|name| folder.join(name));
    for (first, second, message) in [
        (&heap, &periods, "bytes in "),
        (&heap, &periods, "weights of event cycles"),
        (&heap, &counts, "samples of event cycles"),
        (&heap, &folder.join("trace-event.json"), "trace-event.json; fold each input alone"),
        (&samples, &folder.join("jfr-17.jfr.gz"), ""),
        (&samples, &counts, ""),
        (&samples, &without, ""),
        (&periods, &folder.join("jstack.txt"), "weights of event cycles"),
        (&periods, &periods, ""),
        (&periods, &without, "event cycles: 1 of 2 samples have no period, the others have; use --weight samples"),
        (&clock, &folder.join("trace-event.json"), "microseconds in "),
    ] {
        let outcome = run("fg-collapse", [first, second], b"");
        let is_refused = !message.is_empty();
        let found = (outcome.code() == 1, outcome.stdout.is_empty(), outcome.stderr.contains(message));
        assert_eq!(found, (is_refused, is_refused, true), "{first:?} {second:?}: {outcome:?}");
    }
    let counted = run("fg-collapse", ["--weight=samples".as_ref(), periods.as_os_str(), without.as_os_str()], b"");
    assert_eq!(counted.ok().text(), "app;f 2\n");
}

#[test]
fn an_input_of_sums_is_said_to_have_no_samples() {
    for (name, message) in [
        ("pprof-raw.txt", "sums of nanoseconds"),
        ("callgrind.txt", "has sums"),
        ("async-profiler.txt", "has sums"),
        ("massif.out", "sums of bytes"),
        ("gperftools.prof", ""),
        ("gdb.txt", ""),
        ("stackprof.json", ""),
    ] {
        let outcome = run("fg-collapse", ["--weight=samples".as_ref(), folder().join(name).as_os_str()], b"").ok();
        let warnings: Vec<&str> = outcome.stderr.lines().filter(|line| line.contains("--weight samples")).collect();
        assert_eq!(warnings.len(), usize::from(!message.is_empty()), "{name}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{name}: {outcome:?}");
    }
}

#[test]
fn all_events_of_java_that_count_are_listed() {
    let event = |kind: &str, stack: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"values\":{{\"startTime\":\"2026-11-23T23:49:17.7Z\",\"stackTrace\":{stack}}}}}"
        )
    };
    let stack =
        "{\"truncated\":false,\"frames\":[{\"method\":{\"type\":{\"name\":\"A\"},\"name\":\"f\"},\"lineNumber\":7}]}";
    let events = [
        event("jdk.ExecutionSample", stack),
        event("jdk.ExecutionSample", "null"),
        event("jdk.ActiveSetting", "null"),
        event("jdk.ThreadStart", stack),
    ];
    let text = format!("{{\"recording\":{{\"events\":[{}]}}}}", events.join(","));
    let all = run("fg-collapse", ["--event=all", "--weight=samples"], text.as_bytes()).ok();
    assert_eq!(total(&all.text()), 3_000_000, "{all:?}");
    let default = run("fg-collapse", [""; 0], text.as_bytes()).ok();
    assert!(default.stderr.contains("jdk.ExecutionSample (2); left out: jdk.ThreadStart (1);"), "{default:?}");
    let named = run("fg-collapse", ["--event=jdk.ActiveSetting", "--weight=samples"], text.as_bytes()).ok();
    assert_eq!(total(&named.text()), 1_000_000, "{named:?}");
}

/// Lines that programs print beside the stacks that they write, and which end in a number.
const MESSAGES: &[&str] = &[
    "Total: 16",
    "total 16",
    "Total samples: 16",
    "real 0.05",
    "2026-11-27T10:00:00Z INFO lost samples 5",
    "[INFO] lost 16",
    "WARNING: lost events 5",
    "Sampling process 1234",
];

#[test]
fn sums_and_lines_of_logs_are_no_stacks() {
    let stacks = "main;a 12\nmain;b 4\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stacks.folded");
    for message in MESSAGES {
        for (text, line) in [(format!("{stacks}{message}\n"), 3), (format!("main;a 12\n{message}\nmain;b 4\n"), 2)] {
            std::fs::write(&file, &text).unwrap();
            for outcome in [run("fg-collapse", [""; 0], text.as_bytes()).ok(), run("fg-collapse", [&file], b"").ok()] {
                assert_eq!(outcome.text(), stacks, "{text}: {outcome:?}");
                assert!(outcome.stderr.contains(&format!(":{line}: expected a stack")), "{text}: {outcome:?}");
            }
            assert_eq!(run("fg-collapse", ["--strict"], text.as_bytes()).code(), 1, "{text}");
        }
    }
    let text = format!("# interval: 100\n{stacks}# duration: 23873\n");
    assert_eq!(run("fg-collapse", ["--strict"], text.as_bytes()).ok().stderr, "");
    // They are not among the malformed lines whose share matters.
    let text = format!("{stacks}real 0.05\nuser 0.03\nsys 0.01\n");
    assert_eq!(run("fg-collapse", [""; 0], text.as_bytes()).ok().text(), stacks);
}

#[test]
fn threads_and_processes_without_callers_are_stacks() {
    for stack in ["swapper 12", "Web Content 12", "GC Thread#3 12", "C2 CompilerThre 12", "total 12", "lost samples 12"]
    {
        let text = format!("{stack}\nlost samples;total 3\nmain;a 5\nmain;b 5\n");
        let outcome = run("fg-collapse", ["--strict"], text.as_bytes()).ok();
        assert_eq!((total(&outcome.text()), &*outcome.stderr), (25_000_000, ""), "{stack}");
    }
}

#[test]
fn stacks_of_one_frame_behind_other_text_are_read() {
    let text = "$ cat p\napp.Main.main 1192\n[idle] 3\napp.Main.main;sort 4950\nmain 5\n";
    let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
    assert_eq!(total(&outcome.text()), 6_150_000_000, "{outcome:?}");
    assert!(outcome.stderr.contains("1 line before the profile left out"), "{outcome:?}");
    let outcome = run("fg-collapse", [""; 0], b"hello\nmain 5\nworld\nmain;a 3\n").ok();
    assert_eq!(outcome.text(), "main 5\nmain;a 3\n", "{outcome:?}");
    // A command or a sum is no stack.
    let outcome = run("fg-collapse", [""; 0], b"hello\n$ perf record -F 99\nTotal: 4\nmain;a 3\n").ok();
    assert_eq!(outcome.text(), "main;a 3\n", "{outcome:?}");
}

#[test]
fn strict_fails_at_a_line_before_the_profile() {
    for (text, line) in [("main;a 12 # note\nmain;b 4\n", 1), ("\n\nhello\nmain 5\nmain;a 3\n", 3)] {
        let outcome = run("fg-collapse", ["--strict"], text.as_bytes());
        assert_eq!((outcome.code(), outcome.stdout.len()), (1, 0), "{outcome:?}");
        assert!(outcome.stderr.contains(&format!("stdin:{line}: ")), "{outcome:?}");
    }
}

/// Lists of more than eight names, as `fg-filter` writes them if it leaves out all callers, or as other programs do.
const LEAVES: &[(&str, bool)] = &[
    (
        "[dd]\n__GI___libc_write\n__cond_resched\nbio_free\ndo_syscall_64\nfdget_pos\nfinish_task_switch.isra.0\nkfree\nread\n",
        true,
    ),
    ("a\nb\nc\nd\ne\nf\ng\nh\nrun::<T>\n", true),
    ("a\nb\nc\nd\ne\nf\ng\nh\nread_[k]\n", true),
    ("a.Main.main\na.Main.sort\na.Main.swap\nb\nc\nd\ne\nf\ng\n", true),
    ("a@x.org\nb@x.org\nc@x.org\nd@x.org\ne@x.org\nf@x.org\ng@x.org\nh@x.org\ni@x.org\n", false),
    ("a:x\nb:x\nc:x\nd:x\ne:x\nf:x\ng:x\nh:x\ni:x\n", false),
    (
        "2001:db8::1\n2001:db8::2\n2001:db8::3\n2001:db8::4\n2001:db8::5\n2001:db8::6\n2001:db8::7\n2001:db8::8\n2001:db8::9\n",
        false,
    ),
];

#[test]
fn lists_of_functions_are_told_from_other_names() {
    for (names, is_folded) in LEAVES {
        let text = with_weights(names);
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        let expected = if *is_folded { text.as_str() } else { "" };
        assert_eq!((outcome.code() == 0, outcome.text().as_str()), (*is_folded, expected), "{outcome:?}");
        assert!(*is_folded || outcome.stderr.contains("name --format folded"), "{outcome:?}");
    }
}

#[test]
fn a_finalizer_of_go_is_a_whole_goroutine() {
    let text = "goroutine 1 [running]:\nmain.main()\n\t/a.go:9 +0x387\n\ngoroutine 5 [runnable]:\n\
                internal/poll.(*FD).Close(0xc0)\n\t/a.go:94 +0x25\nos.(*file).close(0xc0)\n\t/a.go:252 +0xad\n";
    assert_eq!(run("fg-collapse", [""; 0], text.as_bytes()).ok().stderr, "");
}

/// From version 58 on, the profiler of Firefox keeps the names of files in a table that functions refer to.
#[test]
fn sources_of_firefox_are_in_the_table_of_functions_or_in_one_of_their_own() {
    let text = std::fs::read_to_string(folder().join("samply.json")).unwrap();
    let moved = text.replace("\"fileName\":[3,null,null]", "\"source\":[1,null,null]");
    let moved =
        moved.replacen("\"threads\":", "\"shared\":{\"sources\":{\"length\":2,\"filename\":[null,3]}},\"threads\":", 1);
    assert_eq!(text.matches("fileName").count(), moved.matches("fileName").count() + 1);
    let [old, new] = [text, moved].map(|text| run("fg-collapse", ["--srcline"], text.as_bytes()).ok().text());
    assert!(old.contains("src/main.rs:3"), "{old}");
    assert_eq!(old, new);
}
