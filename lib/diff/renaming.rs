//! Renames frames after the counterparts of two sides.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::counterpart::{Counterpart, NamePart};
use super::line_name::LineName;
use super::path_name::is_end;

/// Counterparts by the part of names that they replace: their number does not slow down renaming.
pub(super) struct Renaming<'c> {
    counterparts: &'c [Counterpart],
    /// The indexes of the counterparts of a part.
    by_part: FxHashMap<&'c [u8], Vec<usize>>,
}

impl<'c> Renaming<'c> {
    /// Creates the renaming of the side before.
    pub fn new(counterparts: &'c [Counterpart]) -> Self {
        // Those of modules, threads and processes are renamed one by one.
        let is_part = |part| matches!(part, NamePart::Whole | NamePart::Folder | NamePart::File | NamePart::Lines);
        Self::of_parts(counterparts, is_part)
    }

    /// Creates the renaming of the side after, in which nothing but lines is left out.
    pub fn of_lines(counterparts: &'c [Counterpart]) -> Self {
        Self::of_parts(counterparts, |part| part == NamePart::Lines)
    }

    fn of_parts(counterparts: &'c [Counterpart], is_part: impl Fn(NamePart) -> bool) -> Self {
        let mut by_part = FxHashMap::<_, Vec<usize>>::default();
        let parts = counterparts.iter().enumerate().filter(|(_, one)| is_part(one.part));
        parts.for_each(|(index, one)| by_part.entry(one.replaced().as_bytes()).or_default().push(index));
        Self { counterparts, by_part }
    }

    /// True if it gives no frame another name.
    pub fn is_empty(&self) -> bool {
        self.by_part.is_empty()
    }

    /// Returns the name after of a frame before: that of all counterparts one after another.
    pub fn rename<'a>(&self, name: &'a [u8]) -> Cow<'a, [u8]> {
        let (mut renamed, mut next) = (Cow::Borrowed(name), 0);
        while let Some(index) = self.find(&renamed, next) {
            renamed = self.counterparts[index].rename(&renamed).map_or(renamed, Cow::Owned);
            next = index + 1;
        }
        renamed
    }

    /// Returns the first counterpart from `next` on that a name contains.
    fn find(&self, name: &[u8], next: usize) -> Option<usize> {
        let words = name.split(|byte| is_end(char::from(*byte)));
        let folders = words.clone().flat_map(|path| memchr::memchr_iter(b'/', path).map(|end| &path[..end]));
        let file = LineName::parse(name).map(|found| found.file);
        let parts = [name].into_iter().chain(words).chain(folders).chain(file);
        let found = parts.filter_map(|part| self.by_part.get(part)).flatten();
        found.copied().filter(|index| *index >= next).min()
    }
}

#[cfg(test)]
mod tests {
    use super::{Counterpart, NamePart, Renaming};

    #[test]
    fn renames_whole_names_and_folders_only() {
        let counterpart =
            |before: &str, after: &str, part| Counterpart { before: before.into(), after: after.into(), part };
        let counterparts = vec![
            counterpart("/w/old", "/w/new", NamePart::Folder),
            counterpart("old", "n$w", NamePart::Folder),
            counterpart("app.v1", "a$=b", NamePart::Whole),
            counterpart("x/app.py", "y/app.py", NamePart::Whole),
            counterpart("/srv/v1.py", "/srv/v2.py", NamePart::File),
        ];
        let renaming = Renaming::new(&counterparts);
        let renamed = |name: &str| String::from_utf8(renaming.rename(name.as_bytes()).into_owned()).unwrap();
        assert_eq!(["app.v1", "appxv1", "app.v1x"].map(renamed), ["a$=b", "appxv1", "app.v1x"]);
        let names = ["f (/srv/v1.py:3)", "/srv/v1.py", "f (/srv/v1.pyc)", "f (/old/srv/v1.py)"];
        assert_eq!(names.map(renamed), ["f (/srv/v2.py:3)", "/srv/v2.py", "f (/srv/v1.pyc)", "f (/old/srv/v1.py)"]);
        let names = ["f (/w/old/x.py)", "/w/old/x.js", "f (/w/older/x.py)", "f (/z/w/old/x.py)"];
        assert_eq!(names.map(renamed), ["f (/w/new/x.py)", "/w/new/x.js", "f (/w/older/x.py)", "f (/z/w/old/x.py)"]);
        let names = ["old/app.py", "f:old/app.py:12", "f (gold/app.py)", "old", "x/app.py", "f (x/app.py)"];
        assert_eq!(
            names.map(renamed),
            ["n$w/app.py", "f:n$w/app.py:12", "f (gold/app.py)", "old", "y/app.py", "f (x/app.py)"]
        );
    }

    #[test]
    fn leaves_out_lines_of_both_sides() {
        let [before, after] = ["<frozen runpy>:LINE", "<frozen runpy>"].map(str::to_owned);
        let lines = Counterpart { before, after, part: NamePart::Lines };
        let file = Counterpart { before: "a.py".into(), after: "b.py".into(), part: NamePart::File };
        let of_file = Counterpart { before: "b.py:LINE".into(), after: "b.py".into(), part: NamePart::Lines };
        let counterparts = [file, of_file, lines];
        let renamed = |renaming: Renaming<'_>| {
            let names =
                ["f (a.py:3)", "f (b.py:3)", "f:b.py:3", "f (x/b.py:3)", "f (<frozen runpy>:3)", "b.py", "f:b.py"];
            names.map(|name| String::from_utf8(renaming.rename(name.as_bytes()).into_owned()).unwrap())
        };
        let plain = ["f (b.py)", "f (b.py)", "f:b.py", "f (x/b.py:3)", "f (<frozen runpy>)", "b.py", "f:b.py"];
        assert_eq!(renamed(Renaming::new(&counterparts)), plain);
        assert_eq!(renamed(Renaming::of_lines(&counterparts)), [&["f (a.py:3)"], &plain[1..]].concat()[..]);
    }
}
