//! A page: facts, tables and commands, without a layout.

use super::columns::width;
use super::measure::{format_change, format_microseconds, format_percent, format_short};
use crate::profile::Weight;
use crate::tally::format_chance;

/// A page of text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Page {
    /// Its parts, from top to bottom.
    pub(super) blocks: Vec<Block>,
    /// The file of all own functions, as their names contain it, if there is only one. Text need not repeat it.
    pub(super) source: Option<String>,
}

impl Page {
    /// Removes the file of all own functions from their names.
    pub(super) fn without_source(mut self) -> Self {
        let Some(source) = self.source.take().map(|source| format!(" ({source})")) else { return self };
        for block in &mut self.blocks {
            match block {
                Block::Facts(facts) => facts.iter_mut().for_each(|fact| match &mut fact.value {
                    Value::List(items) | Value::Path(items, _) => {
                        items.iter_mut().for_each(|item| item.remove(&source));
                    }
                    Value::Text(_) => {}
                }),
                Block::Table(table) => table.rows.iter_mut().for_each(|row| {
                    row.names.iter_mut().for_each(|name| *name = name.replace(&source, ""));
                    row.details.iter_mut().for_each(|item| item.remove(&source));
                    for note in &mut row.notes {
                        note.label = note.label.replace(&source, "");
                        note.items.iter_mut().for_each(|item| item.remove(&source));
                    }
                }),
                Block::Commands(_) => {}
            }
        }
        self
    }

    /// Returns the page without tables of which no row is shown: JSON tells how many rows they have.
    pub(super) fn without_empty_tables(&self) -> Self {
        let mut page = self.clone();
        page.blocks.retain(|block| !matches!(block, Block::Table(table) if table.rows.is_empty()));
        page
    }

    /// Removes the last part, or the last fact if there is no other part; `false` if there is only one.
    pub(super) fn pop_part(&mut self) -> bool {
        if self.blocks.len() > 1 {
            return self.blocks.pop().is_some();
        }
        match self.blocks.first_mut() {
            Some(Block::Facts(facts)) if facts.len() > 1 => facts.pop().is_some(),
            _ => false,
        }
    }
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Block {
    /// Lines of a label and a value.
    Facts(Vec<Fact>),
    /// Rows of numbers and names.
    Table(Table),
    /// Command lines that look closer.
    Commands(Vec<String>),
}

/// A fact: its label, its value, and its numbers by name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    pub(super) label: &'static str,
    pub(super) value: Value,
    /// Numbers for programs; the value states them too.
    pub(super) numbers: Vec<(&'static str, f64)>,
}

/// The width of a path on one line of a page of 80 columns, with a separator after the last function.
const PATH_WIDTH: usize = 73;

impl Fact {
    /// Creates a fact without numbers.
    pub(super) fn new(label: &'static str, value: Value) -> Self {
        Self { label, value, numbers: Vec::new() }
    }

    /// Returns the number of lines that the fact takes on a page of 80 columns, if its text fits on one line.
    pub(super) fn line_count(&self) -> usize {
        match &self.value {
            Value::Path(items, PathLines::Two) => {
                let width: usize = items.iter().map(|item| width(&item.text()) + 3).sum();
                if width > PATH_WIDTH { 2 } else { 1 }
            }
            Value::List(_) => self.most_list_lines(),
            Value::Path(..) | Value::Text(_) => 1,
        }
    }

    /// Returns the number of lines that a list may take.
    pub(super) fn most_list_lines(&self) -> usize {
        if matches!(self.label, "threads" | "entries" | "renamed?") { 2 } else { 1 }
    }
}

/// The value of a fact.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A text, which may take several lines.
    Text(String),
    /// Items, the most important first. Those that do not fit are left out.
    List(Vec<Item>),
    /// Functions, each called by the one before. Those in the middle are left out if they do not fit.
    Path(Vec<Item>, PathLines),
}

/// The most lines that a path takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathLines {
    One,
    Two,
}

/// A name with a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub(super) name: String,
    /// A function below it that has nearly all of its weight.
    pub(super) inner: Option<String>,
    pub(super) number: Option<Number>,
    /// Its parts, or the thing that it is an example of.
    pub(super) parts: Vec<Item>,
}

impl Item {
    /// Removes a text from all names.
    fn remove(&mut self, text: &str) {
        self.name = self.name.replace(text, "");
        self.inner = self.inner.take().map(|inner| inner.replace(text, ""));
        self.parts.iter_mut().for_each(|part| part.remove(text));
    }

