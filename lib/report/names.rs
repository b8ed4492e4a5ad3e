//! Short names of functions that differ wherever the whole names do.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::columns::{take, width};
use super::context::display_name;
use super::fit::{cut_middle, shortened};
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

/// Letters of a word by which functions differ; a longer one is cut to the part that differs, of up to twice as many. If there is no room for all words, they
/// have fewer letters.
const WORD_LETTERS: [usize; 6] = [10, 6, 4, 3, 2, 1];

/// Names are cut to this part of the width of a page where details stand beside them.
const CELL_PART: f64 = 0.25;

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
        let whole: Vec<&str> = names.iter().map(|(_, name)| name.as_str()).collect();
        let cell = (page_width as f64 * CELL_PART) as usize;
        let differences = find_differences(&whole, same_short.values(), cell);
        let short: Vec<&str> = without_arguments.iter().map(String::as_str).collect();
        let of_packages = find_differences(&short, same_last.values(), cell);
        let longest = (page_width as f64 * LONG_PART) as usize;
        let named = names.iter().enumerate().filter_map(|(number, (frame, _))| {
            let (short, last) = (short[number], without_packages[number].as_str());
            let (mut base, mut difference) = (short, differences[number].as_str());
            if width(short) > longest {
                let others = same_last[last].iter().map(|other| &without_arguments[*other]);
                base = distinct_end(short, last, others.filter(|other| *other != short));
            }
            if same_short[short].len() == 1 {
                difference = "";
            }
            // The packages do not fit either.
            if width(base) > longest && base != last && difference.is_empty() {
                (base, difference) = (last, of_packages[number].as_str());
            }
            match difference {
                "" if base == short && same_short[short].len() == 1 => None,
                "" => Some((*frame, base.to_owned())),
                _ => Some((*frame, format!("{base}<…{difference}…>"))),
            }
        });
        Self(named.collect())
    }

    /// Returns the name of a function, unless it is the usual one.
    pub(super) fn get(&self, frame: FrameId) -> Option<&str> {
        self.0.get(&frame).map(String::as_str)
    }
}

/// A text of a column, as it is cut to fit.
#[derive(Clone, Debug)]
pub(super) struct CutText {
    pub(super) whole: String,
    pub(super) cut: String,
    /// The width to which it is cut.
    pub(super) room: usize,
}

/// Cuts texts of a column in another way if they are the same only because they are cut: what differs comes behind them.
pub(super) fn tell_cut_apart(texts: &mut [CutText]) {
    let cut: Vec<String> = texts.iter().map(|text| text.cut.clone()).collect();
    let whole: Vec<String> = texts.iter().map(|text| text.whole.clone()).collect();
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    for group in groups(&cut).values() {
        let others = group.iter().map(|number| whole[*number]).collect::<BTreeSet<&str>>();
        let room = group.iter().map(|number| texts[*number].room).min().unwrap_or(0);
        if others.len() < 2 {
            continue;
        }
        let distinct: Vec<&str> = others.into_iter().collect();
        let differences = find_differences(&distinct, [(0..distinct.len()).collect()].iter(), room);
        for number in group {
            let difference = distinct.iter().position(|text| *text == whole[*number]).map(|place| &differences[place]);
            if let Some(difference) = difference.filter(|difference| !difference.is_empty()) {
                texts[*number].cut = cut_middle(&format!("{}<…{difference}…>", whole[*number]), texts[*number].room);
            }
        }
    }
}

/// Returns what differs between each name and the others of its group. If it has no room in a cell of this width, it has shorter
/// words.
fn find_differences<'g>(
    names: &[&str],
    groups_of_names: impl Iterator<Item = &'g Vec<usize>>,
    cell: usize,
) -> Vec<String> {
    // The end of a text that is cut in its middle, without `…>`.
    let room = (cell.saturating_sub(1) - cell.saturating_sub(1) / 3).saturating_sub(2);
    let mut differences = vec![String::new(); names.len()];
    for group in groups_of_names.filter(|group| group.len() > 1) {
        let texts: Vec<&str> = group.iter().map(|number| names[*number]).collect();
        let mut found: Vec<String> = texts.iter().map(|name| difference(name, &texts)).collect();
        // Some are the same because they are cut.
        let are_distinct = |found: &[String]| groups(found).len() == found.len();
        let fit = |found: &[String]| found.iter().all(|difference| width(difference) <= room);
        if !are_distinct(&found) || !fit(&found) {
            let forms = WORD_LETTERS.into_iter().map(|letters| distinct_words(&texts, letters));
            let forms: Vec<Vec<String>> = forms.filter(|form| are_distinct(form)).collect();
            let shortest = forms.iter().position(|form| fit(form)).unwrap_or(forms.len().saturating_sub(1));
            found = forms.into_iter().nth(shortest).filter(|form| fit(form) || !are_distinct(&found)).unwrap_or(found);
        }
        group.iter().zip(found).for_each(|(number, found)| differences[*number] = found);
    }
    differences
}

