//! fg-collapse: a small input of every format, and malformed ones.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::support::{self, assert_golden, run};

/// An example of a format below `tests/data/collapse/formats`, and its total, as the file itself states it, for one or more sets
/// of options.
struct Example {
    file: &'static str,
    format: &'static str,
    readings: &'static [(&'static [&'static str], &'static str)],
}

const fn example(
    file: &'static str,
    format: &'static str,
    readings: &'static [(&'static [&'static str], &'static str)],
) -> Example {
    Example { file, format, readings }
}

const EXAMPLES: &[Example] = &[
    example("async-profiler.txt", "folded", &[(&[], "120007")]),
    example("folded-austin.txt", "folded", &[(&[], "1250")]),
    example("bcc.txt", "bcc", &[(&[], "1040"), (&["--pid"], "1040")]),
    example("bpftrace.txt", "bpftrace", &[(&[], "14"), (&["--event=all"], "55"), (&["--event=@calls"], "41")]),
    // "summary: 2000 30"
    example("callgrind.txt", "callgrind", &[(&[], "2000"), (&["--event=Dr"], "30")]),
    example("dtrace.txt", "dtrace", &[(&[], "20"), (&["--no-tidy"], "20")]),
    example("eu-stack.txt", "eu-stack", &[(&[], "2"), (&["--pid", "--tid"], "2")]),
    example("faulthandler.txt", "faulthandler", &[(&[], "2")]),
    example("gdb.txt", "gdb", &[(&[], "2")]),
    example(
        "austin.mojo",
        "austin",
        &[(&[], "2455"), (&["--event=cpu", "--kernel"], "2205"), (&["--event=allocated", "--srcline"], "2560")],
    ),
    example("austin-memory.mojo", "austin", &[(&[], "4096"), (&["--event=freed"], "64")]),
    // "20 ticks", "6,500 bytes"
    example("ghc-prof.txt", "ghc-prof", &[(&[], "1000"), (&["--event=ticks"], "20"), (&["--event=bytes"], "6500")]),
    // "10.00 s  100.0%"
    example("instruments.txt", "instruments", &[(&[], "10000")]),
    example("java-exceptions.txt", "java-exceptions", &[(&[], "3")]),
    example("javacore.txt", "javacore", &[(&[], "2")]),
    // "jdk.ExecutionSample 26" of `jfr summary`, sums of `jfr print`
    example(
        "jfr-17.jfr.gz",
        "jfr",
        &[
            (&[], "26"),
            (&["--event=ThreadSleep"], "1326632510"),
            (&["--event=lock", "--label=monitorClass"], "197018778"),
            (&["--event=alloc", "--srcline"], "46000384"),
            (&["--event=ThreadSleep", "--weight=samples", "--tid"], "40"),
        ],
    ),
    // "jdk.ExecutionSample 27"
    example("jfr-11.jfr", "jfr", &[(&[], "27"), (&["--event=jdk.JavaMonitorEnter"], "120592285")]),
    example("ftrace.txt", "ftrace", &[(&[], "2"), (&["--event=sched_switch", "--pid"], "1")]),
    // "15.5 us" and "2 us"
    example("ftrace-graph.txt", "ftrace", &[(&[], "17.5")]),
    example("ftrace-cmd.txt", "ftrace", &[(&["--event=all", "--kernel"], "2")]),
    // Samples of weight 1 and 2, and one of another event
    example("trace-event-samples.json", "trace-event", &[(&[], "3"), (&["--event=faults"], "7")]),
    // Six timings of the last sample of a trace without a start
    example("trace-event-chunks.json", "trace-event", &[(&[], "400")]),
    example("cpuprofile-untimed.cpuprofile", "cpuprofile", &[(&[], "5")]),
    example("instruments-16.txt", "instruments", &[(&[], "10000")]),
    // "1.00 KB", "10"
    example("instruments-memory.txt", "instruments", &[(&[], "1024"), (&["--event=Count"], "10")]),
    // 9 threads, of which 7 have a stack
    example("jstack-21.txt", "jstack", &[(&["--event=all", "--tid"], "7"), (&[], "2")]),
    example("jstack-5.txt", "jstack", &[(&[], "1"), (&["--event=WAITING"], "1")]),
    example("jstack.txt", "jstack", &[(&[], "3"), (&["--event=all", "--tid"], "5")]),
    // "Total trace count: 49"
    example("ljp.txt", "ljp", &[(&[], "49")]),
    // Wall clock: 50 + 300 + 50, and 100 of another thread
    example("art-trace.trace", "art-trace", &[(&[], "500"), (&["--event=cpu", "--srcline"], "150")]),
    example("d3-flame-graph.json", "d3-flame-graph", &[(&[], "5")]),
    example("d3-flame-graph-self.json", "d3-flame-graph", &[(&[], "4")]),
    // "tb" of all stacks, and "gb": 2000000 + 2500000 + 10000
    example(
        "dhat.json",
        "dhat",
        &[(&[], "6500000"), (&["--event=peak-bytes", "--srcline"], "4510000"), (&["--event=end-blocks"], "150")],
    ),
    example("dotnet-stack.txt", "dotnet-stack", &[(&["--tid"], "2"), (&["--no-tidy"], "2")]),
    example("eflame.txt", "eflame", &[(&[], "3"), (&["--pid"], "3")]),
    example("flamebearer.json", "flamebearer", &[(&[], "10")]),
    // "18 samples" of google-pprof
    example("gperftools.prof", "gperftools", &[(&[], "18"), (&["--addrs"], "18")]),
    example("gprof2dot.json", "gprof2dot", &[(&["--srcline"], "4008200")]),
    // "inuse_space" of `go tool pprof -raw`, which reads the same
    example("heap-text-go.txt", "heap-text", &[(&["--srcline"], "8533157"), (&["--event=alloc_objects"], "7905")]),
    example("heap-text-gperftools.heap", "heap-text", &[(&[], "4500000"), (&["--event=alloc_objects"], "350")]),
    // "Total: 4.8 MB" of jeprof
    example("heap-text-jemalloc.heap", "heap-text", &[(&[], "4990159")]),
    example("heap-text-mutex.txt", "heap-text", &[(&[], "100796991"), (&["--event=contentions"], "80")]),
    // "351", "4.58M" and "4.50M" of heaptrack_print
    example(
        "heaptrack.zst",
        "heaptrack",
        &[
            (&["--srcline"], "4582704"),
            (&["--event=allocations"], "351"),
            (&["--event=leaked"], "4500000"),
            (&["--event=temporary"], "200"),
        ],
    ),
    example("hprof-text.txt", "hprof-text", &[(&[], "70"), (&["--event=bytes", "--srcline"], "9216")]),
    // 15 threads, of which 8 run Java code
    example("java-thread-dump.json", "java-thread-dump", &[(&[], "2"), (&["--event=all", "--tid"], "8")]),
    // "4396 byte(s) leaked in 4 allocation(s)"
    example("lsan.txt", "lsan", &[(&["--srcline"], "4396"), (&["--event=objects"], "4")]),
    // "definitely lost: 4,396 bytes in 4 blocks"
    example("memcheck.txt", "memcheck", &[(&["--srcline"], "4396"), (&["--event=blocks"], "4")]),
    // "mem_heap_B=4510000" at the peak
    example("massif.out", "massif", &[(&["--srcline"], "4510000"), (&["--event=end"], "4500000")]),
    example("memleak.txt", "memleak", &[(&[], "1041408"), (&["--event=allocations"], "264")]),
    example("memray.csv", "memray", &[(&[], "6052"), (&["--event=allocations", "--srcline", "--tid"], "8")]),
    example(
        "nettrace.nettrace",
        "nettrace",
        &[
            (&[], "7"),
            (&["--event=external", "--tid"], "2"),
            (&["--event=GCAllocationTick", "--no-tidy"], "212992"),
            (&["--event=all", "--weight=samples"], "12"),
        ],
    ),
    example("nettrace-6.nettrace", "nettrace", &[(&[], "6"), (&["--pid", "--weight=samples"], "5")]),
    example("otlp.pb", "otlp", &[(&[], "20500")]),
    example(
        "otlp-json.json",
        "otlp-json",
        &[(&[], "9"), (&["--event=off_cpu", "--label=service.name", "--srcline"], "900")],
    ),
    // Two messages whose samples have the fields of versions before 1.10
    example("otlp-1.9.pb", "otlp", &[(&["--srcline"], "24")]),
    example("perf-json.json", "perf-json", &[(&["--tid"], "6")]),
    example(
        "perfetto.pftrace",
        "perfetto",
        &[
            (&["--tid"], "4"),
            (&["--event=unreleased-bytes"], "4072"),
            (&["--event=allocated-count", "--srcline"], "7"),
            (&["-t701"], "2"),
        ],
    ),
    example("perfview.perfView.xml", "perfview", &[(&[], "3.5"), (&["--weight=samples"], "3")]),
    example("phpspy.txt", "phpspy", &[(&["--srcline"], "2")]),
    example("py-spy.txt", "py-spy", &[(&[], "1")]),
    example("py-spy-json.json", "py-spy-json", &[(&["--srcline"], "1")]),
    // "time": 1.031450
    example("pyinstrument.json", "pyinstrument", &[(&[], "1031450")]),
    example("rprof.out", "rprof", &[(&["--srcline"], "40000"), (&["--weight=samples"], "2")]),
    // 250 and 750 events
    example(
        "simpleperf-proto.trace",
        "simpleperf-proto",
        &[(&["--tid"], "1000"), (&["--weight=samples"], "2"), (&["--event=sched:sched_switch"], "7")],
    ),
    // Sum of "raw_timestamp_deltas"
    example("stackprof-dump.dump", "stackprof-dump", &[(&["--srcline"], "4500"), (&["--weight=samples"], "5")]),
    example("scalene-1.json", "scalene", &[(&[], "1000000")]),
    example(
        "scalene.json",
        "scalene",
        &[
            (&[], "1125000"),
            (&["--event=native", "--srcline"], "250000"),
            (&["--event=samples"], "5"),
            (&["--event=combined"], "5"),
            (&["--event=allocated"], "1572864"),
        ],
    ),
    example("safari.json", "safari", &[(&["--srcline"], "3500")]),
    example("sentry.json", "sentry", &[(&[], "3"), (&["-t260", "--srcline"], "1")]),
    // 98.70, 1.04 and 0.26 percent
    example("perf-report.txt", "perf-report", &[(&[], "100")]),
    example("perf-sched.txt", "perf-sched", &[(&["--format=perf-sched"], "1855.5")]),
    // "[30 samples]", "[4 samples]"
    example("pmcstat.txt", "pmcstat", &[(&[], "30"), (&["--event=LLC_MISSES"], "4")]),
    example("pprof-raw.txt", "pprof-raw", &[(&[], "80000000"), (&["--event=samples", "--addrs"], "8")]),
    // "Total samples = 1.45s"
    example("pprof-traces.txt", "pprof-traces", &[(&[], "1450")]),
    example("procstack.txt", "procstack", &[(&[], "2")]),
    // Threads of 10 and 6 samples
    example("sample.txt", "sample", &[(&[], "16")]),
    example("simpleperf.txt", "simpleperf", &[(&[], "1000"), (&["--weight=samples", "--tid"], "2")]),
    example("systemtap.txt", "systemtap", &[(&[], "21")]),
    // Five ticks
    example("v8-prof.txt", "v8-prof", &[(&[], "5")]),
    example("vsprof.csv", "vsprof", &[(&[], "2401204"), (&["--event=time"], "100")]),
    example("vtune.csv", "vtune", &[(&[], "2160.4")]),
    example("wcp.txt", "wcp", &[(&[], "17230"), (&["--srcline"], "17230")]),
    // From 0.010 to 0.053 s
    example("xdebug.txt", "xdebug", &[(&[], "43000"), (&["--event=calls"], "3")]),
    example("bpftrace-json.json", "bpftrace-json", &[(&[], "14"), (&["--event=@calls"], "41")]),
    // From 1000 to 1600
    example("chrome-timeline.json", "trace-event", &[(&[], "600")]),
    // From 1000 to 4000
    example("cpuprofile.cpuprofile", "cpuprofile", &[(&[], "3000"), (&["--weight=samples", "--srcline"], "6")]),
    // From 12000000 to 12002500
    example("cpuprofile-old.cpuprofile", "cpuprofile", &[(&[], "2500")]),
    example("firefox.json", "firefox", &[(&[], "5"), (&["--tid", "--srcline"], "5")]),
    // "total_ticks":9, "total_alloc":700
    example("ghc-json.prof", "ghc-json", &[(&[], "9"), (&["--event=bytes"], "700")]),
    example("heapprofile.heapprofile", "heapprofile", &[(&[], "4696")]),
    example(
        "pprof.pb",
        "pprof",
        &[
            (&[], "60000000"),
            (&["--event=samples", "--label=request", "--label=size"], "6"),
            (&["--srcline", "--addrs"], "60000000"),
        ],
    ),
    example("samply.json", "firefox", &[(&[], "8"), (&["--pid", "--srcline", "--addrs"], "8")]),
    // 30.5 and 12 ms
    example("speedscope.json", "speedscope", &[(&[], "42.5"), (&["--event=bytes"], "512")]),
    // "samples":6
    example("stackprof.json", "stackprof", &[(&[], "6000"), (&["--weight=samples"], "6")]),
    // 100 and 35
    example("trace-event.json", "trace-event", &[(&[], "135"), (&["--tid"], "135")]),
    example("v8-log.json", "v8-log", &[(&[], "5")]),
    example("xctrace.xml", "xctrace", &[(&[], "9000000"), (&["--weight=samples", "--tid"], "5")]),
    example("goroutines.txt", "goroutines", &[(&[], "5"), (&["--srcline"], "5")]),
    // "total 7"
    example("goroutines-shared.txt", "goroutines", &[(&[], "7")]),
    // "Samples: 60  of event"
    example("perf-report-counts.txt", "perf-report", &[(&[], "60"), (&["--event=page-faults"], "7")]),
];

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

