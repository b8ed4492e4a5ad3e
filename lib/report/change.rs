//! The page about two profiles: what grew, shrank, appeared and vanished.

use std::cmp::Reverse;

use super::below::{self, Below};
use super::budget::Rows;
use super::call_tree::CallTree;
use super::commands::Commands;
use super::context::Context;
use super::details;
use super::growth::{self, Grown};
use super::idle::{self, Rank};
use super::judgement::{Amount, Judgement};
use super::measure::{Measure, format_change, format_count, percent_change};
use super::page::{Block, Fact, Item, Number, Page, Row, Table, Value};
use super::quality::{is_defect, quality};
use super::survey::OwnFunction;
use super::tables::{column, comparison_columns, comparison_numbers, table, tree_table};
use super::totals::totals;
use super::unexplained;
use super::wrappers::Wrappers;
use crate::Error;
use crate::diagnostics::{plural, printable};
use crate::profile::is_at_least;
use crate::profile::{FrameId, Weight, Weights};
use crate::stats::caveat::Caveat;

/// Most functions of libraries that are named.
const MOST_CALLEES: usize = 5;

/// Number of lines of the facts at the top.
const FACT_LINES: usize = 4;

/// Differences within noise are listed from this many percent points on.
const MIN_NOISE: f64 = 1.0;

/// The changes that a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Grew,
    Shrank,
    Noise,
}

impl Shown {
    /// True for a change that the table shows. Differences within noise are shown from `least_noise` percent points on.
    fn contains(self, change: &Change<'_>, total: Weight, least_noise: f64) -> bool {
        match self {
            Self::Grew => change.counts && change.is_growth(),
            Self::Shrank => change.counts && !change.is_growth(),
            Self::Noise => !change.counts && percent_change(change.function.weights, total).abs() >= least_noise,
        }
    }

    /// Returns the name of the table for programs, and its title.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Grew => ("grew", "own functions that grew"),
            Self::Shrank => ("shrank", "own functions that shrank"),
            Self::Noise => ("noise", "differences within noise"),
        }
    }
}

/// The change of one of the program's own functions.
struct Change<'a> {
    frame: FrameId,
    function: &'a OwnFunction,
    /// The probability that noise alone causes it.
    chance: Option<f64>,
    /// True if it is more than noise, or if that is not known.
    counts: bool,
    /// Its rank: changes of work come first.
    rank: Rank,
}

impl Change<'_> {
    fn is_growth(&self) -> bool {
        self.function.weights.after > self.function.weights.before
    }

    /// Returns the weights of all stacks that contain the function.
    fn inclusive(&self, context: &Context<'_>) -> Weights {
        context.survey.functions[self.frame.index()].inclusive
    }
}

/// Returns the page about two profiles.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn page(context: &Context<'_>, commands: &Commands, sides: [&str; 2], lines: usize) -> Result<Page, Error> {
    let (changes, judgement) = find_changes(context)?;
    let joined = context.renamed.join(context.profile)?;
    let joined = joined.as_ref().unwrap_or(context.profile);
    let quality = quality(context);
    let mut facts = vec![totals(context, sides)];
    let (first, second) = if is_defect(&quality) { (Some(quality), None) } else { (None, Some(quality)) };
    facts.extend(first);
    facts.extend(context.counterparts.describe().map(|pairs| Fact::new("names", Value::Text(printable(&pairs)))));
    let moved = context.counterparts.describe_moved_lines();
    let moved = moved.map(|moved| format!("{moved}; a command below compares without it"));
    facts.extend(moved.map(|moved| Fact::new("lines", Value::Text(moved))));
    facts.extend(context.renamed.fact(context));
    let wrappers = Wrappers::find(context)?;
    facts.push(verdict(context, &changes, &judgement, &wrappers)?);
    facts.extend(wrappers.fact(context));
    let grown = find_grown(context, &changes, &judgement, &wrappers);
    facts.extend(growth::path(context, joined, &grown)?);
    facts.extend(callees(context, &judgement));
    let fact_lines = facts.iter().chain(&second).map(Fact::line_count).sum::<usize>();
    let rows = Rows::new(lines, fact_lines.max(FACT_LINES));
    let grew = change_table(context, &changes, Shown::Grew, rows.first)?;
    let shrank = change_table(context, &changes, Shown::Shrank, rows.second + rows.third)?;
    let larger_noise =
        count_growth_within_noise(&changes).min((rows.second + rows.third).saturating_sub(shrank.rows.len()));
    // Without any, the largest differences are all that there is to look at.
    let noise_rows = match grew.rows.is_empty() && shrank.rows.is_empty() {
        _ if context.is_whole => rows.first,
        true => rows.first + rows.second + rows.third,
        false => larger_noise,
    };
    let noise = change_table(context, &changes, Shown::Noise, noise_rows)?;
    let rows = rows.reassign(grew.rows.len() + shrank.rows.len() + noise.rows.len());
    // Programs read the tree of each thread.
    let pooled = if context.is_exact { None } else { context.pools.join(joined)? };
    let changed_tree = CallTree::new(pooled.as_ref().unwrap_or(joined), Measure::Moved)?;
    let tree = tree_table(context, &changed_tree, rows.tree);
    // What grew is what most readers look for.
    let largest = changes.iter().find(|change| change.counts).map(|change| change.frame);
    let leading = grown.own.first().map(|(frame, _)| *frame).or(grown.inclusive).or(largest);
    let commands =
        commands.for_function(context, leading.map(|frame| without_root(context, frame, &judgement)), rows.commands);
    let tables = [grew, shrank, noise, tree].into_iter().filter(Table::has_content).map(Block::Table);
    let second = second.map(|quality| Block::Facts(vec![quality]));
    let blocks = [Block::Facts(facts)].into_iter().chain(tables).chain(second).chain([Block::Commands(commands)]);
    Ok(Page { blocks: blocks.collect(), source: context.single_source().map(str::to_owned) })
}

