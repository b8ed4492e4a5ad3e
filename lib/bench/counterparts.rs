//! Names that differ because the sides are two copies of one program: its file name, and the folder of its sources.
//!
//! Both are found in the profiles, since a shell command does not tell which of its programs does the work.

use std::collections::{BTreeMap, BTreeSet};

use super::recorder::VALUE;
use crate::Error;
use crate::filter::Rename;
use crate::profile::Profile;
use crate::tally::{GroupBy, tally_profile};

/// A part of names before, and what is in its place after.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counterpart {
    /// The name of a program or folder before.
    pub before: String,
    /// Its name after.
    pub after: String,
}

/// Weights of first frames, and all names.
#[derive(Default)]
struct SideNames {
    programs: BTreeMap<String, f64>,
    all: BTreeSet<String>,
}

/// A name with the path of a source file, such as `parse (/src/app.py:12)`.
#[derive(Clone, Copy)]
struct PathName<'a> {
    path: &'a str,
    /// The text before and after the path.
    around: (&'a str, &'a str),
}

/// Returns the counterparts of the two sides. If the heaviest program (first frame of stacks) that is only before is not the
/// heaviest that is only after, they are taken for one program. A folder is one whose files have functions of equal names.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn find_counterparts(before: &[Profile], after: &[Profile]) -> Result<Vec<Counterpart>, Error> {
    let sides = [SideNames::new(before)?, SideNames::new(after)?];
    let mut found: Vec<Counterpart> = find_program(&sides).into_iter().collect();
    if let Some(program) = found.first() {
        found.extend(find_object(&sides, program));
    }
    found.extend(find_folders(&sides));
    Ok(found)
}

/// Returns the rules by which names before become those after.
pub(super) fn rename_rules(counterparts: &[Counterpart]) -> Vec<Rename> {
    let rules = counterparts.iter().map(|Counterpart { before, after }| {
        let (pattern, text) = (regex::escape(before).replace('=', "\\="), after.replace('$', "$$").replace('=', "\\="));
        match before.contains('/') {
            true => format!("(^|[ (:]){pattern}/=${{1}}{text}/"),
            false => format!("^{pattern}$={text}"),
        }
    });
    rules.filter_map(|rule| rule.parse().ok()).collect()
}

impl SideNames {
    fn new(profiles: &[Profile]) -> Result<Self, Error> {
        let mut side = Self::default();
        for profile in profiles {
            let name = |frame| String::from_utf8_lossy(profile.frames.name(frame)).into_owned();
            for row in tally_profile(profile, GroupBy::Comm)? {
                *side.programs.entry(name(row.frames[0])).or_default() += row.weights[0].after.as_f64();
            }
            side.all.extend(profile.frames.iter().map(|(_, name)| String::from_utf8_lossy(name).into_owned()));
        }
        Ok(side)
    }

    /// Returns the heaviest program that the other side does not have.
    fn heaviest_only_here(&self, other: &Self) -> Option<&str> {
        let only = self.programs.iter().filter(|(name, _)| !other.programs.contains_key(*name));
        let programs = only.filter(|(name, _)| !name.starts_with('[') && name.as_bytes() != VALUE);
        programs.max_by(|a, b| a.1.total_cmp(b.1)).map(|(name, _)| name.as_str())
    }

    /// Returns the names that the other side does not have.
    fn only_here<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        self.all.difference(&other.all).map(String::as_str)
    }
}

fn find_program([before, after]: &[SideNames; 2]) -> Option<Counterpart> {
    let (old, new) = (before.heaviest_only_here(after)?, after.heaviest_only_here(before)?);
    Some(Counterpart { before: old.to_owned(), after: new.to_owned() })
}

/// Returns the names of unknown functions of the program, which are its file in brackets; that of a thread may be cut.
fn find_object([before, after]: &[SideNames; 2], program: &Counterpart) -> Option<Counterpart> {
    let object = |names: &mut dyn Iterator<Item = &str>, program: &str| -> Option<String> {
        let mut found = names.filter(|name| name.strip_prefix('[').is_some_and(|name| name.starts_with(program)));
        let first = found.next().filter(|name| name.ends_with(']'));
        first.filter(|_| found.next().is_none()).map(str::to_owned)
    };
    let old = object(&mut before.only_here(after), &program.before)?;
    let new = object(&mut after.only_here(before), &program.after)?;
    Some(Counterpart { before: old, after: new })
}

