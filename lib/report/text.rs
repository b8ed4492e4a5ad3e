//! Lays a page out as text of a limited width, with bars and colours for a terminal.

use clap::builder::styling::{AnsiColor, Style};

use super::page::{Block, Fact, Item, Page, Row, Table, Value};
use crate::symbol_name::shorten::shorten;

/// Width of the labels of facts.
const LABEL_WIDTH: usize = 10;

/// Narrowest page. Below this, lines are cut by the terminal.
const MIN_WIDTH: usize = 40;

/// Width from which bars are drawn.
const BAR_PAGE_WIDTH: usize = 72;

/// Rows with at least this share in percent are highlighted.
const LARGE_SHARE: f64 = 10.0;

/// Names longer than this are shortened where there is no room for them.
const LONG_NAME: usize = 24;

/// Functions at the end of a path that are worth more than the leaf: the last own one, what it calls, and the leaf.
const MIN_KNOWN: usize = 3;

/// Most lines of the text of a fact.
const MAX_TEXT_LINES: usize = 6;

/// Largest indentation in columns.
const MAX_INDENT: usize = 24;

/// The form of the text.
#[derive(Clone, Copy, Debug)]
pub struct TextStyle {
    /// Width in columns.
    pub width: usize,
    /// Draws a bar beside each share if true.
    pub bars: bool,
    /// Use bold text and colours.
    pub colours: bool,
}

/// Returns the page as lines, each at most as wide as the style says.
pub(super) fn render(page: &Page, style: TextStyle) -> String {
    let style =
        TextStyle { width: style.width.max(MIN_WIDTH), bars: style.bars && style.width >= BAR_PAGE_WIDTH, ..style };
    let mut text = String::new();
    for (number, block) in page.blocks.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        match block {
            Block::Facts(facts) => facts.iter().for_each(|fact| push_fact(&mut text, fact, style)),
            Block::Table(table) => push_table(&mut text, table, style),
            Block::Commands(commands) => {
                push_line(&mut text, &paint("look closer", Style::new().bold(), style));
                commands.iter().for_each(|command| push_line(&mut text, &format!("  {command}")));
            }
        }
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Returns the text in a style, if styles are wanted.
fn paint(text: &str, paint: Style, style: TextStyle) -> String {
    if style.colours { format!("{paint}{text}{paint:#}") } else { text.to_owned() }
}

/// Returns the items as text.
fn texts(items: &[Item]) -> Vec<String> {
    items.iter().map(Item::text).collect()
}

fn push_fact(text: &mut String, fact: &Fact, style: TextStyle) {
    let room = style.width - LABEL_WIDTH;
    let lines = match &fact.value {
        Value::Text(value) => {
            let mut lines = wrap(value, room);
            if lines.len() > MAX_TEXT_LINES {
                lines.truncate(MAX_TEXT_LINES - 1);
                lines.push("…".to_owned());
            }
            lines
        }
        Value::List(items) => vec![fit_list(&texts(items), room)],
        Value::Path(items) => wrap_path(&texts(items), room),
    };
    for (number, line) in lines.iter().enumerate() {
        let label = if number == 0 { fact.label } else { "" };
        let label = paint(&format!("{label:LABEL_WIDTH$}"), Style::new().bold(), style);
        push_line(text, &format!("{label}{line}"));
    }
}

fn push_table(text: &mut String, table: &Table, style: TextStyle) {
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|column| {
            let cells = table.rows.iter().filter_map(|row| row.numbers.get(column)).map(|number| width(&number.text()));
            cells.chain([table.columns[column].heading.len()]).max().unwrap_or(0)
        })
        .collect();
    let bar = if style.bars { 2 + (style.width / 16).min(10) } else { 0 };
    let room = style.width.saturating_sub(widths.iter().map(|width| width + 1).sum::<usize>() + 1 + bar);
    let mut header = String::new();
    for (column, width) in table.columns.iter().zip(&widths) {
        header.push_str(&format!("{:>width$} ", column.heading));
    }
    let title = cut_end(&table.title, room + bar);
    push_line(text, &paint(&format!("{header} {title}"), Style::new().bold(), style));
    let name_width = name_width(&table.rows, room);
    for row in &table.rows {
        push_row(text, row, &widths, bar, name_width, room, style);
    }
}

