//! What the threads report of their blocks, taken in the order of the blocks.

use std::collections::BTreeMap;

use super::Remarks;
use super::sink::Runs;
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::markers;
use crate::output::Output;
use crate::profile::{Weight, Weights};

/// One input's blocks.
pub(super) struct Log<'a> {
    name: String,
    read: usize,
    lines: u64,
    next: u64,
    /// How many lines or other things were malformed.
    complaints: u64,
    waiting: BTreeMap<u64, (Remarks, Option<Runs>)>,
    diagnostics: &'a mut Diagnostics,
    in_order: Option<&'a mut dyn TakesRuns>,
}

/// Where the samples of a block go, if they are wanted in order.
trait TakesRuns: Send {
    fn take(&mut self, runs: &Runs) -> Result<(), Error>;
}

impl<'a> Log<'a> {
    pub(super) fn new(name: String, diagnostics: &'a mut Diagnostics, in_order: Option<&'a mut InOrder<'_>>) -> Self {
        let in_order = in_order.map(|in_order| in_order as &mut dyn TakesRuns);
        Self { name, read: 0, lines: 0, next: 0, complaints: 0, waiting: BTreeMap::new(), diagnostics, in_order }
    }

    /// Tells how much of the input was parsed so far, to whoever watches.
    pub(super) fn progress(&mut self, parsed: usize) {
        self.read += parsed;
        let Self { diagnostics, name, read, .. } = self;
        diagnostics.show_progress(|| format!("{name}: {} MB read", *read / 1_000_000));
    }

    /// A line, by its number, that is not of the format's form.
    pub(super) fn malformed(&mut self, line: u64, what: &str) -> Result<(), Error> {
        self.complaints += 1;
        self.diagnostics.malformed(&self.name, line, what)
    }

    /// So many other things are wrong, of which the caller tells.
    pub(super) fn complain(&mut self, count: u64) {
        self.complaints += count;
    }

    /// Says that the input has no stacks, unless it was said why.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if all must be well-formed.
    pub(super) fn tell_nothing(&mut self) -> Result<(), Error> {
        let what = "there are no stacks in it";
        if self.complaints > 0 {
            return Ok(());
        }
        if self.is_strict() {
            return Err(Error::Unreadable { name: self.name.clone(), what: what.to_owned() });
        }
        self.warn(what);
        Ok(())
    }

    /// Whether the first thing that is wrong is to be an error.
    pub(super) fn is_strict(&self) -> bool {
        self.diagnostics.is_strict()
    }

    /// Something worth knowing of this input.
    pub(super) fn warn(&mut self, what: &str) {
        self.diagnostics.warn(&format!("{}: {what}", self.name));
    }

    /// Something for those who asked with `-v`.
    pub(super) fn note(&mut self, what: &str) {
        self.diagnostics.note(&format!("{}: {what}", self.name));
    }

    /// Takes what there is to say of a block, and tells all those whose turn it is.
    pub(super) fn add(&mut self, number: u64, remarks: Remarks, runs: Option<Runs>) -> Result<(), Error> {
        self.waiting.insert(number, (remarks, runs));
        while let Some((remarks, runs)) = self.waiting.remove(&self.next) {
            for (line, what) in remarks.malformed {
                self.malformed(self.lines + line, what)?;
            }
            if let (Some(in_order), Some(runs)) = (&mut self.in_order, runs) {
                in_order.take(&runs)?;
            }
            self.lines += remarks.lines;
            self.next += 1;
        }
        Ok(())
    }
}

/// Writes samples in the order of the input, equal neighbours added up.
pub(super) struct InOrder<'a> {
    output: &'a mut Output,
    stack: Vec<u8>,
    weights: Weights,
}

impl<'a> InOrder<'a> {
    pub(super) fn new(output: &'a mut Output) -> Self {
        Self { output, stack: Vec::new(), weights: Weights::default() }
    }

    /// Writes what is left, and how much was lost.
    pub(super) fn finish(mut self, lost: Weight) -> Result<(), Error> {
        self.write()?;
        if !lost.is_zero() {
            self.stack = markers::LOST.to_vec();
            self.weights = Weights::plain(lost);
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), Error> {
        if self.stack.is_empty() {
            return Ok(());
        }
        let mut line = std::mem::take(&mut self.stack);
        line.push(b' ');
        self.weights.after.write_to(&mut line);
        line.push(b'\n');
        self.output.write_with(|out| out.write_all(&line))
    }
}

impl TakesRuns for InOrder<'_> {
    fn take(&mut self, runs: &Runs) -> Result<(), Error> {
        for (stack, weights) in runs.iter() {
            if stack == self.stack {
                self.weights.add(weights)?;
            } else {
                self.write()?;
                self.stack.clear();
                self.stack.extend_from_slice(stack);
                self.weights = weights;
            }
        }
        Ok(())
    }
}
