//! A graph of calls: what functions cost, who calls them, and which ways lead up to roots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::Error;
use crate::profile::{FrameId, Weight};

/// Of a function, its callers and what their calls cost, the heaviest first. No caller has what it costs, with all that it
/// calls, beyond them.
pub(super) type Callers = Vec<(Option<u32>, u128)>;

/// Functions, what they cost themselves and what their calls cost, in millionths.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) functions: Vec<Function>,
}

pub(super) struct Function {
    pub(super) name: FrameId,
    pub(super) own: u128,
    callees: u128,
    callers: BTreeMap<u32, u128>,
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

    /// Each function's callers.
    pub(super) fn callers(&self) -> Result<Vec<Callers>, Error> {
        let cycles = self.in_entered_cycles();
        let of = |(function, in_cycle): (&Function, bool)| {
            let incoming = function.callers.values().try_fold(0u128, |sum, cost| sum.checked_add(*cost))?;
            let root = function.own.checked_add(function.callees)?.saturating_sub(incoming);
            let root = if in_cycle { 0 } else { root };
            incoming.checked_add(root)?;
            let callers = function.callers.iter().map(|(caller, cost)| (Some(*caller), *cost));
            let mut callers: Vec<_> = callers.chain([(None, root)]).filter(|(_, cost)| *cost > 0).collect();
            callers.sort_by_key(|(_, cost)| Reverse(*cost));
            Some(callers)
        };
        self.functions.iter().zip(cycles).map(|function| of(function).ok_or(Error::Overflow)).collect()
    }

    /// Of each function whether it is in a cycle of calls that is entered from elsewhere. What callers do not account for
    /// there comes of calls within the cycle, whose costs are counted more than once.
    fn in_entered_cycles(&self) -> Vec<bool> {
        let component = self.components();
        let (mut sizes, mut entered) = (vec![0u32; component.len()], vec![false; component.len()]);
        for (function, own) in self.functions.iter().zip(&component) {
            sizes[*own] += 1;
            entered[*own] |= function.callers.keys().any(|caller| component[*caller as usize] != *own);
        }
        component.iter().map(|own| sizes[*own] > 1 && entered[*own]).collect()
    }

    /// Of each function one that stands for all that call each other, by however many others.
    fn components(&self) -> Vec<usize> {
        let callers = |function: usize| self.functions[function].callers.keys().map(|caller| *caller as usize);
        let mut callees = vec![Vec::new(); self.functions.len()];
        for function in 0..callees.len() {
            callers(function).for_each(|caller| callees[caller].push(function));
        }
        // The functions in the order in which they are left when calls are followed in depth.
        let (mut left, mut seen) = (Vec::new(), vec![false; callees.len()]);
        for start in 0..callees.len() {
            let fresh = !std::mem::replace(&mut seen[start], true);
            let mut open: Vec<(usize, usize)> = fresh.then_some((start, 0)).into_iter().collect();
            while let Some((function, next)) = open.last_mut() {
                match callees[*function].get(*next) {
                    Some(&callee) => {
                        *next += 1;
                        open.extend((!std::mem::replace(&mut seen[callee], true)).then_some((callee, 0)));
                    }
                    None => {
                        left.push(*function);
                        open.pop();
                    }
                }
            }
        }
        let mut component = vec![usize::MAX; callees.len()];
        for start in left.into_iter().rev() {
            let mut open = vec![start];
            while let Some(function) = open.pop() {
                if component[function] == usize::MAX {
                    component[function] = start;
                    open.extend(callers(function));
                }
            }
        }
        component
    }

    /// By function, the caller on the way of the heaviest calls from a root; none if it is one. Of functions that only
    /// call each other, the heaviest is.
    pub(super) fn ways(&self, callers: &[Callers]) -> Vec<Option<u32>> {
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

fn add(sum: &mut u128, cost: Weight) -> Result<(), Error> {
    *sum = sum.checked_add(cost.millionths()).ok_or(Error::Overflow)?;
    Ok(())
}
