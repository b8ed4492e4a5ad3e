//! fg-collapse: inputs that are truncated, that contradict themselves, or that resemble another format.

use crate::support::{self, command, run, run_command};

fn fold(text: &[u8]) -> support::Outcome {
    run("fg-collapse", [""; 0], text)
}

/// Asserts the folded output and the only message, or that there is none if `message` is empty.
#[track_caller]
fn assert_folded(text: &str, folded: &str, message: &str) {
    let outcome = fold(text.as_bytes()).ok();
    assert_eq!(outcome.text(), folded, "{outcome:?}");
    let lines = outcome.stderr.lines().filter(|line| !line.ends_with("; use --event to select")).count();
    assert!(lines == usize::from(!message.is_empty()) && outcome.stderr.contains(message), "{outcome:?}");
}

#[test]
fn reports_truncated_inputs() {
    let xml = "<?xml version=\"1.0\"?><trace-query-result><row><weight id=\"1\">5</weight><backtrace id=\"2\">\
        <frame id=\"3\" name=\"f\"/></backtrace></row>";
    for (text, folded, end) in [
        ("# callgrind format\ncreator: callgrind-3\nevents: Ir\nfn=f\n1 5\n", "f 5\n", "its totals"),
        ("-----------+---\n 5ms f\n", "f 5\n", "the line below its last stack"),
        ("Samples:\na/count\n1: 1\nLocations\n1: 0x1 M=1 f x:1 s=1\n", "f 1\n", "its mappings"),
        (
            "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":0,\"dur\":3,\"name\":\"f\"},{\"ph\":\"X\",\"t",
            "f 3\n",
            "the end of its first value",
        ),
        ("[{\"ph\":\"X\",\"ts\":0,\"dur\":3,\"name\":\"f\"},{\"ph\":\"X\",\"t", "f 3\n", "the end of its first value"),
        ("Call graph:\n    2 a  (in b)\n", "b`a 2\n", "its tree"),
        ("TRACE START [x]\n1\t1\t0\t0.1\t1\tf\n1\t1\t1\t0.2\n", "f 100000\n", "TRACE END"),
        ("2 1 f(A.java:1)\n", "f 2\n", "its total"),
        (
            "Full thread dump x\n\"a\" #1\n java.lang.Thread.State: RUNNABLE\n\tat f(A)\n",
            "a;f 1\n",
            "the line of JNI references",
        ),
        (xml, "f 5\n", "</trace-query-result>"),
    ] {
        assert_folded(text, folded, &format!("cut short: the input ends before {end}"));
        let strict = run("fg-collapse", ["--strict"], text.as_bytes());
        assert_eq!((strict.code(), strict.stderr.lines().count()), (1, 1), "{strict:?}");
    }
    // Programs that stream trace events never close the array.
    assert_folded("[{\"ph\":\"X\",\"ts\":0,\"dur\":3,\"name\":\"f\"},\n", "f 3\n", "");
    assert_folded("@ e [5 samples]\n\n60.0%  [3]  f\n", "f 3\n", "2 of the event's samples are not in the input");
    assert_folded("events: Ir\nfn=f\n1 5\ntotals: 7\n", "f 5\n", "cost 5 together, but its totals are 7");
}

#[test]
fn refuses_inputs_of_different_units() {
    let folder = support::directory();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let raw = |unit: &str| format!("Samples:\nx/{unit}\n7: 1\nLocations\n1: 0x1 M=1 f x:1 s=1\nMappings\n");
    let (time, more) = (file("time", &raw("nanoseconds")), file("more", &raw("nanoseconds")));
    let count = file("count", &raw("count"));
    let same = run("fg-collapse", [&time, &more], b"").ok();
    assert_eq!((same.text().as_str(), same.stderr.as_str()), ("f 14\n", ""));
    let both = run("fg-collapse", [&time, &count, &more], b"");
    assert_eq!((both.code(), &*both.text(), both.stderr.lines().count()), (1, "", 1), "{both:?}");
    assert!(both.stderr.contains(": nanoseconds in ") && both.stderr.contains(", samples in "));
}

