//! fg-collapse: variants of formats, written by hand. What other tests check with files of the shared corpus is checked
//! here without it.

use crate::support::{directory, run};

/// Asserts the folded output, and the messages without the program's name and the input's.
#[track_caller]
fn assert_folded(input: &str, folded: &str, messages: &[&str]) {
    let outcome = run("fg-collapse", [""; 0], input.as_bytes()).ok();
    assert_eq!(outcome.text(), folded, "{input}");
    let lines = outcome.stderr.lines().map(|line| line.strip_prefix("fg-collapse: ").unwrap());
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix("stdin:").map_or(line, str::trim_start)).collect();
    assert_eq!(lines.len(), messages.len(), "{outcome:?}");
    for (line, message) in lines.iter().zip(messages) {
        assert!(line.contains(message), "{message}: {outcome:?}");
    }
}

/// Asserts that an input is recognized, and refused because it has no stacks.
#[track_caller]
fn assert_no_stacks(input: &str) {
    let outcome = run("fg-collapse", [""; 0], input.as_bytes());
    let refused = (1, "", "fg-collapse: stdin: no stacks found\n");
    assert_eq!((outcome.code(), outcome.text().as_str(), outcome.stderr.as_str()), refused, "{outcome:?}");
}

/// Makes a trace event document from `PHASE TIME NAME` or `X TIME+DURATION NAME`, separated by commas, of one thread.
fn trace_events(events: &str) -> String {
    let make_event = |event: &str| {
        let [phase, time, name] = event.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{event}") };
        let (time, duration) = time.split_once('+').unwrap_or((time, ""));
        let duration = if duration.is_empty() { String::new() } else { format!(",\"dur\":{duration}") };
        format!("{{\"ph\":\"{phase}\",\"pid\":4,\"tid\":9,\"ts\":{time}{duration},\"name\":\"{name}\"}}")
    };
    format!("[{}]", events.split(", ").map(make_event).collect::<Vec<_>>().join(",\n"))
}

#[test]
fn nests_trace_events_by_time() {
    for (events, folded) in [
        // Equal spans: the order of the document decides which one contains the other.
        ("X 0+20 outer, X 2+3 a, X 2+3 b, X 9+3 b, X 9+3 a", "outer 14\nouter;a;b 3\nouter;b;a 3\n"),
        // Events are sorted by time.
        (
            "B 3 inner, E 7 inner, B 0 outer, E 20 outer, B 2 middle, E 12 middle",
            "outer 10\nouter;middle 6\nouter;middle;inner 4\n",
        ),
        // Calls of one name that begin and end at the same times.
        (
            "B 0 f, B 4 f, B 4 g, B 4 f, E 6 f, E 6 g, E 6 f, B 6 f, B 6 f, E 9 f, E 9 f, E 9 f",
            "f 4\nf;f;f 3\nf;f;g;f 2\n",
        ),
    ] {
        assert_folded(&trace_events(events), folded, &[]);
    }
}

#[test]
fn reports_ends_of_trace_events_without_a_beginning() {
    let events = trace_events("B 0 outer, B 2 inner, E 8 inner, E 9 outer, E 4 late, E 5 later");
    assert_folded(&events, "outer 3\nouter;inner 6\n", &["left out 2 end events without a begin event"]);
    let events = trace_events("B 0 a, B 3 b, E 3 b, E 5 c, B 5 c, X 6+0 d, E 9 a");
    assert_folded(&events, "a 5\na;c 4\n", &["left out 1 end event without a begin event"]);
}

#[test]
fn reads_trace_events_in_an_object_and_without_names() {
    let events = trace_events("B 0 outer, E 9 outer")
        .replace("[{", "[{\"ph\":\"X\",\"pid\":4,\"tid\":9,\"ts\":2,\"tdur\":5},\n{");
    let document = format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":{events},\"otherData\":{{\"a\":[1]}}}}");
    assert_folded(&document, "outer 4\nouter;(unnamed) 5\n", &[]);
}

#[test]
fn names_threads_of_trace_events() {
    let metadata = |pid: u32, tid: u32, kind: &str, name: &str| {
        format!("{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{kind}\",\"args\":{{\"name\":\"{name}\"}}}}")
    };
    let work = |pid: u32, tid: u32, name: &str| {
        format!("{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},\"ts\":5,\"dur\":2,\"name\":\"{name}\"}}")
    };
    let events = [
        metadata(7, 1, "process_name", "server"),
        metadata(7, 1, "thread_name", "acceptor"),
        work(7, 1, "accept"),
        metadata(7, 2, "thread_name", "worker"),
        work(7, 2, "handle"),
        metadata(8, 1, "process_name", "client"),
        work(8, 1, "connect"),
    ];
    let folded = "acceptor;accept 2\nclient;connect 2\nworker;handle 2\n";
    assert_folded(&format!("[{}]", events.join(",")), folded, &[]);
}

