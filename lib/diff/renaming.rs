//! Renames frames after the counterparts of two sides.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::counterpart::{Counterpart, NamePart};
use super::path_name::is_end;

/// Counterparts by the part of names that they replace: their number does not slow down renaming.
pub(super) struct Renaming<'c> {
    counterparts: &'c [Counterpart],
    /// The indexes of the counterparts of a part.
    by_part: FxHashMap<&'c [u8], Vec<usize>>,
}

impl<'c> Renaming<'c> {
    pub fn new(counterparts: &'c [Counterpart]) -> Self {
        let mut by_part = FxHashMap::<_, Vec<usize>>::default();
        // Those of modules, threads and processes are renamed one by one.
        let is_part = |one: &Counterpart| matches!(one.part, NamePart::Whole | NamePart::Folder | NamePart::File);
        let parts = counterparts.iter().enumerate().filter(|(_, one)| is_part(one));
        parts.for_each(|(index, one)| by_part.entry(one.before.as_bytes()).or_default().push(index));
        Self { counterparts, by_part }
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
        let parts = [name].into_iter().chain(words).chain(folders);
        let found = parts.filter_map(|part| self.by_part.get(part)).flatten();
        found.copied().filter(|index| *index >= next).min()
    }
}
