//! Weights add up to what the input states; what cannot be added up or stored is said.

use std::io::Write as _;

use crate::support::{Outcome, directory, run};

fn collapse(options: &[&str], text: &str) -> Outcome {
    run("fg-collapse", options, text.as_bytes())
}

#[test]
fn rounded_values_of_a_tree_add_up_to_that_of_its_root() {
    let tree = |value: &str, children: [&str; 3]| {
        let [a, b, c] = children;
        format!(
            r#"{{"name":"main","value":{value},"children":[{{"name":"a","value":{a}}},{{"name":"b","value":{b}}},{{"name":"c","value":{c}}}]}}"#
        )
    };
    for (text, expected) in [
        (tree("1.0", ["0.333333333"; 3]), "main;a 0.333333\nmain;b 0.333334\nmain;c 0.333333\n"),
        (tree("2", ["0.6666667"; 3]), "main;a 0.666667\nmain;b 0.666666\nmain;c 0.666667\n"),
        (tree("0.6", ["0.1", "0.2", "0.30000000000000004"]), "main;a 0.1\nmain;b 0.2\nmain;c 0.3\n"),
        (tree("100", ["33.34", "33.34", "33.33"]), "main;a 33.34\nmain;b 33.34\nmain;c 33.32\n"),
        (tree("5.0", ["6.0", "2.0", "1.0"]), "main 5\nmain;a 6\nmain;b 2\nmain;c 1\n"),
    ] {
        let outcome = collapse(&[], &text).ok();
        assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), (expected, ""), "{text}");
    }
}

#[test]
fn weights_that_are_too_small_are_said() {
    let tree = r#"{"name":"main","value":1,"children":[{"name":"a","value":3e-7},{"name":"b","value":0.5}]}"#;
    let sampled = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"f"}]},
"profiles":[{"type":"sampled","unit":"seconds","samples":[[0],[0]],"weights":[1e-7,2]}]}"#;
    let evented = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"f"}]},
"profiles":[{"type":"evented","unit":"seconds","events":[{"type":"O","frame":0,"at":1.00000001},
{"type":"C","frame":0,"at":1.00000003},{"type":"O","frame":0,"at":1.5},{"type":"C","frame":0,"at":2}]}]}"#;
    for (text, expected, message) in [
        (tree, "main 0.5\nmain;b 0.5\n", "1 weight below 0.0000005 left out"),
        (sampled, "f 2\n", "1 number below 0.0000005 read as 0"),
        (evented, "f 0.5\n", "1 time read as equal to the one before"),
        ("main;a 0.0000004\nmain;b 3\n", "main;b 3\n", "the weight is below 0.000001"),
    ] {
        let outcome = collapse(&[], text).ok();
        assert_eq!(outcome.text(), expected, "{outcome:?}");
        assert!(outcome.stderr.contains(message), "{outcome:?}");
    }
}

#[test]
fn stacks_without_weight_are_no_profile() {
    let folder = directory();
    let path = folder.path().join("zeros");
    std::fs::write(&path, "main;a 0\nmain;b 0\n").unwrap();
    let tree = r#"{"name":"root","value":0,"children":[{"name":"a","value":0}]}"#;
    for outcome in [
        run("fg-collapse", [&path], b""),
        run("fg-collapse", ["--sorted".as_ref(), path.as_os_str()], b""),
        collapse(&[], "main;a 0\nmain;b 0\n"),
        collapse(&[], tree),
    ] {
        assert_eq!((outcome.code(), outcome.stderr.lines().count()), (1, 1), "{outcome:?}");
        assert!(outcome.stderr.contains("all stacks have weight 0"), "{outcome:?}");
    }
}

