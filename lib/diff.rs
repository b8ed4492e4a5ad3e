//! The difference of two profiles: every stack of either with its weight before and after.

mod beta;
mod comparison;
mod runs;
mod scale;
pub mod significance;
mod stream;

pub use comparison::Comparison;
pub use scale::{Scaling, multiply_divide};
pub use stream::diff_if_sorted;

use crate::Error;
use crate::filter::{Rename, Threshold, rename};
use crate::profile::{Profile, Weight, Weights};
use scale::Ratio;
use significance::FALSE_DISCOVERIES;

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
/// [`Error::Overflow`] if a sum does not fit; [`Error::Refused`] if the significance of weights is asked for that are
/// no counts.
///
/// # Example
/// ```
/// use fgkit::{diff, folded, profile::{Profile, Weight, Weights}};
/// let (mut before, mut after) = (Profile::new(false), Profile::new(false));
/// let main = [before.frames.intern(b"main")];
/// before.add(&main, Weights::plain(Weight::new(5)))?;
/// let main = [after.frames.intern(b"main")];
/// after.add(&main, Weights::plain(Weight::new(7)))?;
/// let (both, _) = diff::diff(&[before], &[after], &diff::Options::default())?;
/// let mut text = Vec::new();
/// folded::write(&both, &mut text).expect("memory does not fail");
/// assert_eq!(text, b"main 5 7\n");
/// # Ok::<(), fgkit::Error>(())
/// ```
pub fn diff(before: &[Profile], after: &[Profile], options: &Options) -> Result<(Profile, Comparison), Error> {
    if !options.strip_hex && options.renames.is_empty() {
        return compare(before, after, options);
    }
    let renamed = |profiles: &[Profile]| profiles.iter().map(|profile| options.renamed(profile)).collect();
    let (before, after): (Result<Vec<_>, _>, Result<Vec<_>, _>) = (renamed(before), renamed(after));
    compare(&before?, &after?, options)
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

fn compare(before: &[Profile], after: &[Profile], options: &Options) -> Result<(Profile, Comparison), Error> {
    let joined = join(before, after)?;
    let totals = joined.total();
    let ratio = options.ratio(totals, before.len(), after.len());
    let real = match options.significant {
        true => Some(significant(&joined, before, after, ratio, options)?),
        false => None,
    };
    let mut comparison = Comparison::new(totals, ratio, scale::unit(&joined), options)?;
    let mut both = Profile::new(true);
    let ids = both.frames.intern_all(&joined.frames);
    let (mut number, mut frames) = (0, Vec::new());
    joined.for_each_sorted(|stack| {
        let weights = comparison.weigh(stack.weights, real.as_ref().is_none_or(|real| real[number]))?;
        number += 1;
        frames.clear();
        frames.extend(stack.frames.iter().map(|frame| ids[frame.index()]));
        both.add(&frames, weights)
    })?;
    Ok((both, comparison))
}

/// Every stack of either side with its weights as they are, the runs of a side added up.
fn join(before: &[Profile], after: &[Profile]) -> Result<Profile, Error> {
    let mut both = Profile::new(true);
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
fn significant(
    joined: &Profile,
    before: &[Profile],
    after: &[Profile],
    ratio: Ratio,
    options: &Options,
) -> Result<Vec<bool>, Error> {
    let evidence = runs::evidence(joined, before, after, options)?;
    Ok(significance::adjusted(&evidence, ratio.as_f64()).iter().map(|share| *share <= FALSE_DISCOVERIES).collect())
}
