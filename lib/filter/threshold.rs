//! A limit on weights, absolute or as a share of the total.

use crate::Error;
use crate::profile::Weight;
use crate::profile::multiply_divide;

/// A limit on weights as written on the command line: `250` or `0.5%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// An absolute weight.
    Weight(Weight),
    /// A percentage of the total.
    Percent(Weight),
}

impl Threshold {
    /// Returns the absolute weight, given the total.
    ///
    /// # Errors
    /// [`Error::Overflow`] if it does not fit.
    pub fn resolve(&self, total: Weight) -> Result<Weight, Error> {
        let percent = match self {
            Self::Weight(weight) => return Ok(*weight),
            Self::Percent(percent) => percent.millionths(),
        };
        let hundred = 100 * Weight::ONE.millionths();
        let share = multiply_divide(total.millionths(), percent, hundred, 0);
        share.map(|(weight, _)| Weight::from_millionths(weight)).ok_or(Error::Overflow)
    }
}

impl std::str::FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, kind) = match text.strip_suffix('%') {
            Some(number) => (number, Self::Percent as fn(Weight) -> Self),
            None => (text, Self::Weight as fn(Weight) -> Self),
        };
        Weight::parse(number.as_bytes())
            .map(kind)
            .ok_or_else(|| "expected a weight or a share that is not negative, like 250 or 0.5%".into())
    }
}
