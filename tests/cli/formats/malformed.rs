//! Malformed inputs of formats that consist of lines.

use crate::support::run;

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
    (
        "jfr-print",
        "a.B {\n  stackTrace = [\n    A.f(int) line: 2\n  ]\n}\nwhat\n",
        6,
        "the name of an event",
        "[unknown];A.f 1\n",
    ),
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
    ("rbspy", "rbspy02\n{\"trace\":[{\"name\":\"f\"}]}\n{}\n", 3, "the key \"trace\"", "f 1\n"),
    ("sample", "Call graph:\n    2 a  (in b)\n    + x\n", 3, "a number of samples", "b`a 2\n"),
    ("simpleperf", "sample:\n  event_type: e\n  event_count: 1\n  symbol: f\nx\n", 5, "a key and a value", "f 1\n"),
    ("stackcount", "  f\n    3\n    4\n", 3, "a stack before its count", "f 3\n"),
    ("systemtap", " 0x1 : f+0x1/0x2 [a]\n 3\nx\n", 3, "a frame or a count", "f 3\n"),
    ("strace", "f(1) = 2\n > /a(f+0x1) [0x2]\nwhat\n", 3, "a system call or a frame", "f;f 1\n"),
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
    ("wpa", "Stack,Count\n[Root]/a!f,1\n[Root]/a!f,x\n", 3, "a stack and a number", "a`f 1\n"),
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

/// The programs that are profiled write to the same terminal.
#[test]
fn a_line_of_the_program_within_a_stack_does_not_divide_it() {
    for (text, folded, is_malformed) in [
        ("Full stacks (1 unique):\n\n50.0% = (3 samples)\n  1: f\nhello\n  2: g\n", "g;f 3\n", true),
        ("Full stacks (1 unique):\n\n50.0% = (3 samples)\nhello\n  1: f\n  2: g\n", "g;f 3\n", true),
        (
            "1: a\n---------- tid# 1 (pthread ID: 1) ----------\n0x1  f() + 0x1\nhello\n0x2  g() + 0x1\n",
            "a;g;f 1\n",
            true,
        ),
        (
            "Thread 0x1 (most recent call first):\n  File \"a\", line 1 in f\nhello\n  File \"a\", line 2 in g\n\nbye\n",
            "a:2:g;a:1:f 1\n",
            false,
        ),
        (
            "a.B {\n  startTime = 1\n  stackTrace = [\n    A.f(int) line: 2\nhello\n    A.g() line: 3\n  ]\n}\n",
            "[unknown];A.g;A.f 1\n",
            true,
        ),
        (
            "# tracer: nop\na-1 [000] d..1 1.5: e: x\na-1 [000] d..1 1.5: <stack trace>\n => f\nhello\n => g\n",
            "a;g;f 1\n",
            true,
        ),
    ] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        assert_eq!(outcome.text(), folded, "{text}: {outcome:?}");
        assert_eq!(outcome.stderr.contains("skipped 1 malformed line"), is_malformed, "{text}: {outcome:?}");
    }
}

#[test]
fn a_stack_of_ftrace_belongs_to_the_last_event_of_its_cpu() {
    let event = |comm: &str, cpu| format!("  {comm}-1 [00{cpu}] d..1 1.5: sched_switch: x\n");
    let stack = |comm: &str, cpu, name| format!("  {comm}-1 [00{cpu}] d..1 1.5: <stack trace>\n => {name}\n");
    let text = [event("a", 0), event("b", 1), stack("a", 0, "f"), stack("b", 1, "g")].concat();
    let outcome = run("fg-collapse", [""; 0], format!("# tracer: nop\n{text}").as_bytes()).ok();
    assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), ("a;f 1\nb;g 1\n", ""));
}

#[test]
fn lines_before_a_print_of_a_recording_are_left_out() {
    let print = "Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nhello\n\na.B {\n  startTime = 1\n  stackTrace = [\n    A.f(int) line: 2\n  ]\n}\n";
    let outcome = run("fg-collapse", [""; 0], print.as_bytes()).ok();
    assert_eq!(outcome.text(), "[unknown];A.f 1\n");
    assert!(outcome.stderr.contains("2 lines of other text left out; the first is line 1\n"), "{outcome:?}");
}

#[test]
fn the_current_frame_of_gdb_is_no_stack() {
    let stacks = "#0  0x1 in poll () from /lib/libc.so.6\n#1  0x2 in main () at a.c:1\n";
    for (start, prompt) in [("#0  0x1 in poll () from /lib/libc.so.6\n31\tin poll.c\n", "(gdb) (gdb) "), ("", "(gdb) ")]
    {
        let outcome = run("fg-collapse", [""; 0], format!("{start}{prompt}{stacks}(gdb) quit\n").as_bytes()).ok();
        assert_eq!(outcome.text(), "main;poll 1\n", "{outcome:?}");
    }
    let other = format!("#0  0x7 in read () from /lib/libc.so.6\n\n{stacks}");
    assert_eq!(run("fg-collapse", [""; 0], other.as_bytes()).ok().text(), "main;poll 1\nread 1\n");
}

#[test]
fn a_virtual_thread_is_no_part_of_the_stack_of_its_carrier() {
    let dump = "\"w-1\" #24 [7] daemon prio=5 os_prio=0 cpu=1ms elapsed=3s tid=0x7f  [0x7e]\n   Carrying virtual thread #23\n\tat a.A.run(A.java:1)\n   Mounted virtual thread #23\n\tat V.spin(V.java:3)\n\tat a.B.run(B.java:2)\n\n\"m\" #1 prio=5 tid=0x1\n   java.lang.Thread.State: RUNNABLE\n\tat V.f(V.java:1)\n";
    let outcome = run("fg-collapse", [""; 0], dump.as_bytes()).ok();
    assert_eq!(outcome.text(), "(virtual);a.B.run;V.spin 1\nm;V.f 1\n", "{outcome:?}");
    assert!(!outcome.stderr.contains("malformed"), "{outcome:?}");
    let carriers = run("fg-collapse", ["--event=CARRIER"], dump.as_bytes()).ok();
    assert_eq!(carriers.text(), "w;a.A.run 1\n", "{carriers:?}");
}

#[test]
fn a_weight_that_is_none_is_malformed_wherever_its_line_is() {
    for (weight, reason) in [
        ("-5", "the weight is negative"),
        ("+5", "the weight is not a decimal number"),
        ("nan", "the weight is not a decimal number"),
        ("-inf", "the weight is not a decimal number"),
        ("0x10", "the weight is not a decimal number"),
        ("0.0000001", "the weight is below 0.000001, the smallest that can be stored"),
    ] {
        for (text, line) in [(format!("a;b {weight}\na;c 5\n"), 1), (format!("a;c 5\na;b {weight}\n"), 2)] {
            let told = format!("fg-collapse: stdin:{line}: {reason}\n");
            let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
            assert_eq!(outcome.text(), "a;c 5\n", "{text}");
            assert_eq!(outcome.stderr, format!("{told}fg-collapse: skipped 1 malformed line\n"), "{text}");
            let strict = run("fg-collapse", ["--strict"], text.as_bytes());
            assert_eq!((strict.code(), strict.stdout.len(), strict.stderr), (1, 0, told), "{text}");
        }
    }
}