#[test]
fn the_call_that_ends_a_thread_has_its_stack() {
    let frame = |name: &str| format!(" > /a({name}+0x1) [0x1]\n");
    let text = [
        "7 exit(0 <unfinished ...>\n8 futex(0x1, FUTEX_WAIT <unfinished ...>\n7 <... exit resumed>) = ?\n",
        "8 <... futex resumed>) = 0 <0.000115>\n",
        &frame("wait"),
        "7 +++ exited with 0 +++\n",
        &frame("worker"),
        "9 write(1, \"c\", 1) = 1 <0.000013>\n",
        &frame("child"),
        "9 --- SIGTERM {si_signo=SIGTERM} ---\n",
        &frame("handler"),
        "9 +++ killed by SIGTERM +++\n",
        &frame("nowhere"),
        "8 exit_group(0) = ?\n8 +++ exited with 0 +++\n",
        &frame("main"),
    ]
    .concat();
    let outcome = collapse(&["--event=calls"], &text).ok();
    assert_eq!(outcome.text(), "child;write 1\nmain;exit_group 1\nwait;futex 1\nworker;exit 1\n", "{outcome:?}");
}

#[test]
fn maps_of_bpftrace_that_do_not_add_up_are_left_out() {
    let key = r#""\n    f+1\n    main+2\n""#;
    let json = |maps: &[(&str, &str, &str)]| {
        let lines = maps.iter().map(|(kind, name, value)| {
            format!("{{\"type\": \"{kind}\", \"data\": {{\"{name}\": {{{key}: {value}}}}}}}\n")
        });
        lines.collect::<String>()
    };
    let stats = r#"{"count": 3, "average": 5, "total": 15}"#;
    let mixed = collapse(&[], &json(&[("stats", "@a", "5"), ("map", "@b", "7"), ("hist", "@c", "[]")])).ok();
    assert_eq!(mixed.text(), "main;f 7\n");
    assert!(mixed.stderr.contains("averages or histograms, which do not add up: @a, @c"), "{mixed:?}");
    let average = collapse(&[], &json(&[("stats", "@a", "5")]));
    assert_eq!((average.code(), average.stdout.len()), (1, 0), "{average:?}");
    let text = "@a[\n    f+1\n    main+2\n]: count 3, average 5, total 15\n";
    for text in [json(&[("stats", "@a", stats)]), text.to_owned()] {
        let totals = collapse(&[], &text).ok();
        assert_eq!(totals.text(), "main;f 15\n");
        assert!(totals.stderr.contains("using the total"), "{totals:?}");
    }
}

#[test]
fn events_without_a_duration_are_said_to_count() {
    let event = |name: &str, duration: &str| {
        format!(
            "jdk.{name} {{\n  startTime = 10:00:00.000 (2026-11-23)\n{duration}  stackTrace = [\n    A.f() line: 1\n  ]\n}}\n\n"
        )
    };
    let counted = collapse(&["--event=ClassDefine"], &event("ClassDefine", "")).ok();
    assert_eq!(counted.text(), "[unknown];A.f 1\n");
    assert!(counted.stderr.contains("events of jdk.ClassDefine have no duration: each weighs 1"), "{counted:?}");
    let text = event("ThreadPark", "  duration = 20 ns\n") + &event("ThreadPark", "");
    let outcome = collapse(&["--event=ThreadPark"], &text).ok();
    assert_eq!(outcome.text(), "[unknown];A.f 20\n");
    assert!(outcome.stderr.contains("1 event left out: without the duration"), "{outcome:?}");
}

#[test]
fn one_kind_of_allocations_counts() {
    let event = |name: &str, field: &str| {
        format!(
            "jdk.{name} {{\n  startTime = 10:00:00.000 (2026-11-23)\n  {field}\n  stackTrace = [\n    A.f() line: 1\n  ]\n}}\n\n"
        )
    };
    let buffers = event("ObjectAllocationInNewTLAB", "tlabSize = 5 bytes")
        + &event("ObjectAllocationOutsideTLAB", "allocationSize = 2 bytes");
    let both = buffers.clone() + &event("ObjectAllocationSample", "weight = 9 bytes");
    assert_eq!(collapse(&["--event=alloc"], &buffers).ok().text(), "[unknown];A.f 7\n");
    for options in [&[][..], &["--event=alloc"]] {
        let outcome = collapse(options, &both).ok();
        assert_eq!(outcome.text(), "[unknown];A.f 9\n");
        let expected = "using samples of event jdk.ObjectAllocationSample (1); left out: jdk.ObjectAllocation";
        assert!(outcome.stderr.contains(expected), "{outcome:?}");
    }
}

