//! The names of a profile that tell from which copy of a program it comes.

use std::collections::BTreeSet;

use crate::markers::LOST;
use crate::profile::Profile;
use crate::script_source::SCRIPT_EXTENSIONS;

/// Names of the programs (first frames) and of the functions with a path.
#[derive(Debug, Default)]
pub struct DistinctNames {
    programs: BTreeSet<Vec<u8>>,
    paths: BTreeSet<Vec<u8>>,
}

impl DistinctNames {
    /// Adds the names of a sorted stack that shares this many bytes with the stack before.
    pub(super) fn add_sorted(&mut self, stack: &[u8], shared: usize) {
        let start = memchr::memrchr(b';', &stack[..shared]).map_or(0, |at| at + 1);
        let rest = &stack[start..];
        if start == 0 {
            let root = &stack[..memchr::memchr(b';', stack).unwrap_or(stack.len())];
            if !self.programs.contains(root) {
                self.programs.insert(root.to_vec());
            }
        }
        if may_have_path(rest) {
            rest.split(|byte| *byte == b';').for_each(|name| self.add_path(name));
        }
    }

    /// Adds the names of a profile.
    pub(super) fn add_profile(&mut self, profile: &Profile) {
        let _ = profile.for_each(|stack, _| {
            if let Some(root) = stack.first().map(|root| profile.frames.name(*root))
                && !self.programs.contains(root)
            {
                self.programs.insert(root.to_vec());
            }
            Ok::<(), ()>(())
        });
        profile.frames.iter().for_each(|(_, name)| self.add_path(name));
    }

    fn add_path(&mut self, name: &[u8]) {
        if may_have_path(name) && !self.paths.contains(name) {
            self.paths.insert(name.to_vec());
        }
    }

    /// True if there are lost samples.
    pub fn have_lost(&self) -> bool {
        self.programs.contains(LOST)
    }

    /// True if each profile has a program, or a path, that the other does not have: they may be two copies of one.
    pub fn differ(&self, other: &Self) -> bool {
        neither_is_subset(&self.programs, &other.programs) || neither_is_subset(&self.paths, &other.paths)
    }
}

/// True if a text has the path of a file, the line of one, or the file of a script: many names contain colons, few of them points.
fn may_have_path(text: &[u8]) -> bool {
    let is_line = |colon: usize| text.get(colon + 1).is_some_and(u8::is_ascii_digit);
    let is_script = |point: usize| {
        let end = &text[point..];
        SCRIPT_EXTENSIONS.iter().any(|extension| end.starts_with(extension.as_bytes()))
    };
    memchr::memchr(b'/', text).is_some()
        || memchr::memchr(b'.', text).is_some()
            && (memchr::memchr_iter(b'.', text).any(is_script) || memchr::memchr_iter(b':', text).any(is_line))
}

/// True if each of two sets has a name that the other does not have.
fn neither_is_subset(one: &BTreeSet<Vec<u8>>, other: &BTreeSet<Vec<u8>>) -> bool {
    !one.is_subset(other) && !other.is_subset(one)
}

#[cfg(test)]
mod tests {
    use super::DistinctNames;
    use crate::profile::{Profile, Weight, Weights};

    fn of_sorted(stacks: &[&str]) -> DistinctNames {
        let mut names = DistinctNames::default();
        let mut last = "";
        for stack in stacks {
            let shared = last.bytes().zip(stack.bytes()).take_while(|(a, b)| a == b).count();
            names.add_sorted(stack.as_bytes(), shared);
            last = stack;
        }
        names
    }

    #[test]
    fn collects_programs_and_paths() {
        let stacks = ["app;main;f (a/x.c)", "app;main;g", "app2;f (a/x.c);f (b/y.c)", "b", "b;c"];
        let names = of_sorted(&stacks);
        let mut profile = Profile::new(false);
        for stack in stacks {
            let frames: Vec<_> = stack.split(';').map(|name| profile.frames.intern(name.as_bytes())).collect();
            profile.add(&frames, Weights::plain(Weight::ONE)).unwrap();
        }
        let mut others = DistinctNames::default();
        others.add_profile(&profile);
        assert_eq!((&names.programs, &names.paths), (&others.programs, &others.paths));
        assert_eq!((names.programs.len(), names.paths.len()), (3, 2));
    }

    #[test]
    fn differ_if_each_has_names_of_its_own() {
        let differ = |one: &[&str], other: &[&str]| of_sorted(one).differ(&of_sorted(other));
        assert!(differ(&["a;x"], &["b;x"]) && differ(&["a;x (o/y)"], &["a;x (n/y)"]));
        assert!(differ(&["a;x (y.py:3)"], &["a;x (y.py:4)"]));
        assert!(!differ(&["a;x"], &["a;y", "b;x"]) && !differ(&["a;x (o/y)"], &["a;z"]));
    }
}
