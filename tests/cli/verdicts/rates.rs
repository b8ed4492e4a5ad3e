//! How often equal programs differ: simulated runs, and the share of comparisons with a verdict.

#![allow(clippy::print_stdout)]

use fgkit::check::Verdict;
use fgkit::csv;
use fgkit::diff::Scaling;
use fgkit::stats::sample_weight::WeightOptions;
use fgkit::tally::{GroupBy, is_significant};

use super::random::Random;
use super::runs::{Function, Runs, significant};

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

/// A program whose functions vary from run to run by more than their number of samples tells.
struct Noisy {
    name: &'static str,
    /// Samples of each function, on average.
    samples: Vec<f64>,
    /// By how much a function varies, relative to its samples.
    deviation: fn(usize) -> f64,
    /// Factor of the second function in one of the runs.
    spike: f64,
    /// Most comparisons with a difference, of 100.
    most: usize,
}

/// Returns functions whose samples fall as one, a half, a third.
fn zipf(functions: usize, samples: f64) -> Vec<f64> {
    let sum: f64 = (1..=functions).map(|rank| 1.0 / rank as f64).sum();
    (1..=functions).map(|rank| samples / sum / rank as f64).collect()
}

/// Compares equal programs that vary: long runs beside functions of few samples, a function that is larger than all others,
/// one that was slow in one run, and functions that vary differently. `FG_VERDICT_TRIALS` is the number of comparisons
/// of each kind, 20 by default.
#[test]
fn noisy_programs_rarely_differ() {
    let trials = std::env::var("FG_VERDICT_TRIALS").map_or(20, |trials| trials.parse().unwrap());
    let with_tiny = |functions: usize, samples: f64| [vec![samples; functions], vec![3.0; 20]].concat();
    let programs = [
        Noisy { name: "long", samples: with_tiny(12, 8000.0), deviation: |_| 0.1, spike: 1.0, most: 5 },
        Noisy { name: "longer", samples: with_tiny(48, 20_000.0), deviation: |_| 0.05, spike: 1.0, most: 5 },
        Noisy {
            name: "one large",
            samples: [vec![10_000.0], vec![200.0; 47]].concat(),
            deviation: |_| 0.05,
            spike: 1.0,
            most: 5,
        },
        Noisy { name: "slow once", samples: zipf(300, 8000.0), deviation: |_| 0.03, spike: 3.0, most: 5 },
        Noisy {
            name: "unlike",
            samples: vec![100.0; 48],
            deviation: |number| if number % 5 == 0 { 0.3 } else { 0.02 },
            spike: 1.0,
            most: 5,
        },
        Noisy {
            name: "few noisy",
            samples: vec![100.0; 200],
            deviation: |number| if number < 3 { 0.3 } else { 0.02 },
            spike: 1.0,
            most: 5,
        },
    ];
    let mut random = Random(0xd134_2543_de82_ef95);
    println!("| program | runs | fg-csv | fg-check |");
    for Noisy { name, samples, deviation, spike, most } in &programs {
        let stacks: Vec<Vec<String>> =
            (0..samples.len()).map(|number| vec!["main".into(), format!("f{number}")]).collect();
        for count in [3, 5] {
            let mut alarms = [0; 2];
            for _ in 0..trials {
                let slow = (random.uniform() * 2.0 * count as f64) as usize;
                let mut run = |number: usize| -> Vec<u64> {
                    let speed = (0.02 * random.normal()).exp();
                    let mean = |(function, mean): (usize, &f64), noise: f64| {
                        let spike = if function == 1 && number == slow { *spike } else { 1.0 };
                        mean * speed * spike * (deviation(function) * noise).exp()
                    };
                    let functions = samples.iter().enumerate();
                    functions
                        .map(|function| {
                            let noise = random.normal();
                            random.count(mean(function, noise))
                        })
                        .collect()
                };
                let before = (0..count).map(&mut run).collect();
                let after = (count..2 * count).map(&mut run).collect();
                let (scaling, weights) = (Scaling::Runs, WeightOptions::default());
                let runs = Runs { stacks: stacks.clone(), before, after, scaling, weights };
                let any =
                    |function: &Function| significant(function.self_chance) || significant(function.inclusive_chance);
                alarms[0] += usize::from(runs.functions().values().any(any));
                let [growth, inclusive] = runs.findings().unwrap();
                let failed = growth.values().chain(inclusive.values()).any(|verdict| *verdict == Verdict::Failed);
                alarms[1] += usize::from(failed);
            }
            let shares = alarms.map(|alarms| format!("{:.1}", 100.0 * alarms as f64 / trials as f64));
            println!("| {name} | {count} | {} |", shares.join(" | "));
            let expected = *most as f64 / 100.0 * trials as f64;
            let limit = 1.0 + expected + 3.0 * expected.sqrt();
            assert!(alarms.iter().all(|alarms| (*alarms as f64) <= limit), "{name}: {alarms:?} of {trials}");
        }
    }
}

