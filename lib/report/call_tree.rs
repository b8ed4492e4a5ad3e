//! A call tree without its small branches, and the lines of it that are worth a page.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::measure::Measure;
use crate::Error;
use crate::profile::is_at_least;
use crate::profile::{FrameId, Frames, Profile, Weight, Weights};

/// A branch is kept if it has one of this many parts of the total weight, or of that before.
const KEPT_SHARE: u128 = 1000;

/// A call tree. Nodes refer to each other by index, because a stack may have any number of frames.
#[derive(Debug)]
pub(super) struct CallTree {
    nodes: Vec<Node>,
    measure: Measure,
}

/// A node of a call tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// The function; `None` for the node above all roots.
    pub(super) frame: Option<FrameId>,
    /// The weight of the node with its callees.
    pub(super) weights: Weights,
    /// The weight of the node alone.
    pub(super) itself: Weights,
    /// The sum of the differences between after and before of its stacks.
    moved: Weight,
    /// The largest change of the node or of one below it.
    largest_change: Weight,
    /// The weight of its stacks that do no work.
    inactive: Weight,
    /// The indices of the callees that are kept, the largest first.
    children: Vec<usize>,
    /// The number of callees that are not kept.
    cut: usize,
}

impl Node {
    /// Returns the number by which a line is chosen: in a comparison, many small changes are no reason to show a branch.
    fn rank(&self, measure: Measure) -> u128 {
        let rank = match measure {
            Measure::Moved => self.largest_change,
            Measure::After | Measure::Growth => measure.size(self.weights, self.moved),
        };
        rank.millionths()
    }

    /// Returns the numbers by which callees are ordered: the work, and for equal work all of the weight.
    fn order(&self, measure: Measure) -> (u128, u128) {
        let rank = self.rank(measure);
        (rank.saturating_sub(self.inactive.millionths()), rank)
    }
}