#[test]
fn detects_every_format_and_folds_its_total() {
    let readings = |example: &'static Example| {
        example.readings.iter().map(move |reading| (example.file, example.format, *reading))
    };
    for (file, format, (options, stated)) in EXAMPLES.iter().flat_map(readings) {
        let path = folder().join(file);
        let folded = run("fg-collapse", options.iter().map(AsRef::as_ref).chain([path.as_os_str()]), b"").ok();
        let name = [file.split('.').next().unwrap(), &options.concat()].concat().replace("--", ".").replace('=', "-");
        assert_golden(&format!("collapse/formats/{name}.folded"), &folded.stdout);
        let sum = total(&folded.text());
        assert_eq!(sum, total(&format!("x {stated}")), "{name} adds up to {}", sum as f64 / 1e6);
        assert!(!folded.stderr.contains("malformed"), "{name}: {}", folded.stderr);
        let named = format!("--format={format}");
        let arguments = options.iter().copied().map(str::as_ref).chain([named.as_ref(), path.as_os_str()]);
        if !options.iter().any(|option| option.starts_with("--format")) {
            assert_eq!(run("fg-collapse", arguments, b"").ok().text(), folded.text(), "{name}");
        }
    }
}

#[test]
fn every_format_has_an_example() {
    let listed = run("fg-collapse", ["--list-formats"], b"").ok().text();
    let names: Vec<&str> = listed.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert!(names.is_sorted() && listed.lines().all(|line| line.split_whitespace().count() > 1), "{listed}");
    let known: BTreeSet<&str> = names.iter().copied().collect();
    let examples: BTreeSet<&str> =
        EXAMPLES.iter().map(|example| example.format).chain(["perf-data", "perf-script"]).collect();
    assert_eq!(known.difference(&examples).collect::<Vec<_>>(), ELSEWHERE);
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let tested: BTreeSet<&str> = EXAMPLES.iter().map(|example| example.file).collect();
    let unused: Vec<String> = files.filter(|name| !name.ends_with(".folded") && !tested.contains(&**name)).collect();
    assert_eq!(unused, [""; 0]);
}

