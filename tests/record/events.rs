//! What is counted, how often, and what is said of it.

use crate::folded::{Folded, may_record, record};
use crate::programs::program;

#[test]
fn the_summary_says_what_was_counted_and_how_often() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["--", &busy, "0.2"]).ok();
    assert!(outcome.stderr.lines().count() <= 5, "{outcome:?}");
    let total = Folded::of(&outcome).total();
    let first = outcome.stderr.lines().find(|line| line.contains("samples of")).unwrap();
    assert!(first.starts_with(&format!("fg-record: {total} samples of c")), "{outcome:?}");
    assert!(first.contains(" at 997 Hz in "), "{outcome:?}");
    let outcome = record(["-F", "199", "--", &busy, "0.3"]).ok();
    assert!(outcome.stderr.contains(" at 199 Hz in "), "{outcome:?}");
    let total = Folded::of(&outcome).total();
    assert!((30..=80).contains(&total), "{outcome:?}");
    let outcome = record(["-d", "100ms", "-p", &std::process::id().to_string()]).ok();
    assert!(outcome.stderr.contains(" at 99 Hz in "), "{outcome:?}");
}

#[test]
fn events_have_perfs_names() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    for event in ["cpu-clock", "task-clock", "page-faults", "minor-faults"] {
        let outcome = record(["-e", event, "-F", "2000", "--", &busy, "0.05"]).ok();
        assert!(outcome.stderr.contains(&format!("of {event} at 2000 Hz")), "{outcome:?}");
        assert!(Folded::of(&outcome).total() > 0, "{outcome:?}");
    }
}

#[test]
fn cycles_are_counted_or_it_is_said_that_they_cannot_be() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["-e", "cycles", "--", &busy, "0.2"]);
    match outcome.status.success() {
        true => Folded::of(&outcome).assert_share(&["busy", "main", "spin", "step"], 0.8),
        false => {
            assert_eq!(outcome.code(), 125, "{outcome:?}");
            assert!(outcome.stderr.contains("cannot count cycles") && outcome.stderr.contains("-e cpu-clock"));
        }
    }
}

#[test]
fn an_unknown_event_is_told_with_those_there_are() {
    let outcome = record(["-e", "cykles", "--", "true"]);
    assert_eq!(outcome.code(), 2, "{outcome:?}");
    assert!(outcome.stderr.starts_with("fg-record: no event is called cykles; known are "), "{outcome:?}");
    assert!(outcome.stderr.contains("cpu-clock") && outcome.stderr.contains("cycles"), "{outcome:?}");
}

#[test]
fn a_frequency_above_the_kernels_limit_is_refused_with_the_limit() {
    if !may_record() {
        return;
    }
    let outcome = record(["-F", "100000000", "--", "true"]);
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert!(outcome.stderr.contains("-F 100000000 is above kernel.perf_event_max_sample_rate="), "{outcome:?}");
}

#[test]
fn a_stack_may_weigh_its_period() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["-e", "cpu-clock", "--weight", "period", "--", &busy, "0.3"]).ok();
    let profile = Folded::of(&outcome);
    profile.assert_share(&["busy", "main", "spin", "step"], 0.8);
    // Nanoseconds on the CPU, for each sample as many as there are between two at 997 Hz; how many depends on who else runs.
    let nanoseconds = |(stack, weight): &(Vec<String>, u64)| stack[0] == "[lost]" || weight % 1_003_009 == 0;
    assert!(profile.total() > 1_003_009 && profile.0.iter().all(nanoseconds), "{outcome:?}");
}

#[test]
fn several_events_go_to_a_file_each_or_into_one_script() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let folder = crate::support::directory();
    let pattern = folder.path().join("%e.folded");
    let outcome = record(["-e", "cpu-clock,page-faults:u", "-o", pattern.to_str().unwrap(), "--", &busy, "0.3"]);
    assert!(outcome.ok().stderr.contains("of cpu-clock at 997 Hz, page-faults:u every one in "));
    let read = |name: &str| Folded::parse(&std::fs::read(folder.path().join(name)).unwrap());
    let (clock, faults) = (read("cpu-clock.folded"), read("page-faults-u.folded"));
    clock.assert_share(&["busy", "main", "spin", "step"], 0.8);
    assert!(faults.total() > 0 && faults.share(&["spin"]) < 0.5, "{faults:?}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    let outcome = record(["--script", "-e", "cpu-clock", "-e", "page-faults", "--", &busy, "0.1"]).ok();
    for event in [" cpu-clock: ", " page-faults: "] {
        assert!(outcome.text().contains(event), "{outcome:?}");
    }
    let outcome = record(["-e", "cpu-clock,page-faults", "--", "true"]);
    assert_eq!(outcome.code(), 2, "{outcome:?}");
    assert!(outcome.stderr.contains("several events make several profiles"), "{outcome:?}");
}

