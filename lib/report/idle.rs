//! Weight of CPUs and threads that do no work: they are idle, or wait for threads and processes that do.
//!
//! It says nothing of what a program spends its time on, but often is most of the weight: of a whole system, or of threads
//! that were sampled whether or not they ran. It comes after work wherever functions are ranked.

use std::sync::LazyLock;

use regex::bytes::RegexSet;

use super::below::Activity;
use super::context::Context;
use super::work::Work;
use crate::Error;
use crate::markers;
use crate::own_code::Origins;
use crate::pattern_list::compile_list;
use crate::profile::is_at_least;
use crate::profile::{FrameId, Frames, Profile, Weight, Weights};
use crate::symbol_name::inherent::without_type_brackets;
use crate::symbol_name::kernel::is_kernel_entry;
use crate::symbol_name::module::{SystemModule, split_module, system_module};
use crate::tally::Charging;

/// The functions that are idle, and those that are work below them.
static FUNCTIONS: LazyLock<[RegexSet; 3]> = LazyLock::new(|| {
    let list = include_str!("idle.txt");
    ["= cpu\n", "= thread\n", "= work\n"].map(|heading| {
        let part = list.split_once(heading).map_or("", |(_, part)| part);
        compile_list(part.split("\n= ").next().unwrap_or(part))
    })
});

/// The functions of the kernel that stop a thread. Other functions of the kernel run.
static STOPPING: LazyLock<RegexSet> = LazyLock::new(|| {
    compile_list("^(__)?schedule\\w*$|^(context_switch|finish_task_switch\\S*|__switch_to\\w*|futex_wait\\w*|ep_poll)$")
});

/// The kinds of waits by which threads of pools wait for work, and others for a result.
const POOL_WAITS: [&str; 7] =
    ["condition", "semaphore", "lock or condition", "parked thread", "channel or scheduler", "events", "futex"];

/// The kinds of waits for threads and processes.
pub(super) const JOINS: [&str; 3] = ["thread join", "child process", "future or barrier"];

/// A thread that calls a wait in one of this many own functions from its start on waits for work.
const POOL_DEPTH: usize = 2;

/// The mark of idle rows, and the kind of what idle threads do.
pub(super) const MARK: &str = "idle";

/// Rows are idle, or only wait, if this part of their weight does.
const MOST: (u128, u128) = (1, 2);

/// The reason for which a CPU or a thread does no work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inactivity {
    /// There is none.
    Idle,
    /// A thread or process must end first.
    Join,
    /// Another thread must do something first, or there is no work: the stack does not tell.
    Wait,
}

/// The weight of a function in stacks that do no work.
#[derive(Clone, Copy, Debug, Default)]
struct FunctionWeights {
    /// The weight by kind of inactivity that counts for the function as an own one.
    own: [Weights; 3],
    /// Its self weight in idle stacks.
    itself: Weights,
    /// Its inclusive weight in stacks that are idle, or wait for the end of others.
    inclusive: Weights,
}

/// The rank of a row: larger ones come later, whatever their weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The row is work.
    Work,
    /// It waits for the end of threads and processes.
    Join,
    /// It is idle.
    Idle,
}

/// The weight of each function, by the index of its frame, in stacks that do no work.
#[derive(Debug, Default)]
pub(super) struct InactiveWeights {
    functions: Vec<FunctionWeights>,
    /// The weight of all stacks that are idle, or wait for the end of others.
    all: Weights,
}

/// The stacks of work of a profile, and the others.
#[derive(Debug)]
pub(super) struct SplitProfile {
    pub(super) busy: Profile,
    /// The stacks that are idle, or wait for the end of threads and processes.
    pub(super) inactive: Profile,
}

/// Tells stacks of work from others.
pub(super) struct InactivityFinder<'a> {
    origins: &'a Origins<'a>,
    work: &'a Work,
    charging: Charging,
    properties: Vec<Properties>,
}

/// The properties of a frame that follow from its name.
#[derive(Clone, Copy, Debug, Default)]
struct Properties {
    is_idle_cpu: bool,
    is_idle_thread: bool,
    is_work: bool,
    is_kernel: bool,
    stops: bool,
}

