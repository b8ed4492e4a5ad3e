//! `massif` of valgrind: trees of the heap at several moments. The callers of an allocation are below it.
//!
//! ```text
//! snapshot=3
//! mem_heap_B=3000
//! heap_tree=peak
//! n2: 3000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
//!  n0: 2000 0x109177: load (a.c:5)
//!  n0: 1000 0x1091AB: cache (a.c:6)
//! ```
//! The weight is the bytes at the peak, unless `--event end` asks for the last moment that has a tree. Addresses are left
//! out; so are files and lines, unless `--srcline` asks for them. Allocations below massif's threshold are
//! `[below threshold]`. The number after `n` counts the nodes one level below. It tells the depth of the nodes, unless some are
//! missing: then their indentation does.
//!
//! A tree of all allocations (`valgrind --xtree-memory-file=X.ms`) has the same syntax, but its snapshots are values, which
//! the roots name: `n4: 100 curB : currently allocated Bytes`. `--event` selects one, by default the first.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, function_name, indentation, is_address, parse_number, split_once};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::CallTree;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "massif",
    description: "massif (valgrind)",
    tested_with: "valgrind 3.19",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| {
        first_lines(head).take(3).any(|line| line.starts_with(UNIT)) && first_lines(head).any(is_snapshot)
    }),
    reader: FormatReader::Lines(read),
};

/// The third line.
const UNIT: &[u8] = b"time_unit: ";

/// Returns true if a text begins with the three lines that begin a document.
pub(super) fn begins(text: &[u8]) -> bool {
    text.starts_with(b"desc: ") && {
        let mut lines = text.split(|byte| *byte == b'\n').skip(1);
        lines.next().is_some_and(|line| line.starts_with(b"cmd: "))
            && lines.next().is_some_and(|line| line.starts_with(UNIT))
    }
}

/// The first line of a tree of all allocations.
const TREE_DESCRIPTION: &[u8] = b"desc: xtree.";

fn is_snapshot(line: &[u8]) -> bool {
    line.strip_prefix(b"snapshot=").is_some_and(|number| parse_number(number).is_some())
}

/// A node of a tree.
struct Node {
    /// Number of nodes one level below it.
    callers: u64,
    depth: usize,
    bytes: u64,
    name: Vec<u8>,
}

/// Parses `  n1: 2000 0x109177: load (a.c:5)`.
fn parse_node(line: &[u8], options: &Options) -> Option<Node> {
    let (callers, rest) = split_once(line.trim_ascii_start(), ": ")?;
    let callers = parse_number(callers.strip_prefix(b"n")?)?;
    let (bytes, rest) = split_once(rest, " ")?;
    Some(Node { callers, depth: indentation(line), bytes: parse_number(bytes)?, name: node_name(rest, options) })
}

fn node_name(text: &[u8], options: &Options) -> Vec<u8> {
    if text.starts_with(b"in ") && text.contains_str("below massif's threshold") {
        return b"[below threshold]".to_vec();
    }
    let Some((_, named)) = split_once(text, ": ").filter(|(address, _)| is_address(address)) else {
        // The root: `(heap allocation functions) malloc/new/new[], --alloc-fns, etc.`
        return b"(heap allocation functions)".to_vec();
    };
    match named.strip_suffix(b")").and_then(|inner| inner.rsplit_once_str(" (")) {
        Some((name, place)) if options.srcline && !place.starts_with(b"in ") => {
            [&function_name(name, options), &b":"[..], place].concat()
        }
        Some((name, _)) => function_name(name, options).into_owned(),
        None => function_name(named, options).into_owned(),
    }
}

/// Returns true for `mem_heap_B=4096`, `cmd: ./app`, and a blank line.
fn is_value(line: &[u8]) -> bool {
    let key = line.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'_').count();
    line.trim_ascii().is_empty() || key > 0 && matches!(line.get(key), Some(b'=' | b':'))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    if document.head()?.starts_with(TREE_DESCRIPTION) {
        return read_values(document, sink);
    }
    let wants_end = document.select_value(&["peak", "end"], 0)? == 1;
    document.set_unit_silently("bytes");
    let (mut line, mut nodes, mut tree, mut is_peak) = (Vec::new(), Vec::new(), Vec::new(), false);
    // Number of nodes that the last snapshot still needs, once its last value was read.
    let mut missing = Some(0);
    while document.read_line(&mut line)? {
        if let Some(kind) = line.strip_prefix(b"heap_tree=") {
            missing = Some(u64::from(kind != b"empty"));
            is_peak = kind == b"peak";
            if kind != b"empty" {
                tree.clear();
            }
        } else if let Some(node) = parse_node(&line, document.options) {
            missing = missing.map(|missing| missing.saturating_sub(1).saturating_add(node.callers));
            tree.push(node);
        } else if line.starts_with(b"#-") || is_snapshot(&line) {
            missing = None;
            if is_peak && !wants_end {
                nodes = std::mem::take(&mut tree);
                is_peak = false;
            }
        } else if !is_value(&line) {
            document.report_malformed("expected a node of a tree, or KEY=VALUE")?;
        }
    }
    if is_peak || wants_end || nodes.is_empty() {
        nodes = tree;
    }
    add_tree(nodes, document, sink)?;
    document.check_end(missing == Some(0), "its last snapshot does")
}