/// Returns the width of the names of a table, so that details have room beside most of them.
fn name_width(rows: &[Row], room: usize) -> usize {
    let longest = rows.iter().filter(|row| !row.details.is_empty()).map(|row| indent(row) + chain_width(row));
    longest.max().unwrap_or(0).min(room * 11 / 20)
}

/// Returns the width of the names of a row with the arrows between them.
fn chain_width(row: &Row) -> usize {
    row.names.iter().map(|name| width(&shortened(name)) + 3).sum::<usize>().saturating_sub(3)
}

fn indent(row: &Row) -> usize {
    (row.depth * 2).min(MAX_INDENT)
}

fn push_row(
    text: &mut String,
    row: &Row,
    widths: &[usize],
    bar: usize,
    name_width: usize,
    room: usize,
    style: TextStyle,
) {
    let mut numbers = String::new();
    for (number, width) in row.numbers.iter().zip(widths) {
        numbers.push_str(&format!("{:>width$} ", number.text()));
    }
    let is_large = row.share.abs() >= LARGE_SHARE;
    let bold = if is_large { Style::new().bold() } else { Style::new() };
    let mut line = paint(&numbers, bold, style);
    if bar > 0 {
        let red = Style::new().fg_color(Some(if row.share < 0.0 { AnsiColor::Green } else { AnsiColor::Red }.into()));
        line.push(' ');
        line.push_str(&paint(&draw_bar(row.share.abs(), bar - 2), red, style));
    }
    line.push(' ');
    line.push_str(&" ".repeat(indent(row)));
    let details_room = room.saturating_sub(name_width + 2);
    let (own_room, names) = match row.details.is_empty() {
        true => (room, row.names.clone()),
        false => (name_width.max(MIN_WIDTH / 4), row.names.iter().map(|name| without_directories(name)).collect()),
    };
    let name = fit_path(&names, own_room.saturating_sub(indent(row)));
    line.push_str(&paint(&name, bold, style));
    if !row.details.is_empty() {
        let padding = name_width.saturating_sub(indent(row) + width(&name)) + 2;
        let details = fit_list(&texts(&row.details), details_room);
        line.push_str(&" ".repeat(padding));
        line.push_str(&paint(&details, Style::new().dimmed(), style));
    }
    push_line(text, &line);
}

/// Returns a bar for a share in percent, in eighths of a character.
fn draw_bar(share: f64, cells: usize) -> String {
    let eighths = (share / 100.0 * cells as f64 * 8.0).round().clamp(0.0, cells as f64 * 8.0) as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
    let drawn = width(&bar);
    bar + &" ".repeat(cells - drawn)
}

/// Returns the number of characters, which is the number of columns of nearly all names.
fn width(text: &str) -> usize {
    text.chars().count()
}

/// Returns a text in lines of at most this width, broken at blanks.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && width(line) + 1 + width(word) > room {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.iter().map(|line| cut_end(line, room)).collect()
}

/// Returns a long name without generic, template and call arguments, and without the directories of files.
fn shortened(name: &str) -> String {
    // Functions of scripts have no such arguments: brackets contain a file, or `<module>`.
    let is_script = name.starts_with("py::") || name.starts_with("JS:") || name.contains(" (");
    match width(name) > LONG_NAME {
        true if is_script => without_directories(name),
        true => without_directories(&String::from_utf8_lossy(&shorten(name.as_bytes(), 2))),
        false => name.to_owned(),
    }
}

