//! The weights of samples, in a list parallel to the list of samples.

use super::value::{Items, Value};
use crate::collapse::document_helpers::weight_from_millionths;
use crate::profile::Weight;

/// The warning about samples with an invalid weight.
pub(super) const INVALID_WEIGHT: &str = "left out: the weight is missing, negative or too large";

/// Weights in the order of the samples. Without a list, each is 1.
pub(super) struct WeightList<'t> {
    list: Option<Items<'t>>,
    /// Number of samples whose weight is missing or invalid.
    pub(super) invalid: u64,
}

impl<'t> WeightList<'t> {
    pub(super) fn new(list: Option<Value<'t>>) -> Self {
        Self { list: list.filter(|list| list.is_array()).map(Value::items), invalid: 0 }
    }

    /// Returns the weight of the next sample, or zero if it is invalid.
    pub(super) fn next(&mut self) -> Weight {
        let Some(list) = &mut self.list else { return Weight::ONE };
        let weight = list.next().and_then(Value::as_millionths).and_then(weight_from_millionths);
        self.invalid += u64::from(weight.is_none());
        weight.unwrap_or_default()
    }
}
