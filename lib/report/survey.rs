//! One pass over a profile: weights by function, by the program's own functions, by kind of code, thread and state.

use std::collections::BTreeMap;

use super::lost::Lost;
use super::missing_callers::{OutermostCallers, find_outermost_callers};
use crate::Error;
use crate::markers;
use crate::own_code::{Origin, Origins};
use crate::profile::is_at_least;
use crate::profile::{FrameId, Profile, SortedStack, Weights};
use crate::tally::Charging;

/// The weights of a profile, summed up.
#[derive(Default)]
pub(super) struct Survey<'a> {
    /// The total weight.
    pub(super) total: Weights,
    /// The number of distinct stacks.
    pub(super) stacks: usize,
    /// The weight of the stacks of each depth, without thread states.
    pub(super) depths: BTreeMap<usize, Weights>,
    /// The weight of stacks that something is wrong with.
    pub(super) quality: Quality,
    /// The self weight by kind of code.
    pub(super) kinds: BTreeMap<&'a str, Weights>,
    /// The weight by thread state; `None` for a thread that runs.
    pub(super) states: BTreeMap<Option<FrameId>, Weights>,
    /// The weight by root frame, usually a thread or a command.
    pub(super) roots: BTreeMap<FrameId, Weights>,
    /// The weights of each function, by the index of its frame.
    pub(super) functions: Vec<Function>,
    /// The weights of the program's own functions.
    pub(super) own: BTreeMap<FrameId, OwnFunction>,
}

/// The weight of stacks that are lost or incomplete.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quality {
    /// Samples that were dropped while recording.
    pub(super) lost: Weights,
    /// Stacks that were cut before their root.
    pub(super) truncated: Weights,
    /// Stacks that certainly begin in the middle of the program.
    pub(super) without_callers: Weights,
    /// Other stacks whose outermost callers are code without a symbol, or missing.
    pub(super) unknown_callers: Weights,
    /// Stacks whose leaf has no symbol.
    pub(super) unknown: Weights,
    /// Time for which no stack was taken.
    pub(super) unsampled: Weights,
    /// Stacks in an interpreter, if no function of a script has a frame.
    pub(super) without_scripts: Weights,
    /// Waits of threads in the scheduler of Go, which have left the stacks of goroutines that wait.
    pub(super) go_scheduler: Weights,
}

/// The weights of a function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Function {
    /// The weight of stacks in which it is the leaf.
    pub(super) self_weights: Weights,
    /// The weight of stacks that contain it.
    pub(super) inclusive: Weights,
    /// The largest part of the inclusive weight that goes to one callee.
    largest_callee: Weights,
    /// Number of occurrences in the path.
    occurrences: u32,
    /// True if it is anywhere outside of the kernel and of functions that call nothing of the program.
    pub(super) is_open: bool,
}

impl Function {
    /// True if nearly all of its weight is that of one callee, so that it says nothing beyond it.
    pub(super) fn is_passage(&self) -> bool {
        is_at_least(self.largest_callee.after.millionths(), (19, 20), self.inclusive.after.millionths())
    }
}

/// A function of the program, with the libraries and the kernel that run on its behalf.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnFunction {
    /// Its weight and theirs.
    pub(super) weights: Weights,
    /// True if this is the name of threads without an own function.
    pub(super) is_thread: bool,
    /// Its weight in a thread state: blocked, for example.
    waited: Weights,
}

impl OwnFunction {
    /// True for threads without an own function that mostly wait, as those of a runtime do for work.
    pub(super) fn is_idle_thread(&self) -> bool {
        self.is_thread && is_at_least(self.waited.after.millionths(), (1, 2), self.weights.after.millionths())
    }
}