#[test]
fn an_event_may_be_counted_in_programs_or_in_the_kernel_alone() {
    if !(may_record() && crate::support::has("dd")) {
        return;
    }
    let share = |event: &str| {
        let outcome = record(["-e", event, "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=100", "count=400000"]);
        let profile = Folded::of(&outcome.ok());
        assert!(profile.total() > 20, "{profile:?}");
        profile.share(&["do_syscall_64"])
    };
    assert_eq!(share("cpu-clock:u"), 0.0);
    assert!(share("cpu-clock:k") > 0.5);
}

#[test]
fn tracepoints_are_sampled_every_time() {
    if !may_record() || !std::path::Path::new("/sys/kernel/tracing/events/sched").exists() {
        return crate::support::skip("tracefs is not mounted, or not for us");
    }
    let script = "for n in 1 2 3 4 5 6 7 8; do sleep 0.01; done";
    let outcome = record(["-e", "sched:sched_process_exec", "--", "sh", "-c", script]).ok();
    // And that of the shell itself.
    assert_eq!(Folded::of(&outcome).total(), 9, "{outcome:?}");
    let outcome = record(["-e", "sched:no_such_point", "--", "true"]);
    assert_eq!(
        (outcome.code(), &*outcome.stderr),
        (2, "fg-record: this kernel has no tracepoint sched:no_such_point\n")
    );
}

#[test]
fn what_the_machine_cannot_count_is_said() {
    if !may_record() || record(["-e", "cycles", "--", "true"]).status.success() {
        return;
    }
    for event in ["r1a8", "L1-dcache-load-misses", "cycles:pp", "instructions:u"] {
        let outcome = record(["-e", event, "--", "true"]);
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        assert!(outcome.stderr.starts_with(&format!("fg-record: this machine cannot count {event} ")), "{outcome:?}");
    }
    let outcome = record(["-e", "cpu_core/event=0x3c/", "--", "true"]);
    assert!(
        outcome.stderr.starts_with("fg-record: this machine has no cpu_core to count with; it has "),
        "{outcome:?}"
    );
}

#[test]
fn stacks_are_followed_no_further_than_asked() {
    let (true, Some(unwound)) = (may_record(), program("unwound")) else { return };
    for call_graph in ["dwarf", "fp"] {
        let outcome = record(["--max-stack", "20", "--call-graph", call_graph, "--", &unwound, "deep"]).ok();
        let profile = Folded::of(&outcome);
        // Inlined calls, the thread's name and [truncated] beside them.
        let longest = profile.0.iter().map(|(stack, _)| stack.len()).max().unwrap();
        let least = if call_graph == "dwarf" { 20 } else { 2 };
        assert!((least..=50).contains(&longest), "{longest}");
    }
    let outcome = record(["--max-stack", "60000", "--call-graph", "fp", "--", "true"]);
    let said = "fg-record: --max-stack 60000 is above kernel.perf_event_max_stack=";
    assert!(outcome.code() == 125 && outcome.stderr.starts_with(said), "{outcome:?}");
}

#[test]
fn the_recorder_takes_no_more_of_a_cpu_than_it_may() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["--max-overhead", "0.2", "-F", "9973", "--", &busy, "2"]).ok();
    assert!(outcome.stderr.contains("samples were taken at a reduced rate, at worst one in "), "{outcome:?}");
    let samples: u64 =
        outcome.stderr.split("fg-record: ").find_map(|line| line.split_once(" samples of")).unwrap().0.parse().unwrap();
    assert!(samples < 12_000, "{outcome:?}");
    // What a sample stands for grows as they become fewer: all the time is there.
    let total = Folded::of(&outcome).total();
    assert!((1_500_000_000..2_500_000_000).contains(&total), "{total} {}", outcome.stderr);
}

#[test]
fn a_recording_that_was_starved_says_so() {
    if may_record() {
        // The kernel takes a sample of its clock every 10 microseconds at most, and says that each is worth one.
        let outcome = record(["--max-overhead", "1", "-c", "1000", "--call-graph", "fp", "--", "true"]).ok();
        assert!(outcome.stderr.contains(" % of what was counted: the rest is missing"), "{outcome:?}");
    }
}

#[test]
fn a_value_below_zero_is_refused_in_one_line() {
    let outcome = record(["--interval", "-5", "-o", "x-%t.folded", "--", "true"]);
    assert_eq!(outcome.stderr, "fg-record: -5 stands for nothing: no value here is below zero\n");
    assert_eq!(outcome.code(), 2);
}

#[test]
fn what_contradicts_itself_is_refused() {
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
fn every_fault_is_sampled_unless_asked_otherwise() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["-e", "page-faults", "--", &busy, "0.05"]).ok();
    assert!(outcome.stderr.contains(" of page-faults every one in "), "{}", outcome.stderr);
}