/// A value of a tree of all allocations: its name, and the nodes below the root.
struct Value {
    name: String,
    /// The value of the root.
    total: u64,
    nodes: Vec<Node>,
}

/// Returns the name in the root of a value: `n4: 100 curB : currently allocated Bytes`.
fn value_name(root: &[u8]) -> Option<String> {
    let (_, text) = split_once(root, ": ")?;
    let (name, _) = split_once(split_once(text, " ")?.1, " : ")?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Reads a tree of all allocations, whose snapshots are values.
fn read_values(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut values, mut missing) = (Vec::new(), Vec::<Value>::new(), 0u64);
    while document.read_line(&mut line)? {
        let node = parse_node(&line, document.options);
        let name = node.as_ref().filter(|node| node.depth == 0).and_then(|_| value_name(&line));
        match (node, name, values.last_mut()) {
            (Some(root), Some(name), _) => {
                missing = root.callers;
                values.push(Value { name, total: root.bytes, nodes: Vec::new() });
            }
            (Some(node), None, Some(value)) if node.depth > 0 || missing > 0 => {
                missing = missing.saturating_sub(1).saturating_add(node.callers);
                value.nodes.push(Node { depth: node.depth.saturating_sub(1), ..node });
            }
            (None, ..) if line.starts_with(b"#-") || is_value(&line) => {}
            _ => document.report_malformed("expected a node of a tree, or KEY=VALUE")?,
        }
    }
    let names: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
    let index = document.select_value(&names, 0)?;
    if let Some(value) = values.get(index) {
        let with_weight = values.iter().filter(|value| value.total > 0).map(|value| value.name.as_str());
        document.set_values_with_weight(&value.name, &with_weight.collect::<Vec<&str>>());
        document.set_unit_silently(&value.name);
    }
    let has_values = !values.is_empty();
    let value = values.into_iter().nth(index);
    value.map_or(Ok(()), |value| add_tree(value.nodes, document, sink))?;
    document.check_end(missing == 0 && has_values, "its last snapshot does")
}

/// Replaces the depths of nodes, which their indentation tells, by those that their numbers of callers tell, unless nodes are
/// missing: lines that were copied may have lost blanks.
fn set_depths_by_callers(nodes: &mut [Node]) {
    // The numbers of nodes that are still to come at each depth.
    let (mut open, mut depths) = (Vec::<u64>::new(), Vec::with_capacity(nodes.len()));
    for node in &*nodes {
        while open.pop_if(|missing| *missing == 0).is_some() {}
        open.last_mut().into_iter().for_each(|missing| *missing -= 1);
        depths.push(open.len());
        open.push(node.callers);
    }
    if open.iter().all(|missing| *missing == 0) {
        nodes.iter_mut().zip(depths).for_each(|(node, depth)| node.depth = depth);
    }
}

/// Adds trees. Their roots, the functions that allocate, are leaves of stacks.
fn add_tree(mut nodes: Vec<Node>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut tree, mut left_out) = (CallTree::new_inverted(), 0);
    set_depths_by_callers(&mut nodes);
    let has_lost_indentation =
        |node: &Node| node.callers > 0 && nodes.len() > 1 && nodes.iter().all(|node| node.depth == 0);
    if nodes.first().is_some_and(has_lost_indentation) {
        return Err(document.indentation_lost());
    }
    for node in &nodes {
        let weight = Weight::new(node.bytes);
        left_out += u64::from(!tree.enter_inclusive(node.depth, &node.name, weight, sink)?);
    }
    tree.leave(0, sink)?;
    document.report_problems(left_out, "node", "left out: larger than its parent, or too deep")
}
