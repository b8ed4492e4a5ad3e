//! fg-collapse on untrusted documents: JSON, XML and protobuf that are truncated, deeply nested, or contain wrong
//! lengths. And on documents that installed profilers write.

use std::process::Stdio;

use crate::support::{self, Outcome, command, directory, require, run, run_bounded, run_command};

/// Memory limit for a small input, in megabytes.
const MEMORY: u64 = 128;

/// Folds a text with a limit on the data segment. A limit on the address space would be no measure: the allocator may
/// reserve 64 MB of it for a thread.
#[cfg(target_os = "linux")]
fn fold(megabytes: u64, text: &[u8]) -> Outcome {
    let folder = directory();
    let file = folder.path().join("in");
    std::fs::write(&file, text).unwrap();
    let mut command = command("sh");
    let limited = format!("ulimit -d {}; exec \"$0\" -n 1 \"$1\"", megabytes * 1024);
    command.args(["-c", &limited, support::tool("fg-collapse")]).arg(file);
    run_bounded(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
}

fn total(folded: &str) -> u64 {
    folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

/// Asserts that a text is rejected in one line that contains `message`.
#[cfg(target_os = "linux")]
#[track_caller]
fn assert_rejected(text: &[u8], message: &str) {
    let outcome = fold(MEMORY, text);
    assert_eq!((outcome.code(), outcome.stdout.len(), outcome.stderr.lines().count()), (1, 0, 1), "{outcome:?}");
    assert!(outcome.stderr.contains(message), "{outcome:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn rejects_json_nested_a_million_deep() {
    let deep = |open: &str, times: usize| open.repeat(times);
    for begin in ["", "{\"nodes\":[{\"callFrame\":", "{\"traceEvents\":"] {
        let text = format!("{begin}{}", deep("[", 1_000_000));
        assert_rejected(text.as_bytes(), if begin.contains("nodes") { "cut short" } else { "unknown format" });
    }
    assert_rejected(deep("{\"a\":", 1_000_000).as_bytes(), "unknown format");
    // A call tree a hundred thousand calls deep: stacks are truncated.
    let call = "{\"callFrame\":{\"functionName\":\"f\"},\"selfSize\":0,\"children\":[";
    let text = format!(
        "{{\"head\":{}{{\"callFrame\":{{\"functionName\":\"leaf\"}},\"selfSize\":7}}{}}}",
        deep(call, 100_000),
        deep("]}", 100_000)
    );
    let folded = fold(MEMORY, text.as_bytes()).ok().text();
    assert!(folded.starts_with("[truncated];f;f;") && folded.ends_with(";f;leaf 7\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn limits_the_memory_of_nested_events() {
    let events = |make: &dyn Fn(u32) -> String| format!("[{}", (0..20_000).map(make).collect::<String>());
    let lasting = |at| format!("{{\"ph\":\"X\",\"ts\":{at},\"dur\":{},\"name\":\"f{at}\"}},", 40_000 - 2 * at);
    let outcome = fold(MEMORY, events(&lasting).as_bytes()).ok();
    assert_eq!((total(&outcome.text()), outcome.stderr.lines().count()), (40_000, 2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("15904 events left out: inside too many other events"), "{outcome:?}");
    // Events that begin and end in the same order are never left out, however deep.
    let (begins, ends) = (
        events(&|at| format!("{{\"ph\":\"B\",\"ts\":{at},\"name\":\"f{at}\"}},")),
        events(&|at| format!("{{\"ph\":\"E\",\"ts\":{},\"name\":\"f{}\"}},", at + 20_000, 19_999 - at)),
    );
    let text = format!("{begins}{}{{\"ph\":\"X\",\"ts\":50000,\"dur\":7,\"name\":\"last\"}}]", &ends[1..]);
    let outcome = fold(MEMORY, text.as_bytes()).ok();
    assert_eq!(total(&outcome.text()), 39_999 + 7);
    let cut = "stacks have more than 1024 frames; those near the root are left out, and [truncated] is in their place";
    assert!(outcome.stderr.ends_with(&format!("{cut}\n")), "{outcome:?}");
    assert!(outcome.text().ends_with("\nlast 7\n"));
    // Stacks whose parent is the stack itself, or each other.
    let text = r#"{"meta":{"interval":1},"threads":[{"name":"t","samples":{"stack":[0,1,2]},
        "stackTable":{"prefix":[0,2,1],"frame":[0,0,0]},"frameTable":{"func":[0]},"funcTable":{"name":[0]},
        "stringArray":["f"]}]}"#;
    let outcome = fold(MEMORY, text.as_bytes()).ok();
    assert_eq!(outcome.text(), "t;[truncated];f 2\nt;[truncated];f;f 1\n");
    assert!(outcome.stderr.contains("calls that are their own callers"), "{outcome:?}");
    let text = r#"{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"parent":1},
        {"id":2,"callFrame":{"functionName":"f"},"parent":1}],"startTime":0,"endTime":3,"samples":[2],"timeDeltas":[0]}"#;
    assert_eq!(fold(MEMORY, text.as_bytes()).ok().text(), "f 3\n");
}

#[cfg(target_os = "linux")]
#[test]
fn nested_calls_take_memory_in_proportion_to_their_number() {
    let node = |id: u32| {
        let child = if id < 40_000 { (id + 1).to_string() } else { String::new() };
        format!("{{\"id\":{id},\"callFrame\":{{\"functionName\":\"f{id}\"}},\"children\":[{child}]}}")
    };
    let nodes: Vec<String> = (1..=40_000).map(node).collect();
    let ids: Vec<String> = (1..=40_000).map(|id| id.to_string()).collect();
    let text = format!(
        "{{\"nodes\":[{}],\"startTime\":0,\"endTime\":40000,\"samples\":[{}],\"timeDeltas\":[{}]}}",
        nodes.join(","),
        ids.join(","),
        "1,".repeat(39_999) + "1"
    );
    let outcome = fold(MEMORY / 2, text.as_bytes()).ok();
    assert_eq!((outcome.stderr.as_str(), total(&outcome.text())), ("", 40_000));
}

#[cfg(target_os = "linux")]
#[test]
fn does_not_expand_xml_entities() {
    let bomb: String = (1..40).map(|n| format!("<!ENTITY e{n} \"&e{};&e{};\">", n - 1, n - 1)).collect();
    let text = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE t [<!ENTITY e0 \"boom\">{bomb}]><trace-query-result><row><weight id=\"1\">5</weight>\
         <backtrace id=\"2\"><frame id=\"3\" name=\"f&e39;&lt;&#65;&#x110000;\"/></backtrace></row></trace-query-result>"
    );
    assert_eq!(fold(MEMORY, text.as_bytes()).ok().text(), "f&e39:<A&#x110000: 5\n");
    let tag = format!("<trace-query-result><row a=\"{}", "x".repeat(17 << 20));
    let outcome = fold(2 * MEMORY, tag.as_bytes());
    assert!(outcome.code() == 1 && outcome.stderr.contains("longer than 16 MiB"), "{}", outcome.stderr);
}

/// Compresses a text of a megabyte times `pieces`.
fn bomb(begin: &str, piece: &str, pieces: usize) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(begin.as_bytes()).unwrap();
    let piece = piece.repeat((1 << 20) / piece.len());
    for _ in 0..pieces {
        encoder.write_all(piece.as_bytes()).unwrap();
    }
    encoder.finish().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation: cargo test --release")]
fn limits_the_size_of_compressed_documents() {
    let blank = bomb("{\"head\":{\"callFrame\":{}},\"a\":[", " ", 1100);
    let outcome = fold(4096, &blank);
    assert!(outcome.code() == 1 && outcome.stderr.contains("longer than 1 GiB"), "{outcome:?}");
    let values = bomb("{\"head\":{\"callFrame\":{}},\"a\":[", "0,", 300);
    let outcome = fold(4096, &values);
    assert!(outcome.code() == 1 && outcome.stderr.contains("more values than are taken"), "{outcome:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn wrong_lengths_in_protobuf_take_no_memory() {
    let begin = &b"\x0a\x04\x08\x01\x10\x02"[..];
    for (fields, message) in [
        (&b"\x12\xff\xff\xff\xff\x7fxy"[..], "truncated or damaged"),
        (b"\x32\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "truncated or damaged"),
        (b"\x12\x02\x0a\x7f", "is damaged"),
        (b"\x22\x02\x0a\x7f", "is damaged"),
    ] {
        assert_rejected(&[begin, fields].concat(), message);
    }
    // A location with very many inlined frames, in very many samples.
    let line = [0x22, 2, 0x08, 1].repeat(100_000);
    let length = |bytes: &[u8]| {
        let (mut length, mut out) = (bytes.len(), Vec::new());
        while length >= 0x80 {
            out.push(length as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        out
    };
    let location = [&[0x08, 1][..], &line].concat();
    let samples = b"\x12\x06\x0a\x02\x01\x01\x10\x05".repeat(10_000);
    let message = [begin, &samples, &[0x22], &length(&location), &location, b"\x2a\x02\x08\x01\x32\x00"].concat();
    let folded = fold(MEMORY, &message).ok().text();
    assert_eq!(folded, "[truncated] 50000\n");
}

#[test]
fn reports_invalid_json_with_line_and_column() {
    let text = "{\"head\":{\"callFrame\":{}},\n \"a\" 5}";
    let outcome = run("fg-collapse", ["--format=heapprofile"], text.as_bytes());
    assert_eq!((outcome.code(), outcome.stdout.len()), (1, 0), "{outcome:?}");
    assert_eq!(outcome.stderr, "fg-collapse: stdin: malformed JSON at line 2, column 6: expected a colon\n");
    let outcome = run("fg-collapse", [""; 0], b"{\"head\":{\"callFrame\":{}}} {}");
    assert!(outcome.stderr.contains("column 27: expected the end of the file"), "{outcome:?}");
}

#[test]
fn reports_what_to_do_about_documents_that_cannot_be_folded() {
    for (text, message) in [
        (&b"FLR\0\0\x02"[..], "no chunk begins at byte 0"),
        (b"{\"version\":1.2,\"mode\":\"cpu\",\"interval\":1,\"samples\":3,\"frames\":{}}", "raw: true"),
        (b"{\"type\": \"map\", \"data\": {\"@start\": {\"12\": 3}}}\n", "no map in it is keyed by a stack"),
    ] {
        let outcome = run("fg-collapse", [""; 0], text);
        assert_eq!((outcome.code(), outcome.stdout.len(), outcome.stderr.lines().count()), (1, 0, 1), "{outcome:?}");
        assert!(outcome.stderr.contains(message), "{outcome:?}");
    }
}

#[test]
fn reports_an_input_without_stacks() {
    for (format, text) in
        [("gdb", "a text\n"), ("folded", "# a comment\n"), ("perf-script", "# captured on: today\n"), ("wcp", "x\n")]
    {
        let outcome = run("fg-collapse", ["--format", format], text.as_bytes());
        let message = "fg-collapse: stdin: no stacks found\n";
        assert_eq!((outcome.code(), outcome.text().as_str(), &*outcome.stderr), (1, "", message), "{format}");
        let strict = run("fg-collapse", ["--strict", "--format", format], text.as_bytes());
        assert_eq!((strict.code(), strict.text().as_str(), &*strict.stderr), (1, "", message), "{format}");
    }
    // One of two files, with any number of threads.
    let folder = support::directory();
    let (full, empty) = (folder.path().join("full"), folder.path().join("empty"));
    std::fs::write(&full, "a;b 1\n".repeat(100_000)).unwrap();
    std::fs::write(&empty, "# mode: cpu\n").unwrap();
    let files = ["-n2".as_ref(), "--format=folded".as_ref(), full.as_os_str(), empty.as_os_str()];
    let outcome = run("fg-collapse", files, b"").ok();
    assert_eq!(outcome.text(), "a;b 100000\n");
    assert_eq!(outcome.stderr, format!("fg-collapse: {}: no stacks found\n", empty.display()));
    // The header of perf script, truncated before the first sample: the year is no weight.
    let cut = "# ========\n# captured on    : Sat Nov 21 20:29:43 2026\n# header version : 1\n";
    let outcome = run("fg-collapse", [""; 0], cut.as_bytes());
    assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{outcome:?}");
}

/// Documents with defects, the only message about each, and the folded output.
const DEFECTIVE: [(&str, &str, &str); 14] = [
    (
        r#"[{"ph":"B","ts":0,"name":"a"},{"ph":"X","ts":1,"name":"b"},{"ph":"X","ts":1,"dur":-5,"name":"b"},
            {"ph":"B","name":"b"},{"ph":"X","ts":"x","dur":9,"name":"b"},{"ph":"E","ts":10,"name":"a"}]"#,
        "4 events left out: without a time or a duration",
        "a 10\n",
    ),
    (
        r#"{"shared":{"frames":[{"name":"a"},{"name":"b"}]},"profiles":[{"type":"sampled","unit":"none",
            "samples":[[0],[1],[1],[1],[0],[0]],"weights":[2,-1,1e300,null,3]}]}"#,
        "4 samples left out: the weight is missing, negative or too large",
        "a 5\n",
    ),
    (
        r#"{"shared":{"frames":[{"name":"a"},{"name":"b"}]},"profiles":[{"type":"evented","startValue":0,"endValue":9,
            "events":[{"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":1e300},{"type":"C","frame":1,"at":4},
                {"type":"C","frame":0,"at":9}]}]}"#,
        "1 time replaced by the one before: missing, too large or out of order",
        "a 5\na;b 4\n",
    ),
    (
        r#"{"shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"evented","startValue":0,"endValue":1e300,
            "events":[{"type":"O","frame":0,"at":0},{"type":"C","frame":0,"at":9}]}]}"#,
        "1 time replaced by the one before: missing, too large or out of order",
        "a 9\n",
    ),
    (
        r#"{"shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"evented","startValue":0,"endValue":9,
            "events":[{"type":"O","frame":0,"at":0},{"type":"C","frame":0,"at":9},{"type":"C","frame":0,"at":9}]}]}"#,
        "1 close event left out: no open event before it",
        "a 9\n",
    ),
    (
        r#"{"shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"evented","startValue":0,"endValue":9,
            "events":[{"type":"O","frame":0,"at":0},{"type":"?","frame":0,"at":5},{"at":6},{"type":"C","frame":0,"at":9}]}]}"#,
        "2 events left out: the type is not O or C",
        "a 9\n",
    ),
    (
        r#"{"meta":{"interval":1},"threads":[{"name":"t","samples":{"stack":[0,0,0],"weight":[5,-1,1e300]},
            "stackTable":{"prefix":[null],"frame":[0]},"frameTable":{"func":[0]},"funcTable":{"name":[0]},
            "stringArray":["f"]}]}"#,
        "2 samples left out: the weight is missing, negative or too large",
        "t;f 5\n",
    ),
    (
        r#"{"meta":{"interval":1},"threads":[{"name":"t","samples":{"stack":[1]},
            "stackTable":{"prefix":[1,0],"frame":[0,1]},"frameTable":{"func":[0,1]},"funcTable":{"name":[0,1]},
            "stringArray":["f","g"]}]}"#,
        "has calls that are their own callers; their stacks are cut and have no root",
        "t;[truncated];g 1\n",
    ),
    (
        r#"{"nodes":[{"id":1,"callFrame":{"functionName":"f"},"parent":2},
            {"id":2,"callFrame":{"functionName":"g"},"parent":1}],"startTime":0,"endTime":3,"samples":[1],"timeDeltas":[0]}"#,
        "has calls that are their own callers; their stacks are cut and have no root",
        "[truncated];g;f 3\n",
    ),
    (
        r#"{"nodes":[{"id":1,"callFrame":{"functionName":"f"}}],"startTime":0,"endTime":4,"samples":[1,7],"timeDeltas":[0,2]}"#,
        "1 frame not described by the input, shown as [unknown]",
        "[unknown] 2\nf 2\n",
    ),
    (
        r#"{"meta":{"interval":1},"threads":[{"name":"t","samples":{"stack":[0,1,9]},
            "stackTable":{"prefix":[null,0],"frame":[0,8]},"frameTable":{"func":[0]},"funcTable":{"name":[0]},
            "stringArray":["f"]}]}"#,
        "2 frames not described by the input, shown as [unknown]",
        "t;[unknown] 1\nt;f 1\nt;f;[unknown] 1\n",
    ),
    (
        "# callgrind format\nevents: Ir\nfn=(1) f\n1 5\ncfn=(2)\ncalls=1 1\n1 3\n\nfn=(2)\n1 3\ntotals: 8\n",
        "1 frame not described by the input, shown as [unknown]",
        "f 5\nf;[unknown] 3\n",
    ),
    (
        r#"{"version":1.2,"mode":"object","interval":1,"samples":5,"frames":{"1":{"name":"f"}},"raw":[2,1,9,5]}"#,
        "1 frame not described by the input, shown as [unknown]",
        "f;[unknown] 5\n",
    ),
    (
        r#"{"shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"sampled","unit":"none","samples":[],"weights":[]}]}"#,
        "no stacks found",
        "",
    ),
];

