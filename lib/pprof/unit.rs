//! What a value of 1 means, and weights that are no whole numbers.

use crate::Error;
use crate::profile::{Profile, Weight};

/// The units of time that pprof knows, each a thousandth of the one before.
const TIMES: [&str; 4] = ["seconds", "milliseconds", "microseconds", "nanoseconds"];

/// A unit, and how many of it make one of the unit that the weights have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// How pprof calls it. A part of a unit that has no name of its own is `UNIT/100`.
    pub name: String,
    /// How many make one.
    pub scale: u64,
}

impl Unit {
    /// The largest part of `unit` of which all weights are whole numbers.
    ///
    /// # Errors
    /// [`Error::Invalid`] if their sum is more than pprof can hold.
    pub fn of(unit: &str, profile: &Profile) -> Result<Self, Error> {
        let weights = profile.all_weights().flat_map(|weights| [weights.before, weights.after]);
        let unit = Self::with_scale(unit, weights.map(scale_of).max().unwrap_or(1));
        let total = profile.total();
        if unit.fits(total.before) && unit.fits(total.after) {
            return Ok(unit);
        }
        Err(Error::Invalid(format!("the weights' sum is too large for pprof, which counts to 2^63 {}", unit.name)))
    }

    fn with_scale(unit: &str, scale: u64) -> Self {
        if scale == 1 {
            return Self { name: unit.to_owned(), scale };
        }
        // Three decimals of a second are milliseconds, which pprof shows as what they are.
        let thousandths = if scale <= 1000 { 1 } else { 2 };
        match TIMES.iter().position(|time| *time == unit).and_then(|place| TIMES.get(place + thousandths)) {
            Some(smaller) => Self { name: (*smaller).to_owned(), scale: 1000u64.pow(thousandths as u32) },
            None => Self { name: format!("{unit}/{scale}"), scale },
        }
    }

    /// The unit that a name means: of `UNIT/100`, a hundred make one.
    pub fn named(name: &[u8]) -> Self {
        let name = String::from_utf8_lossy(name);
        let part = name.rsplit_once('/').and_then(|(unit, scale)| Some((unit, power_of_ten(scale)?)));
        match part {
            Some((unit, scale)) => Self { name: unit.to_owned(), scale },
            None => Self { name: name.into_owned(), scale: 1 },
        }
    }

    /// The weight that a value stands for.
    pub fn weight(&self, value: u64) -> Weight {
        Weight::from_millionths(u128::from(value) * 1_000_000 / u128::from(self.scale))
    }

    /// The value that stands for a weight of the profile that the unit is [`of`](Self::of).
    pub(super) fn value(&self, weight: Weight) -> i64 {
        // Neither rounds nor overflows, since it was asked before.
        (weight.millionths() / u128::from(1_000_000 / self.scale)) as i64
    }

    fn fits(&self, weight: Weight) -> bool {
        weight.millionths() / u128::from(1_000_000 / self.scale) <= i64::MAX as u128
    }
}

/// How many parts of a unit a weight is a whole number of.
fn scale_of(weight: Weight) -> u64 {
    let mut scale = 1;
    while scale < 1_000_000 && !weight.millionths().is_multiple_of(u128::from(1_000_000 / scale)) {
        scale *= 10;
    }
    scale
}

/// Up to a million: a weight has six decimals.
fn power_of_ten(text: &str) -> Option<u64> {
    let zeros = text.strip_prefix('1').filter(|zeros| zeros.len() <= 6 && zeros.bytes().all(|byte| byte == b'0'))?;
    Some(10u64.pow(zeros.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::Unit;
    use crate::profile::{Profile, Weight, Weights};

    fn of(unit: &str, weights: &[&str]) -> Option<(String, u64)> {
        let mut profile = Profile::new(false);
        for text in weights {
            let frame = [profile.frames.intern(text.as_bytes())];
            profile.add(&frame, Weights::plain(Weight::parse(text.as_bytes()).unwrap())).unwrap();
        }
        Unit::of(unit, &profile).ok().map(|unit| (unit.name, unit.scale))
    }

    #[test]
    fn fractions_are_whole_numbers_of_a_smaller_unit() {
        for (unit, weights, name, scale) in [
            ("count", &["1", "20"][..], "count", 1),
            ("count", &["1", "0.25"], "count/100", 100),
            ("seconds", &["1.5"], "milliseconds", 1000),
            ("milliseconds", &["0.0001"], "nanoseconds", 1_000_000),
            ("nanoseconds", &["0.5"], "nanoseconds/10", 10),
            ("count", &["9223372036854775807"], "count", 1),
        ] {
            assert_eq!(of(unit, weights), Some((name.to_owned(), scale)));
        }
        assert_eq!(of("count", &["9223372036854775808"]), None);
        assert_eq!(of("count", &["1000000000000000000", "0.01"]), None);
    }

    #[test]
    fn a_part_of_a_unit_is_read_as_what_it_is() {
        let unit = Unit::named(b"count/1000");
        assert_eq!((unit.weight(1500), unit.value(unit.weight(1500))), (Weight::parse(b"1.5").unwrap(), 1500));
        for name in ["bytes/second", "count/12", "nanoseconds", "x/10000000"] {
            assert_eq!(Unit::named(name.as_bytes()), Unit { name: name.to_owned(), scale: 1 });
        }
    }
}
