//! A pattern and its verdicts on frames.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::profile::{FrameId, Frames};

/// Where a function's arguments begin, or what only looks like it.
static BRACKET: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\(anonymous namespace\)|operator\(\)|\(").expect("a valid pattern"));

/// A pattern that judges each distinct frame of one profile once.
#[derive(Clone, Debug)]
pub struct Judge {
    pattern: Regex,
    ignores_arguments: bool,
    verdicts: Vec<Option<bool>>,
}

impl Judge {
    /// Judges names without their arguments: up to the first bracket.
    #[must_use]
    pub fn without_arguments(mut self) -> Self {
        self.ignores_arguments = true;
        self
    }

    /// Whether a frame matches.
    pub fn matches(&mut self, frames: &Frames, frame: FrameId) -> bool {
        let index = frame.index();
        if index >= self.verdicts.len() {
            self.verdicts.resize(frames.len(), None);
        }
        *self.verdicts[index].get_or_insert_with(|| {
            let name = frames.name(frame);
            self.pattern.is_match(if self.ignores_arguments { without_arguments(name) } else { name })
        })
    }

    /// Whether any of the frames judged so far matched.
    pub fn matched(&self) -> bool {
        self.verdicts.contains(&Some(true))
    }

    /// The pattern as it was given.
    pub fn pattern(&self) -> &str {
        self.pattern.as_str()
    }
}

impl std::str::FromStr for Judge {
    type Err = String;

    /// Compiles a pattern. It is searched for anywhere in a name; `^` and `$` tie it to the ends.
    fn from_str(pattern: &str) -> Result<Self, String> {
        let pattern = Regex::new(pattern).map_err(|error| error.to_string())?;
        Ok(Self { pattern, ignores_arguments: false, verdicts: Vec::new() })
    }
}

fn without_arguments(name: &[u8]) -> &[u8] {
    // A dot is where the 64-bit PowerPC's functions begin.
    let name = name.strip_prefix(b".").unwrap_or(name);
    let arguments = BRACKET.find_iter(name).find(|bracket| bracket.len() == 1);
    arguments.map_or(name, |bracket| &name[..bracket.start()])
}

#[cfg(test)]
mod tests {
    use super::without_arguments;

    #[test]
    fn arguments_begin_at_the_first_bracket_that_is_one() {
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
