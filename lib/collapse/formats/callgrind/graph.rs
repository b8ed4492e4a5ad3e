//! A call graph: the functions' own costs, their callers, and the heaviest paths from roots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::Error;
use crate::profile::{FrameId, Weight};

/// The callers of a function and the cost of their calls, the heaviest first. `None` is the part of the function's
/// inclusive cost that its callers do not account for: the function is a root with that cost.
pub(super) type Callers = Vec<(Option<u32>, u128)>;

/// A call graph. Costs are in millionths.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) functions: Vec<Function>,
}

/// A function of the graph.
pub(super) struct Function {
    pub(super) name: FrameId,
    /// The function's own cost.
    pub(super) own: u128,
    /// The cost of its calls.
    callees: u128,
    /// The cost of calls to it, by caller.
    callers: BTreeMap<u32, u128>,
}

impl Function {
    /// Returns the function's callers, or `None` if a sum overflows.
    fn callers(&self, in_entered_cycle: bool) -> Option<Callers> {
        let incoming = self.callers.values().try_fold(0u128, |sum, cost| sum.checked_add(*cost))?;
        let unaccounted = self.own.checked_add(self.callees)?.saturating_sub(incoming);
        let root = if in_entered_cycle { 0 } else { unaccounted };
        incoming.checked_add(root)?;
        let callers = self.callers.iter().map(|(caller, cost)| (Some(*caller), *cost));
        let mut callers: Callers = callers.chain([(None, root)]).filter(|(_, cost)| *cost > 0).collect();
        callers.sort_by_key(|(_, cost)| Reverse(*cost));
        Some(callers)
    }
}

impl Graph {
    /// Adds a function and returns its number.
    pub(super) fn add_function(&mut self, name: FrameId) -> u32 {
        self.functions.push(Function { name, own: 0, callees: 0, callers: BTreeMap::new() });
        self.functions.len() as u32 - 1
    }

    pub(super) fn set_name(&mut self, function: u32, name: FrameId) {
        self.functions[function as usize].name = name;
    }

    pub(super) fn add_own_cost(&mut self, function: u32, cost: Weight) -> Result<(), Error> {
        add_cost(&mut self.functions[function as usize].own, cost)
    }

    pub(super) fn add_call(&mut self, caller: u32, callee: u32, cost: Weight) -> Result<(), Error> {
        // The cost of a function's calls to itself is part of its inclusive cost already.
        if caller == callee {
            return Ok(());
        }
        add_cost(&mut self.functions[caller as usize].callees, cost)?;
        add_cost(self.functions[callee as usize].callers.entry(caller).or_default(), cost)
    }

    /// Returns the sum of all functions' own costs.
    pub(super) fn total_cost(&self) -> Result<Weight, Error> {
        let mut sum = 0;
        self.functions.iter().try_for_each(|function| add_cost(&mut sum, Weight::from_millionths(function.own)))?;
        Ok(Weight::from_millionths(sum))
    }

    /// Returns each function's callers.
    pub(super) fn callers(&self) -> Result<Vec<Callers>, Error> {
        let cycles = self.in_entered_cycles();
        let functions = self.functions.iter().zip(cycles);
        functions.map(|(function, in_cycle)| function.callers(in_cycle).ok_or(Error::Overflow)).collect()
    }

    /// Returns for each function whether it is in a cycle of calls that is entered from outside. There, the costs that
    /// callers do not account for come from calls within the cycle, whose costs are counted more than once.
    fn in_entered_cycles(&self) -> Vec<bool> {
        let components = self.components();
        let (mut sizes, mut entered) = (vec![0u32; components.len()], vec![false; components.len()]);
        for (function, component) in self.functions.iter().zip(&components) {
            sizes[*component] += 1;
            entered[*component] |= function.callers.keys().any(|caller| components[*caller as usize] != *component);
        }
        components.iter().map(|component| sizes[*component] > 1 && entered[*component]).collect()
    }

    fn callers_of(&self, function: usize) -> impl Iterator<Item = usize> {
        self.functions[function].callers.keys().map(|caller| *caller as usize)
    }

    /// Returns the callees of each function.
    fn callees(&self) -> Vec<Vec<usize>> {
        let mut callees = vec![Vec::new(); self.functions.len()];
        for function in 0..callees.len() {
            self.callers_of(function).for_each(|caller| callees[caller].push(function));
        }
        callees
    }

    /// Returns for each function its strongly connected component, named by one of the component's functions
    /// (Kosaraju's algorithm, without recursion).
    fn components(&self) -> Vec<usize> {
        let mut components = vec![usize::MAX; self.functions.len()];
        for start in post_order(&self.callees()).into_iter().rev() {
            let mut open = vec![start];
            while let Some(function) = open.pop() {
                if components[function] == usize::MAX {
                    components[function] = start;
                    open.extend(self.callers_of(function));
                }
            }
        }
        components
    }

    /// Returns for each function its caller on the heaviest path from a root, or `None` if it is a root. A path is as
    /// heavy as its cheapest call. Of functions that are called only by each other, the heaviest is the root.
    pub(super) fn heaviest_callers(&self, callers: &[Callers]) -> Vec<Option<u32>> {
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
        let mut heaviest: Vec<Option<Option<u32>>> = vec![None; callers.len()];
        for (_, _, Reverse(start)) in starts {
            let mut queue = BinaryHeap::from([(u128::MAX, Reverse(start), None)]);
            while let Some((path_cost, Reverse(function), caller)) = queue.pop() {
                if heaviest[function as usize].is_none() {
                    heaviest[function as usize] = Some(caller);
                    let calls = callees[function as usize].iter();
                    queue.extend(calls.map(|(callee, cost)| (path_cost.min(*cost), Reverse(*callee), Some(function))));
                }
            }
        }
        heaviest.into_iter().map(Option::flatten).collect()
    }
}

/// Returns the functions in the order in which a depth-first search along the calls leaves them.
fn post_order(callees: &[Vec<usize>]) -> Vec<usize> {
    let (mut order, mut seen) = (Vec::new(), vec![false; callees.len()]);
    for start in 0..callees.len() {
        let is_new = !std::mem::replace(&mut seen[start], true);
        let mut open: Vec<(usize, usize)> = is_new.then_some((start, 0)).into_iter().collect();
        while let Some((function, next)) = open.last_mut() {
            match callees[*function].get(*next) {
                Some(&callee) => {
                    *next += 1;
                    open.extend((!std::mem::replace(&mut seen[callee], true)).then_some((callee, 0)));
                }
                None => {
                    order.push(*function);
                    open.pop();
                }
            }
        }
    }
    order
}

fn add_cost(sum: &mut u128, cost: Weight) -> Result<(), Error> {
    *sum = sum.checked_add(cost.millionths()).ok_or(Error::Overflow)?;
    Ok(())
}
