//! Blocks of which the waker is known (`fg-record --wakers`): the functions that waited, and those that ended it.
//!
//! Such a stack is `STACK;--;WAKER;[off-cpu]`, and `STACK;--;WAKER;--;ITS WAKER;[off-cpu]` if the waker was blocked
//! itself meanwhile. The frames of wakers are those of other threads: they are no functions in which the time
//! was spent. Tables of functions and the call tree therefore have stacks without them.

use std::cmp::Reverse;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::context::Context;
use super::page::{Item, Number, Row, Table};
use super::pools::generic_name;
use super::tables::{column, table};
use crate::Error;
use crate::markers::{self, WAKER_SEPARATOR};
use crate::profile::{FrameId, Profile, Weight, Weights};
use crate::tally::{ChargedWaker, Charging, charged_waker};

/// Rows below this share in percent are left out.
const MIN_SHARE: f64 = 0.5;

/// Wakers below this share in percent are left out.
const MIN_WAKER: f64 = 0.3;

/// The number of functions that tell where a thread waited.
const WAITING_FUNCTIONS: usize = 3;

/// The number of functions that tell what a waker did.
const WAKING_FUNCTIONS: usize = 2;

/// The blocks of a profile of which the waker is known.
#[derive(Debug, Default)]
pub(super) struct Waits {
    blocks: Vec<(Vec<FrameId>, Weights)>,
}

impl Waits {
    /// Removes the stacks of wakers from a profile, and returns the blocks that they ended.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn take_from(profile: &mut Profile) -> Result<Self, Error> {
        let mut waits = Self::default();
        let charging = Charging::new(&profile.frames);
        if !profile.frames.iter().any(|(frame, _)| charging.is_separator(frame)) {
            return Ok(waits);
        }
        let mut blocked = Profile::new(profile.is_differential());
        let ids = blocked.frames.intern_all(&profile.frames);
        profile.for_each(|stack, weights| {
            let end = charging.waker_start(stack);
            let stack: Vec<FrameId> = stack.iter().map(|frame| ids[frame.index()]).collect();
            let Some(end) = end else { return blocked.add(&stack, weights) };
            let state = stack.last().filter(|last| markers::is_thread_state(blocked.frames.name(**last)));
            let waiting: Vec<FrameId> = stack[..end].iter().chain(state).copied().collect();
            waits.blocks.push((stack, weights));
            blocked.add(&waiting, weights)
        })?;
        *profile = blocked;
        Ok(waits)
    }
}

impl Waits {
    /// True if no waker is known.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the stacks with their wakers.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &(Vec<FrameId>, Weights)> {
        self.blocks.iter()
    }
}

/// The waits that are charged to one waker.
#[derive(Debug, Default)]
pub(super) struct ChargedWaits {
    pub(super) weights: Weights,
    /// The smallest and the largest number of threads between those that waited and the waker.
    between: Option<[usize; 2]>,
}

impl ChargedWaits {
    /// Adds a wait.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn add(&mut self, between: usize, weights: Weights) -> Result<(), Error> {
        let [least, most] = self.between.unwrap_or([between; 2]);
        self.between = Some([least.min(between), most.max(between)]);
        self.weights.add(weights)
    }

    /// Returns the name of the waker with the number of threads through which others waited for it.
    pub(super) fn describe(&self, waker: &str) -> String {
        match self.between {
            None | Some([_, 0]) => waker.to_owned(),
            Some([1, 1]) => format!("{waker} (through 1 thread)"),
            Some([least, most]) if least == most => format!("{waker} (through {most} threads)"),
            Some([least, most]) => format!("{waker} (through {least} to {most} threads)"),
        }
    }
}

/// Returns the table of the functions that waited, the largest first, with those that their waits are charged to. Only functions
/// count in stacks that are `wanted`, from the thread that waited up to its first waker.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn waits_table(
    context: &Context<'_>,
    limit: usize,
    mut wanted: impl FnMut(&[FrameId]) -> bool,
) -> Result<Table, Error> {
    let mut waits = HashMap::<Vec<String>, HashMap<String, ChargedWaits, FxBuildHasher>, FxBuildHasher>::default();
    for (stack, weights) in &context.waits.blocks {
        let waiting = waiting_part(context, stack);
        let Some(waker) = charged_waker(&context.profile.frames, stack).filter(|_| wanted(waiting)) else { continue };
        let wakers = waits.entry(describe_waiting(context, waiting)).or_default();
        wakers.entry(describe_charged(context, waiting, &waker)).or_default().add(waker.between, *weights)?;
    }
    let waits = waits.into_iter().map(|(waiting, wakers)| {
        let millionths = wakers.values().map(|charged| charged.weights.after.millionths()).sum();
        (Weight::from_millionths(millionths), waiting, wakers)
    });
    let mut waits: Vec<(Weight, Vec<String>, _)> = waits.collect();
    waits.sort_by(|a, b| (Reverse(a.0), &a.1).cmp(&(Reverse(b.0), &b.1)));
    let all = waits.len();
    let rows = waits.into_iter().map(|(weight, names, wakers)| {
        let share = context.share(weight);
        Row { numbers: vec![Number::Share(share)], share, names, details: wakers_of(context, wakers), ..Row::default() }
    });
    let rows = rows.take_while(|row| context.is_whole || row.share >= MIN_SHARE).take(limit).collect();
    let title = "functions that waited, and whom for in the end";
    Ok(table("waits", title, "wakers", vec![column("waited_pct", "waited")], rows, all))
}

