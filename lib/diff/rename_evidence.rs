//! Evidence that two functions with the same callers and weight are one: what they call, or their names.
//!
//! A function that was replaced by another one has its callers, and often about its weight. So these two tell nothing by themselves.

use std::collections::BTreeMap;

use super::name_words::NameWords;
use super::renamed::Matching;
use crate::profile::FrameId;

/// Least part of the weight of both functions that goes to the same callees, if most calls of these are theirs.
const MIN_OWN_CALLEES: f64 = 0.1;

/// The same if others call them as much.
const MIN_CALLEES: f64 = 0.5;

/// A callee is theirs if at least this part of its weight before, and after, is called by them.
const MOST_CALLS: f64 = 0.5;

/// The parts of the weight of two functions that go to the same callees.
#[derive(Default)]
struct CommonCallees {
    /// Functions of the program.
    own: f64,
    /// Functions of the program of which most calls are theirs.
    own_of_theirs: f64,
    /// Functions of libraries of which most calls are theirs.
    of_theirs: f64,
}

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
        let [one, other] = [old, new].map(|function| NameWords::parse(self.frames.name(function)));
        one.is_like(&other) || self.have_common_callees(old, new)
    }

    fn have_common_callees(&self, old: FrameId, new: FrameId) -> bool {
        let sides = [self.known_callees(0, old), self.known_callees(1, new)];
        let own = sides.each_ref().map(|callees| {
            callees.iter().filter(|(callee, _)| self.own.contains(**callee)).map(|(_, callee)| callee.part).sum::<f64>()
        });
        let mut common = CommonCallees::default();
        for (name, before) in &sides[0] {
            let Some(after) = sides[1].get(name) else { continue };
            let part = before.part.min(after.part);
            let is_theirs = before.is_theirs && after.is_theirs;
            match self.own.contains(*name) {
                true => {
                    common.own += part;
                    common.own_of_theirs += if is_theirs { part } else { 0.0 };
                }
                false if is_theirs && self.own.says_something(*name) => common.of_theirs += part,
                false => {}
            }
        }
        common.own + common.of_theirs >= MIN_CALLEES
            || common.own_of_theirs >= MIN_OWN_CALLEES && 2.0 * common.own >= own[0].max(own[1])
    }

    /// Returns the callees of a function that both sides have, by their names after.
    fn known_callees(&self, side: usize, function: FrameId) -> BTreeMap<FrameId, Callee> {
        let relations = &self.relations[side];
        let callees = relations[&function].callees().filter(|(callee, _)| *callee != function);
        let known = callees.filter(|(callee, _)| !self.unmatched(side).contains(callee));
        known
            .map(|(callee, weight)| {
                let is_theirs = weight >= MOST_CALLS * relations[&callee].inclusive;
                let part = weight / relations[&function].inclusive;
                (self.name_after(callee), Callee { part, is_theirs })
            })
            .collect()
    }
}

/// A callee of a function.
struct Callee {
    /// The part of the function's weight that it has.
    part: f64,
    /// True if most of its calls are those of the function.
    is_theirs: bool,
}