#[test]
fn an_empty_input_among_several_is_said() {
    let folder = directory();
    let [empty, stacks, samples] = ["empty", "stacks", "samples"].map(|name| folder.path().join(name));
    std::fs::write(&empty, "").unwrap();
    std::fs::write(&stacks, "main;a 1\n").unwrap();
    std::fs::write(&samples, "a 1 1.5: 1 e:\n\t            7f00 f+0x1 (/x)\n\n").unwrap();
    for other in [stacks, samples] {
        let outcome = run("fg-collapse", [&empty, &other], b"").ok();
        assert_eq!(outcome.stderr, format!("fg-collapse: {}: no stacks found\n", empty.display()));
    }
}

#[test]
fn colours_that_begin_late_are_dropped() {
    let folder = directory();
    for number in [5_000, 30_000] {
        let lines: String = (0..30_000).map(|line| format!("main;f{:05} 1\n", line % number)).collect();
        let path = folder.path().join("late");
        std::fs::write(&path, lines + "main;\x1b[31mred\x1b[0m 7\n").unwrap();
        for program in ["fg-collapse", "fg-filter"] {
            let outcome = run(program, [&path], b"").ok();
            assert!(outcome.text().ends_with("main;red 7\n"), "{program}: {}", outcome.stderr);
        }
    }
}

#[test]
fn sums_and_prefixes_are_no_stacks_for_any_program() {
    let text = b"Total: 16\nmain;a 5\nmain;b 11\n";
    for (program, options) in [("fg-collapse", &[][..]), ("fg-collapse", &["--sorted"]), ("fg-filter", &[])] {
        let outcome = run(program, options, text).ok();
        assert_eq!(outcome.text(), "main;a 5\nmain;b 11\n", "{program} {options:?}");
        assert!(outcome.stderr.contains("not a sum or a line of a log"), "{outcome:?}");
    }
    let prefixed = b"a.folded:main;a 5\nb.folded:main;b 11\n";
    for (program, options) in
        [("fg-collapse", &[][..]), ("fg-collapse", &["--sorted"]), ("fg-filter", &[]), ("fg-csv", &[]), ("fg-svg", &[])]
    {
        let outcome = run(program, options, prefixed);
        assert_ne!(outcome.code(), 0, "{program} {options:?}");
        assert!(outcome.stderr.contains("use grep -h"), "{outcome:?}");
    }
}

