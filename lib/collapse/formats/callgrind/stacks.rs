//! The stacks of a graph of calls: what a function costs itself is shared out among those that call it, in proportion to
//! what their calls cost; what a caller got so among its own callers, and so on up to a root. Whatever the graph's cycles,
//! each function so has as leaf just what it costs itself.
//!
//! The heaviest stacks are followed first, and only so many: a small graph may have more paths than any memory holds. The
//! rest goes to its root on one way, that of the heaviest calls.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::graph::{Callers, Graph};
use crate::Error;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::markers;
use crate::profile::{FrameId, Weight};

/// So many frames are shared out among several callers, and so many all stacks together have.
const SHARED: usize = 2_000_000;
const MOST: usize = 8_000_000;

/// So many frames a stack may have.
const DEEPEST: usize = 512;

/// A function on a path from a leaf, and the one that it calls there.
struct Step {
    function: u32,
    callee: Option<usize>,
    depth: usize,
}

/// A weight of one, in millionths.
const ONE: u128 = 1_000_000;

/// What was made of a graph so far, and what is to be shared out yet: so much, at that step.
struct Walk<'a> {
    graph: &'a Graph,
    callers: Vec<Callers>,
    ways: Vec<Option<u32>>,
    steps: Vec<Step>,
    heaviest: BinaryHeap<(u128, Reverse<usize>)>,
    /// Of each function the last step to whose path it belonged.
    on_path_of: Vec<usize>,
    frames: usize,
    /// Whole costs are shared out whole.
    grain: u128,
    truncated: FrameId,
}

/// Adds the stacks, which weigh together what the functions themselves cost.
pub(super) fn add_to(graph: &Graph, sink: &mut Sink) -> Result<(), Error> {
    let callers = graph.callers()?;
    let mut walk = Walk {
        graph,
        ways: graph.ways(&callers),
        callers,
        steps: Vec::new(),
        heaviest: BinaryHeap::new(),
        on_path_of: vec![usize::MAX; graph.functions.len()],
        frames: 0,
        grain: if graph.functions.iter().all(|function| function.own % ONE == 0) { ONE } else { 1 },
        truncated: sink.intern(markers::TRUNCATED),
    };
    for (function, cost) in (0..).zip(graph.functions.iter().map(|function| function.own)).filter(|(_, own)| *own > 0) {
        walk.step(function, None, cost / walk.grain);
    }
    while let Some((rest, Reverse(at))) = walk.heaviest.pop() {
        walk.share(at, rest, sink)?;
    }
    Ok(())
}

impl Walk<'_> {
    fn step(&mut self, function: u32, callee: Option<usize>, share: u128) {
        let depth = callee.map_or(0, |callee| self.steps[callee].depth) + 1;
        self.frames += depth;
        self.heaviest.push((share, Reverse(self.steps.len())));
        self.steps.push(Step { function, callee, depth });
    }

    /// Shares what has come to a step out among the callers there that are not on the path to it.
    fn share(&mut self, at: usize, mut rest: u128, sink: &mut Sink) -> Result<(), Error> {
        let path = path(&self.steps, at);
        path.iter().for_each(|function| self.on_path_of[*function as usize] = at);
        let Step { function, depth, .. } = self.steps[at];
        let callers = &self.callers[function as usize];
        self.frames += callers.len();
        let on_path = |caller: u32| self.on_path_of[caller as usize] == at;
        let callers: Callers = callers.iter().filter(|(caller, _)| !caller.is_some_and(on_path)).copied().collect();
        let mut left: u128 = callers.iter().map(|(_, cost)| cost).sum();
        if left == 0 || rest == 1 || depth >= DEEPEST || self.frames > SHARED {
            return self.add_on_one_way(path, rest, sink);
        }
        for (caller, cost) in callers {
            let part = portion(rest, cost, left);
            (rest, left) = (rest - part, left - cost);
            match caller {
                _ if part == 0 => {}
                None => self.add(&path, part, sink)?,
                Some(caller) => self.step(caller, Some(at), part),
            }
        }
        Ok(())
    }

    /// Adds a stack, whose functions are leaf first.
    fn add(&mut self, path: &[u32], share: u128, sink: &mut Sink) -> Result<(), Error> {
        let mut stack = Stack::default();
        path.iter().for_each(|function| stack.extend(&[self.graph.functions[*function as usize].name]));
        if path.len() >= DEEPEST || self.frames > MOST {
            stack.extend(&[self.truncated]);
        }
        self.frames += path.len();
        stack.add_leaf_first(Weight::from_millionths(share * self.grain), sink)
    }

    /// Adds a stack from which one way leads on to the root; what it leads around in a circle is left out.
    fn add_on_one_way(&mut self, mut path: Vec<u32>, share: u128, sink: &mut Sink) -> Result<(), Error> {
        while path.len() < DEEPEST && self.frames <= MOST {
            let Some(caller) = path.last().and_then(|last| self.ways[*last as usize]) else { break };
            match path.iter().position(|function| *function == caller) {
                Some(place) => path.truncate(place + 1),
                None => path.push(caller),
            }
        }
        self.add(&path, share, sink)
    }
}

/// The functions from a leaf up to a step, leaf first.
fn path(steps: &[Step], at: usize) -> Vec<u32> {
    let up = std::iter::successors(Some(at), |at| steps[*at].callee);
    let mut path: Vec<u32> = up.map(|at| steps[at].function).collect();
    path.reverse();
    path
}

/// `amount` times `part` by `whole`, rounded, at most `amount`.
fn portion(amount: u128, part: u128, whole: u128) -> u128 {
    match amount.checked_mul(part).and_then(|product| product.checked_add(whole / 2)) {
        Some(product) => product / whole,
        // Too large to be exact: as exact as can be.
        None if part == whole => amount,
        None => (amount / whole * part).min(amount),
    }
}
