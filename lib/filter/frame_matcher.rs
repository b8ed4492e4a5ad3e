//! A pattern with its cached result for each frame.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::profile::{FrameId, Frames};

/// The start of a function's arguments, or a parenthesis that belongs to the name.
static PARENTHESIS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\(anonymous namespace\)|operator\(\)|\(").expect("a valid pattern"));

/// A pattern that is matched once against each distinct frame of a profile.
#[derive(Clone, Debug)]
pub struct FrameMatcher {
    pattern: Regex,
    ignores_arguments: bool,
    results: Vec<Option<bool>>,
}

impl FrameMatcher {
    /// Matches names up to their arguments, the first parenthesis.
    #[must_use]
    pub fn without_arguments(mut self) -> Self {
        self.ignores_arguments = true;
        self
    }

    /// True if the frame matches.
    pub fn matches(&mut self, frames: &Frames, frame: FrameId) -> bool {
        let index = frame.index();
        if index >= self.results.len() {
            self.results.resize(frames.len(), None);
        }
        if self.results[index].is_none() {
            self.results[index] = Some(self.matches_name(frames.name(frame)));
        }
        self.results[index] == Some(true)
    }

    /// True if any of these frames matches.
    pub fn matches_any(&mut self, frames: &Frames) -> bool {
        frames.iter().any(|(frame, _)| self.matches(frames, frame))
    }

    /// True if a name matches.
    pub fn matches_name(&self, name: &[u8]) -> bool {
        matches_name(&self.pattern, if self.ignores_arguments { without_arguments(name) } else { name })
    }

    /// True if a frame has matched.
    pub fn has_matched(&self) -> bool {
        self.results.contains(&Some(true))
    }

    /// Returns the source text of the pattern.
    pub fn pattern(&self) -> &str {
        self.pattern.as_str()
    }
}

impl std::str::FromStr for FrameMatcher {
    type Err = String;

    /// Compiles a pattern, which matches anywhere in a name unless `^` and `$` anchor it.
    fn from_str(pattern: &str) -> Result<Self, String> {
        let pattern = Regex::new(pattern).map_err(|error| error.to_string())?;
        Ok(Self { pattern, ignores_arguments: false, results: Vec::new() })
    }
}

/// True if a pattern matches a name. In a name that is not UTF-8, `.` matches invalid bytes too: they become U+FFFD.
fn matches_name(pattern: &Regex, name: &[u8]) -> bool {
    // The name itself is searched for patterns of bytes, such as `(?-u:\xff)`.
    if pattern.is_match(name) {
        return true;
    }
    match String::from_utf8_lossy(name) {
        Cow::Owned(with_replacements) => pattern.is_match(with_replacements.as_bytes()),
        Cow::Borrowed(_) => false,
    }
}

/// Returns a name up to its arguments.
fn without_arguments(name: &[u8]) -> &[u8] {
    // On 64-bit PowerPC, entry points of functions start with a dot.
    let name = name.strip_prefix(b".").unwrap_or(name);
    let arguments = PARENTHESIS.find_iter(name).find(|parenthesis| parenthesis.len() == 1);
    arguments.map_or(name, |parenthesis| &name[..parenthesis.start()])
}

#[cfg(test)]
mod tests {
    use regex::bytes::Regex;

    use super::{matches_name, without_arguments};

    #[test]
    fn patterns_match_invalid_bytes() {
        for (pattern, expected) in [("^f.$", true), (".", true), (r"(?-u:\xff)", true), ("^f$", false)] {
            assert_eq!(matches_name(&Regex::new(pattern).unwrap(), b"f\xff"), expected, "{pattern}");
        }
    }

    #[test]
    fn arguments_start_at_the_first_real_parenthesis() {
        for (name, cut) in [
            ("f(int, g())", "f"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("S::operator()(int)", "S::operator()"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_arguments(name.as_bytes()), cut.as_bytes());
        }
    }
}
