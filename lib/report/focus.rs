//! The page about some functions: who calls them, and what they call.

use std::cmp::Reverse;

use super::budget::Rows;
use super::call_tree::CallTree;
use super::context::Context;
use super::idle::{InactivityFinder, without_stacks};
use super::join_some;
use super::measure::{Measure, format_count, format_percent, percent};
use super::page::{Block, Fact, Item, Number, Page, Table, Value};
use super::plain::self_table;
use super::quality::quality;
use super::survey::Survey;
use super::tables::{column, tree_table};
use super::waits::waits_table;
use crate::Error;
use crate::filter::FrameMatcher;
use crate::profile::{FrameId, Profile, Weights};
use crate::symbol_name::shorten::shorten;

/// Number of lines of the facts at the top.
const FACT_LINES: usize = 3;

/// Parts of stacks.
struct Part {
    all: Profile,
    /// Those of stacks that do no work.
    inactive: Profile,
}

impl Part {
    fn new(profile: &Profile) -> Self {
        Self { all: without_stacks(profile), inactive: without_stacks(profile) }
    }

    fn add(&mut self, stack: &[FrameId], weights: Weights, is_inactive: bool) -> Result<(), Error> {
        if is_inactive {
            self.inactive.add(stack, weights)?;
        }
        self.all.add(stack, weights)
    }
}

/// The parts of all stacks that contain a function that matches.
struct Parts {
    /// The stacks from the first match on.
    callees: Part,
    /// The stacks up to the first match, the match first and the root last.
    callers: Part,
    /// The first match of each stack, with the weight of these stacks.
    matches: Vec<(FrameId, Weights)>,
    /// Number of functions that match, first in a stack or not.
    count: usize,
}

/// Removes the column of self weights: where stacks of callers end is no function that ran. The other one has the share of a
/// caller.
fn without_self(mut table: Table) -> Table {
    table.columns = vec![column("share_pct", "share")];
    for row in &mut table.rows {
        row.numbers.remove(0);
    }
    table
}

/// Returns the page about the functions that match.
///
/// # Errors
/// [`Error::Overflow`], and [`Error::Invalid`] if no function matches.
pub(super) fn page(
    context: &Context<'_>,
    focus: &FrameMatcher,
    inputs: &[String],
    lines: usize,
) -> Result<Page, Error> {
    let is_match = find_matches(context, focus);
    let parts = split(context, &is_match)?;
    if parts.matches.is_empty() {
        return Err(Error::Invalid(format!("--focus {}: no frame matches", focus.pattern())));
    }
    let measure = if context.profile.is_differential() { Measure::Moved } else { Measure::After };
    let facts = vec![summary(context, inputs), focused(context, &parts), quality(context)];
    let rows = Rows::new(lines, FACT_LINES);
    let half = (rows.first + rows.second + rows.third + rows.tree) / 2;
    let survey = Survey::new(&parts.callees.all, context.origins)?;
    let below = Context { profile: &parts.callees.all, survey: &survey, ..*context };
    // Shares of self weight are those of one profile.
    let self_rows = if context.profile.is_differential() { 0 } else { rows.second };
    let selfs = self_table(&below, self_rows)?;
    let selfs_key = selfs.key;
    let rest = half.saturating_sub(selfs.rows.len());
    let callees = largest_branches(&below, measure, &parts.callees.inactive, rest.max(half / 2))?;
    let above = Context { profile: &parts.callers.all, ..*context };
    let callers = largest_branches(&above, measure, &parts.callers.inactive, half)?;
    let callers = Table { key: "callers", title: "callers: each line calls the one above it".to_owned(), ..callers };
    let callers = if context.profile.is_differential() { callers } else { without_self(callers) };
    let callees = Table { key: "tree", title: "callees, without branches below 1% of them".to_owned(), ..callees };
    let waits = waits_table(context, rows.third, |waiting| waiting.iter().any(|frame| is_match[frame.index()]))?;
    let tables = [waits, callers, callees, selfs]
        .into_iter()
        .filter(|table| table.has_content() && (table.key != selfs_key || !context.profile.is_differential()));
    let tables = tables.map(Block::Table);
    let blocks = [Block::Facts(facts)].into_iter().chain(tables).collect();
    Ok(Page { blocks, source: context.single_source().map(str::to_owned) })
}

/// Returns the largest branches of a profile as a table. If none has changed enough, these are those with the most weight.
/// Those of one profile are ordered by the work in them: `inactive` has the stacks that do none.
fn largest_branches(context: &Context<'_>, measure: Measure, inactive: &Profile, limit: usize) -> Result<Table, Error> {
    let mut tree = CallTree::new(context.profile, measure)?;
    if !context.profile.is_differential() {
        tree.rank_by_work(inactive)?;
    }
    let table = tree_table(context, &tree, limit);
    match table.rows.is_empty() && measure == Measure::Moved {
        true => Ok(tree_table(context, &CallTree::new(context.profile, Measure::After)?, limit)),
        false => Ok(table),
    }
}

/// The forms of names in which a focus is searched for: the first counts in which one matches.
const FORMS: [NameForm; 3] = [NameForm::Whole, NameForm::WithoutArguments, NameForm::Shown];

