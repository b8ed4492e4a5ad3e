//! Estimates stacks from a call graph.
//!
//! A function's own cost is distributed among its callers in proportion to the cost of their calls; a caller's part is
//! distributed among its own callers, and so on up to a root. A stack never contains a function twice, so cycles end.
//! The stacks whose leaf is a function weigh exactly the function's own cost.
//!
//! A small graph may have more paths than fit in memory. So the heaviest parts are distributed first, and after
//! [`MAX_DISTRIBUTED_FRAMES`] every part goes to a root along a single path, that of the heaviest calls.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::graph::{Callers, Graph};
use crate::Error;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::markers;
use crate::profile::{FrameId, Weight};

/// Maximum number of frames on paths that fork at several callers.
const MAX_DISTRIBUTED_FRAMES: usize = 2_000_000;

/// Maximum number of frames of all stacks together.
const MAX_FRAMES: usize = 8_000_000;

/// Maximum number of frames in a stack.
const MAX_DEPTH: usize = 512;

/// A function on a path from a leaf towards a root.
struct PathNode {
    function: u32,
    /// The node before it on the path, whose function it calls. `None` for the leaf.
    callee: Option<usize>,
    /// Number of functions from the leaf up to this one.
    depth: usize,
}

/// A weight of one, in millionths.
const ONE: u128 = 1_000_000;

/// The state of distributing costs. Costs are in units of `granularity` millionths.
struct Distribution<'a> {
    graph: &'a Graph,
    callers: Vec<Callers>,
    heaviest_callers: Vec<Option<u32>>,
    /// All paths, as trees of nodes whose roots are leaves of stacks.
    nodes: Vec<PathNode>,
    /// The costs that have arrived at nodes and must be distributed, with the node's index.
    queue: BinaryHeap<(u128, Reverse<usize>)>,
    /// For each function the last node whose path contained it.
    last_path: Vec<usize>,
    /// Number of frames on all paths and stacks.
    frames: usize,
    /// A million if all costs are whole numbers, so that their parts are too; else 1.
    granularity: u128,
    truncated: FrameId,
}

/// Adds the stacks of a graph. Together they weigh as much as all functions' own costs.
pub(super) fn add_stacks(graph: &Graph, sink: &mut Sink) -> Result<(), Error> {
    let callers = graph.callers()?;
    let mut distribution = Distribution {
        graph,
        heaviest_callers: graph.heaviest_callers(&callers),
        callers,
        nodes: Vec::new(),
        queue: BinaryHeap::new(),
        last_path: vec![usize::MAX; graph.functions.len()],
        frames: 0,
        granularity: if graph.functions.iter().all(|function| function.own % ONE == 0) { ONE } else { 1 },
        truncated: sink.intern(markers::TRUNCATED),
    };
    for (number, function) in (0..).zip(&graph.functions).filter(|(_, function)| function.own > 0) {
        distribution.push_node(number, None, function.own / distribution.granularity);
    }
    while let Some((cost, Reverse(node))) = distribution.queue.pop() {
        distribution.distribute(node, cost, sink)?;
    }
    Ok(())
}

impl Distribution<'_> {
    /// Adds a node to a path, and queues its cost.
    fn push_node(&mut self, function: u32, callee: Option<usize>, cost: u128) {
        let depth = callee.map_or(0, |callee| self.nodes[callee].depth) + 1;
        self.frames += depth;
        self.queue.push((cost, Reverse(self.nodes.len())));
        self.nodes.push(PathNode { function, callee, depth });
    }

    /// Distributes the cost that has arrived at a node among those callers of its function that are not on its path.
    fn distribute(&mut self, node: usize, mut cost: u128, sink: &mut Sink) -> Result<(), Error> {
        let path = path_to(&self.nodes, node);
        path.iter().for_each(|function| self.last_path[*function as usize] = node);
        let PathNode { function, depth, .. } = self.nodes[node];
        let callers = &self.callers[function as usize];
        self.frames += callers.len();
        let on_path = &self.last_path;
        let callers: Callers = callers
            .iter()
            .filter(|(caller, _)| caller.is_none_or(|caller| on_path[caller as usize] != node))
            .copied()
            .collect();
        let mut incoming: u128 = callers.iter().map(|(_, cost)| cost).sum();
        if incoming == 0 || cost == 1 || depth >= MAX_DEPTH || self.frames > MAX_DISTRIBUTED_FRAMES {
            return self.add_along_heaviest_callers(path, cost, sink);
        }
        for (caller, call_cost) in callers {
            let part = scale(cost, call_cost, incoming);
            (cost, incoming) = (cost - part, incoming - call_cost);
            match caller {
                _ if part == 0 => {}
                None => self.add(&path, part, sink)?,
                Some(caller) => self.push_node(caller, Some(node), part),
            }
        }
        Ok(())
    }

    /// Adds a stack, whose functions are leaf first.
    fn add(&mut self, path: &[u32], cost: u128, sink: &mut Sink) -> Result<(), Error> {
        let mut stack = Stack::default();
        path.iter().for_each(|function| stack.extend(&[self.graph.functions[*function as usize].name]));
        if path.len() >= MAX_DEPTH || self.frames > MAX_FRAMES {
            stack.extend(&[self.truncated]);
        }
        self.frames += path.len();
        stack.add_leaf_first(Weight::from_millionths(cost * self.granularity), sink)
    }

    /// Adds a stack after following the heaviest callers from it up to a root. Cycles are cut out.
    fn add_along_heaviest_callers(&mut self, mut path: Vec<u32>, cost: u128, sink: &mut Sink) -> Result<(), Error> {
        while path.len() < MAX_DEPTH && self.frames <= MAX_FRAMES {
            let Some(caller) = path.last().and_then(|last| self.heaviest_callers[*last as usize]) else { break };
            match path.iter().position(|function| *function == caller) {
                Some(index) => path.truncate(index + 1),
                None => path.push(caller),
            }
        }
        self.add(&path, cost, sink)
    }
}

/// Returns the functions from a leaf up to a node, leaf first.
fn path_to(nodes: &[PathNode], node: usize) -> Vec<u32> {
    let towards_leaf = std::iter::successors(Some(node), |node| nodes[*node].callee);
    let mut path: Vec<u32> = towards_leaf.map(|node| nodes[node].function).collect();
    path.reverse();
    path
}

/// Returns `amount * part / whole`, rounded, and at most `amount`.
fn scale(amount: u128, part: u128, whole: u128) -> u128 {
    match amount.checked_mul(part).and_then(|product| product.checked_add(whole / 2)) {
        Some(product) => product / whole,
        // The product overflows: divide first, which is less exact.
        None if part == whole => amount,
        None => (amount / whole * part).min(amount),
    }
}