/// Returns how many functions grew within noise more than all that grew beyond it, and by at least a quarter of the largest change.
fn count_growth_within_noise(changes: &[Change<'_>]) -> usize {
    let size = |change: &Change<'_>| change.function.weights.difference();
    let counted = || changes.iter().filter(|change| change.counts && change.rank != Rank::Idle);
    let growth = counted().filter(|change| change.is_growth()).map(size).max();
    let Some(largest) = counted().map(size).max() else { return 0 };
    let is_large = |change: &&Change<'_>| {
        Some(size(change)) > growth && is_at_least(size(change).millionths(), (1, 4), largest.millionths())
    };
    let within = changes.iter().filter(|change| !change.counts && change.is_growth() && change.rank != Rank::Idle);
    within.filter(is_large).count()
}

/// Returns the function of a library that changed most itself for threads that run no function of the program, if there is one.
fn without_root(context: &Context<'_>, leading: FrameId, judgement: &Judgement) -> FrameId {
    let origins = context.origins;
    let is_thread = origins.has_thread_names() && !context.is_own_function(leading);
    let mut callees = judgement.callees.iter().map(|(frame, _)| *frame).filter(|_| is_thread);
    callees.find(|frame| origins.says_something(*frame) && !origins.is_kernel(*frame)).unwrap_or(leading)
}

/// Returns the changes of all own functions, the largest first. Waits for other threads come after work of a quarter of their
/// change; waits for their end, and what is idle, come last.
///
/// # Errors
/// [`Error::Overflow`].
fn find_changes<'a>(context: &'a Context<'_>) -> Result<(Vec<Change<'a>>, Judgement), Error> {
    let own: Vec<_> = context.survey.own.iter().collect();
    let functions = own.iter().map(|(frame, function)| (**frame, function.weights));
    let judgement = Judgement::new(context, functions)?;
    let ranks = context.profile.frames.ranks();
    let mut changes: Vec<Change<'_>> = own
        .into_iter()
        .enumerate()
        .filter(|(_, (frame, function))| {
            function.weights.before != function.weights.after && !context.renamed.contains(**frame)
        })
        .map(|(number, (frame, function))| {
            let chance = judgement.chances.get(number).copied();
            let rank = context.inactive.rank(*frame, function.weights);
            Change { frame: *frame, function, chance, counts: judgement.counts(number), rank }
        })
        .collect();
    changes.sort_by_key(|change| {
        let (function, difference) = (change.frame, change.function.weights.difference());
        let divisor = if context.inactive.waits(function, change.function.weights) { 4 } else { 1 };
        (change.rank, Reverse(difference.millionths() / divisor), ranks[function.index()])
    });
    Ok((changes, judgement))
}

