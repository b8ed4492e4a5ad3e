//! Names of threads and processes with their numbers, `pool-7/11` and `pool-7`, which are others in each run.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::counterpart::{Counterpart, NamePart};
use crate::Error;
use crate::filter::rename;
use crate::profile::Profile;

/// Fewest digits of the number of a process. A thread may have a smaller one in its name, such as `worker-12`.
const MIN_DIGITS: usize = 3;

/// The root frames with a number that are compared without it.
pub(super) struct ThreadNames {
    /// Names without numbers by name.
    plain: BTreeMap<Vec<u8>, Vec<u8>>,
    counterparts: Vec<Counterpart>,
}

/// The kind of a number in a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Numbers {
    /// `-PID/TID`.
    Thread,
    /// `-PID`, or the number of a thread in its own name.
    Process,
}

impl ThreadNames {
    /// Finds the names of which each side has a thread, or a process, with a number that the other side does not have. Those with a
    /// number of both sides keep it: one may have restarted beside others that did not.
    pub fn find(before: &[Profile], after: &[Profile]) -> Self {
        let [before, after] = [before, after].map(find_roots);
        let mut sides = BTreeMap::<(&[u8], Numbers), [BTreeSet<&[u8]>; 2]>::new();
        for (side, roots) in [&before, &after].into_iter().enumerate() {
            for root in roots {
                if let Some((name, numbers)) = split_numbers(root) {
                    sides.entry((name, numbers)).or_default()[side].insert(root);
                }
            }
        }
        sides.retain(|_, [old, new]| !old.is_subset(new) && !new.is_subset(old));
        // One process of each side may be a program under another name (`program.rs`).
        let processes = sides.iter().filter(|((_, numbers), _)| *numbers == Numbers::Process);
        if processes.map(|(_, [old, new])| old.len() + new.len()).sum::<usize>() == 2 {
            sides.retain(|(_, numbers), _| *numbers == Numbers::Thread);
        }
        let mut found = Self { plain: BTreeMap::new(), counterparts: Vec::new() };
        for ((name, numbers), [old, new]) in sides {
            let plain = old.symmetric_difference(&new).map(|root| (root.to_vec(), name.to_vec()));
            found.plain.extend(plain);
            let after = String::from_utf8_lossy(name).into_owned();
            let (suffix, part) = match numbers {
                Numbers::Thread => ("-PID/TID", NamePart::Thread),
                Numbers::Process => ("-PID", NamePart::Process),
            };
            found.counterparts.push(Counterpart { before: format!("{after}{suffix}"), after, part });
        }
        found.counterparts.sort_by_key(|one| one.part);
        found
    }

    /// Returns the profiles with these names.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn rename(&self, profiles: Vec<Profile>) -> Result<Vec<Profile>, Error> {
        if self.plain.is_empty() {
            return Ok(profiles);
        }
        let rename = |profile: Profile| {
            rename::rename_frames(&profile, |name| match self.plain.get(name) {
                Some(plain) => Cow::Owned(plain.clone()),
                None => Cow::Borrowed(name),
            })
        };
        profiles.into_iter().map(rename).collect()
    }

    /// Returns the names as counterparts.
    pub fn into_counterparts(self) -> Vec<Counterpart> {
        self.counterparts
    }
}

/// Returns the root frames of all stacks.
fn find_roots(profiles: &[Profile]) -> BTreeSet<Vec<u8>> {
    let mut roots = BTreeSet::new();
    for profile in profiles {
        let mut is_root = vec![false; profile.frames.len()];
        let _ = profile.for_each(|stack, _| {
            stack.first().into_iter().for_each(|root| is_root[root.index()] = true);
            Ok::<(), ()>(())
        });
        let names = profile.frames.iter().filter(|(frame, _)| is_root[frame.index()]);
        roots.extend(names.map(|(_, name)| name.to_vec()));
    }
    roots
}

/// Returns the name of a thread or process without its numbers.
pub(super) fn without_numbers(root: &str) -> &str {
    split_numbers(root.as_bytes()).map_or(root, |(name, _)| &root[..name.len()])
}

