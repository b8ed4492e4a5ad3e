//! Folders and files of sources that have other names after: the two copies of a program have functions of the same names.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::counterpart::{Counterpart, NamePart};
use super::path_name::{PathName, common_end};
use super::program::is_evidence;

/// Fewest names of functions that are the same in both folders or files, and their smallest share of the weight of each. Names that
/// start each program, such as `<module>` and `main`, do not count. In folders, whose files have equal names, too, one is enough if
/// there is no other.
const MIN_NAMES: usize = 2;
const MIN_SHARE: f64 = 0.5;

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

    /// Returns the functions of a folder or file, with their weights.
    fn functions_in<'a>(&'a self, is_in: impl Fn(&PathName<'a>) -> bool) -> impl Iterator<Item = (PathName<'a>, f64)> {
        let paths = self.0.iter().filter_map(|(name, weight)| Some((PathName::parse(name)?, *weight)));
        paths.filter(move |(name, _)| is_in(name))
    }

    /// Returns the weight of those whose names are evidence, each by itself.
    fn weight_of<'a>(&'a self, is_in: impl Fn(&PathName<'a>) -> bool) -> f64 {
        self.functions_in(is_in).filter(|(name, _)| name.is_evidence()).map(|(_, weight)| weight).sum()
    }

    fn has_folder(&self, folder: &str) -> bool {
        self.functions_in(|name| name.is_in(folder)).next().is_some()
    }

    fn has_file(&self, file: &str) -> bool {
        self.functions_in(|name| name.path == file).next().is_some()
    }
}

/// Functions of a folder or file that both sides have, whose names are evidence.
struct Match {
    names: BTreeSet<String>,
    /// True if all names have a function in front of the path.
    are_functions: bool,
    /// Their weight before and after.
    weights: (f64, f64),
}

impl Default for Match {
    fn default() -> Self {
        Self { names: BTreeSet::new(), are_functions: true, weights: (0.0, 0.0) }
    }
}

impl Match {
    fn add(&mut self, name: &PathName<'_>, weight: f64, weight_after: f64) {
        self.names.insert(format!("{:?}", (name.path, name.function())));
        self.are_functions &= name.function_name().is_some();
        self.weights.0 += weight;
        self.weights.1 += weight_after;
    }

    /// True if the functions have at least this share of the weight of the folder or file on both sides.
    fn has_share(&self, share: f64, before: f64, after: f64) -> bool {
        self.weights.0 >= share * before && self.weights.1 >= share * after
    }
}

/// Returns the folders whose files have functions of the same names on both sides, those of most functions first.
pub(super) fn find_folders(before: &Functions, after: &Functions) -> Vec<Counterpart> {
    let new = after.paths_by(before, PathName::key);
    let mut matches = BTreeMap::<Counterpart, Match>::new();
    for (old, weight) in before.paths_only_here(after).filter(|(old, _)| old.is_evidence()) {
        let candidates = new.get(&old.key()).into_iter().flatten();
        let Some((best, weight_after)) = candidates.max_by_key(|(new, _)| common_end(old.path, new.path)) else {
            continue;
        };
        if let Some(folder) = folders_of(&old, best) {
            matches.entry(folder).or_default().add(&old, weight, *weight_after);
        }
    }
    let mut folders: Vec<(Counterpart, Match)> = matches.into_iter().collect();
    folders.sort_by_key(|(_, found)| Reverse(found.names.len()));
    let mut seen = BTreeSet::new();
    folders.retain(|(folder, found)| {
        let old = before.weight_of(|name| name.is_in(&folder.before));
        let new = after.weight_of(|name| name.is_in(&folder.after));
        // A folder that both sides use is none of a copy.
        let is_pair = match found.names.len() >= MIN_NAMES {
            true => found.has_share(MIN_SHARE, old, new),
            false => found.are_functions && found.has_share(1.0, old, new),
        };
        seen.insert(folder.before.clone()) && is_pair && !after.has_folder(&folder.before)
    });
    folders.into_iter().map(|(folder, _)| folder).collect()
}

/// Returns the folders of two files, without the end of the paths that is equal; `None` if they are in the same folder.
fn folders_of(old: &PathName<'_>, new: &PathName<'_>) -> Option<Counterpart> {
    let [old, new] = match old.file() == new.file() {
        true => [old.path, new.path],
        false => [old.folder(), new.folder()],
    };
    let common = common_end(old, new);
    let [before, after] = [old, new].map(|path| path[..path.len() - common].to_owned());
    (before != after && !before.is_empty() && !after.is_empty()).then_some(Counterpart {
        before,
        after,
        part: NamePart::Folder,
    })
}

/// Returns the files that only one side has, with functions of the same names on both, those of most functions first. Behind them
/// are their folders: if a file was renamed in a copy, the other files are in the copy, too.
pub(super) fn find_files(before: &Functions, after: &Functions) -> Vec<Counterpart> {
    let new = after.paths_by(before, PathName::function);
    let mut matches = BTreeMap::<(Counterpart, Option<Counterpart>), Match>::new();
    let old = before.paths_only_here(after);
    for (old, weight) in old.filter(|(old, _)| old.function_name().is_some_and(is_evidence)) {
        let candidates = new.get(&old.function()).filter(|files| files.len() <= MAX_FILES);
        for (candidate, weight_after) in candidates.into_iter().flatten() {
            let [before, after] = [old.path, candidate.path].map(str::to_owned);
            let file = Counterpart { before, after, part: NamePart::File };
            let found = matches.entry((file, folders_of(&old, candidate))).or_default();
            found.add(&old, weight, *weight_after);
        }
    }
    let mut files: Vec<_> = matches.into_iter().collect();
    files.sort_by_key(|(_, found)| Reverse(found.names.len()));
    let mut seen = [BTreeSet::new(), BTreeSet::new()];
    files.retain(|((file, _), found)| {
        let [old, new] = [(before, &file.before), (after, &file.after)]
            .map(|(side, file)| side.weight_of(|name| name.path == *file));
        let is_pair = found.names.len() >= MIN_NAMES
            && found.has_share(MIN_SHARE, old, new)
            && !after.has_file(&file.before)
            && !before.has_file(&file.after);
        is_pair && seen[0].insert(file.before.clone()) && seen[1].insert(file.after.clone())
    });
    let (files, folders): (Vec<_>, Vec<_>) = files.into_iter().map(|(pair, _)| pair).unzip();
    let mut seen = BTreeSet::new();
    let folders = folders.into_iter().flatten().filter(|folder| {
        seen.insert(folder.before.clone()) && !after.has_folder(&folder.before) && !before.has_folder(&folder.after)
    });
    files.into_iter().chain(folders).collect()
}
