//! All programs judge a difference alike: none contradicts another.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use fgkit::check::{Input, Measure, Rule, Verdict};
use fgkit::csv::Categories;
use fgkit::diagnostics::Diagnostics;
use fgkit::diff::{self, Scaling};
use fgkit::filter::FrameMatcher;
use fgkit::input::Source;
use fgkit::stats::sample_weight::WeightOptions;
use fgkit::tally::{GroupBy, is_significant};
use fgkit::{csv, folded, report};
use proptest::prelude::*;

use super::random::Random;
use super::runs::{Function, Runs, Side, check_growth, functions, significant};
use crate::support::directory;

/// Returns the functions that a report lists as grown or shrunk; `None` if there is nothing to report.
fn reported(subject: report::Subject, weights: WeightOptions) -> Option<BTreeSet<String>> {
    let own = Some(FrameMatcher::from_str(".").unwrap());
    let options = report::Options {
        lines: Some(100_000),
        exact_names: true,
        focus: None,
        own,
        categories: Categories::load(None).unwrap(),
        weights,
        count_name: None,
        repeated: report::Repeated::default(),
        missing: report::Missing::default(),
    };
    let inputs = report::Inputs::Files(Vec::new());
    let text = report::report(subject, &inputs, options, report::Format::Json).ok()?;
    let page: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = ["grew", "shrank"].map(|key| page[key].as_array().cloned().unwrap_or_default()).concat();
    Some(rows.iter().map(|row| row["names"][0].as_str().unwrap().to_owned()).collect())
}

/// Checks that a report lists the functions that differ significantly as fg-csv judges them. Functions with library code
/// below them are left out: they have more weight in a report.
fn assert_report_agrees(runs: &Runs, functions: &BTreeMap<String, Function>, subject: report::Subject) {
    let Some(reported) = reported(subject, runs.weights) else { return };
    let is_other = |frame: &String| frame == "malloc" || frame == "[lost]";
    let with_others = runs.stacks.iter().filter(|stack| stack.last().is_some_and(is_other));
    let larger: BTreeSet<&String> =
        with_others.flat_map(|stack| stack.iter().rfind(|frame| !is_other(frame)).or(stack.first())).collect();
    for (name, function) in functions.iter().filter(|(name, _)| !larger.contains(name) && !is_other(name)) {
        let expected = function.has_changed && significant(function.self_chance);
        assert_eq!(reported.contains(name), expected, "{name}: {function:?} in {runs:?}");
    }
}

/// Checks that the programs agree about each function and stack.
fn assert_agreement(runs: &Runs) {
    let functions = runs.functions();
    let Ok([growth, inclusive]) = runs.findings() else { return };
    let can_judge = functions.values().all(|function| function.self_chance.is_some());
    for (name, common) in runs.common_functions().iter().filter(|_| can_judge) {
        let failed = |verdicts: &BTreeMap<String, Verdict>| verdicts.get(name) == Some(&Verdict::Failed);
        // A stack of functions that only one side has is left with a mark in their place.
        let Some(function) = functions.get(name) else { continue };
        // The self weight of functions that only one side has counts for their callers.
        if common.self_weights == function.self_weights {
            let expected = function.has_grown && significant(function.self_chance);
            assert_eq!(failed(&growth), expected, "{name}: {function:?} in {runs:?}");
        }
        let expected = function.has_grown_inclusively && significant(function.inclusive_chance);
        assert_eq!(failed(&inclusive), expected, "{name}: {function:?} in {runs:?}");
    }
    if can_judge {
        assert_report_agrees(runs, &functions, report::Subject::Runs(runs.compare()));
    }
    let Ok(different) = runs.differences(GroupBy::Function) else {
        assert!(!can_judge, "{runs:?}");
        return;
    };
    for stack in &different {
        let leaf = significant(functions[stack.last().unwrap()].self_chance);
        let any = stack.iter().any(|frame| significant(functions[frame].inclusive_chance));
        assert!(leaf || any, "{stack:?} of {runs:?}");
    }
    for stack in &runs.stacks {
        let has_kept = different.iter().any(|kept| kept.iter().any(|frame| Some(frame) == stack.last()));
        let function = functions.get(stack.last().unwrap()).copied().unwrap_or_default();
        if significant(function.self_chance) && runs.scaling == Scaling::Runs {
            assert!(has_kept, "{stack:?} of {runs:?}");
        }
    }
    let by_stack = csv::count_runs(runs.compare(), GroupBy::Stack).unwrap();
    let chances = by_stack.chances.clone().unwrap_or_default();
    let kept = runs.differences(GroupBy::Stack).unwrap();
    for (row, chances) in by_stack.rows.iter().zip(&chances) {
        let stack: Vec<String> =
            row.frames.iter().map(|frame| String::from_utf8_lossy(by_stack.frames.name(*frame)).into_owned()).collect();
        let differs = row.weights[0].before != row.weights[0].after;
        assert_eq!(kept.contains(&stack), differs && is_significant(chances[0]), "{stack:?} of {runs:?}");
    }
}