#[test]
fn says_what_to_give_instead_of_reports_and_archives() {
    let archive = [&[b'a'; 257][..], b"ustar\0", &[0; 300]].concat();
    let twice = gzip(&gzip(b"main;f 5\n"));
    let rule = "-".repeat(80);
    for (input, expected) in [
        (&br#"{"snapshot":{"meta":{"node_fields":["type"]}},"nodes":[1]}"#[..], "--heap-prof"),
        (b"{\n  \"header\": {\n    \"reportVersion\": 3,\n    \"event\": \"x\"\n  }\n}\n", "--cpu-prof"),
        (b"8432 :\"f\" \"main\" \nnew page:\"g\" \"main\" \n", "Rprofmem"),
        (
            b"\n      Java Methods\n\nMethod             Samples Percent\n------------------ ------- -------\nA.f()  23  6.55%\n",
            "`jfr print`",
        ),
        (&archive, "tar xOf"),
        (&twice, "compressed more than once"),
        (b";; section 1\n;; section 2\n;; section 3\n", "of unknown format"),
        (b"4a5a9b0affb66c437abcd455d2738af879985fa9 /usr/bin/a\n135afc8c6d1b9e02356cce218bf0109c3687ad9f /usr/b\n", "of unknown"),
        (br#"{"traceEvents":[],"displayTimeUnit":"ns"}"#, "no stacks found"),
        (format!("{rule}\nProfile data file 'callgrind.out.1' (creator: x)\n{rule}\n").as_bytes(), "callgrind.out"),
        (format!("{rule}\nCommand: ./a\nms_print arguments: massif.out.1\n{rule}\n").as_bytes(), "massif.out"),
        (
            b"# Samples: 9K of event 'cycles'\n#\n# Overhead  Command\n# ........  .......\n#\n    95.00%  app\n",
            "perf report -g folded",
        ),
    ] {
        let outcome = run("fg-collapse", [""; 0], input);
        assert_eq!((outcome.code(), outcome.stdout.len(), outcome.stderr.lines().count()), (1, 0, 1), "{outcome:?}");
        assert!(outcome.stderr.contains(expected), "{outcome:?}");
    }
}

#[test]
fn zeros_behind_profiles_of_opentelemetry_are_said() {
    for name in ["otlp.pb", "otlp-1.9.pb"] {
        let profile = std::fs::read(super::folder().join(name)).unwrap();
        let outcome = run("fg-collapse", [""; 0], &[&profile[..], &[0; 16]].concat());
        assert_eq!(outcome.code(), 1, "{name}: {outcome:?}");
        assert!(outcome.stderr.contains("data that is not part of the profile follows"), "{outcome:?}");
    }
}

#[test]
fn values_of_one_name_are_said() {
    let outcome = run("fg-collapse", [""; 0], b"Samples:\na/count a/count\n1 2: 1\n").ok();
    assert!(outcome.stderr.contains("several values named a/count"), "{outcome:?}");
}

#[test]
fn threads_of_a_function_graph_have_calls_of_their_own() {
    let text = "# tracer: function_graph
#
# CPU  DURATION                  FUNCTION CALLS
# |     |   |                     |   |   |   |
 0)               |  sys_read() {
 0)               |    schedule() {
 ------------------------------------------
 0)   cat-12       =>   bash-7     
 ------------------------------------------

 0)   2.000 us    |  sys_write();
 ------------------------------------------
 0)   bash-7       =>   cat-12     
 ------------------------------------------

 0)   9.000 us    |    } /* schedule */
 0) + 10.000 us   |  } /* sys_read */
";
    let outcome = collapse(&[], text).ok();
    assert_eq!(outcome.text(), "sys_read 1\nsys_read;schedule 9\nsys_write 2\n", "{outcome:?}");
    let refused = collapse(&["--comm=cat"], text);
    assert!(refused.code() == 1 && refused.stderr.contains("function_graph"), "{refused:?}");
}

