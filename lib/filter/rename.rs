//! Renaming frames: one rule, judged once per distinct frame.

use std::borrow::Cow;

use crate::Error;
use crate::profile::{FrameId, Profile};

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
    use super::strip_hex;

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
}