impl<'a> Survey<'a> {
    /// Sums up a profile.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn new(profile: &Profile, origins: &Origins<'a>) -> Result<Self, Error> {
        let functions = vec![Function::default(); profile.frames.len()];
        let mut survey = Self { total: profile.total(), stacks: profile.len(), functions, ..Self::default() };
        let mut path = Path::default();
        let charging = Charging::new(&profile.frames);
        profile.for_each_sorted(|stack| {
            path.pop_to(stack.shared, &mut survey.functions)?;
            path.push(&stack, &mut survey.functions)?;
            survey.add_stack(profile, origins, &charging, stack.frames, stack.weights)
        })?;
        path.pop_to(0, &mut survey.functions)?;
        Ok(survey)
    }

    /// Adds the samples that were lost. The totals of a comparison are those of what was measured.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn add_lost(&mut self, lost: Lost, is_differential: bool) -> Result<(), Error> {
        self.quality.lost = lost.weights;
        let Some(frame) = lost.frame.filter(|_| !is_differential) else { return Ok(()) };
        self.states.insert(Some(frame), lost.weights);
        self.total.add(lost.weights)
    }

    fn add_stack(
        &mut self,
        profile: &Profile,
        origins: &Origins<'a>,
        charging: &Charging,
        stack: &[FrameId],
        weights: Weights,
    ) -> Result<(), Error> {
        let Some(leaf) = charging.charged(stack) else { return Ok(()) };
        let state = charging.state(stack);
        let place = origins.place(stack);
        for frame in &stack[..place.open] {
            self.functions[frame.index()].is_open = true;
        }
        let is_own = place.own.is_some_and(|own| stack[own] == leaf);
        self.functions[leaf.index()].self_weights.add(weights)?;
        self.kinds.entry(origins.kind(state.unwrap_or(leaf), &place, is_own)).or_default().add(weights)?;
        self.states.entry(state).or_default().add(weights)?;
        self.roots.entry(stack[0]).or_default().add(weights)?;
        self.depths.entry(stack.len() - usize::from(state.is_some())).or_default().add(weights)?;
        self.quality.add(profile, origins, stack, leaf, weights)?;
        if place.is_without_scripts {
            self.quality.without_scripts.add(weights)?;
        }
        let own = self.own.entry(stack[place.own.unwrap_or(0)]).or_default();
        own.is_thread |= place.own.is_none() && origins.is_in_thread(stack);
        if state.is_some() {
            own.waited.add(weights)?;
        }
        own.weights.add(weights)
    }
}

impl Quality {
    fn add(
        &mut self,
        profile: &Profile,
        origins: &Origins<'_>,
        stack: &[FrameId],
        leaf: FrameId,
        weights: Weights,
    ) -> Result<(), Error> {
        let names = stack.iter().map(|frame| profile.frames.name(*frame));
        if names.clone().take(2).any(|name| name == markers::TRUNCATED) {
            self.truncated.add(weights)?;
        }
        match find_outermost_callers(profile, origins, stack) {
            OutermostCallers::Whole => {}
            OutermostCallers::Missing => self.without_callers.add(weights)?,
            OutermostCallers::Unknown => self.unknown_callers.add(weights)?,
        }
        if origins.origin(leaf) == Origin::Unknown {
            self.unknown.add(weights)?;
        }
        let mut states = names.clone().rev().take_while(|name| markers::is_thread_state(name)).peekable();
        let waits = states.peek().is_some_and(|state| *state == markers::OFF_CPU);
        if waits && names.clone().any(|name| name == b"runtime.schedule") {
            self.go_scheduler.add(weights)?;
        }
        if states.any(|state| state == markers::UNSAMPLED) {
            self.unsampled.add(weights)?;
        }
        Ok(())
    }
}

/// The frames of the last stack, with the weight added since each was pushed.
#[derive(Default)]
struct Path(Vec<(FrameId, Weights)>);

impl Path {
    fn push(&mut self, stack: &SortedStack<'_>, functions: &mut [Function]) -> Result<(), Error> {
        for frame in &stack.frames[stack.shared..] {
            functions[frame.index()].occurrences += 1;
            self.0.push((*frame, Weights::default()));
        }
        self.0.last_mut().map_or(Ok(()), |(_, leaf)| leaf.add(stack.weights))
    }

    /// Pops frames until `depth` are left, and adds their weights to their functions and to their callers.
    fn pop_to(&mut self, depth: usize, functions: &mut [Function]) -> Result<(), Error> {
        while self.0.len() > depth {
            let Some((frame, weights)) = self.0.pop() else { break };
            let function = &mut functions[frame.index()];
            function.occurrences -= 1;
            if function.occurrences == 0 {
                function.inclusive.add(weights)?;
            }
            if let Some((caller, sum)) = self.0.last_mut() {
                sum.add(weights)?;
                let largest = &mut functions[caller.index()].largest_callee;
                if weights.after > largest.after {
                    *largest = weights;
                }
            }
        }
        Ok(())
    }
}