impl CallTree {
    /// Builds the call tree of a profile, whose branches are ordered by `measure`.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn new(profile: &Profile, measure: Measure) -> Result<Self, Error> {
        let kept = (profile.total().base().millionths() / KEPT_SHARE).max(1);
        let mut builder = Builder { nodes: Vec::new(), open: vec![Node::default()], kept };
        profile.for_each_sorted(|stack| {
            builder.close_to(stack.shared + 1)?;
            let added = stack.frames[stack.shared..].iter();
            builder.open.extend(added.map(|frame| Node { frame: Some(*frame), ..Node::default() }));
            let Some(leaf) = builder.open.last_mut() else { return Ok(()) };
            leaf.weights.add(stack.weights)?;
            leaf.moved = add_moved(leaf.moved, stack.weights.difference());
            leaf.itself.add(stack.weights)
        })?;
        builder.close_to(1)?;
        let Builder { mut nodes, open, .. } = builder;
        nodes.extend(open);
        let mut tree = Self { nodes, measure };
        tree.sort(&profile.frames);
        Ok(tree)
    }

    /// Orders the callees of each node by the work in their stacks: `inactive` has those stacks of the profile that do none.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn rank_by_work(&mut self, inactive: &Profile) -> Result<(), Error> {
        inactive.for_each(|stack, weights| {
            let mut node = self.nodes.len() - 1;
            for frame in stack {
                let mut children = self.nodes[node].children.iter();
                let Some(child) = children.find(|child| self.nodes[**child].frame == Some(*frame)) else { break };
                node = *child;
                let sum = self.nodes[node].inactive.checked_add(weights.after);
                self.nodes[node].inactive = sum.ok_or(Error::Overflow)?;
            }
            Ok::<(), Error>(())
        })?;
        self.sort(&inactive.frames);
        Ok(())
    }

    /// Puts the callees of each node in order.
    fn sort(&mut self, frames: &Frames) {
        let (ranks, measure) = (frames.ranks(), self.measure);
        for index in 0..self.nodes.len() {
            let mut children = std::mem::take(&mut self.nodes[index].children);
            children.sort_by_key(|child| {
                let node = &self.nodes[*child];
                (Reverse(node.order(measure)), node.frame.map_or(0, |frame| ranks[frame.index()]))
            });
            self.nodes[index].children = children;
        }
    }

    /// Returns the node above all roots.
    pub(super) fn root(&self) -> &Node {
        &self.nodes[self.nodes.len() - 1]
    }

    /// Returns the callees of a node that are kept, the largest first.
    pub(super) fn children<'a>(&'a self, node: &Node) -> impl Iterator<Item = &'a Node> {
        node.children.iter().map(|child| &self.nodes[*child])
    }

    /// Returns the functions from a node down along callees that take nearly all of its weight.
    pub(super) fn chain(&self, node: &Node) -> Vec<FrameId> {
        compress(self, node, u128::MAX).frames
    }

    fn size(&self, node: &Node) -> u128 {
        self.measure.size(node.weights, node.moved).millionths()
    }

    /// Returns the path of the largest weight: from the root to the first node of which no callee takes three fifths, or a third
    /// of the first node's. Without that, a deep path ends at a function of little weight.
    pub(super) fn hot_path(&self) -> Vec<&Node> {
        let (mut path, mut node) = (Vec::<&Node>::new(), self.root());
        while let Some(child) = self.children(node).next().filter(|child| {
            let first = path.first().map_or(0, |first| self.size(first));
            is_at_least(self.size(child), (3, 5), self.size(node).max(1))
                && is_at_least(self.size(child), (1, 3), first)
        }) {
            path.push(child);
            node = child;
        }
        path
    }

    /// Returns the branches that have no line among these, which are all lines of a tree.
    pub(super) fn rest(&self, lines: &[TreeLine]) -> Rest {
        let root = self.root();
        let mut rest = Rest::default();
        let shown = lines.iter().filter(|line| line.depth == 0);
        let of_shown = shown.clone().fold(Weights::default(), |sum, line| Weights {
            before: sum.before.saturating_add(line.first.before),
            after: sum.after.saturating_add(line.first.after),
        });
        rest.add((root.children.len() + root.cut).saturating_sub(shown.count()), subtract(root.weights, of_shown));
        for line in lines {
            rest.add(line.others, line.other_weights);
            rest.add(line.beside.count, line.beside.weights);
        }
        rest
    }

    /// Returns the largest lines in the order of the tree: at most `limit`, each ranked at least `min`.
    pub(super) fn largest_lines(&self, limit: usize, min: Weight) -> Vec<TreeLine> {
        let mut selection =
            Selection { tree: self, min: min.millionths().max(1), chains: Vec::new(), waiting: BinaryHeap::new() };
        let mut roots = selection.add_children(self.root());
        for _ in 0..limit {
            let Some((_, Reverse(index))) = selection.waiting.pop() else { break };
            let last = selection.chains[index].last;
            selection.chains[index].is_shown = true;
            selection.chains[index].children = selection.add_children(last);
        }
        let mut lines = Vec::new();
        // The chains to append, with their depths; the next one comes last.
        roots.reverse();
        let mut stack: Vec<(usize, usize)> = roots.into_iter().map(|index| (index, 0)).collect();
        while let Some((index, depth)) = stack.pop() {
            if selection.chains[index].is_shown {
                lines.push(selection.line(index, depth));
                stack.extend(selection.chains[index].children.iter().rev().map(|child| (*child, depth + 1)));
            }
        }
        lines
    }
}

/// The branches of a tree that have no line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rest {
    /// Their number.
    pub(super) count: usize,
    pub(super) weights: Weights,
}

impl Rest {
    fn add(&mut self, count: usize, weights: Weights) {
        self.count += count;
        let Weights { before, after } = &mut self.weights;
        (*before, *after) = (before.saturating_add(weights.before), after.saturating_add(weights.after));
    }
}

/// A call tree that is being built.
struct Builder {
    /// The nodes that are complete.
    nodes: Vec<Node>,
    /// The nodes of the last stack, after the one above all roots.
    open: Vec<Node>,
    /// The smallest weight of a node that is kept, in millionths.
    kept: u128,
}

impl Builder {
    /// Completes nodes until `depth` are open.
    fn close_to(&mut self, depth: usize) -> Result<(), Error> {
        while self.open.len() > depth {
            let (Some(mut node), Some(parent)) = (self.open.pop(), self.open.last_mut()) else { break };
            node.largest_change = node.largest_change.max(node.weights.difference());
            parent.largest_change = parent.largest_change.max(node.largest_change);
            parent.weights.add(node.weights)?;
            parent.moved = add_moved(parent.moved, node.moved);
            if node.weights.before.max(node.weights.after).millionths() < self.kept {
                parent.cut += 1;
            } else {
                parent.children.push(self.nodes.len());
                self.nodes.push(node);
            }
        }
        Ok(())
    }
}

