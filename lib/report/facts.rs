//! The facts at the top of a page: how much there is, how good it is, and of what kind.

use std::cmp::Reverse;

use super::call_tree::CallTree;
use super::context::{Context, shorten_path};
use super::join_some;
use super::judgement::Amount;
use super::measure::{format_change, format_count, format_percent, percent, percent_change};
use super::page::{Fact, Item, Value};
use super::survey::{Quality, Survey};
use crate::diagnostics::plural;
use crate::profile::{FrameId, Weight, Weights};

/// Kinds and threads below this share in percent are left out.
const MIN_SHARE: f64 = 0.05;

/// The hot path names a share again once it has fallen by this many percent points.
const SHARE_STEP: f64 = 5.0;

/// Returns the facts about one profile.
pub(super) fn plain(context: &Context<'_>, inputs: &[String], tree: &CallTree) -> Vec<Fact> {
    let Survey { total, stacks, .. } = context.survey;
    let amount = Amount::new(context);
    let depth = depth_range(context.survey);
    let text = format!(
        "{}: {}, {} stacks, depth {} ({} to {})",
        join_some(inputs, ", "),
        amount.text(total.after),
        format_count(*stacks),
        depth[1],
        depth[0],
        depth[2]
    );
    let mut numbers = vec![("total", total.after.as_f64()), ("stacks", *stacks as f64)];
    numbers.extend(["depth_min", "depth_median", "depth_max"].into_iter().zip(depth.map(|depth| depth as f64)));
    let mut facts = vec![Fact { label: "profile", value: Value::Text(text), numbers }, quality(context)];
    facts.extend(states(context));
    facts.extend(threads(context));
    facts.push(kinds(context));
    facts.push(hot_path(context, tree));
    facts
}

/// Returns the smallest, the median and the largest depth of a stack, by weight.
fn depth_range(survey: &Survey<'_>) -> [usize; 3] {
    let half = Weight::from_millionths(survey.total.after.millionths() / 2);
    let mut sum = Weight::ZERO;
    let median = survey.depths.iter().find(|(_, weights)| {
        sum = sum.checked_add(weights.after).unwrap_or(sum);
        sum >= half
    });
    let depths = [survey.depths.first_key_value(), median, survey.depths.last_key_value()];
    depths.map(|depth| depth.map_or(0, |(depth, _)| *depth))
}

/// Returns what is missing from the stacks.
pub(super) fn quality(context: &Context<'_>) -> Fact {
    let (survey, missing) = (context.survey, context.missing);
    let Quality { lost, truncated, unknown, unsampled, without_scripts } = survey.quality;
    let parts = [
        ("lost_pct", lost, "of the samples lost"),
        ("truncated_pct", truncated, "cut before the root, so that totals of callers are too low"),
        ("unknown_pct", unknown, "in code without a symbol"),
        ("unsampled_pct", unsampled, "without a stack"),
        (
            "without_scripts_pct",
            without_scripts,
            "in an interpreter or virtual machine, without the functions that it runs",
        ),
    ];
    let share =
        |weights: Weights| percent(weights.after, survey.total.after).max(percent(weights.before, survey.total.before));
    let mut numbers: Vec<(&str, f64)> = parts.iter().map(|(key, weights, _)| (*key, share(*weights))).collect();
    let mut bad: Vec<String> = parts
        .iter()
        .filter(|(_, weights, _)| *weights != Weights::default())
        .map(|(_, weights, what)| format!("{} {what}", format_percent(share(*weights))))
        .collect();
    if missing.lines > 0 {
        numbers.push(("malformed_lines", missing.lines as f64));
        bad.push(format!("{} skipped", plural(missing.lines, "malformed line")));
    }
    if missing.has_inputs {
        bad.push("an input could not be read".to_owned());
    }
    let text = match bad.is_empty() {
        true => "nothing lost, all stacks reach their root, all functions have names".to_owned(),
        false => bad.join(", "),
    };
    Fact { label: "quality", value: Value::Text(text), numbers }
}

/// Returns the weight by thread state, if there are states.
fn states(context: &Context<'_>) -> Option<Fact> {
    let states = &context.survey.states;
    if states.keys().all(Option::is_none) {
        return None;
    }
    let named = states.iter().map(|(state, weights)| {
        let name = state.map_or_else(|| "running".to_owned(), |state| context.name(state));
        (name, weights.after)
    });
    Some(Fact::new("states", Value::List(largest(context, named))))
}

/// Returns the weight by root frame, if there are several.
fn threads(context: &Context<'_>) -> Option<Fact> {
    let roots = &context.survey.roots;
    let named = roots.iter().map(|(root, weights)| (context.name(*root), weights.after));
    (roots.len() > 1).then(|| Fact::new("threads", Value::List(largest(context, named))))
}

fn kinds(context: &Context<'_>) -> Fact {
    let kinds = context.survey.kinds.iter().map(|(kind, weights)| ((*kind).to_owned(), weights.after));
    Fact::new("code", Value::List(largest(context, kinds)))
}

/// Returns names with their shares, the largest first.
fn largest(context: &Context<'_>, named: impl Iterator<Item = (String, Weight)>) -> Vec<Item> {
    let mut named: Vec<(String, Weight)> = named.collect();
    named.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
    let items = named.into_iter().map(|(name, weight)| (name, context.share(weight)));
    items.filter(|(_, share)| *share >= MIN_SHARE).map(|(name, share)| Item::share(name, share)).collect()
}

/// Returns the path of the most weight, with a share where it falls. Of libraries and the kernel, only the functions
/// that the program calls are shown, and the last one of all.
fn hot_path(context: &Context<'_>, tree: &CallTree) -> Fact {
    // Recursion is shown once, with the share of the outermost call.
    let path = context.hot_path(tree);
    let frames: Vec<FrameId> = path.iter().filter_map(|node| node.frame).collect();
    let shown = context.shown_on_path(&frames);
    let (mut last, mut items) = (100.0, Vec::new());
    for (number, omitted) in shown {
        let (name, share) = (context.name(frames[number]), context.share(path[number].weights.after));
        let is_stated = last - share >= SHARE_STEP || number + 1 == frames.len();
        if is_stated {
            last = share;
        }
        items.extend(omitted.item());
        items.push(if is_stated { Item::share(name, share) } else { Item { name, number: None } });
    }
    Fact::new("hot path", Value::Path(shorten_path(items, Item { name: "…".to_owned(), number: None })))
}

/// Returns the fact about the totals of two profiles.
pub(super) fn totals(context: &Context<'_>, amount: &Amount<'_>, sides: [&str; 2]) -> Fact {
    let total = context.survey.total;
    let change = percent_change(total, total.before);
    let text = format!(
        "{}: {}; {}: {} ({})",
        sides[0],
        amount.text(total.before),
        sides[1],
        amount.text(total.after),
        format_change(change)
    );
    let numbers = vec![("before", total.before.as_f64()), ("after", total.after.as_f64()), ("change_pct", change)];
    Fact { label: "profiles", value: Value::Text(text), numbers }
}