/// Returns a name with the last part only of each absolute path: `py::run:/srv/app.py` becomes `py::run:app.py`. Files
/// that are named alike in every directory keep it.
fn without_directories(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    for part in name.split_inclusive([' ', ':', '(']) {
        let file = part.strip_prefix('/').and_then(|path| {
            let (directory, file) = path.rsplit_once('/')?;
            let is_common = ["__init__.", "index.", "mod.", "main.", "lib."].iter().any(|stem| file.starts_with(stem));
            let start = directory.rfind('/').map_or(0, |slash| slash + 1);
            Some(if is_common { &path[start..] } else { file })
        });
        short.push_str(file.filter(|file| !file.is_empty()).unwrap_or(part));
    }
    short
}

/// Returns as many items as fit, at least part of the first.
fn fit_list(items: &[String], room: usize) -> String {
    let mut line = String::new();
    for (number, item) in items.iter().map(|item| shortened(item)).enumerate() {
        let separator = if number == 0 { "" } else { ", " };
        if number > 0 && width(&line) + separator.len() + width(&item) > room {
            break;
        }
        line.push_str(separator);
        line.push_str(&item);
    }
    cut_middle(&line, room)
}

/// Returns functions joined by ` > ` on one line, or on two if parts must be left out of one. The callers right before the
/// last function tell more than any others.
fn wrap_path(names: &[String], room: usize) -> Vec<String> {
    let lines = (room..=2 * room).rev().map(|both| break_path(&fit_path(names, both), room));
    let mut fitting = lines.filter(|lines| lines.len() <= 2 && lines.iter().all(|line| width(line) <= room));
    fitting.next().unwrap_or_else(|| vec![fit_path(names, room)])
}

/// Breaks a path before its functions.
fn break_path(path: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in path.split(" > ") {
        match lines.last_mut() {
            Some(line) if width(line) + width(name) + 3 <= room => line.push_str(&format!(" > {name}")),
            Some(_) => lines.push(format!("> {name}")),
            None => lines.push(name.to_owned()),
        }
    }
    lines
}

/// Returns functions joined by ` > `. If they do not fit, arguments are left out, then the functions after the first,
/// then parts of names.
fn fit_path(names: &[String], room: usize) -> String {
    let whole = names.join(" > ");
    if width(&whole) <= room {
        return whole;
    }
    let names: Vec<String> = names.iter().map(|name| shortened(name)).collect();
    let whole = names.join(" > ");
    if width(&whole) <= room {
        return whole;
    }
    let [_, .., last] = &names[..] else { return cut_middle(&whole, room) };
    if let [start @ .., gap, _] = &names[..]
        && gap == "…"
        && start.len() > 1
    {
        let line = without_start(&names, MIN_KNOWN, room).or_else(|| without_start(start, 1, room));
        return line.unwrap_or_else(|| cut_middle(&start[start.len() - 1], room));
    }
    if let Some(line) = without_start(&names, 1, room) {
        return line;
    }
    let line = format!("… > {last}");
    if width(&line) <= room { line } else { cut_middle(last, room) }
}

/// Returns the first function of a path and as many of the last ones as fit, but at least `min`.
fn without_start(names: &[String], min: usize, room: usize) -> Option<String> {
    let whole = names.join(" > ");
    if width(&whole) <= room {
        return Some(whole);
    }
    let ends = (2..names.len()).filter(|skipped| names[*skipped] != "…").map(|skipped| &names[skipped..]);
    let ends = ends.take_while(|end| end.iter().filter(|name| *name != "…").count() >= min);
    let mut lines = ends.map(|end| format!("{} > … > {}", names[0], end.join(" > ")));
    lines.find(|line| width(line) <= room)
}

