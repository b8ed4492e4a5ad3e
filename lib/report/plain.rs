//! The page about one profile: where its weight is.

use std::cmp::Reverse;

use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

use super::below;
use super::budget::{Rows, WHOLE_PAGE};
use super::call_tree::CallTree;
use super::callers;
use super::commands::Commands;
use super::context::Context;
use super::details;
use super::facts::{self, PlainFacts};
use super::idle::{self, Rank};
use super::measure::Measure;
use super::overview::Overview;
use super::page::{Block, Fact, Item, Number, Page, Row, Table};
use super::survey::OwnFunction;
use super::tables::{column, largest_lines, table, tree_table};
use super::waits::waits_table;
use super::wakes;
use crate::Error;
use crate::own_code::Origin;
use crate::profile::is_at_least;
use crate::profile::{FrameId, Profile, Weight, Weights};

/// Rows below this share in percent are left out.
const MIN_SHARE: f64 = 0.5;

/// Number of rows of a table whose largest row is below that.
const FLAT_ROWS: usize = 3;

/// The callers of own functions from this share in percent on are named, if the hot path does not show them.
const MIN_CALLED: f64 = 10.0;

/// Own functions have much of the whole if they have this share in percent.
const MIN_OWN: f64 = 25.0;

/// Threads without own functions have most of the whole if they have this share in percent.
const MOST: f64 = 50.0;

/// A row is idle if this part of it is.
const NEARLY_ALL: f64 = 0.95;

/// The idle part of a row is stated from this part of the row on.
const MIN_IDLE_PART: f64 = 0.03;

/// Number of lines of the facts at the top.
const FACT_LINES: usize = 5;

/// The call tree of a profile.
struct Trees {
    /// That of all stacks, ordered by the work in them.
    whole: CallTree,
    /// That of stacks of work, if there are others.
    busy: Option<CallTree>,
}

impl Trees {
    fn new(context: &Context<'_>, profile: &Profile) -> Result<Self, Error> {
        let mut whole = CallTree::new(profile, Measure::After)?;
        let Some(parts) = context.inactive.split(profile, context)? else { return Ok(Self { whole, busy: None }) };
        whole.rank_by_work(&parts.inactive)?;
        Ok(Self { whole, busy: Some(CallTree::new(&parts.busy, Measure::After)?) })
    }
}

/// Returns the page about a profile.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn page(context: &Context<'_>, commands: &Commands, inputs: &[String], lines: usize) -> Result<Page, Error> {
    let joined = context.pools.join(context.profile)?;
    let joined = joined.as_ref().unwrap_or(context.profile);
    let trees = Trees::new(context, joined)?;
    let overview = Overview::new(context)?;
    let hot_tree = trees.busy.as_ref().unwrap_or(&trees.whole);
    let PlainFacts { first, mut second } = facts::plain(context, &overview, inputs, hot_tree)?;
    if lines < WHOLE_PAGE {
        // Own functions say more.
        second.retain(|fact| fact.label == "quality");
    }
    let fact_lines = first.iter().chain(&second).map(Fact::line_count).sum::<usize>() + 1;
    let rows = Rows::new(lines, fact_lines.max(FACT_LINES));
    // Programs read the tree of each thread.
    let exact = context.is_exact.then(|| Trees::new(context, context.profile)).transpose()?;
    let shown_tree = exact.as_ref().map_or(&trees.whole, |exact| &exact.whole);
    let hottest = hottest_own(context);
    let own = own_table(context, &hottest, hot_tree, rows.first)?;
    let noted = own.rows.iter().map(|row| row.notes.len()).sum::<usize>();
    // Who ended the waits says more than functions in many branches.
    let waits = waits_table(context, rows.third, |_| true)?;
    let inclusive_rows = if waits.rows.is_empty() || context.is_whole { rows.third } else { 0 };
    let selfs = self_table(context, rows.second.saturating_sub(noted).max(1))?;
    let shown: HashSet<FrameId, FxBuildHasher> =
        largest_lines(context, shown_tree, rows.tree).into_iter().flat_map(|line| line.chain).collect();
    let inclusive = inclusive_table(context, inclusive_rows, &shown);
    let used = [&waits, &own, &selfs, &inclusive].map(|table| table.rows.len());
    let rows = rows.reassign(used.iter().sum::<usize>() + noted);
    let hottest = function_to_look_at(context, &hottest)?;
    let commands = commands.for_function(context, hottest, rows.commands);
    let tables = [selfs, waits, inclusive, tree_table(context, shown_tree, rows.tree)];
    let tables = tables.into_iter().filter(Table::has_content).map(Block::Table);
    let second = (!second.is_empty()).then_some(Block::Facts(second));
    let blocks = [Block::Facts(first), Block::Table(own)];
    let blocks = blocks.into_iter().chain(second).chain(tables).chain([Block::Commands(commands)]).collect();
    Ok(Page { blocks, source: context.single_source().map(str::to_owned) })
}

