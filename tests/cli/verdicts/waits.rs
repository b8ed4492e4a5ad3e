//! Differences of durations, most of which are charged to the function of the kernel in which threads are blocked.

#![allow(clippy::print_stdout)]

use fgkit::diff::Scaling;
use fgkit::stats::sample_weight::WeightOptions;

use super::random::Random;
use super::runs::{FunctionRuns, Runs, Side, significant};

/// Milliseconds in three runs a side of threads that hand over to one that stores, which sleeps less after.
const STORING_IS_FASTER: [FunctionRuns; 14] = [
    ("app;main;schedule;[off-cpu]", [1889, 2019, 1908], [1652, 1430, 1400]),
    ("reporter;report;schedule;[off-cpu]", [1889, 2016, 1914], [1676, 1400, 1393]),
    ("store;store_all;upload;schedule;[off-cpu]", [1840, 1846, 1837], [1272, 1277, 1270]),
    ("fetch-0;fetch;hand_over;schedule;[off-cpu]", [1278, 1332, 1346], [556, 830, 680]),
    ("fetch-1;fetch;hand_over;schedule;[off-cpu]", [1277, 1353, 1319], [522, 825, 689]),
    ("fetch-2;fetch;hand_over;schedule;[off-cpu]", [1315, 1355, 1338], [552, 844, 703]),
    ("fetch-0;fetch;download;schedule;[off-cpu]", [459, 472, 458], [470, 473, 462]),
    ("fetch-1;fetch;download;schedule;[off-cpu]", [458, 482, 459], [467, 458, 462]),
    ("fetch-2;fetch;download;schedule;[off-cpu]", [459, 483, 458], [474, 457, 470]),
    ("fetch-0;fetch;download;schedule;[runnable]", [68, 141, 41], [294, 71, 177]),
    ("fetch-1;fetch;download;schedule;[runnable]", [70, 125, 59], [647, 58, 180]),
    ("fetch-2;fetch;download;schedule;[runnable]", [8, 121, 44], [290, 54, 104]),
    ("store;store_all;upload;schedule;[runnable]", [30, 138, 46], [59, 139, 103]),
    ("store;store_all;schedule;[off-cpu]", [4, 11, 20], [306, 2, 10]),
];

fn split(stacks: &[&str]) -> Vec<Vec<String>> {
    stacks.iter().map(|stack| stack.split(';').map(str::to_owned).collect()).collect()
}

#[test]
fn waits_that_are_half_as_long_are_found() {
    let side = |of: &dyn Fn(&FunctionRuns) -> [u64; 3]| -> Side {
        (0..3).map(|run| STORING_IS_FASTER.iter().map(|row| of(row)[run] * 1000).collect()).collect()
    };
    let runs = Runs {
        stacks: split(&STORING_IS_FASTER.map(|row| row.0)),
        before: side(&|row| row.1),
        after: side(&|row| row.2),
        scaling: Scaling::Runs,
        weights: WeightOptions::default(),
    };
    let found = runs.functions();
    for name in ["hand_over", "upload"] {
        assert!(significant(found[name].inclusive_chance), "{name}: {found:?}");
    }
    assert!(!significant(found["download"].inclusive_chance), "{found:?}");
}

/// Equal programs whose threads sleep, contend for a lock and wait for a CPU: the spread of these differs. `FG_VERDICT_TRIALS` is
/// the number of comparisons of each kind, 40 by default.
#[test]
fn equal_waits_rarely_differ() {
    let trials = std::env::var("FG_VERDICT_TRIALS").map_or(40, |trials| trials.parse().unwrap());
    let kinds = [("sleep", 1e6, 0.01), ("lock", 3e5, 0.2), ("queue", 6e5, 0.08), ("cpu", 3e4, 0.6)];
    let mut random = Random(0x0123_4567_89ab_cdef);
    for threads in [1, 4] {
        for speed in [0.0, 0.05] {
            for count in [3, 5] {
                let rows = || (0..threads).flat_map(|thread| kinds.map(|kind| (thread, kind)));
                let stacks: Vec<String> = rows()
                    .map(|(thread, kind)| format!("t{thread};run{thread};{};schedule;[off-cpu]", kind.0))
                    .collect();
                let stacks = split(&stacks.iter().map(String::as_str).collect::<Vec<_>>());
                let mut alarms = 0;
                for _ in 0..trials {
                    let mut run = || -> Vec<u64> {
                        let speed = speed * random.normal();
                        rows().map(|(_, kind)| (kind.1 * (speed + kind.2 * random.normal()).exp()) as u64).collect()
                    };
                    let mut side = || (0..count).map(|_| run()).collect();
                    let (before, after) = (side(), side());
                    let (scaling, weights) = (Scaling::Runs, WeightOptions::default());
                    let functions = Runs { stacks: stacks.clone(), before, after, scaling, weights }.functions();
                    alarms +=
                        u32::from(functions.values().any(|function| {
                            significant(function.self_chance) || significant(function.inclusive_chance)
                        }));
                }
                let share = f64::from(alarms) / f64::from(trials);
                println!("| {threads} threads | speed {speed} | {count} runs | {:.1} |", 100.0 * share);
                let most = 1.0 + 0.05 * f64::from(trials) + 3.5 * (0.05 * 0.95 * f64::from(trials)).sqrt();
                assert!(f64::from(alarms) <= most, "{alarms} of {trials}");
            }
        }
    }
}
