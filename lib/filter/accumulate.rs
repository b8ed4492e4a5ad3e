//! Filters stacks while they are read.

use super::frame_table::FrameTable;
use super::select::Selection;
use super::sorted_stacks::{SortedStacks, StackWriter};
use super::{Filter, Filtered};
use crate::Error;
use crate::folded::{LineKind, StackSink};
use crate::markers::FLATTENED;
use crate::profile::{Batch, FrameId, Frames, Profile, Weights};

/// The kept stacks.
pub(super) enum Kept<'a> {
    /// Sorted stacks: all that were read are in order.
    Sorted(SortedStacks),
    /// Only the last of many sorted stacks: the input will be read again.
    TooMany(SortedStacks),
    /// Nothing, since many stacks were in order and one was not: the input will be read again.
    OutOfOrder,
    /// Stacks in any order, without the names of their frames.
    Any(Box<Profile>),
    /// Writes stacks at once: they were in order when the input was read the first time.
    Writer(StackWriter<'a>),
}

/// Applies a filter to stacks while they are read.
pub(super) struct Accumulator<'f, 'w> {
    filter: &'f mut Filter,
    table: FrameTable,
    /// The frames of the last stack, renamed.
    renamed: Vec<FrameId>,
    /// Those that are kept.
    kept_frames: Vec<FrameId>,
    /// The state after each frame of the last stack that was read.
    path: Vec<Step>,
    /// The state after each of its first frames. Only of selected stacks the frames are kept.
    kept_path: Vec<KeptStep>,
    stack: Vec<FrameId>,
    batch: Batch,
    /// Largest size of sorted stacks in memory, in bytes, if the input can be read again.
    max_sorted: Option<usize>,
    kept: Kept<'w>,
    /// The kind of the input, if it has stacks.
    kind: Option<LineKind>,
    /// True if a stack was selected by its root and focus.
    has_selected: bool,
    dropped: Weights,
    /// The part of it that has no frame left.
    emptied: Weights,
    total: Weights,
}

#[derive(Clone, Copy)]
struct Step {
    selection: Selection,
    /// End in [`Accumulator::renamed`].
    end: usize,
}

#[derive(Clone, Copy, Default)]
struct KeptStep {
    is_ignored: bool,
    /// End in [`Accumulator::kept_frames`].
    end: usize,
}

impl<'f, 'w> Accumulator<'f, 'w> {
    pub(super) fn new(filter: &'f mut Filter, table: FrameTable, kept: Kept<'w>, max_sorted: Option<usize>) -> Self {
        Self {
            filter,
            table,
            renamed: Vec::new(),
            kept_frames: Vec::new(),
            path: Vec::new(),
            kept_path: Vec::new(),
            stack: Vec::new(),
            batch: Batch::default(),
            max_sorted,
            kept,
            kind: None,
            has_selected: false,
            dropped: Weights::default(),
            emptied: Weights::default(),
            total: Weights::default(),
        }
    }

    /// Adds a frame of the input to the path.
    fn push_frame(&mut self, frame: FrameId) {
        let mut selection = self.path.last().map(|step| step.selection);
        let is_root = self.path.is_empty();
        let range = self.table.new_ids(frame);
        for number in range.clone() {
            let id = self.table.ids[number];
            let id = match is_root && number == range.start {
                true => self.filter.names.rename_root(&mut self.table.frames, id),
                false => id,
            };
            selection = Some(self.filter.select.advance(&self.table.frames, selection, id));
            self.renamed.push(id);
        }
        // A name has at least one part.
        self.path.extend(selection.map(|selection| Step { selection, end: self.renamed.len() }));
    }

    /// Finds out which frames of the last stack are kept, if the stack is not ignored.
    fn keep_frames(&mut self) {
        let KeptStep { mut is_ignored, .. } = self.kept_path.last().copied().unwrap_or_default();
        for number in self.kept_path.len()..self.path.len() {
            let start = number.checked_sub(1).map_or(0, |before| self.path[before].end);
            for id in &self.renamed[start..self.path[number].end] {
                is_ignored |= self.filter.select.ignores(&self.table.frames, *id);
                if self.filter.reshape.keeps_frame(&self.table.frames, *id) {
                    self.kept_frames.push(*id);
                }
            }
            self.kept_path.push(KeptStep { is_ignored, end: self.kept_frames.len() });
        }
    }