#[test]
fn distinguishes_similar_formats() {
    let probe =
        |stack: &str| format!("CPU     ID                    FUNCTION:NAME\n  2  81201   :tick-1s\n\n{stack}\n");
    let ticks = [probe("  a`f+0x1\n  3\n"), probe("  key\n  a`g+0x1\n  4\n")].concat();
    for (text, folded) in [
        (&*ticks, "a`f 3\nkey;a`g 4\n"),
        (
            "\ttarget:  g++\n\tffffffff814b824d wake\n\tffffffff81000d62 irq\n\t  waker: lto a\n\t1146\n",
            "lto a;irq;wake;g++ 1146\n",
        ),
        ("@[x];bar 4\n", "@[x];bar 4\n"),
        (
            "java.lang.Error: a\n\tat a.A.b(A.java:3) ~[a.jar:1.0]\n\tat a.B.c(B.java:3) [classes/:?]\n",
            "a.B.c;a.A.b 1\n",
        ),
        ("@[a]: x 4\n", "@[a]: x 4\n"),
        ("@[\n    f\n]: 4\n", "f 4\n"),
        ("\"a \"b\" c\" #1 prio=5\n java.lang.Thread.State: RUNNABLE\n\tat f(A)\n", "a \"b\" c;f 1\n"),
        ("42\n#3 \"pool-1\" RUNNABLE 2026\n    at java.base/a.B.c(B.java:1)\n\n", "pool;a.B.c 1\n"),
        ("goroutine profile: total 4\n3 @ 0x1\n#\t0x1\tf+0x1\t/a.go:1\n\n1 @ 0x2\n\n", "[unknown] 1\nf 3\n"),
    ] {
        assert_folded(text, folded, "");
    }
    let people = "TRACE START [x]\n    0.0002     393328   -> {main}() /w.php:0\n";
    let outcome = fold(people.as_bytes());
    assert_eq!((outcome.code(), outcome.stderr.lines().count()), (1, 1), "{outcome:?}");
    assert!(outcome.stderr.contains("xdebug.trace_format=1"), "{outcome:?}");
}

#[test]
fn reports_implausible_contents() {
    let nameless = "{\"$schema\":\"x\",\"shared\":{\"frames\":[{\"name\":\"\"}]},\"profiles\":[{\"type\":\"sampled\",\
        \"unit\":\"none\",\"samples\":[[0]],\"weights\":[3]}]}";
    assert_folded(nameless, "[unknown] 3\n", "");
    let map = "{\"type\": \"map\", \"data\": {\"@\": {\"\": 7, \"\\n    f+1\\n    main+2\\n\": 3}}}\n";
    assert_folded(map, "[unknown] 7\nmain;f 3\n", "");
    let small = fold(b"a;b 0.0000001\nc 1\nd 0.0000000\n").ok();
    assert_eq!(small.text(), "c 1\nd 0\n");
    assert!(
        small.stderr.contains("stdin:1: the weight is below 0.000001")
            && small.stderr.contains("skipped 1 malformed line")
    );
    let cyclic = "{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"a\"},\"parent\":2},\
        {\"id\":2,\"callFrame\":{\"functionName\":\"f\"},\"parent\":1}],\"startTime\":0,\"samples\":[2],\"timeDeltas\":[1]}";
    let outcome = fold(cyclic.as_bytes()).ok();
    assert!(outcome.stderr.contains("calls that are their own callers"), "{outcome:?}");
    let entities = "<?xml version=\"1.0\"?><!DOCTYPE t [<!ENTITY e \"boom\">]><trace-query-result><row>\
        <weight id=\"1\">5</weight><backtrace id=\"2\"><frame id=\"3\" name=\"&e;\"/></backtrace></row></trace-query-result>";
    assert_folded(entities, "&e: 5\n", "it defines entities, which are not replaced");
}

