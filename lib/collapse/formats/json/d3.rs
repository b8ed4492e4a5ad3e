//! JSON of d3-flame-graph, which many programs write for web pages: a tree with the members `name`, `value` and
//! `children`.
//!
//! ```text
//! {"name":"root","value":3,"children":[{"name":"main","value":3,"children":[{"name":"work","value":2}]}]}
//! ```
//! The weight of a node is its value without those of its children. If the children of any node add up to more, and not by
//! rounding, values are those of the nodes alone, as `perf script flamegraph -f json` writes them, with the members `n`, `v` and `c`. A
//! root named `root`, `all` or `total`, or without a name, is left out.

use super::read_root;
use super::tree::{INVALID, Node, fold_tree};
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::weight_from_millionths;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::collapse::stack::CallTree;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "d3-flame-graph",
    description: "d3-flame-graph JSON (a tree of name, value, children)",
    tested_with: "perf 6.1",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    // The root's value may come after its children, in a part of the document that is not seen yet.
    [LONG, SHORT].iter().any(|keys| keys.are_in(root))
}

/// The names of a node's members.
struct Keys {
    name: &'static [u8],
    value: &'static [u8],
    children: &'static [u8],
}

const LONG: Keys = Keys { name: b"name", value: b"value", children: b"children" };
/// d3-flame-graph accepts these as well; `perf script flamegraph -f json` writes them.
const SHORT: Keys = Keys { name: b"n", value: b"v", children: b"c" };

impl Keys {
    fn of(root: Value<'_>) -> Self {
        if root.get(SHORT.name).is_some() { SHORT } else { LONG }
    }

    /// Returns true for a root that has a name and whose first child is a node.
    fn are_in(&self, root: Value<'_>) -> bool {
        root.get(self.name).is_some() && root.get_items(self.children).next().is_some_and(|node| self.is_node(node))
    }

    fn is_node(&self, node: Value<'_>) -> bool {
        node.get(self.name).and_then(Value::as_string).is_some() && node.get_millionths(self.value).is_some()
    }

    fn parse_node(&self, node: Value<'_>, depth: usize) -> Node {
        let value = self.value(node);
        let name = node.get_string(self.name).into_owned();
        let is_all_of_children = || self.self_value(node) <= value.unwrap_or(0) / FLOAT_ROUNDING;
        let is_hidden = depth == 0 && is_artificial(&name) && is_all_of_children();
        Node { name, value, is_hidden }
    }

    /// Returns the value of a node in trillionths.
    fn value(&self, node: Value<'_>) -> Option<i128> {
        node.get(self.value)?.as_trillionths()
    }

    /// Returns the value of a node without those of its children, in trillionths.
    fn self_value(&self, node: Value<'_>) -> i128 {
        let children = node.get_items(self.children).filter_map(|child| self.value(child));
        children.fold(self.value(node).unwrap_or(0), i128::saturating_sub)
    }
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let keys = &Keys::of(root);
    if !has_inclusive_values(root, keys) {
        return fold_self_values(root, keys, document, sink);
    }
    fold_tree(root, keys.children, |node, depth| keys.parse_node(node, depth), document, sink)
}

/// Returns true for the name of a root that is no function.
fn is_artificial(name: &[u8]) -> bool {
    matches!(name, b"" | b"root" | b"all" | b"total")
}

/// The relative error of a sum of floating-point numbers is below one part of this number.
const FLOAT_ROUNDING: i128 = 1_000_000_000;

/// Returns true if the values of no node's children add up to more than its own, but for rounding.
fn has_inclusive_values(root: Value<'_>, keys: &Keys) -> bool {
    let unit = find_last_place(root, keys);
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop() {
        let first = waiting.len();
        waiting.extend(node.get_items(keys.children));
        let values = waiting.len() - first + 1;
        let rounding =
            unit.map_or(0, |unit| unit * values as i128 / 2 + keys.value(node).unwrap_or(0) / FLOAT_ROUNDING);
        // A negative value tells nothing of what values mean.
        if keys.value(node).is_none_or(|value| value >= 0) && keys.self_value(node) < -rounding {
            return false;
        }
    }
    true
}

/// Returns the value of the last decimal place of the values, in trillionths: values that are printed with two decimals are
/// rounded to hundredths. `None` if all values are whole numbers, as counts are.
fn find_last_place(root: Value<'_>, keys: &Keys) -> Option<i128> {
    let (mut waiting, mut most) = (vec![root], 0);
    while let Some(node) = waiting.pop() {
        most = most.max(node.get(keys.value).map_or(0, Value::count_decimals));
        waiting.extend(node.get_items(keys.children));
    }
    (most > 0).then(|| 10_i128.pow(TRILLIONTH_PLACES.saturating_sub(most)))
}

/// Number of decimal places of trillionths.
const TRILLIONTH_PLACES: u32 = 12;

/// Adds a tree whose values are those of the nodes alone.
fn fold_self_values(root: Value<'_>, keys: &Keys, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut tree, mut waiting, mut too_deep, mut invalid) = (CallTree::default(), vec![(root, 0)], 0, 0);
    while let Some((node, depth)) = waiting.pop() {
        let own = node.get_millionths(keys.value).and_then(weight_from_millionths);
        invalid += u64::from(own.is_none());
        let own = own.unwrap_or_default();
        let name = node.get_string(keys.name);
        let is_hidden = depth == 0 && is_artificial(&name) && own.is_zero();
        let is_entered = is_hidden || tree.enter(depth, &name, own, sink)?;
        too_deep += u64::from(!is_entered);
        if is_entered {
            let first = waiting.len();
            waiting.extend(node.get_items(keys.children).map(|child| (child, depth + usize::from(!is_hidden))));
            waiting[first..].reverse();
        }
    }
    tree.leave(0, sink)?;
    document.report_problems(invalid, "node", INVALID)?;
    document.report_problems(too_deep, "node", "left out: inside too many others")
}