/// Formats with examples in other tests.
const ELSEWHERE: [&&str; 0] = [];

/// Malformed inputs: format, text, number of the malformed line, part of the message, and the folded output of the rest.
const MALFORMED: &[(&str, &str, u64, &str, &str)] = &[
    ("bcc", "    f\n    -    a (1)\n        3\n\n        4\n", 5, "expected a thread", "a;f 3\n"),
    ("bpftrace", "@[\n    f\n]: 3\n@[\n    g\n@[\n    h\n]: 1\n", 6, "before the last one has ended", "f 3\nh 1\n"),
    ("callgrind", "events: Ir\nfn=main\n1 5\n1 x\n", 4, "a position and costs", "main 5\n"),
    ("dotnet-stack", "Thread (0x1):\n  a!f()\nwhat\n", 3, "a thread or a function", "f 1\n"),
    ("dtrace", "\n  a`f\n  3\n  4\n", 4, "found a count", "a`f 3\n"),
    ("eu-stack", "TID 1:\n#0  0x1 f\nwhat\n", 3, "a PID line, a TID line or a frame", "f 1\n"),
    ("eflame", "<0.1.0>;a:f/1\nwhat\n", 2, "a process and functions", "a:f/1 1\n"),
    ("heap-text", "heap_v2/1\n 1: 2 [3: 4] @ 0x1\nwhat\n", 3, "values and addresses", "[unknown] 2\n"),
    ("heaptrack", "v 10400 3\nX a\ns 1 f\ni 1 0 1 0 0\nt 1 0\na 5 1\n+ 0\n+ 9\n", 8, "a record", "f 5\n"),
    (
        "lsan",
        "Direct leak of 4 byte(s) in 1 object(s) allocated from:\n    #0 0x1 in f /a.c:1\nwhat\n",
        3,
        "a number, an address",
        "f 4\n",
    ),
    ("massif", "time_unit: i\nsnapshot=0\nheap_tree=peak\nn0: 5 0x1: f (a.c:1)\n x\n", 5, "a node", "f 5\n"),
    (
        "memray",
        "allocator,num_allocations,size,tid,thread_name,stack_trace\nMALLOC,1,7,1,a,f;a;1\nx,y\n",
        3,
        "six fields",
        "f 7\n",
    ),
    ("phpspy", "0 f a.php:1\nwhat\n", 2, "a number, a function", "f 1\n"),
    ("py-spy", "Thread 1 (idle): \"a\"\n    f (a.py:1)\nwhat\n", 3, "a process, a thread", "a;f 1\n"),
    ("rprof", "sample.interval=10\n\"f\" \nwhat\n", 3, "quoted names", "f 10\n"),
    (
        "faulthandler",
        "Thread 0x1 (most recent call first):\n  File \"a\", line 1 in f\n  File x\n",
        3,
        "a file",
        "a:1:f 1\n",
    ),
    ("folded", "a;b 1\nnonsense\na -5\n", 3, "is negative", "a;b 1\n"),
    ("gdb", "#0  f () at a.c:1\n#x  g ()\n", 2, "expected a frame", "f 1\n"),
    (
        "ghc-prof",
        "COST CENTRE MODULE no. entries %time %alloc %time %alloc\n\nMAIN M 1 0 50.0 0.0 100.0 100.0\n x\n",
        4,
        "a cost centre",
        "M.MAIN 500\n",
    ),
    (
        "instruments",
        "Weight\tSelf Weight\t\tSymbol Name\n1 s\t1 s\t \tf\n1 s\t1 x\t \tg\n",
        3,
        "a self weight",
        "f 1000\n",
    ),
    ("ftrace", "a-1 [000] d..1 1.5: e: x\na-1 [000] d..1 1.5: <stack trace>\n => f\nwhat\n", 4, "an event", "a;f 1\n"),
    ("javacore", "3XMTHREADINFO \"a\" x\n4XESTACKTRACE at f(A)\n4XESTACKTRACE g\n", 3, "a function", "a;f 1\n"),
    ("jstack", "\"a\" #1\n  java.lang.Thread.State: RUNNABLE\n\tat f(A)\n\tat g\n", 4, "a function", "a;f 1\n"),
    ("ljp", "1 1 f(A:1)\nx\n", 2, "a count, a depth and a frame", "f 1\n"),
    ("perf-report", "# Overhead  Symbol\n 5.0%  [.] f\nx\n", 3, "expected a percentage", "f 5\n"),
    ("perf-sched", "a 1 1.0: sched:sched_switch: x\n\t 1 f (x)\n", 1, "the two threads of a switch", ""),
    ("pmcstat", "@ e [3 samples]\n\n100.0%  [3]  f\n 100.0%  [4]   g\n", 4, "more samples", "f 3\n"),
    (
        "pprof-raw",
        "Samples:\na/count\n1: 1\n1 2: 1\nLocations\n1: 0x1 M=1 f x:1 s=1\nMappings\n",
        4,
        "expected a sample",
        "f 1\n",
    ),
    ("pprof-traces", "-----------+---\n 5ms f\n-----------+---\n x f\n", 4, "a value and a function", "f 5\n"),
    ("procstack", "1: a\n0x1  f() + 0x1\nx\n", 3, "a process, a thread or a frame", "a;f 1\n"),
    ("sample", "Call graph:\n    2 a  (in b)\n    + x\n", 3, "a number of samples", "b`a 2\n"),
    ("simpleperf", "sample:\n  event_type: e\n  event_count: 1\n  symbol: f\nx\n", 5, "a key and a value", "f 1\n"),
    ("systemtap", " 0x1 : f+0x1/0x2 [a]\n 3\nx\n", 3, "a frame or a count", "f 3\n"),
    ("v8-prof", "v8-version,1\ntick,0x1,1,0,0x0,0\ntick,x\n", 3, "a tick record", "[unknown] 1\n"),
    (
        "vsprof",
        "Level,Function Name,Number of Calls,\n1,\"f\",2,\n2,\"g\",\"4,718.25\",\n",
        3,
        "expected a level",
        "f 2\n",
    ),
    ("vtune", "Function Stack,CPU Time:Self,Module\nf,1.0,a\ng,x,a\n", 3, "a function and its values", "a`f 1000\n"),
    ("xdebug", "TRACE START [x]\n1\t1\t0\t0.1\t1\tf\nx\n1\t1\t1\t0.2\n", 3, "a level, a number", "f 100000\n"),
    ("wcp", "Full stacks\n50.0% = (3 samples)\n  1: f\n", 0, "", "f 3\n"),
];

