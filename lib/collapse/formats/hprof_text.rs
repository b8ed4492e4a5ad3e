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
//! The weight is the samples (`cpu=samples`), else the milliseconds (`cpu=times`), else the bytes that were allocated
//! (`heap=sites`); `--event samples`, `times` or `bytes` asks for one. Stacks are leaf first. Files and lines are left out
//! unless `--srcline` asks for them.

use rustc_hash::FxHashMap;

use super::java;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader};
use crate::collapse::line_helpers::{first_lines, parse_number, split_once, split_words};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{Stack, intern_frame};
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "hprof-text",
    description: "HPROF text (JDK 8 and older)",
    tried_with: "",
    has_times: false,
    recognizes: |head| {
        first_lines(head).next().is_some_and(|line| line.starts_with(b"JAVA PROFILE 1.0") && line.contains(&b','))
            || first_lines(head).any(|line| parse_trace(line).is_some())
                && first_lines(head).any(|line| line.starts_with(b"\t") && line.ends_with(b")"))
    },
    reader: FormatReader::Lines(read),
};

/// The names of the values, and the beginnings of their tables.
const TABLES: [(&str, &[u8]); 3] =
    [("samples", b"CPU SAMPLES BEGIN"), ("times", b"CPU TIME (ms) BEGIN"), ("bytes", b"SITES BEGIN")];

/// Returns the number of `TRACE 300027: (thread=200001)`.
fn parse_trace(line: &[u8]) -> Option<u64> {
    let (number, _) = split_once(line.strip_prefix(b"TRACE ")?, ":")?;
    parse_number(number)
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut traces, mut open) = (Vec::new(), FxHashMap::<u64, Vec<FrameId>>::default(), None);
    let (mut tables, mut table): ([Vec<(u64, u64)>; 3], Option<usize>) = (Default::default(), None);
    while document.read_line(&mut line)? {
        if let Some(trace) = parse_trace(&line) {
            open = Some(trace);
            traces.insert(trace, Vec::new());
        } else if let (Some(frame), Some(trace)) = (line.strip_prefix(b"\t"), open) {
            let frame = intern_frame(&frame_name(frame, document.options), sink);
            traces.entry(trace).or_default().push(frame);
        } else if let Some(index) = TABLES.iter().position(|(_, begin)| line.starts_with(begin)) {
            (table, open) = (Some(index), None);
            // Another dump follows, whose values include those before.
            tables[index].clear();
        } else if line.ends_with(b" END") {
            table = None;
        } else if let (Some(index), Some(entry)) = (table, table.and_then(|index| parse_entry(&line, index))) {
            tables[index].push(entry);
        } else {
            open = None;
        }
    }
    let used: Vec<usize> = (0..TABLES.len()).filter(|index| !tables[*index].is_empty()).collect();
    if used.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = used.iter().map(|index| TABLES[*index].0).collect();
    let chosen = used[document.select_value(&names, 0)?];
    document.set_unit_silently(["samples", "milliseconds", "bytes"][chosen]);
    let (mut stack, mut unknown) = (Stack::default(), 0);
    for (trace, value) in &tables[chosen] {
        match traces.get(trace).filter(|frames| !frames.is_empty()) {
            Some(frames) => stack.extend(frames),
            None => {
                unknown += 1;
                stack.push(b"", sink);
            }
        }
        stack.add_leaf_first(Weight::new(*value), sink)?;
    }
    document.report_problems(unknown, "entry", "without a stack: its trace is missing or empty")
}

/// Returns the trace and the value of a row.
fn parse_entry(line: &[u8], table: usize) -> Option<(u64, u64)> {
    let words: Vec<&[u8]> = split_words(line).collect();
    parse_number(words.first()?)?;
    let (value, trace) = match table {
        // rank self accum count trace method
        0 | 1 => (words.get(3)?, words.get(4)?),
        // rank self accum live-bytes live-objects bytes objects trace name
        _ => (words.get(5)?, words.get(7)?),
    };
    Some((parse_number(trace)?, parse_number(value)?))
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
