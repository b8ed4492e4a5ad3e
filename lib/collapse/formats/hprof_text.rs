//! Text of the JVM's former profiler HPROF (`java.hprof.txt`, up to JDK 8): stacks, and tables that refer to them.
//!
//! ```text
//! TRACE 300027: (thread=200001)
//!     app.Main.work(Main.java:3)
//!     app.Main.main(Main.java:9)
//! CPU SAMPLES BEGIN (total = 67) Fri Oct 22 12:12:14 2004
//! rank   self  accum   count trace method
//!    1 100.00% 100.00%     67 300027 app.Main.work
//! CPU SAMPLES END
//! ```
//! The weight is the first of these values that the file has, unless `--event` names another: `samples` (`cpu=samples`);
//! `times`, the milliseconds in each method without those that it calls, and `calls` (`cpu=times`); `bytes` and `objects`
//! that were allocated, `live-bytes` and `live-objects` (`heap=sites`). Times are percentages of their total, to two
//! decimals. Stacks are leaf first. Files and lines are left out unless `--srcline` asks for them.

use rustc_hash::FxHashMap;

use super::java;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, parse_number, split_once, split_words};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{Stack, intern_frame};
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "hprof-text",
    description: "HPROF text (JDK 8 and older)",
    tested_with: "JDK 8",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| {
        first_lines(head).next().is_some_and(|line| line.starts_with(b"JAVA PROFILE 1.0") && line.contains(&b','))
            || first_lines(head).any(|line| parse_trace(line).is_some())
                && first_lines(head).any(|line| line.starts_with(b"\t") && line.ends_with(b")"))
    }),
    reader: FormatReader::Lines(read),
};

/// The beginnings of the tables.
const TABLES: [&[u8]; 3] = [b"CPU SAMPLES BEGIN", b"CPU TIME (ms) BEGIN", b"SITES BEGIN"];

/// The index of the table of times.
const TIMES: usize = 1;

/// The values, and their tables and units. The order is that of [`Row::values`].
const VALUES: [(&str, usize, &str); 7] = [
    ("samples", 0, "samples"),
    ("times", TIMES, "milliseconds"),
    ("calls", TIMES, "calls"),
    ("bytes", 2, "bytes"),
    ("objects", 2, "objects"),
    ("live-bytes", 2, "bytes"),
    ("live-objects", 2, "objects"),
];

/// A table of a file.
#[derive(Default)]
struct Table {
    /// The total of all times in milliseconds.
    total: u64,
    rows: Vec<Row>,
}

/// A row of a table.
struct Row {
    trace: u64,
    /// The values of the table, in the order of [`VALUES`].
    values: [Weight; 4],
}

/// Returns the number of `TRACE 300027: (thread=200001)`.
fn parse_trace(line: &[u8]) -> Option<u64> {
    let (number, _) = split_once(line.strip_prefix(b"TRACE ")?, ":")?;
    parse_number(number)
}

/// Returns the frame of a line below a trace. The tab before it may have been lost.
fn parse_frame(line: &[u8]) -> Option<&[u8]> {
    let frame = line.trim_ascii();
    let is_call =
        frame.ends_with(b")") && memchr::memchr(b'(', frame).is_some_and(|start| start > 0 && frame[start - 1] != b' ');
    (line.starts_with(b"\t") || is_call).then_some(frame)
}