/// A line of a call tree: a function, or a chain of functions of which each spends nearly all of its weight in the
/// next.
#[derive(Clone, Debug)]
pub(super) struct TreeLine {
    /// Number of lines between it and the root.
    pub(super) depth: usize,
    /// The functions of the chain, the caller first.
    pub(super) chain: Vec<FrameId>,
    /// The weight of the last function with its callees.
    pub(super) weights: Weights,
    /// The weight of the first function with its callees.
    first: Weights,
    /// The callees of the functions before the last that are not in the chain.
    beside: Rest,
    /// The weight of the last function alone.
    pub(super) itself: Weights,
    /// The number of callees that have no line.
    pub(super) others: usize,
    /// The weight of these callees.
    pub(super) other_weights: Weights,
}

/// The lines of a tree that are chosen, and those that are the next to choose from.
struct Selection<'a> {
    tree: &'a CallTree,
    /// The smallest size of a line in millionths.
    min: u128,
    chains: Vec<Chain<'a>>,
    /// The order of each chain that may be chosen, with its index. Of equal ones the first is chosen.
    waiting: BinaryHeap<((u128, u128), Reverse<usize>)>,
}

/// Nodes that share a line.
struct Chain<'a> {
    frames: Vec<FrameId>,
    /// The weight of the first node.
    first: Weights,
    /// The callees of the nodes before the last that are not in the chain.
    beside: Rest,
    last: &'a Node,
    /// The chains below, once this one is shown.
    children: Vec<usize>,
    is_shown: bool,
}

impl<'a> Selection<'a> {
    /// Adds the callees of a node to the chains to choose from; returns their indices.
    fn add_children(&mut self, node: &'a Node) -> Vec<usize> {
        let tree = self.tree;
        let large = tree.children(node).filter(|child| child.rank(tree.measure) >= self.min);
        let first = self.chains.len();
        for child in large {
            self.waiting.push((child.order(tree.measure), Reverse(self.chains.len())));
            self.chains.push(compress(tree, child, self.min));
        }
        (first..self.chains.len()).collect()
    }

    fn line(&self, index: usize, depth: usize) -> TreeLine {
        let Chain { frames, first, beside, last, children, .. } = &self.chains[index];
        let mut line = TreeLine {
            depth,
            chain: frames.clone(),
            weights: last.weights,
            first: *first,
            beside: *beside,
            itself: last.itself,
            others: last.children.len() + last.cut,
            other_weights: subtract(last.weights, last.itself),
        };
        let large = self.tree.children(last).filter(|child| child.rank(self.tree.measure) >= self.min);
        for (child, _) in large.zip(children).filter(|(_, chain)| self.chains[**chain].is_shown) {
            line.others -= 1;
            line.other_weights = subtract(line.other_weights, child.weights);
        }
        line
    }
}

/// Returns the chain of a node and the callees below it that take nearly all of its weight.
fn compress<'a>(tree: &'a CallTree, node: &'a Node, min: u128) -> Chain<'a> {
    let (mut frames, mut last): (Vec<FrameId>, _) = (node.frame.into_iter().collect(), node);
    let mut beside = Rest::default();
    // The whole chain may lose as much as one step, or long recursion would lose its weight on the way.
    while let Some(child) =
        tree.children(last).next().filter(|child| is_at_least(tree.size(child), (98, 100), tree.size(node)))
        // A change that is worth a line is not hidden beside a larger one.
        && (tree.measure != Measure::Moved || tree.children(last).nth(1).is_none_or(|second| second.rank(tree.measure) < min))
    {
        frames.extend(child.frame);
        let others = subtract(subtract(last.weights, last.itself), child.weights);
        beside.add(last.children.len() + last.cut - 1, others);
        last = child;
    }
    Chain { frames, first: node.weights, beside, last, children: Vec::new(), is_shown: false }
}

/// Adds differences, whose sum may be twice the largest total of a profile.
fn add_moved(moved: Weight, added: Weight) -> Weight {
    moved.checked_add(added).unwrap_or(Weight::from_millionths(u128::MAX))
}

fn subtract(from: Weights, weights: Weights) -> Weights {
    Weights { before: from.before.saturating_sub(weights.before), after: from.after.saturating_sub(weights.after) }
}

#[cfg(test)]
mod tests;
