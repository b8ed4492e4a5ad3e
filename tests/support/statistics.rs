//! Runs checks whose verdict depends on sampling, scheduling or time.
//!
//! This is the only place that retries anything. A statistical check passes if one of [`ATTEMPTS`] independent runs
//! meets its bounds. The bounds are never loosened for a busy machine. What must hold in every run (an exit status, a
//! message, an exact sum) is asserted with `assert!` instead of [`ensure!`], and fails at once.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use super::skips::test_name;

/// How many runs a statistical check has.
pub const ATTEMPTS: usize = 3;

/// The result of one run: `Err` says which bound it missed.
pub type Check = Result<(), String>;

/// Held while a check runs. Checks run one at a time, so that they do not load the machine for each other.
static RUNNING: Mutex<()> = Mutex::new(());

/// Runs a check until it meets its bounds, at most [`ATTEMPTS`] times. A missed bound is reported on standard error.
#[track_caller]
pub fn statistical(mut check: impl FnMut() -> Check) {
    let _running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let test = test_name();
    let report = |attempt: usize, miss: &str| {
        let first_line = miss.lines().next().unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "missed: {test}: run {attempt} of {ATTEMPTS}: {first_line}");
    };
    if let Err(misses) = run_attempts(&mut check, report) {
        panic!("missed its bounds in {ATTEMPTS} of {ATTEMPTS} runs:\n{}", misses.join("\n\n"));
    }
}

/// Runs a check until it meets its bounds, and reports each miss. Returns all misses if every attempt is one.
pub fn run_attempts(mut check: impl FnMut() -> Check, report: impl Fn(usize, &str)) -> Result<(), Vec<String>> {
    let mut misses = Vec::new();
    for attempt in 1..=ATTEMPTS {
        let Err(miss) = check() else { return Ok(()) };
        report(attempt, &miss);
        misses.push(miss);
    }
    Err(misses)
}

/// Returns from a check with a message unless a bound is met.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        // Not negated: a comparison with NaN must miss its bound.
        if $condition {
        } else {
            return Err(format!($($message)+));
        }
    };
}
pub(crate) use ensure;
