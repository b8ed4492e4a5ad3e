//! Where a comparison grew: the path to the functions of the program whose growth counts.

use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

use super::call_tree::{CallTree, Node};
use super::context::{Called, Context};
use super::idle::{Inactivity, InactivityFinder};
use super::measure::Measure;
use super::page::{Fact, Item, Number, PathLines, Value};
use crate::Error;
use crate::profile::is_at_least;
use crate::profile::{FrameId, Profile, Weights};

/// The function that explains most of the growth is named at the end of the path if it has this part of it.
const LEADING_PART: (u128, u128) = (1, 2);

/// The functions that grew.
pub(super) struct Grown {
    /// Own functions, the largest growth first.
    pub(super) own: Vec<(FrameId, Weights)>,
    /// The function that grew with all that it calls, if none grew by itself.
    pub(super) inclusive: Option<FrameId>,
    /// True if some do more than wait for the end of others.
    pub(super) has_work: bool,
}

/// Returns the path from the root to where the growth divides, and the function that has most of it. Only stacks count whose own
/// function grew by more than noise: the rest would lead to threads of run times and to chance. Who waits for the end of a thread or
/// process that grew is not on the path to it.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn path(context: &Context<'_>, profile: &Profile, grown: &Grown) -> Result<Option<Fact>, Error> {
    let own: HashSet<FrameId, FxBuildHasher> = grown.own.iter().map(|(frame, _)| *frame).collect();
    let mut counted = Profile::new(profile.is_differential());
    counted.frames.intern_all(&profile.frames);
    let finder = InactivityFinder::new(&profile.frames, context.origins, context.work);
    profile.for_each(|stack, weights| {
        if grown.has_work && matches!(finder.find(&profile.frames, stack), Some(Inactivity::Idle | Inactivity::Join)) {
            return Ok(());
        }
        let counts = match grown.inclusive {
            _ if !own.is_empty() => own.contains(&stack[context.origins.place(stack).own.unwrap_or(0)]),
            Some(inclusive) => stack.contains(&inclusive),
            None => false,
        };
        if counts { counted.add(stack, weights) } else { Ok(()) }
    })?;
    let tree = CallTree::new(&counted, Measure::Growth)?;
    let mut path = context.hot_path(&tree);

    let leading = grown.own.first().filter(|(frame, weights)| {
        path.iter().all(|node| node.frame != Some(*frame))
            && is_at_least(growth(*weights), LEADING_PART, growth(counted.total()))
    });
    if leading.is_some() {
        // What it is called by tells more than the functions of libraries between.
        let last = context.own_on_path(&frames_of(&path)).last().copied().unwrap_or(0);
        path.truncate(last + 1);
    }
    if leading.is_none() {
        let own = last_own_above_others(context, &tree, &path);
        path.truncate(own.map_or(path.len(), |own| own + 1));
    }
    let Some(last) = path.last().filter(|node| node.weights.after > node.weights.before) else { return Ok(None) };

    let frames = frames_of(&path);
    let mut items: Vec<Item> = Vec::new();
    for (index, omitted) in context.shown_on_path(&frames, Called::Last) {
        items.extend(omitted.item());
        let number = (index + 1 == frames.len()).then(|| Number::Change(context.change(last.weights)));
        items.push(Item::new(context.name(frames[index]), number));
    }
    if let Some((frame, weights)) = leading {
        items.push(Item::new("…", None));
        items.push(Item::new(context.name(*frame), Some(Number::Change(context.change(*weights)))));
    }
    Ok(Some(Fact::new("grew at", Value::Path(context.shorten_path(items, Item::new("…", None)), PathLines::Two))))
}

/// Returns the index of the last own function of a path that ends in a function of a library, through which it calls other own ones.
fn last_own_above_others(context: &Context<'_>, tree: &CallTree, path: &[&Node]) -> Option<usize> {
    let own = context.own_on_path(&frames_of(path)).last().copied().filter(|own| own + 1 < path.len())?;
    let is_own = |frame: &FrameId| context.is_own_function(*frame);
    tree.children(path.last()?).any(|child| tree.chain(child).iter().any(is_own)).then_some(own)
}

fn growth(weights: Weights) -> u128 {
    weights.after.saturating_sub(weights.before).millionths()
}

fn frames_of(path: &[&Node]) -> Vec<FrameId> {
    path.iter().filter_map(|node| node.frame).collect()
}
