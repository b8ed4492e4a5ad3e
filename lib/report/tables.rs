//! Tables and columns that several pages have.

use super::call_tree::{CallTree, Rest, TreeLine};
use super::context::Context;
use super::judgement::Amount;
use super::measure::{format_count, format_percent, percent, percent_change};
use super::page::{Column, Item, Number, Row, Table};
use crate::profile::{Weight, Weights};

/// Returns a column with its key in JSON and its heading in text.
pub(super) fn column(key: &'static str, heading: &'static str) -> Column {
    Column { key, heading }
}

/// Returns a table whose title states how many rows it has of how many.
pub(super) fn table(
    key: &'static str,
    title: &str,
    details_key: &'static str,
    columns: Vec<Column>,
    rows: Vec<Row>,
    all: usize,
) -> Table {
    let left_out = all.saturating_sub(rows.len());
    let title = match left_out {
        0 => title.to_owned(),
        _ => format!("{title} ({} of {})", rows.len(), format_count(all)),
    };
    Table { key, title, details_key, columns, rows, left_out }
}

/// Returns the columns of tables of two profiles.
pub(super) fn comparison_columns() -> Vec<Column> {
    let columns = [("before_pct", "before"), ("after_pct", "after"), ("change_pct", "change")];
    columns.map(|(key, heading)| Column { key, heading }).to_vec()
}

/// Returns the numbers of a row of a table of two profiles: both weights, and the change in percent of the total before.
pub(super) fn comparison_numbers(amount: Amount<'_>, weights: Weights, total: Weight) -> (Vec<Number>, f64) {
    let sides = [weights.before, weights.after].map(|weight| amount.number(weight, percent(weight, total)));
    let change = percent_change(weights, total);
    (sides.into_iter().chain([Number::Change(change)]).collect(), change)
}

/// Returns the lines of a call tree that have at least 1 % of the weight, or of that before.
pub(super) fn largest_lines(context: &Context<'_>, tree: &CallTree, limit: usize) -> Vec<TreeLine> {
    tree.largest_lines(limit, least(context))
}

/// Returns the smallest weight of a line of a call tree: one percent of all of the tree, which may be a part of a profile. That of a
/// comparison is one percent of what it had before, unless that is nothing: its changes are shares of that.
fn least(context: &Context<'_>) -> Weight {
    Weight::from_millionths(context.profile.total().base().millionths() / 100)
}

/// Returns the largest lines of a call tree as a table. Those of two profiles have the weights of both.
pub(super) fn tree_table(context: &Context<'_>, tree: &CallTree, limit: usize) -> Table {
    let is_differential = context.profile.is_differential();
    let (least, amount) = (least(context), Amount::new(context));
    let mut lines = largest_lines(context, tree, limit);
    // An unlimited tree has all lines.
    let all = if context.is_whole { lines.len() } else { largest_lines(context, tree, usize::MAX).len() };
    let mut rest = tree.rest(&lines);
    if lines.len() == limit && rest.count > 0 && limit > 1 && !context.is_exact {
        lines = largest_lines(context, tree, limit - 1);
        rest = tree.rest(&lines);
    }
    let left_out = all - lines.len();
    let is_shown = !lines.is_empty() && lines.len() < limit && rest.count > 0 && !context.is_exact;
    let rows = lines.into_iter().map(|line| {
        let others = context.share(line.other_weights.after);
        let name = format!("+ {} in {} more", format_percent(others), line.others);
        let (numbers, share) = match is_differential {
            true => comparison_numbers(amount, line.weights, context.base()),
            false => {
                let share = context.share(line.weights.after);
                (vec![Number::Share(context.share(line.itself.after)), Number::Share(share)], share)
            }
        };
        Row {
            numbers,
            share,
            depth: line.depth,
            names: context.chain_names(&line.chain),
            notes: Vec::new(),
            details: if line.other_weights.after >= least && !is_differential {
                vec![Item::new(name, None)]
            } else {
                Vec::new()
            },
        }
    });
    let rows = rows.chain(is_shown.then(|| rest_row(context, amount, rest)));
    let (title, columns) = match is_differential {
        true => ("call tree, without changes below 1%", comparison_columns()),
        false => (
            "call tree, without branches below 1%",
            vec![column("self_pct", "self"), column("inclusive_pct", "inclusive")],
        ),
    };
    Table { key: "tree", title: title.to_owned(), details_key: "left_out", columns, rows: rows.collect(), left_out }
}

/// Returns the row of all branches that have no line.
fn rest_row(context: &Context<'_>, amount: Amount<'_>, rest: Rest) -> Row {
    let branches = if rest.count == 1 { "branch" } else { "branches" };
    let name = format!("… {} more {branches}", format_count(rest.count));
    let numbers = match context.profile.is_differential() {
        true => comparison_numbers(amount, rest.weights, context.base()).0,
        false => vec![Number::Unknown, Number::Share(context.share(rest.weights.after))],
    };
    Row { numbers, names: vec![name], ..Row::default() }
}
