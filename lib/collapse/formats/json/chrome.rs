//! V8's sampled stacks: a tree of calls, and at what time which of its nodes ran.

use std::cell::OnceCell;

use rustc_hash::FxHashMap;

use super::forest::Forest;
use super::value::Value;
use crate::Error;
use crate::collapse::sink::Sink;
use crate::collapse::{Options, whole};
use crate::markers::UNSAMPLED;
use crate::profile::{FrameId, Weight};

const ROOT: &[u8] = b"(root)";
/// What the collector interrupted is the sample before.
const COLLECTOR: &[u8] = b"(garbage collector)";

/// A node of a tree of calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    id: i64,
    frame: Frame,
    parent: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
enum Frame {
    Root(FrameId),
    Collector(FrameId),
    Function(FrameId),
}

impl Node {
    pub(super) fn id(node: Value<'_>) -> Option<i64> {
        node.get(b"id")?.whole()
    }
}

/// The name of a function, which stands under `callFrame`, or in older documents beside it.
pub(super) fn function(node: Value<'_>, options: &Options) -> Vec<u8> {
    let call = node.get(b"callFrame").unwrap_or(node);
    let text = |name: &[u8]| call.get(name).and_then(Value::text).unwrap_or_default();
    let name = text(b"functionName");
    let name = if name.is_empty() { &b"(anonymous)"[..] } else { &name };
    // V8 counts lines from 0.
    let line = call.get(b"lineNumber").and_then(Value::whole).map(|line| line.saturating_add(1));
    whole::located(name, &text(b"url"), line, options)
}

/// A tree and its samples. Times are in millionths of a microsecond.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub(super) start: Option<i128>,
    pub(super) end: Option<i128>,
    nodes: Vec<Node>,
    /// Where each stands, by its id.
    places: FxHashMap<i64, usize>,
    forest: OnceCell<Forest>,
    parents: FxHashMap<i64, i64>,
    samples: Vec<(i128, i64)>,
    now: Option<i128>,
}

impl Samples {
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Adds the nodes of a document or of a piece of one; each names its parent or its children.
    pub(super) fn add_nodes(&mut self, document: Value<'_>, options: &Options, sink: &mut Sink) {
        for node in document.get(b"nodes").into_iter().flat_map(Value::items) {
            let Some(id) = Node::id(node) else { continue };
            let children = node.get(b"children").into_iter().flat_map(Value::items).filter_map(Value::whole);
            self.parents.extend(children.map(|child| (child, id)));
            self.add_node(node, node.get(b"parent").and_then(Value::whole), options, sink);
        }
    }

    /// Adds a tree whose nodes hold their children.
    pub(super) fn add_tree(&mut self, head: Value<'_>, options: &Options, sink: &mut Sink) {
        let mut waiting = vec![(head, None)];
        while let Some((node, parent)) = waiting.pop() {
            self.add_node(node, parent, options, sink);
            let children = node.get(b"children").into_iter().flat_map(Value::items);
            waiting.extend(children.map(|child| (child, Node::id(node))));
        }
    }

    fn add_node(&mut self, node: Value<'_>, parent: Option<i64>, options: &Options, sink: &mut Sink) {
        let Some(id) = Node::id(node) else { return };
        let name = function(node, options);
        let frame = match &name[..] {
            ROOT => Frame::Root(sink.intern(&name)),
            COLLECTOR => Frame::Collector(sink.intern(&name)),
            _ => Frame::Function(sink.intern(&name)),
        };
        let node = Node { id, frame, parent };
        let place = *self.places.entry(id).or_insert(self.nodes.len());
        match self.nodes.get_mut(place) {
            Some(known) => *known = node,
            None => self.nodes.push(node),
        }
    }

    /// Whether some node is its own caller, by however many others.
    pub(super) fn is_cyclic(&self) -> bool {
        self.forest().is_cyclic()
    }

