//! Functions whose weight is divided among the lines in their names: `parse (app.py:12)` and `parse (app.py:14)`.

use std::collections::BTreeMap;

use super::context::Context;
use super::page::{Fact, Value};
use crate::diagnostics::printable;
use crate::diff::without_line;
use crate::own_code::Origin;
use crate::profile::Weight;

/// The lines of a function hide it if it has this multiple of the weight of the largest name.
const MIN_MULTIPLE: f64 = 1.2;

/// Smallest share of a function in percent that is stated.
const MIN_SHARE: f64 = 10.0;

/// Returns the fact that says which function has most of the weight, if it is divided among lines so that others come before it.
pub(super) fn divided_function(context: &Context<'_>) -> Option<Fact> {
    let mut functions = BTreeMap::<Vec<u8>, (Weight, usize)>::new();
    let mut largest = Weight::ZERO;
    for (frame, own) in &context.survey.own {
        if own.is_thread || context.origins.origin(*frame) == Origin::Marker {
            continue;
        }
        largest = largest.max(own.weights.after);
        let Some(function) = without_line(context.profile.frames.name(*frame)) else { continue };
        let (sum, lines) = functions.entry(function).or_default();
        *sum = sum.checked_add(own.weights.after)?;
        *lines += 1;
    }
    let (function, (sum, lines)) = functions.into_iter().max_by_key(|(_, (sum, _))| *sum)?;
    let share = context.share(sum);
    let is_hidden = lines > 1 && share >= MIN_SHARE && share >= MIN_MULTIPLE * context.share(largest);
    is_hidden.then(|| {
        let function = printable(&String::from_utf8_lossy(&function));
        let text = format!("{function} has {share:.1}% on {lines} lines, each counted as a function of its own");
        let numbers = vec![("share", share), ("lines", lines as f64)];
        Fact { label: "lines", value: Value::Text(text), numbers }
    })
}
