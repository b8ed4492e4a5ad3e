//! A small input of every format, and its total.

use std::collections::BTreeSet;

use super::{folder, total};
use crate::support::{assert_golden, run};

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
    // 100 + 13 + 20 + 1000000 microseconds; the call without a stack is left out
    example("strace.txt", "strace", &[(&[], "1000133"), (&["--event=calls", "--pid", "--kernel"], "5")]),
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
    // 186 "Time profile cost-centre stack", largest sum of "Heap profile cost-centre sample"
    example("ghc-eventlog.eventlog", "ghc-eventlog", &[(&[], "186"), (&["--event=heap", "--srcline"], "1905800")]),
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
    // Those of the recording; sizes and durations are rounded
    example("jfr-print.txt", "jfr-print", &[(&[], "26"), (&["--event=lock", "--srcline"], "197100000")]),
    example(
        "jfr-print-25.txt",
        "jfr-print",
        &[(&["--event=alloc", "--tid"], "45822787.2"), (&["--event=lock", "--weight=samples"], "3")],
    ),
    example("jfr-json.json", "jfr-json", &[(&[], "197018778"), (&["--tid", "--label=previousOwner"], "197018778")]),
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
    example("art-trace-streamed.trace", "art-trace", &[(&[], "350"), (&["--event=cpu", "--srcline"], "100")]),
    example("d3-flame-graph.json", "d3-flame-graph", &[(&[], "5")]),
    example("d3-flame-graph-self.json", "d3-flame-graph", &[(&[], "4")]),
    // The samples of the recording, from which perf script flamegraph -f json made it
    example("d3-flame-graph-perf.json", "d3-flame-graph", &[(&[], "39")]),
    // "tb" of all stacks, and "gb": 2000000 + 2500000 + 10000
    example(
        "dhat.json",
        "dhat",
        &[(&[], "6500000"), (&["--event=peak-bytes", "--srcline"], "4510000"), (&["--event=end-blocks"], "150")],
    ),
    example("dotnet-stack.txt", "dotnet-stack", &[(&["--tid"], "2"), (&["--no-tidy"], "2")]),
    example("eflame.txt", "eflame", &[(&[], "3"), (&["--pid"], "3")]),
    example("flamebearer.json", "flamebearer", &[(&[], "10")]),
    example("flamebearer-query.json", "flamebearer", &[(&[], "120000000")]),
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
    example(
        "hprof-text.txt",
        "hprof-text",
        &[(&[], "70"), (&["--event=bytes", "--srcline"], "9216"), (&["--event=live-objects"], "5")],
    ),
    // "total = 6143"
    example("hprof-text-times.txt", "hprof-text", &[(&[], "6143"), (&["--event=calls"], "364002")]),
    // 15 threads, of which 8 run Java code
    example("java-thread-dump.json", "java-thread-dump", &[(&[], "2"), (&["--event=all", "--tid"], "8")]),
    // "4396 byte(s) leaked in 4 allocation(s)"
    example("lsan.txt", "lsan", &[(&["--srcline"], "4396"), (&["--event=objects"], "4")]),
    // "definitely lost: 4,396 bytes in 4 blocks"
    example("memcheck.txt", "memcheck", &[(&["--srcline"], "4396"), (&["--event=blocks"], "4")]),
    // "mem_heap_B=4510000" at the peak
    example("massif.out", "massif", &[(&["--srcline"], "4510000"), (&["--event=end"], "4500000")]),
    example("memleak.txt", "memleak", &[(&[], "1041408"), (&["--event=allocations"], "264")]),
    // 1600000 + 120000 + 40000 + 4096
    example("memleak-libbpf.txt", "memleak", &[(&[], "1764096"), (&["--event=allocations"], "443")]),
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
    // Sums of the fields from which the trace was made
    example(
        "perfetto-tracks.pftrace",
        "perfetto",
        &[(&["--tid"], "2"), (&["--event=event-stacks", "--srcline"], "4"), (&["--event=slices"], "94000")],
    ),
    // All was freed: 1000 + 500 + 24 bytes in 4 + 2 + 1 allocations
    example("perfetto-heaps.pftrace", "perfetto", &[(&[], "1500"), (&["--event=allocated-count"], "6")]),
    // "self_max" 1000 and 90, "self_max_count" 6 and 1
    example("perfetto-peak.pftrace", "perfetto", &[(&[], "1090"), (&["--event=unreleased-count"], "7")]),
    example("perfview.perfView.xml", "perfview", &[(&[], "3.5"), (&["--weight=samples"], "3")]),
    example("phpspy.txt", "phpspy", &[(&["--srcline"], "2")]),
    example("py-spy.txt", "py-spy", &[(&[], "1")]),
    example("py-spy-json.json", "py-spy-json", &[(&["--srcline"], "1")]),
    // "time": 1.031450
    example("pyinstrument.json", "pyinstrument", &[(&[], "1031450")]),
    example("rbspy.raw", "rbspy", &[(&[], "3"), (&["--tid", "--srcline"], "3"), (&["-t4712"], "1")]),
    example("rbspy-01.raw", "rbspy", &[(&[], "1")]),
    example("rprof.out", "rprof", &[(&["--srcline"], "40000"), (&["--weight=samples"], "2")]),
    // 250 and 750 events
    example(
        "simpleperf-proto.trace",
        "simpleperf-proto",
        &[(&["--tid"], "1000"), (&["--weight=samples"], "2"), (&["--event=sched:sched_switch"], "7")],
    ),
    example("stackcount.txt", "stackcount", &[(&["--pid"], "97"), (&[], "97")]),
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
    example("safari.json", "safari", &[(&["--srcline"], "3500.4217")]),
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
    // 1985264 and 14736, and their mean for the lost sample
    example("simpleperf-27.txt", "simpleperf", &[(&[], "3000000")]),
    example("simpleperf.txt", "simpleperf", &[(&[], "1000"), (&["--weight=samples", "--tid"], "2")]),
    example("systemtap.txt", "systemtap", &[(&[], "21")]),
    // Five ticks
    example("v8-prof.txt", "v8-prof", &[(&[], "5")]),
    example("vsprof.csv", "vsprof", &[(&[], "2401204"), (&["--event=time"], "100")]),
    example("vtune.csv", "vtune", &[(&[], "2160.4")]),
    example("wpa.csv", "wpa", &[(&[], "115"), (&["--event=Size", "--pid"], "1113.9")]),
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
    // Four samples and one allocation
    example("sysprof.syscap", "sysprof", &[(&["--addrs", "--tid"], "4"), (&["--event=alloc"], "4096")]),
    // 30.5 and 12 ms
    example("speedscope.json", "speedscope", &[(&[], "42.5"), (&["--event=bytes"], "512")]),
    // "samples":6
    example("stackprof.json", "stackprof", &[(&[], "6000"), (&["--weight=samples"], "6")]),
    // 100 and 35
    example("trace-event.json", "trace-event", &[(&[], "135"), (&["--tid"], "135")]),
    example("v8-log.json", "v8-log", &[(&[], "5")]),
    example("xctrace.xml", "xctrace", &[(&[], "9000000"), (&["--weight=samples", "--tid"], "5")]),
    // `go tool trace -pprof=sync` and so on
    example(
        "go-trace.trace",
        "go-trace",
        &[
            (&["--event=sync"], "28059328"),
            (&["--event=net", "--srcline"], "3825536"),
            (&["--event=syscall"], "772608"),
        ],
    ),
    example("goroutines.txt", "goroutines", &[(&[], "5"), (&["--srcline"], "5")]),
    // "total 7"
    example("goroutines-shared.txt", "goroutines", &[(&[], "7")]),
    // "Samples: 60  of event"
    example("perf-report-counts.txt", "perf-report", &[(&[], "60"), (&["--event=page-faults"], "7")]),
];

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