#[test]
fn reports_malformed_lines_and_folds_the_rest() {
    for &(format, text, line, expected, folded) in MALFORMED {
        let outcome = run("fg-collapse", ["--format", format], text.as_bytes());
        assert_eq!(outcome.text(), folded, "{format}: {outcome:?}");
        if line > 0 {
            let message =
                outcome.stderr.lines().find(|message| message.starts_with(&format!("fg-collapse: stdin:{line}: ")));
            assert!(message.is_some_and(|message| message.contains(expected)), "{format}: {}", outcome.stderr);
            let counted =
                outcome.stderr.lines().filter(|message| message.contains("skipped ") && message.contains("malformed"));
            assert_eq!(counted.count(), 1, "{format}: {}", outcome.stderr);
            let strict = run("fg-collapse", ["--strict", "--format", format], text.as_bytes());
            assert_eq!((strict.code(), strict.stdout.len(), strict.stderr.lines().count()), (1, 0, 1), "{strict:?}");
        }
    }
}

#[test]
fn reports_options_that_a_format_cannot_satisfy() {
    let outcome = run("fg-collapse", ["--comm=a"], b"a;b 1\nb 2\n").ok();
    assert!(outcome.stderr.contains("stdin: samples of this format have no time, thread or CPU"), "{outcome:?}");
    let refused = run("fg-collapse", ["--event=x"], b"Samples:\na/count b/ns\n1 2: 1\n");
    assert!(
        refused.code() == 1 && refused.stderr.contains("--event x: no such value; expected one of a/count, b/ns"),
        "{refused:?}"
    );
}

