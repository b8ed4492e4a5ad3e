//! A table of sums: its columns and the order of its rows.

use std::cmp::Ordering;

use super::count::Counts;
use crate::Error;
use crate::categories::Categories;
use crate::profile::{Weight, Weights};
use crate::tally::{GroupBy, Row, format_chance};

/// A column. The number is the index of the weight: 0 is self and 1 inclusive weight of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The key, or one of its frames.
    Name(usize),
    /// The weight; in a differential profile the one after.
    After(usize),
    /// The share of the total.
    Percent(usize),
    /// The weight before.
    Before(usize),
    /// The weight after minus the one before.
    Delta(usize),
    /// The adjusted p-value of the difference.
    Chance(usize),
    /// The category of the function.
    Category,
}

/// The value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// The name of a frame, or a stack.
    Text(Vec<u8>),
    /// The category of a function.
    Category(&'a str),
    /// A number, formatted.
    Number(String),
    /// Nothing: the value is not known.
    Empty,
}

/// Rows and columns.
pub struct Table<'a> {
    counts: &'a Counts,
    categories: Option<&'a Categories>,
    columns: Vec<(String, Column)>,
    /// The numbers of the rows, in order.
    order: Vec<usize>,
    /// Adjusted p-values by weight and row; empty if there is no significance test.
    p_values: Vec<Vec<f64>>,
}

impl<'a> Table<'a> {
    /// Returns a table of the first `top` rows by a column, or by weight, in a differential profile by change. Equal rows are
    /// in the order of their names.
    ///
    /// Numbers are sorted descending, deltas by absolute value, names and p-values ascending.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such column.
    pub fn new(
        counts: &'a Counts,
        by: GroupBy,
        categories: Option<&'a Categories>,
        sort: Option<&str>,
        top: Option<usize>,
    ) -> Result<Self, Error> {
        let columns = columns(by, counts.differential, categories);
        let order = (0..counts.rows.len()).collect();
        let mut table = Self { counts, categories, columns, order, p_values: compute_p_values(counts) };
        let columns = match sort {
            Some(name) => vec![table.find_column(name)?],
            None => default_order(by, counts.differential).to_vec(),
        };
        table.sort_by(&columns, top.unwrap_or(usize::MAX));
        Ok(table)
    }

    /// Returns the names of the columns.
    pub fn header(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    fn find_column(&self, name: &str) -> Result<Column, Error> {
        // `self` is short for `self_samples`.
        let mut columns = self.columns.iter();
        let found = columns.find(|(column, _)| column == name || column.strip_suffix("_samples") == Some(name));
        found.map(|(_, column)| *column).ok_or_else(|| {
            let names: Vec<&str> = self.header().collect();
            Error::Usage(format!("--sort {name}: no such column; expected one of {}", names.join(", ")))
        })
    }

    /// Returns the cells of all rows.
    pub fn rows(&self) -> impl Iterator<Item = Vec<Cell<'_>>> {
        self.order.iter().map(|row| self.columns.iter().map(|(_, column)| self.cell(*row, *column)).collect())
    }

