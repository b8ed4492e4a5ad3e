//! Rare functions, which chance may have put on one side: how often fg-check fails equal programs of which one side has more samples, and
//! whether it finds new and inlined code.

#![allow(clippy::print_stdout)]

use fgkit::check::Verdict;
use fgkit::diff::Scaling;
use fgkit::profile::Weight;
use fgkit::stats::sample_weight::WeightOptions;

use super::random::Random;
use super::runs::Runs;

/// Number of functions, of which most have few samples.
const FUNCTIONS: usize = 600;

/// The runs of a side and their samples.
#[derive(Clone, Copy, Debug)]
struct Side {
    runs: usize,
    samples: f64,
}

/// Returns whether `fg-check --growth 0%` or `--inclusive-growth 0%` fails, where a function that only the side after has takes `share`
/// of its time.
fn fails(before: Side, after: Side, share: f64, random: &mut Random) -> bool {
    let sizes: Vec<f64> = (1..=FUNCTIONS).map(|rank| (rank as f64).powf(-1.1)).collect();
    let sum: f64 = sizes.iter().sum();
    let mut run = |side: Side, share: f64| -> Vec<u64> {
        let mut function = |size: &f64| {
            let noise = (0.02 * random.normal()).exp();
            random.count(side.samples * size / sum * noise)
        };
        sizes.iter().chain([&(share * sum)]).map(&mut function).collect()
    };
    let stack = |number: usize| vec!["main".to_owned(), format!("stage{}", number % 6), format!("f{number}")];
    let runs = Runs {
        stacks: (0..=FUNCTIONS).map(stack).collect(),
        before: (0..before.runs).map(|_| run(before, 0.0)).collect(),
        after: (0..after.runs).map(|_| run(after, share)).collect(),
        scaling: if before.samples == after.samples { Scaling::Runs } else { Scaling::Totals },
        weights: WeightOptions::default(),
    };
    runs.findings().unwrap().iter().flat_map(|found| found.values()).any(|verdict| *verdict == Verdict::Failed)
}

/// `FG_VERDICT_TRIALS` is the number of comparisons of each kind, 12 by default.
#[test]
fn rare_functions_are_not_taken_for_new_ones() {
    let trials = std::env::var("FG_VERDICT_TRIALS").map_or(12, |trials| trials.parse().unwrap());
    let mut random = Random(0x243f_6a88_85a3_08d3);
    let side = |runs, samples| Side { runs, samples };
    println!("| before | after | A/A | new code found |");
    for (before, after) in [
        (side(3, 1000.0), side(3, 4000.0)),
        (side(5, 2000.0), side(5, 4000.0)),
        (side(1, 4000.0), side(5, 4000.0)),
        (side(3, 4000.0), side(5, 4000.0)),
        (side(5, 4000.0), side(3, 1000.0)),
    ] {
        let mut count = |share| (0..trials).filter(|_| fails(before, after, share, &mut random)).count();
        let (alarms, found) = (count(0.0), count(0.1));
        println!(
            "| {}x{} | {}x{} | {alarms} of {trials} | {found} of {trials} |",
            before.runs, before.samples, after.runs, after.samples
        );
        let expected = 0.05 * trials as f64;
        assert!(alarms as f64 <= 1.0 + expected + 3.0 * expected.sqrt(), "{alarms} of {trials}: {before:?}, {after:?}");
        assert!(2 * found >= trials, "{found} of {trials}: {before:?}, {after:?}");
    }
}

/// Small functions that were inlined into their caller, or are new, with one run a side.
#[test]
fn small_functions_are_inlined_or_new() {
    const HELPERS: usize = 10;
    let mut random = Random(0x1319_8a2e_0370_7344);
    let named = |name: String| vec!["main".to_owned(), "stage".to_owned(), name];
    let below = |name: String| [named("caller".to_owned()), vec![name]].concat();
    let others = (0..30).map(|number| named(format!("f{number}")));
    let helpers = (0..HELPERS).map(|number| below(format!("h{number}")));
    let stacks: Vec<Vec<String>> = [named("caller".to_owned())].into_iter().chain(helpers).chain(others).collect();
    let mut side = |caller: f64, helper: f64| -> Vec<Vec<u64>> {
        let means = [caller].into_iter().chain([helper; HELPERS]).chain([240.0; 30]);
        vec![means.map(|mean| if mean > 0.0 { random.count(mean) } else { 0 }).collect()]
    };
    for (before, after, expected) in
        [(side(135.0, 40.0), side(535.0, 0.0), Verdict::Passed), (side(135.0, 0.0), side(135.0, 40.0), Verdict::Failed)]
    {
        let weights = WeightOptions { per_sample: Some(Weight::ONE), ..WeightOptions::default() };
        let scaling = Scaling::Runs;
        let runs = Runs { stacks: stacks.clone(), before, after, scaling, weights };
        let [growth, _] = runs.findings().unwrap();
        let has_failed = growth.values().any(|verdict| *verdict == Verdict::Failed);
        assert_eq!(has_failed, expected == Verdict::Failed, "{growth:?}");
    }
}
