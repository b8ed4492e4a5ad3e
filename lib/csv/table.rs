//! The table: its columns, and the order of its rows.

use std::cmp::{Ordering, Reverse};

use super::categories::Categories;
use super::count::{By, Counts, Row};
use crate::Error;
use crate::profile::{Weight, Weights};

/// A column. The number says of which weight: a function has two, its own and with what it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// What is counted.
    Name(usize),
    /// The weight; of a differential profile the one after.
    After(usize),
    /// Its share of the total.
    Percent(usize),
    /// The weight before.
    Before(usize),
    /// After less before.
    Delta(usize),
    /// The chance of such a difference by noise alone, adjusted for how many there are.
    Chance(usize),
    /// The function's category.
    Category,
}

/// A cell's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A name.
    Text(Vec<u8>),
    /// A category.
    Category(&'a str),
    /// A number, as it is written.
    Number(String),
    /// Not known.
    Nothing,
}

/// Rows and what their columns mean.
pub struct Table<'a> {
    counts: &'a Counts,
    categories: Option<&'a Categories>,
    columns: Vec<(String, Column)>,
    rows: Vec<Row>,
    /// For each row and weight; empty if counts are not known.
    chances: Vec<Vec<f64>>,
}

impl<'a> Table<'a> {
    /// The usual columns and the usual order: the heaviest first, of a differential profile what changed most, equals by
    /// name.
    pub fn new(counts: &'a Counts, by: By, categories: Option<&'a Categories>) -> Self {
        let mut table = Self {
            columns: columns(by, counts.differential, categories),
            counts,
            categories,
            rows: counts.rows.clone(),
            chances: vec![],
        };
        table.chances = table.judge();
        let order: &[Column] = match (by, counts.differential) {
            (By::Function, false) => &[Column::After(1)],
            (By::Function, true) => &[Column::Delta(0), Column::Delta(1)],
            (_, false) => &[Column::After(0)],
            (_, true) => &[Column::Delta(0)],
        };
        table.sort_by(order);
        table
    }

    /// The columns' names.
    pub fn header(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// Sorts by a column: numbers from the largest, a delta by its size, names and chances from the least.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such column.
    pub fn sort(&mut self, column: &str) -> Result<(), Error> {
        let Some((_, found)) = self.columns.iter().find(|(name, _)| name == column) else {
            let names: Vec<&str> = self.header().collect();
            return Err(Error::Usage(format!(
                "--sort {column}: there is no such column; there are {}",
                names.join(", ")
            )));
        };
        self.sort_by(&[*found]);
        Ok(())
    }

    /// Keeps the first so many rows.
    pub fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
        self.chances.iter_mut().for_each(|chances| chances.truncate(rows));
    }

    /// All rows, cell by cell.
    pub fn rows(&self) -> impl Iterator<Item = Vec<Cell<'_>>> {
        (0..self.rows.len()).map(|row| self.columns.iter().map(|(_, column)| self.cell(row, *column)).collect())
    }

    fn cell(&self, row: usize, column: Column) -> Cell<'_> {
        let counted = &self.rows[row];
        let number = |weight: Weight| Cell::Number(weight.to_string());
        match column {
            Column::Name(part) => Cell::Text(self.name(counted, part)),
            Column::After(which) => number(counted.weights[which].after),
            Column::Before(which) => number(counted.weights[which].before),
            Column::Delta(which) => Cell::Number(delta(counted.weights[which])),
            Column::Percent(which) => Cell::Number(percent(counted.weights[which].after, self.counts.total.after, 4)),
            Column::Chance(which) => match self.chances.get(which) {
                Some(chances) => chance(chances[row]),
                None => Cell::Nothing,
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
        self.categories.zip(name).map_or("", |(categories, name)| categories.of(name))
    }

    fn sort_by(&mut self, columns: &[Column]) {
        let ranks = self.counts.frames.ranks();
        let key = |row: &Row| row.frames.iter().map(|frame| ranks[frame.index()]).collect::<Vec<_>>();
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|a, b| {
            let compared = columns.iter().map(|column| self.compare(*a, *b, *column)).find(|order| order.is_ne());
            compared.unwrap_or_else(|| key(&self.rows[*a]).cmp(&key(&self.rows[*b])))
        });
        self.rows = order.iter().map(|row| self.rows[*row].clone()).collect();
        for chances in &mut self.chances {
            *chances = order.iter().map(|row| chances[*row]).collect();
        }
    }

    fn compare(&self, a: usize, b: usize, column: Column) -> Ordering {
        let largest =
            |weight: &dyn Fn(&Row) -> Weight| Reverse(weight(&self.rows[a])).cmp(&Reverse(weight(&self.rows[b])));
        match column {
            Column::After(which) | Column::Percent(which) => largest(&|row| row.weights[which].after),
            Column::Before(which) => largest(&|row| row.weights[which].before),
            Column::Delta(which) => largest(&|row| row.weights[which].difference()),
            Column::Chance(which) => self.chances.get(which).map_or(Ordering::Equal, |all| all[a].total_cmp(&all[b])),
            Column::Category => self.category(&self.rows[a]).cmp(self.category(&self.rows[b])),
            Column::Name(part) => self.name(&self.rows[a], part).cmp(&self.name(&self.rows[b], part)),
        }
    }

    /// The chances of all differences, where the weights are counts.
    fn judge(&self) -> Vec<Vec<f64>> {
        let Some(differences) = self.counts.differences() else { return Vec::new() };
        let kinds = self.rows.first().map_or(0, |row| row.weights.len());
        (0..kinds).map(|which| differences.chances(self.rows.iter().map(|row| row.weights[which]))).collect()
    }
}

fn columns(by: By, is_differential: bool, categories: Option<&Categories>) -> Vec<(String, Column)> {
    let names: &[&str] = match by {
        By::Function => &["function"],
        By::Comm => &["comm"],
        By::Stack => &["stack"],
        By::Edge => &["caller", "callee"],
    };
    let mut columns: Vec<(String, Column)> =
        names.iter().enumerate().map(|(part, name)| ((*name).to_owned(), Column::Name(part))).collect();
    let kinds: &[&str] = if by == By::Function { &["self_", "inclusive_"] } else { &[""] };
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
    if by == By::Function && categories.is_some() {
        columns.push(("category".to_owned(), Column::Category));
    }
    columns
}

pub(super) fn chance(chance: f64) -> Cell<'static> {
    Cell::Number(format!("{chance:.4}"))
}

pub(super) fn delta(weights: Weights) -> String {
    let sign = if weights.after < weights.before { "-" } else { "" };
    format!("{sign}{}", weights.difference())
}

pub(super) fn percent(part: Weight, whole: Weight, places: usize) -> String {
    let share = if whole.is_zero() { 0.0 } else { 100.0 * part.as_f64() / whole.as_f64() };
    format!("{share:.places$}")
}
