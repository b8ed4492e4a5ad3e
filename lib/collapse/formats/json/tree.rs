//! Call trees whose nodes have an inclusive value and a list of callees.
//!
//! Values are rounded, so that those of callees may add up to a little more or less than that of their caller. Each node has a
//! part of the root's value, one callee after the other, as a picture would have it: the weights then add up to the value of
//! the root.

use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::weight_from_millionths;
use crate::collapse::sink::Sink;
use crate::collapse::stack::CallTree;

/// A node as a format reads it.
pub(super) struct Node {
    /// The frame's name.
    pub(super) name: Vec<u8>,
    /// The inclusive value in trillionths of the unit, or `None` if it is missing or invalid.
    pub(super) value: Option<i128>,
    /// True for a node that is no frame: its callees take its place.
    pub(super) is_hidden: bool,
}

/// Number of trillionths in a millionth.
const PER_MILLIONTH: i128 = 1_000_000;

/// Values differ by rounding if they do by this part or less: floating-point numbers have 15 digits, and sums of many of them
/// fewer.
const ROUNDING: i128 = 1_000_000_000;

/// A node that was not visited yet.
struct Waiting<'t> {
    value: Value<'t>,
    depth: usize,
    /// The part of the root's value that it has, in trillionths.
    start: i128,
    end: i128,
}

/// Adds a tree, whose nodes have their callees under `key`.
pub(super) fn fold_tree<'t>(
    root: Value<'t>,
    key: &[u8],
    parse: impl Fn(Value<'t>, usize) -> Node,
    document: &mut Document<'_>,
    sink: &mut Sink,
) -> Result<(), Error> {
    let Some(total) = parse(root, 0).value.filter(|total| *total >= 0) else {
        return document.report_problems(1, "node", INVALID);
    };
    let (mut tree, mut waiting) = (CallTree::default(), vec![Waiting { value: root, depth: 0, start: 0, end: total }]);
    let (mut invalid, mut too_deep, mut too_small) = (0, 0, 0);
    while let Some(Waiting { value, depth, start, end }) = waiting.pop() {
        let node = parse(value, depth);
        let below = if node.is_hidden { depth } else { depth + 1 };
        let first = waiting.len();
        let mut next = start;
        for callee in value.get_items(key) {
            let Some(length) = parse(callee, below).value.filter(|length| *length >= 0) else {
                invalid += 1;
                continue;
            };
            let start = next;
            next = next.saturating_add(length).min(end);
            waiting.push(Waiting { value: callee, depth: below, start, end: next });
        }
        if end - next <= (end - start) / ROUNDING
            && let Some(last) = waiting[first..].last_mut()
        {
            (last.end, next) = (end, end);
        }
        waiting[first..].reverse();
        if node.is_hidden {
            continue;
        }
        let own = round(end) - round(next);
        too_small += u64::from(own == 0 && end > next);
        if !tree.enter(depth, &node.name, weight_from_millionths(own).unwrap_or_default(), sink)? {
            too_deep += 1;
            waiting.truncate(first);
        }
    }
    tree.leave(0, sink)?;
    document.report_problems(invalid, "node", INVALID)?;
    document.report_problems(too_small, "weight", "below 0.0000005 left out, or added to another one")?;
    document.report_problems(too_deep, "node", "left out: inside too many others")
}

pub(super) const INVALID: &str = "left out: its weight is missing or invalid";

/// Returns the millionths of a number of trillionths.
fn round(trillionths: i128) -> i128 {
    trillionths.saturating_add(PER_MILLIONTH / 2) / PER_MILLIONTH
}
