//! Tables with stacks that Windows Performance Analyzer exports as CSV (`wpaexporter`, or *Copy* in its tables).
//!
//! ```text
//! Process,Thread ID,Stack,Count,Weight (in view) (ms)
//! app.exe (42),7,[Root]/ntdll.dll!RtlUserThreadStart/app.exe!main,12,11.9
//! ```
//! The weight is `Count`, unless `--event` names another column of numbers. The root frame is the process, with its ID
//! if `--pid` or `--tid` asks for it. Frames are named ``module`function``. A table that was aggregated must have one row
//! for each stack: rows without a stack are left out, since they are the sums of others. *Copy* of an expanded stack writes
//! a tree (`|- app.exe!main`), whose weights are sums of those below: it is refused.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, parse_number, split_csv};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "wpa",
    description: "Windows Performance Analyzer, CSV with stacks",
    tested_with: "",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

/// The start of columns of numbers that can be weights, the default first.
const WEIGHTS: [&str; 6] = ["Count", "Weight", "Size", "Impacting Size", "CPU Usage", "Time Since Last"];

/// The first frame of all stacks.
const ROOT: &[u8] = b"[Root]";

/// Returns true if the first line has the names of columns, and a later one a stack of Windows.
fn recognizes(head: &[u8]) -> bool {
    let mut lines = first_lines(head).filter(|line| !line.is_empty());
    let Some(columns) = lines.next().and_then(Columns::parse) else { return false };
    lines.filter_map(split_csv).any(|fields| {
        let stack = fields.get(columns.stack);
        stack.is_some_and(|stack| stack.starts_with(ROOT) || memchr::memchr(b'!', stack).is_some())
    })
}

/// The columns of a table.
struct Columns {
    /// Their number.
    count: usize,
    stack: usize,
    process: Option<usize>,
    /// The names and indices of the columns of weights.
    weights: Vec<(String, usize)>,
}

impl Columns {
    /// Parses the line with the names of the columns. Returns `None` if none has stacks or none has weights.
    fn parse(line: &[u8]) -> Option<Self> {
        let names: Vec<String> =
            split_csv(line)?.iter().map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned()).collect();
        let find = |wanted: &[&str]| names.iter().position(|name| wanted.contains(&&**name));
        let stack = find(&["Stack", "Stack (Frame Tags)", "Commit Stack", "New Thread Stack", "Ready Thread Stack"])?;
        let process = find(&["Process", "Process Name", "New Process", "New Process Name"]);
        let mut weights = Vec::new();
        for start in WEIGHTS {
            let indices = (0..names.len()).filter(|index| names[*index].starts_with(start));
            weights.extend(indices.map(|index| (names[index].clone(), index)));
        }
        (!weights.is_empty()).then_some(Self { count: names.len(), stack, process, weights })
    }
}

/// Returns true for a table whose stacks are the branches of a tree.
pub(in crate::collapse) fn is_tree(head: &[u8]) -> bool {
    let mut lines = first_lines(head).filter(|line| !line.is_empty());
    let Some(columns) = lines.next().and_then(Columns::parse) else { return false };
    lines.filter_map(split_csv).any(|fields| fields.get(columns.stack).is_some_and(|stack| is_branch(stack)))
}

/// Returns true for `|    |- app.exe!main`.
fn is_branch(stack: &[u8]) -> bool {
    let stack = stack.trim_ascii_start();
    stack.starts_with(b"|- ") || stack.starts_with(b"|  ")
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut found) = (Vec::new(), Stack::default(), None);
    while document.read_line(&mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some((columns, weight)) = &found else {
            let Some(columns) = Columns::parse(&line) else {
                document.report_malformed("expected the names of columns, with Stack and Count or Weight")?;
                continue;
            };
            let names: Vec<&str> = columns.weights.iter().map(|(name, _)| &**name).collect();
            let weight = columns.weights[document.select_value(&names, 0)?].1;
            found = Some((columns, weight));
            continue;
        };
        let fields = split_csv(&line).filter(|fields| fields.len() == columns.count);
        let value = fields.as_ref().and_then(|fields| parse_weight(fields.get(*weight)?));
        let (Some(fields), Some(value)) = (fields, value) else {
            document.report_malformed("expected a stack and a number in the columns that the first line names")?;
            continue;
        };
        if fields.get(columns.stack).is_some_and(|stack| is_branch(stack)) {
            document.report_malformed("the stack is a branch of a tree, and its weight a sum")?;
            continue;
        }
        add_row(&fields, columns, value, &mut stack, document.options, sink)?;
    }
    document.check_last_line()
}