/// Returns the program's own functions and the threads that have none, those with the most work first. Those that only wait for
/// work, or for the end of threads and processes, come last. A thread without own functions, of a runtime or of the start of a process, comes after functions of a
/// quarter of its weight, if functions have much of the whole.
fn hottest_own<'a>(context: &'a Context<'_>) -> Vec<(&'a FrameId, &'a OwnFunction)> {
    let ranks = context.ranks();
    let own = context.survey.own.iter();
    let mut own: Vec<_> = own.filter(|(frame, _)| context.origins.origin(**frame) != Origin::Marker).collect();
    let of_functions = own.iter().filter(|(frame, _)| context.is_own_function(**frame));
    let of_functions = of_functions.map(|(_, own)| own.weights.after.millionths());
    let of_functions = Weight::from_millionths(of_functions.fold(0, u128::saturating_add));
    let has_functions = context.share(of_functions) >= MIN_OWN;
    own.sort_by_key(|(frame, function)| {
        let work = work_of_row(context, **frame, function);
        let divisor = if has_functions && !context.is_own_function(**frame) { 4 } else { 1 };
        let weights = [work, function.weights.after].map(|weight| Reverse(weight.millionths() / divisor));
        (rank_of_row(context, **frame, function, work), weights, ranks[frame.index()])
    });
    own
}

/// A row that the page shows, and its share in percent.
#[derive(Clone, Copy)]
struct ShownRow {
    frame: FrameId,
    share: f64,
    /// True for the name of threads or of a process, with the weight that no function of the program has.
    is_thread: bool,
    /// True for threads that something of a run time started.
    is_of_run_time: bool,
    is_idle: bool,
}

/// Returns the function that a closer look is worth: that of the first row which the page shows. A row of threads that run no
/// function of the program has the one that they spend most in.
///
/// # Errors
/// [`Error::Overflow`].
fn function_to_look_at(context: &Context<'_>, rows: &[(&FrameId, &OwnFunction)]) -> Result<Option<FrameId>, Error> {
    let (least, _) = limits(context, rows.iter().map(|(_, function)| function.weights.after).max(), rows.len());
    let rows = rows.iter().map(|(frame, function)| ShownRow {
        frame: **frame,
        share: context.share(function.weights.after),
        is_thread: context.origins.has_thread_names() && !context.is_own_function(**frame)
            || function.is_thread
            || context.origins.lacks_scripts(**frame),
        is_of_run_time: function.is_thread,
        is_idle: function.is_idle_thread(),
    });
    let rows: Vec<ShownRow> = rows.filter(|row| row.share >= least).collect();
    let Some(first) = rows.first().copied() else { return Ok(None) };
    let own = rows.iter().find(|row| !row.is_thread && context.is_own_function(row.frame));
    let is_worth = |row: &&ShownRow| match own {
        Some(_) => {
            row.share >= MOST && !row.is_idle || context.origins.lacks_scripts(row.frame) && row.frame == first.frame
        }
        None => true,
    };
    let threads = rows.iter().filter(|row| row.is_thread).filter(is_worth);
    // The first row comes before what does not have much more.
    let least = if first.is_thread { MIN_CALLED } else { 2.0 * first.share };
    let callee = largest_callee(context, &threads.map(|row| row.frame).collect::<Vec<_>>())?;
    if let Some((callee, _)) = callee.filter(|(_, share)| *share >= least) {
        return Ok(Some(callee));
    }
    // A function of the program says more than a thread, unless it has little of the weight of a process.
    let own = own.filter(|own| first.is_of_run_time || !first.is_thread || own.share * 4.0 >= first.share);
    Ok(own.filter(|_| first.is_thread).map(|own| own.frame).or(Some(first.frame)))
}

