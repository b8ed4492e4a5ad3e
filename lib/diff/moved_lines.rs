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

/// Least part of the weight of stacks with a line, on each side, that is worth a message: of those with a function that moved and is
/// not rare. Functions whose samples are of other lines by chance have less.
const MIN_PART: f64 = 0.25;

/// A function is rare below this part of the weight of stacks with a line.
const RARE_PART: f64 = 0.01;

/// Functions with lines of both sides have moved if so many lines, with this part of their weight, are as far from each other, and with
/// half of that, or less, on the same line.
const MIN_LINES: usize = 3;
const MIN_SHIFTED: f64 = 0.7;

/// A line, and a column or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    line: u64,
    column: u64,
}

/// The weight of a function by line, and the sum.
#[derive(Default)]
struct Lines {
    weights: BTreeMap<Place, f64>,
    sum: f64,
}

/// Returns the number of functions that have moved to other lines; 0 if they are few.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub(super) fn count_moved(before: &[Profile], after: &[Profile]) -> Result<usize, Error> {
    let [old, new] = [find_lines(before)?, find_lines(after)?];
    let both = old.iter().filter_map(|(function, old)| Some((function, [old, new.get(function)?])));
    let moved: Vec<(&Vec<u8>, [&Lines; 2])> = both.filter(|(_, [old, new])| old.has_moved(new)).collect();
    let is_much = |(side, profiles): (usize, &[Profile])| {
        let all = sum_stacks(profiles, |_| true);
        let large = moved.iter().filter(|(_, lines)| lines[side].sum >= RARE_PART * all);
        let large: BTreeSet<&[u8]> = large.map(|(function, _)| &function[..]).collect();
        sum_stacks(profiles, |function| large.contains(function)) >= MIN_PART * all
    };
    let is_worth_a_message = moved.len() >= MIN_FUNCTIONS && (0..).zip([before, after]).all(is_much);
    Ok(if is_worth_a_message { moved.len() } else { 0 })
}

/// Returns the functions of a side with a line by their names without it.
fn find_lines(profiles: &[Profile]) -> Result<BTreeMap<Vec<u8>, Lines>, Error> {
    let mut functions = BTreeMap::<Vec<u8>, Lines>::new();
    for profile in profiles {
        for row in tally_profile(profile, GroupBy::Function)? {
            let Some((function, place)) = split_place(profile.frames.name(row.frames[0])) else { continue };
            let (lines, weight) = (functions.entry(function).or_default(), row.weights[1].after.as_f64());
            *lines.weights.entry(place).or_default() += weight;
            lines.sum += weight;
        }
    }
    Ok(functions)
}

/// Returns the weight of the stacks with a function that counts. Its name without a line is given.
fn sum_stacks(profiles: &[Profile], counts: impl Fn(&[u8]) -> bool) -> f64 {
    let mut sum = 0.0;
    for profile in profiles {
        let names = profile.frames.iter().map(|(_, name)| split_place(name));
        let counting: Vec<bool> = names.map(|name| name.is_some_and(|(function, _)| counts(&function))).collect();
        let _ = profile.for_each(|stack, weights| {
            let has_one = stack.iter().any(|frame| counting[frame.index()]);
            sum += if has_one { weights.after.as_f64() } else { 0.0 };
            Ok::<(), ()>(())
        });
    }
    sum
}

impl Lines {
    /// True if the other side has none of the lines, or the same ones at a distance.
    fn has_moved(&self, new: &Self) -> bool {
        if !self.weights.keys().any(|place| new.weights.contains_key(place)) {
            return true;
        }
        let (_, unmoved) = self.common_at(new, 0);
        let [from, to] = [self.heaviest(), new.heaviest()];
        let distances = new.weights.keys().map(|place| place.line.wrapping_sub(from));
        let distances: BTreeSet<u64> =
            distances.chain(self.weights.keys().map(|place| to.wrapping_sub(place.line))).collect();
        distances.into_iter().any(|distance| {
            let (lines, part) = self.common_at(new, distance);
            lines >= MIN_LINES && part >= MIN_SHIFTED && part >= 2.0 * unmoved
        })
    }

    fn heaviest(&self) -> u64 {
        let heaviest = self.weights.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
        heaviest.map_or(0, |(place, _)| place.line)
    }

    /// Returns the number of lines that are on the other side at a distance, and the part of the weight that they have in common.
    fn common_at(&self, new: &Self, distance: u64) -> (usize, f64) {
        let common = self.weights.iter().filter_map(|(place, weight)| {
            let moved = Place { line: place.line.wrapping_add(distance), ..*place };
            Some((weight / self.sum).min(new.weights.get(&moved)? / new.sum))
        });
        common.fold((0, 0.0), |(lines, sum), part| (lines + 1, sum + part))
    }
}