    /// The nodes' callers; there must be no more nodes to come.
    fn forest(&self) -> &Forest {
        let caller = |node: &Node| match node.frame {
            Frame::Root(_) => None,
            _ => node.parent.or_else(|| self.parents.get(&node.id).copied()),
        };
        let place = |node: &Node| self.places.get(&caller(node)?).copied();
        self.forest.get_or_init(|| Forest::new(self.nodes.iter().map(place).collect()))
    }

    /// Adds samples, each so long after the one before.
    pub(super) fn add_after(&mut self, nodes: Option<Value<'_>>, deltas: Option<Value<'_>>) {
        let mut deltas = deltas.into_iter().flat_map(Value::items);
        for node in nodes.into_iter().flat_map(Value::items) {
            let delta = deltas.next().and_then(Value::millionths).unwrap_or(0);
            let now = self.now.or(self.start).unwrap_or(0).saturating_add(delta);
            self.now = Some(now);
            self.samples.push((now, node.whole().unwrap_or(-1)));
        }
        // One more tells how long the last sample lasted.
        if let (Some(now), Some(delta), None) = (self.now, deltas.next().and_then(Value::millionths), self.end) {
            self.end = Some(now.saturating_add(delta));
        }
    }

    /// Adds samples with their times.
    pub(super) fn add_at(&mut self, nodes: Option<Value<'_>>, times: Value<'_>) {
        let mut times = times.items();
        let nodes = nodes.into_iter().flat_map(Value::items);
        for (node, time) in nodes.zip(times.by_ref()) {
            self.samples.extend(time.millionths().zip(node.whole()));
        }
        self.end = times.next().and_then(Value::millionths);
    }

    /// Adds the samples' stacks. Each lasts until the next one, and the last to the profile's end.
    pub(super) fn fold(&mut self, thread: Option<FrameId>, options: &Options, sink: &mut Sink) -> Result<(), Error> {
        let weighs = whole::weighs(options);
        self.samples.sort_by_key(|(time, _)| *time);
        if let (Some(start), Some((first, _)), true) = (self.start, self.samples.first(), weighs) {
            let before = whole::positive(first.saturating_sub(start)).unwrap_or_default();
            whole::add(thread, &[sink.intern(UNSAMPLED)], before, sink)?;
        }
        let (mut stack, mut has_root, mut interrupted, mut last) = (Vec::new(), true, Vec::new(), None);
        for (index, (time, id)) in self.samples.iter().enumerate() {
            let end = self.samples.get(index + 1).map(|(next, _)| *next).or(self.end).unwrap_or(*time);
            if last != Some(*id) {
                match self.places.get(id).map(|place| self.nodes[*place].frame) {
                    Some(Frame::Collector(collector)) => {
                        stack.clone_from(&interrupted);
                        stack.push(collector);
                    }
                    _ => {
                        has_root = self.path(*id, &mut stack);
                        interrupted.clone_from(&stack);
                    }
                }
                last = Some(*id);
            }
            let lasts = if weighs { whole::positive(end.saturating_sub(*time)) } else { Some(Weight::ONE) };
            whole::add_part(thread, has_root, &stack, lasts.unwrap_or_default(), sink)?;
        }
        Ok(())
    }

    /// Adds what nodes were hit, where there are no samples.
    pub(super) fn fold_hits(&self, hits: impl Iterator<Item = (i64, i128)>, sink: &mut Sink) -> Result<(), Error> {
        let mut stack = Vec::new();
        for (id, hits) in hits {
            let has_root = self.path(id, &mut stack);
            whole::add_part(None, has_root, &stack, whole::positive(hits).unwrap_or_default(), sink)?;
        }
        Ok(())
    }

    /// The frames of a node, root first, and whether the root is among them.
    fn path(&self, id: i64, stack: &mut Vec<FrameId>) -> bool {
        stack.clear();
        let Some(place) = self.places.get(&id) else { return true };
        let has_root = self.forest().ascend(*place, |node| match self.nodes[node].frame {
            Frame::Function(frame) | Frame::Collector(frame) => stack.push(frame),
            Frame::Root(frame) if stack.is_empty() => stack.push(frame),
            Frame::Root(_) => {}
        });
        stack.reverse();
        has_root
    }
}
