//! Folders and files of sources that have other names after: the two copies of a program have functions of the same names.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::counterpart::{Counterpart, NamePart};
use super::path_name::{PathName, common_end};

/// Fewest names of functions that are the same in both folders, and their smallest share of the weight of each.
const MIN_NAMES: usize = 2;
const MIN_SHARE: f64 = 0.5;

/// Fewest names of functions that are the same in both files. Many scripts have `<module>` and `main`.
const MIN_NAMES_OF_FILES: usize = 3;

/// A function that is in more files says little about any.
const MAX_FILES: usize = 16;

/// The weight of each function of a side, by name.
#[derive(Default)]
pub(super) struct Functions(BTreeMap<String, f64>);

impl Functions {
    pub(super) fn add(&mut self, name: String, weight: f64) {
        *self.0.entry(name).or_default() += weight;
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the functions with other names.
    pub(super) fn rename(&self, rename: impl Fn(&str) -> String) -> Self {
        let mut renamed = Self::default();
        self.0.iter().for_each(|(name, weight)| renamed.add(rename(name), *weight));
        renamed
    }

    /// Returns the names that the other side does not have, with their weights.
    pub(super) fn only_here<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a str, f64)> {
        let only = self.0.iter().filter(|(name, _)| !other.0.contains_key(*name));
        only.map(|(name, weight)| (name.as_str(), *weight))
    }

    /// Returns those of them that have the path of a source file.
    fn paths_only_here<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (PathName<'a>, f64)> {
        self.only_here(other).filter_map(|(name, weight)| Some((PathName::parse(name)?, weight)))
    }

    /// Returns these by a part of their names.
    fn paths_by<'a, K: Ord>(
        &'a self,
        other: &'a Self,
        key: impl Fn(&PathName<'a>) -> K,
    ) -> BTreeMap<K, Vec<(PathName<'a>, f64)>> {
        let mut by_key = BTreeMap::<_, Vec<_>>::new();
        for (name, weight) in self.paths_only_here(other) {
            by_key.entry(key(&name)).or_default().push((name, weight));
        }
        by_key
    }

    /// Returns the weight of the functions of a folder or file, each by itself.
    fn weight_of(&self, is_in: impl Fn(&PathName<'_>) -> bool) -> f64 {
        let paths = self.0.iter().filter_map(|(name, weight)| Some((PathName::parse(name)?, weight)));
        paths.filter(|(name, _)| is_in(name)).map(|(_, weight)| weight).sum()
    }

    fn weight_in(&self, folder: &str) -> f64 {
        self.weight_of(|name| name.is_in(folder))
    }

    fn weight_of_file(&self, file: &str) -> f64 {
        self.weight_of(|name| name.path == file)
    }
}

/// Functions of a folder or file that both sides have.
#[derive(Default)]
struct Match {
    names: BTreeSet<String>,
    /// Their weight before and after.
    weights: (f64, f64),
}

/// Returns the folders whose files have functions of the same names on both sides, those of most functions first.
pub(super) fn find_folders(before: &Functions, after: &Functions) -> Vec<Counterpart> {
    let new = after.paths_by(before, PathName::key);
    let mut matches = BTreeMap::<Counterpart, Match>::new();
    for (name, weight) in before.only_here(after) {
        let Some(old) = PathName::parse(name) else { continue };
        let candidates = new.get(&old.key()).into_iter().flatten();
        let Some((best, weight_after)) = candidates.max_by_key(|(new, _)| common_end(old.path, new.path)) else {
            continue;
        };
        let common = common_end(old.path, best.path);
        let [from, to] = [old.path, best.path].map(|path| path[..path.len() - common].to_owned());
        if !from.is_empty() && !to.is_empty() {
            let found = matches.entry(Counterpart { before: from, after: to, part: NamePart::Folder }).or_default();
            found.names.insert(name.to_owned());
            found.weights.0 += weight;
            found.weights.1 += weight_after;
        }
    }
    let mut folders: Vec<(Counterpart, Match)> = matches.into_iter().collect();
    folders.sort_by_key(|(_, found)| Reverse(found.names.len()));
    let mut seen = BTreeSet::new();
    folders.retain(|(folder, found)| {
        let (old, new) = (before.weight_in(&folder.before), after.weight_in(&folder.after));
        // A folder that both sides use is none of a copy.
        seen.insert(folder.before.clone())
            && after.weight_in(&folder.before) == 0.0
            && found.names.len() >= MIN_NAMES
            && found.weights.0 >= MIN_SHARE * old
            && found.weights.1 >= MIN_SHARE * new
    });
    folders.into_iter().map(|(folder, _)| folder).collect()
}

/// Returns the files that only one side has, with functions of the same names on both, those of most functions first.
pub(super) fn find_files(before: &Functions, after: &Functions) -> Vec<Counterpart> {
    let new = after.paths_by(before, PathName::function);
    let mut matches = BTreeMap::<Counterpart, Match>::new();
    for (old, weight) in before.paths_only_here(after) {
        let candidates = new.get(&old.function()).filter(|files| files.len() <= MAX_FILES);
        for (candidate, weight_after) in candidates.into_iter().flatten() {
            let [before, after] = [old.path, candidate.path].map(str::to_owned);
            let found = matches.entry(Counterpart { before, after, part: NamePart::File }).or_default();
            found.names.insert(format!("{:?}", old.function()));
            found.weights.0 += weight;
            found.weights.1 += weight_after;
        }
    }
    let mut files: Vec<(Counterpart, Match)> = matches.into_iter().collect();
    files.sort_by_key(|(_, found)| Reverse(found.names.len()));
    let mut seen = [BTreeSet::new(), BTreeSet::new()];
    files.retain(|(file, found)| {
        let is_pair = found.names.len() >= MIN_NAMES_OF_FILES
            && after.weight_of_file(&file.before) == 0.0
            && before.weight_of_file(&file.after) == 0.0
            && found.weights.0 >= MIN_SHARE * before.weight_of_file(&file.before)
            && found.weights.1 >= MIN_SHARE * after.weight_of_file(&file.after);
        is_pair && seen[0].insert(file.before.clone()) && seen[1].insert(file.after.clone())
    });
    files.into_iter().map(|(file, _)| file).collect()
}
