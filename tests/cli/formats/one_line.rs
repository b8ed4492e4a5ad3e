//! Samples of perf in one line, as it prints those without a callchain, with various fields (`-F`).

use crate::support::run;

/// The fields, samples with them, and what they give.
const SAMPLES: &[(&str, &str, &str)] = &[
    ("comm,tid,time,event,ip,sym", " 11546 53938.912375: cpu-clock:      5611fdabd1cb leafB\n", "wfp;leafB 2\n"),
    ("…,symoff", " 11546 53938.912375: cpu-clock:      5611fdabd1cb leafB+0x1e\n", "wfp;leafB 2\n"),
    ("…,symoff,dso", " 11546 53938.912375: cpu-clock:      5611fdabd1cb leafB+0x1e (/a b)\n", "wfp;leafB 2\n"),
    ("…,addr", " 11546 53938.912375: cpu-clock:                0      5611fdabd1cb leafB\n", "wfp;leafB 2\n"),
    (
        "…,addr, which has a symbol",
        " 11546 53938.912375: page-faults:     5600efe47028 data ffffffff821e8700 rep_stos\n",
        "wfp;rep_stos 2\n",
    ),
    (
        "comm,tid,time,period,event,ip",
        " 11546 53938.912375:    2004008 cpu-clock:      5611fdabd1cb\n",
        "wfp;[unknown] 4008016\n",
    ),
    ("comm,tid,period,event,ip,sym", " 11546    2004008 cpu-clock:      5611fdabd1cb leafB\n", "wfp;leafB 4008016\n"),
    ("comm,tid,period,ip,sym", " 11546    2004008      5611fdabd1cb leafB\n", "wfp;leafB 4008016\n"),
    ("comm,tid,ip,sym", " 11546      5611fdabd1cb leafB\n", "wfp;leafB 2\n"),
    ("comm,tid,time,ip,sym", " 11546 53938.912375:            401136 leafB\n", "wfp;leafB 2\n"),
    ("comm,tid,time,ip", " 11546 53938.912375:            401136\n", "wfp;[unknown] 2\n"),
    ("comm,pid,tid,cpu,time,ip,sym,dso", " 1/2 [000] 5.747976:  ffffffff815e150d leafB ([k])\n", "wfp;leafB 2\n"),
    (
        "comm,tid,time,event,ip,sym,dso,insn,insnlen",
        " 1 53.9: c:      5611fdabd1cb leafB (/x) ilen: 7 insn: 48 8b\n",
        "wfp;leafB 2\n",
    ),
];

#[test]
fn samples_without_a_callchain_have_their_frame_whatever_the_other_fields_are() {
    for (fields, sample, folded) in SAMPLES {
        let samples = format!("             wfp{sample}").repeat(2);
        for heading in ["", "# ========\n# captured on    : Fri Nov 27 01:02:03 2026\n# ========\n#\n"] {
            let outcome = run("fg-collapse", ["--strict"], format!("{heading}{samples}").as_bytes()).ok();
            assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), (*folded, ""), "{fields}");
        }
    }
}

#[test]
fn samples_without_the_fields_that_tell_them_are_refused_in_one_way() {
    for text in [
        "             wfp      5611fdabd1cb leafB\n             wfp      5611fdabd181 leafA\n",
        "     5611fdabd1cb leafB\n     5611fdabd181 leafA\n",
        "wfp \n\t    5611fdabd1cb leafB\n\t    5611fdabd1cb main\n\nwfp \n\t    5611fdabd1cb leafA\n\n",
    ] {
        for arguments in [&[][..], &["--format=perf-script"]] {
            let outcome = run("fg-collapse", arguments, text.as_bytes());
            assert_eq!((outcome.code(), outcome.stdout.len()), (1, 0), "{outcome:?}");
            let expected = "perf script text without thread IDs and times; add tid and time to the fields of perf's -F";
            assert_eq!(outcome.stderr, format!("fg-collapse: stdin: {expected}\n"));
        }
    }
}

#[test]
fn the_instruction_of_a_sample_is_no_sample() {
    let sample =
        "wfp 1 5.501332:    2004008 cpu-clock: \n\t            11cb leafB+0x1e (/x)\n ilen: 7 insn: 48 89 15\n\n";
    let outcome = run("fg-collapse", ["--strict"], sample.repeat(2).as_bytes()).ok();
    assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), ("wfp;leafB 4008016\n", ""));
}

/// `perf script -F comm,tid,time,event,ip`
#[test]
fn stacks_of_addresses_alone_have_frames_without_names() {
    let text = "sh  4909 24.287774:  page-faults: \n\tffffffff817554ea\n\t           156bd\n\n\
        sh  4909 24.287775:  page-faults: \n\t           1ab78\n\n";
    let outcome = run("fg-collapse", ["--addrs"], text.as_bytes()).ok();
    let expected = "sh;[unknown <156bd>];[unknown <ffffffff817554ea>] 1\nsh;[unknown <1ab78>] 1\n";
    assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), (expected, ""));
}

#[test]
fn fields_without_the_id_of_a_thread_are_told_by_their_columns() {
    let frame = "\n\t    1000 leaf+0x1 (/bin/app)\n\n";
    for (header, root, weight) in [
        ("app         10 page-faults: ", "app;", 10),
        ("app [000]         10 page-faults: ", "app;", 10),
        ("  4242         10 page-faults: ", "", 10),
        ("  4242 [003]         10 page-faults: ", "", 10),
        ("app [001] 100.000001: cpu-clock: ", "app;", 1),
        ("my app [001] 100.000001:         10 cpu-clock: ", "my_app;", 10),
        ("app 4242         10 page-faults: ", "app;", 10),
        ("app 4242 page-faults: ", "app;", 1),
    ] {
        let outcome = run("fg-collapse", [""; 0], format!("{header}{frame}").repeat(2).as_bytes()).ok();
        assert_eq!(outcome.text(), format!("{root}leaf {}\n", 2 * weight), "{header}: {}", outcome.stderr);
    }
    let unnamed = format!("  4242 100.000001: cpu-clock: {frame}").repeat(2);
    let outcome = run("fg-collapse", ["--comm=app"], unnamed.as_bytes());
    assert_eq!((outcome.code(), outcome.stdout.len()), (1, 0), "{outcome:?}");
    assert!(outcome.stderr.contains("a sample has no thread name, which --comm needs"), "{outcome:?}");
}

/// A text that ends before its first stack does is cut; no option has left the sample out.
#[test]
fn a_text_that_ends_before_its_first_stack_has_no_stacks() {
    for text in ["sample:\n  event_type: cpu-cycles\n", "@ CPU_CLK_UNHALTED [30 samples]\n\n66.67%  [20] "] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        assert_eq!((outcome.code(), outcome.stdout.len()), (1, 0), "{outcome:?}");
        assert!(outcome.stderr.contains("cut short") && !outcome.stderr.contains("--time"), "{outcome:?}");
    }
}
