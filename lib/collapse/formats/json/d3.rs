//! JSON of d3-flame-graph, which many programs write for web pages: a tree with the members `name`, `value` and
//! `children`.
//!
//! ```text
//! {"name":"root","value":3,"children":[{"name":"main","value":3,"children":[{"name":"work","value":2}]}]}
//! ```
//! The weight of a node is its value without those of its children. If the children of any node add up to more, values
//! are those of the nodes alone. A root named `root`, `all` or `total`, or without a name, is left out.

use super::tree::{Node, fold_tree};
use super::value::Value;
use super::{document_matches, read_root};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::weight_from_millionths;
use crate::collapse::format::{Format, FormatReader};
use crate::collapse::sink::Sink;
use crate::collapse::stack::CallTree;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "d3-flame-graph",
    description: "d3-flame-graph JSON (a tree of name, value, children)",
    tried_with: "",
    has_times: false,
    recognizes: |head| document_matches(head, recognizes),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

fn recognizes(root: Value<'_>) -> bool {
    // The root's value may come after its children, in a part of the document that is not seen yet.
    root.get(b"name").is_some() && root.get_items(b"children").next().is_some_and(is_node)
}

fn is_node(node: Value<'_>) -> bool {
    node.get(b"name").and_then(Value::as_string).is_some() && node.get_millionths(b"value").is_some()
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    if !has_inclusive_values(root) {
        return fold_self_values(root, document, sink);
    }
    let parse = |node: Value<'_>, depth| {
        let millionths = node.get_millionths(b"value");
        let name = node.get_string(b"name").into_owned();
        let is_hidden = depth == 0 && is_artificial(&name) && self_value(node) == 0;
        Node { name, weight: millionths.and_then(weight_from_millionths), is_hidden }
    };
    fold_tree(root, b"children", parse, document, sink)
}

/// Returns true for the name of a root that is no function.
fn is_artificial(name: &[u8]) -> bool {
    matches!(name, b"" | b"root" | b"all" | b"total")
}

/// Returns the value of a node without those of its children, in millionths.
fn self_value(node: Value<'_>) -> i128 {
    let children = node.get_items(b"children").filter_map(|child| child.get_millionths(b"value"));
    children.fold(node.get_millionths(b"value").unwrap_or(0), i128::saturating_sub)
}

/// Returns true if the values of no node's children add up to more than its own.
fn has_inclusive_values(root: Value<'_>) -> bool {
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop() {
        if self_value(node) < 0 {
            return false;
        }
        waiting.extend(node.get_items(b"children"));
    }
    true
}

/// Adds a tree whose values are those of the nodes alone.
fn fold_self_values(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut tree, mut waiting, mut too_deep) = (CallTree::default(), vec![(root, 0)], 0);
    while let Some((node, depth)) = waiting.pop() {
        let own = node.get_millionths(b"value").and_then(weight_from_millionths);
        let own = own.unwrap_or_default();
        let name = node.get_string(b"name");
        let is_hidden = depth == 0 && is_artificial(&name) && own.is_zero();
        let is_entered = is_hidden || tree.enter(depth, &name, own, sink)?;
        too_deep += u64::from(!is_entered);
        if is_entered {
            let first = waiting.len();
            waiting.extend(node.get_items(b"children").map(|child| (child, depth + usize::from(!is_hidden))));
            waiting[first..].reverse();
        }
    }
    tree.leave(0, sink)?;
    document.report_problems(too_deep, "node", "left out: inside too many others")
}
