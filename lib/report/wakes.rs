//! Who ended the waits of an own function, and what these threads wait for themselves.
//!
//! A chain of wakers tells whom a wait is charged to in the end. A thread that releases a lock, or delivers what another waits
//! for, may be late because it waits itself. If chains were not followed, its stack at that moment no longer shows that: its
//! own waits are found among all blocked stacks of threads with its name that contain the function.

use std::cmp::Reverse;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::below::Activity;
use super::context::Context;
use super::page::{Item, Note, Number};
use super::pools::generic_name;
use super::waits::{self, ChargedWaits};
use crate::Error;
use crate::markers;
use crate::profile::{FrameId, Weight, Weights};
use crate::tally::charged_waker;

/// Wakers below this share in percent are left out.
const MIN_SHARE: f64 = 0.3;

/// Most wakers of a function that are named.
const MOST_WAKERS: usize = 3;

/// Most places that are named in which a waker waits.
const MOST_PLACES: usize = 2;

/// Waits of these kinds say nothing of what delays the holder of a lock.
const LOCKS: [&str; 2] = ["lock", "interpreter lock"];

type Sums<K> = HashMap<K, Weights, FxBuildHasher>;

/// An own function of threads, with the number of their name.
type Holder = (usize, FrameId);

/// Whom waits are charged to: the name, and the own function if it is not known what that thread waited for itself.
type Waker = (String, Option<Holder>);

/// The waits that are charged to each waker.
type Wakers = HashMap<Waker, ChargedWaits, FxBuildHasher>;

/// A place in which a thread waits: the own functions on the way to it with what the last one calls, and the kind of wait.
type Place = (Vec<FrameId>, Option<&'static str>);

/// Numbers of the names of threads: those of a pool have the same.
#[derive(Default)]
struct ThreadNames {
    numbers: HashMap<String, usize, FxBuildHasher>,
    by_root: HashMap<FrameId, usize, FxBuildHasher>,
}

impl ThreadNames {
    /// Returns the number of the name of the thread with this root frame.
    fn number(&mut self, context: &Context<'_>, root: FrameId) -> usize {
        let Self { numbers, by_root } = self;
        *by_root.entry(root).or_insert_with(|| {
            let next = numbers.len();
            *numbers.entry(generic_name(&waits::name(context, root))).or_insert(next)
        })
    }
}

/// True if what wakers waited for themselves follows them in some stack.
fn has_chains(context: &Context<'_>) -> bool {
    let names = &context.profile.frames;
    context
        .waits
        .blocks()
        .any(|(stack, _)| stack.iter().filter(|frame| names.name(**frame) == markers::WAKER_SEPARATOR).count() > 1)
}

/// Returns for each of these own functions who ended its waits.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn notes(context: &Context<'_>, functions: &[FrameId]) -> Result<Vec<Vec<Note>>, Error> {
    let mut threads = ThreadNames::default();
    let wakers = find_wakers(context, functions, &mut threads)?;
    let wakers: Vec<Vec<(Waker, f64)>> = wakers.into_iter().map(|sums| largest(context, sums)).collect();
    let holders: Vec<Holder> = wakers.iter().flatten().filter_map(|((_, frame), _)| *frame).collect();
    let waits = find_waits(context, &holders, &mut threads)?;
    let notes = wakers.iter().zip(functions);
    Ok(notes.map(|(wakers, function)| describe(context, wakers, &callers_of(context, *function), &waits)).collect())
}

/// Returns the wakers of each function with their weights.
fn find_wakers(context: &Context<'_>, functions: &[FrameId], threads: &mut ThreadNames) -> Result<Vec<Wakers>, Error> {
    let has_chains = has_chains(context);
    let numbers: HashMap<FrameId, usize, FxBuildHasher> = functions.iter().copied().zip(0..).collect();
    let by_name: HashMap<&[u8], FrameId> = match context.waits.is_empty() {
        true => HashMap::new(),
        false => context.profile.frames.iter().map(|(frame, name)| (name, frame)).collect(),
    };
    let mut sums: Vec<Wakers> = functions.iter().map(|_| Wakers::default()).collect();
    for (stack, weights) in context.waits.blocks() {
        let waiting = waits::waiting_part(context, stack);
        let Some(waker) = charged_waker(&context.profile.frames, stack) else { continue };
        let own = context.origins.place(waiting).own.unwrap_or(0);
        let Some(number) = waiting.get(own).and_then(|own| numbers.get(own)) else { continue };
        let own = context.origins.place(waker.stack).own.filter(|_| !has_chains);
        let own = own.map(|own| context.profile.frames.name(waker.stack[own]));
        let own = own.and_then(|name| by_name.get(name.strip_suffix(markers::WAKER).unwrap_or(name)).copied());
        let holder = own.map(|own| (threads.number(context, waker.stack[0]), own));
        let name = waits::describe_charged(context, waiting, &waker);
        sums[*number].entry((name, holder)).or_default().add(waker.between, *weights)?;
    }
    Ok(sums)
}

