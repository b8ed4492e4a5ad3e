//! Finds runs that are copies of others. A copy makes noise look smaller than it is.

use std::collections::BTreeMap;
use std::f64::consts::PI;

use crate::folded;
use crate::profile::Profile;
use crate::stats::caveat::Caveat;
use crate::stats::sample_weight::WeightKind;

/// Equal runs are copies if chance makes two runs equal in fewer cases than this.
const MAX_CHANCE: f64 = 1e-4;

/// Returns a warning if two runs of one side are identical, and that is no chance. Exact counts may be equal in all runs.
pub(super) fn find_repeated_run(before: &[Profile], after: &[Profile], kind: WeightKind) -> Option<Caveat> {
    if kind == WeightKind::Exact {
        return None;
    }
    let (_, sample) = kind.counting(true);
    [(before, "before"), (after, "after")].into_iter().find_map(|(runs, side)| {
        let [one, other] = find_identical(runs, sample)?.map(|index| index + 1);
        let text = format!(
            "two runs of one side are identical: {one} and {other} {side}; a run that is given twice makes noise look \
             smaller than it is"
        );
        Some(text.into())
    })
}

/// Returns the indices of two runs with the same stacks and weights, if that is no chance. `sample` is the weight of one.
fn find_identical(runs: &[Profile], sample: f64) -> Option<[usize; 2]> {
    let mut alike = BTreeMap::<_, Vec<usize>>::new();
    for (index, run) in runs.iter().enumerate() {
        alike.entry((run.len(), run.total().after)).or_default().push(index);
    }
    let alike =
        alike.into_values().filter(|group| group.len() > 1 && chance_of_equal(&runs[group[0]], sample) < MAX_CHANCE);
    let pairs = alike.filter_map(|group| {
        let mut texts = BTreeMap::new();
        group.into_iter().find_map(|index| texts.insert(folded_text(&runs[index])?, index).map(|other| [other, index]))
    });
    pairs.min()
}

/// Returns the probability that another run with the same total has the same weights.
///
/// If a weight follows a Poisson distribution with a mean of n samples, two are equal with a probability of
/// exp(-2n)·I₀(2n), which is 1/√(1 + 4πn) within an eighth. The weight of the heaviest stack follows from the total.
fn chance_of_equal(run: &Profile, sample: f64) -> f64 {
    let samples = || run.all_weights().map(|weights| weights.after.as_f64() / sample);
    let logarithm: f64 = samples().map(log_chance).sum();
    (logarithm - log_chance(samples().fold(0.0, f64::max))).exp()
}

/// Returns the logarithm of the probability that two weights, each with a mean of `samples`, are equal.
fn log_chance(samples: f64) -> f64 {
    -0.5 * (1.0 + 4.0 * PI * samples).ln()
}

/// Returns a profile as folded text; `None` if a sum does not fit.
fn folded_text(profile: &Profile) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    folded::write(profile, &mut text).ok().map(|()| text)
}

#[cfg(test)]
mod tests {
    use super::{chance_of_equal, find_identical};
    use crate::profile::{Profile, Weight, Weights};

    fn run(weights: &[u64]) -> Profile {
        let mut profile = Profile::new(false);
        for (number, weight) in weights.iter().enumerate() {
            let stack = [profile.frames.intern(format!("f{number}").as_bytes())];
            profile.add(&stack, Weights::plain(Weight::new(*weight))).unwrap();
        }
        profile
    }

    #[test]
    fn the_chance_is_that_of_independent_weights() {
        // exp(-2n)·I₀(2n) for n = 1 and n = 10.
        for (samples, expected) in [(1, 0.3085), (10, 0.0898)] {
            let chance = chance_of_equal(&run(&[1000, samples]), 1.0);
            assert!((chance / expected - 1.0).abs() < 0.13, "{samples}: {chance}");
        }
        assert_eq!(chance_of_equal(&run(&[1000]), 1.0), 1.0, "only the total");
    }

    #[test]
    fn equal_runs_are_copies_if_there_is_evidence() {
        let many_small: Vec<u64> = (0..40).map(|number| 1 + number % 3).collect();
        let find = |runs: &[&[u64]]| find_identical(&runs.iter().map(|weights| run(weights)).collect::<Vec<_>>(), 1.0);
        assert_eq!(find(&[&many_small, &[5], &many_small]), Some([0, 2]));
        assert_eq!(find(&[&[610, 48, 39, 165], &[610, 48, 39, 165]]), Some([0, 1]));
        assert_eq!(find(&[&[610, 48, 39, 165], &[610, 48, 38, 166]]), None, "the same total");
        assert_eq!(find(&[&[990, 10], &[990, 10]]), None, "may be chance");
    }
}