/// Returns the sentence that answers if anything changed.
fn verdict(
    context: &Context<'_>,
    changes: &[Change<'_>],
    judgement: &Judgement,
    wrappers: &Wrappers,
) -> Result<Fact, Error> {
    let counted: Vec<&Change<'_>> = changes.iter().filter(|change| change.counts).collect();
    let [mut grew, mut shrank, mut appeared, mut vanished] = [0; 4];
    let idle = counted.iter().filter(|change| change.rank == Rank::Idle).count();
    for change in counted.iter().filter(|change| change.rank != Rank::Idle) {
        let inclusive = change.inclusive(context);
        appeared += usize::from(inclusive.before.is_zero());
        vanished += usize::from(inclusive.after.is_zero());
        grew += usize::from(change.is_growth() && !inclusive.before.is_zero());
        shrank += usize::from(!change.is_growth() && !inclusive.after.is_zero());
    }
    let noise = changes.len() - counted.len();
    let numbers =
        [("grew", grew), ("shrank", shrank), ("appeared", appeared), ("vanished", vanished), ("noise", noise)];
    let parts = numbers[..4].iter().filter(|(_, count)| *count > 0);
    let mut parts: Vec<String> = parts.map(|(what, count)| format!("{} {what}", format_count(*count))).collect();
    parts.extend(
        (idle > 0)
            .then(|| format!("{} idle {}", format_count(idle), if idle == 1 { "one differs" } else { "ones differ" })),
    );
    let judged = if judgement.chances.is_empty() { "not judged" } else { "beyond noise" };
    let mut text = match (parts.is_empty(), judgement.callees.is_empty(), &judgement.inclusive[..]) {
        (false, ..) => {
            let changed = counted.iter().map(|change| change.frame).collect();
            let largest = counted.iter().map(|change| change.function.weights.difference().millionths()).max();
            let other = unexplained::find(context, &changed, wrappers, largest.unwrap_or_default())?;
            let other = other.map(|(frame, weights)| {
                let change = format_change(context.change(weights));
                format!(", and {} with all that it calls {change}", context.name(frame))
            });
            format!("{judged}, of the own functions {}{}", parts.join(", "), other.unwrap_or_default())
        }
        (true, false, _) => format!("{judged}, no own function changed, but some that they call"),
        (true, true, _) if judgement.chances.is_empty() => format!("{judged}, no own function changed"),
        (true, true, []) => "nothing changed beyond noise".to_owned(),
        (true, true, [(frame, weights), opposite @ ..]) => {
            let change = |weights| format_change(context.change(weights));
            let opposite =
                opposite.iter().map(|(frame, weights)| format!(" and {} {}", context.name(*frame), change(*weights)));
            let opposite = opposite.collect::<String>();
            let (name, change) = (context.name(*frame), change(*weights));
            format!("{judged}, {name} with all that it calls {change}{opposite}, but no function by itself")
        }
    };
    if noise > 0 {
        text.push_str(&format!("; {} within it", differing(noise)));
    }
    let has_changed = !parts.is_empty() || !judgement.callees.is_empty() || !judgement.inclusive.is_empty();
    let single = judgement.is_uncertain.then_some(match has_changed {
        true => "one run a side: a busy machine may cause it",
        false => "one run a side shows large changes only: compare several",
    });
    if let Some(caveat) = judgement.caveat.clone().or(single.map(Caveat::from)) {
        text.push_str(&format!(" ({caveat})"));
    }
    let numbers = numbers.map(|(what, count)| (what, count as f64)).to_vec();
    Ok(Fact { label: "verdict", value: Value::Text(text), numbers })
}

/// Returns how many own functions differ: `1 own function differs`.
fn differing(count: usize) -> String {
    format!("{} {}", plural(count as u64, "own function"), if count == 1 { "differs" } else { "differ" })
}

/// Returns the functions of libraries and the kernel that changed themselves.
fn callees(context: &Context<'_>, judgement: &Judgement) -> Option<Fact> {
    let is_idle = |(frame, _): &&(FrameId, Weights)| {
        context.inactive.is_idle_leaf(*frame, context.survey.functions[frame.index()].self_weights)
    };
    let (idle, busy): (Vec<&(FrameId, Weights)>, Vec<_>) = judgement.callees.iter().partition(is_idle);
    let items = busy.into_iter().chain(idle).take(MOST_CALLEES);
    let items =
        items.map(|(frame, weights)| Item::new(context.name(*frame), Some(Number::Change(context.change(*weights)))));
    let items: Vec<Item> = items.collect();
    (!items.is_empty()).then(|| Fact::new("callees", Value::List(items)))
}

/// Returns the functions that grew by more than noise. A thread without own functions, of a run time, comes after
/// functions that have a quarter of its growth.
fn find_grown(context: &Context<'_>, changes: &[Change<'_>], judgement: &Judgement, wrappers: &Wrappers) -> Grown {
    let mut grown: Vec<&Change<'_>> = changes.iter().filter(|change| change.counts && change.is_growth()).collect();
    let of_functions = grown.iter().filter(|change| context.is_own_function(change.frame));
    let of_functions = of_functions.map(|change| change.function.weights.difference()).max();
    let is_led = grown.first().is_some_and(|first| {
        let largest = first.function.weights.difference().millionths();
        of_functions.is_some_and(|function| is_at_least(function.millionths(), (1, 4), largest))
    });
    if is_led {
        grown.retain(|change| context.is_own_function(change.frame));
    }
    // Those who wait for a thread grow with it, and idle ones say nothing.
    let has_work = grown.first().is_some_and(|first| first.rank == Rank::Work);
    if has_work {
        grown.retain(|change| change.rank == Rank::Work);
    }
    if grown.first().is_some_and(|first| !context.inactive.waits(first.frame, first.function.weights)) {
        grown.retain(|change| !context.inactive.waits(change.frame, change.function.weights));
    }
    let grown_inclusively =
        context.judged.map_or(&[][..], |judged| judged.inclusive()).iter().filter(|(frame, weights)| {
            weights.after > weights.before && !wrappers.contains(*frame) && !context.renamed.contains(*frame)
        });
    let grown_inclusively =
        grown_inclusively.min_by_key(|(frame, weights)| context.inactive.is_inactive_inclusively(*frame, *weights));
    // A wrapper comes last: its growth may be that of nothing.
    let of_verdict = || judgement.inclusive.iter().find(|(_, weights)| weights.after > weights.before);
    let inclusive = grown_inclusively.or_else(of_verdict);
    let inclusive = inclusive.map(|(frame, _)| *frame);
    let own: Vec<(FrameId, Weights)> = grown.iter().map(|change| (change.frame, change.function.weights)).collect();
    Grown { has_work: has_work || own.is_empty(), own, inclusive }
}