impl<'a> InactivityFinder<'a> {
    /// Classifies the frames of a profile.
    pub(super) fn new(frames: &Frames, origins: &'a Origins<'a>, work: &'a Work) -> Self {
        let properties = frames.iter().map(|(_, name)| {
            let (module, plain) = split_module(markers::strip_suffix(name));
            let plain = &without_type_brackets(plain);
            let is_kernel_module = module.and_then(system_module) == Some(SystemModule::Kernel);
            let [cpu, thread, work] = &*FUNCTIONS;
            Properties {
                is_idle_cpu: cpu.is_match(plain),
                is_idle_thread: thread.is_match(plain),
                is_work: work.is_match(plain),
                is_kernel: name.ends_with(markers::KERNEL) || is_kernel_entry(name) || is_kernel_module,
                stops: STOPPING.is_match(plain),
            }
        });
        Self { origins, work, charging: Charging::new(frames), properties: properties.collect() }
    }

    fn properties(&self, frame: FrameId) -> Properties {
        self.properties[frame.index()]
    }

    /// Returns why a CPU or a thread does no work in this stack; `None` if it does.
    pub(super) fn find(&self, frames: &Frames, stack: &[FrameId]) -> Option<Inactivity> {
        let functions = self.charging.own_frames(stack);
        if self.is_idle_in(functions, |known| known.is_idle_cpu) {
            return Some(Inactivity::Idle);
        }
        let state = stack.get(functions.len()).map(|state| frames.name(*state));
        let is_blocked = match Activity::from_state(state) {
            Activity::Blocked => true,
            Activity::Running => self.may_be_blocked(functions),
            Activity::Runnable | Activity::Unsampled => false,
        };
        // The root may be the name of a thread.
        let own = self.origins.place(functions).own.filter(|own| *own > 0 || self.origins.has_function_roots());
        let below = &functions[own.map_or(0, |own| own + 1)..];
        let kind = functions.first().and_then(|root| self.work.kind(own.map_or(*root, |own| functions[own]), below));
        // Threads of the kernel begin where a fork returns.
        let kind = kind.filter(|kind| *kind != "fork" || own.is_some());
        let is_idle = self.is_idle_in(below, |known| known.is_idle_thread);
        match (kind, own) {
            (Some(kind), _) if JOINS.contains(&kind) => is_blocked.then_some(Inactivity::Join),
            (Some(kind), _) if !POOL_WAITS.contains(&kind) => None,
            (_, None) if is_idle => Some(Inactivity::Idle),
            _ if !is_blocked => None,
            _ if is_idle => Some(Inactivity::Idle),
            (None, _) => None,
            (Some(_), own) if own.is_none_or(|own| self.is_pool(functions, own)) => Some(Inactivity::Idle),
            (Some(_), _) => Some(Inactivity::Wait),
        }
    }

    /// True for a stack that is idle, or waits for the end of threads and processes.
    pub(super) fn is_inactive(&self, frames: &Frames, stack: &[FrameId]) -> bool {
        matches!(self.find(frames, stack), Some(Inactivity::Idle | Inactivity::Join))
    }

    /// True if functions contain one that is idle, and no work below it.
    fn is_idle_in(&self, functions: &[FrameId], is_idle: impl Fn(Properties) -> bool) -> bool {
        let idle = functions.iter().rposition(|frame| is_idle(self.properties(*frame)));
        idle.is_some_and(|idle| functions[idle..].iter().all(|frame| !self.properties(*frame).is_work))
    }

    /// True if a thread without a state may not run: its leaf is no function of the kernel, or stops threads.
    fn may_be_blocked(&self, functions: &[FrameId]) -> bool {
        let has_kernel = functions.iter().any(|frame| self.properties(*frame).is_kernel);
        !has_kernel || functions.last().is_some_and(|leaf| self.properties(*leaf).stops)
    }

    /// True if a thread was started that has hardly run anything of the program but this function.
    fn is_pool(&self, functions: &[FrameId], own: usize) -> bool {
        let own = self.origins.find_own(&functions[..=own]);
        self.origins.is_in_thread(functions) && own.into_iter().filter(|is_own| *is_own).count() <= POOL_DEPTH
    }
}

