//! The facts at the top of a page: how much there is, how good it is, and of what kind.

use std::cmp::Reverse;

use super::call_tree::{CallTree, Node};
use super::context::{Called, Context};
use super::fit::without_directories;
use super::join_some;
use super::judgement::Amount;
use super::lines;
use super::measure::format_count;
use super::overview::Overview;
use super::page::{Fact, Item, PathLines, Value};
use super::quality::{is_defect, quality};
use super::survey::Survey;
use super::waits;
use crate::Error;
use crate::diagnostics::plural;
use crate::own_code::Origin;
use crate::profile::{FrameId, Weight};

/// Kinds and threads below this share in percent are left out.
const MIN_SHARE: f64 = 0.05;

/// States below this share in percent are not on the first line.
const MIN_STATE: f64 = 0.5;

/// The hot path names a share again once it has fallen by this many percent points.
const SHARE_STEP: f64 = 5.0;

/// A branch is named where the hot path forks if it has this share in percent, and this part of the path's end.
const MIN_BRANCH: f64 = 2.0;
const MIN_BRANCH_PART: f64 = 0.05;

/// Most branches that are named.
const MOST_BRANCHES: usize = 4;

/// The facts about a profile.
pub(super) struct PlainFacts {
    /// Those at the top of the page.
    pub(super) first: Vec<Fact>,
    /// Those below the table of own functions.
    pub(super) second: Vec<Fact>,
}

/// Returns the facts about one profile.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn plain(
    context: &Context<'_>,
    overview: &Overview,
    inputs: &[String],
    tree: &CallTree,
) -> Result<PlainFacts, Error> {
    let quality = quality(context);
    let (mut first, mut second) = (vec![summary(context, inputs)], Vec::new());
    if is_defect(&quality) {
        first.push(quality)
    } else {
        second.push(quality)
    }
    first.extend(lines::divided_function(context));
    let groups = overview.groups(context);
    let path = hot_path(context, tree, groups.first.is_some());
    first.extend(overview.work(context)?);
    first.extend(groups.first);
    first.extend(path);
    second.extend(groups.others);
    second.extend(charged_threads(context)?);
    second.extend(states(context));
    // Lost samples have neither code nor depth.
    if context.survey.stacks > 0 {
        second.extend([kinds(context), depth(context)]);
    }
    Ok(PlainFacts { first, second })
}

/// Returns the fact that says which threads all waits are charged to.
fn charged_threads(context: &Context<'_>) -> Result<Option<Fact>, Error> {
    let items = waits::charged_threads(context)?;
    Ok((!items.is_empty()).then(|| Fact::new("waits for", Value::List(items))))
}

/// Returns the fact about the depth of stacks.
fn depth(context: &Context<'_>) -> Fact {
    let depth = depth_range(context.survey);
    let text = format!("{} in the median, {} to {} in all", plural(depth[1] as u64, "frame"), depth[0], depth[2]);
    let numbers = ["min", "median", "max"].into_iter().zip(depth.map(|depth| depth as f64)).collect();
    Fact { label: "depth", value: Value::Text(text), numbers }
}

/// Returns the fact about the size of a profile.
fn summary(context: &Context<'_>, inputs: &[String]) -> Fact {
    let Survey { total, stacks, .. } = context.survey;
    let amount = Amount::new(context);
    let states = states(context).map(|fact| match fact.value {
        Value::List(items) => join_large(&items),
        _ => String::new(),
    });
    let text = format!(
        "{}: {}{}, {} {}{}",
        join_some(inputs, ", "),
        amount.text(total.after),
        states.map_or_else(String::new, |states| format!(" ({states})")),
        format_count(*stacks),
        if *stacks == 1 { "stack" } else { "stacks" },
        context
            .single_source()
            .map_or_else(String::new, |source| format!(", own functions in {}", without_directories(source))),
    );
    let numbers = vec![("total", total.after.as_f64()), ("stacks", *stacks as f64)];
    Fact { label: "profile", value: Value::Text(text), numbers }
}

/// Returns the items that are not too small for the first line, joined by commas.
fn join_large(items: &[Item]) -> String {
    let large = items.iter().filter(|item| item.share_percent() >= MIN_STATE);
    large.map(Item::text).collect::<Vec<_>>().join(", ")
}

/// Returns the smallest, the median and the largest depth of a stack, by weight.
fn depth_range(survey: &Survey<'_>) -> [usize; 3] {
    // Without lost samples, which have no depth.
    let whole: u128 = survey.depths.values().map(|weights| weights.after.millionths()).sum();
    let half = Weight::from_millionths(whole / 2);
    let mut sum = Weight::ZERO;
    let median = survey.depths.iter().find(|(_, weights)| {
        sum = sum.checked_add(weights.after).unwrap_or(sum);
        sum >= half
    });
    let depths = [survey.depths.first_key_value(), median, survey.depths.last_key_value()];
    depths.map(|depth| depth.map_or(0, |(depth, _)| *depth))
}

