//! A table of self weight by category.

use std::cmp::Reverse;

use super::categories::Categories;
use super::count::Counts;
use super::table::{Cell, format_delta, format_p_value, format_percent};
use crate::Error;
use crate::profile::Weights;

/// Returns the header and rows of a table of self weight by category, from sums by function.
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
        let category = row.frames.first().map_or("", |frame| categories.categorize(counts.frames.name(*frame)));
        match sums.iter_mut().find(|(name, _)| *name == category) {
            Some((_, sum)) => sum.add(row.weights[0])?,
            None => sums.push((category, row.weights[0])),
        }
    }
    sums.retain(|(_, sum)| *sum != Weights::default());
    if counts.differential {
        sums.sort_unstable_by_key(|(name, sum)| (Reverse(sum.difference()), *name));
        let test = counts.significance_test();
        let p_values = test.map(|test| test.adjusted_p_values(sums.iter().map(|(_, sum)| *sum)));
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
