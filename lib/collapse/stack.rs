//! Builds stacks frame by frame, or as paths in a tree.

use super::sink::Sink;
use crate::markers;

use crate::Error;
use crate::profile::{FrameId, Weight, Weights};

/// Maximum depth of a stack in formats whose stacks share prefixes: a small file could contain very many frames.
pub(super) const MAX_SHARED_DEPTH: usize = 1024;

/// Maximum number of frames of a stack: a small compressed file could be one huge stack.
pub(super) const MAX_STACK_LENGTH: usize = 1 << 20;

/// Interns a name; an empty one becomes `[unknown]`.
pub(super) fn intern_frame(name: &[u8], sink: &mut Sink) -> FrameId {
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

    /// Pushes a frame. Beyond [`MAX_STACK_LENGTH`] frames, the rest becomes one `[truncated]`.
    pub(super) fn push(&mut self, name: &[u8], sink: &mut Sink) {
        match self.0.len() {
            ..MAX_STACK_LENGTH => self.0.push(intern_frame(name, sink)),
            MAX_STACK_LENGTH => self.0.push(sink.intern(markers::TRUNCATED)),
            _ => {}
        }
    }

    pub(super) fn frames(&self) -> &[FrameId] {
        &self.0
    }

    /// Returns the frames, which were pushed leaf first, in the order from the root.
    pub(super) fn into_root_first(mut self) -> Vec<FrameId> {
        self.0.reverse();
        self.0
    }

    pub(super) fn extend(&mut self, frames: &[FrameId]) {
        self.0.extend_from_slice(frames);
    }

    /// Adds the stack, whose frames were pushed leaf first, and clears it. A stack of weight zero is not added.
    pub(super) fn add_leaf_first(&mut self, weight: Weight, sink: &mut Sink) -> Result<(), Error> {
        self.0.reverse();
        self.add(weight, sink)
    }

    /// Adds the stack, whose frames were pushed root first, and clears it. A stack of weight zero is not added.
    pub(super) fn add(&mut self, weight: Weight, sink: &mut Sink) -> Result<(), Error> {
        let added = match (self.0.is_empty(), weight.is_zero()) {
            (true, _) => Ok(()),
            (false, true) => {
                sink.note_weightless();
                Ok(())
            }
            (false, false) => sink.add(&self.0, Weights::plain(weight)),
        };
        self.0.clear();
        added
    }
}

/// A call tree that is read in preorder. The self weight of a node is added when it is left.
#[derive(Default)]
pub(super) struct CallTree {
    frames: Vec<FrameId>,
    open: Vec<(usize, Weight)>,
    leaf_first: bool,
}

impl CallTree {
    /// Returns an inverted tree, whose roots are leaves of stacks and whose children are callers.
    pub(super) fn new_inverted() -> Self {
        Self { leaf_first: true, ..Self::default() }
    }

    /// Enters a node with self weight `own`, as a child of the last node at a smaller depth. Returns false and leaves
    /// it out if the tree is too deep.
    pub(super) fn enter(&mut self, depth: usize, name: &[u8], own: Weight, sink: &mut Sink) -> Result<bool, Error> {
        self.leave(depth, sink)?;
        if self.open.len() == MAX_SHARED_DEPTH {
            return Ok(false);
        }
        self.frames.push(intern_frame(name, sink));
        self.open.push((depth, own));
        Ok(true)
    }

    /// Enters a node with inclusive weight `whole`. Returns false and leaves it out if its parent has less weight left,
    /// or if the tree is too deep.
    pub(super) fn enter_inclusive(
        &mut self,
        depth: usize,
        name: &[u8],
        whole: Weight,
        sink: &mut Sink,
    ) -> Result<bool, Error> {
        self.leave(depth, sink)?;
        if self.open.last().is_some_and(|(_, rest)| *rest < whole) {
            return Ok(false);
        }
        self.enter_rounded(depth, name, whole, sink)
    }

    /// Enters a node with inclusive weight `whole`, which is rounded: if its parent has less weight left, the parent
    /// gets none. Returns false and leaves the node out if the tree is too deep.
    pub(super) fn enter_rounded(
        &mut self,
        depth: usize,
        name: &[u8],
        whole: Weight,
        sink: &mut Sink,
    ) -> Result<bool, Error> {
        self.leave(depth, sink)?;
        if self.open.len() == MAX_SHARED_DEPTH {
            return Ok(false);
        }
        if let Some((_, rest)) = self.open.last_mut() {
            *rest = rest.saturating_sub(whole);
        }
        self.enter(depth, name, whole, sink)
    }

    /// Leaves all nodes at `depth` or deeper; depth 0 ends the tree.
    pub(super) fn leave(&mut self, depth: usize, sink: &mut Sink) -> Result<(), Error> {
        while let Some((_, own)) = self.open.pop_if(|(open, _)| *open >= depth) {
            if own.is_zero() {
                sink.note_weightless();
            } else {
                let mut stack = Stack(self.frames.clone());
                if self.leaf_first { stack.add_leaf_first(own, sink)? } else { stack.add(own, sink)? }
            }
            self.frames.pop();
        }
        Ok(())
    }
}
