//! The table of categories.

use std::cmp::Reverse;

use super::categories::Categories;
use super::count::Counts;
use super::table::{Cell, chance, delta, percent};
use crate::Error;
use crate::profile::Weights;

/// The self weight of each category's functions, of what was counted by function: its columns' names, and its rows with the heaviest first, of a
/// differential profile what changed most.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn summary<'a>(
    counts: &Counts,
    categories: &'a Categories,
) -> Result<(Vec<&'static str>, Vec<Vec<Cell<'a>>>), Error> {
    let mut sums: Vec<(&str, Weights)> = Vec::new();
    for row in &counts.rows {
        let category = row.frames.first().map_or("", |frame| categories.of(counts.frames.name(*frame)));
        match sums.iter_mut().find(|(name, _)| *name == category) {
            Some((_, sum)) => sum.add(row.weights[0])?,
            None => sums.push((category, row.weights[0])),
        }
    }
    sums.retain(|(_, sum)| *sum != Weights::default());
    let number = |text: String| Cell::Number(text);
    if counts.differential {
        sums.sort_unstable_by_key(|(name, sum)| (Reverse(sum.difference()), *name));
        let differences = counts.differences();
        let chances = differences.map(|differences| differences.chances(sums.iter().map(|(_, sum)| *sum)));
        let cells = |(row, (name, sum)): (usize, (&'a str, Weights))| {
            vec![
                Cell::Category(name),
                number(sum.before.to_string()),
                number(sum.after.to_string()),
                number(delta(sum)),
                chances.as_ref().map_or(Cell::Nothing, |chances| chance(chances[row])),
            ]
        };
        return Ok((
            vec!["category", "self_before", "self_after", "self_delta", "self_chance"],
            sums.into_iter().enumerate().map(cells).collect(),
        ));
    }
    sums.sort_unstable_by_key(|(name, sum)| (Reverse(sum.after), *name));
    let total = counts.total.after;
    let cells = |(name, sum): (&'a str, Weights)| {
        vec![Cell::Category(name), number(sum.after.to_string()), number(percent(sum.after, total, 2))]
    };
    Ok((vec!["category", "self_samples", "self_pct"], sums.into_iter().map(cells).collect()))
}