/// Returns the folders whose files have functions of the same names on both sides, those of most functions first.
fn find_folders([before, after]: &[SideNames; 2]) -> Vec<Counterpart> {
    let mut new = BTreeMap::<_, Vec<PathName<'_>>>::new();
    for name in after.only_here(before).filter_map(PathName::parse) {
        new.entry(name.key()).or_default().push(name);
    }
    let mut votes = BTreeMap::<Counterpart, usize>::new();
    for old in before.only_here(after).filter_map(PathName::parse) {
        let candidates = new.get(&old.key()).into_iter().flatten();
        if let Some(best) = candidates.max_by_key(|new| common_end(old.path, new.path)) {
            let common = common_end(old.path, best.path);
            let [before, after] = [old.path, best.path].map(|path| path[..path.len() - common].to_owned());
            if !before.is_empty() && !after.is_empty() {
                *votes.entry(Counterpart { before, after }).or_default() += 1;
            }
        }
    }
    let mut folders: Vec<(Counterpart, usize)> = votes.into_iter().collect();
    folders.sort_by_key(|(_, votes)| std::cmp::Reverse(*votes));
    let mut seen = BTreeSet::new();
    folders.retain(|(folder, _)| {
        // A folder that both sides use is none of a copy.
        let is_shared = after.all.iter().filter_map(|name| PathName::parse(name));
        seen.insert(folder.before.clone()) && !is_shared.into_iter().any(|name| name.is_in(&folder.before))
    });
    folders.into_iter().map(|(folder, _)| folder).collect()
}

impl<'a> PathName<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        let is_end = |byte: char| matches!(byte, ' ' | '(' | ')' | ':');
        let slash = name.find('/')?;
        let start = name[..slash].rfind(is_end).map_or(0, |at| at + 1);
        let end = name[slash..].find(is_end).map_or(name.len(), |at| slash + at);
        let path = &name[start..end];
        (!path.ends_with('/')).then_some(Self { path, around: (&name[..start], &name[end..]) })
    }

    /// Returns what is the same in both copies: the name of the file, and the text around the path.
    fn key(&self) -> (&'a str, (&'a str, &'a str)) {
        (self.path.rsplit('/').next().unwrap_or_default(), self.around)
    }

    fn is_in(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }
}

/// Returns the length of the equal end of two paths, from a `/` on.
fn common_end(a: &str, b: &str) -> usize {
    let equal = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    let end = &a.as_bytes()[a.len() - equal..];
    end.iter().position(|byte| *byte == b'/').map_or(0, |at| equal - at)
}

#[cfg(test)]
mod tests {
    use super::{Counterpart, find_counterparts, rename_rules};
    use crate::filter::rename::apply_all;
    use crate::profile::{Profile, Weight, Weights};

    fn profile(stacks: &[&str]) -> Profile {
        let mut profile = Profile::new(false);
        for (weight, stack) in (1..).zip(stacks) {
            let frames: Vec<_> = stack.split(';').map(|name| profile.frames.intern(name.as_bytes())).collect();
            profile.add(&frames, Weights::plain(Weight::new(weight))).unwrap();
        }
        profile
    }

    /// Returns the counterparts of two profiles as pairs.
    fn find(before: &[&str], after: &[&str]) -> Vec<(String, String)> {
        let found = find_counterparts(&[profile(before)], &[profile(after)]).unwrap();
        found.into_iter().map(|Counterpart { before, after }| (before, after)).collect()
    }

    fn pair(before: &str, after: &str) -> (String, String) {
        (before.to_owned(), after.to_owned())
    }

    #[test]
    fn finds_the_program_behind_others() {
        let found = find(&["sh;main", "env;x", "app-v1;main;[app-v1]"], &["sh;main", "app-v2;main;[app-v2]"]);
        assert_eq!(found, [pair("app-v1", "app-v2"), pair("[app-v1]", "[app-v2]")]);
        assert_eq!(find(&["app;main"], &["app;main", "helper;work"]), []);
        assert_eq!(find(&["value"], &["other"]), []);
    }

    #[test]
    fn finds_the_folder_of_the_sources() {
        let found = find(
            &["python3;<module> (/w/old/app.py);run (/w/old/lib/x.py:3);sort (/usr/lib/python3/sort.py)"],
            &["python3;<module> (/w/new/app.py);run (/w/new/lib/x.py:3);sort (/usr/lib/python3/sort.py);a/b"],
        );
        assert_eq!(found, [pair("/w/old", "/w/new")]);
        // The file of a new function may be in a folder that both have.
        assert_eq!(find(&["p;f (/src/a.py);g (/src/b.py)"], &["p;f (/lib/a.py);g (/src/b.py)"]), []);
    }

    #[test]
    fn renames_whole_names_and_folders_only() {
        let rules = rename_rules(&[
            Counterpart { before: "app.v1".into(), after: "a$=b".into() },
            Counterpart { before: "/w/old".into(), after: "/w/new".into() },
        ]);
        let renamed = |name: &str| String::from_utf8(apply_all(&rules, name.as_bytes()).into_owned()).unwrap();
        assert_eq!(["app.v1", "appxv1", "app.v1x"].map(renamed), ["a$=b", "appxv1", "app.v1x"]);
        let names = ["f (/w/old/x.py)", "/w/old/x.js", "f (/w/older/x.py)", "f (/z/w/old/x.py)"];
        assert_eq!(names.map(renamed), ["f (/w/new/x.py)", "/w/new/x.js", "f (/w/older/x.py)", "f (/z/w/old/x.py)"]);
    }
}
