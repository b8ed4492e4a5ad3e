//! Lays a page out as text of a limited width, with bars and colours for a terminal.

use clap::builder::styling::{AnsiColor, Style};

use super::callers::CALLED_BY;
use super::columns::width;
use super::fit::{
    cut_end, cut_middle, fit_path, last_parts, path_width, shortened, without_directories, wrap, wrap_path,
};
use super::names::{CutText, tell_cut_apart};
use super::page::{Block, Fact, Item, Note, Page, PathLines, Row, Table, Value};

/// Width of the labels of facts.
const LABEL_WIDTH: usize = 10;

/// Narrowest page. Below this, lines are cut by the terminal.
const MIN_WIDTH: usize = 40;

/// Width from which bars are drawn.
const BAR_PAGE_WIDTH: usize = 72;

/// Rows with at least this share in percent are highlighted.
const LARGE_SHARE: f64 = 10.0;

/// Most lines of the text of a fact.
const MAX_TEXT_LINES: usize = 6;

/// Most notes to a row.
const MAX_NOTES: usize = 3;

/// The details of a row with at least this share in percent may take two lines.
const WRAPPED_SHARE: f64 = 15.0;

/// Names of rows with at least this share in percent determine the width of all names.
const WIDE_SHARE: f64 = 5.0;

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
    let mut page = page.clone().without_source();
    page.blocks.iter_mut().for_each(inline_callers);
    let style =
        TextStyle { width: style.width.max(MIN_WIDTH), bars: style.bars && style.width >= BAR_PAGE_WIDTH, ..style };
    let mut text = String::new();
    for (number, block) in page.blocks.iter().enumerate() {
        // The first table belongs to the facts above it: together they are what most readers see.
        if number > 1 {
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

/// Moves the notes that name callers to the end of the details of their rows.
fn inline_callers(block: &mut Block) {
    let Block::Table(table) = block else { return };
    for row in &mut table.rows {
        let notes = std::mem::take(&mut row.notes);
        let (callers, others) = notes.into_iter().partition(|note| note.label == CALLED_BY);
        row.notes = others;
        row.details.extend(Vec::<Note>::into_iter(callers).map(|note| {
            let callers: Vec<String> = note.items.iter().map(Item::text).collect();
            Item::new(format!("{CALLED_BY} {}", callers.join(" and ")), None)
        }));
    }
}

/// The end of a list of which some items do not fit.
const REST: &str = ", …";

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Returns the text in a style, if styles are wanted.
fn paint(text: &str, paint: Style, style: TextStyle) -> String {
    if style.colours { format!("{paint}{text}{paint:#}") } else { text.to_owned() }
}

/// Items on lines.
struct FittedItems {
    lines: Vec<String>,
    /// The number of items that fit.
    fitting: usize,
}

/// Returns the items of a list that fit on the lines. Items after the first lose their parts before a large one is left out.
fn fit_groups(items: &[Item], room: usize, max_lines: usize) -> Vec<String> {
    let large = items.iter().rposition(|item| item.share_percent() >= WIDE_SHARE).map_or(0, |last| last + 1);
    // The parts of the first item, and those of the others.
    let fitted = [(usize::MAX, usize::MAX), (1, 1), (1, 0)].map(|(of_first, of_others)| {
        let parts = std::iter::once(of_first).chain(std::iter::repeat(of_others));
        let items: Vec<Item> = items.iter().zip(parts).map(|(item, parts)| item.with_parts(parts)).collect();
        fit_with_rest(&items, room, max_lines)
    });
    let most = fitted.iter().map(|fitted| fitted.fitting).max().unwrap_or(0).min(large);
    let chosen = fitted.into_iter().find(|fitted| fitted.fitting >= most);
    chosen.map_or_else(Vec::new, |fitted| fitted.lines)
}

/// Returns the items that fit on the lines, with a mark behind them if some do not.
fn fit_with_rest(items: &[Item], room: usize, max_lines: usize) -> FittedItems {
    let mut fitted = fit_items(items, room, max_lines);
    let has_rest = |fitted: &FittedItems| fitted.fitting < items.len();
    if has_rest(&fitted) && fitted.lines.last().is_some_and(|last| width(last) + width(REST) > room) {
        fitted = fit_items(items, room.saturating_sub(width(REST)), max_lines);
    }
    let is_cut = has_rest(&fitted);
    fitted.lines.last_mut().filter(|_| is_cut).into_iter().for_each(|last| last.push_str(REST));
    fitted
}

/// Returns as many items as fit on the lines, at least part of the first, with short forms of long names. An item that
/// does not fit loses the path of its inner function, then that function, then its parts but for the first, then all.
fn fit_items(items: &[Item], room: usize, max_lines: usize) -> FittedItems {
    let mut lines = vec![String::new()];
    let mut fitting = items.len();
    for (number, item) in items.iter().enumerate() {
        let inner = item.inner.as_ref().map(|inner| last_parts(&shortened(inner)));
        let without_path = Item { inner, ..item.clone() };
        let bare = Item { inner: None, ..item.clone() };
        let [first_part, barest] = [1, 0].map(|parts| bare.with_parts(parts));
        let forms = [item, &without_path, &bare, &first_part, &barest].map(|item| item.text_with(&shortened));
        let used = lines.last().map_or(0, |line| width(line));
        // A line that is not the last one ends in a comma.
        let room_here = room.saturating_sub(usize::from(lines.len() < max_lines));
        let left = if used == 0 { room_here } else { room_here.saturating_sub(used + 2) };
        let fits_here = forms.iter().find(|form| width(form) <= left);
        let room_below = room.saturating_sub(usize::from(lines.len() + 1 < max_lines));
        let fits_below = forms.iter().find(|form| width(form) <= room_below).filter(|_| lines.len() < max_lines);
        // Better whole on the next line than cut on this one.
        let whole_below = fits_below.filter(|form| fits_here.is_none_or(|here| width(here) < width(form)));
        match (whole_below, fits_here, lines.last_mut()) {
            (Some(form), _, Some(line)) if used > 0 => {
                line.push(',');
                lines.push(form.clone());
            }
            (_, Some(form), Some(line)) => {
                line.push_str(if used == 0 { "" } else { ", " });
                line.push_str(form);
            }
            (_, None, Some(line)) if number == 0 => *line = cut_middle(&forms[4], room_here),
            _ => {
                fitting = number;
                break;
            }
        }
    }
    FittedItems { lines, fitting }
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
        Value::List(items) if fact.most_list_lines() > 1 => fit_groups(items, room, fact.most_list_lines()),
        Value::List(items) => fit_with_rest(items, room, fact.most_list_lines()).lines,
        Value::Path(items, lines) => {
            let names: Vec<String> = items.iter().map(Item::text).collect();
            if *lines == PathLines::One { vec![fit_path(&names, room)] } else { wrap_path(&names, room) }
        }
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
    let numbers_width: usize = widths.iter().map(|width| width + 1).sum();
    // A blank before a bar, and one before the name.
    let room = style.width.saturating_sub(numbers_width + bar.max(1));
    let mut header = String::new();
    for (column, width) in table.columns.iter().zip(&widths) {
        header.push_str(&format!("{:>width$} ", column.heading));
    }
    let title = cut_end(&table.title, style.width.saturating_sub(numbers_width + 1));
    push_line(text, &paint(&format!("{header} {title}"), Style::new().bold(), style));
    let name_width = name_width(&table.rows, room);
    for (row, name) in table.rows.iter().zip(fit_row_names(&table.rows, name_width, room)) {
        push_row(text, row, &name, &widths, bar, name_width, room, style);
    }
}

/// Returns the names of rows as they fit, those of different functions told apart. Details have no room left of `name_width`.
fn fit_row_names(rows: &[Row], name_width: usize, room: usize) -> Vec<String> {
    let texts = rows.iter().map(|row| {
        let (room, names) = match row.details.is_empty() {
            true => (room, row.names.clone()),
            false => (name_width, row.names.iter().map(|name| without_directories(name)).collect()),
        };
        let room = room.saturating_sub(indent(row));
        CutText { whole: row.names.join(" > "), cut: fit_path(&names, room), room }
    });
    let mut texts: Vec<CutText> = texts.collect();
    tell_cut_apart(&mut texts);
    texts.into_iter().map(|text| text.cut).collect()
}

fn widest_name<'r>(rows: impl Iterator<Item = &'r Row>) -> Option<usize> {
    rows.map(|row| indent(row) + chain_width(row)).max()
}

/// Returns the width of the names of a table, so that details have room beside most of them. If details are short, names have
/// the rest of the room.
fn name_width(rows: &[Row], room: usize) -> usize {
    let details = rows.iter().map(|row| row.details.iter().map(|item| width(&item.text()) + 2).sum::<usize>());
    let beside_details = room.saturating_sub(details.max().unwrap_or(0) + 2);
    // Small rows take little room from the details of large ones.
    let detailed = rows.iter().filter(|row| !row.details.is_empty());
    let widest = widest_name(detailed.clone()).unwrap_or(0);
    let of_large = widest_name(detailed.filter(|row| row.share.abs() >= WIDE_SHARE)).unwrap_or(widest);
    of_large.max(widest.min(room / 4)).min(room * 2 / 5).max(widest.min(beside_details))
}

/// Returns the width of the names of a row with the arrows between them.
fn chain_width(row: &Row) -> usize {
    path_width(&row.names.iter().map(|name| shortened(name)).collect::<Vec<_>>())
}

fn indent(row: &Row) -> usize {
    (row.depth * 2).min(MAX_INDENT)
}

#[expect(clippy::too_many_arguments, reason = "the layout of the table, and the row")]
fn push_row(
    text: &mut String,
    row: &Row,
    name: &str,
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
    line.push_str(&paint(name, bold, style));
    if !row.details.is_empty() {
        let padding = name_width.saturating_sub(indent(row) + width(name)) + 2;
        let max_lines = if row.share.abs() >= WRAPPED_SHARE { 2 } else { 1 };
        let details = fit_items(&row.details, details_room, max_lines).lines;
        let first = details.first().map_or("", |first| first);
        line.push_str(&" ".repeat(padding));
        line.push_str(&paint(first, Style::new().dimmed(), style));
        push_line(text, &line);
        for more in details.iter().skip(1) {
            let start = style.width.saturating_sub(details_room);
            push_line(text, &format!("{}{}", " ".repeat(start), paint(more, Style::new().dimmed(), style)));
        }
    } else {
        push_line(text, &line);
    }
    if !row.notes.is_empty() {
        let start = style.width.saturating_sub(room) + 2;
        for note in row.notes.iter().take(MAX_NOTES) {
            let label = shortened(&note.label);
            let items = fit_items(&note.items, style.width.saturating_sub(start + width(&label) + 1), 1).lines.join("");
            let line = paint(&format!("{label} {items}"), Style::new().dimmed(), style);
            push_line(text, &format!("{}{line}", " ".repeat(start)));
        }
    }
}

/// Returns a bar for a share in percent, in eighths of a character.
fn draw_bar(share: f64, cells: usize) -> String {
    let eighths = (share / 100.0 * cells as f64 * 8.0).round().clamp(0.0, cells as f64 * 8.0) as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
    let drawn = width(&bar);
    bar + &" ".repeat(cells - drawn)
}

#[cfg(test)]
mod tests {
    use super::super::page::{Column, Number, PathLines};
    use super::{Block, Fact, Item, Page, Row, Table, TextStyle, Value, draw_bar, render};

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
            names: ["a_function_with_a_long_name", "another_function_with_a_long_name"].map(str::to_owned).to_vec(),
            notes: Vec::new(),
            details: details.iter().map(|name| Item::share(*name, 50.0)).collect(),
        }
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        let rows = vec![long_row(0, &["caller", "another caller"]), long_row(40, &[]), long_row(3, &["x"])];
        let columns = vec![Column { key: "self", heading: "self" }, Column { key: "total", heading: "total" }];
        let title = "a title that is long enough for two".repeat(3);
        let table = Table { key: "t", title, details_key: "d", columns, rows, left_out: 0 };
        let facts = vec![
            Fact::new("label", Value::Text("some words ".repeat(20))),
            Fact::new("path", Value::Path(vec![Item::share("x", 1.0); 90], PathLines::Two)),
        ];
        let page = Page { blocks: vec![Block::Facts(facts), Block::Table(table)], source: None };
        for width in [40, 80, 200] {
            for bars in [false, true] {
                let text = render(&page, TextStyle { width, bars, colours: false });
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest.is_some_and(|widest| widest <= width), "{width}\n{text}");
            }
        }
    }
}
