//! Rules: what is measured, of what, and how much it may be.

use regex::bytes::Regex;

use crate::Error;
use crate::csv::Categories;
use crate::error::regex_error_text;
use crate::markers;
use crate::profile::{Weight, Weights};

/// What a rule measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The weight of stacks whose leaf matches.
    SelfShare,
    /// The weight of stacks in which a frame matches.
    Inclusive,
    /// The self weight of a category's functions.
    Category,
    /// By how much a function's self weight grew; of each that matches by itself if no pattern is given.
    Growth,
    /// By how much the weight of stacks grew in which a frame matches; of each frame by itself if no pattern is given.
    InclusiveGrowth,
    /// Samples that were lost.
    Lost,
    /// Stacks that are cut.
    Truncated,
    /// Stacks whose leaf has no name.
    Unknown,
    /// Of stacks in an asynchronous runtime, those in which nothing is done but polling and tracing.
    BusyLoop,
}

/// How much idle polling is too much, if that is not said.
pub const BUSY: &str = "80";

/// The names of all rules, which are the options' too.
const NAMES: [(&str, Measure); 9] = [
    ("self", Measure::SelfShare),
    ("inclusive", Measure::Inclusive),
    ("category", Measure::Category),
    ("growth", Measure::Growth),
    ("inclusive-growth", Measure::InclusiveGrowth),
    ("lost", Measure::Lost),
    ("truncated", Measure::Truncated),
    ("unknown", Measure::Unknown),
    ("busy-loop", Measure::BusyLoop),
];

impl Measure {
    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, measure)| *measure == self).map_or("", |(name, _)| name)
    }

    /// Whether two weights are compared.
    pub fn is_growth(self) -> bool {
        matches!(self, Self::Growth | Self::InclusiveGrowth)
    }

    /// What a stack contributes.
    pub(super) fn contribution(self) -> fn(Weights) -> Weight {
        match self.is_growth() {
            true => |weights| weights.after.saturating_sub(weights.before),
            false => |weights| weights.after,
        }
    }

    pub(super) fn percent(self, weights: Weights, total: Weights) -> f64 {
        let (part, whole) = match self.is_growth() {
            true => (weights.after.as_f64() - weights.before.as_f64(), total.before),
            false => (weights.after.as_f64(), total.after),
        };
        if whole.is_zero() { if part > 0.0 { f64::INFINITY } else { 0.0 } } else { 100.0 * part / whole.as_f64() }
    }
}

/// A limit.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What is measured.
    pub measure: Measure,
    /// As it was written: a pattern or a category.
    pub text: Option<String>,
    /// More than so many hundredths break the rule.
    pub limit: f64,
    pattern: Option<Regex>,
}

impl Rule {
    /// Reads `PATTERN=PERCENT`, or `PERCENT` where the measure needs no pattern. The last `=` divides.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(measure: Measure, text: &str) -> Result<Self, String> {
        let (subject, limit) = match text.rsplit_once('=') {
            Some((subject, limit)) => (Some(subject), limit),
            None => (None, text),
        };
        let takes_none = matches!(measure, Measure::Lost | Measure::Truncated | Measure::Unknown | Measure::BusyLoop);
        match subject {
            Some(_) if takes_none => return Err("expected only a share in percent".to_owned()),
            None if !takes_none && !measure.is_growth() => {
                return Err("expected WHAT=PERCENT".to_owned());
            }
            _ => {}
        }
        let limit = limit.trim();
        let number = limit.strip_suffix('%').unwrap_or(limit);
        let limit = number.parse::<f64>().ok().filter(|limit| limit.is_finite() && *limit >= 0.0);
        let limit = limit.ok_or_else(|| format!("{number:?} is not a share in percent"))?;
        let pattern = match subject {
            Some(subject) if measure != Measure::Category => {
                Some(Regex::new(subject).map_err(|error| regex_error_text(&error))?)
            }
            _ => None,
        };
        Ok(Self { measure, text: subject.map(str::to_owned), limit, pattern })
    }

    /// Reads a file of rules: an option without its dashes and its value a line; empty lines and those that begin with `#`
    /// say nothing. `source` is for messages.
    ///
    /// # Errors
    /// [`Error::Malformed`] where a line is no rule.
    pub fn parse_all(text: &str, source: &str) -> Result<Vec<Self>, Error> {
        let lines = text.trim_start_matches('\u{feff}').lines().zip(1..).map(|(line, number)| (line.trim(), number));
        let rules = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        rules
            .map(|(line, number)| {
                let malformed = |what: String| Error::Malformed { name: source.to_owned(), line: number, what };
                let (name, value) = line.split_once([' ', '\t']).unwrap_or((line, ""));
                let known = NAMES.iter().find(|(known, _)| *known == name);
                let names = || NAMES.map(|(name, _)| name).join(", ");
                let (_, measure) = known.ok_or_else(|| malformed(format!("expected one of {}", names())))?;
                // As without a value on the command line.
                let value = if *measure == Measure::BusyLoop && value.trim().is_empty() { BUSY } else { value };
                Self::parse(*measure, value.trim()).map_err(malformed)
            })
            .collect()
    }

    /// What it is about, for a report.
    pub(super) fn subject(&self) -> Vec<u8> {
        self.text.clone().unwrap_or_default().into_bytes()
    }

    /// Whether it is about functions that match a pattern.
    pub(super) fn has_pattern(&self) -> bool {
        self.pattern.is_some()
    }

    /// Fails if it is about a category that there is not.
    pub(super) fn knows_its_category(&self, categories: &Categories) -> Result<(), Error> {
        match &self.text {
            Some(name) if self.measure == Measure::Category && !categories.names().any(|known| known == name) => {
                let known = categories.names().collect::<Vec<_>>().join(", ");
                Err(Error::Invalid(format!("there is no category {name}: expected one of {known}")))
            }
            _ => Ok(()),
        }
    }

    /// Whether each function is judged by itself.
    pub(super) fn judges_each(&self) -> bool {
        self.measure.is_growth() && self.pattern.is_none()
    }

    /// Whether it is about this frame.
    pub(super) fn concerns(&self, name: &[u8], categories: &Categories) -> bool {
        match self.measure {
            Measure::Category => self.text.as_deref() == Some(categories.of(name)),
            Measure::Lost => name == markers::LOST,
            Measure::Truncated => name == markers::TRUNCATED,
            Measure::Unknown => markers::is_without_symbol(name),
            _ => self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Measure, Rule};

    #[test]
    fn the_last_equals_sign_divides() {
        let rule = Rule::parse(Measure::SelfShare, "operator==|a=2.5%").unwrap();
        assert_eq!((rule.text.as_deref(), rule.limit), (Some("operator==|a"), 2.5));
        for (measure, text) in [
            (Measure::SelfShare, "5%"),
            (Measure::SelfShare, "(=5%"),
            (Measure::SelfShare, "a=b"),
            (Measure::SelfShare, "a=-1"),
            (Measure::Lost, "x=1%"),
            (Measure::Lost, "NaN"),
        ] {
            assert!(Rule::parse(measure, text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_has_a_rule_a_line() {
        let rules = Rule::parse_all("\u{feff}# mine\r\nself ^malloc$=5%\n\n\tgrowth 3\nlost 1%\n", "rules").unwrap();
        let measures: Vec<_> = rules.iter().map(|rule| rule.measure.name()).collect();
        assert_eq!(measures, ["self", "growth", "lost"]);
        let error = Rule::parse_all("lost 1%\nnothing 3\n", "rules").unwrap_err().to_string();
        assert!(error.starts_with("rules:2: expected one of self, inclusive"), "{error}");
    }
}