/// Returns true for the lines between the traces and the rows of the tables.
fn is_heading(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    [&b"THREAD START ("[..], b"THREAD END (", b"--------", b"JAVA PROFILE 1.0", b"rank ", b"percent "]
        .iter()
        .any(|start| text.starts_with(start))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut traces, mut open) = (Vec::new(), FxHashMap::<u64, Vec<FrameId>>::default(), None);
    let (mut tables, mut table): ([Table; 3], Option<usize>) = (Default::default(), None);
    // A text about the profiler precedes the traces.
    let mut is_text = false;
    while document.read_line(&mut line)? {
        match line.starts_with(b"JAVA PROFILE 1.0") {
            true => is_text = true,
            false if line.starts_with(b"---") || line.starts_with(b"THREAD ") => is_text = false,
            false => {}
        }
        if let Some(trace) = parse_trace(&line) {
            open = Some(trace);
            traces.insert(trace, Vec::new());
        } else if let (Some(frame), Some(trace)) = (parse_frame(&line), open) {
            let frame = intern_frame(&frame_name(frame, document.options), sink);
            traces.entry(trace).or_default().push(frame);
        } else if let Some(index) = TABLES.iter().position(|begin| line.starts_with(begin)) {
            (table, open) = (Some(index), None);
            // Another dump follows, whose values include those before.
            tables[index] = Table { total: parse_total(&line).unwrap_or(0), rows: Vec::new() };
        } else if line.ends_with(b" END") {
            table = None;
        } else if let (Some(index), Some(row)) =
            (table, table.and_then(|index| parse_row(&line, index, tables[index].total)))
        {
            tables[index].rows.push(row);
        } else if is_text || is_heading(&line) {
            document.skip_own_line();
        } else {
            document.skip_line();
        }
    }
    let used: Vec<&(&str, usize, &str)> =
        VALUES.iter().filter(|(_, table, _)| !tables[*table].rows.is_empty()).collect();
    if used.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = used.iter().map(|(name, ..)| *name).collect();
    let (name, chosen, unit) = *used[document.select_value(&names, 0)?];
    document.set_unit_silently(unit);
    let column = VALUES.iter().filter(|(_, table, _)| *table == chosen).position(|value| value.0 == name).unwrap_or(0);
    let (mut stack, mut unknown) = (Stack::default(), 0);
    for row in &tables[chosen].rows {
        match traces.get(&row.trace).filter(|frames| !frames.is_empty()) {
            Some(frames) => stack.extend(frames),
            None => {
                unknown += 1;
                stack.push(b"", sink);
            }
        }
        stack.add_leaf_first(row.values[column], sink)?;
    }
    document.report_problems(unknown, "entry", "without a stack: its trace is missing or empty")?;
    document.check_end(table.is_none(), "the end of its last table")
}

/// Returns the total of `CPU TIME (ms) BEGIN (total = 6143) Wed Nov 25 09:39:09 2026`.
fn parse_total(line: &[u8]) -> Option<u64> {
    let (total, _) = split_once(split_once(line, "(total = ")?.1, ")")?;
    parse_number(total)
}

/// Parses a row of a table. `total` is that of the times.
fn parse_row(line: &[u8], table: usize, total: u64) -> Option<Row> {
    let words: Vec<&[u8]> = split_words(line).collect();
    parse_number(words.first()?)?;
    let number = |index: usize| parse_number(words.get(index)?).map(Weight::new);
    let (values, trace) = match table {
        // rank self accum count trace method
        0 => ([number(3)?, Weight::ZERO, Weight::ZERO, Weight::ZERO], words.get(4)?),
        TIMES => ([parse_share(words.get(1)?, total)?, number(3)?, Weight::ZERO, Weight::ZERO], words.get(4)?),
        // rank self accum live-bytes live-objects bytes objects trace name
        _ => ([number(5)?, number(6)?, number(3)?, number(4)?], words.get(7)?),
    };
    Some(Row { trace: parse_number(trace)?, values })
}

/// Returns the part of a total that is a percentage with two decimals: `20.58%`.
fn parse_share(text: &[u8], total: u64) -> Option<Weight> {
    let percent = Weight::parse(text.strip_suffix(b"%")?)?;
    percent.millionths().checked_mul(total.into()).map(|product| Weight::from_millionths(product / 100))
}

/// Returns the function of `app.Main.work(Main.java:3)`.
fn frame_name(frame: &[u8], options: &Options) -> Vec<u8> {
    let line = [b"at ", frame].concat();
    let Some(function) = java::parse_frame(&line, options) else { return frame.to_vec() };
    let place = memchr::memchr(b'(', frame).map_or(&b""[..], |start| &frame[start + 1..]);
    let place = place.strip_suffix(b")").unwrap_or(place);
    match options.srcline && place.iter().any(u8::is_ascii_digit) {
        true => [function, b":", place].concat(),
        false => function.to_vec(),
    }
}
