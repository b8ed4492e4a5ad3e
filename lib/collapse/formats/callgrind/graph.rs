//! A graph of calls made into stacks: what a function costs itself is shared out among those that call it, in proportion
//! to what their calls cost; what a caller got so among its own callers, and so on up to a root. Whatever the graph's
//! cycles, each function so has as leaf just what it costs itself.
//!
//! The heaviest stacks are followed first, and only so many: a small graph may have more paths than any memory holds. The
//! rest goes to its root on one way, that of the heaviest calls.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::Error;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::whole;
use crate::profile::{FrameId, Weight};

/// So many frames are shared out among several callers, and so many all stacks together have.
const SHARED: usize = 2_000_000;
const MOST: usize = 8_000_000;

/// So many frames a stack may have.
const DEEPEST: usize = 512;

/// Functions, what they cost themselves and what their calls cost, in millionths.
#[derive(Default)]
pub(super) struct Graph {
    functions: Vec<Function>,
}

struct Function {
    name: FrameId,
    own: u128,
    callees: u128,
    callers: BTreeMap<u32, u128>,
}

/// A function on a path from a leaf, and the one that it calls there.
struct Step {
    function: u32,
    callee: Option<usize>,
    depth: usize,
}

impl Graph {
    pub(super) fn function(&mut self, name: FrameId) -> u32 {
        self.functions.push(Function { name, own: 0, callees: 0, callers: BTreeMap::new() });
        self.functions.len() as u32 - 1
    }

    pub(super) fn name(&mut self, function: u32, name: FrameId) {
        self.functions[function as usize].name = name;
    }

    pub(super) fn costs(&mut self, function: u32, cost: Weight) -> Result<(), Error> {
        add(&mut self.functions[function as usize].own, cost)
    }

    pub(super) fn calls(&mut self, caller: u32, callee: u32, cost: Weight) -> Result<(), Error> {
        // What a function costs where it calls itself is in its cost already.
        if caller == callee {
            return Ok(());
        }
        add(&mut self.functions[caller as usize].callees, cost)?;
        add(self.functions[callee as usize].callers.entry(caller).or_default(), cost)
    }

    /// What all functions cost together.
    pub(super) fn total(&self) -> Result<Weight, Error> {
        let mut sum = 0;
        self.functions.iter().try_for_each(|function| add(&mut sum, Weight::from_millionths(function.own)))?;
        Ok(Weight::from_millionths(sum))
    }

    /// Adds the stacks, which weigh together what the functions themselves cost.
    pub(super) fn add_to(&self, sink: &mut Sink) -> Result<(), Error> {
        let callers = self.callers()?;
        let ways = self.ways(&callers);
        // Whole costs are shared out whole.
        let grain = if self.functions.iter().all(|function| function.own % ONE == 0) { ONE } else { 1 };
        let mut walk = Walk { graph: self, ways, frames: 0, grain, truncated: sink.intern(whole::TRUNCATED) };
        let (mut steps, mut heaviest): (Vec<Step>, BinaryHeap<_>) = (Vec::new(), BinaryHeap::new());
        let mut open = vec![usize::MAX; self.functions.len()];
        for (number, function) in self.functions.iter().enumerate().filter(|(_, function)| function.own > 0) {
            steps.push(Step { function: number as u32, callee: None, depth: 1 });
            heaviest.push((function.own / grain, Reverse(steps.len() - 1)));
        }
        while let Some((mut rest, Reverse(at))) = heaviest.pop() {
            let path = path(&steps, at);
            path.iter().for_each(|function| open[*function as usize] = at);
            let Step { function, depth, .. } = steps[at];
            let callers = callers[function as usize].iter();
            let callers = callers.filter(|(caller, _)| caller.is_none_or(|caller| open[caller as usize] != at));
            let mut left: u128 = callers.clone().map(|(_, cost)| cost).sum();
            if left == 0 || rest == 1 || depth >= DEEPEST || walk.frames > SHARED {
                walk.add_on_one_way(path, rest, sink)?;
                continue;
            }
            for (caller, cost) in callers {
                let part = portion(rest, *cost, left);
                (rest, left) = (rest - part, left - cost);
                match caller {
                    _ if part == 0 => {}
                    None => walk.add(&path, part, sink)?,
                    Some(caller) => {
                        walk.frames += depth;
                        steps.push(Step { function: *caller, callee: Some(at), depth: depth + 1 });
                        heaviest.push((part, Reverse(steps.len() - 1)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Each function's callers and what their calls cost, the heaviest first. No caller has what a function costs, with
    /// all that it calls, beyond them.
    fn callers(&self) -> Result<Vec<Vec<(Option<u32>, u128)>>, Error> {
        let of = |function: &Function| {
            let incoming = function.callers.values().try_fold(0u128, |sum, cost| sum.checked_add(*cost))?;
            let root = function.own.checked_add(function.callees)?.saturating_sub(incoming);
            incoming.checked_add(root)?;
            let callers = function.callers.iter().map(|(caller, cost)| (Some(*caller), *cost));
            let mut callers: Vec<_> = callers.chain([(None, root)]).filter(|(_, cost)| *cost > 0).collect();
            callers.sort_by_key(|(_, cost)| Reverse(*cost));
            Some(callers)
        };
        self.functions.iter().map(|function| of(function).ok_or(Error::Overflow)).collect()
    }

    /// By function, the caller on the way of the heaviest calls from a root; none if it is one. Of functions that only
    /// call each other, the heaviest is.
    fn ways(&self, callers: &[Vec<(Option<u32>, u128)>]) -> Vec<Option<u32>> {
        let mut callees: Vec<Vec<(u32, u128)>> = vec![Vec::new(); callers.len()];
        let mut starts = Vec::new();
        for (number, callers) in (0..).zip(callers) {
            let mut root = 0;
            for (caller, cost) in callers {
                match caller {
                    Some(caller) => callees[*caller as usize].push((number, *cost)),
                    None => root = *cost,
                }
            }
            let function = &self.functions[number as usize];
            starts.push((root, function.own.saturating_add(function.callees), Reverse(number)));
        }
        starts.sort_unstable_by(|a, b| b.cmp(a));
        let mut ways: Vec<Option<Option<u32>>> = vec![None; callers.len()];
        for (_, _, Reverse(start)) in starts {
            let mut next = BinaryHeap::from([(u128::MAX, Reverse(start), None)]);
            while let Some((width, Reverse(function), caller)) = next.pop() {
                if ways[function as usize].is_none() {
                    ways[function as usize] = Some(caller);
                    let calls = callees[function as usize].iter();
                    next.extend(calls.map(|(callee, cost)| (width.min(*cost), Reverse(*callee), Some(function))));
                }
            }
        }
        ways.into_iter().map(Option::flatten).collect()
    }
}

/// A weight of one, in millionths.
const ONE: u128 = 1_000_000;

/// What was made of a graph so far.
struct Walk<'a> {
    graph: &'a Graph,
    ways: Vec<Option<u32>>,
    frames: usize,
    grain: u128,
    truncated: FrameId,
}

impl Walk<'_> {
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

fn add(sum: &mut u128, cost: Weight) -> Result<(), Error> {
    *sum = sum.checked_add(cost.millionths()).ok_or(Error::Overflow)?;
    Ok(())
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
