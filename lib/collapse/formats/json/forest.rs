//! Call trees in which each node names its parent, the caller.

use crate::collapse::document_helpers::count_truncated_frames;

/// The warning about nodes without a root.
pub(super) const CYCLIC: &str = "has calls that are their own callers; their stacks are cut and have no root";

/// Call trees, as the parent of each node. The path from a node that is its own ancestor ends before it repeats.
#[derive(Debug, Default)]
pub(super) struct Forest {
    parents: Vec<Option<usize>>,
    /// Number of nodes from each node to its root, including both.
    depths: Vec<usize>,
    is_cyclic: bool,
}

/// The depth of a node on the current path, whose depth is not known yet.
const IN_PROGRESS: usize = usize::MAX;

impl Forest {
    pub(super) fn new(parents: Vec<Option<usize>>) -> Self {
        let mut forest = Self { depths: vec![0; parents.len()], parents, is_cyclic: false };
        let mut path = Vec::new();
        for start in 0..forest.parents.len() {
            let (mut next, mut depth) = (Some(start), 0);
            while let Some((node, known)) = next.and_then(|node| Some((node, *forest.depths.get(node)?))) {
                match known {
                    0 => forest.depths[node] = IN_PROGRESS,
                    IN_PROGRESS => forest.is_cyclic = true,
                    known => depth = known,
                }
                if known != 0 {
                    break;
                }
                path.push(node);
                next = forest.parents[node];
            }
            while let Some(node) = path.pop() {
                depth += 1;
                forest.depths[node] = depth;
            }
        }
        forest
    }

    /// Returns true if a node is its own ancestor.
    pub(super) fn is_cyclic(&self) -> bool {
        self.is_cyclic
    }

    /// Visits a node and its ancestors. Returns false if it stops before the root, as it does in a deep or cyclic
    /// stack.
    pub(super) fn visit_ancestors(&self, node: usize, mut visit: impl FnMut(usize)) -> bool {
        let depth = self.depths.get(node).copied().unwrap_or(0);
        let mut next = Some(node);
        for _ in count_truncated_frames(depth)..depth {
            let Some(node) = next else { break };
            visit(node);
            next = self.parents[node];
        }
        next.is_none_or(|parent| parent >= self.parents.len())
    }
}

#[cfg(test)]
mod tests {
    use super::Forest;

    fn path(forest: &Forest, node: usize) -> (Vec<usize>, bool) {
        let mut path = Vec::new();
        let has_root = forest.visit_ancestors(node, |node| path.push(node));
        (path, has_root)
    }

    #[test]
    fn ascends_to_the_root_or_to_a_cycle() {
        let forest = Forest::new(vec![None, Some(0), Some(1), Some(9)]);
        assert!(!forest.is_cyclic());
        assert_eq!(path(&forest, 2), (vec![2, 1, 0], true));
        assert_eq!((path(&forest, 3), path(&forest, 7).0), ((vec![3], true), vec![]));
        let forest = Forest::new(vec![Some(0), Some(2), Some(3), Some(1), Some(2)]);
        assert!(forest.is_cyclic());
        assert_eq!((path(&forest, 0), path(&forest, 4)), ((vec![0], false), (vec![4, 2, 3], false)));
    }

    #[test]
    fn shortens_deep_paths() {
        let forest = Forest::new((0..100_000).map(|node: usize| node.checked_sub(1)).collect());
        for (node, length, is_complete) in
            [(1023, 1024, true), (1024, 1024, false), (2047, 512, false), (99_999, 16, false)]
        {
            let (path, has_root) = path(&forest, node);
            assert_eq!((path[0], path.len(), has_root), (node, length, is_complete));
        }
        let total: usize = (0..100_000).map(|node| path(&forest, node).0.len()).sum();
        assert!(total < 100 * 100_000, "{total}");
    }
}
