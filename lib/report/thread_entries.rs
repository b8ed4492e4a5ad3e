//! The functions with which threads begin, as far as stacks show them for certain.
//!
//! A profiler that follows frame pointers leaves out the caller of a function that keeps none, and cuts a stack where a
//! pointer is wrong. Any function of the program may then be the outermost of a stack.

use std::cmp::Reverse;
use std::convert::Infallible;

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use super::context::Context;
use super::measure::is_at_least;
use super::thread_start::Start;
use crate::profile::{FrameId, Weights};

type Map<K, V> = HashMap<K, V, FxBuildHasher>;
type Set<K> = HashSet<K, FxBuildHasher>;

/// Stacks whose callers are missing leave entries certain up to this part of those of threads.
const MOST_CUT: (u128, u128) = (1, 20);

/// Entries are told apart unless stacks without a known one have more than this part of the weight.
const MOST_UNKNOWN: (u128, u128) = (1, 4);

/// The same if only one entry is known, which may be that of all.
const MOST_UNKNOWN_OF_ONE: (u128, u128) = (1, 20);

/// The function with which a thread begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Entry {
    /// This function of the program.
    Function(FrameId),
    /// The thread runs no function of the program.
    None,
    /// One of several, or another function that the stack does not show.
    Unknown,
}

/// The stacks of which a function of the program is the outermost.
#[derive(Clone, Copy, Debug, Default)]
struct Outermost {
    /// In millionths, as all weights here.
    weight: u128,
    /// The weight of stacks in which it calls other own functions.
    calling: u128,
    /// The weight of stacks in which it calls other functions outside of the kernel.
    passing: u128,
}

/// The outermost own functions of the stacks of threads of one name, and those that they call.
#[derive(Debug, Default)]
struct Calls {
    outermost: Map<(Start, FrameId), Outermost>,
    /// The own functions that others call, with the outermost one of such stacks; `None` if there are several.
    called: Map<(Start, FrameId), Option<FrameId>>,
    /// The outermost functions of scripts.
    scripts: Set<FrameId>,
    /// The weight of stacks that have no function of the program, by their start.
    others: Map<Start, u128>,
    /// The weight of stacks of threads with all of their start, and of those without.
    whole: u128,
    cut: u128,
    /// The weight of stacks that show no start, by the function after the cut and their outermost own function.
    without_start: Map<(Option<FrameId>, Option<FrameId>), u128>,
}

impl Calls {
    fn add(&mut self, context: &Context<'_>, stack: &[FrameId], weights: Weights) {
        let weight = weights.after.millionths();
        let own = context.own_on_path(stack);
        if own.first() == Some(&0) {
            // The root is no thread.
            return;
        }
        let first = own.first().map(|index| stack[*index]);
        let Some(found) = Start::find(context, stack, own.first().copied()) else {
            if first.is_some() || !is_of_no_program(context, stack) {
                let native = Start::native_after_cut(context, stack).copied();
                add(self.without_start.entry((native, first)).or_default(), weight);
                let is_marked = stack.get(1).is_some_and(|mark| context.origins.is_marker(*mark));
                add(&mut self.cut, if is_marked { 0 } else { weight });
            }
            return;
        };
        let start = found.start;
        if !start.is_single() {
            add(if found.is_whole { &mut self.whole } else { &mut self.cut }, weight);
        }
        let Some((first, inner)) = own.split_first() else {
            return add(self.others.entry(start).or_default(), weight);
        };
        let below = stack.get(first + 1);
        let is_passing = below.is_some_and(|frame| !context.origins.is_kernel(*frame) && !context.is_state(*frame));
        let first = stack[*first];
        if context.origins.has_script_file(first) {
            self.scripts.insert(first);
        }
        let mut is_calling = false;
        for inner in inner.iter().map(|index| stack[*index]).filter(|inner| *inner != first) {
            is_calling = true;
            let caller = self.called.entry((start, inner)).or_insert(Some(first));
            *caller = caller.filter(|caller| *caller == first);
        }
        let sums = self.outermost.entry((start, first)).or_default();
        add(&mut sums.weight, weight);
        add(&mut sums.calling, if is_calling { weight } else { 0 });
        add(&mut sums.passing, if is_passing { weight } else { 0 });
    }

