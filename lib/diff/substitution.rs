//! Segments of names that are others after: a module or type that was renamed has another name in all names that contain it.

use crate::markers;

/// Segments of names, such as `shop::cart` or `Item`, that are others after.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Substitution {
    before: String,
    after: String,
}

/// A substitution with the path of the module or type that it was found in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub substitution: Substitution,
    /// The path before and after, with the separator behind it.
    pub paths: [String; 2],
}

impl Substitution {
    /// Returns the substitution after which a name is the other one; `None` if there is none, or if it changes the function alone.
    pub fn between(before: &str, after: &str) -> Option<Found> {
        let [(old, old_file), (new, new_file)] = [before, after].map(split_file);
        let [old_words, new_words] = [old, new].map(words);
        if old == new || old_file != new_file {
            return None;
        }
        let [old_part, new_part] = find_equal_change([old, new], [&old_words, &new_words])
            .or_else(|| find_middle([old, new], [&old_words, &new_words]))?;
        let substitution = Self { before: old[old_part.clone()].to_owned(), after: new[new_part.clone()].to_owned() };
        let is_complete = substitution.apply(before).as_deref() == Some(after);
        let start = path_start(&old[..old_part.start]);
        // Names that are equal nowhere else have no common start.
        let path = |name: &str, end: usize| Some(format!("{}{}", name.get(start..end)?, separator(name.get(end..)?)));
        let paths = [path(old, old_part.end)?, path(new, new_part.end)?];
        is_complete.then_some(Found { substitution, paths })
    }

    /// The same for functions that may have other names themselves, if not only these differ.
    pub fn between_modules(before: &str, after: &str) -> Option<Found> {
        let [last, new_last] = [before, after].map(|name| words(split_file(name).0).last().cloned());
        let (last, new_last) = (last?, new_last?);
        let renamed = format!("{}{}{}", &after[..new_last.start], &before[last], &after[new_last.end..]);
        Self::between(before, after).or_else(|| Self::between(before, &renamed))
    }

    /// Returns the name after; `None` if it is the same.
    pub fn apply(&self, name: &str) -> Option<String> {
        replace_words(name, &self.before, &self.after)
    }

    /// True if a name has the segments after.
    pub fn is_in_after(&self, name: &str) -> bool {
        Self::contains(name, &self.after)
    }

    /// True if a name has whole words of this text.
    pub fn contains(name: &str, text: &str) -> bool {
        replace_words(name, text, "").is_some()
    }

    /// Returns the last word of a name: that of the function.
    pub fn last_word(name: &str) -> Option<&str> {
        words(split_file(name).0).pop().map(|word| &name[word])
    }

    /// Returns the number of bytes that are replaced.
    pub fn len(&self) -> usize {
        self.before.len()
    }
}

/// Replaces whole words outside the file of a script; `None` if there are none.
fn replace_words(name: &str, before: &str, after: &str) -> Option<String> {
    let (function, file) = split_file(name);
    let (mut renamed, mut copied) = (String::new(), 0);
    for (start, _) in function.match_indices(before) {
        let end = start + before.len();
        let is_whole = !function[..start].ends_with(is_word)
            && (!before.ends_with(is_word) || !function[end..].starts_with(is_word));
        if is_whole && start >= copied {
            renamed.push_str(&function[copied..start]);
            renamed.push_str(after);
            copied = end;
        }
    }
    (copied > 0).then(|| format!("{renamed}{}{file}", &function[copied..]))
}

/// Returns the word that differs if it is the same wherever two names differ, in a segment before the last one.
fn find_equal_change([old, new]: [&str; 2], [old_words, new_words]: [&[Word]; 2]) -> Option<[Word; 2]> {
    let is_same = |[a, b]: [&Word; 2]| old[a.clone()] == new[b.clone()];
    let mut differing = old_words.iter().zip(new_words).filter(|(a, b)| !is_same([a, b]));
    let (a, b) = differing.next()?;
    let is_single = old_words.len() == new_words.len()
        && differing.all(|(c, d)| old[c.clone()] == old[a.clone()] && new[d.clone()] == new[b.clone()]);
    let is_name = |text: &str| text.starts_with(|letter: char| !letter.is_ascii_digit());
    (is_single && Some(a) != old_words.last() && is_name(&old[a.clone()]) && is_name(&new[b.clone()]))
        .then(|| [a.clone(), b.clone()])
}

/// Returns the paths that differ between the equal beginning and the equal end of two names, of which the function is part.
fn find_middle([old, new]: [&str; 2], [old_words, new_words]: [&[Word]; 2]) -> Option<[Word; 2]> {
    let pairs = || old_words.iter().zip(new_words);
    let ends = old_words.iter().rev().zip(new_words.iter().rev());
    let first = pairs().take_while(|(a, b)| old[..a.end] == new[..b.end]).count();
    let last = ends.take_while(|(a, b)| old[a.start..] == new[b.start..]).count();
    // A path that was inserted belongs to the segment before it.
    let first = first.min(old_words.len().min(new_words.len()).saturating_sub(last + 1));
    let part = |words: &[Word]| Some(words.get(first)?.start..words.get(words.len().checked_sub(last + 1)?)?.end);
    let (old_part, new_part) = (part(old_words)?, part(new_words)?);
    let is_path =
        |text: &str| text.chars().all(|letter| is_word(letter) || matches!(letter, ':' | '.' | '/' | '-' | '$'));
    (last > 0 && is_path(old.get(old_part.clone())?) && is_path(new.get(new_part.clone())?))
        .then_some([old_part, new_part])
}

