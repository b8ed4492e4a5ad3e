//! A table of sums: its columns and the order of its rows.

use std::cmp::{Ordering, Reverse};

use super::categories::Categories;
use super::count::Counts;
use crate::Error;
use crate::profile::{Weight, Weights};
use crate::tally::{GroupBy, Row};

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
    rows: Vec<Row>,
    /// Adjusted p-values by weight and row; empty if there is no significance test.
    p_values: Vec<Vec<f64>>,
}

impl<'a> Table<'a> {
    /// Returns a table with the default columns and order: by weight, in a differential profile by change, then by
    /// name.
    pub fn new(counts: &'a Counts, by: GroupBy, categories: Option<&'a Categories>) -> Self {
        let mut table = Self {
            columns: columns(by, counts.differential, categories),
            counts,
            categories,
            rows: counts.rows.clone(),
            p_values: vec![],
        };
        table.p_values = table.compute_p_values();
        let order: &[Column] = match (by, counts.differential) {
            (GroupBy::Function, false) => &[Column::After(1)],
            (GroupBy::Function, true) => &[Column::Delta(0), Column::Delta(1)],
            (_, false) => &[Column::After(0)],
            (_, true) => &[Column::Delta(0)],
        };
        table.sort_by(order);
        table
    }

    /// Returns the names of the columns.
    pub fn header(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// Sorts by a column: numbers descending, deltas by absolute value, names and p-values ascending.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such column.
    pub fn sort(&mut self, column: &str) -> Result<(), Error> {
        // `self` is short for `self_samples`.
        let matches = |name: &str| name == column || name.strip_suffix("_samples") == Some(column);
        let Some((_, found)) = self.columns.iter().find(|(name, _)| matches(name)) else {
            let names: Vec<&str> = self.header().collect();
            return Err(Error::Usage(format!("--sort {column}: no such column; expected one of {}", names.join(", "))));
        };
        self.sort_by(&[*found]);
        Ok(())
    }

    /// Keeps the first `rows` rows.
    pub fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
        self.p_values.iter_mut().for_each(|p_values| p_values.truncate(rows));
    }

    /// Returns the cells of all rows.
    pub fn rows(&self) -> impl Iterator<Item = Vec<Cell<'_>>> {
        (0..self.rows.len()).map(|row| self.columns.iter().map(|(_, column)| self.cell(row, *column)).collect())
    }

    fn cell(&self, row: usize, column: Column) -> Cell<'_> {
        let counted = &self.rows[row];
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
        let is_part = self.columns.iter().filter(|(_, column)| matches!(column, Column::Name(_))).count() > 1;
        let frames = if is_part { &row.frames[part..=part] } else { &row.frames[..] };
        let names: Vec<&[u8]> = frames.iter().map(|frame| self.counts.frames.name(*frame)).collect();
        names.join(&b';')
    }

    fn category(&self, row: &Row) -> &str {
        let name = row.frames.last().map(|frame| self.counts.frames.name(*frame));
        self.categories.zip(name).map_or("", |(categories, name)| categories.categorize(name))
    }

    fn sort_by(&mut self, columns: &[Column]) {
        let ranks = self.counts.frames.ranks();
        // The ranks of the frames of each row.
        let keys: Vec<Vec<u32>> =
            self.rows.iter().map(|row| row.frames.iter().map(|frame| ranks[frame.index()]).collect()).collect();
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|a, b| {
            let compared = columns.iter().map(|column| self.compare(*a, *b, *column)).find(|order| order.is_ne());
            compared.unwrap_or_else(|| keys[*a].cmp(&keys[*b]))
        });
        self.rows = order.iter().map(|row| self.rows[*row].clone()).collect();
        for values in &mut self.p_values {
            *values = order.iter().map(|row| values[*row]).collect();
        }
    }

    fn compare(&self, a: usize, b: usize, column: Column) -> Ordering {
        let largest =
            |weight: &dyn Fn(&Row) -> Weight| Reverse(weight(&self.rows[a])).cmp(&Reverse(weight(&self.rows[b])));
        match column {
            Column::After(which) | Column::Percent(which) => largest(&|row| row.weights[which].after),
            Column::Before(which) => largest(&|row| row.weights[which].before),
            Column::Delta(which) => largest(&|row| row.weights[which].difference()),
            Column::Chance(which) => self.p_values.get(which).map_or(Ordering::Equal, |all| all[a].total_cmp(&all[b])),
            Column::Category => self.category(&self.rows[a]).cmp(self.category(&self.rows[b])),
            Column::Name(part) => self.name(&self.rows[a], part).cmp(&self.name(&self.rows[b], part)),
        }
    }

    /// Returns the adjusted p-values of all differences, if the weights are counts.
    fn compute_p_values(&self) -> Vec<Vec<f64>> {
        let Some(judgement) = &self.counts.judgement else { return Vec::new() };
        let kinds = self.rows.first().map_or(0, |row| row.weights.len());
        (0..kinds).map(|which| judgement.chances.iter().map(|chances| chances[which]).collect()).collect()
    }
}

fn columns(by: GroupBy, is_differential: bool, categories: Option<&Categories>) -> Vec<(String, Column)> {
    let names: &[&str] = match by {
        GroupBy::Function => &["function"],
        GroupBy::Comm => &["comm"],
        GroupBy::Stack => &["stack"],
        GroupBy::Edge => &["caller", "callee"],
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
    Cell::Number(format!("{p_value:.4}"))
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
