//! Splits frames into several, such as a qualified name into packages and a function.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::bytes::Regex;

/// A pattern at whose matches names are split.
#[derive(Clone, Debug)]
pub struct Split {
    pattern: Regex,
    /// True once a name has matched; all clones share it.
    has_matched: Arc<AtomicBool>,
}

impl Split {
    /// Returns the parts of a name without the empty ones, or the whole name if there is no other part.
    pub fn parts<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        if self.pattern.is_match(name) {
            self.has_matched.store(true, Ordering::Relaxed);
        }
        let mut parts = self.pattern.split(name).filter(|part| !part.is_empty()).peekable();
        let whole = if parts.peek().is_none() { Some(name) } else { None };
        parts.chain(whole)
    }

    /// True if a name has matched.
    pub fn has_matched(&self) -> bool {
        self.has_matched.load(Ordering::Relaxed)
    }

    /// Returns the source text of the pattern.
    pub fn pattern(&self) -> &str {
        self.pattern.as_str()
    }
}

impl std::str::FromStr for Split {
    type Err = String;

    fn from_str(pattern: &str) -> Result<Self, String> {
        let pattern = Regex::new(pattern).map_err(|error| error.to_string())?;
        if pattern.is_match(b"") {
            return Err("the pattern matches the empty text, so it would split names into letters".to_owned());
        }
        Ok(Self { pattern, has_matched: Arc::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::Split;

    #[test]
    fn splits_names_into_their_parts() {
        for (pattern, name, parts) in [
            ("::", "a::b::c", &["a", "b", "c"][..]),
            ("[./]", "java/lang/String.format", &["java", "lang", "String", "format"]),
            ("::", "::a::", &["a"]),
            ("::", "::", &["::"]),
            ("::", "main", &["main"]),
        ] {
            let split: Split = pattern.parse().unwrap();
            let expected: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
            assert_eq!(split.parts(name.as_bytes()).collect::<Vec<_>>(), expected, "{name}");
        }
        assert!("x*".parse::<Split>().is_err());
        assert!("(".parse::<Split>().is_err());
    }
}
