//! Differences as fg-diff, fg-csv, fg-check and fg-report judge them: none contradicts another, and equal programs rarely differ.

pub mod random;
mod rates;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use fgkit::check::{Finding, Input, Measure, Rule, Verdict};
use fgkit::csv::{Categories, Counts};
use fgkit::diagnostics::Diagnostics;
use fgkit::diff::{self, Options, Scaling, compare_runs};
use fgkit::filter::FrameMatcher;
use fgkit::input::Source;
use fgkit::profile::{Profile, Weight, Weights};
use fgkit::stats::sample_weight::{WeightKind, WeightOptions};
use fgkit::tally::{GroupBy, is_significant};
use fgkit::{Error, check, csv, folded, report};
use proptest::prelude::*;

use self::random::Random;
use crate::support::{directory, run};

/// Weight of each stack in each run of one side.
type Side = Vec<Vec<u64>>;

/// Two sides of a comparison of the same stacks.
#[derive(Clone, Debug)]
struct Runs {
    stacks: Vec<Vec<String>>,
    before: Side,
    after: Side,
    scaling: Scaling,
    weights: WeightOptions,
}

/// The difference of a function as a program sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Function {
    self_chance: Option<f64>,
    inclusive_chance: Option<f64>,
    has_changed: bool,
    has_grown: bool,
    has_grown_inclusively: bool,
}

impl Runs {
    fn profiles(&self, side: &Side) -> Vec<Profile> {
        let profile = |weights: &Vec<u64>| {
            let mut profile = Profile::new(false);
            for (stack, weight) in self.stacks.iter().zip(weights).filter(|(_, weight)| **weight > 0) {
                let frames: Vec<_> = stack.iter().map(|frame| profile.frames.intern(frame.as_bytes())).collect();
                profile.add(&frames, Weights::plain(Weight::new(*weight))).unwrap();
            }
            profile
        };
        side.iter().map(profile).collect()
    }

    fn options(&self, significant: Option<GroupBy>) -> Options {
        Options { scaling: self.scaling, weights: self.weights, significant, ..Options::default() }
    }

    fn compare(&self) -> diff::ComparedRuns {
        compare_runs(self.profiles(&self.before), self.profiles(&self.after), &self.options(None)).unwrap()
    }

    /// Returns the functions as fg-csv tabulates them.
    fn functions(&self) -> BTreeMap<String, Function> {
        functions(&csv::count_runs(self.compare(), GroupBy::Function).unwrap())
    }

    /// Returns the functions that both sides have, with the weight of the others below them.
    fn common_functions(&self) -> BTreeMap<String, Function> {
        let common = self.compare().into_common().unwrap();
        functions(&csv::count_runs(common.compared, GroupBy::Function).unwrap())
    }

    /// Returns what fg-check finds for the growth of each function, and the same for inclusive growth.
    fn findings(&self) -> Result<[BTreeMap<String, Verdict>; 2], Error> {
        let rules = [Measure::Growth, Measure::InclusiveGrowth].map(|measure| Rule::parse(measure, "0%").unwrap());
        check_growth(Input::Runs(Box::new(self.compare())), &rules, self.weights)
    }

    /// Returns the stacks that still differ in fg-diff --significant.
    fn differences(&self, by: GroupBy) -> Result<Vec<Vec<String>>, Error> {
        let options = self.options(Some(by));
        let (both, _) = diff::diff(self.profiles(&self.before), self.profiles(&self.after), &options)?;
        let mut different = Vec::new();
        both.for_each_sorted::<Error>(|stack| {
            if stack.weights.before != stack.weights.after {
                let name = |frame| String::from_utf8_lossy(both.frames.name(frame)).into_owned();
                different.push(stack.frames.iter().map(|frame| name(*frame)).collect());
            }
            Ok(())
        })?;
        Ok(different)
    }
}

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

fn functions(counts: &Counts) -> BTreeMap<String, Function> {
    let name = |row: &csv::Row| String::from_utf8_lossy(counts.frames.name(row.frames[0])).into_owned();
    let chance = |row: usize, weight: usize| counts.chances.as_ref().map(|chances| chances[row][weight]);
    let function = |(number, row): (usize, &csv::Row)| {
        let grown = |weight: usize| row.weights[weight].after > row.weights[weight].before;
        let function = Function {
            self_chance: chance(number, 0),
            inclusive_chance: chance(number, 1),
            has_changed: row.weights[0].after != row.weights[0].before,
            has_grown: grown(0),
            has_grown_inclusively: grown(1),
        };
        (name(row), function)
    };
    counts.rows.iter().enumerate().map(function).collect()
}

