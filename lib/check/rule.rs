//! Rules: a measure, a subject and a limit.

use regex::bytes::Regex;

use crate::Error;
use crate::csv::Categories;
use crate::error::regex_error_text;
use crate::markers;
use crate::profile::{Weight, Weights};

/// Quantity that a rule limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Self weight of functions that match.
    SelfShare,
    /// Weight of stacks with a frame that matches.
    Inclusive,
    /// Self weight of the functions of a category.
    Category,
    /// Growth of the self weight of functions that match; without a pattern, of each function.
    Growth,
    /// Growth of the weight of stacks with a frame that matches; without a pattern, of each function.
    InclusiveGrowth,
    /// Self weight of each function, or of each that matches.
    Each,
    /// Inclusive weight of each function, or of each that matches.
    EachInclusive,
    /// Growth of the weight of each call, or of each with a function that matches.
    EdgeGrowth,
    /// Growth of the self weight of each category, or of one.
    CategoryGrowth,
    /// Samples that the kernel or the recorder dropped.
    Lost,
    /// Stacks that were cut before the root.
    Truncated,
    /// Stacks whose leaf has no symbol.
    Unknown,
    /// Share of stacks within an asynchronous runtime that only poll and trace.
    BusyLoop,
}

/// Default limit of [`Measure::BusyLoop`], in percent.
pub const DEFAULT_BUSY_LOOP_LIMIT: &str = "80";

/// Names of the measures, in rule files and as options.
const NAMES: [(&str, Measure); 13] = [
    ("self", Measure::SelfShare),
    ("inclusive", Measure::Inclusive),
    ("category", Measure::Category),
    ("growth", Measure::Growth),
    ("inclusive-growth", Measure::InclusiveGrowth),
    ("each", Measure::Each),
    ("each-inclusive", Measure::EachInclusive),
    ("edge-growth", Measure::EdgeGrowth),
    ("category-growth", Measure::CategoryGrowth),
    ("lost", Measure::Lost),
    ("truncated", Measure::Truncated),
    ("unknown", Measure::Unknown),
    ("busy-loop", Measure::BusyLoop),
];

impl Measure {
    /// Returns the name of the measure.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, measure)| *measure == self).map_or("", |(name, _)| name)
    }

    /// True if the measure compares two weights.
    pub fn is_growth(self) -> bool {
        matches!(self, Self::Growth | Self::InclusiveGrowth | Self::EdgeGrowth | Self::CategoryGrowth)
    }

    /// True if a function's weight includes that of its callees.
    pub(super) fn includes_callees(self) -> bool {
        matches!(self, Self::InclusiveGrowth | Self::EdgeGrowth)
    }

    /// True if the subject is a category and not a pattern.
    fn is_of_category(self) -> bool {
        matches!(self, Self::Category | Self::CategoryGrowth)
    }

    /// True if the subject may be omitted: then the rule is for each function, call or category.
    fn may_be_for_each(self) -> bool {
        self.is_growth() || matches!(self, Self::Each | Self::EachInclusive)
    }

    /// Returns the function that computes what a stack contributes to the measure, from the stack's weights.
    pub(super) fn contribution(self) -> fn(Weights) -> Weight {
        match self.is_growth() {
            true => |weights| weights.after.saturating_sub(weights.before),
            false => |weights| weights.after,
        }
    }

    /// Returns the value of the measure in percent of the total.
    pub(super) fn percent(self, weights: Weights, total: Weights) -> f64 {
        let (part, whole) = match self.is_growth() {
            true => (weights.after.as_f64() - weights.before.as_f64(), total.before),
            false => (weights.after.as_f64(), total.after),
        };
        if whole.is_zero() { if part > 0.0 { f64::INFINITY } else { 0.0 } } else { 100.0 * part / whole.as_f64() }
    }
}

/// A limit on a measure.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Quantity that the rule limits.
    pub measure: Measure,
    /// Source text of the pattern, or a category.
    pub text: Option<String>,
    /// Highest allowed value, in percent.
    pub limit: f64,
    pattern: Option<Regex>,
}

