//! Two sides of a comparison in memory, and what the library's parts say of them.

use std::collections::BTreeMap;

use fgkit::check::{Finding, Input, Measure, Rule, Verdict};
use fgkit::csv::{Categories, Counts};
use fgkit::diagnostics::Diagnostics;
use fgkit::diff::{self, Options, Scaling, compare_runs};
use fgkit::profile::{Profile, Weight, Weights};
use fgkit::stats::sample_weight::WeightOptions;
use fgkit::tally::{GroupBy, is_significant};
use fgkit::{Error, check, csv};

/// Weight of each stack in each run of one side.
pub type Side = Vec<Vec<u64>>;

/// A function and its weights in the runs before and after.
pub type FunctionRuns = (&'static str, [u64; 3], [u64; 3]);

/// Two sides of a comparison of the same stacks.
#[derive(Clone, Debug)]
pub struct Runs {
    pub stacks: Vec<Vec<String>>,
    pub before: Side,
    pub after: Side,
    pub scaling: Scaling,
    pub weights: WeightOptions,
}

/// The difference of a function as a program sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Function {
    pub self_chance: Option<f64>,
    pub inclusive_chance: Option<f64>,
    pub self_weights: Weights,
    pub has_changed: bool,
    pub has_grown: bool,
    pub has_grown_inclusively: bool,
}

impl Runs {
    pub fn profiles(&self, side: &Side) -> Vec<Profile> {
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

    pub fn options(&self, significant: Option<GroupBy>) -> Options {
        Options { scaling: self.scaling, weights: self.weights, significant, ..Options::default() }
    }

    pub fn compare(&self) -> diff::ComparedRuns {
        compare_runs(self.profiles(&self.before), self.profiles(&self.after), &self.options(None)).unwrap()
    }

    /// Returns the functions as fg-csv tabulates them.
    pub fn functions(&self) -> BTreeMap<String, Function> {
        functions(&csv::count_runs(self.compare(), GroupBy::Function).unwrap())
    }

    /// Returns the functions that both sides have, with the weight of the others below them.
    pub fn common_functions(&self) -> BTreeMap<String, Function> {
        let all = self.compare();
        let common = all.common().unwrap().map_or(all, |common| common.compared);
        functions(&csv::count_runs(common, GroupBy::Function).unwrap())
    }

    /// Returns what fg-check finds for the growth of each function, and the same for inclusive growth.
    pub fn findings(&self) -> Result<[BTreeMap<String, Verdict>; 2], Error> {
        let rules = [Measure::Growth, Measure::InclusiveGrowth].map(|measure| Rule::parse(measure, "0%").unwrap());
        check_growth(Input::Runs(Box::new(self.compare())), &rules, self.weights)
    }

    /// Returns the stacks that still differ in fg-diff --significant.
    pub fn differences(&self, by: GroupBy) -> Result<Vec<Vec<String>>, Error> {
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

pub fn functions(counts: &Counts) -> BTreeMap<String, Function> {
    let name = |row: &csv::Row| String::from_utf8_lossy(counts.frames.name(row.frames[0])).into_owned();
    let chance = |row: usize, weight: usize| counts.chances.as_ref().map(|chances| chances[row][weight]);
    let function = |(number, row): (usize, &csv::Row)| {
        let grown = |weight: usize| row.weights[weight].after > row.weights[weight].before;
        let function = Function {
            self_chance: chance(number, 0),
            inclusive_chance: chance(number, 1),
            self_weights: row.weights[0],
            has_changed: row.weights[0].after != row.weights[0].before,
            has_grown: grown(0),
            has_grown_inclusively: grown(1),
        };
        (name(row), function)
    };
    counts.rows.iter().enumerate().map(function).collect()
}

pub fn check_growth(
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

pub fn significant(chance: Option<f64>) -> bool {
    chance.is_some_and(is_significant)
}
