//! The time between two events. How long that is is in the target `timing`.

use std::collections::BTreeSet;

use crate::support::programs::program;
use crate::support::recording::{Profile, Stack, can_record_switches, finish, recorder};
use crate::support::{Outcome, require, run, skip};

/// Returns the path of the program whose threads wait in known ways, if pairs of events can be recorded.
fn wakers() -> Option<String> {
    let program = program("wakers").filter(|_| can_record_switches(&["--wakers"]))?;
    let probe = run("fg-record", ["--syscall-latency", "--", "true"], b"");
    if !probe.status.success() {
        skip(&probe.stderr);
    }
    probe.status.success().then_some(program)
}

fn record_wakers(options: &[&str], program: &str) -> (Profile, Outcome) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut recorder = recorder([]);
    recorder.args(options).args(["--", program]).env("WAKERS_FILE", folder.path().join("wakers.disk"));
    let outcome = finish(recorder.spawn().unwrap()).ok();
    (Profile::from_stdout(&outcome), outcome)
}

#[test]
fn calls_of_a_function_are_paired_with_their_returns() {
    let Some(program) = wakers() else { return };
    let pair = format!("uprobe:{program}:wait_pipe,uretprobe:{program}:wait_pipe");
    let (profile, outcome) = record_wakers(&["--pair", &pair], &program);
    profile.assert_contains(&["pipe", "waiter", "wait_pipe"]);
    assert!(outcome.stderr.contains("microseconds: 40 pairs ("), "{outcome:?}");
    assert!(profile.0.iter().all(|stack| stack.thread() == "pipe"), "{outcome:?}");
    // The function has returned when its stack is taken.
    let (profile, outcome) = record_wakers(&["--pair", &pair, "--pair-stack", "last"], &program);
    profile.assert_contains(&["pipe", "waiter"]);
    profile.assert_lacks(&["wait_pipe"]);
    assert!(outcome.stderr.contains("microseconds: 40 pairs ("), "{outcome:?}");
}

#[test]
fn calls_of_a_recursive_function_are_paired_with_their_own_returns() {
    let Some(program) = wakers().and_then(|_| program("callers")) else { return };
    const DEPTH: usize = 10;
    let pair = format!("uprobe:{program}:descend,uretprobe:{program}:descend");
    let mut recorder = recorder([]);
    recorder.args(["--pair", &pair, "--", &program, "0.05", &DEPTH.to_string()]);
    let outcome = finish(recorder.spawn().unwrap()).ok();
    let profile = Profile::from_stdout(&outcome);
    // The kernel has replaced the return address of each call that is not over.
    assert!(outcome.stderr.contains("\nfg-record: 0 lost, 0 stacks truncated"), "{outcome:?}");
    let (_, pairs) = outcome.stderr.split_once("microseconds: ").unwrap();
    let pairs: usize = pairs.split(' ').next().unwrap().parse().unwrap();
    assert!(pairs > 0 && pairs.is_multiple_of(DEPTH), "{outcome:?}");
    let calls = |stack: &Stack| stack.frames.iter().filter(|frame| *frame == "descend").count();
    let depths: BTreeSet<usize> = profile.0.iter().map(calls).collect();
    assert_eq!(depths, (1..=DEPTH).collect(), "{outcome:?}");
    assert!(profile.0.iter().all(|stack| stack.frames.iter().any(|frame| frame == "main")), "{outcome:?}");
}

#[test]
fn pairs_that_others_represent_are_not_lost() {
    if wakers().is_none() {
        return;
    }
    // How many pairs are dense, and how many are left at the end, differs from run to run.
    for commands in (4..=48).step_by(4) {
        let mut recorder = recorder(["--syscall-latency"]);
        recorder.args(["--", "sh", "-c", &"/bin/true; ".repeat(commands)]);
        let outcome = finish(recorder.spawn().unwrap()).ok();
        assert!(outcome.stderr.contains("\nfg-record: 0 lost, "), "{outcome:?}");
        assert!(!outcome.stderr.contains("pairs lost") && !outcome.text().contains("[lost]"), "{outcome:?}");
    }
}