/// The frames of a stack whose value is no count must not become callers of the next one.
#[test]
fn a_value_that_is_no_count_drops_its_stack() {
    let dtrace = |value: &str| {
        format!(
            "\n              libc.so`read+0x1\n              a`main+0x2\n{value}\n\n              libc.so`write+0x1\n              \
             a`main+0x2\n                7\n"
        )
    };
    let histogram = "\n           value  ------------- Distribution ------------- count    \n               0 |             \
                     0        \n               1 |@@@@@@@      5        \n";
    let bcc = |value: &str| {
        format!(
            "    f\n    main\n    -                proc (12)\n{value}\n\n    g\n    main\n    -                proc (12)\n        7\n"
        )
    };
    let systemtap = "  0x40 : f+0x1/0x10 [a]\n  0x41 : main+0x1/0x10 [a]\n  -5\n  0x40 : g+0x1/0x10 [a]\n  0x41 : \
                     main+0x1/0x10 [a]\n  7\n";
    let stackcount =
        "  f\n  main\n    tar [15069]\n    -5\n\n  g\n  main\n    tar [15069]\n    7\n\n  g\n  main\n    3\n";
    for (text, expected) in [
        (dtrace("  -3"), "a`main;libc.so`write 7\n"),
        (dtrace("               -3"), "a`main;libc.so`write 7\n"),
        (dtrace("  1.5"), "a`main;libc.so`write 7\n"),
        (dtrace(histogram), "a`main;libc.so`write 7\n"),
        (bcc("        -5"), "proc;main;g 7\n"),
        (
            bcc("     usecs               : count     distribution\n         0 -> 1          : 5        |****|"),
            "proc;main;g 7\n",
        ),
        (systemtap.to_owned(), "main;g 7\n"),
        (stackcount.to_owned(), "main;g 3\ntar;main;g 7\n"),
    ] {
        let outcome = run("fg-collapse", [] as [&str; 0], text.as_bytes()).ok();
        assert_eq!(outcome.text(), expected, "{outcome:?}");
        assert!(outcome.stderr.contains("expected a count, found a negative,"), "{outcome:?}");
    }
}

#[test]
fn a_negative_value_of_a_node_is_left_out_with_a_message() {
    let text = r#"{"name":"root","value":2,"children":[{"name":"a","value":-1},{"name":"b","value":3}]}"#;
    let outcome = run("fg-collapse", [] as [&str; 0], text.as_bytes()).ok();
    assert_eq!(outcome.text(), "b 2\n");
    assert!(outcome.stderr.contains("1 node left out: its weight is missing or invalid"), "{outcome:?}");
}

#[test]
fn events_without_sizes_or_durations_are_counted_or_refused() {
    let event = |name: &str, field: &str| {
        format!(
            "{name} {{\n  startTime = 03:20:23.184 (2026-11-29)\n{field}  eventThread = \"main\" (javaThreadId = 1)\n  \
             stackTrace = [\n    A.f() line: 1\n    A.main() line: 2\n  ]\n}}\n\n"
        )
    };
    let old = event("jdk.OldObjectSample", "").repeat(2);
    let outcome = run("fg-collapse", ["--event", "jdk.OldObjectSample"], old.as_bytes()).ok();
    assert_eq!(outcome.text(), "main;A.main;A.f 2\n");
    let thrown = event("jdk.JavaExceptionThrow", "  duration = 0 s\n").repeat(2);
    let outcome = run("fg-collapse", [] as [&str; 0], thrown.as_bytes());
    assert_eq!((outcome.code(), &*outcome.text()), (1, ""));
    assert!(outcome.stderr.contains("all stacks have weight 0; --weight samples counts them"), "{outcome:?}");
    let counted = run("fg-collapse", ["--weight", "samples"], thrown.as_bytes()).ok();
    assert_eq!(counted.text(), "main;A.main;A.f 2\n");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A profile of one sample with the values `flat` 2 and `cum` 5, as `go tool pprof -topproto` writes it.
const SUMS_OF_FUNCTIONS: &[u8] =
    b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x02\x12\x06\x08\x01\x10\x02\x10\x05\x22\x06\x08\x01\x22\x02\
\x08\x01\x2a\x04\x08\x01\x10\x04\x32\x00\x32\x04flat\x32\x05count\x32\x03cum\x32\x04work";

#[test]
fn sums_of_functions_and_their_callees_are_no_default() {
    let outcome = run("fg-collapse", [""; 0], SUMS_OF_FUNCTIONS).ok();
    assert_eq!(outcome.text(), "work 2\n", "{outcome:?}");
    assert_eq!(run("fg-collapse", ["--event=cum"], SUMS_OF_FUNCTIONS).ok().text(), "work 5\n");
}

#[test]
fn a_thread_whose_name_ends_like_a_key_is_no_text_before_the_profile() {
    let text = "1234: 646\n1234:;f 650\n";
    let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
    assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), (text, ""));
}