#[test]
fn removes_symbol_versions_from_names() {
    let gdb = "#0  memcpy@@GLIBC_2.14 () from /lib/libc.so.6\n#1  f@plt () at a.c:1\n#2  g@GLIBC_2.2.5 () at a.c:1\n";
    assert_folded(gdb, "g;f@plt;memcpy 1\n", "");
    let verbatim = run("fg-collapse", ["--no-tidy"], gdb.as_bytes()).ok().text();
    assert_eq!(verbatim, "g@GLIBC_2.2.5;f@plt;memcpy@@GLIBC_2.14 1\n");
}

/// perf report leaves out stacks with small shares. What they lack of a row is the function's own. Rounding errors are
/// ignored.
#[test]
fn keeps_the_totals_of_perf_report() {
    let report = |samples: &str, stacks: &str| {
        format!(
            "# Samples: {samples}  of event 'cycles'\n# Event count (approx.): 1000000\n#\n# Overhead  Symbol\n{stacks}"
        )
    };
    let counts = "    75.00%  [.] f\n70 f;main\n    25.00%  [.] g\n20 g;main\n5 g\n";
    let unlisted = "5 % of the weight without stacks: perf leaves out those below --percent-limit";
    assert_folded(&report("100", counts), "f 5\ng 5\nmain;f 70\nmain;g 20\n", unlisted);
    let periods = "    66.67%  [.] f\n666660 main;f\n    33.33%  [.] g\n333340 main;g\n";
    assert_folded(&report("3", periods), "main;f 666660\nmain;g 333340\n", "");
    // perf rounds numbers above a thousand: rows without stacks are estimated from rows with stacks.
    assert_folded(
        &report("2K", "    90.00%  [.] f\n1800 f;main\n    10.00%  [.] g\n"),
        "g 200\nmain;f 1800\n",
        "its number of samples is rounded",
    );
    let rounded = "    100.00%  [.] f\n100.00% f;main\n     0.00%  [.] g\n0.00% g;main\n";
    assert_folded(&report("9K", rounded), "main;f 100\n", "");
}

#[test]
fn tables_of_perf_report_may_have_no_functions() {
    let report = |columns: &str, rows: &str| {
        let dots = columns.replace(|letter: char| letter != ' ', ".");
        let heading = format!("# {columns}\n# {dots}\n#\n{rows}");
        format!("# Samples: 100  of event 'cycles'\n# Event count (approx.): 1000000\n#\n{heading}")
    };
    let command = report(
        "Overhead  Command........",
        "    60.00%  app server     \n40.00% f;main\n20.00% g;main\n    40.00%  sh             \n10.00% read;main\n",
    )
    .replace("Command........", "Command        ");
    let warning = "30 % of the weight without stacks";
    assert_folded(&command, "app_server;main;f 40\napp_server;main;g 20\nsh;[unknown] 30\nsh;main;read 10\n", warning);
    let root_first = command.replace("f;main", "main;f").replace("g;main", "main;g").replace("read;main", "main;read");
    assert_folded(
        &root_first,
        "app_server;main;f 40\napp_server;main;g 20\nsh;[unknown] 30\nsh;main;read 10\n",
        warning,
    );
    let threads = "# Samples: 10  of event 'cycles'\n#\n# Overhead      Pid:Command     Shared Object     \n\
        # ........  ..................  ..................\n#\n    70.00%     5354:chromium    libc.so.6         \n7 f;main\n    \
        30.00%     5355:sh          [kernel.kallsyms] \n";
    assert_folded(threads, "chromium;main;f 7\nsh;[kernel.kallsyms] 3\n", "30 % of");
}

