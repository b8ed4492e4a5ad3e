//! What samples weigh, in a list beside theirs.

use super::value::{Items, Value};
use crate::collapse::whole;
use crate::profile::Weight;

/// What is said of samples of which that cannot be told.
pub(super) const WEIGHTLESS: &str = "whose weight is missing, negative or too large left out";

/// Weights in the order of the samples; 1 each if there is no list.
pub(super) struct Weights<'t> {
    list: Option<Items<'t>>,
    /// How many samples had none, or one that cannot be.
    pub(super) missing: u64,
}

impl<'t> Weights<'t> {
    pub(super) fn new(list: Option<Value<'t>>) -> Self {
        Self { list: list.filter(|list| list.is_array()).map(Value::items), missing: 0 }
    }

    /// The next sample's.
    pub(super) fn next(&mut self) -> Weight {
        let Some(list) = &mut self.list else { return Weight::ONE };
        let weight = list.next().and_then(Value::millionths).and_then(whole::positive);
        self.missing += u64::from(weight.is_none());
        weight.unwrap_or_default()
    }
}
