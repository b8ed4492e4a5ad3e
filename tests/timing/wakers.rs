//! `--wakers`: each wait is charged to its waiter and its waker, for as long as the program measured.

use crate::support::programs::program;
use crate::support::recording::{Profile, Stack, can_record_switches, finish, recorder};
use crate::support::statistics::{ensure, statistical};

/// The waits that the program measures, with the function that waits and the waker with its function. What ends an fsync
/// depends on the disk.
const WAITS: [(&str, &str, &[&str]); 6] = [
    ("pipe", "wait_pipe", &["pipe_w_[w]", "wake_pipe_[w]"]),
    ("futex", "wait_futex", &["futex_w_[w]", "wake_futex_[w]"]),
    ("condvar", "wait_condvar", &["condvar_w_[w]", "wake_condvar_[w]"]),
    ("convoy", "acquire", &["convoy_[w]", "release_[w]"]),
    ("sink", "take", &["middle_[w]", "hand_on_[w]"]),
    ("fsync", "sync_file", &[]),
];

/// The time of the switches of a way, in microseconds. The program's clocks count it as time off the CPU. There are some
/// hundred, of up to 3 us each; a fast disk ends all waits of `fsync` in 2 ms.
const SWITCHES: f64 = 500.0;

#[test]
fn each_wait_is_charged_to_its_waiter_and_waker() {
    let Some(program) = program("wakers").filter(|_| can_record_switches(&["--wakers"])) else { return };
    statistical(|| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut recorder = recorder(["--off-cpu", "--wakers", "--", &program]);
        let outcome = finish(recorder.env("WAKERS_FILE", folder.path().join("wakers.disk")).spawn().unwrap()).ok();
        let profile = Profile::from_stdout(&outcome);
        for (way, function, waker) in WAITS {
            let measured = outcome.stderr.lines().find_map(|line| line.strip_prefix(way)?.trim().parse().ok());
            let measured: f64 = measured.unwrap_or(f64::NAN);
            let runnable = profile.weight(&[way, function, "[runnable]"]) as f64;
            let wait: Vec<&str> = [&[way, function, "--"], waker, &["[off-cpu]"]].concat();
            let charged = profile.weight(&wait) as f64;
            // The wait for a CPU is measured by the program, but is not the waker's.
            let difference = (charged + runnable - measured).abs();
            ensure!(
                difference <= measured * 0.03 + SWITCHES,
                "{way}: {charged} + {runnable}, not {measured}: {outcome:?}"
            );
            let by_others = profile.weight(&[way, function, "[off-cpu]"]) as f64 - charged;
            ensure!(by_others <= measured * 0.03, "{way}: {by_others} of {measured} by others: {outcome:?}");
        }
        Ok(())
    });
}

#[test]
fn the_wakers_of_frequent_switches_are_known() {
    let Some(program) = program("wakers").filter(|_| can_record_switches(&["--wakers"])) else { return };
    statistical(|| {
        let recorder = recorder(["--off-cpu", "--wakers", "--", &program, "pingpong", "0.8"]).spawn().unwrap();
        let outcome = finish(recorder).ok();
        let profile = Profile::from_stdout(&outcome);
        let blocks = |stack: &&Stack| stack.leaf() == "[off-cpu]" && ["pong", "wakers"].contains(&stack.thread());
        let blocked: u64 = profile.0.iter().filter(blocks).map(|stack| stack.weight).sum();
        let explained = profile.weight(&["pong", "--", "wakers_[w]", "pingpong_[w]", "[off-cpu]"])
            + profile.weight(&["wakers", "pingpong", "--", "pong_[w]", "[off-cpu]"]);
        ensure!(explained as f64 >= 0.97 * blocked as f64, "{explained} of {blocked}: {outcome:?}");
        Ok(())
    });
}

/// Records threads that wait for each other in a chain. Returns the profile, and the times that the program measured.
fn record_chains(arguments: &str) -> (Profile, impl Fn(&str) -> f64) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = program("chains").unwrap();
    let mut recorder = recorder(["--off-cpu", "--wakers", "--waker-depth", "4", "--", &program, arguments]);
    let outcome = finish(recorder.env("CHAINS_FILE", folder.path().join("chains.disk")).spawn().unwrap()).ok();
    let profile = Profile::from_stdout(&outcome);
    let measured = move |name: &str| {
        let value = outcome.stderr.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or(f64::NAN)
    };
    (profile, measured)
}

#[test]
fn a_wait_is_divided_among_what_its_waker_waited_for() {
    if program("chains").filter(|_| can_record_switches(&["--wakers"])).is_none() {
        return;
    }
    statistical(|| {
        let (profile, measured) = record_chains("pipeline");
        // The last stage waits for as long as the middle one takes and works.
        let last = ["last", "take_second", "--", "middle_[w]"];
        for (function, name) in [("take_first", "middle_taking"), ("work_quickly", "middle_working")] {
            // After the wake-up the middle one is not blocked any more, but may wait for a CPU.
            let runnable = profile.weight(&["middle", function, "[runnable]"]);
            let waited = profile.weight(&[&last[..], &[&format!("{function}_[w]"), "[off-cpu]"]].concat());
            let (charged, expected) = ((waited + runnable) as f64, measured(name));
            ensure!((charged - expected).abs() <= 0.03 * expected + SWITCHES, "{name}: {charged}, not {expected}");
        }
        let (first, taking) = (["take_first_[w]", "--", "first_[w]", "work_slowly_[w]"], measured("middle_taking"));
        let runnable = profile.weight(&["first", "work_slowly", "[runnable]"])
            + profile.weight(&["middle", "take_first", "[runnable]"]);
        let charged = (profile.weight(&[&last[..], &first[..], &["[off-cpu]"]].concat()) + runnable) as f64;
        ensure!((charged - taking).abs() <= 0.05 * taking + SWITCHES, "{charged} of {taking} by the first stage");
        Ok(())
    });
}

#[test]
fn a_wait_for_a_lock_is_charged_to_what_its_holder_waits_for() {
    if program("chains").filter(|_| can_record_switches(&["--wakers"])).is_none() {
        return;
    }
    statistical(|| {
        let (profile, measured) = record_chains("lock");
        let waiting = measured("wanter_waiting");
        let waited = profile.weight(&["wanter", "acquire", "--", "holder_[w]", "store_[w]", "[off-cpu]"]);
        let charged = (waited + profile.weight(&["holder", "store", "[runnable]"])) as f64;
        ensure!((0.9 * waiting..1.05 * waiting).contains(&charged), "{charged} of {waiting}");
        Ok(())
    });
}
