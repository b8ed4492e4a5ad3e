//! Detects busy loops in asynchronous programs: the runtime polls and tracing spans are entered and left, but no work
//! is done.

use super::rule::Rule;
use super::{Finding, Verdict, join_names};
use crate::Error;
use crate::csv::Categories;
use crate::profile::{FrameId, Frames, Weight, Weights};

/// Role of a frame in a stack of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The asynchronous runtime, or tracing.
    Runtime,
    /// Code that runtimes and applications both call: kernel, C library, allocator.
    System,
    /// Any other function, which does the work of the application.
    Work,
}

/// Sums up the weight of stacks in a runtime, and of those among them in which the runtime calls no work.
pub(super) struct BusyLoopDetector<'a> {
    categories: &'a Categories,
    roles: Vec<Role>,
    total: Weight,
    in_runtime: Weight,
    idle: Weight,
    worst: Option<(Vec<FrameId>, Weight)>,
}

impl<'a> BusyLoopDetector<'a> {
    pub(super) fn new(categories: &'a Categories) -> Self {
        let zero = Weight::ZERO;
        Self { categories, roles: Vec::new(), total: zero, in_runtime: zero, idle: zero, worst: None }
    }

    pub(super) fn add(&mut self, frames: &Frames, stack: &[FrameId], weight: Weight) -> Result<(), Error> {
        for index in self.roles.len()..frames.len() {
            let name = frames.name(FrameId::from_index(index as u32));
            self.roles.push(match self.categories.categorize(name) {
                "async" | "tracing" => Role::Runtime,
                "libc" | "allocator" | "unknown" | "blocked" => Role::System,
                kernel if kernel.starts_with("kernel") => Role::System,
                _ => Role::Work,
            });
        }
        add(&mut self.total, weight)?;
        let innermost = stack.iter().rposition(|frame| self.roles[frame.index()] == Role::Runtime);
        let Some(innermost) = innermost else { return Ok(()) };
        let is_idle = stack[innermost..].iter().all(|frame| self.roles[frame.index()] != Role::Work);
        add(&mut self.in_runtime, weight)?;
        if is_idle {
            add(&mut self.idle, weight)?;
            if self.worst.as_ref().is_none_or(|(_, worst)| *worst < weight) {
                self.worst = Some((stack.to_vec(), weight));
            }
        }
        Ok(())
    }

    /// Returns the finding: the share of the weight in a runtime that does no work. The rule fails if this share
    /// exceeds the limit and more than half of the total weight is in a runtime.
    pub(super) fn finding(&self, number: usize, rule: &Rule, frames: &Frames) -> Finding {
        let dominates = self.in_runtime.as_f64() * 2.0 > self.total.as_f64();
        let percent =
            if self.in_runtime.is_zero() { 0.0 } else { 100.0 * self.idle.as_f64() / self.in_runtime.as_f64() };
        Finding {
            rule: number,
            subject: Vec::new(),
            percent,
            weights: Weights::plain(self.idle),
            verdict: if dominates && percent > rule.limit { Verdict::Failed } else { Verdict::Passed },
            worst: self.worst.as_ref().map(|(stack, weight)| (join_names(stack, frames), Weights::plain(*weight))),
        }
    }
}

/// Adds a weight to a sum.
fn add(sum: &mut Weight, weight: Weight) -> Result<(), Error> {
    *sum = sum.checked_add(weight).ok_or(Error::Overflow)?;
    Ok(())
}