#[test]
fn rows_of_perf_report_are_known_without_its_comments() {
    let rows = "    97.60%  app  [.] f\n97.60% f;main\n     2.40%  app  [.] g\n\n";
    let outcome = run("fg-collapse", ["--format=perf-report"], rows.as_bytes()).ok();
    assert_eq!(outcome.text(), "g 2.4\nmain;f 97.6\n", "{outcome:?}");
}

#[test]
fn the_order_of_stacks_in_perf_report_is_no_guess() {
    let report =
        |stacks: &str| format!("# Samples: 9  of event 'e'\n#\n# Overhead  Command\n# ........  .......\n#\n{stacks}");
    // One function is the leaf of all stacks.
    let one_leaf = report("   100.00%  v\n6 hot;main;__libc_start_call_main\n3 hot;th;start_thread\n");
    assert_folded(&one_leaf, "v;__libc_start_call_main;main;hot 6\nv;start_thread;th;hot 3\n", "");
    let one_root = report("   100.00%  v\n6 start_thread;f;a\n3 start_thread;f;b\n");
    assert_folded(&one_root, "v;start_thread;f;a 6\nv;start_thread;f;b 3\n", "");
    let unknown = fold(report("   100.00%  v\n6 a;b\n3 c;d\n").as_bytes());
    assert_eq!((unknown.code(), unknown.stdout.len()), (1, 0), "{unknown:?}");
    assert!(unknown.stderr.contains("nothing tells if its stacks begin with the caller"), "{unknown:?}");
}

#[test]
fn rows_that_perf_report_left_out_give_their_weight_to_no_other() {
    let report = |rows: &str| {
        format!(
            "# Samples: 1000  of event 'e'\n# Event count (approx.): 1000\n#\n# Overhead  Symbol\n# ........  ......\n{rows}"
        )
    };
    let filtered = report("     2.40%  [.] f\n24 f;main\n     0.10%  [.] g\n");
    assert_folded(&filtered, "g 1\nmain;f 24\n", "");
    let whole = report("    97.60%  [.] f\n976 f;main\n     2.41%  [.] g\n");
    assert_folded(&whole, "g 24\nmain;f 976\n", "");
    assert_folded(&filtered.replace("of event 'e'", "of events 'a:b'"), "g 1\nmain;f 24\n", "");
    let array = report("   100.00%  [.] f\n1000 f;<[u8; 8]>::from;main\n");
    assert_folded(&array, "main;<[u8: 8]>::from;f 1000\n", "");
    let group = filtered.replace("of event 'e'", "of events 'anon group { a, b }'");
    let outcome = fold(group.as_bytes());
    assert!(outcome.code() == 1 && outcome.stderr.contains("perf report --no-group"), "{outcome:?}");
    let flat = report("    97.60%  [.] f (inlined)\n     2.40%  [.] g\n");
    assert_folded(&flat, "f 97.6\ng 2.4\n", "a table without stacks");
}

/// Returns the self cost of a function.
fn self_cost(folded: &str, leaf: &str) -> u64 {
    let lines = folded.lines().filter_map(|line| line.rsplit_once(' '));
    lines
        .filter(|(stack, _)| stack.rsplit(';').next() == Some(leaf))
        .map(|(_, cost)| cost.parse::<u64>().unwrap())
        .sum()
}

