//! The details beside an own function: what it does, with its kind, and through whom it is called back.

use super::below::{Activity, Below, Part};
use super::context::Context;
use super::page::{Item, Number};
use super::work::Work;
use crate::profile::is_at_least;
use crate::profile::{FrameId, Weight, Weights};

/// Details below this share in percent are left out.
const MIN_DETAIL: f64 = 0.3;

/// Details below this part of their row are left out.
const MIN_PART: f64 = 0.03;

/// Changes below this many percent points are left out.
const MIN_CHANGE: f64 = 0.1;

/// A kind of work with this part of a callee's weight is named without a share.
const NEARLY_ALL: f64 = 0.9;

/// A kind of work below this part of a callee's weight is not named.
const MIN_KIND: f64 = 0.15;

/// A caller is named that calls the function back through a library, if it has this part of the function's weight.
const MIN_CALLER: f64 = 0.3;

/// Returns what an own function of this weight does, in shares of the total.
pub(super) fn shares(context: &Context<'_>, below: &Below, weights: Weights) -> Vec<Item> {
    let row = context.share(weights.after);
    let mut items: Vec<Item> = recursion(below, weights.after).filter(|_| !below.is_anonymous).into_iter().collect();
    items.extend(caller_through_library(context, below).map(|(caller, callee, weights)| {
        let name = format!("called by {} > {}", context.name(*caller), context.name(*callee));
        Item::share(name, context.share(weights.after))
    }));
    if let [Part { callee: None, activity: Activity::Running, callbacks, .. }] = &below.parts[..]
        && callbacks.is_empty()
    {
        return items;
    }
    let min = (row * MIN_PART).max(MIN_DETAIL);
    let parts = below.parts.iter();
    let parts = parts.map(|part| part_item(context, part, &|weights| context.share(weights.after), Number::Share));
    // What is called back counts for the callee, although its weight is that of another function.
    items.extend(
        parts.filter(|item| item.share_percent() + item.parts.iter().map(Item::share_percent).sum::<f64>() >= min),
    );
    items
}

/// Returns the own function that calls another back through one of a library, and that, if it has much of the weight.
pub(super) fn caller_through_library<'b>(
    context: &Context<'_>,
    below: &'b Below,
) -> Option<&'b (FrameId, FrameId, Weights)> {
    let parts = below.parts.iter().map(|part| part.weights.after.millionths());
    let whole = Weight::from_millionths(parts.fold(0, u128::saturating_add));
    let first = below.called_back.first();
    first.filter(|(_, _, weights)| context.share(weights.after) >= context.share(whole) * MIN_CALLER)
}

/// Returns by how much each part of an own function with these weights changed, in percent points of the total before.
pub(super) fn changes(context: &Context<'_>, below: &Below, weights: Weights) -> Vec<Item> {
    if let [Part { callee: None, .. }] = &below.parts[..] {
        return Vec::new();
    }
    let items = below.parts.iter();
    let items = items.map(|part| part_item(context, part, &|weights| context.change(weights), Number::Change));
    let min = (context.change(weights).abs() * MIN_PART).max(MIN_CHANGE);
    items.filter(|item| matches!(item.number, Some(Number::Change(change)) if change.abs() >= min)).collect()
}

/// Returns the item of a callee, or of the function itself.
fn part_item(context: &Context<'_>, part: &Part, size: &dyn Fn(Weights) -> f64, number: fn(f64) -> Number) -> Item {
    let whole = size(part.weights);
    let state = match part.activity {
        Activity::Blocked if context.has_running() => " [off-cpu]",
        Activity::Unsampled => " [unsampled]",
        _ => "",
    };
    let name = match (part.callee, part.activity) {
        (_, Activity::Runnable) => "waiting for a CPU".to_owned(),
        (Some(callee), _) => context.name(callee) + state,
        (None, _) => format!("itself{state}"),
    };
    let mut kinds: Vec<(f64, &str)> =
        part.kinds.iter().filter_map(|(kind, weights)| kind.map(|kind| (size(*weights), kind))).collect();
    kinds.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()).then(a.1.cmp(b.1)));
    let large = kinds.iter().filter(|(kind, _)| kind.abs() >= whole.abs() * MIN_KIND);
    let mut parts: Vec<Item> = large.map(|(share, kind)| Item::new(*kind, Some(number(*share)))).collect();
    if let Some((share, kind)) = kinds.first()
        && share.abs() >= whole.abs() * NEARLY_ALL
    {
        parts = vec![Item::new(*kind, None)];
    }
    for (function, weights) in part.callbacks.iter().filter(|(_, weights)| size(*weights).abs() >= MIN_DETAIL) {
        parts.push(Item::new(format!("calls back {}", context.name(*function)), Some(number(size(*weights)))));
    }
    // A wait says what happened; the functions on the way to it do not.
    let is_wait = kinds.first().is_some_and(|(_, kind)| Work::is_kernel(kind));
    let inner = part.inner.filter(|_| !is_wait).map(|(inner, _)| context.name(inner));
    Item { name, inner, number: Some(number(whole)), parts }
}

/// Returns how deep a function calls itself, if it does in most of its weight.
fn recursion(below: &Below, weight: Weight) -> Option<Item> {
    let whole = below.recursion.values().map(|weights| weights.after.millionths()).sum();
    if !is_at_least(whole, (1, 2), weight.millionths()) {
        return None;
    }
    let mut below_median = 0;
    let median = below.recursion.iter().find(|(_, weights)| {
        below_median += weights.after.millionths();
        is_at_least(below_median, (1, 2), whole)
    });
    median.map(|(depth, _)| Item::new(format!("calls itself {depth} deep"), None))
}
