//! A page: facts, tables and commands, without a layout.

use super::measure::{format_change, format_percent};
use crate::tally::format_chance;

/// A page of text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Page {
    /// Its parts, from top to bottom.
    pub(super) blocks: Vec<Block>,
}

impl Page {
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
            Value::Path(items) => {
                let width: usize = items.iter().map(|item| item.text().chars().count() + 3).sum();
                if width > PATH_WIDTH { 2 } else { 1 }
            }
            Value::Text(_) | Value::List(_) => 1,
        }
    }
}

/// The value of a fact.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A text, which may take several lines.
    Text(String),
    /// Items, the most important first. Those that do not fit are left out.
    List(Vec<Item>),
    /// Functions, each called by the one before. Those in the middle are left out if they do not fit on two lines.
    Path(Vec<Item>),
}

/// A name with a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) number: Option<Number>,
}

impl Item {
    /// Creates a name with a share in percent.
    pub(super) fn share(name: impl Into<String>, percent: f64) -> Self {
        Self { name: name.into(), number: Some(Number::Share(percent)) }
    }

    /// Returns the name and the number: `memmove 40.1%`.
    pub(super) fn text(&self) -> String {
        self.number.map_or_else(|| self.name.clone(), |number| format!("{} {}", self.name, number.text()))
    }
}

/// A number of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// A share in percent.
    Share(f64),
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
            Self::Change(change) => format_change(change),
            Self::Chance(chance) if chance < 0.001 => "<0.001".to_owned(),
            Self::Chance(chance) => format_chance(chance, 3),
            Self::Unknown => "-".to_owned(),
        }
    }

    /// Returns the number for programs, rounded to what the profile can tell; `None` if it is not known.
    pub(super) fn value(self) -> Option<f64> {
        match self {
            Self::Share(number) | Self::Change(number) => Some((number * 1e4).round() / 1e4),
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
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) numbers: Vec<Number>,
    /// The share in percent that a bar shows.
    pub(super) share: f64,
    /// The number of rows between it and the root of a tree.
    pub(super) depth: usize,
    /// A function, or functions of which each calls the next.
    pub(super) names: Vec<String>,
    /// Details, the most important first.
    pub(super) details: Vec<Item>,
}
