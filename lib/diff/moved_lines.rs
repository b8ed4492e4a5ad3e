//! Functions that differ in nothing but the line in their names: `parse (app.py:12)` and `parse (app.py:14)`.
//!
//! They are counted, and not compared as one: a line may tell which of several branches or functions of one name was taken.

use std::collections::{BTreeMap, BTreeSet};

use crate::Error;
use crate::profile::Profile;
use crate::tally::{GroupBy, tally_profile};

/// The argument of `fg-diff --rename` that removes lines.
pub const WITHOUT_LINES: &str = r":[0-9]+(:[0-9]+)?(\)?)$=$2";

/// Fewest functions that are worth a message.
const MIN_FUNCTIONS: usize = 3;

/// Least part of the weight of functions with a line, on each side, that is worth a message. Functions whose samples are of other lines
/// by chance have less.
const MIN_PART: f64 = 0.25;

/// The names of a function with their lines, and their weight.
#[derive(Default)]
struct Lines {
    names: BTreeSet<Vec<u8>>,
    weight: f64,
}

/// Returns the number of functions whose names have no line that both sides have; 0 if they are few.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub(super) fn count_moved(before: &[Profile], after: &[Profile]) -> Result<usize, Error> {
    let [before, after] = [find_lines(before)?, find_lines(after)?];
    let both = before.iter().filter_map(|(function, old)| Some([old, after.get(function)?]));
    let moved: Vec<[&Lines; 2]> = both.filter(|[old, new]| old.names.is_disjoint(&new.names)).collect();
    let is_large = [&before, &after].iter().enumerate().all(|(side, all)| {
        let sum: f64 = moved.iter().map(|sides| sides[side].weight).sum();
        sum >= MIN_PART * all.values().map(|one| one.weight).sum::<f64>()
    });
    Ok(if moved.len() >= MIN_FUNCTIONS && is_large { moved.len() } else { 0 })
}

/// Returns the functions of a side with a line by their names without it.
fn find_lines(profiles: &[Profile]) -> Result<BTreeMap<Vec<u8>, Lines>, Error> {
    let mut functions = BTreeMap::<Vec<u8>, Lines>::new();
    for profile in profiles {
        for row in tally_profile(profile, GroupBy::Function)? {
            let name = profile.frames.name(row.frames[0]);
            let Some(function) = without_line(name).filter(|function| !is_generic(function)) else { continue };
            let lines = functions.entry(function).or_default();
            lines.names.insert(name.to_vec());
            lines.weight += row.weights[1].after.as_f64();
        }
    }
    Ok(functions)
}

/// Returns a name without the line of a file, and its column, as [`WITHOUT_LINES`] does.
fn without_line(name: &[u8]) -> Option<Vec<u8>> {
    let (end, bracket) = match name.strip_suffix(b")") {
        Some(end) => (end, &b")"[..]),
        None => (name, &b""[..]),
    };
    let without = without_number(end)?;
    let without = without_number(without).unwrap_or(without);
    // A thread or an address of a network has no file, whose extension ends with a letter.
    let has_file = without.contains(&b'.') && without.last().is_some_and(u8::is_ascii_alphabetic);
    has_file.then(|| [without, bracket].concat())
}

fn without_number(name: &[u8]) -> Option<&[u8]> {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 { None } else { name[..name.len() - digits].strip_suffix(b":") }
}

/// True for a name that many functions of a file have, which only their lines tell apart.
fn is_generic(function: &[u8]) -> bool {
    function.first().is_some_and(|first| b"<({".contains(first)) && !function.starts_with(b"<module>")
        || function.starts_with(b"lambda")
        || function.starts_with(b"anonymous")
}

#[cfg(test)]
mod tests {
    use super::{WITHOUT_LINES, count_moved, without_line};
    use crate::filter::rename::{Rename, apply_all};
    use crate::profile::{Profile, Weight, Weights};

    fn count(before: &[&str], after: &[&str]) -> usize {
        let [before, after] = [before, after].map(|stacks| {
            let mut profile = Profile::new(false);
            for stack in stacks {
                let frames: Vec<_> = stack.split(';').map(|name| profile.frames.intern(name.as_bytes())).collect();
                profile.add(&frames, Weights::plain(Weight::new(10))).unwrap();
            }
            [profile]
        });
        count_moved(&before, &after).unwrap()
    }

    #[test]
    fn functions_that_moved_are_counted() {
        let before = ["a (x.py:1);b (x.py:12)", "a (x.py:3);c (x.py:22)", "d (y.py:5)"];
        assert_eq!(count(&before, &["a (x.py:2);b (x.py:14)", "a (x.py:4);c (x.py:24)", "d (y.py:5)"]), 3);
        assert_eq!(count(&["a.py:f:1", "a.py:g:9", "a.py:h:12:4"], &["a.py:f:2", "a.py:g:8", "a.py:h:13:4"]), 3);
    }

    #[test]
    fn few_functions_are_not_counted() {
        let before = ["a (x.py:1)", "b (x.py:12)", "c (x.py:22)"];
        for after in [
            // The same lines, two that moved, other functions, and one that has a line of both sides.
            &before[..],
            &["a (x.py:2)", "b (x.py:14)", "c (x.py:22)"],
            &["e (x.py:2)", "f (x.py:14)", "g (x.py:24)"],
            &["a (x.py:2)", "b (x.py:14)", "c (x.py:24)", "c (x.py:22)"],
        ] {
            assert_eq!(count(&before, after), 0, "{after:?}");
        }
        let generic = |line: usize| {
            let names = ["(anonymous)", "<lambda>", "<genexpr>", "<listcomp>", "lambda", "{closure}"];
            names.map(|name| format!("{name} (x.py:{line})"))
        };
        let [old, new] = [generic(4), generic(7)];
        assert_eq!(count(&old.each_ref().map(String::as_str), &new.each_ref().map(String::as_str)), 0);
        let threads =
            ["kworker/0:1", "kworker/1:2", "kworker/2:3", "a::b::1", "10.0.0.1:443", "10.0.0.2:443", "[::1.2]:80"];
        let others =
            ["kworker/0:4", "kworker/1:5", "kworker/2:6", "a::b::2", "10.0.0.1:446", "10.0.0.2:446", "[::1.2]:81"];
        assert_eq!(count(&threads, &others), 0);
        // Many others have their line.
        let same: Vec<String> = (0..30).map(|number| format!("f{number} (y.py:{number})")).collect();
        let with =
            |moved: &[&'static str]| moved.iter().copied().map(str::to_owned).chain(same.clone()).collect::<Vec<_>>();
        let [old, new] = [with(&before), with(&["a (x.py:2)", "b (x.py:14)", "c (x.py:24)"])];
        let [old, new] = [&old, &new].map(|side| side.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(count(&old, &new), 0);
    }

    #[test]
    fn the_argument_removes_what_is_counted() {
        let rename = [WITHOUT_LINES.parse::<Rename>().unwrap()];
        for name in ["a (x.py:1)", "a (x.js:1:22)", "x.py:f:7", "/srv/x.rb:7:in"] {
            let renamed = apply_all(&rename, name.as_bytes()).into_owned();
            assert_eq!(without_line(name.as_bytes()).unwrap_or(name.into()), renamed, "{name}");
        }
    }
}
