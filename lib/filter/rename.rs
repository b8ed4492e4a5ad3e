//! Renames frames by regular expressions.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::bytes::Regex;

use crate::Error;
use crate::markers;
use crate::profile::{FrameId, Profile};

/// A rule `REGEX=TEXT` that replaces each match; `$1` in the text is the first group.
#[derive(Clone, Debug)]
pub struct Rename {
    pattern: Regex,
    text: Vec<u8>,
    /// The rule as it was given.
    rule: String,
    /// True once a name has matched; all clones share it.
    has_matched: Arc<AtomicBool>,
}

impl Rename {
    /// Replaces all matches in a name; returns `[unknown]` if nothing is left.
    pub fn apply<'a>(&self, name: &'a [u8]) -> Cow<'a, [u8]> {
        let renamed = self.pattern.replace_all(name, &self.text[..]);
        if matches!(renamed, Cow::Owned(_)) {
            self.has_matched.store(true, Ordering::Relaxed);
        }
        match renamed {
            Cow::Owned(renamed) if renamed.is_empty() => Cow::Borrowed(markers::UNKNOWN),
            renamed => renamed,
        }
    }

    /// True if a name has matched.
    pub fn has_matched(&self) -> bool {
        self.has_matched.load(Ordering::Relaxed)
    }

    /// Returns the rule as it was given.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

impl std::str::FromStr for Rename {
    type Err = String;

    /// Parses `REGEX=TEXT`, separated by the last `=` that no backslash escapes.
    fn from_str(rule: &str) -> Result<Self, String> {
        let divider = rule.rmatch_indices('=').find(|(at, _)| !rule[..*at].ends_with('\\'));
        let (at, _) = divider.ok_or("expected REGEX=TEXT; write \\= for an = within either")?;
        let pattern = Regex::new(&rule[..at].replace("\\=", "=")).map_err(|error| error.to_string())?;
        if let Some(group) = referenced_groups(&rule[at + 1..]).find(|group| !has_group(&pattern, group)) {
            return Err(format!(
                "the pattern has no group {group}; to put text right after a group's number, write ${{1}}x"
            ));
        }
        let text = rule[at + 1..].replace("\\=", "=").into_bytes();
        Ok(Self { pattern, text, rule: rule.to_owned(), has_matched: Arc::default() })
    }
}

/// Returns the groups that a replacement refers to, by number or name.
fn referenced_groups(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("$$").flat_map(|part| part.split('$').skip(1));
    parts.filter_map(|part| match part.strip_prefix('{') {
        Some(braced) => braced.split_once('}').map(|(group, _)| group),
        None => {
            let end = part.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            Some(&part[..end.unwrap_or(part.len())]).filter(|group| !group.is_empty())
        }
    })
}

/// True if the pattern has a group of this number or name.
fn has_group(pattern: &Regex, group: &str) -> bool {
    let number = group.parse().is_ok_and(|number: usize| number < pattern.captures_len());
    number || pattern.capture_names().flatten().any(|name| name == group)
}

/// Applies all rules to a name, in order.
pub fn apply_all<'a>(rules: &[Rename], name: &'a [u8]) -> Cow<'a, [u8]> {
    let mut renamed = Cow::Borrowed(name);
    for rule in rules {
        renamed = Cow::Owned(rule.apply(&renamed).into_owned());
    }
    renamed
}

/// Renames every frame of a profile and merges stacks that become equal.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn rename_frames(profile: &Profile, rename: impl Fn(&[u8]) -> Cow<'_, [u8]>) -> Result<Profile, Error> {
    let mut renamed = Profile::new(profile.is_differential());
    let ids: Vec<FrameId> = profile.frames.iter().map(|(_, name)| renamed.frames.intern(&rename(name))).collect();
    let mut stack = Vec::new();
    profile.for_each(|frames, weights| {
        stack.clear();
        stack.extend(frames.iter().map(|frame| ids[frame.index()]));
        renamed.add(&stack, weights)
    })?;
    Ok(renamed)
}

/// Replaces each `0x` followed by hexadecimal digits by `0x...`, anywhere in a name.
pub fn strip_hex(name: &[u8]) -> Cow<'_, [u8]> {
    let mut starts = memchr::memmem::find_iter(name, b"0x").peekable();
    if starts.peek().is_none() {
        return Cow::Borrowed(name);
    }
    let mut stripped = Vec::with_capacity(name.len());
    let mut copied = 0;
    for start in starts {
        let digits = name[start + 2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits == 0 || start < copied {
            continue;
        }
        stripped.extend_from_slice(&name[copied..start + 2]);
        stripped.extend_from_slice(b"...");
        copied = start + 2 + digits;
    }
    stripped.extend_from_slice(&name[copied..]);
    Cow::Owned(stripped)
}

#[cfg(test)]
mod tests {
    use super::{Rename, strip_hex};

    #[test]
    fn strips_digits_of_addresses_anywhere() {
        for (name, stripped) in [
            ("main", "main"),
            ("0x7fff12ab", "0x..."),
            ("f0x12bar", "f0x...r"),
            ("0XFF", "0XFF"),
            ("0xzz 0x1", "0xzz 0x..."),
            ("[0x1,0x2]", "[0x...,0x...]"),
            ("0x0x1", "0x...x1"),
        ] {
            assert_eq!(strip_hex(name.as_bytes()), stripped.as_bytes(), "{name}");
        }
    }

    #[test]
    fn splits_at_the_last_unescaped_equals_sign() {
        for (rule, name, renamed) in [
            ("^v[0-9]+::=", "v12::run", "run"),
            ("(\\w+)<.*>=$1", "Vec<u8>", "Vec"),
            ("operator==same", "operator=", "same"),
            ("a=b\\=c", "xa", "xb=c"),
            ("a=b=c", "a=b", "c"),
        ] {
            let rule: Rename = rule.parse().unwrap();
            assert_eq!(rule.apply(name.as_bytes()), renamed.as_bytes(), "{rule:?}");
        }
        assert!("nothing".parse::<Rename>().is_err());
        assert!("(=x".parse::<Rename>().is_err());
    }

    #[test]
    fn rejects_unknown_groups() {
        for (rule, is_right) in [
            ("(B)=$1", true),
            ("(B)=${1}x", true),
            ("(?P<b>B)=$b ${b} $$1x", true),
            ("(B)=$1x", false),
            ("(B)=$2", false),
            ("(B)=${c}", false),
        ] {
            assert_eq!(rule.parse::<Rename>().is_ok(), is_right, "{rule}");
        }
    }
}