/// Checks that fg-csv and fg-check say of the output of fg-diff what they say of one run a side.
fn assert_pipes_agree(runs: &Runs) {
    let (both, _) = diff::diff(runs.profiles(&runs.before), runs.profiles(&runs.after), &runs.options(None)).unwrap();
    let folder = directory();
    let path = folder.path().join("diff");
    let mut text = Vec::new();
    folded::write(&both, &mut text).unwrap();
    std::fs::write(&path, text).unwrap();
    let sources = [Source::File(path)];
    let mut counts = csv::count(&sources, GroupBy::Function, &mut Diagnostics::silent()).unwrap();
    counts.judge_sums(runs.weights).unwrap();
    assert_eq!(functions(&counts), runs.functions(), "{runs:?}");
    assert_report_agrees(runs, &functions(&counts), report::Subject::Profile(both));
    let rules = [Measure::Growth, Measure::InclusiveGrowth].map(|measure| Rule::parse(measure, "0%").unwrap());
    let Ok(direct) = runs.findings() else { return };
    assert_eq!(check_growth(Input::Profiles(&sources), &rules, runs.weights).unwrap(), direct, "{runs:?}");
}

/// Makes random comparisons: counts, periods and counts of instructions; a few functions or many, one run or several.
fn any_runs() -> impl Strategy<Value = Runs> {
    let stack = prop::collection::vec(0usize..12, 1..4).prop_map(|frames| {
        let names = frames
            .iter()
            .map(|frame| ["main", "a", "b", "c", "d", "e", "f", "g", "h", "[lost]", "x;y", "malloc"][*frame]);
        names
            .filter(|name| !name.contains(';'))
            .chain(["leaf"].into_iter().filter(|_| frames[0] > 8))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    let stacks = prop::collection::btree_set(stack, 1..24)
        .prop_map(|stacks| stacks.into_iter().filter(|stack| !stack.is_empty()).collect::<Vec<_>>())
        .prop_filter("needs a stack", |stacks| !stacks.is_empty());
    let counts = (1usize..5, 1usize..5, prop_oneof![Just(1u64), Just(1_003_009), Just(3_000_017), Just(999_983_777)]);
    (
        stacks,
        counts,
        any::<u64>(),
        0usize..5,
        prop_oneof![Just(Scaling::Runs), Just(Scaling::Totals), Just(Scaling::Median)],
    )
        .prop_map(|(stacks, (before, after, period), seed, changed, scaling)| {
            let mut random = Random(seed | 1);
            let rates: Vec<f64> = stacks.iter().map(|_| 10f64.powf(4.0 * random.uniform() - 0.5)).collect();
            let mut side = |runs: usize, slower: bool| -> Side {
                let weight = |(number, rate): (usize, &f64), random: &mut Random| {
                    let factor = if slower && number < changed { 1.5 } else { 1.0 };
                    (random.count(rate * factor) as f64 * period as f64) as u64
                };
                (0..runs).map(|_| rates.iter().enumerate().map(|rate| weight(rate, &mut random)).collect()).collect()
            };
            let (before, after) = (side(before, false), side(after, true));
            let exact = seed % 7 == 0;
            Runs { stacks, before, after, scaling, weights: WeightOptions { exact, ..WeightOptions::default() } }
        })
        .prop_filter("needs weight", |runs| runs.before.iter().chain(&runs.after).flatten().any(|weight| *weight > 0))
}

/// `e;f` has so little weight that it is scaled to zero: it must be a row for all programs, or for none.
#[test]
fn a_stack_that_is_scaled_to_zero_counts_alike() {
    let stacks = ["a;a", "b;a", "b;a;d", "c;f;f", "e;[lost]", "e;f", "f"];
    let runs = Runs {
        stacks: stacks.map(|stack| stack.split(';').map(str::to_owned).collect()).to_vec(),
        before: vec![
            vec![48, 610, 39, 165, 21, 1, 4],
            vec![40, 624, 40, 159, 28, 0, 2],
            vec![47, 635, 32, 162, 18, 0, 4],
        ],
        after: vec![vec![71, 942, 67, 178, 21, 0, 6]],
        scaling: Scaling::Totals,
        weights: WeightOptions::default(),
    };
    assert_agreement(&runs);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn programs_never_contradict_each_other(runs in any_runs()) {
        assert_agreement(&runs);
        if runs.before.len() == 1 && runs.after.len() == 1 && runs.scaling == Scaling::Runs {
            assert_pipes_agree(&runs);
        }
    }
}