/// The bytes of a word of a name.
pub(super) type Word = std::ops::Range<usize>;

/// Returns the words of a name: identifiers and numbers.
pub(super) fn words(name: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = 0;
    while let Some(start) = name[rest..].find(is_word).map(|at| rest + at) {
        rest = name[start..].find(|letter| !is_word(letter)).map_or(name.len(), |at| start + at);
        words.push(start..rest);
    }
    words
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Splits off the file of a function of a script, and the mark of a function that is inlined or generated.
pub(super) fn split_file(name: &str) -> (&str, &str) {
    let plain = std::str::from_utf8(markers::strip_suffix(name.as_bytes())).unwrap_or(name);
    let file = plain.rfind(" (").filter(|at| plain.ends_with(')') && !plain[at + 2..].contains(['<', '(', '>']));
    name.split_at(file.unwrap_or(plain.len()))
}

/// Returns where the path begins that ends with a text.
fn path_start(text: &str) -> usize {
    let outside = text.rfind([' ', '<', ',', '&', '{', '[']).map_or(0, |at| at + 1);
    // A type of Go: `main.(*Index)`.
    let open = text[outside..].rfind('(').filter(|at| !text[outside + at..].starts_with("(*"));
    outside + open.map_or(0, |at| at + 1)
}

/// Returns the separator at the start of a text.
fn separator(text: &str) -> &str {
    &text[..text.find(|letter| !matches!(letter, ':' | '.' | ')')).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::Substitution;

    #[test]
    fn finds_what_differs_in_a_name() {
        for (before, after, expected) in [
            ("shop::cart::tax", "shop::basket::tax", Some(("shop::cart::", "shop::basket::"))),
            ("app::cart::tax", "shop::cart::tax", Some(("app::", "shop::"))),
            ("com.acme.cart.Tax.of", "com.acme.basket.Tax.of", Some(("com.acme.cart.", "com.acme.basket."))),
            ("com.acme.cart.Tax.of", "org.zed.shop.Tax.of", Some(("com.acme.cart.", "org.zed.shop."))),
            ("a::f", "a::m::f", Some(("a::", "a::m::"))),
            ("main.(*Index).Add", "main.(*Catalog).Add", Some(("main.(*Index).", "main.(*Catalog)."))),
            ("Index.add (/x/a.py)", "Catalog.add (/x/a.py)", Some(("Index.", "Catalog."))),
            ("Item::Item", "Article::Article", Some(("Item::", "Article::"))),
            ("s::Item::~Item", "s::Article::~Article", Some(("s::Item::", "s::Article::"))),
            ("<app::T as Add>::add", "<shop::T as Add>::add", Some(("app::", "shop::"))),
            ("List<int>::add", "Row<int>::add", Some(("List", "Row"))),
            ("shop::cart::tax", "shop::cart::levy", None),
            ("shop::cart::tax", "shop::basket::levy", None),
            ("tax", "levy", None),
            ("f::{closure#0}", "f::{closure#1}", None),
            ("Index.add (/x/a.py)", "Catalog.add (/x/b.py)", None),
            ("add (/x/a.py)", "add (/x/b.py)", None),
        ] {
            let found = Substitution::between(before, after).map(|found| found.paths);
            let expected = expected.map(|(before, after)| [before.to_owned(), after.to_owned()]);
            assert_eq!(found, expected, "{before} {after}");
        }
        let found = Substitution::between_modules("shop::cart::tax", "shop::basket::levy");
        assert_eq!(found.unwrap().paths, ["shop::cart::", "shop::basket::"]);
        assert_eq!(Substitution::between_modules("shop::cart::tax", "shop::cart::levy"), None);
        let found = Substitution::between_modules("Item::Item_[i]", "Article::Article_[i]");
        assert_eq!(found.unwrap().paths, ["Item::", "Article::"]);
    }

    #[test]
    fn replaces_whole_segments_of_the_whole_name() {
        let found = Substitution::between("app::shelf::Index::add", "app::shelf::Catalog::add").unwrap().substitution;
        for (name, expected) in [
            ("core::ptr::drop_in_place<app::shelf::Index>", Some("core::ptr::drop_in_place<app::shelf::Catalog>")),
            ("Index::Index_[i]", Some("Catalog::Catalog_[i]")),
            ("pair<Index, Index>::~pair", Some("pair<Catalog, Catalog>::~pair")),
            ("app::shelf::IndexMap::add", None),
            ("app::MyIndex::add", None),
            ("find (/src/Index/a.py)", None),
        ] {
            assert_eq!(found.apply(name).as_deref(), expected, "{name}");
        }
    }
}
