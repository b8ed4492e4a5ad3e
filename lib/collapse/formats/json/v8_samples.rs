//! Samples of V8's CPU profiler, as `.cpuprofile` files and Chrome's traces contain them: a call tree, and for each
//! sample its time and its node.

use std::cell::OnceCell;

use rustc_hash::FxHashMap;

use super::forest::Forest;
use super::value::Value;
use crate::Error;
use crate::collapse::document_helpers::{
    add_partial_stack, function_with_source, uses_input_weights, weight_from_millionths,
};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::markers::UNSAMPLED;
use crate::profile::{FrameId, Weight};

const ROOT: &[u8] = b"(root)";
/// The garbage collector, which interrupts the stack of the sample before it.
const GARBAGE_COLLECTOR: &[u8] = b"(garbage collector)";

/// Converts millionths of a microsecond. Returns `None` for a time before the start of the clock.
pub(super) fn nanoseconds(time: i128) -> Option<u64> {
    u64::try_from(time / PER_NANOSECOND).ok()
}

/// Number of millionths of a microsecond in a nanosecond.
pub(super) const PER_NANOSECOND: i128 = 1000;

/// A node of the call tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    id: i64,
    frame: Frame,
    parent: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
enum Frame {
    Root(FrameId),
    GarbageCollector(FrameId),
    Function(FrameId),
}

impl Node {
    pub(super) fn id(node: Value<'_>) -> Option<i64> {
        node.get(b"id")?.as_integer()
    }
}

/// Returns the name of a node's function. It is a member of `callFrame`, or in older documents of the node.
pub(super) fn function_name(node: Value<'_>, options: &Options) -> Vec<u8> {
    let call = node.get(b"callFrame").unwrap_or(node);
    let name = call.get_string(b"functionName");
    let name = if name.is_empty() { &b"(anonymous)"[..] } else { &name };
    // V8 counts lines from 0.
    let line = call.get_integer(b"lineNumber").map(|line| line.saturating_add(1));
    function_with_source(name, &call.get_string(b"url"), line, options)
}

/// A call tree and its samples. Times are in millionths of a microsecond.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub(super) start: Option<i128>,
    pub(super) end: Option<i128>,
    nodes: Vec<Node>,
    /// The index of each node in `nodes`, by its ID.
    node_indices: FxHashMap<i64, usize>,
    /// The parents of nodes, once all nodes are known.
    forest: OnceCell<Forest>,
    /// The parent's ID of nodes that their parent names as its children.
    parents: FxHashMap<i64, i64>,
    /// The time and the node's ID of each sample. Times that are sums of durations count from the start.
    samples: Vec<(i128, i64)>,
    /// The sum of the durations before the last sample.
    elapsed: i128,
    /// True if times do not count from the start.
    has_absolute_times: bool,
    /// True if samples have times or durations.
    is_timed: bool,
}

impl Samples {
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Adds the nodes of a profile or of a chunk of one. Each node names its parent or its children.
    pub(super) fn add_nodes(&mut self, profile: Value<'_>, options: &Options, sink: &mut Sink) {
        for node in profile.get_items(b"nodes") {
            let Some(id) = Node::id(node) else { continue };
            let children = node.get_items(b"children").filter_map(Value::as_integer);
            self.parents.extend(children.map(|child| (child, id)));
            self.add_node(node, node.get_integer(b"parent"), options, sink);
        }
    }

    /// Adds a tree whose nodes contain their children.
    pub(super) fn add_tree(&mut self, head: Value<'_>, options: &Options, sink: &mut Sink) {
        let mut pending = vec![(head, None)];
        while let Some((node, parent)) = pending.pop() {
            self.add_node(node, parent, options, sink);
            pending.extend(node.get_items(b"children").map(|child| (child, Node::id(node))));
        }
    }

    fn add_node(&mut self, node: Value<'_>, parent: Option<i64>, options: &Options, sink: &mut Sink) {
        let Some(id) = Node::id(node) else { return };
        let name = function_name(node, options);
        let frame = match &name[..] {
            ROOT => Frame::Root(sink.intern(&name)),
            GARBAGE_COLLECTOR => Frame::GarbageCollector(sink.intern(&name)),
            _ => Frame::Function(sink.intern(&name)),
        };
        let node = Node { id, frame, parent };
        let index = *self.node_indices.entry(id).or_insert(self.nodes.len());
        match self.nodes.get_mut(index) {
            Some(known) => *known = node,
            None => self.nodes.push(node),
        }
    }

    /// Returns true if a node is its own ancestor.
    pub(super) fn is_cyclic(&self) -> bool {
        self.forest().is_cyclic()
    }

    /// Returns the nodes' parents. All nodes must have been added.
    fn forest(&self) -> &Forest {
        self.forest.get_or_init(|| Forest::new(self.nodes.iter().map(|node| self.parent_index(node)).collect()))
    }

    fn parent_index(&self, node: &Node) -> Option<usize> {
        let parent = match node.frame {
            Frame::Root(_) => None,
            _ => node.parent.or_else(|| self.parents.get(&node.id).copied()),
        };
        self.node_indices.get(&parent?).copied()
    }

