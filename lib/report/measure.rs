//! The number by which functions are ranked, and how numbers are written.

use crate::profile::{Weight, Weights};

/// The number by which functions and branches are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// The weight; in a comparison the one after.
    After,
    /// The sum of the differences between after and before of all stacks, whatever their signs.
    Moved,
    /// The growth: by how much the weight after is more than that before.
    Growth,
}

impl Measure {
    /// Returns the number of a branch with these weights, whose stacks differ by `moved` in all.
    pub(super) fn size(self, weights: Weights, moved: Weight) -> Weight {
        match self {
            Self::After => weights.after,
            Self::Moved => moved,
            Self::Growth => weights.after.saturating_sub(weights.before),
        }
    }
}

/// Returns the share of a part in percent; 0 if the whole is 0.
pub(super) fn percent(part: Weight, whole: Weight) -> f64 {
    if whole.is_zero() { 0.0 } else { 100.0 * part.as_f64() / whole.as_f64() }
}

/// Returns the change between two weights in percent of a whole.
pub(super) fn percent_change(weights: Weights, whole: Weight) -> f64 {
    percent(weights.after, whole) - percent(weights.before, whole)
}

/// Formats a share in percent: `38.1%`.
pub(super) fn format_percent(share: f64) -> String {
    if share > 0.0 && share < 0.05 { "<0.1%".to_owned() } else { format!("{share:.1}%") }
}

/// The most digits behind the point of a change.
const MOST_DIGITS: usize = 4;

/// Formats a change in percent points with its sign: `+3.2%`. A small one has as many digits as it takes to see it: `+0.003%`.
pub(super) fn format_change(change: f64) -> String {
    let digits = (1..=MOST_DIGITS).find(|digits| change.abs() * 10_f64.powi(*digits as i32) >= 0.5);
    match digits {
        Some(digits) => format!("{change:+.digits$}%"),
        None if change == 0.0 => "0.0%".to_owned(),
        None => format!("{}<0.0001%", if change < 0.0 { '-' } else { '+' }),
    }
}

/// Formats a number with commas between groups of three digits.
pub(super) fn format_weight(weight: Weight) -> String {
    let text = weight.to_string();
    let whole = text.find('.').unwrap_or(text.len());
    group_digits(&text[..whole]) + &text[whole..]
}

/// Formats a number for a column of a table: large ones with their first digits only.
pub(super) fn format_short(weight: Weight) -> String {
    const UNITS: [(f64, &str); 4] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")];
    let number = weight.as_f64();
    if let Some((unit, letter)) = UNITS.into_iter().find(|(unit, _)| number >= 10.0 * unit) {
        return format!("{:.1}{letter}", number / unit);
    }
    if number < 10.0 && number.fract() > 0.0 { format!("{number:.1}") } else { group_digits(&format!("{number:.0}")) }
}

/// Formats a count with commas between groups of three digits.
pub(super) fn format_count(count: usize) -> String {
    group_digits(&count.to_string())
}

fn group_digits(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a duration in microseconds with a unit of fitting size.
pub(super) fn format_microseconds(weight: Weight) -> String {
    let microseconds = weight.as_f64();
    match microseconds {
        0.0..1e3 => format!("{microseconds:.0} µs"),
        0.0..1e6 => format!("{:.1} ms", microseconds / 1e3),
        _ => format!("{:.2} s", microseconds / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::{format_change, format_count, format_microseconds, format_percent, format_short, format_weight};
    use crate::profile::Weight;

    #[test]
    fn formats_numbers_for_reading() {
        assert_eq!([0.0, 0.01, 0.05, 38.14, 100.0].map(format_percent), ["0.0%", "<0.1%", "0.1%", "38.1%", "100.0%"]);
        assert_eq!([0.01, -0.004, 3.21, -3.0].map(format_change), ["+0.01%", "-0.004%", "+3.2%", "-3.0%"]);
        assert_eq!([0.0, 0.049, 1e-9, -1e-9].map(format_change), ["0.0%", "+0.05%", "+<0.0001%", "-<0.0001%"]);
        assert_eq!([7, 999, 1000, 1_234_567].map(format_count), ["7", "999", "1,000", "1,234,567"]);
        let shorts = [0, 4500, 9_999_999, 12_345_678, 80_000_000_000].map(|weight| format_short(Weight::new(weight)));
        assert_eq!(shorts, ["0", "4,500", "9,999,999", "12.3M", "80.0G"]);
        assert_eq!(["2.25", "12.5"].map(|text| format_short(Weight::parse(text.as_bytes()).unwrap())), ["2.2", "12"]);
        assert_eq!(format_weight(Weight::parse(b"12345.5").unwrap()), "12,345.5");
        let durations = [5, 1500, 2_500_000].map(|weight| format_microseconds(Weight::new(weight)));
        assert_eq!(durations, ["5 µs", "1.5 ms", "2.50 s"]);
    }
}