/// Compares equal programs of exact counts of which few vary from run to run, as those of a hash of addresses do.
/// `FG_VERDICT_TRIALS` is the number of comparisons of each kind, 40 by default.
#[test]
fn few_that_vary_rarely_differ() {
    let trials = std::env::var("FG_VERDICT_TRIALS").map_or(40, |trials| trials.parse().unwrap());
    let mut random = Random(0x9fb2_1c65_1e98_df25);
    println!("| functions | vary | by | runs | A/A |");
    for (functions, varying, deviation) in [(40, 1, 0.0005), (40, 10, 0.0005), (40, 6, 0.05), (200, 3, 0.01)] {
        let stacks: Vec<Vec<String>> = (0..functions).map(|number| vec!["main".into(), format!("f{number}")]).collect();
        for count in [2, 3, 5] {
            let mut alarms = 0;
            for _ in 0..trials {
                let mut weight = |number: usize| -> u64 {
                    let noise = if number < varying { deviation * random.normal() } else { 0.0 };
                    (1e6 * (1.0 + noise)) as u64 + number as u64
                };
                let mut side = || (0..count).map(|_| (0..functions).map(&mut weight).collect()).collect();
                let (before, after) = (side(), side());
                let (scaling, weights) = (Scaling::Runs, WeightOptions { exact: true, ..WeightOptions::default() });
                let runs = Runs { stacks: stacks.clone(), before, after, scaling, weights };
                let any =
                    |function: &Function| significant(function.self_chance) || significant(function.inclusive_chance);
                alarms += usize::from(runs.functions().values().any(any));
            }
            println!("| {functions} | {varying} | {deviation} | {count} | {:.2} |", alarms as f64 / trials as f64);
            let expected = 0.05 * trials as f64;
            assert!(alarms as f64 <= 1.0 + expected + 3.0 * expected.sqrt(), "{alarms} of {trials}");
        }
    }
}

/// A function with a fifth of 2000 samples that takes a fifth longer is found, beside functions that vary by 3 %.
#[test]
fn growth_by_a_fifth_is_found() {
    let trials = std::env::var("FG_VERDICT_TRIALS").map_or(40, |trials| trials.parse().unwrap());
    let mut random = Random(0xa076_1d64_78bd_642f);
    let stacks: Vec<Vec<String>> = (0..48).map(|number| vec!["main".into(), format!("f{number}")]).collect();
    println!("| runs | found |");
    for (count, least) in [(3, 0.35), (5, 0.7)] {
        let mut found = 0;
        for _ in 0..trials {
            let mut run = |growth: f64| -> Vec<u64> {
                let speed = (0.02 * random.normal()).exp();
                let mean = |function: usize| if function == 0 { 400.0 * growth } else { 1600.0 / 47.0 };
                (0..48)
                    .map(|function| {
                        let noise = (0.03 * random.normal()).exp();
                        random.count(mean(function) * speed * noise)
                    })
                    .collect()
            };
            let before = (0..count).map(|_| run(1.0)).collect();
            let after = (0..count).map(|_| run(1.2)).collect();
            let (scaling, weights) = (Scaling::Runs, WeightOptions::default());
            let runs = Runs { stacks: stacks.clone(), before, after, scaling, weights };
            found += usize::from(significant(runs.functions()["f0"].self_chance));
        }
        let share = found as f64 / trials as f64;
        println!("| {count} | {share:.2} |");
        assert!(share >= least - 0.15, "{found} of {trials} with {count} runs");
    }
}

