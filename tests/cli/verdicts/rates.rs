//! How often equal programs differ: simulated runs, and the share of comparisons with a verdict.

#![allow(clippy::print_stdout)]

use fgkit::check::Verdict;
use fgkit::csv;
use fgkit::diff::Scaling;
use fgkit::stats::sample_weight::WeightOptions;
use fgkit::tally::{GroupBy, is_significant};

use super::random::Random;
use super::{Function, Runs, significant};

/// Simulates a run of a program with 48 stacks: samples with equal weights, or periods that vary by a fifth.
fn simulate(samples: usize, varying: bool, random: &mut Random) -> Vec<u64> {
    let mut weights = vec![0; 48];
    for _ in 0..samples {
        let stack = (random.uniform() * 48.0) as usize;
        weights[stack] += if varying { (3e6 * (1.0 + 0.2 * random.normal())).max(1.0) as u64 } else { 1 };
    }
    weights
}

/// Compares equal programs. `FG_VERDICT_TRIALS` is the number of comparisons of each kind, 8 by default.
#[test]
fn equal_programs_rarely_differ() {
    let trials = std::env::var("FG_VERDICT_TRIALS").map_or(8, |trials| trials.parse().unwrap());
    let stacks: Vec<Vec<String>> =
        (0..48).map(|number| vec!["main".to_owned(), format!("g{}", number / 6), format!("f{number}")]).collect();
    let mut random = Random(88_172_645_463_325_252);
    println!("| weights | scaling | samples | runs | fg-csv | fg-check | fg-diff | by stack |");
    for (varying, scaling) in
        [(false, Scaling::Runs), (true, Scaling::Runs), (false, Scaling::Totals), (true, Scaling::Totals)]
    {
        for samples in [100, 200, 500, 2000] {
            for count in [1, 3, 5] {
                let mut alarms = [0; 4];
                for _ in 0..trials {
                    let mut side = || (0..count).map(|_| simulate(samples, varying, &mut random)).collect();
                    let (before, after) = (side(), side());
                    let runs =
                        Runs { stacks: stacks.clone(), before, after, scaling, weights: WeightOptions::default() };
                    let any = |function: &Function| {
                        significant(function.self_chance) || significant(function.inclusive_chance)
                    };
                    alarms[0] += u32::from(runs.functions().values().any(any));
                    let [growth, inclusive] = runs.findings().unwrap();
                    alarms[1] +=
                        u32::from(growth.values().chain(inclusive.values()).any(|verdict| *verdict == Verdict::Failed));
                    alarms[2] += u32::from(!runs.differences(GroupBy::Function).unwrap().is_empty());
                    alarms[3] += u32::from(!runs.differences(GroupBy::Stack).unwrap().is_empty());
                }
                let shares = alarms.map(|alarms| format!("{:.1}", 100.0 * f64::from(alarms) / f64::from(trials)));
                let weights = if varying { "periods" } else { "equal" };
                println!("| {weights} | {scaling:?} | {samples} | {count} | {} |", shares.join(" | "));
                let most = 1.0 + 0.05 * f64::from(trials) + 2.0 * (0.05 * 0.95 * f64::from(trials)).sqrt();
                assert!(alarms.iter().all(|alarms| f64::from(*alarms) <= most), "{alarms:?} of {trials}");
            }
        }
    }
}

/// Two rows without other ones mirror each other, and do not confirm each other's spread.
#[test]
fn two_rows_rarely_differ() {
    const TRIALS: usize = 600;
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let stacks = ["c0;f0", "c1;f1"].map(|stack| stack.split(';').map(str::to_owned).collect()).to_vec();
    let mut alarms = 0;
    for _ in 0..TRIALS {
        let mut side = || (0..5).map(|_| vec![random.count(3000.0), random.count(3000.0)]).collect();
        let (before, after) = (side(), side());
        let (scaling, weights) = (Scaling::Runs, WeightOptions::default());
        let runs = Runs { stacks: stacks.clone(), before, after, scaling, weights };
        let any = |function: &Function| significant(function.self_chance) || significant(function.inclusive_chance);
        alarms += usize::from(runs.functions().values().any(any));
    }
    assert!(alarms * 20 <= TRIALS, "{alarms} of {TRIALS}");
}

/// Compares equal programs of a few commands, of which a run is faster or slower than others by some percent, in tables
/// by command, by call and by function. One run a side does not show that its machine was slow. `FG_VERDICT_TRIALS` is
/// the number of comparisons of each kind, 20 by default.
#[test]
fn few_rows_rarely_differ() {
    let trials = std::env::var("FG_VERDICT_TRIALS").map_or(20, |trials| trials.parse().unwrap());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    println!("| commands | functions | speed | runs | by comm | by edge | by function |");
    for (commands, functions) in [(1, 1), (1, 12), (2, 1), (2, 12), (3, 1), (4, 1), (4, 12)] {
        for speed in [0.0, 0.03, 0.1] {
            for count in [1, 3, 5] {
                let names = (0..commands).flat_map(|comm| (0..functions).map(move |function| (comm, function)));
                let stacks: Vec<Vec<String>> =
                    names.map(|(comm, function)| vec![format!("c{comm}"), format!("f{comm}.{function}")]).collect();
                let keys = [GroupBy::Comm, GroupBy::Edge, GroupBy::Function];
                let mut alarms = [0; 3];
                for _ in 0..trials {
                    let mut run = || -> Vec<u64> {
                        let speed = (speed * random.normal()).exp() * 3000.0 / functions as f64;
                        stacks.iter().map(|_| random.count(speed)).collect()
                    };
                    let mut side = || (0..count).map(|_| run()).collect();
                    let (before, after) = (side(), side());
                    let (scaling, weights) = (Scaling::Runs, WeightOptions::default());
                    let runs = Runs { stacks: stacks.clone(), before, after, scaling, weights };
                    for (by, alarms) in keys.into_iter().zip(&mut alarms) {
                        let counts = csv::count_runs(runs.compare(), by).unwrap();
                        let mut chances = counts.chances.iter().flatten().flatten();
                        *alarms += u32::from(chances.any(|chance| is_significant(*chance)));
                    }
                }
                let shares = alarms.map(|alarms| format!("{:.1}", 100.0 * f64::from(alarms) / f64::from(trials)));
                println!("| {commands} | {functions} | {speed} | {count} | {} |", shares.join(" | "));
                let most = 1.0 + 0.05 * f64::from(trials) + 3.5 * (0.05 * 0.95 * f64::from(trials)).sqrt();
                assert!(count == 1 || alarms.iter().all(|alarms| f64::from(*alarms) <= most), "{alarms:?} of {trials}");
            }
        }
    }
}