#[test]
fn counts_defects_of_a_document_in_one_line() {
    for (text, message, folded) in DEFECTIVE {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        assert_eq!(
            (outcome.code(), outcome.text().as_str(), &outcome.stderr),
            (i32::from(folded.is_empty()), folded, &format!("fg-collapse: stdin: {message}\n")),
            "{text}"
        );
        let strict = run("fg-collapse", ["--strict"], text.as_bytes());
        assert_eq!((strict.code(), strict.stderr), (1, format!("fg-collapse: stdin: {message}\n")), "{text}");
    }
}

#[test]
fn selects_one_of_several_values_by_name() {
    let pprof = support::data("collapse/formats/pprof.pb");
    assert_rejected(&std::fs::read(&pprof).unwrap().repeat(2), "several pprof profiles in one file");
    for option in ["--event=samples", "--sample-type=samples", "--event=samples/count"] {
        let folded = run("fg-collapse", [option.as_ref(), pprof.as_os_str()], b"").ok().text();
        assert_eq!(folded, "main.main;[libc.so.6] 1\nmain.main;main.serve;main.inlined 5\n");
    }
    let outcome = run("fg-collapse", ["--event=heap".as_ref(), pprof.as_os_str()], b"");
    assert_eq!(outcome.code(), 1, "{outcome:?}");
    assert!(outcome.stderr.contains("samples/count, cpu/nanoseconds"), "{outcome:?}");
}