/// Returns a text without its end, if it is too long.
fn cut_end(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// Returns a text without its middle, if it is too long. More of its end is kept, where names differ.
fn cut_middle(text: &str, room: usize) -> String {
    let length = width(text);
    if length <= room {
        return text.to_owned();
    }
    let head = room.saturating_sub(1) / 3;
    let tail = room.saturating_sub(1) - head;
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::page::{Column, Number};
    use super::{
        Block, Fact, Item, Page, Row, Table, TextStyle, Value, cut_middle, draw_bar, fit_list, fit_path, render,
        shortened, wrap_path,
    };

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn paths_and_lists_lose_what_does_not_fit() {
        let path = strings(&["main", "serve", "handle", "encode"]);
        assert_eq!(fit_path(&path, 40), "main > serve > handle > encode");
        assert_eq!(fit_path(&path, 29), "main > … > handle > encode");
        assert_eq!(fit_path(&path, 18), "main > … > encode");
        assert_eq!(fit_path(&path, 10), "… > encode");
        let own_first = strings(&["app", "main", "own", "callee", "…", "leaf"]);
        assert_eq!(fit_path(&own_first, 33), "app > … > own > callee > … > leaf");
        assert_eq!(fit_path(&own_first, 32), "app > main > own > callee");
        assert_eq!(fit_path(&own_first, 22), "app > … > own > callee");
        assert_eq!(fit_path(&path, 5), "e…ode");
        assert_eq!(fit_list(&strings(&["a 1%", "b 2%", "c 3%"]), 10), "a 1%, b 2%");
        assert_eq!(cut_middle("abcdefghij", 7), "ab…ghij");
    }

    #[test]
    fn long_names_lose_arguments_and_directories() {
        for (name, short) in [
            ("py::deep_copy:/srv/application/app.py", "py::deep_copy:app.py"),
            ("JS:*unique /srv/application/app.js:2:16", "JS:*unique app.js:2:16"),
            ("github.com/example/pkg.(*Server).Run", "github.com/example/pkg.(*Server).Run"),
            ("a::very::long::path::of<names, and::arguments>", "a::very::long::path::of"),
            ("/", "/"),
            ("py::<module>:/srv/application/app.py", "py::<module>:app.py"),
            ("<module> (/srv/application/app.py)", "<module> (app.py)"),
            ("py::dumps:/usr/lib/python3.12/json/__init__.py", "py::dumps:json/__init__.py"),
        ] {
            assert_eq!(shortened(name), short);
        }
    }

    #[test]
    fn bars_have_a_fixed_width() {
        assert_eq!(draw_bar(0.0, 4), "    ");
        assert_eq!(draw_bar(50.0, 4), "██  ");
        assert_eq!(draw_bar(30.0, 4), "█▎  ");
        assert_eq!(draw_bar(250.0, 4), "████");
    }

    fn long_row(depth: usize, details: &[&str]) -> Row {
        Row {
            numbers: vec![Number::Share(12.5), Number::Share(100.0)],
            share: 12.5,
            depth,
            names: strings(&["a_function_with_a_long_name", "another_function_with_a_long_name"]),
            details: details.iter().map(|name| Item::share(*name, 50.0)).collect(),
        }
    }

    #[test]
    fn a_path_takes_two_lines_before_callers_are_left_out() {
        let names = strings(&["main", "serve", "route", "load_settings", "parse_json"]);
        assert_eq!(wrap_path(&names, 60), ["main > serve > route > load_settings > parse_json"]);
        assert_eq!(wrap_path(&names, 30), ["main > serve > route", "> load_settings > parse_json"]);
        assert_eq!(wrap_path(&names, 24), ["main > … > load_settings", "> parse_json"]);
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        let rows = vec![long_row(0, &["caller", "another caller"]), long_row(40, &[]), long_row(3, &["x"])];
        let columns = vec![Column { key: "self", heading: "self" }, Column { key: "total", heading: "total" }];
        let title = "a title that is long enough for two".repeat(3);
        let table = Table { key: "t", title, details_key: "d", columns, rows };
        let facts = vec![
            Fact::new("label", Value::Text("some words ".repeat(20))),
            Fact::new("path", Value::Path(vec![Item::share("x", 1.0); 90])),
        ];
        let page = Page { blocks: vec![Block::Facts(facts), Block::Table(table)] };
        for width in [40, 80, 200] {
            for bars in [false, true] {
                let text = render(&page, TextStyle { width, bars, colours: false });
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest.is_some_and(|widest| widest <= width), "{width}\n{text}");
            }
        }
    }
}
