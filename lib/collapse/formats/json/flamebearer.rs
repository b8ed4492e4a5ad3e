//! JSON of Pyroscope and Grafana (`flamebearer`): a flame graph as levels of bars.
//!
//! ```text
//! {"flamebearer":{"names":["total","main","work"],"levels":[[0,3,0,0],[0,3,1,1],[0,2,2,2]],"numTicks":3,"maxSelf":2},
//!  "metadata":{"format":"single","spyName":"","sampleRate":100,"units":"samples","name":"cpu"},"version":1}
//! ```
//! Each bar is four numbers: its distance to the end of the bar before it in the level, its width, its self weight and
//! its name. A comparison (`"format":"double"`) has seven: distance, width and self weight before and after, and the
//! name; it becomes a differential profile. The root, `total`, is left out. What Pyroscope answers to a query of its
//! interface is read as well: `{"flamegraph":{"names":["total"],"levels":[{"values":["0","3","0","0"]}]}}`.

use super::read_root;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::collapse::stack::{MAX_SHARED_DEPTH, intern_frame};
use crate::profile::{FrameId, Weight, Weights};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "flamebearer",
    description: "Pyroscope's flame graphs as JSON (flamebearer)",
    tested_with: "Pyroscope (published files)",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    find_bars(root).is_some_and(|bars| bars.get(b"names").is_some() || bars.get(b"levels").is_some())
}

/// Returns the object with the names and the levels.
fn find_bars(root: Value<'_>) -> Option<Value<'_>> {
    root.get(b"flamebearer").or_else(|| root.get(b"flamegraph"))
}

/// A bar: where it begins and ends before and after, and its stack.
struct Bar {
    start: [u64; 2],
    end: [u64; 2],
    /// The index of its caller in the level above, and its frame.
    caller: usize,
    frame: FrameId,
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let Some(bearer) = find_bars(root) else { return Ok(()) };
    let metadata = root.get(b"metadata");
    let is_comparison = metadata.is_some_and(|metadata| &metadata.get_string(b"format")[..] == b"double");
    if is_comparison && !sink.is_differential() {
        if !sink.frames().is_empty() {
            return Err(document.unreadable("a comparison, which cannot be added to other input"));
        }
        sink.make_differential();
    }
    let unit = metadata.map(|metadata| metadata.get_string(b"units")).unwrap_or_default();
    if !unit.is_empty() {
        document.set_unit(&String::from_utf8_lossy(&unit));
    }
    let names: Vec<FrameId> = bearer.get_items(b"names").map(|name| name_frame(name, sink)).collect();
    let (mut levels, mut invalid): (Vec<Vec<Bar>>, u64) = (Vec::new(), 0);
    for level in bearer.get_items(b"levels").take(MAX_SHARED_DEPTH) {
        let bars = read_level(level, is_comparison, &names, &levels, &mut invalid, sink)?;
        levels.push(bars);
    }
    document.report_problems(invalid, "bar", "left out: its numbers are invalid, or it is inside no other")
}

fn name_frame(name: Value<'_>, sink: &mut Sink) -> FrameId {
    intern_frame(&name.as_string().unwrap_or_default(), sink)
}

/// Reads a level and adds the stacks of its bars.
fn read_level(
    level: Value<'_>,
    is_comparison: bool,
    names: &[FrameId],
    above: &[Vec<Bar>],
    invalid: &mut u64,
    sink: &mut Sink,
) -> Result<Vec<Bar>, Error> {
    let (size, sides) = if is_comparison { (7, 2) } else { (4, 1) };
    let numbers: Vec<Option<u64>> = level.get(b"values").unwrap_or(level).items().map(parse_number).collect();
    let (mut bars, mut position): (Vec<Bar>, [u64; 2]) = (Vec::new(), [0; 2]);
    for numbers in numbers.chunks(size) {
        let Some(numbers) = numbers.iter().copied().collect::<Option<Vec<u64>>>().filter(|all| all.len() == size)
        else {
            *invalid += 1;
            continue;
        };
        let (mut start, mut end, mut own) = (position, position, [0; 2]);
        for side in 0..sides {
            start[side] = position[side].saturating_add(numbers[3 * side]);
            end[side] = start[side].saturating_add(numbers[3 * side + 1]);
            own[side] = numbers[3 * side + 2];
        }
        position = end;
        let name = usize::try_from(numbers[size - 1]).ok().and_then(|index| names.get(index)).copied();
        let frame = name.unwrap_or_else(|| sink.missing_frame());
        let Some(caller) = find_caller(above.last(), start, end) else {
            *invalid += 1;
            continue;
        };
        bars.push(Bar { start, end, caller, frame });
        let weights = match is_comparison {
            true => Weights { before: Weight::new(own[0]), after: Weight::new(own[1]) },
            false => Weights::plain(Weight::new(own[0])),
        };
        add_stack(&bars, above, weights, sink)?;
    }
    Ok(bars)
}

/// Parses a number, or a string that contains one.
fn parse_number(number: Value<'_>) -> Option<u64> {
    u64::try_from(number.as_integer()?).ok()
}

/// Returns the index of the bar of the level above that contains a bar: 0 in the first level.
fn find_caller(level: Option<&Vec<Bar>>, start: [u64; 2], end: [u64; 2]) -> Option<usize> {
    let Some(level) = level else { return Some(0) };
    let index = level.partition_point(|bar| bar.start.iter().zip(start).all(|(bar, start)| *bar <= start));
    level[..index].iter().rposition(|bar| bar.end.iter().zip(end).all(|(bar, end)| *bar >= end))
}

/// Adds the stack of the last bar of a level.
fn add_stack(bars: &[Bar], above: &[Vec<Bar>], weights: Weights, sink: &mut Sink) -> Result<(), Error> {
    if weights.before.is_zero() && weights.after.is_zero() {
        return Ok(());
    }
    let Some(mut bar) = bars.last() else { return Ok(()) };
    let mut stack = Vec::new();
    for level in above.iter().rev() {
        stack.push(bar.frame);
        let Some(caller) = level.get(bar.caller) else { break };
        bar = caller;
    }
    // The root is all bars together.
    if stack.is_empty() {
        stack.push(bar.frame);
    }
    stack.reverse();
    sink.add(&stack, weights)
}
