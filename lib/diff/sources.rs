//! Folders and files of sources that have other names after: the two copies of a program have functions of the same names.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use rustc_hash::FxHashMap;

use super::counterpart::{Counterpart, NamePart};
use super::modules::COMMON_NAMES;
use super::path_name::{PathName, common_end, last_part};
use super::program::is_evidence;
use crate::own_code::is_known_package;
use crate::script_source::{SourceOrigin, origin_of_source};

/// Fewest names of functions that are the same in both folders or files, and their smallest share of the weight of each.
///
/// Names that start each program, such as `<module>` and `main`, do not count, and for files, neither do names that many files
/// have. In folders, whose files have equal names, too, one is enough if there is no other.
const MIN_NAMES: usize = 2;
const MIN_SHARE: f64 = 0.5;

/// The smallest share of a file's weight on each side of the functions whose names tell that the files are one.
const MIN_EVIDENCE: f64 = 0.1;

/// Names of functions by which plugins, readers and the like are called, besides those that types of all programs have.
const INTERFACE_NAMES: &str = "\
    load save read write open close parse format encode decode serialize deserialize dump loads dumps start stop setup teardown \
    step reset update apply call execute process handle create delete add remove build register configure index show list find search \
    insert lookup push pop put send receive connect disconnect query forward backward fit predict transform validate clean to_dict \
    from_dict to_json from_json get_queryset get_context_data setUp tearDown onMessage onOpen onClose onError enter exit main \
    initialize to_s anonymous dictcomp setcomp locals compress decompress digest hexdigest sort swap resolve get_value set_value \
    get_response application handler";

/// The starts of names by which tests and visitors are called.
const INTERFACE_STARTS: [&str; 5] = ["__", "test_", "visit_", "do_", "on_"];

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

    /// Returns the source files of the functions.
    fn files(&self) -> Files<'_> {
        let mut files = Files::default();
        for (name, weight) in self.0.iter().filter_map(|(name, weight)| Some((PathName::parse(name)?, *weight))) {
            *files.weights.entry(name.path).or_default() += if name.is_evidence() { weight } else { 0.0 };
        }
        files
    }
}

/// Decides which source files may be one in two copies of a program: no package is a copy of another one, or of the program.
struct Copies {
    /// True if scripts of the program have whole paths. Others are those of packages then.
    have_paths: bool,
}

impl Copies {
    fn new(sides: [&Functions; 2]) -> Self {
        let paths = sides.iter().flat_map(|side| side.0.keys()).filter_map(|name| PathName::parse(name));
        Self { have_paths: paths.map(|name| name.path).any(|path| path.starts_with('/') && is_own(path)) }
    }

    fn may_be_one(&self, old: &str, new: &str) -> bool {
        match [old, new].map(origin_of_source) {
            [SourceOrigin::Package(package), SourceOrigin::Package(other)] => {
                without_version(package) == without_version(other)
                    || [(old, package), (new, other)].iter().all(|(path, package)| self.may_be_own(path, package))
            }
            [SourceOrigin::Package(package), SourceOrigin::Own(_)] => self.is_of_package(old, package, new),
            [SourceOrigin::Own(_), SourceOrigin::Package(package)] => self.is_of_package(new, package, old),
            [SourceOrigin::StandardLibrary, SourceOrigin::StandardLibrary] => {
                path_in_library(old) == path_in_library(new)
            }
            [SourceOrigin::Own(_), SourceOrigin::Own(_)] => true,
            _ => false,
        }
    }

    /// True for a path that may begin with a folder of the program, not with that of a package.
    fn may_be_own(&self, path: &str, package: &str) -> bool {
        !self.have_paths && path.starts_with(package) && !is_known_package(package)
    }

    /// True if another file may be one of the package in the folder of its sources.
    fn is_of_package(&self, path: &str, package: &str, other: &str) -> bool {
        self.may_be_own(path, package) || other.contains(&format!("/{package}/"))
    }
}

/// True unless one of two files or folders has a version, and the other one another name: `etc-1.3.0.gemspec`, `log4j-1.2.jar`.
fn may_be_versions(old: &str, new: &str) -> bool {
    let [old_name, new_name] = [old, new].map(without_version);
    old_name == new_name || old_name == old && new_name == new
}

/// Returns the path of a file of a standard library without the folder of the library, which has its version.
fn path_in_library(path: &str) -> &str {
    let folders = ["/lib/python", "/lib/ruby/"];
    let start = folders.into_iter().find_map(|folder| Some(path.rfind(folder)? + folder.len()));
    start.and_then(|start| path[start..].split_once('/')).map_or(path, |(_, rest)| rest)
}

/// Returns the name of a package without its version, which the folders of Ruby's gems and of Python's eggs have: `rack-3.0.8`.
fn without_version(package: &str) -> &str {
    let has_version = |start: &usize| package[start + 1..].starts_with(|first: char| first.is_ascii_digit());
    package.match_indices('-').map(|(start, _)| start).find(has_version).map_or(package, |start| &package[..start])
}

