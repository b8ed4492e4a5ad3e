//! Patterns that match nothing, of which programs warn: usually a name is misspelled, or differs in this profile.

use super::{Filter, Filtered};

/// A pattern of an option that no frame matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmatchedPattern {
    /// The name of the option.
    pub option: &'static str,
    /// Its pattern.
    pub pattern: String,
}

impl std::fmt::Display for UnmatchedPattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "--{} {}: no frame matches", self.option, self.pattern)
    }
}

impl Filter {
    /// Returns the patterns that were tried with all stacks, and that no frame matches.
    pub fn unmatched(&self, filtered: &Filtered<'_>) -> Vec<UnmatchedPattern> {
        let renames = self.names.renames.iter().map(|rename| ("rename", rename.rule(), rename.has_matched()));
        let split = self.split.iter().map(|split| ("split", split.pattern(), split.has_matched()));
        let matchers = self.matchers().filter(|(verb, _)| filtered.has_selected || matches!(*verb, "root" | "focus"));
        let matchers = matchers.map(|(verb, matcher)| (verb, matcher.pattern(), matcher.has_matched()));
        let unmatched = renames.chain(split).chain(matchers).filter(|(.., has_matched)| !has_matched);
        unmatched.map(|(option, pattern, _)| UnmatchedPattern { option, pattern: pattern.to_owned() }).collect()
    }
}
