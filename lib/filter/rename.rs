//! Renaming frames, each distinct one once.

use std::borrow::Cow;

use regex::bytes::Regex;

use crate::Error;
use crate::markers;
use crate::profile::{FrameId, Profile};

/// What matches is replaced: `REGEX=TEXT`, where `$1` in the text is the first group, and so on.
#[derive(Clone, Debug)]
pub struct Rename {
    pattern: Regex,
    text: Vec<u8>,
}

impl Rename {
    /// The frame's name with every match replaced; `[unknown]` if nothing is left.
    pub fn apply<'a>(&self, name: &'a [u8]) -> Cow<'a, [u8]> {
        match self.pattern.replace_all(name, &self.text[..]) {
            Cow::Owned(renamed) if renamed.is_empty() => Cow::Borrowed(markers::UNKNOWN),
            renamed => renamed,
        }
    }
}

impl std::str::FromStr for Rename {
    type Err = String;

    /// The last `=` that no backslash escapes divides.
    fn from_str(rule: &str) -> Result<Self, String> {
        let divider = rule.rmatch_indices('=').find(|(at, _)| !rule[..*at].ends_with('\\'));
        let (at, _) = divider.ok_or("expected REGEX=TEXT, where an = within is written \\=")?;
        let pattern = Regex::new(&rule[..at].replace("\\=", "=")).map_err(|error| error.to_string())?;
        if let Some(group) = groups(&rule[at + 1..]).find(|group| !has_group(&pattern, group)) {
            return Err(format!("there is no group {group}: what follows a group's number goes apart, as in ${{1}}x"));
        }
        Ok(Self { pattern, text: rule[at + 1..].replace("\\=", "=").into_bytes() })
    }
}

/// The groups that a replacement names, by number or name.
fn groups(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("$$").flat_map(|part| part.split('$').skip(1));
    parts.filter_map(|part| match part.strip_prefix('{') {
        Some(braced) => braced.split_once('}').map(|(group, _)| group),
        None => {
            let is_other = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
            Some(&part[..part.find(is_other).unwrap_or(part.len())]).filter(|group| !group.is_empty())
        }
    })
}

fn has_group(pattern: &Regex, group: &str) -> bool {
    let number = group.parse().is_ok_and(|number: usize| number < pattern.captures_len());
    number || pattern.capture_names().flatten().any(|name| name == group)
}

/// The name after all rules, in their order.
pub fn apply_all<'a>(rules: &[Rename], name: &'a [u8]) -> Cow<'a, [u8]> {
    let mut renamed = Cow::Borrowed(name);
    for rule in rules {
        renamed = Cow::Owned(rule.apply(&renamed).into_owned());
    }
    renamed
}

/// The profile with every frame renamed. Stacks that become equal are merged.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn frames(profile: &Profile, rename: impl Fn(&[u8]) -> Cow<'_, [u8]>) -> Result<Profile, Error> {
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

/// Every `0x` followed by hexadecimal digits becomes `0x...`, wherever it stands.
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
    fn addresses_lose_their_digits_wherever_they_stand() {
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
    fn the_last_plain_equals_sign_divides() {
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
    fn a_group_that_is_not_there_is_a_mistake() {
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