    /// Returns the function of the only thread with each start that only one has. It is `main`, or of functions that are no scripts
    /// of their own the one with the most weight that calls others, if it calls nearly all.
    fn mains(&self, context: &Context<'_>) -> Map<Start, FrameId> {
        let ranks = context.ranks();
        let is_single = |key: &&(Start, FrameId)| key.0.is_single() && !self.is_script(context, key.1);
        let mut mains = Map::<Start, ((bool, bool, u128, Reverse<u32>), FrameId)>::default();
        for key in self.outermost.keys().filter(is_single) {
            let (sums, function) = (self.outermost[key], key.1);
            let is_main = matches!(context.profile.frames.name(function), b"main" | b"main.main");
            let rank = (is_main, sums.calling > 0, sums.weight, Reverse(ranks[function.index()]));
            let main = mains.entry(key.0).or_insert((rank, function));
            *main = (*main).max((rank, function));
        }
        mains.retain(|start, ((is_main, ..), main)| {
            let functions = self.outermost.iter().filter(|(key, _)| key.0 == *start && is_single(key));
            let (mut all, mut others) = (0, 0);
            for (key, sums) in functions {
                add(&mut all, sums.weight);
                let is_known = key.1 == *main || self.called.get(key).is_some_and(|caller| *caller == Some(*main));
                add(&mut others, if is_known { 0 } else { sums.weight });
            }
            // Callbacks of an event loop have no caller.
            *is_main || self.scripts.contains(main) || !exceeds(others, MOST_CUT, all)
        });
        mains.into_iter().map(|(start, (_, function))| (start, function)).collect()
    }

    /// True for a whole script, such as `<module> (app.py)`.
    fn is_script(&self, context: &Context<'_>, function: FrameId) -> bool {
        self.scripts.contains(&function) && matches!(context.profile.frames.name(function).first(), Some(b'<' | b'{'))
    }

    /// True if a thread with this start certainly begins with this function.
    fn is_entry(&self, key: (Start, FrameId), is_whole: bool) -> bool {
        let Some(sums) = self.outermost.get(&key) else { return false };
        // Profilers read the frames of scripts from the interpreter.
        if self.scripts.contains(&key.1) || self.outermost.keys().all(|other| other.0.is_single() || other.1 == key.1) {
            return true;
        }
        match is_whole {
            // Functions of Go that call none have no frame, and all stacks have the same start.
            true if key.0.is_goroutine() && !is_at_least(sums.passing, (1, 2), sums.weight) => false,
            true => sums.calling > 0 || !self.called.contains_key(&key),
            false => {
                let is_called = self.called.keys().any(|(_, function)| *function == key.1);
                is_at_least(sums.calling, (1, 2), sums.weight) && !is_called
            }
        }
    }
}

/// Adds to a sum of weights.
fn add(sum: &mut u128, weight: u128) {
    *sum = sum.saturating_add(weight);
}

/// True if a part is larger than this part of the whole.
fn exceeds(part: u128, most: (u128, u128), whole: u128) -> bool {
    part > 0 && !is_at_least(whole, (most.1, most.0), part)
}

/// True for stacks of the kernel or of Go's scheduler alone, and those without any function.
fn is_of_no_program(context: &Context<'_>, stack: &[FrameId]) -> bool {
    let first = stack.iter().skip(1).find(|first| !context.origins.is_marker(**first));
    let is_of_go = |name: &[u8]| name.starts_with(b"runtime.") || name.starts_with(b"_rt0_");
    first.is_none_or(|first| context.origins.is_kernel(*first) || is_of_go(context.profile.frames.name(*first)))
}

/// The functions with which threads of one name begin.
#[derive(Debug, Default)]
struct Entries {
    known: Set<(Start, FrameId)>,
    /// The same with any start.
    functions: Set<FrameId>,
    /// The only one of each start.
    of_start: Map<Start, FrameId>,
    /// The only one of all threads, unless some run no function of the program.
    of_all: Option<FrameId>,
    /// The only one of all that run functions of the program.
    of_program: Option<FrameId>,
    /// The only function known that calls another, for functions that are not known.
    callers: Map<(Start, FrameId), FrameId>,
    /// The only start with this function of a library below it.
    starts: Map<FrameId, Option<Start>>,
}

impl Entries {
    /// Takes the outermost functions without those that others may have called. None is known if too many stacks remain.
    fn new(context: &Context<'_>, calls: &Calls) -> Self {
        let mains = calls.mains(context);
        let is_whole = !exceeds(calls.cut, MOST_CUT, calls.whole);
        let known = calls.outermost.keys().copied().filter(|key| match key.0.is_single() {
            // Several programs may be scripts of one interpreter.
            true => mains.get(&key.0) == Some(&key.1) || calls.is_script(context, key.1),
            false => calls.is_entry(*key, is_whole),
        });
        let known: Set<(Start, FrameId)> = known.collect();
        let callers = calls.called.iter().filter_map(|(key, caller)| Some((*key, (*caller)?)));
        let callers = callers.filter(|((start, _), caller)| known.contains(&(*start, *caller)));
        let of_program = only(known.iter().map(|(_, function)| *function));
        let starts: Set<Start> = calls.outermost.keys().map(|(start, _)| *start).collect();
        let of_start = starts.iter().filter_map(|start| {
            let functions = known.iter().filter(|(other, _)| other == start);
            Some((*start, only(functions.map(|(_, function)| *function))?))
        });
        let mut entries = Self {
            functions: known.iter().map(|(_, function)| *function).collect(),
            of_start: of_start.collect(),
            of_all: of_program.filter(|_| calls.others.keys().all(|start| start.is_single() || starts.contains(start))),
            of_program,
            callers: callers.collect(),
            starts: Map::default(),
            known,
        };
        for start in starts.iter().copied() {
            let known = start.native().map(|native| entries.starts.entry(native).or_insert(Some(start)));
            known.into_iter().for_each(|known| *known = known.filter(|known| *known == start));
        }
        if entries.leave_many(calls) { Self::default() } else { entries }
    }

