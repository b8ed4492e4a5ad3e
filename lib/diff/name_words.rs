//! The words of function names, by which functions are alike that may be one under another name.

use super::modules::COMMON_NAMES;
use super::path_name::PathName;
use super::substitution::{split_file, words};

/// Fewest letters of a name that is part of another one.
const MIN_LETTERS: usize = 3;

/// Fewest letters of a word that another one begins with: `init` and `initialize`.
const MIN_PREFIX: usize = 4;

/// Words that tell versions of a function apart.
const VERSIONS: [&str; 2] = ["old", "new"];

/// What compilers add to the names of functions and of their copies.
const SUFFIXES: [&str; 8] = ["constprop", "isra", "part", "cold", "llvm", "lto_priv", "clone", "const"];

/// The words of the name of a function, without its module, type, file and arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NameWords {
    /// In lower case, without versions.
    words: Vec<String>,
    /// Numbers that are no versions.
    numbers: Vec<String>,
    /// What many functions are called, in a type or function that the words are of: `new`, `closure`.
    common: Vec<String>,
}

impl NameWords {
    pub fn parse(name: &[u8]) -> Self {
        let text = String::from_utf8_lossy(name);
        let function = PathName::parse(&text).and_then(|path| path.function_name()).unwrap_or(&text);
        let plain = without_brackets(split_file(function).0);
        let mut found = Self::default();
        for segment in words(&plain).into_iter().rev().map(|word| &plain[word]) {
            let stem = segment.trim_end_matches(|letter: char| letter.is_ascii_digit());
            match stem {
                "" => {}
                _ if SUFFIXES.contains(&stem) => {}
                _ if stem == "func" || COMMON_NAMES.contains(&stem) => found.common.push(stem.to_owned()),
                _ => {
                    found.add_segment(segment);
                    break;
                }
            }
        }
        found
    }

    fn add_segment(&mut self, segment: &str) {
        let parts = split_words(segment);
        let mut parts = parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part.starts_with(|first: char| first.is_ascii_digit()) {
                true => self.numbers.push(part.clone()),
                false
                    if part == "v"
                        && parts.next_if(|next| next.starts_with(|first: char| first.is_ascii_digit())).is_some() => {}
                false => self.words.push(part.clone()),
            }
        }
        if self.words.iter().any(|word| !VERSIONS.contains(&word.as_str())) {
            self.words.retain(|word| !VERSIONS.contains(&word.as_str()));
        }
    }

    /// True if the names are equal but for versions and the way of writing, or if all words of one are those of the other, which has at
    /// most twice as many.
    pub fn is_like(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|name| name.words.concat());
        if one.is_empty() || two.is_empty() || self.common != other.common {
            return false;
        }
        if !self.numbers.is_empty() && !other.numbers.is_empty() && self.numbers != other.numbers {
            return false;
        }
        let [few, many] = if self.words.len() <= other.words.len() { [self, other] } else { [other, self] };
        let is_part = few.words.iter().all(|word| many.words.iter().any(|other| are_forms(word, other)));
        one == two || is_part && one.len().min(two.len()) >= MIN_LETTERS && many.words.len() <= 2 * few.words.len()
    }
}

/// True for two forms of a word.
fn are_forms(one: &str, other: &str) -> bool {
    let [short, long] = if one.len() <= other.len() { [one, other] } else { [other, one] };
    let rest = long.strip_prefix(short);
    rest.is_some_and(|rest| short.len() >= MIN_PREFIX || ["", "s", "es"].contains(&rest))
}

/// Returns a name without what is in brackets: arguments, and the type of a method of Go.
fn without_brackets(name: &str) -> String {
    let (mut plain, mut depth) = (String::with_capacity(name.len()), 0_usize);
    for letter in name.chars() {
        match letter {
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    plain
}

/// Splits `parseHeader2` and `parse_header_2` into words and numbers in lower case.
fn split_words(segment: &str) -> Vec<String> {
    let letters: Vec<char> = segment.chars().collect();
    let mut words = vec![String::new()];
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| letters[before]);
        let is_start = before.is_some_and(|before| {
            let ends_acronym = before.is_uppercase() && letters.get(index + 1).is_some_and(|next| next.is_lowercase());
            before.is_ascii_digit() != letter.is_ascii_digit()
                || letter.is_uppercase() && (before.is_lowercase() || ends_acronym)
        });
        if is_start || *letter == '_' {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| *letter != '_') {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::NameWords;

    fn are_alike(one: &str, other: &str) -> bool {
        let [one, other] = [one, other].map(|name| NameWords::parse(name.as_bytes()));
        assert_eq!(one.is_like(&other), other.is_like(&one));
        one.is_like(&other)
    }

    #[test]
    fn names_that_differ_in_a_word_or_the_way_of_writing_are_alike() {
        for (one, other) in [
            ("parse_v1", "parse"),
            ("parse_v1", "parse_v2"),
            ("parse_old", "parse_new"),
            ("sum", "sum.constprop.0"),
            ("computeTotal", "compute_total"),
            ("doWork", "dowork"),
            ("insertCell", "insertCellFast"),
            ("calc_sum", "calculate_sum"),
            ("render (app.py)", "render (views.py:12)"),
            ("render (/srv/a/app.py)", "render_page (/srv/a/app.py)"),
            ("JS:*render /srv/app.js:12:5", "JS:*renderPage /srv/app.js:14:5"),
            ("shop::tax<int>(int)", "shop::taxes<long>(long)"),
            ("main.(*Index).Add", "main.(*Catalog).AddAll"),
            ("Foo::new", "FooV2::new"),
            ("load::{closure#0}", "load_v2::{closure#1}"),
            (
                "load(int)::{lambda(int)#1}::operator()(int) const",
                "loadAll(int)::{lambda(int)#2}::operator()(int) const",
            ),
            ("f (a.py)", "f (b.py)"),
        ] {
            assert!(are_alike(one, other), "{one} {other}");
        }
    }

    #[test]
    fn names_of_other_functions_are_not_alike() {
        for (one, other) in [
            ("render", "warm_cache"),
            ("parse_header", "parse_body"),
            ("encode", "decode"),
            ("compress", "decompress"),
            ("encode_json_array", "encode_json_object"),
            ("get", "get_user_name_by_id"),
            ("sha256", "sha512"),
            ("step1", "step2"),
            ("Foo::new", "Bar::new"),
            ("main.load.func1", "main.save.func1"),
            ("main.load", "main.load.func1"),
            ("load::{closure#0}", "save::{closure#0}"),
            ("load::{closure#0}", "load"),
            ("<lambda> (a.py:1)", "<lambda> (b.py:7)"),
            ("f", "f_inner"),
            ("std::map<a, b>::next", "std::set<a>::next"),
        ] {
            assert!(!are_alike(one, other), "{one} {other}");
        }
    }
}