/// Returns the weight by thread state, if there are states.
fn states(context: &Context<'_>) -> Option<Fact> {
    let states = &context.survey.states;
    if !states.keys().flatten().any(|state| context.is_state(*state)) {
        return None;
    }
    let named = states.iter().map(|(state, weights)| {
        let name = state.map_or_else(|| "running".to_owned(), |state| context.name(state));
        (name, weights.after)
    });
    Some(Fact::new("states", Value::List(largest(context, named))))
}

fn kinds(context: &Context<'_>) -> Fact {
    let kinds = context.survey.kinds.iter().map(|(kind, weights)| ((*kind).to_owned(), weights.after));
    Fact::new("code", Value::List(largest(context, kinds)))
}

/// Returns names with their shares, the largest first. Programs read the small ones, too.
fn largest(context: &Context<'_>, named: impl Iterator<Item = (String, Weight)>) -> Vec<Item> {
    let mut named: Vec<(String, Weight)> = named.collect();
    named.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
    let items = named.into_iter().map(|(name, weight)| (name, context.share(weight)));
    items
        .filter(|(_, share)| context.is_exact || *share >= MIN_SHARE)
        .map(|(name, share)| Item::share(name, share))
        .collect()
}

/// Returns the path of the most weight, with a share where it falls. Of libraries and the kernel, only the functions
/// that the program calls are shown, and the last one of all. If the path ends where the weight is divided, the branches
/// follow.
fn hot_path(context: &Context<'_>, tree: &CallTree, has_groups: bool) -> impl Iterator<Item = Fact> {
    // Recursion is shown once, with the share of the outermost call.
    let path = context.hot_path(tree);
    let frames: Vec<FrameId> = path.iter().filter_map(|node| node.frame).collect();
    let is_own_end = context.origins.place(&frames).own.is_none_or(|own| own + 1 == frames.len());
    let shown = context.shown_on_path(&frames, Called::Each);
    let (mut last, mut items) = (100.0, Vec::new());
    for (number, omitted) in shown {
        let (name, share) = (context.name(frames[number]), context.share(path[number].weights.after));
        let is_stated = last - share >= SHARE_STEP || number + 1 == frames.len();
        if is_stated {
            last = share;
        }
        items.extend(omitted.item());
        items.push(if is_stated { Item::share(name, share) } else { Item::new(name, None) });
    }
    let items = context.shorten_path(items, Item::new("…", None));
    let branches = branches(context, tree, path.last().copied().unwrap_or(tree.root()), is_own_end);
    let lines = if branches.len() > 1 { PathLines::One } else { PathLines::Two };
    // A path that ends at an entry, and its branches, say what the threads or entries say.
    let own = context.origins.find_own(&frames).into_iter().filter(|is_own| *is_own).count();
    let is_known = has_groups && is_own_end && own <= 1;
    let path = (!items.is_empty() && !is_known).then(|| Fact::new("hot path", Value::Path(items, lines)));
    let branches = (branches.len() > 1 && !is_known).then(|| Fact::new("branches", Value::List(branches)));
    path.into_iter().chain(branches)
}

/// Returns the largest branches below a node, each named by the first own function on it. Where a library divides the weight is
/// no choice of the program's, unless it calls the program: only such branches count there.
fn branches(context: &Context<'_>, tree: &CallTree, node: &Node, is_own: bool) -> Vec<Item> {
    // Of different functions with the same short name, each is a branch of its own.
    let mut sums: Vec<(FrameId, u128)> = Vec::new();
    for branch in tree.children(node) {
        let chain = tree.chain(branch);
        let own = chain.iter().find(|frame| context.origins.origin(**frame) == Origin::Own);
        let named = chain.iter().find(|frame| context.origins.says_something(**frame));
        let other = named.or(chain.first()).filter(|_| is_own);
        let Some(frame) = own.or(other) else { continue };
        let weight = branch.weights.after.millionths();
        match sums.iter_mut().find(|(other, _)| other == frame) {
            Some((_, sum)) => *sum += weight,
            None => sums.push((*frame, weight)),
        }
    }
    let mut sums: Vec<(String, u128)> = sums.into_iter().map(|(frame, sum)| (context.name(frame), sum)).collect();
    sums.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
    let min = (context.share(node.weights.after) * MIN_BRANCH_PART).max(MIN_BRANCH);
    let items = sums.into_iter().map(|(name, weight)| (name, context.share(Weight::from_millionths(weight))));
    items.filter(|(_, share)| *share >= min).take(MOST_BRANCHES).map(|(name, share)| Item::share(name, share)).collect()
}
