//! `--critical-path`: the elapsed time of a thread is charged to what it waited for.

use crate::support::Outcome;
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record_switches, finish, recorder};
use crate::support::statistics::{Check, ensure, statistical};

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

/// Checks that a path has all of the elapsed time of the work, and what the program took to start.
fn ensure_all_charged(profile: &Profile, elapsed: f64, outcome: &Outcome) -> Check {
    let total = profile.total() as f64;
    let work = (profile.weight(&["main"]) + profile.weight(&["start_thread"])) as f64;
    ensure!(total >= elapsed, "{total} of {elapsed}: {outcome:?}");
    ensure!(work <= elapsed * 1.01 + 1000.0, "{work} of {elapsed}: {outcome:?}");
    Ok(())
}

#[test]
fn the_path_leads_through_the_thread_that_takes_longest() {
    let Some(program) = program("paths").filter(|_| can_record_switches(&["--wakers"])) else { return };
    statistical(|| {
        let (profile, elapsed, outcome) = record_path(&program, "join");
        let (long, short) = (running(&profile, "long_work"), profile.weight(&["short_work"]));
        ensure!((long - 300_000.0).abs() <= 9000.0, "{long}: {outcome:?}");
        ensure!(short == 0, "{short}: {outcome:?}");
        ensure_all_charged(&profile, elapsed, &outcome)
    });
}

#[test]
fn the_path_leads_through_the_slowest_stage() {
    let Some(program) = program("paths").filter(|_| can_record_switches(&["--wakers"])) else { return };
    statistical(|| {
        let (profile, elapsed, outcome) = record_path(&program, "pipeline");
        let second = running(&profile, "second_stage");
        // Where another stage does not get a CPU for so long that this one waits for it, the path leads through the other one.
        let elsewhere = profile.total() as f64 - profile.weight(&["second_stage"]) as f64;
        let possible = 194_000.0 - elsewhere..=206_000.0;
        ensure!(possible.contains(&second), "{second}, {elsewhere} elsewhere: {outcome:?}");
        ensure!(elsewhere <= 0.1 * profile.total() as f64, "{elsewhere} elsewhere: {outcome:?}");
        ensure_all_charged(&profile, elapsed, &outcome)
    });
}
