//! The retry policy itself.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::statistics::{ATTEMPTS, ensure, statistical};

/// Runs a check that meets its bound in the given run, counted from 1. Returns the number of runs and whether it passed.
fn runs_until_met(met_in: usize) -> (usize, bool) {
    let runs = Cell::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        statistical(|| {
            runs.set(runs.get() + 1);
            ensure!(runs.get() >= met_in, "a miss that a test of the harness provokes");
            Ok(())
        });
    }));
    (runs.get(), outcome.is_ok())
}

#[test]
fn retries_a_missed_bound() {
    assert_eq!(runs_until_met(1), (1, true));
    assert_eq!(runs_until_met(ATTEMPTS), (ATTEMPTS, true));
    assert_eq!(runs_until_met(ATTEMPTS + 1), (ATTEMPTS, false));
}

#[test]
fn does_not_retry_a_failed_assertion() {
    let runs = Cell::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        statistical(|| {
            runs.set(runs.get() + 1);
            panic!("an assertion that a test of the harness provokes");
        });
    }));
    assert_eq!((runs.get(), outcome.is_err()), (1, true));
}
