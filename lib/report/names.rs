//! Short names of functions that differ wherever the whole names do.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::columns::{take, width};
use super::context::display_name;
use super::fit::shortened;
use super::measure::percent;
use super::survey::Survey;
use crate::profile::{FrameId, Profile};
use crate::symbol_name::shorten::shorten;

/// Functions with this share in percent of the total may be on a page.
const MIN_SHARE: f64 = 0.3;

/// Names of more than this part of the width of a page lose their packages.
const LONG_PART: f64 = 0.3;

/// Most columns of the text by which functions of one short name differ.
const DIFFERENCE_WIDTH: usize = 24;

/// The namespaces of standard libraries: what their functions do follows from the name, whatever the arguments.
const STANDARD: [&str; 6] = ["std::", "core::", "alloc::", "__gnu_cxx::", "<core::", "<alloc::"];

/// The names of a page that are not those that [`shortened`] returns.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<FrameId, String, FxBuildHasher>);

impl Names {
    /// Finds the names for a page of this width. A long name loses its packages, unless another function is called the same without
    /// them. Functions that differ by their arguments alone have that difference behind their names.
    pub(super) fn new(profile: &Profile, survey: &Survey<'_>, page_width: usize) -> Self {
        let total = survey.total.before.max(survey.total.after);
        let functions = (0..).map(FrameId::from_index).zip(&survey.functions);
        let large = functions.filter(|(_, function)| {
            percent(function.inclusive.before.max(function.inclusive.after), total) >= MIN_SHARE
        });
        let names: Vec<(FrameId, String)> =
            large.map(|(frame, _)| (frame, display_name(profile.frames.name(frame)))).collect();
        let without_arguments: Vec<String> = names.iter().map(|(_, name)| shortened(name)).collect();
        let without_packages: Vec<String> = names.iter().map(|(_, name)| remove_packages(name)).collect();
        let same_short = groups(&without_arguments);
        let same_last = groups(&without_packages);
        let differences = find_differences(&names, same_short.values());
        let longest = (page_width as f64 * LONG_PART) as usize;
        let named = names.iter().enumerate().filter_map(|(number, (frame, name))| {
            let short = &without_arguments[number];
            let group = &same_short[short.as_str()];
            let base = match width(short) > longest {
                true => {
                    let others =
                        same_last[without_packages[number].as_str()].iter().map(|other| &without_arguments[*other]);
                    distinct_end(short, &without_packages[number], others.filter(|other| *other != short))
                }
                false => short,
            };
            match group.len() {
                1 if base != short => Some((*frame, base.to_owned())),
                1 => None,
                _ if STANDARD.iter().any(|namespace| name.starts_with(namespace)) => Some((*frame, base.to_owned())),
                _ => {
                    let difference = &differences[number];
                    let end = if difference.is_empty() { String::new() } else { format!("<…{difference}…>") };
                    Some((*frame, format!("{base}{end}")))
                }
            }
        });
        Self(named.collect())
    }

    /// Returns the name of a function, unless it is the usual one.
    pub(super) fn get(&self, frame: FrameId) -> Option<&str> {
        self.0.get(&frame).map(String::as_str)
    }
}

/// Returns what differs between each name and the others of its group. If some get the same text because it is cut, it begins
/// behind what these have in common.
fn find_differences<'g>(names: &[(FrameId, String)], same_short: impl Iterator<Item = &'g Vec<usize>>) -> Vec<String> {
    let mut differences = vec![String::new(); names.len()];
    let mut set = |group: &[usize]| {
        let texts: Vec<&str> = group.iter().map(|number| names[*number].1.as_str()).collect();
        let found: Vec<String> = texts.iter().map(|name| difference(name, &texts)).collect();
        group.iter().zip(&found).for_each(|(number, difference)| differences[*number].clone_from(difference));
        found
    };
    for group in same_short.filter(|group| group.len() > 1) {
        let found = set(group);
        for same in groups(&found).values().filter(|same| same.len() > 1) {
            set(&same.iter().map(|index| group[*index]).collect::<Vec<_>>());
        }
    }
    differences
}