    /// Adds the kept frames of the last stack; returns `false` if none is left.
    fn add_kept(&mut self, weights: Weights) -> Result<bool, Error> {
        self.stack.clone_from(&self.kept_frames);
        self.filter.reshape.cut_stack(&self.table.frames, &mut self.stack);
        let Some(leaf) = self.stack.last_mut() else { return Ok(false) };
        *leaf = self.table.frames.as_leaf(*leaf);
        self.add_stack(weights)?;
        Ok(true)
    }

    /// Adds the stack that tells what the weights of all others are, whatever the filter selects.
    fn add_flattened(&mut self) -> Result<(), Error> {
        self.path.clear();
        self.stack.clear();
        self.stack.push(self.table.frames.intern(FLATTENED));
        self.add_stack(Weights::default())
    }

    fn add_stack(&mut self, weights: Weights) -> Result<(), Error> {
        let is_in_order = match &mut self.kept {
            Kept::Sorted(stacks) | Kept::TooMany(stacks) => stacks.add(&self.table.frames, &self.stack, weights)?,
            Kept::Writer(writer) => match writer.add(&self.table.frames, &self.stack, weights)? {
                true => true,
                false => return Err(Error::Invalid("an input changed while it was read".to_owned())),
            },
            Kept::OutOfOrder => true,
            Kept::Any(_) => false,
        };
        if is_in_order {
            self.limit_memory()?
        } else {
            self.add_in_any_order(weights)?
        }
        Ok(())
    }

    /// Forgets stacks that can be read again, if they are many.
    fn limit_memory(&mut self) -> Result<(), Error> {
        match (&mut self.kept, self.max_sorted) {
            (Kept::TooMany(stacks), _) => stacks.forget(),
            (Kept::Sorted(stacks), Some(max)) if stacks.size() > max => {
                stacks.forget();
                self.kept = Kept::TooMany(std::mem::take(stacks));
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a stack that may be before those that were added.
    fn add_in_any_order(&mut self, weights: Weights) -> Result<(), Error> {
        if let Kept::TooMany(_) = self.kept {
            self.kept = Kept::OutOfOrder;
            return Ok(());
        }
        if let Kept::Sorted(stacks) = &mut self.kept {
            let stacks = std::mem::take(stacks);
            self.kept = Kept::Any(Box::new(stacks.into_profile(&self.table.frames, self.is_differential())?));
        }
        if let Kept::Any(profile) = &mut self.kept {
            self.batch.push(&self.stack, weights, &self.table.frames);
            if self.batch.is_full() {
                profile.add_batch(&mut self.batch)?;
            }
        }
        Ok(())
    }

    fn is_differential(&self) -> bool {
        self.kind == Some(LineKind::Differential)
    }

    /// Returns the result after the last stack.
    pub(super) fn finish(mut self) -> Result<Filtered<'w>, Error> {
        if let Kept::Any(profile) = &mut self.kept {
            profile.add_batch(&mut self.batch)?;
        }
        let Self { table, kept, kind, has_selected, total, dropped, emptied, .. } = self;
        Ok(Filtered { table, kept, kind, has_selected, total, dropped, emptied })
    }
}

impl StackSink for Accumulator<'_, '_> {
    fn frames(&mut self) -> &mut Frames {
        &mut self.table.read
    }

    fn begin(&mut self, kind: LineKind) {
        self.kind = Some(kind);
        if let Kept::Any(profile) = &mut self.kept {
            **profile = Profile::new(kind == LineKind::Differential);
        }
    }

    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        if self.table.read.is_flattened_mark(stack, weights) {
            return self.add_flattened();
        }
        self.total.add(weights)?;
        self.path.truncate(shared);
        // The mark of flattened differences leaves no path.
        let shared = self.path.len();
        self.renamed.truncate(self.path.last().map_or(0, |step| step.end));
        self.kept_path.truncate(shared);
        self.kept_frames.truncate(self.kept_path.last().map_or(0, |step| step.end));
        self.table.rename_new_frames(&self.filter.names, self.filter.split.as_ref());
        stack[shared..].iter().for_each(|frame| self.push_frame(*frame));
        if self.path.last().is_some_and(|step| step.selection.is_selected()) {
            self.has_selected = true;
            self.keep_frames();
            if !self.kept_path.last().is_some_and(|step| step.is_ignored) {
                if self.add_kept(weights)? {
                    return Ok(());
                }
                self.emptied.add(weights)?;
            }
        }
        self.dropped.add(weights)
    }
}