fn is_own(path: &str) -> bool {
    matches!(origin_of_source(path), SourceOrigin::Own(_))
}

/// Returns the last word of a function's name: `get` of `Handler.get`, `index` of `block in index -`, `lambda` of `<lambda>`.
fn plain_name(function: &str) -> &str {
    let is_other = |letter: char| !letter.is_alphanumeric() && letter != '_';
    let name = function.trim_end_matches(is_other);
    name.rsplit(is_other).next().unwrap_or_default()
}

/// The source files of a side.
#[derive(Default)]
struct Files<'a> {
    /// By path, the weight of the functions whose names are evidence, each by itself.
    weights: BTreeMap<&'a str, f64>,
    /// The same by folder, of those that were asked for.
    folders: BTreeMap<String, f64>,
}

impl<'a> Files<'a> {
    /// Returns the weights of the files in a folder, and in its folders.
    fn in_folder(&self, folder: &str) -> impl Iterator<Item = f64> {
        let folder = format!("{folder}/");
        let files = self.weights.range::<str, _>((Bound::Included(folder.as_str()), Bound::Unbounded));
        files.take_while(move |(path, _)| path.starts_with(&folder)).map(|(_, weight)| *weight)
    }

    fn folder_weight(&mut self, folder: &str) -> f64 {
        if let Some(weight) = self.folders.get(folder) {
            return *weight;
        }
        let weight = self.in_folder(folder).sum();
        self.folders.insert(folder.to_owned(), weight);
        weight
    }

    fn file_weight(&self, file: &str) -> f64 {
        self.weights.get(file).copied().unwrap_or_default()
    }

    fn has_folder(&self, folder: &str) -> bool {
        self.in_folder(folder).next().is_some()
    }

    fn has_file(&self, file: &str) -> bool {
        self.weights.contains_key(file)
    }
}

/// The functions of one name in files of one name.
#[derive(Default)]
struct Namesakes<'a> {
    last: Option<(PathName<'a>, f64)>,
    /// The last one by each end of its path that starts with a `/`.
    by_end: FxHashMap<&'a str, (PathName<'a>, f64)>,
}

impl<'a> Namesakes<'a> {
    fn new(functions: Vec<(PathName<'a>, f64)>) -> Self {
        let mut namesakes = Self::default();
        for function in functions {
            let path = function.0.path;
            namesakes.by_end.extend(path.match_indices('/').map(|(start, _)| (&path[start..], function)));
            namesakes.last = Some(function);
        }
        namesakes
    }

    /// Returns the function whose path has the longest end in common with a path, and its weight.
    fn closest(&self, path: &str) -> Option<&(PathName<'a>, f64)> {
        let mut ends = path.match_indices('/').map(|(start, _)| &path[start..]);
        ends.find_map(|end| self.by_end.get(end)).or(self.last.as_ref())
    }
}

/// The files of both sides by the names of their functions.
struct FileNamesakes<'a>(BTreeMap<(&'a str, String), BTreeSet<&'a str>>);

impl<'a> FileNamesakes<'a> {
    fn new(sides: [&'a Functions; 2]) -> Self {
        let mut files = BTreeMap::<_, BTreeSet<_>>::new();
        for name in sides.into_iter().flat_map(|side| side.0.keys()).filter_map(|name| PathName::parse(name)) {
            files.entry(name.function()).or_default().insert(name.path);
        }
        Self(files)
    }

    /// True if the equal name of a function in two files tells that they are one: if no other file has such a function, and
    /// if it is no name of an interface. For the only two versions of a file, any name does.
    fn tell(&self, old: &PathName<'_>, new: &PathName<'_>) -> bool {
        let others = self.0.get(&old.function()).into_iter().flatten();
        let others = others.copied().filter(|path| ![old.path, new.path].contains(path));
        let plain = without_version(old.file());
        if plain != old.file() && plain == without_version(new.file()) {
            return !others.map(last_part).any(|other| without_version(other) == plain);
        }
        let is_interface = |name: &str| {
            // What a minifier leaves has no name.
            name.len() < 3
                || INTERFACE_STARTS.iter().any(|start| name.starts_with(start))
                || COMMON_NAMES.contains(&name)
                || INTERFACE_NAMES.split_whitespace().any(|one| one == name)
        };
        !is_interface(plain_name(old.function_name().unwrap_or_default())) && others.count() == 0
    }
}

/// Functions of a folder or file that both sides have, whose names are evidence.
struct Match {
    names: BTreeSet<String>,
    /// True if all names have a function in front of the path.
    are_functions: bool,
    /// Their weight before and after, and that of the functions whose names are evidence.
    weights: (f64, f64),
    evidence: (f64, f64),
}

impl Default for Match {
    fn default() -> Self {
        Self { names: BTreeSet::new(), are_functions: true, weights: (0.0, 0.0), evidence: (0.0, 0.0) }
    }
}

impl Match {
    /// Adds a function. `counts` is true if its name tells that the folder or file is the same.
    fn add(&mut self, name: &PathName<'_>, counts: bool, weight: f64, weight_after: f64) {
        if counts {
            self.evidence.0 += weight;
            self.evidence.1 += weight_after;
            self.names.insert(format!("{:?}", (name.path, name.function())));
        }
        self.are_functions &= name.function_name().is_some();
        self.weights.0 += weight;
        self.weights.1 += weight_after;
    }