    /// True if the entries of many stacks are unknown.
    fn leave_many(&self, calls: &Calls) -> bool {
        let outermost = calls.outermost.iter().map(|(key, sums)| (Some(key.0), Some(key.1), sums.weight));
        let others = calls.others.iter().map(|(start, weight)| (Some(*start), None, *weight));
        let without = calls.without_start.iter();
        let without = without.map(|((native, function), weight)| (self.start_with(*native), *function, *weight));
        let (mut all, mut unknown) = (0, 0);
        for (start, outermost, weight) in outermost.chain(others).chain(without) {
            add(&mut all, weight);
            let is_unknown = self.find(start, outermost, false) == Entry::Unknown;
            add(&mut unknown, if is_unknown { weight } else { 0 });
        }
        exceeds(unknown, if self.functions.len() > 1 { MOST_UNKNOWN } else { MOST_UNKNOWN_OF_ONE }, all)
    }

    /// Returns the only start with this function of a library below it.
    fn start_with(&self, native: Option<FrameId>) -> Option<Start> {
        self.starts.get(&native?).copied().flatten()
    }

    /// Returns the function with which the thread of a stack begins. A stack that does not show it is that of the function that
    /// it can be alone.
    fn find(&self, start: Option<Start>, outermost: Option<FrameId>, is_numbered: bool) -> Entry {
        let is_known = |function: &FrameId| match start {
            Some(start) => self.known.contains(&(start, *function)),
            None => self.functions.contains(function),
        };
        let caller = start.zip(outermost).and_then(|key| self.callers.get(&key).copied());
        let of_start = start.and_then(|start| self.of_start.get(&start).copied());
        let of_all = if is_numbered { self.of_program } else { self.of_all };
        let found = outermost.filter(is_known).or(caller).or(of_start).or(of_all);
        // Several programs may have the name of a process.
        let is_other = || {
            let start = start.filter(|_| outermost.is_none());
            start.is_some_and(|start| start.is_single() || self.known.iter().all(|(other, _)| *other != start))
        };
        match found {
            Some(function) => Entry::Function(function),
            None if self.known.is_empty() || is_other() => Entry::None,
            None => Entry::Unknown,
        }
    }
}

/// Returns the function if it is the only one.
fn only(mut functions: impl Iterator<Item = FrameId>) -> Option<FrameId> {
    let first = functions.next()?;
    functions.all(|other| other == first).then_some(first)
}

/// The functions with which threads begin, by the roots of their stacks.
#[derive(Debug, Default)]
pub(super) struct ThreadEntries(Map<FrameId, Entries>);

impl ThreadEntries {
    /// Finds the functions in all stacks.
    pub(super) fn new(context: &Context<'_>) -> Self {
        let mut calls = Map::<FrameId, Calls>::default();
        let Ok(()) = context.profile.for_each(|stack, weights| {
            if let Some(root) = stack.first() {
                calls.entry(*root).or_default().add(context, stack, weights);
            }
            Ok::<(), Infallible>(())
        });
        Self(calls.into_iter().map(|(root, calls)| (root, Entries::new(context, &calls))).collect())
    }

    /// Returns the function with which the thread of a stack begins. A root that may be a function is it. `is_numbered` is true if
    /// all stacks with this root are those of one thread.
    pub(super) fn find(&self, context: &Context<'_>, is_numbered: bool, stack: &[FrameId]) -> Entry {
        let outermost = context.own_on_path(stack).first().copied();
        let Some(entries) = stack.first().and_then(|root| self.0.get(root)) else { return Entry::None };
        if outermost == Some(0) {
            return Entry::Function(stack[0]);
        }
        let found = Start::find(context, stack, outermost).map(|found| found.start);
        let start = found.or_else(|| entries.start_with(Start::native_after_cut(context, stack).copied()));
        match entries.find(start, outermost.map(|index| stack[index]), is_numbered) {
            Entry::Unknown if start.is_none() && outermost.is_none() && is_of_no_program(context, stack) => Entry::None,
            entry => entry,
        }
    }
}
