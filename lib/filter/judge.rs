//! A pattern and its verdicts on frames.

use regex::bytes::Regex;

use crate::Error;
use crate::profile::{FrameId, Frames};

/// A pattern that judges each distinct frame of one profile once.
#[derive(Debug)]
pub struct Judge {
    pattern: Regex,
    verdicts: Vec<Option<bool>>,
}

impl Judge {
    /// Compiles a pattern. It is searched for anywhere in a name; `^` and `$` tie it to the ends.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is not a regular expression.
    pub fn new(pattern: &str) -> Result<Self, Error> {
        let pattern = Regex::new(pattern).map_err(|error| Error::Usage(error.to_string()))?;
        Ok(Self { pattern, verdicts: Vec::new() })
    }

    /// Whether a frame matches.
    pub fn matches(&mut self, frames: &Frames, frame: FrameId) -> bool {
        let index = frame.index();
        if index >= self.verdicts.len() {
            self.verdicts.resize(frames.len(), None);
        }
        *self.verdicts[index].get_or_insert_with(|| self.pattern.is_match(frames.name(frame)))
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