impl Rule {
    /// Parses `PATTERN=PERCENT`, or `PERCENT` for measures without a pattern. The last `=` is the separator.
    ///
    /// # Errors
    /// A message that says what is wrong.
    pub fn parse(measure: Measure, text: &str) -> Result<Self, String> {
        let (subject, limit) = match text.rsplit_once('=') {
            Some((subject, limit)) => (Some(subject), limit),
            None => (None, text),
        };
        let takes_none = matches!(measure, Measure::Lost | Measure::Truncated | Measure::Unknown | Measure::BusyLoop);
        match subject {
            Some(_) if takes_none => return Err("expected a percentage without a pattern, like 5%".to_owned()),
            None if !takes_none && !measure.may_be_for_each() => {
                let what = if measure.is_of_category() { "NAME" } else { "RE" };
                return Err(format!(
                    "expected {what}=N%, like {}",
                    if what == "RE" { "^malloc$=5%" } else { "allocator=5%" }
                ));
            }
            _ => {}
        }
        let limit = limit.trim();
        let number = limit.strip_suffix('%').unwrap_or(limit);
        let limit = number.parse::<f64>().ok().filter(|limit| limit.is_finite() && *limit >= 0.0);
        let limit = limit.ok_or_else(|| format!("{number:?} is not a percentage, like 5% or 0.5%"))?;
        let pattern = match subject {
            Some(subject) if !measure.is_of_category() => {
                Some(Regex::new(subject).map_err(|error| regex_error_text(&error))?)
            }
            _ => None,
        };
        Ok(Self { measure, text: subject.map(str::to_owned), limit, pattern })
    }

    /// Parses a file of rules, one a line: an option without dashes, blanks, its value. Empty lines and lines that
    /// start with `#` are comments. `source` names the file in messages.
    ///
    /// # Errors
    /// [`Error::Malformed`] if a line is not a rule.
    pub fn parse_all(text: &str, source: &str) -> Result<Vec<Self>, Error> {
        let lines = text.trim_start_matches('\u{feff}').lines().zip(1..).map(|(line, number)| (line.trim(), number));
        let rules = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        rules
            .map(|(line, number)| {
                Self::parse_line(line).map_err(|what| Error::Malformed { name: source.to_owned(), line: number, what })
            })
            .collect()
    }

    /// Parses a line of a file of rules. The error says what is wrong.
    fn parse_line(line: &str) -> Result<Self, String> {
        let (name, value) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let known = NAMES.iter().find(|(known, _)| *known == name);
        let (_, measure) = known.ok_or_else(|| {
            format!("{name:?} is not a rule; expected one of {}", NAMES.map(|(name, _)| name).join(", "))
        })?;
        // The value is optional here as on the command line.
        let is_default = *measure == Measure::BusyLoop && value.trim().is_empty();
        Self::parse(*measure, if is_default { DEFAULT_BUSY_LOOP_LIMIT } else { value.trim() })
    }

    /// Returns the pattern or category, for reports.
    pub(super) fn subject(&self) -> Vec<u8> {
        self.text.clone().unwrap_or_default().into_bytes()
    }

    /// True if the rule has a pattern.
    pub(super) fn has_pattern(&self) -> bool {
        self.pattern.is_some()
    }

    /// Fails if the rule names an unknown category.
    pub(super) fn check_category(&self, categories: &Categories) -> Result<(), Error> {
        match &self.text {
            Some(name) if self.measure.is_of_category() && !categories.names().any(|known| known == name) => {
                let known = categories.names().collect::<Vec<_>>().join(", ");
                Err(Error::Invalid(format!("category {name:?} does not exist; expected one of {known}")))
            }
            _ => Ok(()),
        }
    }

    /// True if the rule limits each function separately.
    pub(super) fn is_per_function(&self) -> bool {
        self.measure.is_growth() && self.pattern.is_none()
    }

    /// True if the rule limits the growth of each function or call that both sides have: the cost of the others counts for
    /// their callers.
    pub(super) fn is_of_common_functions(&self) -> bool {
        self.is_per_function() && self.measure != Measure::CategoryGrowth
    }

    /// True if the rule applies to this frame.
    pub(super) fn matches(&self, name: &[u8], categories: &Categories) -> bool {
        match self.measure {
            Measure::Category => self.text.as_deref() == Some(categories.categorize(name)),
            Measure::CategoryGrowth => self.text.as_deref().is_none_or(|text| text == categories.categorize(name)),
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
    fn splits_at_the_last_equals_sign() {
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
    fn parses_one_rule_a_line() {
        let rules = Rule::parse_all("\u{feff}# mine\r\nself ^malloc$=5%\n\n\tgrowth 3\nlost 1%\n", "rules").unwrap();
        let measures: Vec<_> = rules.iter().map(|rule| rule.measure.name()).collect();
        assert_eq!(measures, ["self", "growth", "lost"]);
        let error = Rule::parse_all("lost 1%\nnothing 3\n", "rules").unwrap_err().to_string();
        assert!(error.starts_with("rules:2: \"nothing\" is not a rule; expected one of self, inclusive"), "{error}");
    }
}