    fn cell(&self, row: usize, column: Column) -> Cell<'_> {
        let counted = &self.counts.rows[row];
        match column {
            Column::Name(part) => Cell::Text(self.name(counted, part)),
            Column::After(which) => Cell::Number(counted.weights[which].after.to_string()),
            Column::Before(which) => Cell::Number(counted.weights[which].before.to_string()),
            Column::Delta(which) => Cell::Number(format_delta(counted.weights[which])),
            Column::Percent(which) => {
                Cell::Number(format_percent(counted.weights[which].after, self.counts.total.after, 4))
            }
            Column::Chance(which) => match self.p_values.get(which) {
                Some(p_values) => format_p_value(p_values[row]),
                None => Cell::Empty,
            },
            Column::Category => Cell::Category(self.category(counted)),
        }
    }

    fn name(&self, row: &Row, part: usize) -> Vec<u8> {
        let parts = self.columns.iter().filter(|(_, column)| matches!(column, Column::Name(_))).count();
        let frames = if part + 1 < parts { &row.frames[part..=part] } else { &row.frames[part..] };
        let names: Vec<&[u8]> = frames.iter().map(|frame| self.counts.frames.name(*frame)).collect();
        names.join(&b';')
    }

    fn category(&self, row: &Row) -> &str {
        let name = row.frames.last().map(|frame| self.counts.frames.name(*frame));
        self.categories.zip(name).map_or("", |(categories, name)| categories.categorize(name))
    }

    /// Sorts the first `top` rows, and removes the others.
    fn sort_by(&mut self, columns: &[Column], top: usize) {
        let ranks = self.counts.frames.ranks();
        let mut order = std::mem::take(&mut self.order);
        let compare = |a: &usize, b: &usize| {
            let compared = columns.iter().map(|column| self.compare(*a, *b, *column)).find(|order| order.is_ne());
            compared.unwrap_or_else(|| {
                let [a, b] = [a, b].map(|row| self.counts.rows[*row].frames.iter().map(|frame| ranks[frame.index()]));
                a.cmp(b)
            })
        };
        if top < order.len() {
            order.select_nth_unstable_by(top, compare);
            order.truncate(top);
        }
        order.sort_unstable_by(compare);
        self.order = order;
    }

    /// Compares two rows by a column. Larger weights come first.
    fn compare(&self, a: usize, b: usize, column: Column) -> Ordering {
        let (row_a, row_b) = (&self.counts.rows[a], &self.counts.rows[b]);
        match column {
            Column::After(which) | Column::Percent(which) => {
                row_b.weights[which].after.cmp(&row_a.weights[which].after)
            }
            Column::Before(which) => row_b.weights[which].before.cmp(&row_a.weights[which].before),
            Column::Delta(which) => row_b.weights[which].difference().cmp(&row_a.weights[which].difference()),
            Column::Chance(which) => self.p_values.get(which).map_or(Ordering::Equal, |all| all[a].total_cmp(&all[b])),
            Column::Category => self.category(row_a).cmp(self.category(row_b)),
            Column::Name(part) => self.name(row_a, part).cmp(&self.name(row_b, part)),
        }
    }
}

/// Returns the adjusted p-values of all differences, if the weights are counts.
fn compute_p_values(counts: &Counts) -> Vec<Vec<f64>> {
    let Some(chances) = &counts.chances else { return Vec::new() };
    let kinds = counts.rows.first().map_or(0, |row| row.weights.len());
    (0..kinds).map(|which| chances.iter().map(|chances| chances[which]).collect()).collect()
}

/// Returns the columns by which a table is sorted.
fn default_order(by: GroupBy, is_differential: bool) -> &'static [Column] {
    match (by, is_differential) {
        (GroupBy::Function, false) => &[Column::After(1)],
        (GroupBy::Function, true) => &[Column::Delta(0), Column::Delta(1)],
        (_, false) => &[Column::After(0)],
        (_, true) => &[Column::Delta(0)],
    }
}

fn columns(by: GroupBy, is_differential: bool, categories: Option<&Categories>) -> Vec<(String, Column)> {
    let names: &[&str] = match by {
        GroupBy::Function => &["function"],
        GroupBy::Comm => &["comm"],
        GroupBy::Stack | GroupBy::OwnStack => &["stack"],
        GroupBy::Edge => &["caller", "callee"],
        GroupBy::Waker => &["comm", "waker"],
        GroupBy::Leaf => &["function", "state"],
    };
    let mut columns: Vec<(String, Column)> =
        names.iter().enumerate().map(|(part, name)| ((*name).to_owned(), Column::Name(part))).collect();
    let kinds: &[&str] = if by == GroupBy::Function { &["self_", "inclusive_"] } else { &[""] };
    for (which, kind) in kinds.iter().enumerate() {
        let of_kind: &[(&str, Column)] = match is_differential {
            true => &[
                ("before", Column::Before(which)),
                ("after", Column::After(which)),
                ("delta", Column::Delta(which)),
                ("chance", Column::Chance(which)),
            ],
            false => &[("samples", Column::After(which)), ("pct", Column::Percent(which))],
        };
        columns.extend(of_kind.iter().map(|(name, column)| (format!("{kind}{name}"), *column)));
    }
    if by == GroupBy::Function && categories.is_some() {
        columns.push(("category".to_owned(), Column::Category));
    }
    columns
}

/// Formats an adjusted p-value.
pub(super) fn format_p_value(p_value: f64) -> Cell<'static> {
    Cell::Number(format_chance(p_value, 4))
}

/// Formats the difference of two weights with its sign.
pub(super) fn format_delta(weights: Weights) -> String {
    let sign = if weights.after < weights.before { "-" } else { "" };
    format!("{sign}{}", weights.difference())
}

/// Formats the share of `part` in `whole` in percent.
pub(super) fn format_percent(part: Weight, whole: Weight, places: usize) -> String {
    let share = if whole.is_zero() { 0.0 } else { 100.0 * part.as_f64() / whole.as_f64() };
    format!("{share:.places$}")
}
