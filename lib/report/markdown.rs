//! Writes a page as Markdown, for comments in code reviews.

use super::page::{Block, Item, Note, Page, Table, Value};

/// Returns the page as Markdown.
pub(super) fn render(page: &Page) -> String {
    let mut text = String::new();
    for block in &page.blocks {
        match block {
            Block::Facts(facts) => {
                facts.iter().for_each(|fact| text.push_str(&format!("- **{}**: {}\n", fact.label, value(&fact.value))));
            }
            Block::Table(table) => push_table(&mut text, table),
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

fn value(value: &Value) -> String {
    match value {
        Value::Text(text) => escape(text),
        Value::List(items) => list(items, ", "),
        Value::Path(items, _) => list(items, " > "),
    }
}

/// Returns names as code, with their numbers.
fn list(items: &[Item], separator: &str) -> String {
    let items = items.iter().map(|item| {
        let inner = item.inner.iter().map(|inner| format!(" > {}", code(inner)));
        let number = item.number.iter().map(|number| format!(" {}", escape(&number.text())));
        let parts = if item.parts.is_empty() { String::new() } else { format!(" ({})", list(&item.parts, ", ")) };
        code(&item.name) + &inner.chain(number).collect::<String>() + &parts
    });
    items.collect::<Vec<_>>().join(separator)
}

fn push_table(text: &mut String, table: &Table) {
    let columns: Vec<&str> = table.columns.iter().map(|column| column.heading).collect();
    let columns = columns.join(" | ");
    let alignment = "--: | ".repeat(table.columns.len());
    text.push_str(&format!("| {columns} | {} | |\n| {alignment}:-- | :-- |\n", escape(&table.title)));
    for row in &table.rows {
        let names: Vec<String> = row.names.iter().map(|name| code(name)).collect();
        // Blanks at the start of a cell are dropped, these are not.
        let indent = "\u{a0}\u{a0}".repeat(row.depth);
        let numbers: Vec<String> = row.numbers.iter().map(|number| escape(&number.text())).collect();
        let (numbers, details) = (numbers.join(" | "), list(&row.details, ", ") + &notes(&row.notes));
        text.push_str(&format!("| {numbers} | {indent}{} | {details} |\n", names.join(" > ")));
    }
}

/// Returns notes as text, each on a line of its own.
fn notes(notes: &[Note]) -> String {
    notes.iter().map(|note| format!("<br>{} {}", escape(&note.label), list(&note.items, ", "))).collect()
}

/// Returns a name as code, in which only a backquote and the separator of cells have a meaning.
fn code(name: &str) -> String {
    let name = name.replace('|', "\\|");
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
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{code, escape};

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(escape("<img> *a* [b](c) x_y"), "&lt;img> \\*a\\* \\[b\\](c) x\\_y");
    }
}