    /// Creates a name with a number.
    pub(super) fn new(name: impl Into<String>, number: Option<Number>) -> Self {
        Self { name: name.into(), inner: None, number, parts: Vec::new() }
    }

    /// Creates a name with a share in percent.
    pub(super) fn share(name: impl Into<String>, percent: f64) -> Self {
        Self::new(name, Some(Number::Share(percent)))
    }

    /// Returns the item with at most this many of its parts.
    pub(super) fn with_parts(&self, most: usize) -> Self {
        Self { parts: self.parts.iter().take(most).cloned().collect(), ..self.clone() }
    }

    /// Returns the share in percent, or 0 if the number is none.
    pub(super) fn share_percent(&self) -> f64 {
        match self.number {
            Some(Number::Share(share)) => share,
            _ => 0.0,
        }
    }

    /// Returns the name, the number and the parts: `memmove 40.1% (copying)`.
    pub(super) fn text(&self) -> String {
        self.text_with(&str::to_owned)
    }

    /// Returns the text with other forms of its names.
    pub(super) fn text_with(&self, form: &dyn Fn(&str) -> String) -> String {
        let mut text = form(&self.name);
        if let Some(inner) = &self.inner {
            text.push_str(&format!(" > {}", form(inner)));
        }
        if let Some(number) = self.number {
            text.push_str(&format!(" {}", number.text()));
        }
        let parts: Vec<String> = self.parts.iter().map(|part| part.text_with(form)).collect();
        if !parts.is_empty() {
            text.push_str(&format!(" ({})", parts.join(", ")));
        }
        text
    }
}

/// A note to a row: what its items are, and the items.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Note {
    pub(super) label: String,
    pub(super) items: Vec<Item>,
}

/// A number of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// A share in percent.
    Share(f64),
    /// A share in percent of what it is part of.
    Part(f64),
    /// A weight, whose share in percent programs get.
    Weight { weight: Weight, is_time: bool, percent: f64 },
    /// A change in percent points, or of a total in percent.
    Change(f64),
    /// A probability from 0 to 1.
    Chance(f64),
    /// The number is not known.
    Unknown,
}

impl Number {
    /// Returns the number as it is shown.
    pub(super) fn text(self) -> String {
        match self {
            Self::Share(percent) => format_percent(percent),
            Self::Part(percent) => format!("{} of it", format_percent(percent)),
            Self::Weight { weight, is_time: true, .. } => format_microseconds(weight),
            Self::Weight { weight, .. } => format_short(weight),
            Self::Change(change) => format_change(change),
            Self::Chance(chance) if chance < 0.001 => "<0.001".to_owned(),
            Self::Chance(chance) => format_chance(chance, 3),
            Self::Unknown => "-".to_owned(),
        }
    }

    /// Returns the number for programs, rounded to what the profile can tell; `None` if it is not known.
    pub(super) fn value(self) -> Option<f64> {
        match self {
            Self::Share(number) | Self::Part(number) | Self::Change(number) | Self::Weight { percent: number, .. } => {
                Some((number * 1e4).round() / 1e4)
            }
            Self::Chance(number) => Some((number * 1e6).round() / 1e6),
            Self::Unknown => None,
        }
    }
}

/// A column of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Column {
    /// The name of the number for programs.
    pub(super) key: &'static str,
    /// The heading of the column in text.
    pub(super) heading: &'static str,
}

/// A table. All its shares are of the same total.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table {
    /// The name of the table for programs.
    pub(super) key: &'static str,
    /// The content of the rows.
    pub(super) title: String,
    /// The name of the details for programs.
    pub(super) details_key: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    /// Number of rows that are left out.
    pub(super) left_out: usize,
}

impl Table {
    /// True if it has rows, or would have with more lines.
    pub(super) fn has_content(&self) -> bool {
        !self.rows.is_empty() || self.left_out > 0
    }
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) numbers: Vec<Number>,
    /// The share in percent that a bar shows.
    pub(super) share: f64,
    /// The number of rows between it and the root of a tree.
    pub(super) depth: usize,
    /// Facts about the row beside its details.
    pub(super) notes: Vec<Note>,
    /// A function, or functions of which each calls the next.
    pub(super) names: Vec<String>,
    /// Details, the most important first.
    pub(super) details: Vec<Item>,
}
