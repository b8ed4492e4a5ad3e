//! Recordings under other kernels: the BPF program takes right stacks where it can be loaded, and elsewhere the kernel
//! copies them.
//!
//! QEMU boots the kernels that Debian builds for clouds, without hardware virtualization. Nothing is installed.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod guest;

use std::path::{Path, PathBuf};

use guest::GuestOutcomes;
use support::callers::LeafSamples;
use support::recording::Profile;
use support::statistics::{Check, ensure, statistical};
use support::{Outcome, command, programs, require, run_command, skip};

/// Depths of the recorded stacks, in frames of about 1,000 bytes. A copy of 65,528 bytes contains the first two.
const DEPTHS: [usize; 4] = [1, 60, 500, 900];
const COPIED: usize = 2;

/// Linux 5.10, which has no bpf_loop.
#[test]
fn copies_stacks_where_the_kernel_rejects_the_program() {
    let check_refusal = |outcome: &Outcome| {
        assert_eq!((outcome.code(), &*outcome.text()), (125, ""), "{outcome:?}");
        assert!(outcome.stderr.contains("this kernel rejects the BPF program"), "{outcome:?}");
    };
    let check_others = |outcomes: &GuestOutcomes| {
        check_refusal(&outcomes.wakers);
        let sleeper = &outcomes.sleeper;
        assert!(Profile::from_stdout(sleeper).weight(&["sleep", "[unsampled]", "[off-cpu]"]) > 0, "{sleeper:?}");
        check_refusal(&outcomes.spans);
        check_refusal(&outcomes.pairs);
        check_calls(&outcomes.calls, 0)
    };
    let check_callers = |outcome: &Outcome, depth| {
        let is_reason =
            |line: &str| line.contains("stacks copied") && line.contains("this kernel rejects the BPF program");
        assert!(outcome.stderr.lines().any(is_reason), "{outcome:?}");
        let LeafSamples { all, truncated } = LeafSamples::count(&Profile::from_stdout(outcome), depth);
        match DEPTHS[..COPIED].contains(&depth) {
            true => check_rooted(outcome, depth),
            false => {
                ensure!(all >= 10, "{all} samples at depth {depth}");
                assert!(truncated == all, "{outcome:?}");
                Ok(())
            }
        }
    };
    check_recordings("debian-security", "bullseye-security", check_callers, check_others);
}

#[test]
fn takes_stacks_under_linux_6_1() {
    check_recordings("debian-security", "bookworm-security", check_taken, check_others);
}

#[test]
fn takes_stacks_under_linux_6_12() {
    check_recordings("debian", "bookworm-backports", check_taken, check_others);
}

#[test]
#[ignore = "Debian replaces this kernel every few weeks: its failure is no fault of a change here"]
fn takes_stacks_under_the_newest_kernel() {
    check_recordings("debian", "trixie-backports", check_taken, check_others);
}

/// Records programs under the kernel of a suite of Debian, and checks the outcome of `callers` at each depth, and those of
/// other programs.
fn check_recordings(
    path: &str,
    suite: &str,
    check_callers: impl Fn(&Outcome, usize) -> Check,
    check_others: impl Fn(&GuestOutcomes) -> Check,
) {
    let programs = ["callers", "spans", "rare_blocks", "sizes"].map(programs::program);
    let (Some(kernel), [Some(callers), Some(spans), Some(rare), Some(sizes)]) = (kernel(path, suite), programs) else {
        return;
    };
    statistical(|| {
        let outcomes = guest::record(&kernel, [&callers, &spans, &rare, &sizes], &DEPTHS)?;
        check_others(&outcomes)?;
        outcomes.callers.into_iter().zip(DEPTHS).try_for_each(|(outcome, depth)| check_callers(&outcome.ok(), depth))
    });
}

/// Checks that a timer is the waker of a thread that sleeps, that its system call is as long, and that samples have the span of
/// their thread.
fn check_others(outcomes: &GuestOutcomes) -> Check {
    let GuestOutcomes { wakers, rare_blocks, sleeper, spans, pairs, calls, .. } = outcomes;
    check_calls(calls, 200)?;
    let in_span =
        Profile::from_stdout(spans).weight(&[&"10".repeat(16), "/route/0", "[no task]", "server", "handle_0"]);
    ensure!(in_span >= 5, "{in_span}: {spans:?}");
    assert!(wakers.status.success() && pairs.status.success(), "{wakers:?} {pairs:?}");
    let slept = Profile::from_stdout(wakers).weight(&["sleep", "schedule", "--", "[timer]_[w]", "[off-cpu]"]);
    ensure!(slept >= 250_000, "{slept}: {wakers:?}");
    check_rare_blocks(rare_blocks)?;
    let slept = Profile::from_stdout(sleeper).weight(&["sleep", "hrtimer_nanosleep", "[off-cpu]"]);
    ensure!(slept >= 900_000, "{slept}: {sleeper:?}");
    let slept = Profile::from_stdout(pairs).weight(&["sleep"]);
    ensure!(slept >= 250_000, "{slept}: {pairs:?}");
    Ok(())
}

/// Checks how many calls were counted in threads and processes that the command created, and that it could create them.
fn check_calls(outcome: &Outcome, expected: u64) -> Check {
    assert!(outcome.stderr.lines().any(|line| line == "20"), "{outcome:?}");
    let counted = Profile::from_stdout(outcome).weight(&["grab_apart", "grab"]);
    ensure!(counted == expected, "{counted}: {outcome:?}");
    Ok(())
}

/// Checks that each long block has its own stack and waker, though few of all switches have theirs.
fn check_rare_blocks(outcome: &Outcome) -> Check {
    assert!(outcome.stderr.contains("stacks of one in 17 switches and of the longest blocks"), "{outcome:?}");
    let profile = Profile::from_stdout(outcome);
    for function in (0..20).map(|number| format!("rare_{number:02o}")) {
        let slept = profile.weight(&["rare_blocks", "main", &function, "schedule", "--", "[timer]_[w]", "[off-cpu]"]);
        ensure!((19_000..40_000).contains(&slept), "{function}: {slept}: {outcome:?}");
    }
    Ok(())
}

fn check_taken(outcome: &Outcome, depth: usize) -> Check {
    assert!(outcome.stderr.contains("stacks taken by a BPF program"), "{outcome:?}");
    check_rooted(outcome, depth)
}

/// Checks that nearly all stacks reach their root.
fn check_rooted(outcome: &Outcome, depth: usize) -> Check {
    let LeafSamples { all, truncated } = LeafSamples::count(&Profile::from_stdout(outcome), depth);
    ensure!(all >= 10, "{all} samples at depth {depth}");
    ensure!(truncated * 50 <= all, "{truncated} of {all} stacks are truncated at depth {depth}");
    Ok(())
}

/// Returns the kernel of a suite of Debian, downloaded if necessary. Without one, or without the programs to run it,
/// reports the test as skipped.
#[track_caller]
fn kernel(path: &str, suite: &str) -> Option<PathBuf> {
    if !["apt-get", "qemu-system-x86_64", "busybox", "cpio", "strip"].into_iter().all(require) {
        return None;
    }
    let kernel = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("vmlinuz-{suite}"));
    if !kernel.exists() {
        let mut download = command(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/download"));
        download.args([path, suite]).arg(&kernel);
        let outcome = run_command(download, b"");
        if !outcome.status.success() {
            skip(&format!("cannot download the kernel of {suite}: {}", outcome.stderr.trim()));
            return None;
        }
    }
    Some(kernel)
}