/// Returns the table of the functions with these changes.
fn change_table(context: &Context<'_>, changes: &[Change<'_>], shown: Shown, limit: usize) -> Result<Table, Error> {
    let total = context.base();
    let least_noise = if context.is_whole { 0.0 } else { MIN_NOISE };
    let wanted = changes.iter().filter(|change| shown.contains(change, total, least_noise));
    let wanted: Vec<&Change<'_>> = wanted.collect();
    let all = wanted.len();
    let wanted = &wanted[..wanted.len().min(limit)];
    let amount = Amount::new(context);
    let below = below::find(context, &wanted.iter().map(|change| change.frame).collect::<Vec<_>>())?;
    let rows = wanted.iter().zip(&below).map(|(change, below)| {
        let (mut numbers, share) = comparison_numbers(amount, change.function.weights, total);
        numbers.push(change.chance.map_or(Number::Unknown, Number::Chance));
        Row {
            numbers,
            share,
            names: vec![context.name(change.frame)],
            details: details_of(context, change, below),
            ..Row::default()
        }
    });
    let rows: Vec<Row> = rows.collect();
    let (key, what) = shown.names();
    let mut columns = comparison_columns();
    columns.push(column("chance", "chance"));
    Ok(table(key, &format!("{what}, change in % of all {}", context.base_side()), "calls", columns, rows, all))
}

/// Returns if a function is new or gone, and the changes of what it calls.
fn details_of(context: &Context<'_>, change: &Change<'_>, below: &Below) -> Vec<Item> {
    let inclusive = change.inclusive(context);
    let mut items: Vec<Item> = Vec::new();
    for (what, weight) in [("appeared", inclusive.before), ("vanished", inclusive.after)] {
        if weight.is_zero() {
            items.push(Item::new(what, None));
        }
    }
    items.extend((change.rank == Rank::Idle).then(|| Item::new(idle::MARK, None)));
    items.extend(details::changes(context, below, change.function.weights));
    items
}