    /// True if the names tell that two files are one, which have these weights.
    fn is_file(&self, before: f64, after: f64) -> bool {
        self.names.len() >= MIN_NAMES
            && self.has_share(MIN_SHARE, before, after)
            && self.evidence.0 >= MIN_EVIDENCE * before
            && self.evidence.1 >= MIN_EVIDENCE * after
    }

    /// True if the functions have at least this share of the weight of the folder or file on both sides.
    fn has_share(&self, share: f64, before: f64, after: f64) -> bool {
        self.weights.0 >= share * before && self.weights.1 >= share * after
    }
}

/// Returns the folders whose files have functions of the same names on both sides, those of most functions first.
pub(super) fn find_folders(before: &Functions, after: &Functions) -> Vec<Counterpart> {
    let new = after.paths_by(before, PathName::key).into_iter();
    let new: BTreeMap<_, Namesakes<'_>> = new.map(|(key, functions)| (key, Namesakes::new(functions))).collect();
    let copies = Copies::new([before, after]);
    let mut matches = BTreeMap::<Counterpart, Match>::new();
    for (old, weight) in before.paths_only_here(after).filter(|(old, _)| old.is_evidence()) {
        let closest = new.get(&old.key()).and_then(|new| new.closest(old.path));
        let Some((best, weight_after)) = closest.filter(|(best, _)| copies.may_be_one(old.path, best.path)) else {
            continue;
        };
        if let Some(folder) = folders_of(&old, best) {
            matches.entry(folder).or_default().add(&old, true, weight, *weight_after);
        }
    }
    let mut folders: Vec<(Counterpart, Match)> = matches.into_iter().collect();
    folders.sort_by_key(|(_, found)| Reverse(found.names.len()));
    let mut seen = BTreeSet::new();
    let (mut before, mut after) = (before.files(), after.files());
    folders.retain(|(folder, found)| {
        let (old, new) = (before.folder_weight(&folder.before), after.folder_weight(&folder.after));
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
    if old.folder().is_empty() || new.folder().is_empty() {
        return None;
    }
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
    if new.is_empty() {
        return Vec::new();
    }
    let copies = Copies::new([before, after]);
    let namesakes = FileNamesakes::new([before, after]);
    let mut matches = BTreeMap::<(Counterpart, Option<Counterpart>), Match>::new();
    let old = before.paths_only_here(after);
    for (old, weight) in old.filter(|(old, _)| old.function_name().is_some_and(is_evidence)) {
        let candidates = new.get(&old.function()).filter(|files| files.len() <= MAX_FILES).into_iter().flatten();
        let may_be_one =
            |new: &PathName<'_>| copies.may_be_one(old.path, new.path) && may_be_versions(old.file(), new.file());
        for (candidate, weight_after) in candidates.filter(|(new, _)| may_be_one(new)) {
            let [before, after] = [old.path, candidate.path].map(str::to_owned);
            let file = Counterpart { before, after, part: NamePart::File };
            let found = matches.entry((file, folders_of(&old, candidate))).or_default();
            found.add(&old, namesakes.tell(&old, candidate), weight, *weight_after);
        }
    }
    let mut files: Vec<_> = matches.into_iter().collect();
    files.sort_by_key(|(_, found)| Reverse(found.names.len()));
    let mut seen = [BTreeSet::new(), BTreeSet::new()];
    let (before, after) = (before.files(), after.files());
    files.retain(|((file, _), found)| {
        let (old, new) = (before.file_weight(&file.before), after.file_weight(&file.after));
        let is_pair = found.is_file(old, new) && !after.has_file(&file.before) && !before.has_file(&file.after);
        is_pair && seen[0].insert(file.before.clone()) && seen[1].insert(file.after.clone())
    });
    let (files, folders): (Vec<_>, Vec<_>) = files.into_iter().map(|(pair, _)| pair).unzip();
    let mut seen = BTreeSet::new();
    let folders = folders.into_iter().flatten().filter(|folder| {
        seen.insert(folder.before.clone()) && !after.has_folder(&folder.before) && !before.has_folder(&folder.after)
    });
    files.into_iter().chain(folders).collect()
}
