//! Detects the format of JSON: the text is parsed once, and each format looks for its keys in the result.

use super::tape::Tape;
use super::value::Value;
use crate::collapse::format::{Format, Recognizer};
use crate::collapse::formats::FORMATS;

/// Number of bytes at the beginning of a document that detection looks at.
pub(in crate::collapse) const DETECTION_BYTES: usize = 256 * 1024;

/// The array or object with which a text begins.
pub(in crate::collapse) struct Start {
    /// The format of a profile.
    pub(in crate::collapse) format: Option<&'static Format>,
    pub(in crate::collapse) end: StartEnd,
}

/// Where the array or object ends with which a text begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collapse) enum StartEnd {
    /// Behind the text.
    Behind,
    /// At the end of the text, which may be blank from there on.
    AtEnd,
    /// Before other text.
    Before,
}

/// Parses the array or object with which a text begins, after blanks. `None` if there is none.
pub(in crate::collapse) fn parse(text: &[u8]) -> Option<Start> {
    if !matches!(text.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return None;
    }
    let tape = Tape::parse(text).ok()?;
    let root = Value::root(&tape)?;
    let is_root = |format: &&Format| matches!(format.recognizer, Recognizer::Json(is_root) if is_root(root));
    let format = FORMATS.iter().copied().find(is_root);
    let end = match text[tape.end..].trim_ascii() {
        _ if tape.is_truncated => StartEnd::Behind,
        b"" => StartEnd::AtEnd,
        _ => StartEnd::Before,
    };
    Some(Start { format, end })
}

/// Returns a message about JSON of another format than the one that was named: its reader would find no names.
pub(in crate::collapse) fn describe_other(text: &[u8], named: &Format) -> Option<String> {
    if !matches!(named.recognizer, Recognizer::Json(_)) {
        return None;
    }
    let found = parse(&text[..text.len().min(DETECTION_BYTES)])?.format?;
    Some(format!("the input has the format {}; omit --format {}", found.name, named.name))
}

/// Returns true if a text begins with JSON, which may be truncated, whose root passes a test.
pub(in crate::collapse) fn root_matches(text: &[u8], is_root: fn(Value<'_>) -> bool) -> bool {
    let text = text.trim_ascii_start();
    if !matches!(text.first(), Some(b'{' | b'[')) {
        return false;
    }
    Tape::parse(&text[..text.len().min(DETECTION_BYTES)]).is_ok_and(|tape| Value::root(&tape).is_some_and(is_root))
}

#[cfg(test)]
mod tests {
    use super::{StartEnd, parse};

    #[test]
    fn finds_the_end_of_json() {
        for (text, end) in [
            ("{\"a\": [1,", Some(StartEnd::Behind)),
            (" {\"a\": 1}\n\n", Some(StartEnd::AtEnd)),
            ("[unknown];a 1\n", Some(StartEnd::Before)),
            ("{\"a\": 1}\n{\"a\": 2}\n", Some(StartEnd::Before)),
            ("{closure} 1\n", None),
            ("12\n", None),
        ] {
            assert_eq!(parse(text.as_bytes()).map(|start| start.end), end, "{text}");
        }
    }
}
