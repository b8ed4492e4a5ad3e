//! The time between two events, compared with what the recorded program measured itself.

use crate::support::programs::program;
use crate::support::recording::{Profile, can_record_switches, finish, recorder};
use crate::support::statistics::{ensure, statistical};

#[test]
fn the_time_of_calls_is_as_long_as_measured() {
    let Some(program) = program("wakers").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let call = format!("uprobe:{program}:wait_condvar,uretprobe:{program}:wait_condvar");
    for (options, function) in [
        (&["--pair", &call][..], "wait_condvar"),
        (&["--pair", "syscalls:sys_enter_futex,syscalls:sys_exit_futex"], "wait_condvar"),
        (&["--syscall-latency", "--over", "1ms"], "wait_condvar"),
    ] {
        statistical(|| {
            let outcome = finish(recorder([]).args(options).args(["--", &program]).spawn().unwrap()).ok();
            let measured = outcome.stderr.lines().find_map(|line| line.strip_prefix("condvar ")?.parse().ok());
            let measured: f64 = measured.unwrap_or(f64::NAN);
            let recorded = Profile::from_stdout(&outcome).weight(&["condvar", function]) as f64;
            let is_near = (recorded - measured).abs() <= 0.02 * measured;
            ensure!(is_near, "{options:?}: {recorded}, not {measured}: {outcome:?}");
            Ok(())
        });
    }
}

#[test]
fn frequent_pairs_are_sampled_and_counted_exactly() {
    let Some(program) = program("wakers").filter(|_| can_record_switches(&["--wakers"])) else { return };
    statistical(|| {
        let recorder = recorder(["--syscall-latency", "--", &program, "pingpong", "1"]).spawn().unwrap();
        let outcome = finish(recorder).ok();
        let turns = outcome.stderr.lines().find_map(|line| line.strip_prefix("turns ")?.parse().ok());
        let turns: f64 = turns.unwrap_or(f64::NAN);
        let pairs = outcome.stderr.split("microseconds: ").nth(1).and_then(|text| text.split(' ').next());
        let pairs: f64 = pairs.and_then(|number| number.parse().ok()).unwrap_or(f64::NAN);
        // Each turn is two reads and two writes.
        ensure!((pairs - 4.0 * turns).abs() <= 0.02 * pairs, "{pairs} pairs, {turns} turns: {outcome:?}");
        let is_sampled = outcome.stderr.contains("stacks of one in 17");
        ensure!(is_sampled || turns < 10_000.0, "{turns}: {outcome:?}");
        Ok(())
    });
}

/// However fast one follows the other, a few pairs cost little.
#[test]
fn every_pair_of_a_short_program_has_its_stack() {
    if program("wakers").filter(|_| can_record_switches(&["--wakers"])).is_none() {
        return;
    }
    statistical(|| {
        let script = "cd /;".repeat(40);
        let outcome = finish(recorder(["--syscall-latency", "--", "sh", "-c", &script]).spawn().unwrap()).ok();
        let pairs = outcome.stderr.split("microseconds: ").nth(1).and_then(|text| text.split(' ').next());
        let pairs: u64 = pairs.and_then(|number| number.parse().ok()).unwrap_or(0);
        ensure!(pairs > 80 && !outcome.stderr.contains("where pairs were dense"), "{pairs}: {outcome:?}");
        Ok(())
    });
}

#[test]
fn stacks_of_frequent_pairs_share_the_time_of_all() {
    let Some(program) = program("wakers").filter(|_| can_record_switches(&["--wakers"])) else { return };
    for which in ["first", "last"] {
        let options = ["--syscall-latency", "--pair-stack", which, "--", &program, "pingpong", "1"];
        let outcome = finish(recorder(options).spawn().unwrap()).ok();
        let exact = outcome.stderr.split(" pairs (").nth(1).and_then(|text| text.split(' ').next());
        let exact: f64 = exact.and_then(|number| number.parse().ok()).unwrap_or(f64::NAN);
        let recorded: u64 = Profile::from_stdout(&outcome).0.iter().map(|stack| stack.weight).sum();
        let is_equal = (recorded as f64 / 1e6 - exact).abs() <= 0.005 * exact;
        assert!(is_equal, "{recorded} us recorded of {exact} s: {outcome:?}");
    }
}

/// The choice of pairs does not depend on how many a program makes each time.
#[test]
fn functions_that_call_in_turn_have_equal_shares() {
    let Some(program) = program("rotation").filter(|_| can_record_switches(&["--wakers"])) else { return };
    statistical(|| {
        let outcome = finish(recorder(["--syscall-latency", "--", &program, "2"]).spawn().unwrap()).ok();
        let profile = Profile::from_stdout(&outcome);
        let weights: Vec<u64> = (1..=17).map(|number| profile.weight(&[&format!("caller_{number}")])).collect();
        let mean = weights.iter().sum::<u64>() / 17;
        let is_near = |weight: &u64| *weight * 3 > mean && *weight < 3 * mean;
        ensure!(weights.iter().all(is_near), "{weights:?}: {}", outcome.stderr);
        Ok(())
    });
}
