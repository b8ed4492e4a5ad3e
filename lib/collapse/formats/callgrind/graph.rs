//! A graph of calls made into stacks: what a function costs with all that it calls is shared out among its callers.
//!
//! The heaviest paths are followed first, and only so many: a small graph may have more paths than any memory holds. What
//! is not followed stands under a leaf that says so, and the weights add up.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::Error;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::{FrameId, Weight};

/// So many frames all paths together may have.
const BUDGET: usize = 2_000_000;

/// What costs less than one is not followed. In millionths.
const LEAST: u128 = 1_000_000;

/// So many frames a path may have.
const DEEPEST: usize = 512;

/// The leaf where callees were not followed.
const CALLEES: &[u8] = b"[callees]";

/// Functions, what they cost themselves and what their calls cost.
#[derive(Default)]
pub(super) struct Graph {
    functions: Vec<Function>,
}

struct Function {
    name: FrameId,
    own: u128,
    calls: BTreeMap<u32, u128>,
}

/// A function on a path from a root, with what of its cost belongs there.
struct Step {
    function: u32,
    parent: Option<usize>,
    depth: usize,
}

impl Graph {
    pub(super) fn function(&mut self, name: FrameId) -> u32 {
        self.functions.push(Function { name, own: 0, calls: BTreeMap::new() });
        self.functions.len() as u32 - 1
    }

    pub(super) fn name(&mut self, function: u32, name: FrameId) {
        self.functions[function as usize].name = name;
    }

    pub(super) fn costs(&mut self, function: u32, cost: Weight) -> Result<(), Error> {
        let own = &mut self.functions[function as usize].own;
        *own = own.checked_add(cost.millionths()).ok_or(Error::Overflow)?;
        Ok(())
    }

    pub(super) fn calls(&mut self, caller: u32, callee: u32, cost: Weight) -> Result<(), Error> {
        // What a function costs where it calls itself is in its cost already.
        if caller == callee {
            return Ok(());
        }
        let sum = self.functions[caller as usize].calls.entry(callee).or_default();
        *sum = sum.checked_add(cost.millionths()).ok_or(Error::Overflow)?;
        Ok(())
    }

    /// Adds the stacks, which weigh together what the functions themselves cost.
    pub(super) fn add_to(&self, sink: &mut Sink) -> Result<(), Error> {
        let callees = sink.intern(CALLEES);
        let (mut steps, mut budget): (Vec<Step>, _) = (Vec::new(), BUDGET);
        let mut heaviest = BinaryHeap::new();
        for (function, share) in self.roots()? {
            steps.push(Step { function, parent: None, depth: 1 });
            heaviest.push((share, Reverse(steps.len() - 1)));
        }
        while let Some((share, Reverse(at))) = heaviest.pop() {
            let function = &self.functions[steps[at].function as usize];
            let whole = function.whole()?;
            let followed = steps[at].depth < DEEPEST && budget > 0 && share >= LEAST;
            let mut rest = share;
            for (&callee, &cost) in function.calls.iter().filter(|_| followed) {
                let part = portion(share, cost, whole);
                if part > 0 && !is_open(&steps, at, callee) {
                    rest -= part;
                    let depth = steps[at].depth + 1;
                    steps.push(Step { function: callee, parent: Some(at), depth });
                    heaviest.push((part, Reverse(steps.len() - 1)));
                    budget = budget.saturating_sub(depth);
                }
            }
            // What rounding left, and what a cycle leads back to, is the function's.
            let all = followed || function.calls.is_empty();
            let own = if all { rest } else { portion(share, function.own, whole) };
            self.add(&steps, at, None, own, sink)?;
            self.add(&steps, at, Some(callees), rest - own, sink)?;
        }
        Ok(())
    }

    fn add(&self, steps: &[Step], at: usize, leaf: Option<FrameId>, share: u128, sink: &mut Sink) -> Result<(), Error> {
        let mut stack = Stack::default();
        stack.extend(leaf.as_slice());
        for step in path(steps, at) {
            stack.extend(&[self.functions[step.function as usize].name]);
        }
        stack.add_leaf_first(Weight::from_millionths(share), sink)
    }

    /// What each function costs beyond what its callers account for; brought down to what all cost together, since in
    /// cycles costs are counted more than once.
    fn roots(&self) -> Result<Vec<(u32, u128)>, Error> {
        let mut incoming = vec![0u128; self.functions.len()];
        let mut total = 0u128;
        for function in &self.functions {
            total = total.checked_add(function.own).ok_or(Error::Overflow)?;
            for (callee, cost) in &function.calls {
                let sum = &mut incoming[*callee as usize];
                *sum = sum.checked_add(*cost).ok_or(Error::Overflow)?;
            }
        }
        let mut roots = Vec::new();
        let mut sum = 0u128;
        for (number, (function, incoming)) in self.functions.iter().zip(incoming).enumerate() {
            let left = function.whole()?.saturating_sub(incoming);
            if left > 0 {
                roots.push((number as u32, left));
                sum = sum.checked_add(left).ok_or(Error::Overflow)?;
            }
        }
        if roots.is_empty() {
            let own = self.functions.iter().map(|function| function.own);
            roots = (0..).zip(own).filter(|(_, own)| *own > 0).collect();
            sum = total;
        }
        let mut rest = total;
        for (_, share) in &mut roots {
            let part = portion(rest, *share, sum);
            sum -= *share;
            rest -= part;
            *share = part;
        }
        Ok(roots)
    }
}

impl Function {
    /// With all that it calls.
    fn whole(&self) -> Result<u128, Error> {
        self.calls.values().try_fold(self.own, |sum, cost| sum.checked_add(*cost)).ok_or(Error::Overflow)
    }
}

/// The steps from one to its root.
fn path(steps: &[Step], at: usize) -> impl Iterator<Item = &Step> {
    std::iter::successors(Some(&steps[at]), |step| step.parent.map(|parent| &steps[parent]))
}

fn is_open(steps: &[Step], at: usize, function: u32) -> bool {
    path(steps, at).any(|step| step.function == function)
}

/// `amount` times `part` by `whole`, at most `amount`.
fn portion(amount: u128, part: u128, whole: u128) -> u128 {
    if part == 0 || part >= whole {
        return if part == 0 { 0 } else { amount };
    }
    match amount.checked_mul(part) {
        Some(product) => product / whole,
        // Too large to be exact: as exact as can be.
        None => (amount / whole * part).min(amount),
    }
}