impl InactiveWeights {
    /// Sums up the stacks of a profile that do no work.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn new(profile: &Profile, origins: &Origins<'_>, work: &Work) -> Result<Self, Error> {
        let finder = InactivityFinder::new(&profile.frames, origins, work);
        let mut inactive =
            Self { functions: vec![FunctionWeights::default(); profile.frames.len()], all: Weights::default() };
        let mut distinct = Vec::new();
        profile.for_each(|stack, weights| {
            let Some(inactivity) = finder.find(&profile.frames, stack) else { return Ok(()) };
            let own = stack[origins.place(stack).own.unwrap_or(0)];
            inactive.functions[own.index()].own[inactivity as usize].add(weights)?;
            if inactivity == Inactivity::Wait {
                return Ok(());
            }
            inactive.all.add(weights)?;
            if inactivity == Inactivity::Idle {
                let leaf = finder.charging.charged(stack);
                leaf.map_or(Ok(()), |leaf| inactive.functions[leaf.index()].itself.add(weights))?;
            }
            distinct.clear();
            distinct.extend_from_slice(stack);
            distinct.sort_unstable();
            distinct.dedup();
            distinct.iter().try_for_each(|frame| inactive.functions[frame.index()].inclusive.add(weights))
        })?;
        Ok(inactive)
    }

    /// Returns the weights of an own function, or a thread without one, in stacks that are idle, and in those that wait for the end
    /// of others.
    pub(super) fn of_own(&self, own: FrameId) -> [Weights; 2] {
        let [idle, join, _] = self.functions[own.index()].own;
        [idle, join]
    }

    /// Returns the rank of a change of an own function, or a thread without one, with these weights.
    pub(super) fn rank(&self, own: FrameId, weights: Weights) -> Rank {
        let [idle, join] = self.of_own(own);
        match () {
            () if is_most(idle, weights) => Rank::Idle,
            () if is_most(join, weights) => Rank::Join,
            () => Rank::Work,
        }
    }

    /// True if an own function with these weights mostly waits, for whatever reason.
    pub(super) fn waits(&self, own: FrameId, weights: Weights) -> bool {
        let mut all = Weights::default();
        let added = self.functions[own.index()].own.into_iter().try_for_each(|weights| all.add(weights));
        added.is_ok() && is_most(all, weights)
    }

    /// Returns the self weight of a function in idle stacks.
    pub(super) fn idle_leaf(&self, function: FrameId) -> Weights {
        self.functions[function.index()].itself
    }

    /// True if the self weight of a function is mostly that of idle stacks.
    pub(super) fn is_idle_leaf(&self, function: FrameId, weights: Weights) -> bool {
        is_most(self.functions[function.index()].itself, weights)
    }

    /// True if the inclusive weight of a function is mostly that of stacks that are idle, or wait for the end of others.
    pub(super) fn is_inactive_inclusively(&self, function: FrameId, weights: Weights) -> bool {
        is_most(self.functions[function.index()].inclusive, weights)
    }

    /// Splits a profile into the stacks of work, and those that are idle or wait for the end of others; `None` if these are all or
    /// none.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn split(&self, profile: &Profile, context: &Context<'_>) -> Result<Option<SplitProfile>, Error> {
        if self.all == Weights::default() || self.all == profile.total() {
            return Ok(None);
        }
        let finder = InactivityFinder::new(&profile.frames, context.origins, context.work);
        let mut parts = SplitProfile { busy: without_stacks(profile), inactive: without_stacks(profile) };
        profile.for_each(|stack, weights| {
            let is_inactive = finder.is_inactive(&profile.frames, stack);
            let part = if is_inactive { &mut parts.inactive } else { &mut parts.busy };
            part.add(stack, weights)
        })?;
        Ok(Some(parts))
    }
}

/// Returns a profile without stacks that has the frames of another, with the same IDs.
pub(super) fn without_stacks(profile: &Profile) -> Profile {
    let mut empty = Profile::new(profile.is_differential());
    empty.frames.intern_all(&profile.frames);
    empty
}

/// True if a part is most of weights; in a comparison, most of their difference.
fn is_most(part: Weights, whole: Weights) -> bool {
    let [part, whole] = match whole.before.is_zero() {
        true => [part, whole].map(|weights| (weights.after, true)),
        false => [part, whole].map(|weights| (weights.difference(), weights.after >= weights.before)),
    };
    part.1 == whole.1 && part.0 > Weight::ZERO && is_at_least(part.0.millionths(), MOST, whole.0.millionths())
}
