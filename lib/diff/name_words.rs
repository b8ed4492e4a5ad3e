//! The names of functions without versions, by which functions are alike that may be one under another name.

use std::collections::HashMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::path_name::PathName;
use super::relations::Relations;
use super::substitution::{split_file, words};
use crate::profile::{FrameId, Frames};

/// Last words of versions of a function, of which the other version has none.
const VARIANTS: [&str; 5] = ["impl", "fast", "simd", "orig", "optimized"];

/// Suffixes that compilers add to the names of functions and of their copies, before a number.
const SUFFIXES: [&str; 7] = ["constprop", "isra", "part", "cold", "llvm", "lto_priv", "clone"];

/// Names of functions that have none, or that of the function that they are in.
const NAMELESS: [&str; 6] = ["closure", "lambda", "func", "genexpr", "listcomp", "const"];

/// Largest number that tells versions apart: `crc32` is no version of `crc`.
const MAX_VERSION: u32 = 9;

/// Numbers of protocols, not of versions of a function.
const PROTOCOLS: [u32; 2] = [4, 6];

/// Hexadecimal digits of the hash in a name of Rust.
const HASH_DIGITS: usize = 16;

/// The name of a function without its version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NameWords {
    /// The module, type, file and template arguments, and the closures inside.
    place: [String; 3],
    /// The words of the function in lower case, without versions.
    words: String,
}

/// The rest of a name, which tells a function from others with the same [`NameWords`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// `old` or `new`.
    age: Option<Age>,
    /// One of [`VARIANTS`].
    variant: Option<String>,
    /// The number behind `v`.
    version: Option<u32>,
    /// A number without it.
    number: Option<u32>,
}

/// The word `old` or `new` in a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Age {
    is_new: bool,
    /// True at the beginning of the name, not at its end.
    is_first: bool,
}

impl NameWords {
    /// Parses a name; `None` if the function has none.
    pub fn parse(name: &[u8]) -> Option<(Self, Version)> {
        let text = String::from_utf8_lossy(name);
        let by_path = PathName::parse(&text).and_then(|path| Some(text.split_at(path.function_name()?.len())));
        let (function, file) = by_path.unwrap_or_else(|| split_file(&text));
        let function = without_suffixes(function);
        let masked = without_brackets(function);
        let word =
            words(&masked).into_iter().rev().find(|word| is_name(&masked[..word.start], &masked[word.clone()]))?;
        let (words, version) = Version::split(&function[word.clone()])?;
        let before = match function[..word.start].strip_prefix("JS:") {
            // The compiler of the code.
            Some(rest) => rest.trim_start_matches(['*', '~', '^', '+']),
            None => &function[..word.start],
        };
        let place = [before.to_owned(), without_arguments(&function[word.end..]), without_lines(file)];
        Some((Self { place, words }, version))
    }
}

impl Version {
    /// Splits the name of a function into its words and its version; `None` if it has no words.
    fn split(name: &str) -> Option<(String, Self)> {
        let mut parts = split_words(name);
        let mut version = Self::default();
        let last_number =
            parts.last().and_then(|last| last.parse::<u32>().ok()).filter(|number| *number <= MAX_VERSION);
        if let (Some(number), [.., _, _]) = (last_number, &parts[..]) {
            let has_letter = parts[parts.len() - 2] == "v";
            // `copy2` and `log2` are other functions, `copy_row2` and `copy_2` versions.
            if has_letter && parts.len() > 2 {
                version.version = Some(number);
                parts.truncate(parts.len() - 2);
            } else if !has_letter
                && (parts.len() > 2 || name.trim_end_matches(|letter: char| letter.is_ascii_digit()).ends_with('_'))
            {
                version.number = Some(number);
                parts.pop();
            }
        }
        if let [first, .., last] = &parts[..] {
            if let Some(is_new) = parse_age(last) {
                version.age = Some(Age { is_new, is_first: false });
                parts.pop();
            } else if let Some(is_new) = parse_age(first) {
                version.age = Some(Age { is_new, is_first: true });
                parts.remove(0);
            }
        }
        if parts.len() > 1 && parts.last().is_some_and(|last| VARIANTS.contains(&last.as_str())) {
            version.variant = parts.pop();
        }
        // `step_2_1` and `step_21` differ.
        let mut words = String::new();
        for part in &parts {
            if words.ends_with(is_digit) && part.starts_with(is_digit) {
                words.push('_');
            }
            words.push_str(part);
        }
        (!words.is_empty()).then_some((words, version))
    }

