//! Compares two profiles: each stack with its weight before and after.

mod candidates;
mod common;
mod comparison;
mod counterpart;
mod counterparts;
mod join_renamed;
mod modules;
mod moved_lines;
mod name_words;
mod options;
mod own_functions;
mod path_name;
mod program;
mod relations;
mod rename_evidence;
mod renamed;
mod renaming;
mod repeated_run;
mod runs;
mod scale;
mod side_names;
mod significant;
mod sources;
mod stream;
mod substitution;
mod thread_names;

pub use common::{CommonRuns, Hiding, OneSided, OneSidedFunction};
pub use comparison::Comparison;
pub use counterpart::{Counterpart, NamePart};
pub use counterparts::Counterparts;
pub use join_renamed::{RenamedInSums, find_renamed_in_sums};
pub use moved_lines::{WITHOUT_LINES, without_line};
pub use options::Options;
pub use renamed::Renamed;
pub use runs::ComparedRuns;
pub use scale::Scaling;
pub use stream::diff_streams;

use self::join_renamed::rename_functions;
use self::thread_names::ThreadNames;
use crate::Error;
use crate::filter::rename;
use crate::markers;
use crate::profile::{Frames, Profile, Weight, Weights};
use crate::stats::caveat::Caveat;
use crate::tally::GroupBy;

/// Compares the sum of the runs before with the sum of those after. A stack that one side lacks has weight zero there.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit. [`Error::Invalid`] if significance is requested for durations with
/// one run a side.
///
/// # Example
/// ```
/// use fgkit::{diff, folded, profile::{Profile, Weight, Weights}};
/// let (mut before, mut after) = (Profile::new(false), Profile::new(false));
/// let main = [before.frames.intern(b"main")];
/// before.add(&main, Weights::plain(Weight::new(5)))?;
/// let main = [after.frames.intern(b"main")];
/// after.add(&main, Weights::plain(Weight::new(7)))?;
/// let (both, _) = diff::diff(vec![before], vec![after], &diff::Options::default())?;
/// let mut text = Vec::new();
/// folded::write(&both, &mut text).expect("memory does not fail");
/// assert_eq!(text, b"main 5 7\n");
/// # Ok::<(), fgkit::Error>(())
/// ```
pub fn diff(before: Vec<Profile>, after: Vec<Profile>, options: &Options) -> Result<(Profile, Comparison), Error> {
    let RenamedSides { mut before, mut after, mut counterparts } = rename_sides(before, after, options)?;
    let mut renamed = Vec::new();
    if options.match_renames {
        let (mut compared, _) = compare(before, after, options)?;
        if !options.exact_names {
            compared = compared.join_modules()?;
        }
        renamed = compared.find_renamed()?;
        counterparts.extend(compared.counterparts);
        (before, after) = (rename_functions(&compared.runs.before, &renamed)?, compared.runs.after);
    }
    let (mut both, mut comparison) = match options.significant {
        Some(by) => compare_significant(before, after, options, by),
        None if matches!(options.scaling, Scaling::Median) => {
            let (compared, comparison) = compare(before, after, options)?;
            flatten(compared.profile, comparison, None)
        }
        None => compare_sums(before, after, options),
    }?;
    if options.flattens() {
        mark_as_flattened(&mut both)?;
    }
    comparison.renamed = renamed;
    comparison.counterparts = counterparts;
    Ok((both, comparison))
}

/// Compares runs as [`diff`] does and keeps them, so that sums of any kind can be judged. Nothing is flattened.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn compare_runs(before: Vec<Profile>, after: Vec<Profile>, options: &Options) -> Result<ComparedRuns, Error> {
    let RenamedSides { before, after, counterparts } = rename_sides(before, after, options)?;
    let (compared, _) = compare(before, after, options)?;
    Ok(ComparedRuns { counterparts, ..compared })
}

/// The runs of two sides with the names under which they are compared.
struct RenamedSides {
    before: Vec<Profile>,
    after: Vec<Profile>,
    counterparts: Counterparts,
}

