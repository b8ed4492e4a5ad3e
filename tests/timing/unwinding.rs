//! Stacks of programs without frame pointers reach their root, and contain no frames of other calls.

use crate::support::Outcome;
use crate::support::programs::program;
use crate::support::recording::{Profile, Stack, can_record, record};
use crate::support::statistics::{Check, ensure, statistical};

/// Returns the path of the program `unwound` if it can be recorded.
fn unwound() -> Option<String> {
    program("unwound").filter(|_| can_record())
}

/// Checks that enough of the stacks that contain `function` begin at the program's first function and contain `main`, in a
/// recording of `unwound MODE`.
fn check_rooted(mode: &str, function: &str, least: f64) -> Check {
    let profile = Profile::from_stdout(&record(["--", &program("unwound").unwrap(), mode]).ok());
    let (mut all, mut rooted) = (0, 0);
    for stack in profile.0.iter().filter(|stack| stack.contains(&[function])) {
        all += stack.weight;
        rooted += if stack.frames[1] == "_start" && stack.contains(&["main"]) { stack.weight } else { 0 };
    }
    ensure!(all > 10, "{all} samples in {function}");
    let share = rooted as f64 / all as f64;
    ensure!(share > least, "{mode}: {share} reach the root");
    Ok(())
}

#[test]
fn unwinds_a_deep_stack_to_its_root() {
    if unwound().is_some() {
        statistical(|| check_rooted("deep", "deep", 0.9));
    }
}

#[test]
fn unwinds_frames_larger_than_the_copied_stack() {
    if unwound().is_some() {
        statistical(|| check_rooted("wide", "wide", 0.8));
    }
}

#[test]
fn unwinds_through_a_frame_address_in_a_saved_register() {
    if unwound().is_some() {
        statistical(|| check_rooted("realigned", "saver", 0.9));
    }
}

#[test]
fn unwinds_from_a_signal_handler_to_what_it_interrupted() {
    if unwound().is_some() {
        statistical(|| check_rooted("alarmed", "alarmed", 0.9));
    }
}

/// Shares of the stacks of a thread that calls the `odd` and the `even` functions by turns, in the same places of the stack.
struct Mixture {
    /// Stacks that contain both kinds, which are wrong.
    mixed: f64,
    /// Stacks that are truncated.
    truncated: f64,
}

impl Mixture {
    fn measure(outcome: &Outcome) -> Result<Self, String> {
        let contains = |stack: &Stack, prefix: &str| stack.frames.iter().any(|frame| frame.starts_with(prefix));
        let (mut all, mut mixed, mut truncated) = (0, 0, 0);
        for stack in Profile::from_stdout(outcome).0 {
            let (odd, even) = (contains(&stack, "odd"), contains(&stack, "even"));
            all += if odd || even { stack.weight } else { 0 };
            mixed += if odd && even { stack.weight } else { 0 };
            truncated += if contains(&stack, "[truncated]") { stack.weight } else { 0 };
        }
        ensure!(all > 200, "{outcome:?}");
        Ok(Self { mixed: mixed as f64 / all as f64, truncated: truncated as f64 / all as f64 })
    }
}

#[test]
fn later_calls_are_no_callers_of_earlier_ones() {
    let Some(unwound) = unwound() else { return };
    for (frequency, [mode, length]) in
        [("997", ["requests", "10"]), ("997", ["turns", ""]), ("199", ["requests", "0.3"])]
    {
        statistical(|| {
            let outcome = record(["-F", frequency, "--", &unwound, mode, length]).ok();
            let mixed = Mixture::measure(&outcome)?.mixed;
            ensure!(mixed < 0.05, "{mode} {length}: {mixed}");
            // Repeated calls of the same functions from elsewhere cannot all be told from calls that last.
            let is_reported = outcome.stderr.contains("change within milliseconds");
            ensure!(is_reported == (mode == "requests"), "{mode} {length}: {outcome:?}");
            Ok(())
        });
    }
}

#[test]
fn leftovers_in_unwritten_buffers_are_not_on_the_stack() {
    let Some(unwound) = unwound() else { return };
    statistical(|| {
        let Mixture { mixed, truncated } = Mixture::measure(&record(["--", &unwound, "buffers"]).ok())?;
        ensure!(mixed < 0.01 && truncated < 0.9, "{mixed} mixed, {truncated} truncated");
        Ok(())
    });
}

#[test]
fn leftovers_below_a_thread_that_returned_are_not_on_the_stack() {
    let Some(unwound) = unwound() else { return };
    statistical(|| {
        let mixed = Mixture::measure(&record(["--", &unwound, "shallows"]).ok())?.mixed;
        ensure!(mixed < 0.005, "{mixed}");
        Ok(())
    });
}

#[test]
fn stacks_of_a_sleeping_thread_are_complete() {
    let Some(unwound) = unwound() else { return };
    // The ring buffers are read every tenth of a second.
    for (milliseconds, most_truncated) in [("2", 1.0), ("400", 0.4)] {
        statistical(|| {
            let outcome = record(["--off-cpu", "--", &unwound, "naps", milliseconds]).ok();
            let Mixture { mixed, truncated } = Mixture::measure(&outcome)?;
            ensure!(
                mixed == 0.0 && truncated <= most_truncated,
                "{milliseconds} ms: {mixed} mixed, {truncated} truncated"
            );
            Ok(())
        });
    }
}

#[test]
fn samples_within_execve_have_no_stack_and_no_advice() {
    if !can_record() {
        return;
    }
    statistical(|| {
        let script = "for n in $(seq 300); do sh -c 'exec /bin/true'; done";
        let outcome = record(["-v", "-F", "4999", "--", "sh", "-c", script]).ok();
        let cuts = outcome.stderr.lines().find_map(|line| line.strip_prefix("fg-record: stacks truncated: ")).unwrap();
        let count = |cause: &str| {
            let count = cuts.split(", ").find_map(|part| part.strip_suffix(cause));
            count.unwrap_or_else(|| panic!("{cuts}")).parse::<u64>().unwrap()
        };
        ensure!(count(" no stack (in execve)") > 10, "{outcome:?}");
        ensure!(count(" copy too small") == 0, "{outcome:?}");
        ensure!(!outcome.stderr.contains("without unwind information ("), "{outcome:?}");
        Ok(())
    });
}
