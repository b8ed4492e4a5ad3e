//! Names of threads and processes with their numbers, `pool-7/11` and `pool-7`, which are others in each run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::counterpart::{Counterpart, Joined, NamePart};
use crate::Error;
use crate::filter::rename;
use crate::profile::Profile;

/// Fewest digits of the number of a process. A thread may have a smaller one in its name, such as `worker-12`.
const MIN_DIGITS: usize = 3;

/// Largest part of the work that moved between threads of both sides and a typical other one if all threads of a name are compared as
/// one.
const MOST_MOVED: f64 = 0.15;

/// A new thread is not compared as one with others of its name if it has at least so many times the work of each.
const HOT: f64 = 2.0;

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
    /// number of both sides keep it, since one may have restarted beside others that did not, unless one side has more of them
    /// ([`Namesakes::joined`]).
    pub fn find(before: &[Profile], after: &[Profile]) -> Self {
        let roots = [before, after].map(find_roots);
        let mut sides = BTreeMap::<(&[u8], Numbers), Namesakes<'_>>::new();
        for (side, roots) in roots.iter().enumerate() {
            for (root, load) in roots {
                if let Some((name, numbers)) = split_numbers(root) {
                    sides.entry((name, numbers)).or_default().0[side].insert(root, *load);
                }
            }
        }
        sides.retain(|_, namesakes| (0..2).all(|side| namesakes.only_on(side).next().is_some()));
        // One process of each side may be a program under another name (`program.rs`).
        let processes = sides.iter().filter(|((_, numbers), _)| *numbers == Numbers::Process);
        if processes.map(|(_, namesakes)| namesakes.0.each_ref().map(BTreeMap::len)).eq([[1, 1]]) {
            sides.retain(|(_, numbers), _| *numbers == Numbers::Thread);
        }
        let mut found = Self { plain: BTreeMap::new(), counterparts: Vec::new() };
        for ((name, numbers), mut namesakes) in sides {
            let joined = namesakes.joined([before.len(), after.len()]);
            if joined == Joined::All {
                namesakes.remove_hot();
            }
            let plain = namesakes.roots(joined).map(|root| (root.to_vec(), name.to_vec()));
            found.plain.extend(plain);
            let after = String::from_utf8_lossy(name).into_owned();
            let (suffix, part) = match numbers {
                Numbers::Thread => ("-PID/TID", NamePart::Thread(joined)),
                Numbers::Process => ("-PID", NamePart::Process(joined)),
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

/// The threads or processes of one name before and after.
#[derive(Default)]
struct Namesakes<'r>([BTreeMap<&'r [u8], Load>; 2]);

/// The weight of a root in all runs that have it.
#[derive(Clone, Copy, Default)]
struct Load {
    weight: f64,
    runs: usize,
}

impl Load {
    fn join(self, other: Self) -> Self {
        Self { weight: self.weight + other.weight, runs: self.runs + other.runs }
    }

    /// Returns the weight of a thread in a run.
    fn mean(self) -> f64 {
        self.weight / self.runs.max(1) as f64
    }
}

impl<'r> Namesakes<'r> {
    /// Returns those of a side whose number the other side does not have.
    fn only_on(&self, side: usize) -> impl Iterator<Item = (&'r [u8], Load)> {
        let other = &self.0[1 - side];
        self.0[side].iter().filter(|(root, _)| !other.contains_key(*root)).map(|(root, load)| (*root, *load))
    }

    /// Removes one of one side only that has much more of the work than each other, and more than any of the other side: it is no other
    /// one with a new number, and would not be seen among all.
    fn remove_hot(&mut self) {
        let sums =
            self.0.each_ref().map(|side| side.values().map(|load| load.mean()).sum::<f64>().max(f64::MIN_POSITIVE));
        let parts: Vec<(usize, &[u8], f64)> = (0..2)
            .flat_map(|side| self.0[side].iter().map(move |(root, load)| (side, *root, load.mean() / sums[side])))
            .collect();
        let is_hot = |(side, root, part): &(usize, &[u8], f64)| {
            !self.0[1 - *side].contains_key(*root)
                && parts
                    .iter()
                    .filter(|(other_side, other, _)| other_side != side || other != root)
                    .all(|(other_side, _, other)| *part >= if other_side == side { HOT * other } else { *other })
        };
        if let Some((side, root, _)) = parts.iter().find(|part| is_hot(part)) {
            self.0[*side].remove(*root);
        }
    }

    /// Returns which of them are compared without numbers: those of one side only; or all, if a pool has grown or shrunk, so that those
    /// with a number of both sides share their work with more or fewer, but the work of each did not move relative to that of others.
    /// `runs` has the number of runs.
    fn joined(&self, runs: [usize; 2]) -> Joined {
        let [old, new] = [0, 1].map(|side| self.only_on(side).map(|(_, load)| load).fold(Load::default(), Load::join));
        let has_others = self.0[0].keys().any(|root| self.0[1].contains_key(root));
        if !has_others || old.runs * runs[1] == new.runs * runs[0] {
            return Joined::Restarted;
        }
        let of_each = self.moved_part([old, new].map(Load::mean), Load::mean);
        let of_all = self.moved_part([old, new].map(|load| load.weight), |load| load.weight);
        match of_each <= MOST_MOVED && of_each < of_all {
            true => Joined::All,
            false => Joined::Restarted,
        }
    }

    /// Returns the part of the work that moved between those of both sides, whose work `of_load` gives, and others of one side.
    fn moved_part(&self, only: [f64; 2], of_load: impl Fn(Load) -> f64) -> f64 {
        let [before, after] = &self.0;
        let both = before.iter().filter_map(|(root, load)| Some([of_load(*load), of_load(*after.get(root)?)]));
        let loads: Vec<[f64; 2]> = both.chain([only]).collect();
        let sums = [0, 1].map(|side| loads.iter().map(|load| load[side]).sum::<f64>().max(f64::MIN_POSITIVE));
        loads.iter().map(|load| (load[0] / sums[0] - load[1] / sums[1]).abs()).sum::<f64>() / 2.0
    }

    fn roots(&self, joined: Joined) -> impl Iterator<Item = &'r [u8]> {
        let all = self.0.iter().flat_map(BTreeMap::keys).copied().filter(move |_| joined == Joined::All);
        all.chain((0..2).flat_map(|side| self.only_on(side).map(|(root, _)| root)))
    }
}

