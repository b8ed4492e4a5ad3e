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

/// Fewest functions that two programs under other names have in common if their calls have other weights.
const MIN_FUNCTIONS: usize = 3;

/// A function is large from this share of the program on: a smaller one may be missing by chance.
const LARGE_FUNCTION: f64 = 0.01;

/// From this share of the program on, a function tells what the program does.
const LARGEST_FUNCTION: f64 = 0.1;

/// Fewest hexadecimal digits that are a hash if one is a number.
const MIN_HASH: usize = 6;

/// At least one of so many large functions is one of both programs, if they are one under other names: of six functions, four may
/// have been renamed.
const MIN_OWN_PART: usize = 5;

/// Longest name of a thread in the kernel: that of a program may be cut.
const MAX_COMM: usize = 15;

/// Beginnings of functions that every program has.
const STARTUP: [&str; 9] =
    ["main", "main.main", "_start", "__libc_start", "start_thread", "clone", "<module>", "_init", "thread_start"];

/// A program: the first frame of its stacks.
#[derive(Default)]
pub(super) struct Program {
    pub weight: f64,
    /// Weight of each call by caller and callee. The caller is empty for the functions that no other calls.
    pub calls: BTreeMap<(String, String), f64>,
    /// Weight of each function that is neither of a library nor of the kernel.
    pub functions: BTreeMap<String, f64>,
}

impl Program {
    /// True if another program is the same one under another name: if they call the same functions, some of them their own unless
    /// their files have one name, or, without any evidence of that, if their names differ only in versions or hashes.
    pub fn is_same(&self, name: &str, other: &Self, other_name: &str) -> bool {
        let are_versions = without_version(name) == without_version(other_name);
        match self.common_share(other) {
            Some(share) if are_versions => share >= MIN_COMMON_OF_VERSIONS,
            Some(share) => {
                share >= MIN_COMMON
                    && (is_same_file(name, other_name) || self.shares_functions(name, other, other_name))
            }
            None => are_versions,
        }
    }

    /// True if enough of the large functions of the two are the same. What they have in common of a framework, of their run time and of
    /// the kernel does not count: threads of one process have that in common.
    fn shares_functions(&self, name: &str, other: &Self, other_name: &str) -> bool {
        let [own, new] = [(self, name), (other, other_name)].map(|(program, name)| program.plain_names(name, 0.0));
        let [large, new_large] =
            [(self, name), (other, other_name)].map(|(program, name)| program.plain_names(name, LARGE_FUNCTION));
        let all: BTreeSet<&&str> = large.iter().chain(&new_large).collect();
        let common = all.iter().filter(|name| own.contains(**name) && new.contains(**name)).count();
        !large.is_empty() && !new_large.is_empty() && common * MIN_OWN_PART >= all.len()
    }

    /// Returns the names of the functions of no framework with at least this share of the program, without the crate that is named
    /// like the program.
    fn plain_names(&self, program: &str, share: f64) -> BTreeSet<&str> {
        let own = self.functions_from(share).filter(|name| !is_of_hosted_package(name));
        own.map(|name| without_crate(name, program)).collect()
    }

    /// True if most of the functions are the same, and all of the largest, whatever they cost: one that grew much changes the share
    /// of all others.
    pub fn has_functions_of(&self, other: &Self) -> bool {
        let large = self.functions_from(LARGE_FUNCTION).chain(other.functions_from(LARGE_FUNCTION));
        let all: BTreeSet<&String> = large.filter(|name| !is_of_hosted_package(name)).collect();
        let is_common = |name: &&&String| self.functions.contains_key(**name) && other.functions.contains_key(**name);
        let common = all.iter().filter(is_common).count();
        let largest = self.functions_from(LARGEST_FUNCTION).chain(other.functions_from(LARGEST_FUNCTION));
        let has_largest = largest.collect::<Vec<_>>().iter().all(|name| is_common(&name));
        common >= MIN_FUNCTIONS && 2 * common > all.len() && has_largest
    }

    /// Returns the functions with at least this share of the program.
    fn functions_from(&self, share: f64) -> impl Iterator<Item = &String> {
        let least = self.weight * share;
        self.functions.iter().filter(move |(_, weight)| **weight >= least).map(|(name, _)| name)
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

/// True for the paths of one file in two folders.
fn is_same_file(name: &str, other_name: &str) -> bool {
    let [file, other] = [name, other_name].map(|path| path.rsplit_once('/').map(|(_, file)| file));
    file.is_some() && file == other
}

/// True for a function of Go whose package is named with its host, such as `github.com/gin-gonic/gin.(*Context).Next`: many programs
/// have it.
fn is_of_hosted_package(function: &str) -> bool {
    let host = function.split_once('/').map_or("", |(host, _)| host);
    host.contains('.') && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
}

/// Returns the name of a function without the crate that is named like the program: `app::run` of `app` becomes `::run`.
fn without_crate<'n>(function: &'n str, program: &str) -> &'n str {
    let (package, rest) = function.split_at(function.find("::").unwrap_or(0));
    let is_of_program = package == program.replace('-', "_")
        || program.len() == MAX_COMM && package.starts_with(&program.replace('-', "_"));
    if is_of_program { rest } else { function }
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

/// True for a function that few programs have: no marker, no function without a name, and none that starts each program, whatever
/// its file.
pub(super) fn is_evidence(function: &str) -> bool {
    let plain = function.trim_end_matches(std::str::from_utf8(INLINED).unwrap_or_default());
    let plain = plain.split_once(" (").map_or(plain, |(name, _)| name);
    !function.starts_with('[')
        && !STARTUP.iter().any(|name| match *name {
            "main" => plain == "main",
            "main.main" => plain == "main.main" || plain.starts_with("main.main.func"),
            _ => plain.starts_with(name),
        })
}

#[cfg(test)]
mod tests {
    use super::{is_evidence, without_crate, without_version};

    #[test]
    fn crates_are_named_like_their_programs() {
        assert_eq!(without_crate("my_app::run", "my-app"), "::run");
        assert_eq!(without_crate("my_application::run", "my-application-"), "my_application::run");
        assert_eq!(without_crate("my_application_x::run", "my-application-"), "::run");
        assert_eq!(without_crate("run", "run"), "run");
    }

    #[test]
    fn all_programs_of_go_have_the_closures_of_main() {
        for (function, expected) in [("main.main", false), ("main.main.func1", false), ("main.mainLoop", true)] {
            assert_eq!(is_evidence(function), expected);
        }
    }

    #[test]
    fn all_scripts_have_a_main_function() {
        for (function, expected) in
            [("main (/srv/app.py)", false), ("<module> (a.py:3)", false), ("run (main.py)", true)]
        {
            assert_eq!(is_evidence(function), expected, "{function}");
        }
    }

    #[test]
    fn versions_and_hashes_are_no_names() {
        for (one, other) in [("app-v1", "app-v2.13"), ("x_1a2b3c4", "x_99887766"), ("app-1.2", "app-1.10")] {
            assert_eq!(without_version(one), without_version(other));
        }
        assert_ne!(without_version("facade"), without_version("decade"));
    }
}