/// Returns the profiles with the names that the options give their frames, without the numbers of threads, and those before with the
/// names after of their counterparts.
fn rename_sides(mut before: Vec<Profile>, mut after: Vec<Profile>, options: &Options) -> Result<RenamedSides, Error> {
    if options.strip_hex || !options.renames.is_empty() {
        (before, after) = (rename_all(&before, options)?, rename_all(&after, options)?);
    }
    if options.exact_names {
        let counterparts = Counterparts::default().with_moved_lines(moved_lines::count_moved(&before, &after)?);
        return Ok(RenamedSides { before, after, counterparts });
    }
    let threads = ThreadNames::find(&before, &after);
    (before, after) = (threads.rename(before)?, threads.rename(after)?);
    let mut counterparts = Counterparts::find(&before, &after)?;
    if !counterparts.is_empty() {
        let renaming = counterparts.renaming();
        let renamed = before.iter().map(|profile| rename::rename_frames(profile, |name| renaming.rename(name)));
        before = renamed.collect::<Result<_, _>>()?;
    }
    counterparts.extend(Counterparts::from_names(threads.into_counterparts()));
    counterparts = counterparts.with_moved_lines(moved_lines::count_moved(&before, &after)?);
    Ok(RenamedSides { before, after, counterparts })
}

fn rename_all(profiles: &[Profile], options: &Options) -> Result<Vec<Profile>, Error> {
    profiles.iter().map(|profile| rename_frames(profile, options)).collect()
}

fn rename_frames(profile: &Profile, options: &Options) -> Result<Profile, Error> {
    rename::rename_frames(profile, |name| {
        let mut name = rename::apply_all(&options.renames, name);
        if options.strip_hex {
            name = rename::strip_hex(&name).into_owned().into();
        }
        name
    })
}

/// Compares sums, and frees the runs.
fn compare_sums(
    mut before: Vec<Profile>,
    after: Vec<Profile>,
    options: &Options,
) -> Result<(Profile, Comparison), Error> {
    let runs = (before.len(), after.len());
    let repeated = if runs == (1, 1) { None } else { find_caveat_of_sums(&before, &after, options) };
    // The first run becomes the sum itself.
    let first = if before.is_empty() { Profile::new(true) } else { before.remove(0).into_before() };
    let mut both = join_sides(first, &before, &after)?;
    let ratio = options.ratio(both.measured_total(), runs.0, runs.1, 1.0);
    let unit = scale::rounding_unit(both.all_weights().all(Weights::are_whole));
    let mut comparison = Comparison::new(both.total(), ratio, unit, options)?.with_lost_stack(find_lost(&mut both));
    comparison.caveat = repeated;
    both.map_weights(|weights| {
        let weights = comparison.scale_stack(weights)?;
        Ok(comparison.flatten_stack(weights, true))
    })?;
    Ok((both, comparison))
}

/// Returns a warning if two runs of one side are identical, which their sums do not show.
fn find_caveat_of_sums(before: &[Profile], after: &[Profile], options: &Options) -> Option<Caveat> {
    let mut frames = Frames::new();
    before.iter().chain(after).for_each(|run| drop(frames.intern_all(&run.frames)));
    let survey = runs::survey_weights(&Profile::new(true), before, after);
    repeated_run::find_repeated_run(before, after, survey.kind(&frames, options.weights))
}

/// Adds the stack that marks a profile whose differences were flattened: shares of its total before are wrong.
fn mark_as_flattened(profile: &mut Profile) -> Result<(), Error> {
    let marker = [profile.frames.intern(markers::FLATTENED)];
    profile.add(&marker, Weights::default())
}

/// Compares sums, and flattens differences that are not significant.
fn compare_significant(
    before: Vec<Profile>,
    after: Vec<Profile>,
    options: &Options,
    by: GroupBy,
) -> Result<(Profile, Comparison), Error> {
    let (compared, mut comparison) = compare(before, after, options)?;
    comparison.weight_kind = Some(compared.weight_kind);
    comparison.caveat = compared.caveat.clone();
    let Some(kept) = significant::find_significant(&compared, by)? else {
        let caveat = compared.weight_kind.caveat(true).unwrap_or_default();
        return Err(Error::Invalid(caveat.to_owned()));
    };
    flatten(compared.profile, comparison, Some(kept))
}

