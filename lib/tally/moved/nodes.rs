//! The stacks of a comparison as a tree: what each function calls, and where it is called.

use std::ops::Range;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::profile::{FrameId, Weights};
use crate::tally::Row;

/// Nodes with all that is below them, in ascending order. No two contain the same node.
pub(super) type Ranges = Vec<Range<u32>>;

/// Weights of both sides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sides {
    pub(super) before: f64,
    pub(super) after: f64,
}

impl Sides {
    pub(super) fn new(weights: Weights) -> Self {
        Self { before: weights.before.as_f64(), after: weights.after.as_f64() }
    }

    fn add(&mut self, other: Self) {
        self.before += other.before;
        self.after += other.after;
    }
}

/// The call tree of some stacks: callers come before their callees.
pub(super) struct Nodes {
    nodes: Vec<Node>,
    by_frame: HashMap<FrameId, Vec<u32>, FxBuildHasher>,
    /// The nodes at which stacks end, with the indices of these.
    leaves: Vec<(u32, usize)>,
}

struct Node {
    frame: FrameId,
    /// Index of the first node that is not below this one.
    end: u32,
    /// Weight of all stacks that contain the node.
    weights: Sides,
}

impl Nodes {
    /// Returns the tree of these stacks, each with one weight.
    pub(super) fn new(stacks: &[Row]) -> Self {
        let mut order: Vec<usize> = (0..stacks.len()).collect();
        order.sort_unstable_by(|a, b| stacks[*a].frames.cmp(&stacks[*b].frames));
        let (mut nodes, mut path, mut leaves) = (Vec::<Node>::new(), Vec::<u32>::new(), Vec::new());
        let mut by_frame = HashMap::<FrameId, Vec<u32>, FxBuildHasher>::default();
        for stack in order {
            let Row { frames, weights } = &stacks[stack];
            let is_shared = |(node, frame): &(&u32, &FrameId)| nodes[**node as usize].frame == **frame;
            let shared = path.iter().zip(frames).take_while(is_shared).count();
            close(&mut nodes, &mut path, shared);
            for frame in &frames[shared..] {
                let node = nodes.len() as u32;
                path.push(node);
                by_frame.entry(*frame).or_default().push(node);
                nodes.push(Node { frame: *frame, end: node, weights: Sides::default() });
            }
            if let Some(leaf) = path.last() {
                leaves.push((*leaf, stack));
                nodes[*leaf as usize].weights.add(Sides::new(weights[0]));
            }
        }
        close(&mut nodes, &mut path, 0);
        Self { nodes, by_frame, leaves }
    }

    /// Returns all nodes of some functions, in ascending order.
    fn of_functions(&self, functions: &[FrameId]) -> Vec<u32> {
        let nodes = functions.iter().filter_map(|function| self.by_frame.get(function));
        let mut nodes: Vec<u32> = nodes.flatten().copied().collect();
        nodes.sort_unstable();
        nodes
    }

    /// Returns those of some nodes that are not below others of them.
    fn outermost_of(&self, nodes: &[u32]) -> Ranges {
        let mut ranges = Ranges::new();
        for node in nodes {
            if ranges.last().is_none_or(|last| last.end <= *node) {
                ranges.push(*node..self.nodes[*node as usize].end);
            }
        }
        ranges
    }

    /// Returns the outermost nodes of some functions.
    pub(super) fn outermost(&self, functions: &[FrameId]) -> Ranges {
        self.outermost_of(&self.of_functions(functions))
    }

    /// Returns the weight of each function below these nodes, and not in them.
    pub(super) fn weights_below(&self, ranges: &Ranges) -> HashMap<FrameId, Sides, FxBuildHasher> {
        // With the end of the last node that was added: a function counts once in a stack.
        let mut sums = HashMap::<FrameId, (Sides, u32), FxBuildHasher>::default();
        for index in ranges.iter().flat_map(|range| range.start + 1..range.end) {
            let node = &self.nodes[index as usize];
            let (sum, end) = sums.entry(node.frame).or_default();
            if index >= *end {
                sum.add(node.weights);
                *end = node.end;
            }
        }
        sums.into_iter().map(|(frame, (sum, _))| (frame, sum)).collect()
    }

    /// Returns the weight of each of some functions where it is the outermost of them below these nodes.
    pub(super) fn outermost_below(&self, ranges: &Ranges, contains: impl Fn(FrameId) -> bool) -> Vec<(FrameId, Sides)> {
        let mut sums = HashMap::<FrameId, Sides, FxBuildHasher>::default();
        for range in ranges {
            let mut index = range.start + 1;
            while index < range.end {
                let node = &self.nodes[index as usize];
                let is_found = contains(node.frame);
                if is_found {
                    sums.entry(node.frame).or_default().add(node.weights);
                }
                index = if is_found { node.end } else { index + 1 };
            }
        }
        sums.into_iter().collect()
    }

    /// Calls `each` for the stacks of these nodes that have none of some functions from the node on.
    pub(super) fn for_each_stack(&self, ranges: &Ranges, without: &[FrameId], mut each: impl FnMut(usize)) {
        let without = self.of_functions(without);
        for range in ranges {
            let [first, end] = [range.start, range.end].map(|at| without.partition_point(|node| *node < at));
            let excluded = self.outermost_of(&without[first..end]);
            let [first, end] = [range.start, range.end].map(|at| self.leaves.partition_point(|(node, _)| *node < at));
            for (node, stack) in &self.leaves[first..end] {
                if !contains(&excluded, *node) {
                    each(*stack);
                }
            }
        }
    }
}

/// Ends the nodes of a path from a depth on, and adds their weights to their callers.
fn close(nodes: &mut [Node], path: &mut Vec<u32>, depth: usize) {
    let end = nodes.len() as u32;
    while path.len() > depth {
        let Some(last) = path.pop() else { break };
        let weights = nodes[last as usize].weights;
        nodes[last as usize].end = end;
        if let Some(caller) = path.last() {
            nodes[*caller as usize].weights.add(weights);
        }
    }
}

/// True if one of the ranges contains a node.
fn contains(ranges: &Ranges, node: u32) -> bool {
    let before = ranges.partition_point(|range| range.start <= node);
    before.checked_sub(1).is_some_and(|last| node < ranges[last].end)
}

/// Returns those of some nodes that are not below others.
pub(super) fn without_nested(ranges: Ranges, others: &Ranges) -> Ranges {
    ranges.into_iter().filter(|range| !contains(others, range.start)).collect()
}