fn add_row(
    fields: &[Vec<u8>],
    columns: &Columns,
    weight: Weight,
    stack: &mut Stack,
    options: &Options,
    sink: &mut Sink,
) -> Result<(), Error> {
    let text = fields.get(columns.stack).map_or(&b""[..], |stack| stack.trim_ascii());
    if text.is_empty() {
        return Ok(());
    }
    if let Some(process) = columns.process.and_then(|index| fields.get(index)).filter(|name| !name.is_empty()) {
        stack.push(process_name(process.trim_ascii(), options), sink);
    }
    for frame in split_frames(text).filter(|frame| *frame != ROOT) {
        stack.push(&frame_name(frame), sink);
    }
    stack.add(weight, sink)
}

/// Splits a stack at its slashes, except those within templates and argument lists.
fn split_frames(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut depth = 0usize;
    text.split(move |byte| {
        match byte {
            b'<' | b'(' => depth += 1,
            b'>' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        *byte == b'/' && depth == 0
    })
}

/// Returns `app.exe` of `app.exe (42)` unless the options ask for IDs.
fn process_name<'a>(process: &'a [u8], options: &Options) -> &'a [u8] {
    let Some(blank) = memchr::memrchr(b' ', process).filter(|_| !options.pid && !options.tid) else { return process };
    let id = process[blank + 1..].strip_prefix(b"(").and_then(|id| id.strip_suffix(b")"));
    if id.is_some_and(|id| parse_number(id).is_some()) { process[..blank].trim_ascii_end() } else { process }
}

/// Returns ``module`function`` of `module!function`, and `[module]` where there is no symbol.
fn frame_name(frame: &[u8]) -> Vec<u8> {
    let Some(mark) = memchr::memchr(b'!', frame) else { return frame.to_vec() };
    let (module, function) = (&frame[..mark], &frame[mark + 1..]);
    match function {
        b"" | b"<Missing ImageId event>" | b"<Symbols disabled>" | b"<PDB not found>" => [b"[", module, b"]"].concat(),
        _ => [module, function].join(&b'`'),
    }
}

/// Parses a number, which may have commas between groups of digits.
fn parse_weight(text: &[u8]) -> Option<Weight> {
    let digits: Vec<u8> = text.trim_ascii().iter().copied().filter(|byte| *byte != b',').collect();
    Weight::parse(&digits)
}

#[cfg(test)]
mod tests {
    use super::{Columns, frame_name, parse_weight, split_frames};

    #[test]
    fn splits_stacks_outside_of_templates() {
        let frames: Vec<&[u8]> = split_frames(b"[Root]/a.dll!f<x/y>(b/c)/g").collect();
        assert_eq!(frames, [&b"[Root]"[..], b"a.dll!f<x/y>(b/c)", b"g"]);
        assert_eq!(frame_name(b"a.dll!f"), b"a.dll`f");
        assert_eq!(frame_name(b"a.dll!<PDB not found>"), b"[a.dll]");
    }

    #[test]
    fn finds_columns_by_name() {
        let columns = Columns::parse(b"Line #,Process,Stack,Weight (in view) (ms),Count").unwrap();
        assert_eq!((columns.stack, columns.process, columns.weights[0].1, columns.weights[1].1), (2, Some(1), 4, 3));
        assert!(Columns::parse(b"Stack,Name").is_none() && Columns::parse(b"Count,Name").is_none());
        assert_eq!(parse_weight(b"1,234.5").unwrap().to_string(), "1234.5");
    }
}