#[test]
fn reports_what_to_do_about_inputs_without_stacks() {
    let waiting = run("fg-collapse", [""; 0], b"\"a\" #1\n java.lang.Thread.State: WAITING\n\tat f(A)\n").ok();
    assert_eq!(waiting.stderr, "fg-collapse: no event is selected; the input has WAITING (1); use --event to select\n");
    let texts: [(&[u8], &str); 14] = [
        (b"# Children      Self  Command  Symbol\n 1.0%  [.] f\n", "give it --no-children"),
        (b"# Overhead  Symbol\n 5.0%  [.] f\n   |\n   ---f\n", "-g folded"),
        (b"FLR\0\0\x02\0\0", "no chunk begins at byte 0"),
        (b"File: p\nType: cpu\nShowing nodes accounting for 30ms, 100% of 30ms total\n flat  flat%\n", "-traces"),
        (b"gmon\x01\0\0\0\0\0\0\0", "a gprof profile, "),
        (b"Flat profile:\n\nEach sample counts as 0.01 seconds.\n", "a gprof profile, "),
        (b"\xfb\xa9\x03\xfa\x04a.py", "py-spy record -f raw"),
        (b"1\n         4 function calls in 0.005 seconds\n\n", "py-spy record -f raw"),
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

/// Texts that are no profiles but have lines that look like those of one, and what they look like.
const NO_PROFILES: &[(&str, &str)] = &[
    ("openat(AT_FDCWD, \"a;b\", O_RDONLY) = 3\nread(3, \"x;y\", 832) = 832\nclose(3) = 0\n", "output of strace"),
    ("Stack,Process,Weight\n\"a;b\",x.exe, 12\n\"a;c\",x.exe, 7\n\"a;d\",x.exe, 9\n", "a table (CSV)"),
    ("2026-11-23 10:00:00 app;main started 12\n2026-11-23 10:00:01 app;main took 7\n", "a log"),
    ("[    0.000000] Linux;version 6\n[    0.100000] Memory;available 12\n", "a log"),
    ("/* Copyright 2012\n * f();x 12\n */\nint f() {\n  return 0;\n}\nint g() {\n  return 1;\n}\n", "source code"),
    ("name: 5\nsize: 7\nvalue: 8\nother: 9\n", "names and numbers"),
    ("nr_a 1\nnr_b 2\nnr_c 3\nnr_d 4\nnr_e 5\nnr_f 6\nnr_g 7\nnr_h 8\nnr_i 9\n", "names and numbers"),
    ("{\n \"name\": \"x\",\n \"version\": 1\n}\n", "JSON"),
];

#[test]
fn refuses_texts_that_are_no_profiles() {
    for (text, kind) in NO_PROFILES {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        assert_eq!((outcome.code(), outcome.stdout.len(), outcome.stderr.lines().count()), (1, 0, 1), "{outcome:?}");
        assert!(outcome.stderr.contains(kind), "{kind}: {outcome:?}");
    }
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
    let text = "threadcreate profile: total 4\n3 @\n#\t0x0\n\n1 @ 0x44b1e5 0x1\n#\t0x44b1e4\truntime.newm+0x4\t/a.go:1\n#\t0x1\n";
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
    for (text, code) in [(status, 1), ("goroutine profile: total 2\n", 0)] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        assert_eq!((outcome.code(), outcome.text().as_str()), (code, ""), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    }
}