#[test]
fn pairs_on_other_cpus_are_left_out() {
    if wakers().is_none() || !require("taskset") {
        return;
    }
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        return skip("there is only one CPU");
    }
    let count = |cpu: &str, loops: usize| {
        let mut recorder = recorder(["--syscall-latency", "-C", cpu]);
        recorder.args(["--", "taskset", "-c", "1", "sh", "-c", &"cd /;".repeat(loops)]);
        let outcome = finish(recorder.spawn().unwrap()).ok();
        assert!(outcome.stderr.contains("\nfg-record: 0 lost, ") && !outcome.text().contains("[lost]"), "{outcome:?}");
        let pairs = outcome.stderr.split("microseconds: ").nth(1).and_then(|text| text.split(' ').next());
        pairs.and_then(|number| number.parse::<usize>().ok()).unwrap_or_else(|| panic!("{outcome:?}"))
    };
    // taskset itself runs on any CPU.
    assert!(count("0", 1000) < 500);
    assert!(count("1", 1000) >= 1000);
}

#[test]
fn only_pairs_over_a_threshold_have_stacks() {
    let Some(program) = wakers() else { return };
    let (profile, outcome) = record_wakers(&["--syscall-latency", "--over", "3ms"], &program);
    profile.assert_contains(&["pipe", "waiter", "wait_pipe"]);
    assert!(outcome.stderr.contains(" shorter than 3ms left out ("), "{outcome:?}");
    let (profile, outcome) = record_wakers(&["--syscall-latency", "--over", "1h"], &program);
    assert!(profile.0.is_empty() && outcome.stderr.contains("microseconds: 0 pairs (0.000 s), "), "{outcome:?}");
}

#[test]
fn events_of_different_threads_are_paired_by_a_field() {
    let Some(program) = wakers() else { return };
    let (profile, outcome) = record_wakers(&["--pair", "sched:sched_waking,sched:sched_wakeup:pid"], &program);
    profile.assert_contains(&["pipe_w", "waker", "wake_pipe"]);
    profile.assert_contains(&["condvar_w", "waker", "wake_condvar"]);
    assert!(!outcome.stderr.contains("pairs lost"), "{outcome:?}");
}

#[test]
fn the_wait_for_a_cpu_is_recorded_alone() {
    let Some(program) = wakers() else { return };
    let (profile, outcome) = record_wakers(&["--run-queue"], &program);
    assert!(profile.0.iter().all(|stack| ["[runnable]", "[lost]"].contains(&stack.leaf())), "{outcome:?}");
    profile.assert_contains(&["pipe_w", "waker", "pause_ms", "[runnable]"]);
    assert!(!outcome.stderr.contains("blocks"), "{outcome:?}");
}

#[test]
fn rejects_what_is_no_pair() {
    if wakers().is_none() {
        return;
    }
    for (options, message) in [
        (&["--pair", "sched:sched_switch"][..], "expected FROM,TO"),
        (&["--pair", "sched:sched_switch,cycles"], "expected a tracepoint"),
        (&["--pair", "sched:sched_switch,sched:no_such"], "--pair: sched:no_such"),
        (
            &["--pair", "sched:sched_switch,sched:sched_waking:pid"],
            "sched:sched_switch has no numeric field pid; it has ",
        ),
        (&["--pair", "sched:sched_switch,sched:sched_waking:a+b+c"], "a key is tid"),
        (&["--pair", "uretprobe:/bin/sh:main,sched:sched_waking:pid"], "has no fields"),
        (&["--over", "1ms"], "--over requires --pair"),
        (&["--pair-stack", "first"], "--pair-stack requires --pair"),
        (&["--io-latency", "--interval", "1m"], "--interval cannot be used with options that record time"),
        (
            &["--critical-path", "main", "--max-overhead", "2"],
            "--max-overhead cannot be used with options that record time",
        ),
        (&["--off-cpu", "--clock", "realtime"], "--clock requires --script"),
        (&["--io-latency", "--lock-wait"], "cannot be used with"),
        (&["--io-latency", "--off-cpu"], "cannot be used with"),
        (&["--run-queue", "--wakers"], "cannot be used with"),
        (&["--io-latency", "--call-graph", "fp"], "need whole stacks"),
        (&["--syscall-latency", "--min-block", "1ms"], "--min-block requires --off-cpu; use --over"),
        (&["--lock-wait", "--max-block", "1ms"], "--max-block requires --off-cpu"),
        (&["--syscall-latency", "--pair-stack", "first", "-C", "0"], "use --pair-stack last"),
    ] {
        let outcome = finish(recorder([]).args(options).args(["--", "true"]).spawn().unwrap());
        assert_eq!(outcome.code(), 2, "{options:?}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{options:?}: {outcome:?}");
    }
}
