//! Calls that name their callers: the way from one of them up to its root.

use crate::collapse::whole;

/// What is said of calls that have no root.
pub(super) const CYCLIC: &str = "calls that are their own callers: their stacks have no root, and are cut";

/// Calls by number. Where one is its own caller, by however many others, the way is cut.
#[derive(Debug, Default)]
pub(super) struct Forest {
    callers: Vec<Option<usize>>,
    /// How many calls there are from each to its root, both included.
    depths: Vec<usize>,
    cyclic: bool,
}

/// The depth of what was met on the way but is not known yet.
const ON_THE_WAY: usize = usize::MAX;

impl Forest {
    /// Of each call's caller.
    pub(super) fn new(callers: Vec<Option<usize>>) -> Self {
        let mut forest = Self { depths: vec![0; callers.len()], callers, cyclic: false };
        let mut way = Vec::new();
        for start in 0..forest.callers.len() {
            let (mut next, mut depth) = (Some(start), 0);
            while let Some((call, known)) = next.and_then(|call| Some((call, *forest.depths.get(call)?))) {
                match known {
                    0 => forest.depths[call] = ON_THE_WAY,
                    ON_THE_WAY => forest.cyclic = true,
                    known => depth = known,
                }
                if known != 0 {
                    break;
                }
                way.push(call);
                next = forest.callers[call];
            }
            while let Some(call) = way.pop() {
                depth += 1;
                forest.depths[call] = depth;
            }
        }
        forest
    }

    /// Whether some call is its own caller.
    pub(super) fn is_cyclic(&self) -> bool {
        self.cyclic
    }

    /// Goes from a call to its callers, but of a deep stack not all the way: `false` if it has not come to the root.
    pub(super) fn ascend(&self, call: usize, mut visit: impl FnMut(usize)) -> bool {
        let depth = self.depths.get(call).copied().unwrap_or(0);
        let mut next = Some(call);
        for _ in whole::left_out(depth)..depth {
            let Some(call) = next else { break };
            visit(call);
            next = self.callers[call];
        }
        next.is_none_or(|caller| caller >= self.callers.len())
    }
}

#[cfg(test)]
mod tests {
    use super::Forest;

    fn way(forest: &Forest, call: usize) -> (Vec<usize>, bool) {
        let mut way = Vec::new();
        let whole = forest.ascend(call, |call| way.push(call));
        (way, whole)
    }

    #[test]
    fn a_way_leads_to_the_root_or_is_cut() {
        let forest = Forest::new(vec![None, Some(0), Some(1), Some(9)]);
        assert!(!forest.is_cyclic());
        assert_eq!(way(&forest, 2), (vec![2, 1, 0], true));
        assert_eq!((way(&forest, 3), way(&forest, 7).0), ((vec![3], true), vec![]));
        let forest = Forest::new(vec![Some(0), Some(2), Some(3), Some(1), Some(2)]);
        assert!(forest.is_cyclic());
        assert_eq!((way(&forest, 0), way(&forest, 4)), ((vec![0], false), (vec![4, 2, 3], false)));
    }

    #[test]
    fn of_deep_ways_less_is_kept() {
        let forest = Forest::new((0..100_000).map(|call: usize| call.checked_sub(1)).collect());
        for (call, length, whole) in [(1023, 1024, true), (1024, 1024, false), (2047, 512, false), (99_999, 16, false)]
        {
            let (way, has_root) = way(&forest, call);
            assert_eq!((way[0], way.len(), has_root), (call, length, whole));
        }
        let all: usize = (0..100_000).map(|call| way(&forest, call).0.len()).sum();
        assert!(all < 100 * 100_000, "{all}");
    }
}
