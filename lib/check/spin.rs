//! The signature of a busy loop in an asynchronous program: the runtime polls, spans are entered and left, and nothing is
//! done.

use super::rule::Rule;
use super::{Finding, Verdict};
use crate::Error;
use crate::csv::Categories;
use crate::profile::{FrameId, Frames, Weight, Weights};

/// What a frame is in this respect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The runtime, or what traces it.
    Runtime,
    /// What any of them calls: the kernel, the C library, the allocator.
    Plumbing,
    /// What the program is for.
    Work,
}

/// Adds up stacks in a runtime, and those of them without work beneath it.
pub(super) struct Spin<'a> {
    categories: &'a Categories,
    roles: Vec<Role>,
    total: Weight,
    in_runtime: Weight,
    idle: Weight,
    worst: Option<(Vec<FrameId>, Weight)>,
}

impl<'a> Spin<'a> {
    pub(super) fn new(categories: &'a Categories) -> Self {
        let zero = Weight::ZERO;
        Self { categories, roles: Vec::new(), total: zero, in_runtime: zero, idle: zero, worst: None }
    }

    pub(super) fn add(&mut self, frames: &Frames, stack: &[FrameId], weight: Weight) -> Result<(), Error> {
        for index in self.roles.len()..frames.len() {
            let name = frames.name(FrameId::from_index(index as u32));
            self.roles.push(match self.categories.of(name) {
                "async" | "tracing" => Role::Runtime,
                "libc" | "allocator" | "unknown" | "blocked" => Role::Plumbing,
                kernel if kernel.starts_with("kernel") => Role::Plumbing,
                _ => Role::Work,
            });
        }
        let role = |frame: &FrameId| self.roles[frame.index()];
        add(&mut self.total, weight)?;
        let Some(innermost) = stack.iter().rposition(|frame| role(frame) == Role::Runtime) else { return Ok(()) };
        let is_idle = stack[innermost..].iter().all(|frame| role(frame) != Role::Work);
        add(&mut self.in_runtime, weight)?;
        if is_idle {
            add(&mut self.idle, weight)?;
            if self.worst.as_ref().is_none_or(|(_, worst)| *worst < weight) {
                self.worst = Some((stack.to_vec(), weight));
            }
        }
        Ok(())
    }

    /// It is one if most of all is in the runtime, and of that more than the limit does nothing.
    pub(super) fn finding(&self, number: usize, rule: &Rule, frames: &Frames) -> Finding {
        let dominates = self.in_runtime.as_f64() * 2.0 > self.total.as_f64();
        let percent =
            if self.in_runtime.is_zero() { 0.0 } else { 100.0 * self.idle.as_f64() / self.in_runtime.as_f64() };
        let text = |stack: &[FrameId]| stack.iter().map(|frame| frames.name(*frame)).collect::<Vec<_>>().join(&b';');
        Finding {
            rule: number,
            subject: Vec::new(),
            percent,
            weights: Weights::plain(self.idle),
            verdict: if dominates && percent > rule.limit { Verdict::Broken } else { Verdict::Kept },
            worst: self.worst.as_ref().map(|(stack, weight)| (text(stack), Weights::plain(*weight))),
        }
    }
}

fn add(sum: &mut Weight, weight: Weight) -> Result<(), Error> {
    *sum = sum.checked_add(weight).ok_or(Error::Overflow)?;
    Ok(())
}
