//! The time between two events. How long that is is in the target `timing`.

use crate::support::programs::program;
use crate::support::recording::{Profile, can_record_switches, finish, recorder};
use crate::support::{Outcome, run, skip};

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
        (&["--io-latency", "--interval", "1m"], "--interval and --max-overhead cannot be used"),
        (&["--io-latency", "--lock-wait"], "cannot be used with"),
        (&["--io-latency", "--off-cpu"], "cannot be used with"),
        (&["--run-queue", "--wakers"], "cannot be used with"),
        (&["--io-latency", "--call-graph", "fp"], "need whole stacks"),
    ] {
        let outcome = finish(recorder([]).args(options).args(["--", "true"]).spawn().unwrap());
        assert_eq!(outcome.code(), 2, "{options:?}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{options:?}: {outcome:?}");
    }
}
