//! Events: names, modifiers, frequencies, and the summary that reports them.

use std::path::Path;

use crate::support::programs::program;
use crate::support::recording::{Profile, can_record, can_record_switches, finish, record, recorder};
use crate::support::{directory, require, skip};

#[test]
fn the_summary_reports_event_count_and_frequency() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let outcome = record(["--", &busy, "0.2"]).ok();
    assert!(outcome.stderr.lines().count() <= 5, "{outcome:?}");
    let total = Profile::from_stdout(&outcome).total();
    let first = outcome.stderr.lines().find(|line| line.contains("samples of")).unwrap();
    assert!(first.starts_with(&format!("fg-record: {total} samples of c")), "{outcome:?}");
    assert!(first.contains(" at 997 Hz in "), "{outcome:?}");
    let outcome = record(["-F", "199", "--", &busy, "0.1"]).ok();
    assert!(outcome.stderr.contains(" at 199 Hz in "), "{outcome:?}");
    let outcome = record(["-d", "100ms", "-p", &std::process::id().to_string()]).ok();
    assert!(outcome.stderr.contains(" at 99 Hz in "), "{outcome:?}");
}

#[test]
fn takes_event_names_of_perf() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    for event in ["cpu-clock", "task-clock", "page-faults", "minor-faults"] {
        let outcome = record(["-e", event, "-F", "2000", "--", &busy, "0.05"]).ok();
        assert!(outcome.stderr.contains(&format!("of {event} at 2000 Hz")), "{outcome:?}");
        assert!(Profile::from_stdout(&outcome).total() > 0, "{outcome:?}");
    }
}

#[test]
fn rejects_periods_of_software_events_at_a_frequency() {
    for (event, option) in [("page-faults", "--weight=period"), ("cpu-clock,context-switches", "--max-overhead=5")] {
        let outcome = record(["-e", event, "-F", "99", option, "-o", "%e.folded", "--", "true"]);
        let (option, event) = (option.split('=').next().unwrap(), event.rsplit(',').next().unwrap());
        let refusal = format!("fg-record: {option}");
        assert!(outcome.code() == 2 && outcome.stderr.starts_with(&refusal), "{outcome:?}");
        assert!(outcome.stderr.contains(&format!("-F and {event}: ")), "{outcome:?}");
    }
}

#[test]
fn counts_cycles_or_reports_that_it_cannot() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let outcome = record(["-e", "cycles", "--", &busy, "0.2"]);
    if outcome.status.success() {
        Profile::from_stdout(&outcome).assert_contains(&["busy", "main", "spin", "step"]);
    } else {
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        assert!(
            outcome.stderr.contains("-e cycles: this machine cannot count cycles")
                && outcome.stderr.contains("-e cpu-clock")
        );
    }
}

#[test]
fn rejects_an_unknown_event_and_lists_known_ones() {
    let outcome = record(["-e", "cykles", "--", "true"]);
    assert_eq!(outcome.code(), 2, "{outcome:?}");
    assert!(outcome.stderr.starts_with("fg-record: -e cykles: no such event; expected one of "), "{outcome:?}");
    assert!(outcome.stderr.contains("cpu-clock") && outcome.stderr.contains("cycles"), "{outcome:?}");
}

#[test]
fn rejects_a_frequency_above_the_kernels_limit() {
    if !can_record() {
        return;
    }
    let outcome = record(["-F", "100000000", "--", "true"]);
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert!(outcome.stderr.contains("-F 100000000 is above kernel.perf_event_max_sample_rate="), "{outcome:?}");
}

#[test]
fn weighs_stacks_by_period() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let outcome = record(["-e", "cpu-clock", "--weight", "period", "--", &busy, "0.3"]).ok();
    let profile = Profile::from_stdout(&outcome);
    profile.assert_contains(&["busy", "main", "spin", "step"]);
    // A period at 997 Hz in nanoseconds. The number of samples depends on who else runs.
    const PERIOD: u64 = 1_003_009;
    let is_multiple = |weight| weight % PERIOD == 0;
    assert!(profile.total() > PERIOD, "{outcome:?}");
    assert!(profile.0.iter().all(|stack| stack.thread() == "[lost]" || is_multiple(stack.weight)), "{outcome:?}");
}

#[test]
fn writes_several_events_to_a_file_each_or_into_one_script() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let folder = directory();
    let pattern = folder.path().join("%e.folded");
    let outcome = record(["-e", "cpu-clock,page-faults:u", "-o", pattern.to_str().unwrap(), "--", &busy, "0.3"]);
    assert!(outcome.ok().stderr.contains("of cpu-clock at 997 Hz, page-faults:u at each event in "));
    let read = |name: &str| Profile::parse(&std::fs::read(folder.path().join(name)).unwrap());
    let (clock, faults) = (read("cpu-clock.folded"), read("page-faults-u.folded"));
    clock.assert_contains(&["busy", "main", "spin", "step"]);
    assert!(faults.total() > 0 && faults.share(&["spin"]) < 0.5, "{faults:?}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    let outcome = record(["--script", "-e", "cpu-clock", "-e", "page-faults", "--", &busy, "0.1"]).ok();
    for event in [" cpu-clock: ", " page-faults: "] {
        assert!(outcome.text().contains(event), "{outcome:?}");
    }
    let outcome = record(["-e", "cpu-clock,page-faults", "--", "true"]);
    assert_eq!(outcome.code(), 2, "{outcome:?}");
    assert!(outcome.stderr.contains("several events need several files"), "{outcome:?}");
}