#[test]
fn in_order_keeps_the_order_of_samples() {
    let text = r#"{"shared":{"frames":[{"name":"b"},{"name":"a"}]},"profiles":[{"type":"sampled","unit":"none",
        "samples":[[0],[1],[1],[0]],"weights":[1,2,3,4]}]}"#;
    let folded = run("fg-collapse", ["--in-order"], text.as_bytes()).ok().text();
    assert_eq!(folded, "b 1\na 5\nb 4\n");
}

const SCRIPT: &str = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }\n\
    const kept = []; function keep(n) { for (let i = 0; i < n; i++) kept.push({ i, text: 'x' + i }) }\n\
    keep(100000); fib(34)\n";

#[test]
fn folds_profiles_of_node_with_their_totals() {
    if !require("node") {
        return;
    }
    let folder = directory();
    std::fs::write(folder.path().join("work.js"), SCRIPT).unwrap();
    let node = |arguments: &[&str]| {
        let mut command = command("node");
        run_command(
            {
                command.current_dir(folder.path()).args(arguments);
                command
            },
            b"",
        )
        .ok()
        .text()
    };
    node(&[
        "--cpu-prof",
        "--cpu-prof-name=cpu",
        "--heap-prof",
        "--heap-prof-interval=4096",
        "--heap-prof-name=heap",
        "work.js",
    ]);
    let stated = |expression: &str, file: &str| {
        let script = format!("const p = JSON.parse(require('fs').readFileSync('{file}')); console.log({expression})");
        node(&["-e", &script]).trim().parse::<u64>().unwrap()
    };
    let folded = |file: &str| run("fg-collapse", [folder.path().join(file)], b"").ok().text();
    let cpu = folded("cpu");
    assert_eq!(stated("p.endTime - p.startTime", "cpu"), total(&cpu));
    assert!(cpu.contains(";fib;fib;fib"), "{cpu}");
    let size = "(function sum(n) { return n.children.reduce((a, c) => a + sum(c), n.selfSize) })(p.head)";
    assert_eq!(stated(size, "heap"), total(&folded("heap")));
    node(&["--prof", "--no-logfile-per-isolate", "--logfile=ticks.log", "work.js"]);
    let ticks = node(&["--prof-process", "--preprocess", "ticks.log"]);
    std::fs::write(folder.path().join("ticks"), ticks).unwrap();
    assert_eq!(stated("p.ticks.length", "ticks"), total(&folded("ticks")));
}

/// The log of a program that still runs has no end yet.
#[test]
fn an_event_log_that_is_cut_before_its_first_sample_says_so() {
    let log = std::fs::read(crate::support::data("collapse/formats/ghc-eventlog.eventlog")).unwrap();
    let header = log.windows(12).position(|window| window == b"hetehdredatb").unwrap() + 12;
    assert_rejected(&log[..header], "cut short, or still being written");
    assert_rejected(&[&log[..header], b"\xff\xff"].concat(), "an event log without a profile");
}
