//! The programs of a profile. Recognizes one program under two names.

use std::collections::{BTreeMap, BTreeSet};

use crate::markers::INLINED;

/// Smallest share of the calls, by weight, that two programs have in common.
///
/// Releases of one program have 8 to 90 % in common, two programs at most 4 %, and two scripts of one interpreter 17 to 39 %
/// (`benches/verdict/counterparts`).
const MIN_COMMON: f64 = 0.5;

/// The same for programs whose names differ only in versions or hashes.
const MIN_COMMON_OF_VERSIONS: f64 = 0.1;

/// Fewest hexadecimal digits that are a hash if one is a number.
const MIN_HASH: usize = 6;

/// Beginnings of functions that every program has.
const STARTUP: [&str; 8] =
    ["main", "_start", "__libc_start", "start_thread", "clone", "<module>", "_init", "thread_start"];

/// A program: the first frame of its stacks.
#[derive(Default)]
pub(super) struct Program {
    pub weight: f64,
    /// Weight of each call by caller and callee. The caller is empty for the functions that no other calls.
    pub calls: BTreeMap<(String, String), f64>,
}

impl Program {
    /// True if another program is the same one under another name: if they call the same functions, or, without any evidence of
    /// that, if their names differ only in versions or hashes.
    pub fn is_same(&self, name: &str, other: &Self, other_name: &str) -> bool {
        let are_versions = without_version(name) == without_version(other_name);
        match self.common_share(other) {
            Some(share) => share >= if are_versions { MIN_COMMON_OF_VERSIONS } else { MIN_COMMON },
            None => are_versions,
        }
    }

    /// Returns the share of the calls that is the same in both, by weight; `None` if neither has any.
    fn common_share(&self, other: &Self) -> Option<f64> {
        let calls: BTreeSet<&(String, String)> = self.calls.keys().chain(other.calls.keys()).collect();
        let shares: Vec<(f64, f64)> = calls.into_iter().map(|call| (self.share(call), other.share(call))).collect();
        let larger: f64 = shares.iter().map(|(a, b)| a.max(*b)).sum();
        let smaller: f64 = shares.iter().map(|(a, b)| a.min(*b)).sum();
        (larger > 0.0).then(|| smaller / larger)
    }

    /// Returns the weight of a call as a share of the program's.
    fn share(&self, call: &(String, String)) -> f64 {
        self.calls.get(call).copied().unwrap_or_default() / self.weight
    }
}

/// Returns a name with `#` for each number and each hash.
fn without_version(name: &str) -> String {
    let mut text = String::new();
    let parts = name.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
    for part in parts {
        let word = part.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let is_hash = word.len() >= MIN_HASH
            && word.bytes().all(|byte| byte.is_ascii_hexdigit())
            && word.bytes().any(|byte| byte.is_ascii_digit());
        let mut was_digit = false;
        for letter in if is_hash { "#" } else { word }.chars() {
            let is_digit = letter.is_ascii_digit();
            if !(is_digit && was_digit) {
                text.push(if is_digit { '#' } else { letter });
            }
            was_digit = is_digit;
        }
        text.push_str(&part[word.len()..]);
    }
    while text.contains("#.#") {
        text = text.replace("#.#", "#");
    }
    text
}

/// True for a function that few programs have: no marker, no function without a name, and none that starts each program.
pub(super) fn is_evidence(function: &str) -> bool {
    let plain = function.trim_end_matches(std::str::from_utf8(INLINED).unwrap_or_default());
    !function.starts_with('[')
        && !STARTUP.iter().any(|name| match *name {
            "main" => plain == "main",
            _ => plain.starts_with(name),
        })
}

#[cfg(test)]
mod tests {
    use super::without_version;

    #[test]
    fn versions_and_hashes_are_no_names() {
        for (one, other) in [("app-v1", "app-v2.13"), ("x_1a2b3c4", "x_99887766"), ("app-1.2", "app-1.10")] {
            assert_eq!(without_version(one), without_version(other));
        }
        assert_ne!(without_version("facade"), without_version("decade"));
    }
}
