//! Compares two profiles: each stack with its weight before and after.

mod comparison;
mod options;
mod runs;
mod scale;
mod stream;

pub use comparison::Comparison;
pub use options::Options;
pub use scale::Scaling;
pub use stream::diff_streams;

use self::runs::RunObservations;
use self::scale::Ratio;
use crate::Error;
use crate::filter::rename;
use crate::profile::{Profile, Weight, Weights};
use crate::stats::significance::{self, FALSE_DISCOVERY_RATE, Noise};

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
    if !options.strip_hex && options.renames.is_empty() {
        return compare_profiles(before, after, options);
    }
    compare_profiles(rename_all(&before, options)?, rename_all(&after, options)?, options)
}

/// Returns the profiles with the names that the options give their frames.
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

fn compare_profiles(
    mut before: Vec<Profile>,
    after: Vec<Profile>,
    options: &Options,
) -> Result<(Profile, Comparison), Error> {
    let runs = (before.len(), after.len());
    // The first run becomes the sum itself, unless significance needs each run later.
    let first =
        if options.significant || before.is_empty() { Profile::new(true) } else { before.remove(0).into_before() };
    let mut both = join_sides(first, &before, &after)?;
    let totals = both.total();
    let ratio = options.ratio(totals, runs.0, runs.1);
    let unit = scale::rounding_unit(both.all_weights().all(Weights::are_whole));
    let observed = match options.significant {
        true => Some(runs::observe_stacks(&both, &before, &after, options)?),
        false => None,
    };
    let significant = observed.as_ref().map(|observed| find_significant(observed, totals, ratio));
    let mut comparison = Comparison::new(totals, ratio, unit, options)?;
    comparison.weight_kind = observed.map(|observed| observed.weight_kind);
    let mut number = 0;
    both.map_weights(|weights| {
        number += 1;
        comparison.add_stack(weights, significant.as_ref().is_none_or(|significant| significant[number - 1]))
    })?;
    Ok((both, comparison))
}

/// Adds all stacks of both sides to a differential profile, with unscaled weights.
fn join_sides(mut both: Profile, before: &[Profile], after: &[Profile]) -> Result<Profile, Error> {
    for profile in before {
        let ids = both.frames.intern_all(&profile.frames);
        profile.for_each(|stack, weights| {
            let stack: Vec<_> = stack.iter().map(|frame| ids[frame.index()]).collect();
            both.add(&stack, Weights { before: weights.after, after: Weight::ZERO })
        })?;
    }
    for profile in after {
        both.merge(profile)?;
    }
    Ok(both)
}

/// Returns for each stack, in sorted order, true if its difference is significant.
fn find_significant(observed: &RunObservations, totals: Weights, ratio: Ratio) -> Vec<bool> {
    let samples = (totals.before.as_f64() + totals.after.as_f64()) / 2.0 / observed.sample.as_f64();
    let noise = Noise::estimate(&observed.stacks, ratio.as_f64(), samples);
    let p_values = significance::adjust_p_values(&observed.stacks, &noise);
    p_values.iter().map(|p| *p <= FALSE_DISCOVERY_RATE).collect()
}
