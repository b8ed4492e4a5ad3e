//! The functions with which threads begin, as far as stacks show them for certain.
//!
//! A profiler that follows frame pointers leaves out the caller of a function that keeps none, and cuts a stack where a
//! pointer is wrong. Any function of the program may then be the outermost of a stack.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::convert::Infallible;

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use super::context::Context;
use super::overview::GroupName;
use crate::profile::{FrameId, Weights};

type Map<K, V> = HashMap<K, V, FxBuildHasher>;
type Set<K> = HashSet<K, FxBuildHasher>;

/// The start of a process or thread, as the first and the last of its frames above the program's own functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Start {
    first: FrameId,
    last: FrameId,
    /// True for the start of a process: all stacks with it are those of one thread.
    is_process: bool,
}

impl Start {
    /// Finds the start of a stack whose outermost own function has this index; `None` if the stack does not show it.
    fn find(context: &Context<'_>, stack: &[FrameId], outermost: Option<usize>) -> Option<Self> {
        let above = stack.get(1..outermost.unwrap_or(stack.len())).unwrap_or_default();
        let mut starts = above.iter().copied().filter(|frame| context.origins.is_start(*frame));
        if let Some(first) = starts.next() {
            let is_process = !context.origins.is_in_thread(stack) || is_go_main(context, above);
            return Some(Self { first, last: starts.next_back().unwrap_or(first), is_process });
        }
        let main = outermost.map(|index| stack[index]);
        let main = main.filter(|frame| context.profile.frames.name(*frame) == b"main")?;
        Some(Self { first: main, last: main, is_process: true })
    }
}

/// True for the start of the goroutine of `main.main`.
fn is_go_main(context: &Context<'_>, above: &[FrameId]) -> bool {
    above.iter().any(|frame| context.profile.frames.name(*frame) == b"runtime.main")
}

/// The outermost own functions of the stacks of threads of one name, and those that they call.
#[derive(Debug, Default)]
struct Calls {
    /// With the weight of the stacks, in millionths.
    outermost: Map<(Start, FrameId), u128>,
    /// The outermost functions that call other own ones.
    calling: Set<(Start, FrameId)>,
    /// The own functions that others call, with the outermost one of such stacks; `None` if there are several.
    called: Map<(Start, FrameId), Option<FrameId>>,
    /// The outermost functions of scripts: several programs may be scripts of one interpreter.
    scripts: Set<FrameId>,
    /// True if some threads certainly run no function of the program.
    has_others: bool,
}

impl Calls {
    fn add(&mut self, context: &Context<'_>, stack: &[FrameId], weights: Weights) {
        let own = context.own_on_path(stack);
        let Some(start) = Start::find(context, stack, own.first().copied()) else { return };
        let Some((first, inner)) = own.split_first() else {
            self.has_others |= !start.is_process;
            return;
        };
        let first = stack[*first];
        let weight = self.outermost.entry((start, first)).or_default();
        *weight = weight.saturating_add(weights.after.millionths());
        if context.origins.has_script_file(first) {
            self.scripts.insert(first);
        }
        for inner in inner.iter().map(|index| stack[*index]).filter(|inner| *inner != first) {
            self.calling.insert((start, first));
            let caller = self.called.entry((start, inner)).or_insert(Some(first));
            *caller = caller.filter(|caller| *caller == first);
        }
    }
}

impl Calls {
    /// Returns the first function of each start of a process, in which no other thread begins: of those that are not scripts, the
    /// one with the most weight that calls others.
    fn mains(&self, context: &Context<'_>) -> Map<Start, FrameId> {
        let ranks = context.ranks();
        let mut mains = Map::<Start, ((bool, u128, Reverse<u32>), FrameId)>::default();
        let functions =
            self.outermost.iter().filter(|((start, function), _)| start.is_process && !self.scripts.contains(function));
        for (key, weight) in functions {
            let (start, function) = *key;
            let rank = (self.calling.contains(key), *weight, Reverse(ranks[function.index()]));
            let main = mains.entry(start).or_insert((rank, function));
            *main = (*main).max((rank, function));
        }
        mains.into_iter().map(|(start, (_, function))| (start, function)).collect()
    }
}