/// Returns the last two parts of a name without arguments, or the name of a script's function without directories.
fn remove_packages(name: &str) -> String {
    String::from_utf8_lossy(&shorten(name.as_bytes(), 3)).into_owned()
}

/// Returns the shortest end of a name, from a separator on, that no other name has. `last` is the end that all have in common.
fn distinct_end<'a>(name: &'a str, last: &'a str, others: impl Iterator<Item = &'a String> + Clone) -> &'a str {
    let Some(packages) = name.strip_suffix(last) else { return if others.count() == 0 { last } else { name } };
    let starts = packages.rmatch_indices(['.', ':', '/']).map(|(at, separator)| at + separator.len());
    let ends = starts.map(|start| &name[start..]).filter(|end| !end.starts_with(':'));
    ends.into_iter().find(|end| !others.clone().any(|other| other.ends_with(end))).unwrap_or(name)
}

/// Returns the indices of each text.
fn groups(texts: &[String]) -> HashMap<&str, Vec<usize>, FxBuildHasher> {
    let mut groups = HashMap::<&str, Vec<usize>, FxBuildHasher>::default();
    for (number, text) in texts.iter().enumerate() {
        groups.entry(text).or_default().push(number);
    }
    groups
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns what differs between a name and others that have the same short name: whole words, without what all have in common.
fn difference(name: &str, group: &[&str]) -> String {
    let mut others = group.iter().filter(|other| **other != name);
    let start = others.clone().map(|other| common_length(name.chars(), other.chars())).min().unwrap_or(0);
    let end = others.clone().map(|other| common_length(name.chars().rev(), other.chars().rev())).min().unwrap_or(0);
    let letters: Vec<char> = name.chars().collect();

    let mut first = start;
    while first > 0 && is_word(letters[first - 1]) && letters.get(first).is_none_or(|letter| is_word(*letter)) {
        first -= 1;
    }
    // A long word may differ behind what fits.
    if start - first >= DIFFERENCE_WIDTH {
        first = start - DIFFERENCE_WIDTH / 2;
    }
    let mut last = letters.len().saturating_sub(end).max(first);
    while last < letters.len() && is_word(letters[last]) && (last == first || is_word(letters[last - 1])) {
        last += 1;
    }
    let text: String = letters[first..last].iter().collect();
    let text = text.trim_matches([' ', ',', '<', '>', '(', ')', ':']);
    // The first argument that differs is enough if no other name has it.
    let argument = text.split([',', '<', '>', '(', ')']).next().unwrap_or(text);
    let is_distinct = !argument.is_empty() && !others.any(|other| other.contains(argument));
    take(if is_distinct { argument } else { text }, DIFFERENCE_WIDTH).to_owned()
}

fn common_length(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::{difference, find_differences};
    use crate::profile::FrameId;

    #[test]
    fn names_that_differ_late_differ_when_they_are_cut() {
        let names = ["string", "vector<pair<acme::model::Customer, int>>", "vector<pair<acme::model::Invoice, int>>"];
        let names = names.map(|argument| (FrameId::from_index(0), format!("sort_all<{argument}>")));
        assert_eq!(find_differences(&names, [vec![0, 1, 2]].iter()), ["string", "Customer", "Invoice"]);
    }

    #[test]
    fn names_differ_by_whole_words() {
        let names = ["index<order, by_price, ascending>::rebuild", "index<order, by_symbol, descending>::rebuild"];
        assert_eq!(names.map(|name| difference(name, &names)), ["by_price", "by_symbol"]);
        let long = ["a", "b"].map(|end| format!("{}{end}", "of_a_long_name".repeat(9)));
        let long = [&*long[0], &long[1]];
        assert_eq!(long.map(|name| difference(name, &long)), ["_a_long_namea", "_a_long_nameb"]);
        let arguments = ["convert<unsigned int>", "convert<unsigned long>", "convert<int>"];
        assert_eq!(arguments.map(|name| difference(name, &arguments)), ["unsigned int", "unsigned long", "int"]);
    }
}