/// Returns the name of a function without the line of its file, as [`WITHOUT_LINES`] leaves it. `None` if it has none, or if many
/// functions have the name.
pub fn without_line(name: &[u8]) -> Option<Vec<u8>> {
    split_place(name).map(|(function, _)| function)
}

/// Splits a name into that without the line of a file and its column, as [`WITHOUT_LINES`] leaves it, and these. `None` if it has none,
/// or if many functions have the name.
fn split_place(name: &[u8]) -> Option<(Vec<u8>, Place)> {
    let (end, bracket) = match name.strip_suffix(b")") {
        Some(end) => (end, &b")"[..]),
        None => (name, &b""[..]),
    };
    let (without, number) = split_number(end)?;
    let (without, place) = match split_number(without) {
        Some((without, line)) => (without, Place { line, column: number }),
        None => (without, Place { line: number, column: 0 }),
    };
    // A thread or an address of a network has no file, whose extension ends with a letter.
    let has_file = without.contains(&b'.') && without.last().is_some_and(u8::is_ascii_alphabetic);
    let function = [without, bracket].concat();
    (has_file && !is_generic(&function)).then_some((function, place))
}

/// Splits off a number after a colon.
fn split_number(name: &[u8]) -> Option<(&[u8], u64)> {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (name, number) = name.split_at(name.len() - digits);
    let number = std::str::from_utf8(number).ok().filter(|number| !number.is_empty())?;
    // No file has more lines.
    Some((name.strip_suffix(b":")?, number.parse().unwrap_or(u64::MAX)))
}

/// True for a name that many functions of a file have, which only their lines tell apart.
fn is_generic(function: &[u8]) -> bool {
    function.first().is_some_and(|first| b"<({".contains(first)) && !function.starts_with(b"<module>")
        || function.starts_with(b"lambda")
        || function.starts_with(b"anonymous")
}

#[cfg(test)]
mod tests {
    use super::{WITHOUT_LINES, count_moved, split_place};
    use crate::filter::rename::{Rename, apply_all};
    use crate::profile::{Profile, Weight, Weights};

    /// Returns the number for profiles of stacks `STACK` or `STACK WEIGHT`.
    fn count(before: &[&str], after: &[&str]) -> usize {
        let [before, after] = [before, after].map(|stacks| {
            let mut profile = Profile::new(false);
            for stack in stacks {
                let weighed = stack.rsplit_once(' ').and_then(|(stack, weight)| Some((stack, weight.parse().ok()?)));
                let (stack, weight) = weighed.unwrap_or((stack, 10));
                let frames: Vec<_> = stack.split(';').map(|name| profile.frames.intern(name.as_bytes())).collect();
                profile.add(&frames, Weights::plain(Weight::new(weight))).unwrap();
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
    fn functions_with_lines_of_both_sides_are_counted_if_these_are_as_far_from_each_other() {
        let lines = |shift: usize| {
            let functions = ["a", "b", "c"].iter().flat_map(|name| [10, 12, 14, 15, 17].map(|line| (name, line)));
            let stacks =
                functions.map(|(name, line)| format!("{name} (x.py:{}) {}", line + shift, line * line * line % 43 + 1));
            stacks.collect::<Vec<_>>()
        };
        let count_at = |shift| {
            let [old, new] = [lines(0), lines(shift)];
            let [old, new] = [&old, &new].map(|side| side.iter().map(String::as_str).collect::<Vec<_>>());
            count(&old, &new)
        };
        assert_eq!([0, 2, 3, 4, 20].map(count_at), [0, 3, 3, 3, 3]);
        // Other lines are hot now.
        let [old, new] = [["a (x.py:10) 90", "a (x.py:12) 5"], ["a (x.py:10) 5", "a (x.py:12) 90"]];
        let all = |side: [&str; 2]| {
            ["a", "b", "c"].iter().flat_map(|name| side.map(|line| line.replace('a', name))).collect::<Vec<_>>()
        };
        let [old, new] = [all(old), all(new)];
        let [old, new] = [&old, &new].map(|side| side.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(count(&old, &new), 0);
    }

    #[test]
    fn frameworks_that_did_not_move_hide_no_functions() {
        let framework: Vec<String> = (0..40).map(|number| format!("call (fw/core.py:{number})")).collect();
        let under = |functions: [&str; 3]| functions.map(|function| format!("{};{function}", framework.join(";")));
        let [old, new] =
            [["a (x.py:1)", "b (x.py:12)", "c (x.py:22)"], ["a (x.py:2)", "b (x.py:14)", "c (x.py:24)"]].map(under);
        assert_eq!(count(&old.each_ref().map(String::as_str), &new.each_ref().map(String::as_str)), 3);
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
            assert_eq!(split_place(name.as_bytes()).map_or(name.into(), |(function, _)| function), renamed, "{name}");
        }
    }
}