    /// Adds samples, each with the time since the one before it.
    pub(super) fn add_with_deltas<'t>(
        &mut self,
        nodes: impl Iterator<Item = Value<'t>>,
        mut deltas: impl Iterator<Item = Value<'t>>,
    ) {
        for node in nodes {
            let delta = deltas.next().and_then(Value::as_millionths);
            self.is_timed |= delta.is_some();
            self.elapsed = self.elapsed.saturating_add(delta.unwrap_or(0));
            self.samples.push((self.elapsed, node.as_integer().unwrap_or(-1)));
        }
        // One more delta is the duration of the last sample.
        if let (false, Some(delta), None) =
            (self.samples.is_empty(), deltas.next().and_then(Value::as_millionths), self.end)
        {
            self.end = Some(self.start.unwrap_or(0).saturating_add(self.elapsed).saturating_add(delta));
        }
    }

    /// Returns true if samples have durations. Otherwise each can only count as one.
    pub(super) fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Adds samples with their times.
    pub(super) fn add_with_times<'t>(&mut self, nodes: impl Iterator<Item = Value<'t>>, times: Value<'t>) {
        let mut times = times.items();
        (self.has_absolute_times, self.is_timed) = (true, true);
        for (node, time) in nodes.zip(times.by_ref()) {
            self.samples.extend(time.as_millionths().zip(node.as_integer()));
        }
        self.end = times.next().and_then(Value::as_millionths);
    }

    /// Adds the samples' stacks. Each sample lasts until the next one, and the last one until the end of the profile.
    /// `info` describes the thread, and `root` is its frame if it is shown.
    pub(super) fn fold_samples(
        &mut self,
        info: SampleInfo<'_>,
        root: Option<FrameId>,
        options: &Options,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let (roots, mut timed) = (root.as_slice(), TimedSamples::new(options));
        let has_times = self.is_timed;
        let at = |time: i128| SampleInfo { time: has_times.then(|| nanoseconds(time)).flatten(), ..info };
        let weighs = uses_input_weights(options) && self.is_timed;
        if !self.has_absolute_times {
            let start = self.start.unwrap_or(0);
            self.samples.iter_mut().for_each(|(time, _)| *time = time.saturating_add(start));
        }
        self.samples.sort_by_key(|(time, _)| *time);
        if let (Some(start), Some((first, _)), true) = (self.start, self.samples.first(), weighs) {
            let weight = weight_from_millionths(first.saturating_sub(start)).unwrap_or_default();
            let (frames, info) = (&[sink.intern(UNSAMPLED)], at(start));
            if timed.accept(&info, sink)? {
                timed.add(&TimedSample { info, roots, is_truncated: false, frames, weight }, sink)?;
            }
        }
        let end = self.last_sample_end();
        let (mut stack, mut has_root, mut interrupted, mut last) = (Vec::new(), true, Vec::new(), None);
        for (index, (time, id)) in self.samples.iter().enumerate() {
            let end = self.samples.get(index + 1).map(|(next, _)| *next).or(end).unwrap_or(*time);
            if last != Some(*id) {
                match self.node_indices.get(id).map(|index| self.nodes[*index].frame) {
                    Some(Frame::GarbageCollector(collector)) => {
                        stack.clone_from(&interrupted);
                        stack.push(collector);
                    }
                    found => {
                        has_root = self.path(*id, &mut stack);
                        if found.is_none() {
                            stack.push(sink.missing_frame());
                        }
                        interrupted.clone_from(&stack);
                    }
                }
                last = Some(*id);
            }
            let weight = if weighs { weight_from_millionths(end.saturating_sub(*time)) } else { Some(Weight::ONE) };
            let (info, frames, weight) = (at(*time), &stack[..], weight.unwrap_or_default());
            if timed.accept(&info, sink)? {
                timed.add(&TimedSample { info, roots, is_truncated: !has_root, frames, weight }, sink)?;
            }
        }
        Ok(())
    }

    /// Returns the end of the last sample: that of the profile, unless the sample would last longer than all others
    /// together. Then the profile's start or end is wrong, and the sample lasts as long as the longest of the others.
    fn last_sample_end(&self) -> Option<i128> {
        let (first, last) = (self.samples.first()?.0, self.samples.last()?.0);
        let sum = last.saturating_sub(self.start.map_or(first, |start| start.min(first)));
        let end = self.end?;
        if end.saturating_sub(last) <= sum || self.start.is_some() && self.samples.len() == 1 {
            return Some(end);
        }
        let longest = self.samples.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).max().unwrap_or(0);
        Some(last.saturating_add(longest))
    }

    /// Adds the stacks of nodes with their number of hits, for profiles without samples.
    pub(super) fn fold_hits(&self, hits: impl Iterator<Item = (i64, i128)>, sink: &mut Sink) -> Result<(), Error> {
        let mut stack = Vec::new();
        for (id, hits) in hits {
            let has_root = self.path(id, &mut stack);
            add_partial_stack(None, has_root, &stack, weight_from_millionths(hits).unwrap_or_default(), sink)?;
        }
        Ok(())
    }

    /// Replaces `stack` by the frames of a node, root first. Returns false if its root is cut off.
    fn path(&self, id: i64, stack: &mut Vec<FrameId>) -> bool {
        stack.clear();
        let Some(index) = self.node_indices.get(&id) else { return true };
        let has_root = self.forest().visit_ancestors(*index, |node| match self.nodes[node].frame {
            Frame::Function(frame) | Frame::GarbageCollector(frame) => stack.push(frame),
            Frame::Root(frame) if stack.is_empty() => stack.push(frame),
            Frame::Root(_) => {}
        });
        stack.reverse();
        has_root
    }
}