#[test]
fn reports_malformed_call_trees_of_sample() {
    let tree = |lines: &str| {
        format!(
            "Analysis of sampling app (pid 5) every 1 millisecond\n\nCall graph:\n    9 Thread_1\n{lines}\nTotal number in stack\n"
        )
    };
    for (line, message) in [
        ("    + main  (in app) + 4  [0x10]\n", "5: expected "),
        ("    + NONSENSE\n", "5: expected "),
        ("    + |:!\n", "5: expected "),
        (" + main  (in app) + 4  [0x10]\n", "5: expected "),
    ] {
        let summary = "skipped 1 malformed line";
        assert_folded(&tree(line), "Thread_1 9\n", &[message, summary]);
    }
    // Indentation with other columns than usual.
    assert_folded(
        &tree("    +  9 main  (in app) + 4  [0x10]\n    +    2 f  (in app) + 4  [0x10]\n"),
        "Thread_1;app`main 7\nThread_1;app`main;app`f 2\n",
        &[],
    );
    // The input ends before the tree, or within it.
    let heading = "Analysis of sampling app (pid 5) every 1 millisecond\nProcess:  app [5]\n";
    assert_no_stacks(heading);
    let cut = format!("{heading}\nCall graph:\n    9 Thread_1\n    + 9 main  (in app) + 4  [0x10]\n");
    assert_folded(&cut, "Thread_1;app`main 9\n", &["cut short: the input ends before its tree"]);
}

#[test]
fn reports_malformed_rows_of_visual_studio_and_vtune() {
    const LEVELS: &str = "Level,Function Name,Number of Calls,Module Name,\n1,\"run\",3,\"a.exe\",\n";
    for row in ["two,\"f\",1,\"a.exe\",", "2,\"f", "2,\"f\",\"1,234.5\",\"a.exe\",", "2"] {
        let message = "3: expected a level, a function";
        assert_folded(&format!("{LEVELS}{row}\n"), "run 3\n", &[message, "skipped 1 malformed line"]);
    }
    const STACKS: &str = "Function Stack,CPU Time:Self,Module\nrun,0.25,a.exe\n";
    for row in ["f", "f,NONSENSE,a.exe"] {
        let message = "3: expected a function";
        assert_folded(&format!("{STACKS}{row}\n"), "a.exe`run 250\n", &[message, "skipped 1 malformed line"]);
    }
    for heading in ["Not a header of any format\n", "war:Column filter is ON.\n"] {
        let outcome = run("fg-collapse", [""; 0], heading.as_bytes());
        assert!(outcome.code() == 1 && outcome.stderr.contains("format"), "{outcome:?}");
    }
    let header = LEVELS.lines().next().unwrap();
    assert_no_stacks(&format!("{header}\n"));
}

#[test]
fn recognizes_dtrace_output_without_stacks() {
    assert_no_stacks("CPU     ID                    FUNCTION:NAME\n  0  12345                         :tick-5s\n");
}

#[test]
fn reads_frames_of_dtrace_with_addresses_and_symbols_of_java() {
    let text = "CPU     ID                    FUNCTION:NAME\n  1   99   :tick-1s\n\n\
        \x20             libjvm.so`JVM_Sleep+0x1a\n              org/acme/Job.run()V*\n              0xfffffd7ffe0\n\
        \x20             app`main+0x3\n                6\n\n";
    assert_folded(text, "app`main;0xfffffd7ffe0;org/acme/Job.run;libjvm.so`JVM_Sleep 6\n", &[]);
}

#[test]
fn a_folded_line_needs_a_complete_weight() {
    let text = "main;a 7\nmain;b .5\nmain;c\nmain;d 1\nmain;e 20.\n";
    assert_folded(text, "main;a 7\nmain;d 1\nmain;e 20\n", &["2: ", "3: ", "skipped 2 malformed lines"]);
}

/// A line that looks like a thread is none where samples begin with more.
#[test]
fn a_line_of_a_program_does_not_divide_a_sample_of_perf() {
    let text = "app 12 [000] 10.5: 1 cycles:\n\tff1 inner (/bin/app)\nStarting worker 5\n\tff2 main (/bin/app)\n\n";
    assert_folded(text, "app;main;inner 1\n", &["3: ", "skipped 1 malformed line"]);
    assert_folded("app 12\n\tff1 inner (/bin/app)\napp 13\n\tff2 main (/bin/app)\n", "app;inner 1\napp;main 1\n", &[]);
}

/// Sorted files are read in ranges, unless they have colours.
#[test]
fn colours_of_folded_files_are_dropped() {
    let folder = directory();
    let path = folder.path().join("coloured");
    for (text, expected) in [
        ("main;a\u{1b}[0m 5\nmain;a 3\n", "main;a 8\n"),
        ("\u{1b}[32mmain;f0\u{1b}[0m 1\n\u{1b}[32mmain;f1\u{1b}[0m 2\n", "main;f0 1\nmain;f1 2\n"),
    ] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(run("fg-collapse", [&path], b"").ok().text(), expected);
    }
}

/// Stacks of signals, and of the ends of other processes, are not those of the call before.
#[test]
fn stacks_of_signals_belong_to_no_system_call_of_strace() {
    let frame = |function: &str| format!(" > /bin/app({function}+0x1) [0x2]\n");
    let text = [
        "7 wait4(-1, NULL, 0, NULL) = 8\n".to_owned(),
        frame("wait"),
        "7 --- SIGCHLD {si_signo=SIGCHLD} ---\n".to_owned(),
        frame("handled"),
        "7 close(3) = 0\n".to_owned(),
        frame("shut"),
        "8 +++ exited with 0 +++\n".to_owned(),
        frame("elsewhere"),
        "7 exit_group(0) = ?\n".to_owned(),
        "7 +++ exited with 0 +++\n".to_owned(),
        " > /bin/app(+0x0) [0x3]\n".to_owned(),
    ];
    let expected = "[app];exit_group 1\nshut;close 1\nwait;wait4 1\n";
    assert_folded(&text.concat(), expected, &[]);
}
