//! How often new code counts as growth: where it is an additional cost, and where it was extracted from its callers.

#![allow(clippy::print_stdout)]

use fgkit::check::Verdict;
use fgkit::diff::Scaling;
use fgkit::stats::sample_weight::WeightOptions;

use super::random::Random;
use super::runs::Runs;

/// Samples of a run.
const SAMPLES: f64 = 4000.0;

/// Share of the new code.
const SHARE: f64 = 0.05;

/// Functions of a program: their number, the exponent of their sizes, how many of the largest call the new code, and the relative
/// deviation of each function from run to run.
struct Program {
    functions: usize,
    exponent: f64,
    callers: usize,
    deviation: f64,
}

impl Program {
    /// Returns whether `fg-check --growth 0%` finds the new code, `is_extracted` from its callers or not.
    fn fails(&self, runs: usize, is_extracted: bool, random: &mut Random) -> bool {
        let sizes: Vec<f64> = (0..self.functions).map(|number| (number as f64 + 1.0).powf(-self.exponent)).collect();
        let sum: f64 = sizes.iter().sum();
        let sizes: Vec<f64> = sizes.into_iter().map(|size| SAMPLES * size / sum).collect();
        let of_callers: f64 = sizes[..self.callers].iter().sum();
        let part = SHARE * SAMPLES / of_callers;
        let mut run = |is_after: bool| -> Vec<u64> {
            let speed = (0.01 * random.normal()).exp();
            let (mut own, mut new) = (Vec::new(), Vec::new());
            for (number, size) in sizes.iter().enumerate() {
                let mut vary = |size: f64| size * speed * (self.deviation * random.normal()).exp();
                let size = vary(*size);
                let of_new = match is_after && number < self.callers {
                    true if is_extracted => part * size,
                    true => vary(part * sizes[number]),
                    false => 0.0,
                };
                own.push(if is_extracted { size - of_new } else { size });
                new.push(of_new);
            }
            own.into_iter().chain(new).map(|mean| if mean > 0.0 { random.count(mean) } else { 0 }).collect()
        };
        let before = (0..runs).map(|_| run(false)).collect();
        let after = (0..runs).map(|_| run(true)).collect();
        let stack = |number: usize| vec!["main".to_owned(), format!("f{number}")];
        let below = |number: usize| [stack(number), vec!["helper".to_owned()]].concat();
        let stacks = (0..self.functions).map(stack).chain((0..self.functions).map(below)).collect();
        let (scaling, weights) = (Scaling::Runs, WeightOptions::default());
        let [found, _] = Runs { stacks, before, after, scaling, weights }.findings().unwrap();
        found.values().any(|verdict| *verdict == Verdict::Failed)
    }
}

/// `FG_VERDICT_TRIALS` is the number of comparisons of each kind, 20 by default.
#[test]
fn new_code_is_told_from_extracted_code() {
    let trials = std::env::var("FG_VERDICT_TRIALS").map_or(20, |trials| trials.parse().unwrap());
    let mut random = Random(0x6a09_e667_f3bc_c909);
    println!("| functions | callers | deviation | runs | extracted | new |");
    for (program, least) in [
        (Program { functions: 8, exponent: 0.0, callers: 5, deviation: 0.03 }, [0.7, 0.85]),
        (Program { functions: 8, exponent: 0.0, callers: 5, deviation: 0.1 }, [0.0, 0.2]),
        (Program { functions: 20, exponent: 0.0, callers: 20, deviation: 0.03 }, [0.6, 0.85]),
        (Program { functions: 40, exponent: 1.0, callers: 1, deviation: 0.03 }, [0.85, 0.9]),
        (Program { functions: 40, exponent: 1.0, callers: 10, deviation: 0.03 }, [0.7, 0.85]),
        (Program { functions: 40, exponent: 1.0, callers: 10, deviation: 0.1 }, [0.1, 0.2]),
    ] {
        for (runs, least) in [3, 5].into_iter().zip(least) {
            let mut share = |is_extracted: bool| {
                let found = (0..trials).filter(|_| program.fails(runs, is_extracted, &mut random)).count();
                found as f64 / trials as f64
            };
            let (extracted, new) = (share(true), share(false));
            let Program { functions, callers, deviation, .. } = program;
            println!("| {functions} | {callers} | {deviation} | {runs} | {extracted:.2} | {new:.2} |");
            let error = (0.05 / trials as f64).sqrt();
            assert!(extracted <= 0.05 + 3.0 * error, "{extracted} of extracted code");
            assert!(new >= least - 2.0 * error, "{new} of new code");
        }
    }
}
