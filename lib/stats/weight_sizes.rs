//! The sizes of weights: their binary logarithms, in quarters.

/// Most weights far below the others among periods: perf begins with a few short ones. Of numbers of samples, more are small.
const MOST_SHORT_PART: u64 = 10;
const MOST_SHORT: u64 = 6;

/// Part of the total, in thousandths, that weights below that of a sample have: one for each weight, within these bounds.
/// Few stacks are sums of many periods each, of many stacks most are one.
///
/// Measured with periods that vary by a fifth or by a factor of e, after six short ones, 24 comparisons of each kind: equal programs of
/// 30 to 400 stacks and 29 to 300 samples differed in none and in 0 to 17 %. By the lightest tenth of the stacks, they differed in up to
/// 80 and 100 %; by the median, a function that trebled was missed with 3000 samples of 30 stacks
/// (`varying_periods_are_no_number_of_samples`).
const LIGHT_PART: (u128, u128) = (50, 200);

/// The number of weights by size.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes(Vec<u64>);

impl Sizes {
    pub(super) fn add(&mut self, weight: u128) {
        let size = size_of(weight);
        if size >= self.0.len() {
            self.0.resize(size + 1, 0);
        }
        self.0[size] += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(sum, count)| *sum += count);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// True if no more of the weights than perf begins with are below this one, within a fifth.
    pub(super) fn are_few_below(&self, weight: u128) -> bool {
        let below: u64 = self.0.iter().take(size_of(weight)).sum();
        let count = self.count();
        below <= (count / MOST_SHORT_PART).max(MOST_SHORT.min(count / 4))
    }

    /// Returns the weight below which all weights together have the part [`LIGHT_PART`] of the total, within a fifth.
    pub(super) fn light(&self) -> u128 {
        self.quantile_by_weight(u128::from(self.count()).clamp(LIGHT_PART.0, LIGHT_PART.1) as f64 / 1000.0)
    }

    /// Returns the weight below which all weights together have this part of the total, within a fifth.
    pub(super) fn quantile_by_weight(&self, part: f64) -> u128 {
        let weights = || self.0.iter().enumerate().map(|(size, count)| (size, *count as f64 * weight_of(size)));
        let wanted = weights().map(|(_, weight)| weight).sum::<f64>() * part;
        let mut sum = 0.0;
        let mut found = weights().skip_while(|(_, weight)| {
            sum += weight;
            sum < wanted
        });
        found.next().map_or(0, |(size, _)| weight_of(size) as u128)
    }

    /// Returns a weight that one in `parts` of all weights do not exceed, within a fifth.
    pub(super) fn quantile(&self, parts: u64) -> u128 {
        let wanted = self.count() / parts;
        let mut sum = 0;
        let found = self.0.iter().position(|count| {
            sum += count;
            sum > wanted
        });
        found.map_or(0, |size| weight_of(size) as u128)
    }
}

/// Returns four times the binary logarithm of a weight.
fn size_of(weight: u128) -> usize {
    ((weight as f64).log2() * 4.0) as usize
}

/// Returns the least weight of a size.
fn weight_of(size: usize) -> f64 {
    (size as f64 / 4.0).exp2()
}
