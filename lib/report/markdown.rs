//! Writes a page as Markdown, for comments in code reviews.

use std::slice::from_ref;

use super::columns::width;
use super::fit::{cut_middle, fit_names, shortened};
use super::page::{Block, Item, Note, Page, Table, Value};

/// Bytes that a page may have for each of its lines: no more than a comment should have.
pub(super) const BYTES_PER_LINE: usize = 160;

/// Widths in columns to which paths are fitted, from the widest, until a page has no more bytes than it may.
pub(super) const WIDTHS: [usize; 5] = [usize::MAX, 240, 160, 100, 60];

/// A name that is not part of a path may take this part of the width of a path.
const PATH_TO_NAME: usize = 2;

/// Width in columns that the items of a fact may take.
const MAX_LIST_WIDTH: usize = 480;

/// Largest indentation in levels of the call tree.
const MAX_INDENT: usize = 12;

/// Returns the page as Markdown, with paths fitted to a width.
pub(super) fn render(page: &Page, path_width: usize) -> String {
    Layout { path_width }.render(page)
}

/// The room for long names and paths.
struct Layout {
    path_width: usize,
}

impl Layout {
    fn render(&self, page: &Page) -> String {
        let mut text = String::new();
        for block in &page.blocks {
            match block {
                Block::Facts(facts) => facts.iter().for_each(|fact| {
                    text.push_str(&format!("- **{}**: {}\n", fact.label, self.value(&fact.value)));
                }),
                Block::Table(table) => self.push_table(&mut text, table),
                Block::Commands(commands) => {
                    text.push_str("```sh\n");
                    commands.iter().for_each(|command| text.push_str(&format!("{command}\n")));
                    text.push_str("```\n");
                }
            }
            text.push('\n');
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }

    fn value(&self, value: &Value) -> String {
        match value {
            Value::Text(text) => escape(text),
            Value::List(items) => self.first_items(items),
            Value::Path(items, _) => self.path(items),
        }
    }

    /// Returns the first items, as many as fit.
    fn first_items(&self, items: &[Item]) -> String {
        let room = self.path_width.min(MAX_LIST_WIDTH);
        let mut used = 0;
        let fitting = items.iter().take_while(|item| {
            used += self.item_width(item);
            used <= room
        });
        let shown = fitting.count().max(1).min(items.len());
        self.list(&items[..shown], ", ") + if shown < items.len() { ", …" } else { "" }
    }

    /// Returns the width of an item with a separator, about.
    fn item_width(&self, item: &Item) -> usize {
        width(&item.text()).min(self.path_width / PATH_TO_NAME) + 3
    }

    /// Returns functions of which each calls the next: the first, and as many of the last ones as fit.
    fn path(&self, items: &[Item]) -> String {
        let Some((first, callees)) = items.split_first() else { return String::new() };
        let mut used = self.item_width(first);
        let fitting = callees.iter().rev().take_while(|item| {
            used = used.saturating_add(self.item_width(item));
            used <= self.path_width
        });
        let skipped = callees.len() - fitting.count().max(1).min(callees.len());
        let gap = if skipped > 0 { " > …" } else { "" };
        let rest = callees[skipped..].iter().map(|item| format!(" > {}", self.list(from_ref(item), "")));
        self.list(from_ref(first), "") + gap + &rest.collect::<String>()
    }

    /// Returns names as code, with their numbers.
    fn list(&self, items: &[Item], separator: &str) -> String {
        let items = items.iter().map(|item| {
            let inner = item.inner.iter().map(|inner| format!(" > {}", self.name(inner)));
            let number = item.number.iter().map(|number| format!(" {}", escape(&number.text())));
            let parts =
                if item.parts.is_empty() { String::new() } else { format!(" ({})", self.list(&item.parts, ", ")) };
            self.name(&item.name) + &inner.chain(number).collect::<String>() + &parts
        });
        items.collect::<Vec<_>>().join(separator)
    }

    fn push_table(&self, text: &mut String, table: &Table) {
        let columns: Vec<&str> = table.columns.iter().map(|column| column.heading).collect();
        let columns = columns.join(" | ");
        let alignment = "--: | ".repeat(table.columns.len());
        text.push_str(&format!("| {columns} | {} | |\n| {alignment}:-- | :-- |\n", cell(&escape(&table.title))));
        for row in &table.rows {
            let names: Vec<String> = fit_names(&row.names, self.path_width).iter().map(|name| code(name)).collect();
            // Blanks at the start of a cell are dropped, these are not.
            let indent = "\u{a0}\u{a0}".repeat(row.depth.min(MAX_INDENT));
            let numbers: Vec<String> = row.numbers.iter().map(|number| cell(&escape(&number.text()))).collect();
            let details = cell(&(self.list(&row.details, ", ") + &self.notes(&row.notes)));
            text.push_str(&format!("| {} | {indent}{} | {details} |\n", numbers.join(" | "), cell(&names.join(" > "))));
        }
    }

    /// Returns notes as text, each on a line of its own.
    fn notes(&self, notes: &[Note]) -> String {
        let note = |note: &Note| format!("<br>{} {}", escape(&note.label), self.list(&note.items, ", "));
        notes.iter().map(note).collect()
    }

    /// Returns a name that is not part of a path as code.
    fn name(&self, name: &str) -> String {
        let room = self.path_width / PATH_TO_NAME;
        if name.len() <= room { code(name) } else { code(&cut_middle(&shortened(name), room)) }
    }
}

/// Returns text of a cell of a table. Even in code, the separator of cells has a meaning there, and nowhere else.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Returns a name as code, in which only a backquote has a meaning.
fn code(name: &str) -> String {
    match name.contains('`') {
        true => format!("`` {name} ``"),
        false => format!("`{name}`"),
    }
}

/// Returns a text with the characters escaped that have a meaning in Markdown or HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{cell, code, escape};

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!([code("a|b"), cell(&code("a|b"))], ["`a|b`", "`a\\|b`"]);
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(escape("<img> *a* [b](c) x_y"), "&lt;img> \\*a\\* \\[b\\](c) x\\_y");
    }
}