/// The functions with which threads of one name begin.
#[derive(Debug, Default)]
struct Entries {
    known: Set<(Start, FrameId)>,
    /// The same with any start.
    functions: Set<FrameId>,
    /// The only one of the start of a process.
    of_process: Option<FrameId>,
    /// The only one of all threads, unless some run no function of the program.
    of_all: Option<FrameId>,
    /// The only one of all that run functions of the program.
    of_program: Option<FrameId>,
    /// The only function known that calls another, for functions that are not known.
    callers: Map<(Start, FrameId), FrameId>,
}

impl Entries {
    /// Takes the outermost functions without those that are certainly called by others.
    fn new(context: &Context<'_>, calls: Calls) -> Self {
        let mains = calls.mains(context);
        let Calls { outermost, calling, called, scripts, has_others } = calls;
        let known = outermost.into_keys().filter(|key| match mains.get(&key.0) {
            Some(main) => *main == key.1 || scripts.contains(&key.1),
            // Functions without a frame pointer call none.
            None => calling.contains(key) || !called.contains_key(key),
        });
        let known: Set<(Start, FrameId)> = known.collect();
        let callers = called.into_iter().filter_map(|(key, caller)| Some((key, caller?)));
        let callers = callers.filter(|((start, _), caller)| known.contains(&(*start, *caller)));
        let of_program = only(known.iter().map(|(_, function)| *function));
        Self {
            functions: known.iter().map(|(_, function)| *function).collect(),
            of_process: only(known.iter().filter(|(start, _)| start.is_process).map(|(_, function)| *function)),
            of_all: of_program.filter(|_| !has_others),
            of_program,
            callers: callers.collect(),
            known,
        }
    }

    /// Returns the function with which the thread of a stack begins. A stack that does not show it is that of the function that
    /// it can be alone.
    fn find(&self, start: Option<Start>, outermost: Option<FrameId>, is_numbered: bool) -> Option<FrameId> {
        let is_known = |function: &FrameId| match start {
            Some(start) => self.known.contains(&(start, *function)),
            None => self.functions.contains(function),
        };
        let caller = start.zip(outermost).and_then(|key| self.callers.get(&key).copied());
        let of_process = self.of_process.filter(|_| start.is_some_and(|start| start.is_process));
        let of_all = if is_numbered { self.of_program } else { self.of_all };
        outermost.filter(is_known).or(caller).or(of_process).or(of_all)
    }
}

/// Returns the function if it is the only one.
fn only(mut functions: impl Iterator<Item = FrameId>) -> Option<FrameId> {
    let first = functions.next()?;
    functions.all(|other| other == first).then_some(first)
}

/// The functions with which threads begin, by the names of groups of threads.
#[derive(Debug, Default)]
pub(super) struct ThreadEntries(Map<String, Entries>);

impl ThreadEntries {
    /// Finds the functions in all stacks. `groups` has the name of the group for the root of each stack.
    pub(super) fn new(context: &Context<'_>, groups: &BTreeMap<FrameId, GroupName>) -> Self {
        let mut calls = Map::<String, Calls>::default();
        let Ok(()) = context.profile.for_each(|stack, weights| {
            if let Some(group) = stack.first().and_then(|root| groups.get(root)) {
                calls.entry_ref(group.text.as_str()).or_default().add(context, stack, weights);
            }
            Ok::<(), Infallible>(())
        });
        Self(calls.into_iter().map(|(group, calls)| (group, Entries::new(context, calls))).collect())
    }

    /// Returns the function with which the thread of a stack begins; `None` if that is not certain, or none of the program. A root
    /// that may be a function is it.
    pub(super) fn find(&self, context: &Context<'_>, group: &GroupName, stack: &[FrameId]) -> Option<FrameId> {
        let outermost = context.own_on_path(stack).first().copied();
        if outermost == Some(0) {
            return Some(stack[0]);
        }
        let start = Start::find(context, stack, outermost);
        self.0.get(&group.text)?.find(start, outermost.map(|index| stack[index]), group.is_numbered)
    }
}