/// True if one of some threads and processes has this name without its numbers.
pub(super) fn has_name<'r>(mut roots: impl Iterator<Item = &'r String>, name: &str) -> bool {
    roots.any(|root| without_numbers(root) == name)
}

/// Splits off the number of the process, or those of the process and the thread. One that is not known is `?`.
fn split_numbers(root: &[u8]) -> Option<(&[u8], Numbers)> {
    let end = memchr::memrchr(b'-', root).filter(|end| *end > 0)?;
    let (name, number) = (&root[..end], &root[end + 1..]);
    let is_number = |text: &[u8]| text == b"?" || !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    match memchr::memchr(b'/', number) {
        Some(slash) => {
            let is_thread = is_number(&number[..slash]) && is_number(&number[slash + 1..]);
            is_thread.then_some((name, Numbers::Thread))
        }
        None => (number.len() >= MIN_DIGITS && is_number(number)).then_some((name, Numbers::Process)),
    }
}

#[cfg(test)]
mod tests {
    use super::ThreadNames;
    use crate::profile::{Profile, Weight, Weights};

    fn profile(roots: &[&str]) -> Profile {
        let mut profile = Profile::new(false);
        for root in roots {
            let stack = [root, "work"].map(|name| profile.frames.intern(name.as_bytes()));
            profile.add(&stack, Weights::plain(Weight::new(1))).unwrap();
        }
        profile
    }

    /// Returns the roots of a side before that are compared under another name, with this name.
    fn find(before: &[&str], after: &[&str]) -> Vec<String> {
        let found = ThreadNames::find(&[profile(before)], &[profile(after)]);
        let pairs = found.plain.iter().map(|(name, plain)| [&name[..], plain].map(String::from_utf8_lossy).join(">"));
        pairs.filter(|pair| before.iter().any(|root| pair.starts_with(&format!("{root}>")))).collect()
    }

    #[test]
    fn numbers_of_other_runs_are_removed() {
        assert_eq!(find(&["w0-7/8", "w0-7/9"], &["w0-17/18"]), ["w0-7/8>w0", "w0-7/9>w0"]);
        assert_eq!(find(&["a-b-7/?"], &["a-b-8/9"]), ["a-b-7/?>a-b"]);
        // In containers.
        let (before, after) = (["a-1/1", "a-1/7", "a-1/8"], ["a-1/1", "a-1/17", "a-1/18"]);
        assert_eq!(find(&before, &after), ["a-1/7>a", "a-1/8>a"]);
        assert_eq!(find(&["app-7/8", "app-7/9"], &["app-7/8", "app-7/10"]), ["app-7/9>app"]);
        assert_eq!(find(&["cc1-701", "cc1-702"], &["cc1-901"]), ["cc1-701>cc1", "cc1-702>cc1"]);
        assert_eq!(find(&["cc1-701", "cc1-702"], &["cc1-702", "cc1-703"]), ["cc1-701>cc1"]);
        assert_eq!(find(&["cc1-701", "as-702"], &["cc1-901", "as-902"]), ["as-702>as", "cc1-701>cc1"]);
    }

    #[test]
    fn other_numbers_stay() {
        for (before, after) in [
            // The same threads, and some more.
            (&["app-7/8", "app-7/9"][..], &["app-7/8", "app-7/9", "app-7/10"][..]),
            (&["cc1-701", "cc1-702"], &["cc1-702"]),
            // Numbers of thread pools.
            (&["w0", "w1"], &["w2", "w3"]),
            (&["pool-1-thread-3", "pool-1-thread-4"], &["pool-1-thread-5"]),
            // One side has none, or each has one program.
            (&["app-7/8"], &["other-7/8"]),
            (&["app-701"], &["app-801"]),
            (&["-7/8"], &["-9/10"]),
            (&["app-x/8"], &["app-y/8"]),
        ] {
            assert_eq!(find(before, after), [""; 0], "{before:?} {after:?}");
        }
    }
}
