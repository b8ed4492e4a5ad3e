//! The difference of two profiles: every stack of either with its weight before and after.

mod comparison;
mod runs;
mod scale;
mod stream;

pub use comparison::Comparison;
pub use scale::Scaling;
pub use stream::diff_streams;

use crate::Error;
use crate::filter::{Rename, Threshold, rename};
use crate::profile::{Profile, Weight, Weights};
use crate::stats::significance::{self, FALSE_DISCOVERIES, Noise};
use runs::Told;
use scale::Ratio;

/// How two profiles are compared.
#[derive(Debug, Default)]
pub struct Options {
    /// How the weights before are made comparable.
    pub scaling: Scaling,
    /// Make every `0x` address in a frame `0x...`, so that stacks which differ by an address meet.
    pub strip_hex: bool,
    /// Frames to rename, so that stacks which differ by a name meet.
    pub renames: Vec<Rename>,
    /// Flatten differences that are smaller.
    pub min_change: Option<Threshold>,
    /// Flatten differences that noise explains.
    pub significant: bool,
    /// What one sample weighs; the weights' common divisor if not said.
    pub per_sample: Option<Weight>,
}

/// Compares the runs before, added up, with those after. A stack that stands on one side only weighs nothing on the other.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit; [`Error::Invalid`] if the significance of durations is asked for with one
/// run a side.
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
        return compare(before, after, options);
    }
    let renamed = |profiles: &[Profile]| profiles.iter().map(|profile| options.renamed(profile)).collect();
    let (before, after): (Result<Vec<_>, _>, Result<Vec<_>, _>) = (renamed(&before), renamed(&after));
    compare(before?, after?, options)
}

impl Options {
    fn renamed(&self, profile: &Profile) -> Result<Profile, Error> {
        rename::frames(profile, |name| {
            let mut name = rename::apply_all(&self.renames, name);
            if self.strip_hex {
                name = rename::strip_hex(&name).into_owned().into();
            }
            name
        })
    }

    fn ratio(&self, totals: Weights, runs_before: usize, runs_after: usize) -> Ratio {
        match self.scaling {
            Scaling::Runs => Ratio::new(runs_after as u128, runs_before as u128),
            Scaling::Totals => Ratio::new(totals.after.millionths(), totals.before.millionths()),
            Scaling::By(factor) => Ratio::new(factor.millionths(), Weight::ONE.millionths()),
        }
    }
}

fn compare(mut before: Vec<Profile>, after: Vec<Profile>, options: &Options) -> Result<(Profile, Comparison), Error> {
    let runs = (before.len(), after.len());
    // The first run is the beginning of both, unless it is still wanted as it is.
    let first =
        if options.significant || before.is_empty() { Profile::new(true) } else { before.remove(0).into_before() };
    let mut both = join(first, &before, &after)?;
    let totals = both.total();
    let ratio = options.ratio(totals, runs.0, runs.1);
    let unit = scale::unit(both.all_weights().all(Weights::are_whole));
    let told = match options.significant {
        true => Some(runs::evidence(&both, &before, &after, options)?),
        false => None,
    };
    let real = told.as_ref().map(|told| significant(told, totals, ratio));
    let mut comparison = Comparison::new(totals, ratio, unit, options)?;
    comparison.weighed = told.map(|told| told.weighed);
    let mut number = 0;
    both.map_weights(|weights| {
        number += 1;
        comparison.weigh(weights, real.as_ref().is_none_or(|real| real[number - 1]))
    })?;
    Ok((both, comparison))
}

/// Adds to a differential profile every stack of either side with its weight as it is.
fn join(mut both: Profile, before: &[Profile], after: &[Profile]) -> Result<Profile, Error> {
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

/// For each stack, in sorted order, whether its difference is more than noise.
fn significant(told: &Told, totals: Weights, ratio: Ratio) -> Vec<bool> {
    let samples = (totals.before.as_f64() + totals.after.as_f64()) / 2.0 / told.sample.as_f64();
    let noise = Noise::of(&told.evidence, ratio.as_f64(), samples);
    let shares = significance::adjusted(&told.evidence, &noise);
    shares.iter().map(|share| *share <= FALSE_DISCOVERIES).collect()
}