/// Returns the function outside of the kernel that threads without own functions spend most in, with its share.
///
/// # Errors
/// [`Error::Overflow`].
fn largest_callee(context: &Context<'_>, threads: &[FrameId]) -> Result<Option<(FrameId, f64)>, Error> {
    let below = below::find(context, threads)?;
    let parts = below.iter().flat_map(|below| &below.parts);
    let functions =
        parts.filter_map(|part| Some((part.inner.map_or(part.callee?, |(inner, _)| inner), part.weights.after)));
    let functions =
        functions.filter(|(frame, _)| context.origins.says_something(*frame) && !context.origins.is_kernel(*frame));
    // Of equal ones the first.
    let largest = functions.reduce(|largest, other| if other.1 > largest.1 { other } else { largest });
    Ok(largest.map(|(frame, weight)| (frame, context.share(weight))))
}

/// Returns the weight of a row without what is idle, or waits for the end of others.
fn work_of_row(context: &Context<'_>, own: FrameId, function: &OwnFunction) -> Weight {
    let inactive = context.inactive.of_own(own).into_iter();
    inactive.fold(function.weights.after, |work, part| work.saturating_sub(part.after))
}

/// Returns the rank of a row with this much work.
fn rank_of_row(context: &Context<'_>, own: FrameId, function: &OwnFunction, work: Weight) -> Rank {
    let [idle, join] = context.inactive.of_own(own);
    let is_work =
        context.share(work) >= MIN_SHARE || is_at_least(work.millionths(), (1, 2), function.weights.after.millionths());
    match is_work {
        true if function.is_idle_thread() => Rank::Join,
        true => Rank::Work,
        false if idle.after > join.after => Rank::Idle,
        false => Rank::Join,
    }
}

/// Returns the least share of the rows of a table and their number. If even the largest is small, a few are shown all the same.
fn limits(context: &Context<'_>, largest: Option<Weight>, limit: usize) -> (f64, usize) {
    match largest.is_some_and(|weight| context.share(weight) < MIN_SHARE) {
        _ if context.is_whole => (0.0, limit),
        true => (0.0, limit.min(FLAT_ROWS)),
        false => (MIN_SHARE, limit),
    }
}

/// Returns the table of the program's own functions with what they do.
fn own_table(
    context: &Context<'_>,
    own: &[(&FrameId, &OwnFunction)],
    tree: &CallTree,
    limit: usize,
) -> Result<Table, Error> {
    let (least, limit) = limits(context, own.iter().map(|(_, function)| function.weights.after).max(), limit);
    let shown: Vec<(FrameId, Weights)> = own
        .iter()
        .map(|(frame, function)| (**frame, function.weights))
        .filter(|(_, weights)| context.share(weights.after) >= least)
        .take(limit)
        .collect();
    let frames: Vec<FrameId> = shown.iter().map(|(frame, _)| *frame).collect();
    let below = below::find(context, &frames)?;
    let mut notes = wakes::notes(context, &frames)?;
    let large = shown.iter().take_while(|(_, weights)| context.share(weights.after) >= MIN_CALLED).count();
    let callers = callers::notes(context, &frames[..large], tree)?.into_iter().zip(&below);
    for (notes, (called, below)) in notes.iter_mut().zip(callers) {
        // The text beside the row names who calls it through a library.
        let known = details::caller_through_library(context, below).map(|(caller, _, _)| context.name(*caller));
        let called = called.filter(|note| note.items.iter().any(|item| Some(&item.name) != known.as_ref()));
        notes.splice(0..0, called);
    }
    let rows = shown.iter().zip(below).zip(notes).map(|(((frame, weights), below), notes)| {
        let share = context.share(weights.after);
        Row {
            numbers: vec![Number::Share(share)],
            share,
            names: vec![context.name(*frame)],
            details: idle_mark(context, *frame, *weights).chain(details::shares(context, &below, *weights)).collect(),
            notes,
            ..Row::default()
        }
    });
    let title = "own functions, with the libraries and the kernel below them";
    Ok(table("own", title, "calls", vec![column("share_pct", "share")], rows.collect(), own.len()))
}