fn check_growth(
    input: Input,
    rules: &[Rule; 2],
    weights: WeightOptions,
) -> Result<[BTreeMap<String, Verdict>; 2], Error> {
    let categories = Categories::load(None)?;
    let findings = check::check(input, rules, &categories, weights, &mut Diagnostics::silent())?;
    let of_rule = |rule: usize| {
        let found = findings.iter().filter(|found| found.rule == rule);
        found.map(|found: &Finding| (String::from_utf8_lossy(&found.subject).into_owned(), found.verdict)).collect()
    };
    Ok([of_rule(0), of_rule(1)])
}

fn significant(chance: Option<f64>) -> bool {
    chance.is_some_and(is_significant)
}

/// Checks that the programs agree about each function and stack.
fn assert_agreement(runs: &Runs) {
    let functions = runs.functions();
    let Ok([growth, inclusive]) = runs.findings() else { return };
    let can_judge = functions.values().all(|function| function.self_chance.is_some());
    for (name, function) in &runs.common_functions() {
        let failed = |verdicts: &BTreeMap<String, Verdict>| verdicts.get(name) == Some(&Verdict::Failed);
        if can_judge {
            let expected = function.has_grown && significant(function.self_chance);
            assert_eq!(failed(&growth), expected, "{name}: {function:?} in {runs:?}");
            let expected = function.has_grown_inclusively && significant(function.inclusive_chance);
            assert_eq!(failed(&inclusive), expected, "{name}: {function:?} in {runs:?}");
        }
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
/// A function and its weights in the runs before and after.
type FunctionRuns = (&'static str, [u64; 3], [u64; 3]);

/// The weights of functions in three runs each of a sort that became slower: most functions of the interpreter grew, by
/// different factors.
const MOST_GREW: [FunctionRuns; 12] = [
    ("code", [215, 221, 219], [292, 288, 291]),
    ("call", [55, 68, 74], [158, 136, 154]),
    ("find", [41, 66, 62], [143, 133, 140]),
    ("compare", [42, 41, 51], [60, 65, 59]),
    ("added", [0, 0, 0], [70, 53, 66]),
    ("removed", [57, 52, 68], [0, 0, 0]),
    ("sort", [10, 12, 25], [29, 40, 27]),
    ("same", [18, 18, 21], [20, 20, 21]),
    ("join", [12, 17, 23], [16, 19, 17]),
    ("execute", [10, 10, 10], [19, 19, 21]),
    ("frame", [5, 15, 4], [21, 23, 15]),
    ("destroy", [3, 8, 11], [11, 13, 17]),
];

/// Samples in three runs a side of a program that is steady, but for the samples of small functions.
const SMALL_FUNCTIONS_VARY: [FunctionRuns; 13] = [
    ("code", [243, 250, 276], [371, 364, 339]),
    ("score", [93, 91, 84], [75, 92, 102]),
    ("split", [38, 41, 37], [62, 58, 75]),
    ("random", [31, 29, 23], [22, 17, 24]),
    ("bits", [18, 22, 20], [24, 15, 23]),
    ("coerce", [13, 10, 13], [24, 21, 28]),
    ("canonical", [14, 12, 8], [20, 16, 18]),
    ("network", [14, 7, 5], [14, 29, 11]),
    ("terms", [13, 10, 13], [14, 16, 11]),
    ("join", [7, 4, 11], [14, 16, 13]),
    ("text", [9, 6, 11], [8, 12, 13]),
    ("push", [10, 7, 9], [16, 7, 7]),
    ("rest", [170, 170, 170], [255, 255, 251]),
];

#[test]
fn functions_that_grew_are_found_where_most_did() {
    assert_found(&MOST_GREW, &["call", "find", "added", "removed"], &["same", "join"]);
}

#[test]
fn functions_that_grew_are_found_where_small_ones_vary() {
    assert_found(&SMALL_FUNCTIONS_VARY, &["code"], &["score", "random", "bits", "terms"]);
}

fn assert_found(functions: &[FunctionRuns], different: &[&str], same: &[&str]) {
    let side = |of: &dyn Fn(&FunctionRuns) -> [u64; 3]| -> Side {
        (0..3).map(|run| functions.iter().map(|row| of(row)[run]).collect()).collect()
    };
    let runs = Runs {
        stacks: functions.iter().map(|(name, ..)| vec!["main".to_owned(), (*name).to_owned()]).collect(),
        before: side(&|row| row.1),
        after: side(&|row| row.2),
        scaling: Scaling::Runs,
        weights: WeightOptions::default(),
    };
    let found = runs.functions();
    for name in different {
        assert!(found[*name].self_chance.is_some_and(is_significant), "{name}: {found:?}");
    }
    for name in same {
        assert!(!found[*name].self_chance.is_some_and(is_significant), "{name}: {found:?}");
    }
}

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

#[test]
fn a_run_that_is_given_twice_is_reported() {
    let stacks = ["a;b", "a;c", "b", "b;d", "c;e"].map(|stack| stack.split(';').map(str::to_owned).collect());
    let (one, other) = (vec![48, 610, 39, 165, 21], vec![40, 624, 40, 159, 28]);
    let runs = |before: [&Vec<u64>; 2], exact| Runs {
        stacks: stacks.to_vec(),
        before: before.map(Clone::clone).to_vec(),
        after: vec![vec![47, 635, 32, 162, 18], vec![45, 601, 37, 171, 25]],
        scaling: Scaling::Runs,
        weights: WeightOptions { exact, ..WeightOptions::default() },
    };
    let caveat = |before, exact| runs(before, exact).compare().caveat;
    assert!(caveat([&one, &one], false).is_some_and(|caveat| caveat.contains("two runs of one side are identical")));
    assert_eq!(caveat([&one, &other], false), None);
    assert_eq!(caveat([&one, &one], true), None, "exact counts are equal in each run");
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

/// Writes the sides to files, and returns what fg-diff --significant --exit-code says, and fg-diff | fg-check.
fn judge_files(before: &str, after: &str, options: &[&str]) -> (i32, i32) {
    let folder = directory();
    let [b, a] = [("b", before), ("a", after)].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let significant = run("fg-diff", [&["--significant", "--exit-code", &b, &a], options].concat(), b"").code();
    let compared = run("fg-diff", [&b, &a], b"").ok().stdout;
    (
        significant,
        run("fg-check", [&["--growth", "1%", "--inclusive-growth", "1%"], options].concat(), &compared).code(),
    )
}

#[test]
fn few_samples_of_varying_periods_are_no_difference() {
    let before = "m;a 61000001\nm;b 59000017\nm;c 30000003\nm;d 29999999\nm;e 2999993\n";
    let after = "m;a 79000001\nm;b 50000017\nm;c 24000003\nm;d 26999999\nm;e 3000029\n";
    assert_eq!(judge_files(before, after, &[]), (0, 0));
}

#[test]
fn few_samples_of_a_fixed_period_are_no_difference() {
    let (before, after) = ("m;a 50150450\nm;b 50150450\n", "m;a 62186558\nm;b 38114342\n");
    assert_eq!(judge_files(before, after, &[]), (0, 0));
    // With the weight of a sample at hand, it makes no difference either.
    assert_eq!(judge_files(before, after, &["--per-sample", "1003009"]), (0, 0));
    assert_eq!(judge_files(before, after, &["--exact"]), (1, 1));
}

#[test]
fn any_change_of_exact_counts_is_a_difference() {
    let before = "main;parse 7200018\nmain;read 3100007\nmain;write 900011\nmain;init 12\n";
    assert_eq!(judge_files(before, &before.replace("7200018", "7344018"), &[]), (1, 1));
    assert_eq!(judge_files(before, before, &[]), (0, 0));
    let table =
        run("fg-csv", ["--top=1"], b"main;parse 7200018 7344018\nmain;read 3100007 3100007\nmain;w 70007 70007\n");
    assert!(table.ok().text().contains("\nparse,7200018,7344018,144000,0.0000,"));
    let kind = WeightKind::Exact.describe();
    assert_eq!(kind, "weights are exact counts");
}

#[test]
fn recipes_record_the_sides_in_turns() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/recipes/github-actions.yml");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, recipe) = text.split_once("for run in ").unwrap();
    let (turn, _) = recipe.split_once("done").unwrap();
    // The state of the machine would be a difference if all runs before came first.
    let outputs = turn.split(" -o ").skip(1).map(|rest| rest.trim_start_matches(['"', '.', '/']));
    let sides: Vec<&str> = outputs.map(|output| output.split('.').next().unwrap()).collect();
    assert_eq!(sides, ["before", "after"]);
}
