//! A table of self weight by category.

use std::cmp::Reverse;

use super::count::Counts;
use super::table::{Cell, format_delta, format_p_value, format_percent};
use crate::Error;
use crate::categories::Categories;
use crate::profile::Weights;
use crate::stats::judgement::Observation;
use crate::tally::Row;

/// Returns the header and rows of a table of self weight by category, from sums by [`GroupBy::Leaf`](crate::tally::GroupBy::Leaf).
///
/// Rows are sorted by weight, in a differential profile by change.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn summary<'a>(
    counts: &Counts,
    categories: &'a Categories,
) -> Result<(Vec<&'static str>, Vec<Vec<Cell<'a>>>), Error> {
    let mut sums: Vec<(&str, Weights)> = Vec::new();
    for row in &counts.rows {
        let category = categorize(row, counts, categories);
        match sums.iter_mut().find(|(name, _)| *name == category) {
            Some((_, sum)) => sum.add(row.weights[0])?,
            None => sums.push((category, row.weights[0])),
        }
    }
    sums.retain(|(_, sum)| *sum != Weights::default());
    if counts.differential {
        sums.sort_unstable_by_key(|(name, sum)| (Reverse(sum.difference()), *name));
        let names: Vec<&str> = sums.iter().map(|(name, _)| *name).collect();
        let p_values = judge_categories(&names, counts, categories);
        let rows = sums.into_iter().enumerate().map(|(row, (name, sum))| {
            vec![
                Cell::Category(name),
                Cell::Number(sum.before.to_string()),
                Cell::Number(sum.after.to_string()),
                Cell::Number(format_delta(sum)),
                p_values.as_ref().map_or(Cell::Empty, |p_values| format_p_value(p_values[row])),
            ]
        });
        let header = vec!["category", "self_before", "self_after", "self_delta", "self_chance"];
        return Ok((header, rows.collect()));
    }
    sums.sort_unstable_by_key(|(name, sum)| (Reverse(sum.after), *name));
    let total = counts.total.after;
    let rows = sums.into_iter().map(|(name, sum)| {
        vec![
            Cell::Category(name),
            Cell::Number(sum.after.to_string()),
            Cell::Number(format_percent(sum.after, total, 2)),
        ]
    });
    Ok((vec!["category", "self_samples", "self_pct"], rows.collect()))
}

fn categorize<'a>(row: &Row, counts: &Counts, categories: &'a Categories) -> &'a str {
    let mut names = row.frames.iter().map(|frame| counts.frames.name(*frame));
    names.next().map_or("", |function| categories.categorize_leaf(function, names.next()))
}

/// Returns the chance of the difference of each category, if the functions are judged.
fn judge_categories(names: &[&str], counts: &Counts, categories: &Categories) -> Option<Vec<f64>> {
    let judgement = counts.judgement.as_ref()?;
    let mut sums: Vec<Option<Observation>> = vec![None; names.len()];
    for (row, observations) in counts.rows.iter().zip(&counts.observations) {
        let category = categorize(row, counts, categories);
        let Some(found) = names.iter().position(|name| *name == category) else { continue };
        match &mut sums[found] {
            Some(sum) => sum.add(&observations[0]),
            none => *none = Some(observations[0].clone()),
        }
    }
    Some(judgement.chances_of_groups(&sums.into_iter().flatten().collect::<Vec<_>>()))
}
