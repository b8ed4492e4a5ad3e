//! What is missing from the stacks of a profile, or of each side of a comparison.

use super::context::Context;
use super::measure::{format_percent, percent};
use super::page::{Fact, Value};
use super::survey::Quality;
use crate::diagnostics::plural;
use crate::profile::{Weight, Weights};

/// The share in percent from which on a defect is stated at the top of the page.
const MIN_DEFECT: f64 = 2.0;

/// Samples that were lost, and what is said if they are all.
const LOST: &str = "of the samples lost";
const ALL_LOST: &str = "all weight is lost: no stack was recorded";

/// A kind of stacks that something is wrong with.
struct Defect {
    /// The names of its share for programs: in a profile, before and after.
    keys: [&'static str; 3],
    weights: Weights,
    what: &'static str,
}

/// One side of a comparison, or a profile.
struct Side {
    /// The index of its key.
    key: usize,
    weight: fn(Weights) -> Weight,
    /// Number of its malformed lines.
    lines: u64,
}

/// True if so much is missing that it belongs to the top of the page.
pub(super) fn is_defect(quality: &Fact) -> bool {
    quality.numbers.iter().any(|(name, number)| *number >= MIN_DEFECT || !name.ends_with("_pct") && *number > 0.0)
}

/// The number of functions of a profile from which on it is remarkable that none has a caller but the root.
const MIN_FLAT_FUNCTIONS: usize = 3;

/// True if stacks have a root and a leaf only, as those of perf without -g, or a leaf alone.
fn is_flat(context: &Context<'_>) -> bool {
    let leaves = context.survey.functions.iter().filter(|function| function.self_weights != Weights::default()).count();
    leaves >= MIN_FLAT_FUNCTIONS && context.survey.depths.keys().all(|depth| *depth <= 2)
}

/// True if much of the weight is that of threads of Go that wait in the scheduler: goroutines wait without a thread.
fn lacks_waits_of_goroutines(context: &Context<'_>) -> bool {
    let Weights { before, after } = context.survey.quality.go_scheduler;
    let all = context.all_samples();
    percent(before, all.before).max(percent(after, all.after)) >= MIN_DEFECT
}

/// Returns what is missing from the stacks, for each side of a comparison.
pub(super) fn quality(context: &Context<'_>) -> Fact {
    let missing = context.missing;
    let defects = defects(context);
    let sides = match context.profile.is_differential() {
        true => {
            let [before, after] = missing.lines_of_sides;
            vec![
                Side { key: 1, weight: |weights| weights.before, lines: before },
                Side { key: 2, weight: |weights| weights.after, lines: after },
            ]
        }
        false => vec![Side { key: 0, weight: |weights| weights.after, lines: missing.lines }],
    };
    let mut numbers: Vec<(&str, f64)> = Vec::new();
    let found: Vec<Vec<String>> = sides.iter().map(|side| side.find(context, &defects, &mut numbers)).collect();
    let mut parts: Vec<String> = match &found[..] {
        _ if found.iter().all(Vec::is_empty) => Vec::new(),
        [before, after] => [("before", before), ("after", after)]
            .map(|(side, found)| match found.is_empty() {
                true => format!("{side}: nothing is missing"),
                false => format!("{side}: {}", found.join(", ")),
            })
            .to_vec(),
        _ => found.into_iter().flatten().collect(),
    };
    // Those of a comparison that was read are of neither side.
    if missing.lines > 0 && context.profile.is_differential() {
        parts.push(format!("{} skipped", plural(missing.lines, "malformed line")));
    }
    let lines = missing.lines + missing.lines_of_sides.iter().sum::<u64>();
    if lines > 0 {
        numbers.push(("malformed_lines", lines as f64));
    }
    if is_flat(context) {
        numbers.push(("flat", 1.0));
        parts.push("no stack has more than two frames: recorded without call graphs?".to_owned());
    }
    if lacks_waits_of_goroutines(context) {
        numbers.push(("without_waits_of_goroutines", 1.0));
        parts.push(
            "no waits of goroutines, which need no thread (pprof's block and mutex profiles show them)".to_owned(),
        );
    }
    if missing.has_inputs {
        numbers.push(("missing_inputs", 1.0));
        parts.push("an input could not be read".to_owned());
    }
    let separator = if context.profile.is_differential() { "; " } else { ", " };
    let text = match parts.is_empty() {
        true => "nothing lost, no stack known to be cut, all leaves have names".to_owned(),
        false => parts.join(separator),
    };
    Fact { label: "quality", value: Value::Text(text), numbers }
}

impl Side {
    /// Returns what is missing on this side, and adds the shares for programs.
    fn find(&self, context: &Context<'_>, defects: &[Defect], numbers: &mut Vec<(&'static str, f64)>) -> Vec<String> {
        // What was lost is no part of the totals of a comparison, but its share is one of all samples.
        let all = (self.weight)(context.all_samples());
        let mut found = Vec::new();
        for Defect { keys, weights, what } in defects {
            let weight = (self.weight)(*weights);
            let share = percent(weight, all);
            numbers.push((keys[self.key], share));
            match weight.is_zero() {
                true => {}
                false if weight == all && *what == LOST => found.push(ALL_LOST.to_owned()),
                false => found.push(format!("{} {what}", format_percent(share))),
            }
        }
        if self.lines > 0 {
            found.push(format!("{} skipped", plural(self.lines, "malformed line")));
        }
        found
    }
}

/// Returns the kinds of defects with their weights.
fn defects(context: &Context<'_>) -> [Defect; 7] {
    let Quality { lost, truncated, without_callers, unknown_callers, unknown, unsampled, without_scripts, .. } =
        context.survey.quality;
    let middle = "or more without their outermost callers";
    let without = match context.origins.can_record_scripts() {
        true => "in an interpreter or virtual machine, without the functions that it runs (fg-record shows them)",
        false => "in an interpreter or virtual machine, without the functions that it runs",
    };
    [
        (["lost_pct", "lost_before_pct", "lost_after_pct"], lost, LOST),
        (["truncated_pct", "truncated_before_pct", "truncated_after_pct"], truncated, "cut before the root"),
        (["without_callers_pct", "without_callers_before_pct", "without_callers_after_pct"], without_callers, middle),
        (
            ["unknown_callers_pct", "unknown_callers_before_pct", "unknown_callers_after_pct"],
            unknown_callers,
            "with unknown outermost callers",
        ),
        (["unknown_pct", "unknown_before_pct", "unknown_after_pct"], unknown, "in code without a symbol"),
        (["unsampled_pct", "unsampled_before_pct", "unsampled_after_pct"], unsampled, "without a stack"),
        (["without_scripts_pct", "without_scripts_before_pct", "without_scripts_after_pct"], without_scripts, without),
    ]
    .map(|(keys, weights, what)| Defect { keys, weights, what })
}