    /// True if functions with the same words and these versions may be one.
    pub fn may_become(&self, after: &Self) -> bool {
        let are_ages = match (self.age, after.age) {
            // A program may have both.
            (Some(one), Some(other)) => one == other,
            // `new_list` makes a list.
            (Some(one), None) | (None, Some(one)) => !(one.is_new && one.is_first),
            (None, None) => true,
        };
        let are_variants = self.variant == after.variant || self.variant.is_none() || after.variant.is_none();
        let are_numbers = self.number == after.number || self.number.is_none() || after.number.is_none();
        let are_versions = match (self.version, after.version) {
            (Some(one), Some(other)) => one == other || ![one, other].iter().all(|number| PROTOCOLS.contains(number)),
            _ => true,
        };
        are_ages && are_variants && are_numbers && are_versions
    }
}

/// The functions that are alike by their names, and alone so.
#[derive(Clone, Debug)]
pub(super) struct LikeNames(Rc<FxHashMap<FrameId, (usize, Version)>>);

impl LikeNames {
    /// Finds the functions before and after that alone have their words on their side.
    pub fn find(frames: &Frames, relations: &[std::collections::BTreeMap<FrameId, Relations>; 2]) -> Self {
        let mut groups = HashMap::<NameWords, [Vec<(FrameId, Version)>; 2]>::new();
        for (frame, name) in frames.iter() {
            let Some((words, version)) = NameWords::parse(name) else { continue };
            let group = groups.entry(words).or_default();
            for side in (0..2).filter(|side| relations[*side].contains_key(&frame)) {
                group[side].push((frame, version.clone()));
            }
        }
        let single = groups.into_values().filter(|sides| sides.iter().all(|functions| functions.len() == 1));
        let numbered = single.enumerate().flat_map(|(number, sides)| {
            sides.into_iter().flatten().map(move |(frame, version)| (frame, (number, version)))
        });
        Self(Rc::new(numbered.collect()))
    }

    /// True if a function before and one after are alike, and no others are alike with them.
    pub fn are_alike(&self, vanished: FrameId, new: FrameId) -> bool {
        let (Some((one, before)), Some((other, after))) = (self.0.get(&vanished), self.0.get(&new)) else {
            return false;
        };
        one == other && before.may_become(after)
    }
}

/// Returns true for `new` and false for `old`.
fn parse_age(word: &str) -> Option<bool> {
    match word {
        "old" => Some(false),
        "new" => Some(true),
        _ => None,
    }
}

