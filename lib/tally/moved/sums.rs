//! Sums of the weights of stacks in each run.

use rustc_hash::FxHashMap;

use super::Candidate;
use super::nodes::{Nodes, Ranges};
use crate::profile::FrameId;
use crate::stats::judgement::Observation;
use crate::tally::Row;

/// The weights of stacks in each run.
pub(super) struct Sums<'a> {
    pub(super) nodes: &'a Nodes,
    pub(super) stacks: &'a [Row],
    pub(super) observed: &'a [Vec<Observation>],
    pub(super) nothing: Observation,
    /// For each frame, true for functions on one side only.
    pub(super) is_one_sided: Vec<bool>,
}

impl Sums<'_> {
    /// Adds up the stacks of some nodes that have none of some functions from the node on.
    pub(super) fn of(&self, ranges: &Ranges, without: &[FrameId]) -> Observation {
        let mut sum = self.nothing.clone();
        self.nodes.for_each_stack(ranges, without, |stack| self.observed[stack].iter().for_each(|one| sum.add(one)));
        sum
    }

    /// Adds up the stacks of the outermost nodes of a candidate's callees by root and caller. Callers on one side only do not count.
    pub(super) fn by_caller(&self, ranges: &Ranges, candidate: &Candidate) -> FxHashMap<[FrameId; 2], Calls> {
        let mut sums = FxHashMap::default();
        self.nodes.for_each_stack(ranges, &[], |stack| {
            let frames = &self.stacks[stack].frames;
            let callers = frames.iter().take_while(|frame| !candidate.callees.contains(frame));
            let caller = callers.clone().filter(|frame| !self.is_one_sided[frame.index()]).last();
            let key = [frames[0], *caller.unwrap_or(&frames[0])];
            let calls =
                sums.entry(key).or_insert_with(|| Calls { wrapped: self.nothing.clone(), all: self.nothing.clone() });
            for one in &self.observed[stack] {
                calls.all.add(one);
                if callers.clone().any(|frame| *frame == candidate.caller) {
                    calls.wrapped.add(one);
                }
            }
        });
        sums
    }
}

/// The weights of calls by one function.
pub(super) struct Calls {
    /// Those through the wrapper.
    pub(super) wrapped: Observation,
    pub(super) all: Observation,
}

impl Calls {
    /// Returns the weights of calls through the wrapper, and of others, on the wrapper's side; nothing if there are none through it.
    pub(super) fn on_side(&self, is_new: bool) -> (f64, f64) {
        let mean = |sum: &Observation| mean(if is_new { &sum.after } else { &sum.before });
        let wrapped = mean(&self.wrapped);
        if wrapped > 0.0 { (wrapped, mean(&self.all) - wrapped) } else { (0.0, 0.0) }
    }
}

fn mean(weights: &[f64]) -> f64 {
    weights.iter().sum::<f64>() / weights.len().max(1) as f64
}

/// Returns the difference of the means of both sides.
pub(super) fn difference(observation: &Observation) -> f64 {
    mean(&observation.after) - mean(&observation.before)
}