/// Joins and scales runs, and keeps them. The rows that are judged are those of the joined profile, so a stack whose scaled
/// weight is rounded to zero on both sides is a row in no program.
fn compare(before: Vec<Profile>, after: Vec<Profile>, options: &Options) -> Result<(ComparedRuns, Comparison), Error> {
    let counts = (before.len(), after.len());
    let mut profile = join_sides(Profile::new(true), &before, &after)?;
    let survey = runs::survey_weights(&profile, &before, &after);
    let weight_kind = survey.kind(&profile.frames, options.weights);
    let caveat = runs::find_caveat(&before, &after, &survey, weight_kind, options);
    let runs = runs::scale_runs(&profile, before, after, options.scaling)?;
    let median = mean(&runs.factors_before) / mean(&runs.factors_after);
    let ratio = options.ratio(profile.measured_total(), counts.0, counts.1, median);
    let unit = scale::rounding_unit(profile.all_weights().all(Weights::are_whole));
    let lost = find_lost(&mut profile);
    let mut comparison = Comparison::new(profile.total(), ratio, unit, options)?.with_lost_stack(lost);
    profile.map_weights(|weights| comparison.scale_stack(weights))?;
    Ok((ComparedRuns { profile, runs, weight_kind, caveat, counterparts: Counterparts::default() }, comparison))
}

/// Returns the position of the stack of lost samples among the sorted stacks.
fn find_lost(profile: &mut Profile) -> Option<u64> {
    if profile.measured_total() == profile.total() {
        return None;
    }
    profile.presort(crate::parallel::cores());
    let (mut number, mut lost) = (0, None);
    let _ = profile.for_each_sorted(|stack| {
        lost = lost.or(profile.frames.is_lost(stack.frames).then_some(number));
        number += 1;
        Ok::<(), ()>(())
    });
    lost
}

/// Returns the mean of the factors of a side's runs; 0 if it has none.
fn mean(factors: &[f64]) -> f64 {
    factors.iter().sum::<f64>() / factors.len().max(1) as f64
}

/// Flattens differences of scaled stacks that are too small or not `kept`.
fn flatten(
    mut both: Profile,
    mut comparison: Comparison,
    kept: Option<Vec<bool>>,
) -> Result<(Profile, Comparison), Error> {
    let mut number = 0;
    both.map_weights(|weights| {
        number += 1;
        Ok(comparison.flatten_stack(weights, kept.as_ref().is_none_or(|kept| kept[number - 1])))
    })?;
    Ok((both, comparison))
}

/// Adds all stacks of both sides to a differential profile, with unscaled weights.
fn join_sides(mut both: Profile, before: &[Profile], after: &[Profile]) -> Result<Profile, Error> {
    before.iter().try_for_each(|profile| add_before(&mut both, profile))?;
    after.iter().try_for_each(|profile| both.merge(profile))?;
    Ok(both)
}

/// Adds all stacks of a plain profile to the side before of a differential one.
fn add_before(both: &mut Profile, profile: &Profile) -> Result<(), Error> {
    let ids = both.frames.intern_all(&profile.frames);
    profile.for_each(|stack, weights| {
        let stack: Vec<_> = stack.iter().map(|frame| ids[frame.index()]).collect();
        both.add(&stack, Weights { before: weights.after, after: Weight::ZERO })
    })
}

/// Returns a profile of lines `stack BEFORE AFTER`.
#[cfg(test)]
fn differential_profile(lines: &[&str]) -> Profile {
    let mut profile = Profile::new(true);
    for line in lines {
        let words: Vec<&str> = line.rsplitn(3, ' ').collect();
        let stack: Vec<_> = words[2].split(';').map(|name| profile.frames.intern(name.as_bytes())).collect();
        let [before, after] = [words[1], words[0]].map(|word| Weight::new(word.parse().unwrap()));
        profile.add(&stack, Weights { before, after }).unwrap();
    }
    profile
}