/// Returns the words that tell each name from the others: at each place, those by which names differ that were the same
/// until there, with this many letters each.
fn distinct_words(names: &[&str], letters: usize) -> Vec<String> {
    let words: Vec<Vec<&str>> = names
        .iter()
        .map(|name| name.split(|letter| !is_word(letter)).filter(|word| !word.is_empty()).collect())
        .collect();
    let mut chosen: Vec<Vec<&str>> = vec![Vec::new(); names.len()];
    let mut same: Vec<Vec<usize>> = vec![(0..names.len()).collect()];
    let mut place = 0;
    while same.iter().flatten().any(|name| place < words[*name].len()) {
        let mut next = Vec::new();
        for class in same {
            let mut parts = BTreeMap::<&str, Vec<usize>>::new();
            for name in class {
                parts.entry(words[name].get(place).copied().unwrap_or_default()).or_default().push(name);
            }
            if parts.len() > 1 {
                let texts: Vec<&str> = parts.keys().copied().collect();
                for (word, part) in &parts {
                    let short = distinct_part(word, &texts, letters);
                    part.iter().for_each(|name| chosen[*name].push(short));
                }
            }
            next.extend(parts.into_values().filter(|part| part.len() > 1));
        }
        same = next;
        place += 1;
    }
    let mut uses = HashMap::<&str, usize, FxBuildHasher>::default();
    chosen.iter().flatten().for_each(|word| *uses.entry(word).or_default() += 1);
    let texts = chosen.iter().map(|words| match words.last() {
        // It is enough if no other name has it.
        Some(last) if !last.is_empty() && uses[last] == 1 => (*last).to_owned(),
        _ => words.iter().copied().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("…"),
    });
    texts.collect()
}

/// Returns the part of a long word by which it differs from others, with some letters around it.
fn distinct_part<'a>(word: &'a str, others: &[&str], most: usize) -> &'a str {
    let others = others.iter().filter(|other| **other != word && !other.is_empty());
    let common = |other: &&str| {
        let start = common_length(word.chars(), other.chars());
        let ends = [word, other].map(|text| text.chars().skip(start).collect::<Vec<char>>());
        [start, common_length(ends[0].iter().rev(), ends[1].iter().rev())]
    };
    let least = |[start, end]: [usize; 2], one: [usize; 2]| [start.min(one[0]), end.min(one[1])];
    let [start, end] = others.map(common).fold([usize::MAX; 2], least);
    let letters = word.chars().count();
    if letters <= most || start == usize::MAX {
        return take(word, most);
    }
    let (mut first, mut last) = (start, letters - end.min(letters - start));
    last = last.max((first + most).min(letters)).min(first + 2 * most);
    first = first.min(last.saturating_sub(most));
    let place = |letter: usize| word.char_indices().nth(letter).map_or(word.len(), |(place, _)| place);
    &word[place(first)..place(last)]
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

fn common_length<T: PartialEq>(one: impl Iterator<Item = T>, other: impl Iterator<Item = T>) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::{CutText, cut_middle, difference, find_differences, tell_cut_apart};

    #[test]
    fn names_that_differ_late_differ_when_they_are_cut() {
        let names = ["string", "vector<pair<acme::model::Customer, int>>", "vector<pair<acme::model::Invoice, int>>"];
        let names = names.map(|argument| format!("sort_all<{argument}>"));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(find_differences(&names, [vec![0, 1, 2]].iter(), 40), ["string", "Customer", "Invoice"]);
    }

    #[test]
    fn names_that_differ_at_many_places_differ_when_they_are_cut() {
        let part = |number: usize| format!("shop::a_long_namespace::Record{number}");
        let names: Vec<String> =
            (0..16).map(|number| [1, 2, 4, 8].map(|bit| part(usize::from(number & bit > 0))).join(", ")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let differences = find_differences(&names, [(0..16).collect()].iter(), 60);
        assert_eq!(differences[5], "Record1…Record0…Record1…Record0");
        assert_eq!(super::groups(&differences).len(), 16, "{differences:?}");
    }

    #[test]
    fn long_names_differ_when_their_middle_is_cut() {
        let middles =
            ["alpha", "beta", "gamma"].map(|middle| format!("a_name_that_goes_on_{middle}_and_ends_in_the_same_way"));
        let words = ["A", "B"].map(|letter| format!("{}{letter}{}", "x".repeat(30), "y".repeat(40)));
        let names = [&middles[..], &words, &["short".to_owned()]].concat();
        let texts = names.iter().map(|name| CutText { whole: name.clone(), cut: cut_middle(name, 16), room: 16 });
        let mut texts: Vec<CutText> = texts.collect();
        tell_cut_apart(&mut texts);
        let cut: Vec<String> = texts.into_iter().map(|text| text.cut).collect();
        assert_eq!(super::groups(&cut).len(), names.len(), "{cut:?}");
        assert!(cut[0].contains("alpha") && cut[5] == "short", "{cut:?}");
    }

    #[test]
    fn names_that_differ_at_three_places_fit_a_cell() {
        let of = |number: usize, bit: usize, words: [&'static str; 2]| words[usize::from(number & bit > 0)];
        let names = (0..8).map(|number| {
            let (model, order) = (of(number, 1, ["Customer", "Invoice"]), of(number, 2, ["ascending", "descending"]));
            format!("index<model::{model}, compare::{order}, key<{}>>::rebuild", of(number, 4, ["string", "integer"]))
        });
        let names: Vec<String> = names.collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let differences = find_differences(&names, [(0..8).collect()].iter(), 16);
        let cut: Vec<String> =
            differences.iter().map(|difference| cut_middle(&format!("rebuild<…{difference}…>"), 16)).collect();
        assert_eq!(super::groups(&cut).len(), 8, "{cut:?}");
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
