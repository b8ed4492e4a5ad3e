//! The stacks whose differences are significant.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::renamed::Renamed;
use super::runs::ComparedRuns;
use crate::Error;
use crate::profile::{FrameId, Profile, Weights};
use crate::stats::judgement::Observation;
use crate::tally::{Charging, GroupBy, Judgement, Row, is_significant, observe_runs, tally_profile};

/// If the weights do not allow a judgement, a function counts as unchanged up to this difference, relative to its weight.
const UNJUDGED_SHARE: f64 = 0.1;

/// Largest probability that chance alone puts a function on one side, if it is to be paired with another one.
///
/// Both functions of a pair must pass, and be alike. In 20 simulated comparisons of each size, a renamed function of 2 % of the
/// time was found 8 times with 500 samples a run, 18 times with 1,000 and always with 3,000 and more; no other functions were
/// paired, in 800 of which most had few samples (`FG_VERDICT_TRIALS=20 cargo test --test cli -- renames:: --nocapture`).
const MAX_CHANCE: f64 = 0.02;

/// The same as a share of the total weight of the side, if the weights do not allow a judgement.
const UNJUDGED_WEIGHT: f64 = 0.01;

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
    let (total, design) = (compared.total(), compared.design()?);
    let Some(judgement) = Judgement::new(&rows, &profile.frames, &observations, &total, design) else {
        return Ok(None);
    };
    match by {
        GroupBy::Function => keep_functions(profile, &rows, &judgement.chances).map(Some),
        _ => keep_stacks(profile, &rows, &judgement.chances).map(Some),
    }
}

/// Keeps the pairs of functions whose self and inclusive weights do not differ significantly if each pair is one function. If the
/// weights do not allow a judgement, these are all that do not differ by more than [`UNJUDGED_SHARE`].
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub(super) fn keep_equal_pairs(compared: &ComparedRuns, renamed: Vec<Renamed>) -> Result<Vec<Renamed>, Error> {
    if renamed.is_empty() {
        return Ok(renamed);
    }
    let profile = &compared.profile;
    let rows = tally_profile(profile, GroupBy::Function)?;
    let observations = observe_runs(&rows, &profile.frames, &compared.runs, GroupBy::Function)?;
    let judgement = Judgement::new(&rows, &profile.frames, &observations, &compared.total(), compared.design()?);
    let names = rows.iter().map(|row| profile.frames.name(row.frames[0]));
    let by_name: BTreeMap<&[u8], &[Observation]> = names.zip(observations.iter().map(Vec::as_slice)).collect();
    let equal = renamed.into_iter().filter(|pair| {
        let [Some([own, all]), Some([new_own, new_all])] =
            [&pair.before, &pair.after].map(|name| by_name.get(&name[..]))
        else {
            return false;
        };
        let (mut own, mut all) = (own.clone(), all.clone());
        own.add(new_own);
        all.add(new_all);
        match &judgement {
            Some(judged) => [&own, &all].iter().all(|one| !is_significant(judged.chance_of_group(one, Some(&own)))),
            None => !differs_much(&own) && !differs_much(&all),
        }
    });
    Ok(equal.collect())
}

/// True if the mean weights of two sides differ by more than [`UNJUDGED_SHARE`] of the larger one.
fn differs_much(observation: &Observation) -> bool {
    let [before, after] = [&observation.before, &observation.after].map(|weights| mean(weights));
    (after - before).abs() > UNJUDGED_SHARE * before.max(after)
}

fn mean(weights: &[f64]) -> f64 {
    weights.iter().sum::<f64>() / weights.len().max(1) as f64
}

/// Returns the names of the functions that are on one side only, and not by chance. If the weights do not allow a judgement,
/// these have at least [`UNJUDGED_WEIGHT`] of the total.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub(super) fn find_one_sided(compared: &ComparedRuns) -> Result<BTreeSet<Vec<u8>>, Error> {
    let profile = &compared.profile;
    let mut rows = tally_profile(profile, GroupBy::Function)?;
    let observations = observe_runs(&rows, &profile.frames, &compared.runs, GroupBy::Function)?;
    let judgement = Judgement::new(&rows, &profile.frames, &observations, &compared.total(), compared.design()?);
    let total = profile.total();
    let mut observations = observations.iter();
    rows.retain(|row| {
        let (inclusive, observed) = (row.weights[1], observations.next());
        let is_one_sided = inclusive.before.is_zero() != inclusive.after.is_zero();
        is_one_sided
            && match (&judgement, observed.map(Vec::as_slice)) {
                (Some(judgement), Some([own, all])) => judgement.p_value(all, Some(own)) <= MAX_CHANCE,
                _ => is_large(inclusive, total),
            }
    });
    Ok(rows.iter().map(|row| profile.frames.name(row.frames[0]).to_vec()).collect())
}

/// True if one of two weights is more than [`UNJUDGED_WEIGHT`] of the total of its side.
fn is_large(weights: Weights, total: Weights) -> bool {
    weights.before.as_f64() > UNJUDGED_WEIGHT * total.before.as_f64()
        || weights.after.as_f64() > UNJUDGED_WEIGHT * total.after.as_f64()
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
