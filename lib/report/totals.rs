//! The totals of the two sides of a comparison.

use super::context::Context;
use super::judgement::Amount;
use super::measure::{format_change, percent_change};
use super::page::{Fact, Value};
use crate::profile::Weights;

/// The totals of a comparison differ widely from this factor on, and probably in their units from the second one on.
const WIDE_DIFFERENCE: f64 = 4.0;
const OTHER_UNIT: f64 = 1000.0;

/// Returns the fact about the totals of two profiles: what was measured and, if that was scaled, to what.
pub(super) fn totals(context: &Context<'_>, sides: [&str; 2]) -> Fact {
    let (amount, total) = (Amount::new(context), context.survey.total);
    let measured = context.evidence.measured_before().unwrap_or(total.before);
    let mut before = amount.text(measured);
    let mut numbers = vec![("before", measured.as_f64()), ("after", total.after.as_f64())];
    if measured != total.before {
        before.push_str(&format!(", scaled to {}", amount.text_without_unit(total.before)));
        numbers.push(("scaled_before", total.before.as_f64()));
    }
    let mut text = format!("{}: {before}; {}: {}", sides[0], sides[1], amount.text(total.after));
    if !total.before.is_zero() {
        let change = percent_change(total, total.before);
        text.push_str(&format!(" ({})", format_change(change)));
        numbers.push(("change_pct", change));
    }
    text.push_str(&doubt(context).unwrap_or_default());
    Fact { label: "profiles", value: Value::Text(text), numbers }
}

/// Returns what is doubtful about a comparison of totals that differ widely.
fn doubt(context: &Context<'_>) -> Option<String> {
    let Weights { before, after } = context.survey.total;
    let (smaller, larger) = (before.min(after).as_f64(), before.max(after).as_f64());
    let option = context.scaling_command.filter(|_| smaller > 0.0)?;
    match larger / smaller {
        OTHER_UNIT.. => {
            Some("; the totals differ so much that the units may: compare profiles of the same kind".to_owned())
        }
        WIDE_DIFFERENCE.. => Some(format!("; the totals differ widely: {option} compares shares")),
        _ => None,
    }
}
