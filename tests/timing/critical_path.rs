//! `--critical-path`: the elapsed time of a thread is charged to what it waited for.

use crate::support::Outcome;
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record_switches, finish, recorder};
use crate::support::statistics::{ensure, statistical};

/// Records the critical path of the main thread of a program with planted costs. Returns the profile, and the elapsed time that
/// the program measured, in microseconds.
fn record_path(program: &str, way: &str) -> (Profile, f64, Outcome) {
    let outcome = finish(recorder(["--critical-path", "main", "--", program, way]).spawn().unwrap()).ok();
    let elapsed = outcome.stderr.lines().find_map(|line| line.strip_prefix("elapsed=")?.split_once(' '));
    let elapsed = elapsed.and_then(|(elapsed, _)| elapsed.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1000.0;
    (Profile::from_stdout(&outcome), elapsed, outcome)
}

/// Returns the time on CPUs of stacks with a function.
fn running(profile: &Profile, function: &str) -> f64 {
    (profile.weight(&[function]) - profile.weight(&[function, "[runnable]"]) - profile.weight(&[function, "[off-cpu]"]))
        as f64
}

#[test]
fn the_path_leads_through_the_thread_that_takes_longest() {
    let Some(program) = program("paths").filter(|_| can_record_switches(&["--wakers"])) else { return };
    statistical(|| {
        let (profile, elapsed, outcome) = record_path(&program, "join");
        let (long, short) = (running(&profile, "long_work"), profile.weight(&["short_work"]));
        ensure!((long - 300_000.0).abs() <= 9000.0, "{long}: {outcome:?}");
        ensure!(short == 0, "{short}: {outcome:?}");
        // The program was also loaded.
        let total = profile.total() as f64;
        ensure!((elapsed..=elapsed * 1.01 + 10_000.0).contains(&total), "{total} of {elapsed}: {outcome:?}");
        Ok(())
    });
}

#[test]
fn the_path_leads_through_the_slowest_stage() {
    let Some(program) = program("paths").filter(|_| can_record_switches(&["--wakers"])) else { return };
    statistical(|| {
        let (profile, elapsed, outcome) = record_path(&program, "pipeline");
        let second = running(&profile, "second_stage");
        ensure!((second - 200_000.0).abs() <= 6000.0, "{second}: {outcome:?}");
        let total = profile.total() as f64;
        ensure!((elapsed..=elapsed * 1.01 + 10_000.0).contains(&total), "{total} of {elapsed}: {outcome:?}");
        Ok(())
    });
}
