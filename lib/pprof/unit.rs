//! Units of values. pprof stores integers, so fractional weights are converted to a smaller unit.

use crate::Error;
use crate::profile::{Profile, Weight};

/// The units of time that pprof knows, each a thousandth of the previous one.
const TIME_UNITS: [&str; 4] = ["seconds", "milliseconds", "microseconds", "nanoseconds"];

/// The unit of a profile's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The name that pprof shows. A fraction of a unit without a name of its own is called `UNIT/100`.
    pub name: String,
    /// The number of these units in one unit of the weights: a power of ten up to a million.
    pub scale: u64,
}

impl Unit {
    /// Returns the largest fraction of `unit` in which all weights of the profile are integers.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the sum of the weights exceeds pprof's 63 bits.
    pub fn for_profile(unit: &str, profile: &Profile) -> Result<Self, Error> {
        let weights = profile.all_weights().flat_map(|weights| [weights.before, weights.after]);
        let unit = Self::with_scale(unit, weights.map(decimal_scale).max().unwrap_or(1));
        let total = profile.total();
        if unit.fits(total.before) && unit.fits(total.after) {
            return Ok(unit);
        }
        Err(Error::Invalid(format!("the sum of the weights is too large: pprof has values below 2^63 {}", unit.name)))
    }

    fn with_scale(unit: &str, scale: u64) -> Self {
        if scale == 1 {
            return Self { name: unit.to_owned(), scale };
        }
        // A thousandth or millionth of a unit of time has a name that pprof understands.
        let thousandths = if scale <= 1000 { 1 } else { 2 };
        match TIME_UNITS.iter().position(|time| *time == unit).and_then(|index| TIME_UNITS.get(index + thousandths)) {
            Some(smaller) => Self { name: (*smaller).to_owned(), scale: 1000u64.pow(thousandths as u32) },
            None => Self { name: format!("{unit}/{scale}"), scale },
        }
    }

    /// Parses the name of a unit: `UNIT/100` is a hundredth of a unit.
    pub fn parse(name: &[u8]) -> Self {
        let name = String::from_utf8_lossy(name);
        let fraction = name.rsplit_once('/').and_then(|(unit, scale)| Some((unit, parse_power_of_ten(scale)?)));
        match fraction {
            Some((unit, scale)) => Self { name: unit.to_owned(), scale },
            None => Self { name: name.into_owned(), scale: 1 },
        }
    }

    /// Converts a value to a weight.
    pub fn to_weight(&self, value: u64) -> Weight {
        Weight::from_millionths(u128::from(value) * 1_000_000 / u128::from(self.scale))
    }

    /// Converts a weight to a value. The weight must be in the profile that the unit was made [for](Self::for_profile):
    /// its value is an integer and fits.
    pub(crate) fn to_value(&self, weight: Weight) -> i64 {
        (weight.millionths() / u128::from(1_000_000 / self.scale)) as i64
    }

    fn fits(&self, weight: Weight) -> bool {
        weight.millionths() / u128::from(1_000_000 / self.scale) <= i64::MAX as u128
    }
}

/// Returns the smallest power of ten by which a weight can be multiplied to become an integer.
fn decimal_scale(weight: Weight) -> u64 {
    let mut scale = 1;
    while scale < 1_000_000 && !weight.millionths().is_multiple_of(u128::from(1_000_000 / scale)) {
        scale *= 10;
    }
    scale
}

/// Parses a power of ten up to a million, the scale of weights with six decimals.
fn parse_power_of_ten(text: &str) -> Option<u64> {
    let zeros = text.strip_prefix('1').filter(|zeros| zeros.len() <= 6 && zeros.bytes().all(|byte| byte == b'0'))?;
    Some(10u64.pow(zeros.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::Unit;
    use crate::profile::{Profile, Weight, Weights};

    fn choose_unit(unit: &str, weights: &[&str]) -> Option<(String, u64)> {
        let mut profile = Profile::new(false);
        for text in weights {
            let frame = [profile.frames.intern(text.as_bytes())];
            profile.add(&frame, Weights::plain(Weight::parse(text.as_bytes()).unwrap())).unwrap();
        }
        Unit::for_profile(unit, &profile).ok().map(|unit| (unit.name, unit.scale))
    }

    #[test]
    fn chooses_a_unit_in_which_weights_are_integers() {
        for (unit, weights, name, scale) in [
            ("count", &["1", "20"][..], "count", 1),
            ("count", &["1", "0.25"], "count/100", 100),
            ("seconds", &["1.5"], "milliseconds", 1000),
            ("milliseconds", &["0.0001"], "nanoseconds", 1_000_000),
            ("nanoseconds", &["0.5"], "nanoseconds/10", 10),
            ("count", &["9223372036854775807"], "count", 1),
        ] {
            assert_eq!(choose_unit(unit, weights), Some((name.to_owned(), scale)));
        }
        assert_eq!(choose_unit("count", &["9223372036854775808"]), None);
        assert_eq!(choose_unit("count", &["1000000000000000000", "0.01"]), None);
    }

    #[test]
    fn parses_fractions_of_units() {
        let unit = Unit::parse(b"count/1000");
        assert_eq!((unit.to_weight(1500), unit.to_value(unit.to_weight(1500))), (Weight::parse(b"1.5").unwrap(), 1500));
        for name in ["bytes/second", "count/12", "nanoseconds", "x/10000000"] {
            assert_eq!(Unit::parse(name.as_bytes()), Unit { name: name.to_owned(), scale: 1 });
        }
    }
}
