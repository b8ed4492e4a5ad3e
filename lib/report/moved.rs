//! Functions that others call now, at equal cost: they have neither grown nor shrunk.

use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

use super::context::Context;
use super::measure::format_count;
use super::page::{Fact, Value};
use crate::Error;
use crate::profile::{FrameId, Profile};
use crate::tally::Move;

/// Most moves that are named, and most functions of each.
const MOST_MOVES: usize = 2;
const MOST_CALLEES: usize = 3;

/// Returns the fact that says which functions are called by others now.
pub(super) fn fact(context: &Context<'_>) -> Option<Fact> {
    let shown = innermost(context);
    let texts: Vec<String> = shown.iter().take(MOST_MOVES).map(|one| describe(context, one)).collect();
    let mut text = texts.join("; ");
    if shown.len() > MOST_MOVES {
        text.push_str(&format!("; {} more", format_count(shown.len() - MOST_MOVES)));
    }
    if shown.iter().all(|one| one.is_equal) {
        text.push_str(", at equal cost");
    }
    (!shown.is_empty()).then(|| Fact::new("moved", Value::Text(text)))
}

/// Returns the moves of own functions without those of the callers of callers, and without those from where the functions were called before; the
/// largest first.
fn innermost<'a>(context: &Context<'a>) -> Vec<&'a Move> {
    let all = context.judged.map_or(&[][..], |judged| &judged.moves);
    let ranks = context.ranks();
    let weights = |one: &Move| context.survey.functions[one.caller.index()].inclusive;
    let is_shown = |one: &&Move| !context.renamed.contains(one.caller) && context.is_own_function(one.caller);
    let mut moves: Vec<&Move> = all.iter().filter(is_shown).collect();
    moves.sort_by_key(|one| {
        let weights = weights(one);
        (!one.is_new, weights.before.max(weights.after), ranks[one.caller.index()])
    });
    let mut named = HashSet::<FrameId, FxBuildHasher>::default();
    moves.retain(|one| one.callees.iter().filter(|callee| named.insert(**callee)).count() > 0);
    moves.sort_by_key(|one| (std::cmp::Reverse(weights(one).difference()), ranks[one.caller.index()]));
    moves
}

/// Returns a sentence about a move.
fn describe(context: &Context<'_>, one: &Move) -> String {
    let mut names: Vec<String> = one.callees.iter().take(MOST_CALLEES).map(|callee| context.name(*callee)).collect();
    if one.callees.len() > MOST_CALLEES {
        names.push(format!("{} more", format_count(one.callees.len() - MOST_CALLEES)));
    }
    let verb = if names.len() == 1 { "is" } else { "are" };
    let (now, no_longer) = if one.is_new { (" now", "") } else { ("", " no longer") };
    format!("{} {verb}{no_longer} called by {}{now}", names.join(", "), context.name(one.caller))
}

/// Returns a profile without the callers of these moves, so that what moved is in one place; `None` if there is none.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn without_callers(context: &Context<'_>, profile: &Profile) -> Result<Option<Profile>, Error> {
    let moves = context.judged.map_or(&[][..], |judged| &judged.moves);
    if moves.is_empty() {
        return Ok(None);
    }
    let callers: HashSet<FrameId, FxBuildHasher> = moves.iter().map(|one| one.caller).collect();
    let mut rest = Profile::new(profile.is_differential());
    rest.frames.intern_all(&profile.frames);
    let mut stack = Vec::new();
    profile.for_each(|frames, weights| {
        stack.clear();
        stack.extend(frames.iter().filter(|frame| !callers.contains(*frame)));
        if stack.is_empty() { Ok(()) } else { rest.add(&stack, weights) }
    })?;
    Ok(Some(rest))
}