/// Compares programs of one to eight functions that vary by more than their samples tell: equal ones, and such in which the first
/// function takes a fifth longer. `FG_VERDICT_TRIALS` is the number of comparisons of each kind, 40 by default.
#[test]
fn programs_of_few_functions_rarely_differ() {
    let trials = std::env::var("FG_VERDICT_TRIALS").map_or(40, |trials| trials.parse().unwrap());
    let mut random = Random(0x3c6e_f372_fe94_f82b);
    let mut least = f64::INFINITY;
    println!("| functions | samples | deviation | runs | A/A | found |");
    for functions in [1, 2, 3, 4, 5, 8, 12] {
        let stacks: Vec<Vec<String>> = (0..functions).map(|number| vec!["main".into(), format!("f{number}")]).collect();
        for (samples, deviation) in [(2000.0, 0.0), (2000.0, 0.03), (20_000.0, 0.05)] {
            for count in [2, 3, 5] {
                let mut alarms = 0;
                let mut found = 0;
                for trial in 0..2 * trials {
                    let growth = if trial < trials { 1.0 } else { 1.2 };
                    let mut run = |growth: f64| -> Vec<u64> {
                        let speed = (0.02 * random.normal()).exp() * samples;
                        let mut function = |number: usize| {
                            let noise = (deviation * random.normal()).exp();
                            random.count(speed * noise * if number == 0 { growth } else { 1.0 })
                        };
                        (0..functions).map(&mut function).collect()
                    };
                    let before = (0..count).map(|_| run(1.0)).collect();
                    let after = (0..count).map(|_| run(growth)).collect();
                    let (scaling, weights) = (Scaling::Runs, WeightOptions::default());
                    let runs = Runs { stacks: stacks.clone(), before, after, scaling, weights };
                    let functions = runs.functions();
                    let any = |function: &Function| {
                        significant(function.self_chance) || significant(function.inclusive_chance)
                    };
                    match trial < trials {
                        true => alarms += usize::from(functions.values().any(any)),
                        false => found += usize::from(significant(functions["f0"].self_chance)),
                    }
                }
                let expected = 0.05 * trials as f64;
                assert!(alarms as f64 <= 1.0 + expected + 3.0 * expected.sqrt(), "{alarms} of {trials}");
                let share = |count: usize| count as f64 / trials as f64;
                println!(
                    "| {functions} | {samples} | {deviation} | {count} | {:.2} | {:.2} |",
                    share(alarms),
                    share(found)
                );
                if count == 5 {
                    least = least.min(share(found));
                }
            }
        }
    }
    assert!(least > 0.4, "with five runs, {least}");
}

/// Compares programs of 40 functions that vary by 3 %, or some of them by 30 %: equal ones, and such in which a calm function takes a
/// fifth longer, with five runs a side. `FG_VERDICT_TRIALS` is the number of
/// comparisons of each kind, 20 by default.
#[test]
fn growth_beside_noisy_functions_is_found() {
    let trials = std::env::var("FG_VERDICT_TRIALS").map_or(20, |trials| trials.parse().unwrap());
    let mut random = Random(0x51ed_270b_0c4b_9d27);
    let stacks: Vec<Vec<String>> = (0..40).map(|number| vec!["main".into(), format!("f{number}")]).collect();
    println!("| noisy | A/A | found |");
    for (noisy, least) in [(0, 0.8), (6, 0.75), (12, 0.7), (20, 0.7)] {
        let (mut alarms, mut found) = (0, 0);
        for trial in 0..2 * trials {
            let growth = if trial < trials { 1.0 } else { 1.2 };
            let mut run = |growth: f64| -> Vec<u64> {
                let speed = (0.02 * random.normal()).exp();
                let mut function = |number: usize| {
                    let deviation = if number > 0 && number <= noisy { 0.3 } else { 0.03 };
                    let mean = if number == 0 { 4000.0 * growth } else { 16_000.0 / 39.0 };
                    let noise = (deviation * random.normal()).exp();
                    random.count(mean * speed * noise)
                };
                (0..40).map(&mut function).collect()
            };
            let before = (0..5).map(|_| run(1.0)).collect();
            let after = (0..5).map(|_| run(growth)).collect();
            let (scaling, weights) = (Scaling::Runs, WeightOptions::default());
            let runs = Runs { stacks: stacks.clone(), before, after, scaling, weights };
            let functions = runs.functions();
            match trial < trials {
                true => alarms += usize::from(functions.values().any(|function| significant(function.self_chance))),
                false => found += usize::from(significant(functions["f0"].self_chance)),
            }
        }
        let share = |count: usize| count as f64 / trials as f64;
        println!("| {noisy} | {:.2} | {:.2} |", share(alarms), share(found));
        let expected = 0.05 * trials as f64;
        assert!(alarms as f64 <= 1.0 + expected + 3.0 * expected.sqrt(), "{noisy}: {alarms} of {trials}");
        assert!(share(found) >= least, "{noisy}: {found} of {trials}");
    }
}
