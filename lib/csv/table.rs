//! The tables as CSV.

use std::cmp::Reverse;
use std::io::{self, Write};

use super::Count;
use crate::profile::{Profile, Weight, Weights};

const PLAIN: [&str; 5] = ["function", "self_samples", "self_pct", "inclusive_samples", "inclusive_pct"];
const DIFFERENTIAL: [&str; 7] =
    ["function", "self_before", "self_after", "self_delta", "inclusive_before", "inclusive_after", "inclusive_delta"];

/// Writes one row a frame that weighs something: by inclusive weight, the largest first, and for a differential profile
/// by how much the self weight changed; equals by name.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, counts: &[Count], out: impl Write) -> io::Result<()> {
    write_table(profile, counts, out).map_err(|error| match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    })
}

fn write_table(profile: &Profile, counts: &[Count], out: impl Write) -> Result<(), csv::Error> {
    let mut rows: Vec<(&[u8], Count)> =
        profile.frames.iter().map(|(frame, name)| (name, counts[frame.index()])).collect();
    rows.retain(|(_, count)| count.inclusive != Weights::default());
    let mut table = csv::Writer::from_writer(out);
    if profile.is_differential() {
        rows.sort_unstable_by_key(|(name, count)| {
            (Reverse(change(count.own)), Reverse(change(count.inclusive)), *name)
        });
        table.write_record(DIFFERENTIAL)?;
    } else {
        rows.sort_unstable_by_key(|(name, count)| (Reverse(count.inclusive.after), *name));
        table.write_record(PLAIN)?;
    }
    let total = profile.total().after;
    for (name, count) in rows {
        table.write_field(name)?;
        for weights in [count.own, count.inclusive] {
            if profile.is_differential() {
                table.write_field(weights.before.to_string())?;
                table.write_field(weights.after.to_string())?;
                table.write_field(delta(weights))?;
            } else {
                table.write_field(weights.after.to_string())?;
                table.write_field(percent(weights.after, total))?;
            }
        }
        table.write_record(None::<&[u8]>)?;
    }
    table.flush().map_err(csv::Error::from)
}

fn change(weights: Weights) -> Weight {
    weights.before.max(weights.after).saturating_sub(weights.before.min(weights.after))
}

fn delta(weights: Weights) -> String {
    let sign = if weights.after < weights.before { "-" } else { "" };
    format!("{sign}{}", change(weights))
}

fn percent(part: Weight, whole: Weight) -> String {
    let share = if whole.is_zero() { 0.0 } else { 100.0 * part.as_f64() / whole.as_f64() };
    format!("{share:.4}")
}
