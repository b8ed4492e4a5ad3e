//! The stacks whose differences are significant.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::runs::ComparedRuns;
use crate::Error;
use crate::profile::{FrameId, Profile};
use crate::stats::judgement::Observation;
use crate::tally::{Charging, GroupBy, Judgement, Row, is_significant, observe_runs, tally_profile};

/// Largest difference of a function that counts as none if the weights do not allow a judgement, relative to its weight.
const UNJUDGED_SHARE: f64 = 0.1;

/// Returns for each stack, in sorted order, true if its difference is kept.
///
/// By stack, it is kept if it is significant itself. By function, it is kept if the self weight of the function that it
/// is charged to differs significantly. If the inclusive weight of a function differs significantly but no stack with
/// it is kept, all of its stacks are: the change is spread over many callees. Functions of little inclusive weight are
/// looked at first, so that `main` brings all stacks back only if nothing else explains its change.
///
/// `None` if the weights do not allow a judgement.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn find_significant(compared: &ComparedRuns, by: GroupBy) -> Result<Option<Vec<bool>>, Error> {
    let profile = &compared.profile;
    let rows = tally_profile(profile, by)?;
    let observations = observe_runs(&rows, &profile.frames, &compared.runs, by)?;
    let (total, design) = (compared.total(), compared.design());
    let Some(judgement) = Judgement::new(&rows, &profile.frames, &observations, &total, design) else {
        return Ok(None);
    };
    match by {
        GroupBy::Function => keep_functions(profile, &rows, &judgement.chances).map(Some),
        _ => keep_stacks(profile, &rows, &judgement.chances).map(Some),
    }
}

/// Returns the names of the functions whose self or inclusive weight differs significantly. If the weights do not allow a
/// judgement, these are all that differ by more than [`UNJUDGED_SHARE`].
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub(super) fn find_functions(compared: &ComparedRuns) -> Result<BTreeSet<Vec<u8>>, Error> {
    let profile = &compared.profile;
    let rows = tally_profile(profile, GroupBy::Function)?;
    let observations = observe_runs(&rows, &profile.frames, &compared.runs, GroupBy::Function)?;
    let judgement = Judgement::new(&rows, &profile.frames, &observations, &compared.total(), compared.design());
    let mean = |weights: &[f64]| weights.iter().sum::<f64>() / weights.len().max(1) as f64;
    let differs_much = |one: &Observation| {
        let (before, after) = (mean(&one.before), mean(&one.after));
        (after - before).abs() > UNJUDGED_SHARE * before.max(after)
    };
    let differs = |number: usize| match &judgement {
        Some(judgement) => judgement.chances[number].iter().any(|chance| is_significant(*chance)),
        None => observations[number].iter().any(differs_much),
    };
    let names = (0..rows.len()).filter(|number| differs(*number));
    Ok(names.map(|number| profile.frames.name(rows[number].frames[0]).to_vec()).collect())
}

/// Marks the stacks that are significant themselves.
fn keep_stacks(profile: &Profile, rows: &[Row], chances: &[Vec<f64>]) -> Result<Vec<bool>, Error> {
    let significant: BTreeSet<&[FrameId]> = rows
        .iter()
        .zip(chances)
        .filter(|(_, chances)| chances.iter().any(|chance| is_significant(*chance)))
        .map(|(row, _)| &row.frames[..])
        .collect();
    let mut kept = Vec::with_capacity(profile.len());
    profile.for_each_sorted::<Error>(|stack| {
        kept.push(significant.contains(stack.frames));
        Ok(())
    })?;
    Ok(kept)
}

/// Marks the stacks of functions that differ significantly.
fn keep_functions(profile: &Profile, rows: &[Row], chances: &[Vec<f64>]) -> Result<Vec<bool>, Error> {
    let charging = Charging::new(&profile.frames);
    let mut differs = vec![false; profile.frames.len()];
    let mut inclusive: Vec<(&Row, FrameId)> = Vec::new();
    for (row, chances) in rows.iter().zip(chances) {
        let frame = row.frames[0];
        differs[frame.index()] = is_significant(chances[0]);
        if is_significant(chances[1]) && !is_significant(chances[0]) {
            inclusive.push((row, frame));
        }
    }
    let mut kept = Vec::with_capacity(profile.len());
    // True for each function that has a stack that is kept.
    let mut is_explained = vec![false; profile.frames.len()];
    profile.for_each_sorted::<Error>(|stack| {
        let keep = charging.charged(stack.frames).is_some_and(|frame| differs[frame.index()]);
        if keep {
            stack.frames.iter().for_each(|frame| is_explained[frame.index()] = true);
        }
        kept.push(keep);
        Ok(())
    })?;
    inclusive.sort_by_key(|(row, frame)| {
        let weights = row.weights[1];
        (weights.before.max(weights.after), Reverse(frame.index()))
    });
    for (_, frame) in inclusive {
        if is_explained[frame.index()] {
            continue;
        }
        let mut number = 0;
        profile.for_each_sorted::<Error>(|stack| {
            if stack.frames.contains(&frame) {
                kept[number] = true;
                stack.frames.iter().for_each(|frame| is_explained[frame.index()] = true);
            }
            number += 1;
            Ok(())
        })?;
    }
    Ok(kept)
}