/// Returns the functions above an own one in the stacks of its waits.
fn callers_of(context: &Context<'_>, function: FrameId) -> Vec<FrameId> {
    let mut callers = Vec::new();
    for (stack, _) in context.waits.blocks() {
        let waiting = waits::waiting_part(context, stack);
        let own = context.origins.place(waiting).own.filter(|own| waiting[*own] == function);
        callers.extend(waiting[..own.unwrap_or(0)].iter().filter(|frame| **frame != function));
        callers.sort_unstable();
        callers.dedup();
    }
    callers
}

/// Returns the wakers with the most weight, with their shares.
fn largest(context: &Context<'_>, sums: Wakers) -> Vec<(Waker, f64)> {
    let wakers =
        sums.into_iter().map(|((name, holder), charged)| ((charged.describe(&name), holder), charged.weights.after));
    let mut wakers: Vec<(Waker, Weight)> = wakers.collect();
    wakers.sort_by(|a, b| (Reverse(a.1), &a.0.0).cmp(&(Reverse(b.1), &b.0.0)));
    let wakers = wakers.into_iter().map(|(waker, weight)| (waker, context.share(weight)));
    wakers.take(MOST_WAKERS).filter(|(_, share)| *share >= MIN_SHARE).collect()
}

/// Returns the places in which the threads of these functions wait for anything but a lock: the path of own functions
/// from there on with what they call, and the kind of wait.
fn find_waits(
    context: &Context<'_>,
    holders: &[Holder],
    threads: &mut ThreadNames,
) -> Result<HashMap<Holder, Vec<Item>>, Error> {
    let mut sums: HashMap<Holder, Sums<Place>> = holders.iter().map(|holder| (*holder, Sums::default())).collect();
    if holders.is_empty() {
        return Ok(HashMap::new());
    }
    context.profile.for_each(|stack, weights| {
        let state = stack.last().map(|last| context.profile.frames.name(*last));
        if Activity::from_state(state.filter(|state| markers::is_thread_state(state))) != Activity::Blocked {
            return Ok(());
        }
        let Some(own) = context.origins.place(stack).own else { return Ok(()) };
        let thread = threads.number(context, stack[0]);
        let Some(index) = stack[..=own].iter().rposition(|frame| sums.contains_key(&(thread, *frame))) else {
            return Ok(());
        };
        let below = &stack[own + 1..stack.len() - 1];
        let kind = context.work.kind(stack[own], below);
        let Some(sums) =
            sums.get_mut(&(thread, stack[index])).filter(|_| !kind.is_some_and(|kind| LOCKS.contains(&kind)))
        else {
            return Ok(());
        };
        let is_own = context.origins.find_own(&stack[..=own]);
        let path = (index + 1..=own).filter(|frame| is_own[*frame]).map(|frame| stack[frame]);
        let callee = context.origins.callee(below).map(|callee| below[callee]);
        sums.entry((path.chain(callee).collect(), kind)).or_default().add(weights)
    })?;
    let places = sums.into_iter().map(|(holder, sums)| {
        let mut places: Vec<(Weight, String, Option<&str>)> = sums
            .into_iter()
            .map(|((path, kind), weights)| {
                let names: Vec<String> = path.iter().map(|frame| context.name(*frame)).collect();
                (weights.after, names.join(" > "), kind)
            })
            .collect();
        places.sort_by(|a, b| (Reverse(a.0), &a.1).cmp(&(Reverse(b.0), &b.1)));
        let items = places.into_iter().map(|(weight, name, kind)| Item {
            parts: kind.map(|kind| Item::new(kind, None)).into_iter().collect(),
            ..Item::share(name, context.share(weight))
        });
        let items = items.filter(|item| matches!(item.number, Some(Number::Share(share)) if share >= MIN_SHARE));
        (holder, items.take(MOST_PLACES).collect())
    });
    Ok(places.collect())
}

/// Returns the notes of a function with these wakers.
fn describe(
    context: &Context<'_>,
    wakers: &[(Waker, f64)],
    callers: &[FrameId],
    waits: &HashMap<Holder, Vec<Item>>,
) -> Vec<Note> {
    // A sleep that a timer ended needs no note.
    if wakers.iter().all(|((name, frame), _)| frame.is_none() && name.starts_with('[')) {
        return Vec::new();
    }
    let items = wakers.iter().map(|((name, _), share)| Item::share(name.clone(), *share));
    let mut notes = vec![Note { label: "waits for".to_owned(), items: items.collect() }];
    let mut holders: Vec<Holder> = Vec::new();
    let others = wakers.iter().any(|((_, frame), _)| frame.is_some_and(|(_, frame)| !callers.contains(&frame)));
    for holder in wakers.iter().filter_map(|((_, frame), _)| *frame) {
        // The callers of the function are the same in all threads of a pool: where else they wait says little.
        let is_known = holders.contains(&holder) || (others && callers.contains(&holder.1));
        let Some(places) = waits.get(&holder).filter(|places| !places.is_empty() && !is_known) else { continue };
        holders.push(holder);
        let label = format!("{} itself waits in", context.name(holder.1));
        notes.push(Note { label, items: places.clone() });
    }
    notes
}