/// True for a word by which a function is called, behind a text.
fn is_name(before: &str, word: &str) -> bool {
    let stem = word.trim_end_matches(is_digit);
    let is_call_of_lambda = word == "operator" && before.ends_with("}::");
    !stem.is_empty() && !NAMELESS.contains(&stem) && !is_call_of_lambda
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

/// Returns a name without the hash of Rust and the suffixes of compilers.
fn without_suffixes(mut name: &str) -> &str {
    let hash = name.rfind("::h").filter(|at| {
        let digits = &name[at + 3..];
        digits.len() == HASH_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    });
    name = &name[..hash.unwrap_or(name.len())];
    loop {
        let shorter = match name.strip_suffix(']').and_then(|name| name.rsplit_once(" [")) {
            Some((shorter, suffix)) if suffix.starts_with("clone ") => shorter,
            _ => {
                let end = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
                let end = if name[end.len()..].starts_with('.') { end } else { name };
                match end.rsplit_once('.') {
                    Some((shorter, suffix)) if SUFFIXES.contains(&suffix) => shorter,
                    _ => return name,
                }
            }
        };
        name = shorter;
    }
}

/// Returns a name with spaces in place of what is in brackets: arguments, and the type of a method of Go.
fn without_brackets(name: &str) -> String {
    let (mut masked, mut depth) = (String::with_capacity(name.len()), 0_usize);
    for letter in name.chars() {
        depth += usize::from(matches!(letter, '(' | '<' | '['));
        match depth {
            0 => masked.push(letter),
            _ => masked.extend(std::iter::repeat_n(' ', letter.len_utf8())),
        }
        depth = depth.saturating_sub(usize::from(matches!(letter, ')' | '>' | ']')));
    }
    masked
}

/// Returns the text behind the name of a function without arguments.
fn without_arguments(text: &str) -> String {
    let mut depth = 0_usize;
    let kept = text.chars().filter(|letter| {
        depth += usize::from(*letter == '(');
        let is_kept = depth == 0;
        depth = depth.saturating_sub(usize::from(*letter == ')'));
        is_kept
    });
    kept.collect()
}

/// Returns the file of a function without the line and column.
fn without_lines(file: &str) -> String {
    let end = file.trim_end_matches([')', ' ']);
    let is_place = |letter: char| is_digit(letter) || letter == ':';
    let path = end.trim_end_matches(is_place);
    if end[path.len()..].starts_with(':') { path.to_owned() } else { end.to_owned() }
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
        let (Some((one, version)), Some((other, new))) = (one, other) else { return false };
        assert_eq!(version.may_become(&new), new.may_become(&version));
        one == other && version.may_become(&new)
    }

    #[test]
    fn names_that_differ_in_a_version_or_the_way_of_writing_are_alike() {
        for (one, other) in [
            ("parse_v1", "parse"),
            ("parse_v1", "parse_v2"),
            ("parse_old", "parse"),
            ("parse", "parse_new"),
            ("old_merge", "merge"),
            ("parse", "parse_fast"),
            ("parse_impl", "parse"),
            ("parse_row", "parse_row2"),
            ("copy", "copy_2"),
            ("sum", "sum.constprop.0"),
            ("sum.part.0", "sum.isra.0.cold"),
            ("sum(int) [clone .isra.0]", "sum(int)"),
            ("app::render::h0123456789abcdef", "app::render::hfedcba9876543210"),
            ("computeTotal", "compute_total"),
            ("doWork", "dowork"),
            ("XMLRead", "XmlRead"),
            ("_draw", "draw"),
            ("insertCell", "insertCellFast"),
            ("render (/srv/a/app.py:7)", "renderV2 (/srv/a/app.py:12)"),
            ("JS:*render /srv/app.js:12:5", "JS:~render_v2 /srv/app.js:14:5"),
            ("shop::tax<int>(int)", "shop::tax_v2<int>(long)"),
            ("main.(*Index).Add", "main.(*Index).AddV2"),
            ("load::{closure#0}", "load_v2::{closure#0}"),
            (
                "load(int)::{lambda(int)#1}::operator()(int) const",
                "load_v2(int)::{lambda(int)#1}::operator()(int) const",
            ),
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
            ("parse_old", "parse_new"),
            ("new_user", "old_user"),
            ("old_user", "user_new"),
            ("rows_before", "rows_after"),
            ("copy_in", "copy_out"),
            ("get_row", "set_row"),
            ("lock", "unlock"),
            ("sha256", "sha512"),
            ("crc", "crc32"),
            ("copy", "copy2"),
            ("step1", "step2"),
            ("step_1", "step_2"),
            ("parse_v4", "parse_v6"),
            ("list", "new_list"),
            ("alloc_fast", "alloc_simd"),
            ("conf", "confirm"),
            ("save", "save_all"),
            ("is_valid", "is_not_valid"),
            ("rgb_to_yuv", "yuv_to_rgb"),
            ("comp_page", "compare_page"),
            ("get_user", "get_users"),
            ("Order::total", "Invoice::total"),
            ("Order::total", "total"),
            ("com/acme/OrderService.find", "com/acme/UserService.find"),
            ("main.(*Order).Total", "main.(*Invoice).Total"),
            ("shop::orders::list", "shop::users::list"),
            ("api::v1::list", "api::v2::list"),
            ("Foo::new", "Bar::new"),
            ("Store::Store", "Store::~Store"),
            ("Row::operator<", "Row::operator>"),
            ("<A as Cost>::total", "<B as Cost>::total"),
            ("sort<User>(int)", "sort<Order>(int)"),
            ("main.load.func1", "main.save.func1"),
            ("main.load", "main.load.func1"),
            ("load::{closure#0}", "save::{closure#0}"),
            ("load::{closure#0}", "load::{closure#1}"),
            ("load::{closure#0}", "load"),
            ("<lambda> (a.py:1)", "<lambda> (b.py:7)"),
            ("f", "f_inner"),
            ("f (a.py)", "f (b.py)"),
            ("render (/srv/a.py:12)", "render (/srv/b.py:12)"),
            ("std::map<a, b>::next", "std::set<a>::next"),
        ] {
            assert!(!are_alike(one, other), "{one} {other}");
        }
    }
}
