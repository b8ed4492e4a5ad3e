//! Evidence that two functions with the same callers and weight are one: what they alone call, or their names.
//!
//! A function that was replaced by another one has its callers, and often about its weight. Its replacement calls the same libraries and
//! the functions of the program that many call. So these tell nothing.

use std::collections::BTreeMap;

use super::renamed::Matching;
use crate::own_code::may_be_of_run_time;
use crate::profile::FrameId;

/// Least part of the weight of both functions that goes to the same callees which are theirs.
const MIN_COMMON: f64 = 0.1;

/// The same relative to the weight that goes to any callees which are theirs.
const MIN_OF_THEIRS: f64 = 0.5;

/// A callee is theirs if at least this part of its weight before, and after, is called by them.
const MOST_CALLS: f64 = 0.9;

impl Matching<'_> {
    /// Keeps the pairs that have evidence. Callees with another name count if they are a pair that is kept.
    pub(super) fn keep_evident(&mut self) {
        let mut doubtful = self.take_pairs();
        let mut waiting: Vec<FrameId> = doubtful.keys().copied().collect();
        while let Some(old) = waiting.pop() {
            let Some(new) = doubtful.get(&old).copied().filter(|new| self.has_evidence(old, *new)) else { continue };
            doubtful.remove(&old);
            self.add(old, new);
            // They may be the evidence of their callers.
            waiting.extend(self.relations[0][&old].neighbours().filter(|caller| doubtful.contains_key(caller)));
        }
    }

    fn has_evidence(&self, old: FrameId, new: FrameId) -> bool {
        self.like_names.are_alike(old, new) || self.have_common_callees(old, new)
    }

    fn have_common_callees(&self, old: FrameId, new: FrameId) -> bool {
        let sides = [self.callees_of_theirs(0, old), self.callees_of_theirs(1, new)];
        let [before, after] = sides.each_ref().map(|callees| callees.values().map(|callee| callee.part).sum::<f64>());
        let common = sides[0].iter().filter_map(|(name, before)| {
            let after = sides[1].get(name).filter(|after| before.is_known && after.is_known)?;
            Some(before.part.min(after.part))
        });
        let common: f64 = common.sum();
        common >= MIN_COMMON && common >= MIN_OF_THEIRS * before.max(after)
    }

    /// Returns the functions of the program that hardly any other function calls, by their names after.
    fn callees_of_theirs(&self, side: usize, function: FrameId) -> BTreeMap<FrameId, Callee> {
        let relations = &self.relations[side];
        let callees = relations[&function].callees().filter(|(callee, _)| *callee != function);
        let theirs = callees.filter(|(callee, weight)| {
            // A name such as `fmt.Sprintf` is no evidence, even if nothing else shows that its run time runs.
            self.own.contains(*callee)
                && !may_be_of_run_time(self.frames.name(*callee))
                && *weight >= MOST_CALLS * relations[callee].inclusive
        });
        theirs
            .map(|(callee, weight)| {
                let part = weight / relations[&function].inclusive;
                (self.name_after(callee), Callee { part, is_known: !self.unmatched(side).contains(&callee) })
            })
            .collect()
    }
}

/// A callee of a function.
struct Callee {
    /// The part of the function's weight that it has.
    part: f64,
    /// True if its name on the other side is known.
    is_known: bool,
}
