//! Stacks as they are read: frame after frame, or as paths in a tree.

use super::sink::Sink;
use crate::markers;

use crate::Error;
use crate::profile::{FrameId, Weight, Weights};

/// So many frames a path may have: each node becomes a stack of its own, and a small file must not fill the memory.
const DEEPEST: usize = 1024;

/// The message for a node of a [`Tree`] that has more ancestors than that.
pub(super) const TOO_DEEP: &str = "the stack has more than 1024 frames";

/// So many frames one stack may have: a packed file of any length can be one stack.
pub(super) const LONGEST: usize = 1 << 20;

/// The frame of a name, which may be missing.
pub(super) fn frame(name: &[u8], sink: &mut Sink) -> FrameId {
    sink.intern(if name.trim_ascii().is_empty() { markers::UNKNOWN } else { name })
}

/// The frames of one stack.
#[derive(Default)]
pub(super) struct Stack(Vec<FrameId>);

impl Stack {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes a frame. Of a stack that no program can have had, the first frames are kept and the rest is one.
    pub(super) fn push(&mut self, name: &[u8], sink: &mut Sink) {
        match self.0.len() {
            ..LONGEST => self.0.push(frame(name, sink)),
            LONGEST => self.0.push(sink.intern(markers::TRUNCATED)),
            _ => {}
        }
    }

    pub(super) fn frames(&self) -> &[FrameId] {
        &self.0
    }

    pub(super) fn extend(&mut self, frames: &[FrameId]) {
        self.0.extend_from_slice(frames);
    }

    /// Adds the stack, whose frames came leaf first, and begins the next. What weighs nothing is no sample.
    pub(super) fn add_leaf_first(&mut self, weight: Weight, sink: &mut Sink) -> Result<(), Error> {
        self.0.reverse();
        self.add(weight, sink)
    }

    /// Adds the stack, whose frames came root first, and begins the next.
    pub(super) fn add(&mut self, weight: Weight, sink: &mut Sink) -> Result<(), Error> {
        let added = match weight.is_zero() || self.0.is_empty() {
            true => Ok(()),
            false => sink.add(&self.0, Weights::plain(weight)),
        };
        self.0.clear();
        added
    }
}

/// A tree that is read line by line, each node deeper than its parent. What a node weighs without its children is added
/// when it is left.
#[derive(Default)]
pub(super) struct Tree {
    frames: Vec<FrameId>,
    open: Vec<(usize, Weight)>,
    leaf_first: bool,
}

impl Tree {
    /// A tree whose roots are the leaves of stacks, with callers inside.
    pub(super) fn of_callers() -> Self {
        Self { leaf_first: true, ..Self::default() }
    }

    /// Enters a node that weighs so much without its children. It is a child of the last one that is less deep.
    /// `false`, and it is left out, if it has too many ancestors.
    pub(super) fn enter(&mut self, depth: usize, name: &[u8], own: Weight, sink: &mut Sink) -> Result<bool, Error> {
        self.leave(depth, sink)?;
        if self.open.len() == DEEPEST {
            return Ok(false);
        }
        self.frames.push(frame(name, sink));
        self.open.push((depth, own));
        Ok(true)
    }

    /// Enters a node that weighs so much with its children; `false`, and it is left out, if that is more than is left
    /// of its parent.
    pub(super) fn enter_whole(
        &mut self,
        depth: usize,
        name: &[u8],
        whole: Weight,
        sink: &mut Sink,
    ) -> Result<bool, Error> {
        self.leave(depth, sink)?;
        if self.open.last().is_some_and(|(_, rest)| *rest < whole) || self.open.len() == DEEPEST {
            return Ok(false);
        }
        if let Some((_, rest)) = self.open.last_mut() {
            *rest = rest.saturating_sub(whole);
        }
        self.enter(depth, name, whole, sink)
    }

    /// Leaves all nodes that are so deep; 0 ends the tree.
    pub(super) fn leave(&mut self, depth: usize, sink: &mut Sink) -> Result<(), Error> {
        while let Some((_, own)) = self.open.pop_if(|(open, _)| *open >= depth) {
            if !own.is_zero() {
                let mut stack = Stack(self.frames.clone());
                if self.leaf_first { stack.add_leaf_first(own, sink)? } else { stack.add(own, sink)? }
            }
            self.frames.pop();
        }
        Ok(())
    }
}