/// Returns the wakers that ended the waits of a function, by weight.
fn wakers_of(context: &Context<'_>, wakers: HashMap<String, ChargedWaits, FxBuildHasher>) -> Vec<Item> {
    let wakers = wakers.into_iter().map(|(name, charged)| (Reverse(charged.weights.after), charged.describe(&name)));
    let mut wakers: Vec<(Reverse<Weight>, String)> = wakers.collect();
    wakers.sort();
    let items = wakers.into_iter().map(|(Reverse(weight), name)| (name, context.share(weight)));
    items.filter(|(_, share)| *share >= MIN_WAKER).map(|(name, share)| Item::share(name, share)).collect()
}

/// Returns the part of a stack that is of the thread that waited.
pub(super) fn waiting_part<'a>(context: &Context<'_>, stack: &'a [FrameId]) -> &'a [FrameId] {
    let end = stack.iter().position(|frame| context.profile.frames.name(*frame) == WAKER_SEPARATOR);
    &stack[..end.unwrap_or(stack.len())]
}

/// Returns whom a wait is charged to, and what that thread waited for itself.
pub(super) fn describe_charged(context: &Context<'_>, waiting: &[FrameId], waker: &ChargedWaker<'_>) -> String {
    let thread = waiting.first().map_or_else(String::new, |thread| name(context, *thread));
    let own = describe_waker(context, &thread, waker.stack, waker.waited_for.is_some());
    match waker.waited_for {
        Some(frame) => format!("{own} <- {}", name(context, frame)),
        None => own,
    }
}

/// Returns the threads and interrupts that waits are charged to, by their share of all, the largest first.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn charged_threads(context: &Context<'_>) -> Result<Vec<Item>, Error> {
    let mut sums = HashMap::<String, ChargedWaits, FxBuildHasher>::default();
    for (stack, weights) in &context.waits.blocks {
        let Some(waker) = charged_waker(&context.profile.frames, stack) else { continue };
        let thread = waker.stack.first().map_or_else(String::new, |thread| generic_name(&name(context, *thread)));
        sums.entry(thread).or_default().add(waker.between, *weights)?;
    }
    Ok(wakers_of(context, sums))
}

/// Returns what ended a wait: functions of a thread, whose name comes before them if it is not that of the thread that
/// waited, or an interrupt. A thread that waited itself (`is_blocked`) is described as all that wait.
fn describe_waker(context: &Context<'_>, waiting: &str, stack: &[FrameId], is_blocked: bool) -> String {
    let thread = stack.first().map_or_else(String::new, |thread| generic_name(&name(context, *thread)));
    let count = if is_blocked { WAITING_FUNCTIONS } else { WAKING_FUNCTIONS };
    let functions = own_functions(context, stack, count).join(" > ");
    match () {
        () if functions.is_empty() => thread,
        () if thread == generic_name(waiting) => functions,
        () => format!("{thread}: {functions}"),
    }
}

/// Returns the functions in which a thread waited; the name of the thread if none is the program's own.
fn describe_waiting(context: &Context<'_>, stack: &[FrameId]) -> Vec<String> {
    let functions = own_functions(context, stack, WAITING_FUNCTIONS);
    match functions[..] {
        [] => stack.first().map(|thread| name(context, *thread)).into_iter().collect(),
        _ => functions,
    }
}

/// Returns the innermost own functions of a stack below the name of its thread, root first.
fn own_functions(context: &Context<'_>, stack: &[FrameId], count: usize) -> Vec<String> {
    let end = context.origins.place(stack).own.map_or(0, |own| own + 1);
    let is_own = context.origins.find_own(&stack[..end]);
    let own = stack.iter().zip(is_own).skip(1).filter(|(_, is_own)| *is_own).map(|(frame, _)| *frame);
    let mut functions: Vec<FrameId> = own.collect();
    functions.dedup();
    let first = functions.len().saturating_sub(count);
    functions[first..].iter().map(|frame| name(context, *frame)).collect()
}

/// Returns the name of a frame without the suffix of wakers.
pub(super) fn name(context: &Context<'_>, frame: FrameId) -> String {
    let name = context.profile.frames.name(frame);
    context.name_of(name.strip_suffix(markers::WAKER).unwrap_or(name))
}