#[test]
fn keeps_self_costs_of_a_callgrind_graph() {
    let cycle = "events: Ir\nfl=a.c\nfn=main\n1 10\ncfn=even\ncalls=1 1\n1 90\n\nfn=even\n1 7\ncfn=odd\ncalls=5 1\n1 80\n\n\
        fn=odd\n1 70\ncfn=even\ncalls=4 1\n1 60\ncfn=leaf\ncalls=1 1\n1 13\n\nfn=leaf\n1 13\ntotals: 100\n";
    let folded = fold(cycle.as_bytes()).ok().text();
    for (function, cost) in [("main", 10), ("even", 7), ("odd", 70), ("leaf", 13)] {
        assert_eq!(self_cost(&folded, function), cost, "{function}: {folded}");
    }
    assert!(folded.lines().all(|line| line.starts_with("main")), "{folded}");
    // Two functions with one name, in two files and two objects, with different callees.
    let twins = "events: Ir\nob=app\nfl=a.c\nfn=main\n1 1\ncfn=run\ncalls=1 1\n1 30\ncob=lib\ncfi=b.c\ncfn=run\ncalls=1 1\n\
        1 500\n\nfn=run\n1 10\ncfn=x\ncalls=1 1\n1 20\n\nfn=x\n1 20\n\nob=lib\nfl=b.c\nfn=run\n1 100\ncfn=y\ncalls=1 1\n1 400\n\n\
        fn=y\n1 400\ntotals: 531\n";
    let folded = fold(twins.as_bytes()).ok().text();
    assert_eq!(folded, "main 1\nmain;run 110\nmain;run;x 20\nmain;run;y 400\n");
    let placed = run("fg-collapse", ["--srcline"], twins.as_bytes()).ok().text();
    assert!(placed.contains("main:a.c;run:a.c 10\n") && placed.contains("main:a.c;run:b.c 100\n"), "{placed}");
}

const PROGRAM: &str = "#include <stdlib.h>\nvolatile long s;\nstatic long help(int n) { for (int i = 0; i < n; i++) s += i; return s; }\n\
    long odd(int n);\nlong even(int n) { help(20); return n ? odd(n - 1) : 1; }\nlong odd(int n) { return n ? even(n - 1) : 0; }\n\
    long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n\
    int cmp(const void *a, const void *b) { help(3); return *(int *)a - *(int *)b; }\n\
    int main(void) { int v[200]; for (int i = 0; i < 200; i++) v[i] = rand();\n\
    qsort(v, 200, 4, cmp); return (even(30) + odd(21) + fib(12)) == 0; }\n";

#[test]
fn agrees_with_callgrind_annotate() {
    if !support::require("valgrind") || !support::require("gcc") {
        return;
    }
    let folder = support::directory();
    let shell = |line: &str| {
        let mut command = command("sh");
        command.args(["-c", line]).current_dir(folder.path());
        run_command(command, b"").ok()
    };
    std::fs::write(folder.path().join("a.c"), PROGRAM).unwrap();
    shell("gcc -g -O1 -fno-inline -fno-optimize-sibling-calls -o a a.c");
    for option in ["--dump-instr=no", "--compress-strings=no", "--separate-recs=3"] {
        shell(&format!("valgrind -q --tool=callgrind {option} --callgrind-out-file=out ./a"));
        let outcome = run("fg-collapse", ["--no-tidy".as_ref(), folder.path().join("out").as_os_str()], b"").ok();
        let (folded, mut listed) = (outcome.text(), 0);
        assert_eq!(outcome.stderr, "", "{option}");
        let table = shell("callgrind_annotate --threshold=100 --auto=no --show-percs=no out").text();
        // `  5,577  ./string/strcmp.S:strcmp [/usr/lib/ld.so]`
        let rows = table.lines().skip_while(|line| !line.contains("file:function")).skip(2);
        let mut costs = std::collections::BTreeMap::<&str, u64>::new();
        for row in rows.take_while(|row| !row.is_empty()) {
            let (cost, place) = row.trim_start().split_once(' ').unwrap();
            let place = place.trim_start();
            let place = place.rsplit_once(" [").map_or(place, |(place, _)| place);
            *costs.entry(place.split_once(':').unwrap().1).or_default() +=
                cost.replace(',', "").parse::<u64>().unwrap();
        }
        for (function, cost) in costs {
            assert_eq!(self_cost(&folded, function), cost, "{option}: {function}");
            listed += cost;
        }
        let sum: u64 = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
        assert!(sum == listed && sum > 10_000, "{option}: {sum} and {listed}");
    }
}