/// A form of the names of functions.
#[derive(Clone, Copy, Debug)]
enum NameForm {
    Whole,
    /// Without template, generic and call arguments.
    WithoutArguments,
    /// As pages show it: also without packages, folders, or the source that all own functions have.
    Shown,
}

impl NameForm {
    /// True if the name of a function matches in this form. `source` is the text behind all own functions.
    fn matches(self, context: &Context<'_>, focus: &FrameMatcher, frame: FrameId, source: Option<&str>) -> bool {
        let name = context.profile.frames.name(frame);
        match self {
            Self::Whole => focus.matches_name(name),
            Self::WithoutArguments => focus.matches_name(&shorten(name, 2)),
            Self::Shown => {
                let shown = [context.name(frame), context.name_of(name)];
                let without_source =
                    source.into_iter().flat_map(|source| shown.each_ref().map(|name| name.replace(source, "")));
                focus.matches_name(&shorten(name, 3))
                    || focus.matches_name(shown[0].as_bytes())
                    || without_source.into_iter().any(|name| focus.matches_name(name.as_bytes()))
            }
        }
    }
}

/// Returns for each frame true if its name matches.
fn find_matches(context: &Context<'_>, focus: &FrameMatcher) -> Vec<bool> {
    let frames = &context.profile.frames;
    let source = context.single_source().map(|source| format!(" ({source})"));
    let mut matches = FORMS.iter().map(|form| {
        frames.iter().map(|(frame, _)| form.matches(context, focus, frame, source.as_deref())).collect::<Vec<bool>>()
    });
    matches.find(|is_match| is_match.contains(&true)).unwrap_or_else(|| vec![false; frames.len()])
}

/// Splits all stacks at their first match. The derived profiles have the frames of the whole one, with the same ids.
fn split(context: &Context<'_>, is_match: &[bool]) -> Result<Parts, Error> {
    let profile = context.profile;
    let finder = InactivityFinder::new(&profile.frames, context.origins, context.work);
    let (mut callees, mut callers) = (Part::new(profile), Part::new(profile));
    let mut matches = vec![Weights::default(); profile.frames.len()];
    let mut part = Vec::new();
    profile.for_each(|stack, weights| {
        let Some(first) = stack.iter().position(|frame| is_match[frame.index()]) else { return Ok(()) };
        matches[stack[first].index()].add(weights)?;
        let is_inactive = finder.is_inactive(&profile.frames, stack);
        part.clear();
        part.extend_from_slice(stack);
        // Programs read each thread.
        if !context.is_exact {
            part[0] = context.pools.pool(part[0]);
        }
        callees.add(&part[first..], weights, is_inactive)?;
        part.truncate(first + 1);
        part.reverse();
        callers.add(&part, weights, is_inactive)
    })?;
    let matches = (0..).map(FrameId::from_index).zip(matches).filter(|(_, weights)| *weights != Weights::default());
    let count = is_match.iter().filter(|is_match| **is_match).count();
    Ok(Parts { callees, callers, matches: matches.collect(), count })
}

fn summary(context: &Context<'_>, inputs: &[String]) -> Fact {
    let amount = super::judgement::Amount::new(context);
    let total = context.survey.total;
    let text = match context.profile.is_differential() {
        true => format!(
            "{}: {} before, {} after; shares are of the total {}",
            join_some(inputs, ", "),
            amount.text(total.before),
            amount.text(total.after),
            context.base_side()
        ),
        false => format!("{}: {}", join_some(inputs, ", "), amount.text(total.after)),
    };
    Fact { label: "profile", value: Value::Text(text), numbers: vec![("total", context.survey.total.after.as_f64())] }
}

/// Returns the functions that match, with their shares.
fn focused(context: &Context<'_>, parts: &Parts) -> Fact {
    let ranks = context.profile.frames.ranks();
    let mut matches = parts.matches.clone();
    matches.sort_by_key(|(frame, weights)| (Reverse(weights.after), ranks[frame.index()]));
    let total = parts.callees.all.total();
    let share = context.share(total.after);
    let functions = match parts.count {
        1 => "1 function".to_owned(),
        count if count == matches.len() => format!("{} functions", format_count(count)),
        count => format!("{} functions, {} of them outermost,", format_count(count), format_count(matches.len())),
    };
    // All numbers of a comparison are in percent of one total.
    let is_differential = context.profile.is_differential();
    let (text, numbers) = match is_differential {
        true => {
            let [before, after] = [total.before, total.after].map(|weight| percent(weight, context.base()));
            let text = format!("{functions} in {} before and {} after", format_percent(before), format_percent(after));
            (text, vec![("before_pct", before), ("after_pct", after)])
        }
        false => (format!("{functions} in {}", format_percent(share)), vec![("inclusive_pct", share)]),
    };
    let whole = Item::new(text, None);
    let each = matches.iter().map(|(frame, weights)| {
        let number = match is_differential {
            true => Number::Change(context.change(*weights)),
            false => Number::Share(context.share(weights.after)),
        };
        Item::new(context.name(*frame), Some(number))
    });
    let items = Some(whole).filter(|_| !context.is_exact).into_iter().chain(each).collect();
    Fact { label: "focus", value: Value::List(items), numbers }
}
