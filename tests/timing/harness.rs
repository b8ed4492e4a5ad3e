//! The retry policy itself.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::statistics::{ATTEMPTS, ensure, run_attempts};

/// Runs a check that meets its bound in the given run, counted from 1. Returns the number of runs and whether it
/// passed.
fn runs_until_met(met_in: usize) -> (usize, bool) {
    let mut runs = 0;
    let check = || {
        runs += 1;
        ensure!(runs >= met_in, "{runs} is less than {met_in}");
        Ok(())
    };
    let passed = run_attempts(check, |_, _| ()).is_ok();
    (runs, passed)
}

#[test]
fn retries_a_missed_bound() {
    assert_eq!(runs_until_met(1), (1, true));
    assert_eq!(runs_until_met(ATTEMPTS), (ATTEMPTS, true));
    assert_eq!(runs_until_met(ATTEMPTS + 1), (ATTEMPTS, false));
}

#[test]
fn does_not_retry_a_failed_assertion() {
    let mut runs = 0;
    let check = || {
        runs += 1;
        panic!("an assertion that a test of the harness provokes");
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| run_attempts(check, |_, _| ())));
    assert_eq!((runs, outcome.is_err()), (1, true));
}