#[test]
fn counts_user_space_or_the_kernel_alone() {
    if !(can_record() && require("dd")) {
        return;
    }
    let profile = |event: &str| {
        let outcome = record(["-e", event, "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=100", "count=400000"]);
        Profile::from_stdout(&outcome.ok())
    };
    let user = profile("cpu-clock:u");
    user.assert_lacks(&["do_syscall_64"]);
    user.assert_contains(&["dd"]);
    profile("cpu-clock:k").assert_contains(&["dd", "do_syscall_64"]);
}

#[test]
fn samples_every_tracepoint_hit() {
    if !can_record() || !Path::new("/sys/kernel/tracing/events/sched").exists() {
        return skip("tracefs is not mounted or not readable");
    }
    let script = "for n in 1 2 3 4 5 6 7 8; do sleep 0.01; done";
    let outcome = record(["-e", "sched:sched_process_exec", "--", "sh", "-c", script]).ok();
    // Eight times sleep, and once the shell itself.
    assert_eq!(Profile::from_stdout(&outcome).total(), 9, "{outcome:?}");
    let outcome = record(["-e", "sched:no_such_point", "--", "true"]);
    assert_eq!(
        (outcome.code(), &*outcome.stderr),
        (2, "fg-record: -e sched:no_such_point: this kernel has no such tracepoint\n")
    );
}

#[test]
fn reports_events_that_the_machine_cannot_count() {
    if !can_record() || record(["-e", "cycles", "--", "true"]).status.success() {
        return;
    }
    for event in ["r1a8", "L1-dcache-load-misses", "cycles:pp", "instructions:u"] {
        let outcome = record(["-e", event, "--", "true"]);
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        assert!(outcome.stderr.starts_with(&format!("fg-record: -e {event}: this machine cannot ")), "{outcome:?}");
    }
    let outcome = record(["-e", "cpu_core/event=0x3c/", "--", "true"]);
    assert!(
        outcome.stderr.starts_with("fg-record: -e cpu_core/event=0x3c/: this machine has no PMU cpu_core; it has "),
        "{outcome:?}"
    );
}

#[test]
fn max_stack_limits_the_depth() {
    let (true, Some(unwound)) = (can_record(), program("unwound")) else { return };
    for call_graph in ["dwarf", "fp"] {
        let outcome = record(["--max-stack", "20", "--call-graph", call_graph, "--", &unwound, "deep"]).ok();
        let profile = Profile::from_stdout(&outcome);
        // Inlined calls, the thread's name and [truncated] do not count.
        let longest = profile.0.iter().map(|stack| stack.frames.len()).max().unwrap();
        let least = if call_graph == "dwarf" { 20 } else { 2 };
        assert!((least..=50).contains(&longest), "{longest}");
    }
    let outcome = record(["--max-stack", "60000", "--call-graph", "fp", "--", "true"]);
    let message = "fg-record: --max-stack 60000 is above kernel.perf_event_max_stack=";
    assert!(outcome.code() == 125 && outcome.stderr.starts_with(message), "{outcome:?}");
}

#[test]
fn rejects_a_negative_value_in_one_line() {
    let outcome = record(["--interval", "-5", "-o", "x-%t.folded", "--", "true"]);
    assert_eq!(outcome.stderr, "fg-record: unexpected argument -5: no option takes a negative number\n");
    assert_eq!(outcome.code(), 2);
}

#[test]
fn rejects_contradicting_options() {
    for arguments in [
        ["-ecpu-clock,cpu-clock", "-o", "x-%e.folded", "--", "true"],
        ["--wall", "-C", "0", "--", "true"],
        ["--off-cpu", "--min-block=2s", "--max-block=1s", "--", "true"],
    ] {
        let outcome = record(arguments);
        assert_eq!(outcome.code(), 2, "{outcome:?}");
    }
}

#[test]
fn samples_every_page_fault_by_default() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let outcome = record(["-e", "page-faults", "--", &busy, "0.05"]).ok();
    assert!(outcome.stderr.contains(" of page-faults at each event in "), "{}", outcome.stderr);
}

#[test]
fn a_filter_selects_records_of_a_tracepoint() {
    let Some(program) = program("wakers").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let record = |filter: &str| {
        let options = ["-e", "sched:sched_switch", "--filter", filter, "--"];
        finish(recorder(options).args([&program, "lock"]).spawn().unwrap())
    };
    let profile = Profile::from_stdout(&record("prev_comm == \"convoy\"").ok());
    assert!(!profile.0.is_empty() && profile.0.iter().all(|stack| stack.thread() == "convoy"), "{profile:?}");
    assert_eq!(Profile::from_stdout(&record("prev_pid < 0").ok()).total(), 0);
    let outcome = record("prev_pit < 0");
    assert_eq!((outcome.code(), &*outcome.text()), (2, ""), "{outcome:?}");
    assert!(
        outcome.stderr.contains("the kernel rejects it; ") && outcome.stderr.contains(", prev_pid, "),
        "{outcome:?}"
    );
    for options in [&["-e", "cpu-clock"][..], &["-e", "sched:sched_switch,sched:sched_waking", "--script"], &[]] {
        let outcome = finish(recorder([]).args(options).args(["--filter", "pid > 1", "--", "true"]).spawn().unwrap());
        assert_eq!(outcome.code(), 2, "{outcome:?}");
    }
}