/// Returns the mark of a row that is idle, with its share if a part of it is.
fn idle_mark(context: &Context<'_>, own: FrameId, weights: Weights) -> impl Iterator<Item = Item> {
    let [idle, _] = context.inactive.of_own(own);
    let [part, whole] = [idle, weights].map(|weights| context.share(weights.after));
    let mark = match part {
        _ if part >= whole * NEARLY_ALL => Some(Item::new(idle::MARK, None)),
        _ if part >= (whole * MIN_IDLE_PART).max(MIN_SHARE) => Some(Item::share(idle::MARK, part)),
        _ => None,
    };
    mark.into_iter()
}

/// Returns the functions with the most self weight, and who calls them. The weight of idle CPUs and threads
/// does not count for their order.
pub(super) fn self_table(context: &Context<'_>, limit: usize) -> Result<Table, Error> {
    let ranks = context.ranks();
    let mut functions: Vec<(Weight, FrameId)> = frames(context)
        .map(|(frame, function)| (function.self_weights.after, frame))
        .filter(|(weight, _)| !weight.is_zero())
        .collect();
    functions.sort_by_key(|(weight, frame)| {
        let work = weight.saturating_sub(context.inactive.idle_leaf(*frame).after);
        (Reverse(work), Reverse(*weight), ranks[frame.index()])
    });
    let all = functions.len();
    let (least, limit) = limits(context, functions.iter().map(|(weight, _)| *weight).max(), limit);
    functions.truncate(limit);
    functions.retain(|(weight, _)| context.share(*weight) >= least);
    let callers = callers::of_leaves(context, &functions.iter().map(|(_, frame)| *frame).collect::<Vec<_>>())?;
    let rows = functions.iter().zip(callers).map(|((weight, frame), callers)| {
        let share = context.share(*weight);
        let inclusive = context.share(context.survey.functions[frame.index()].inclusive.after);
        Row {
            numbers: vec![Number::Share(share), Number::Share(inclusive)],
            share,
            names: vec![context.name(*frame)],
            details: callers,
            ..Row::default()
        }
    });
    let columns = vec![column("self_pct", "self"), column("inclusive_pct", "inclusive")];
    Ok(table("self", "functions by self weight, and the own ones above", "callers", columns, rows.collect(), all))
}

/// Returns all functions.
fn frames<'a>(context: &'a Context<'_>) -> impl Iterator<Item = (FrameId, &'a super::survey::Function)> {
    (0..).map(FrameId::from_index).zip(&context.survey.functions)
}

/// Returns the functions with the most weight that the tree does not show, because it is spread over many branches.
fn inclusive_table(context: &Context<'_>, limit: usize, shown: &HashSet<FrameId, FxBuildHasher>) -> Table {
    let ranks = context.ranks();
    let mut functions: Vec<_> = frames(context)
        .filter(|(frame, function)| !shown.contains(frame) && function.is_open && !function.is_passage())
        .filter(|(frame, _)| context.origins.origin(*frame) != Origin::Marker && !context.origins.is_start(*frame))
        .filter(|(_, function)| context.is_whole || context.share(function.inclusive.after) >= MIN_SHARE)
        .collect();
    functions.sort_by_key(|(frame, function)| (Reverse(function.inclusive.after), ranks[frame.index()]));
    let all = functions.len();
    let rows = functions.into_iter().take(limit).map(|(frame, function)| {
        let share = context.share(function.inclusive.after);
        Row {
            numbers: vec![Number::Share(context.share(function.self_weights.after)), Number::Share(share)],
            share,
            names: vec![context.name(frame)],
            ..Row::default()
        }
    });
    let columns = vec![column("self_pct", "self"), column("inclusive_pct", "inclusive")];
    let title = "functions by inclusive weight that the tree does not show";
    table("inclusive", title, "details", columns, rows.collect(), all)
}