/// Returns the root frames of all stacks.
fn find_roots(profiles: &[Profile]) -> BTreeMap<Vec<u8>, Load> {
    let mut roots = BTreeMap::<Vec<u8>, Load>::new();
    for profile in profiles {
        let mut weights = vec![None; profile.frames.len()];
        let _ = profile.for_each(|stack, weight| {
            if let Some(root) = stack.first() {
                *weights[root.index()].get_or_insert(0.0) += weight.after.as_f64();
            }
            Ok::<(), ()>(())
        });
        for (frame, name) in profile.frames.iter() {
            let Some(weight) = weights[frame.index()] else { continue };
            let load = roots.entry(name.to_vec()).or_default();
            *load = load.join(Load { weight, runs: 1 });
        }
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
    use crate::diff::counterpart::describe_all;
    use crate::profile::{Profile, Weight, Weights};

    /// Returns a profile of threads `ROOT` or `ROOT WEIGHT`.
    fn profile(roots: &[&str]) -> Profile {
        let mut profile = Profile::new(false);
        for root in roots {
            let (root, weight) = root.split_once(' ').unwrap_or((root, "100"));
            let stack = [root, "work"].map(|name| profile.frames.intern(name.as_bytes()));
            profile.add(&stack, Weights::plain(Weight::new(weight.parse().unwrap()))).unwrap();
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
    fn a_pool_that_grew_is_compared_as_one() {
        let before = ["w-7/1", "w-7/2", "w-7/3", "w-7/4"];
        let grown =
            ["w-7/1 50", "w-7/2 52", "w-7/3 47", "w-7/11 51", "w-7/12 52", "w-7/13 46", "w-7/14 49", "w-7/15 50"];
        assert_eq!(find(&before, &grown), ["w-7/1>w", "w-7/2>w", "w-7/3>w", "w-7/4>w"]);
        let names = |before: &[&str], after: &[&str]| {
            let found = ThreadNames::find(&[profile(before)], &[profile(after)]);
            describe_all(&found.into_counterparts()).unwrap_or_default()
        };
        let said = "threads with other numbers are compared by name: w (all as one, since there are more on one side)";
        assert_eq!(names(&before, &grown), said);
        assert_eq!(names(&grown, &before), said);
        // Work moved to one of the threads of both sides, from another one or from all.
        for moved in [["w-7/1 95", "w-7/2 5", "w-7/3 50"], ["w-7/1 250", "w-7/2 50", "w-7/3 50"]] {
            let after = [&moved[..], &["w-7/11 50", "w-7/12 50"]].concat();
            assert_eq!(names(&before, &after), "threads with other numbers are compared by name: w", "{moved:?}");
        }
        // A thread of both sides is none of the pool, no thread has others beside it that keep their number, or as many restarted as
        // there were.
        let alone = ["w-7/2 90", "w-7/11 50", "w-7/12 55", "w-7/13 45", "w-7/14 50"];
        assert_eq!(
            names(&["w-7/2 90", "w-7/3", "w-7/4"], &alone),
            "threads with other numbers are compared by name: w"
        );
        for after in [&["w-7/11 50", "w-7/12 50"][..], &["w-7/1 300", "w-7/2", "w-7/3", "w-7/11"]] {
            assert_eq!(names(&before, after), "threads with other numbers are compared by name: w", "{after:?}");
        }
    }

    #[test]
    fn a_new_thread_that_works_more_than_all_others_is_itself() {
        let before = ["w-7/1", "w-7/2", "w-7/3", "w-7/4"];
        let grown =
            ["w-7/1 50", "w-7/2 52", "w-7/3 47", "w-7/11 51", "w-7/12 210", "w-7/13 46", "w-7/14 49", "w-7/15 50"];
        let plain = |before: &[&str], after: &[&str]| {
            let found = ThreadNames::find(&[profile(before)], &[profile(after)]);
            found.plain.keys().map(|name| String::from_utf8_lossy(&name[4..]).into_owned()).collect::<Vec<_>>()
        };
        for (before, after) in [(&before[..], &grown[..]), (&grown, &before)] {
            assert_eq!(plain(before, after), ["1", "11", "13", "14", "15", "2", "3", "4"]);
        }
        // There was one before, under another number.
        let hot = ["w-7/1 50", "w-7/2 52", "w-7/3 47", "w-7/4 200"];
        assert!(plain(&hot, &grown).contains(&"12".to_owned()));
    }

    #[test]
    fn runs_that_are_more_on_one_side_make_no_pool_grow() {
        let run = |number: usize| profile(&["a-1/1", &format!("a-1/{number}")]);
        let found = ThreadNames::find(&[run(7)], &[run(17), run(18), run(19)]);
        assert_eq!(found.plain.keys().map(|name| name.len()).collect::<Vec<_>>(), [6, 6, 6, 5]);
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
