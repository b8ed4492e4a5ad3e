//! Threads of a pool as one: their stacks differ in nothing but the number in the name of the thread.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::context::display_name;
use crate::Error;
use crate::profile::{FrameId, Profile};

/// The names of threads that are numbered alike, with the name of their pool.
#[derive(Debug, Default)]
pub(super) struct Pools(HashMap<FrameId, FrameId, FxBuildHasher>);

/// Number of digits from which on a number in a name is an address or another ID, which each run has anew.
const MIN_ID: usize = 5;

/// Returns the name of a pool without the IDs in it: `qtp1112280004-N` becomes `qtpN-N`.
fn without_ids(name: &str) -> String {
    let (mut out, mut digits) = (String::with_capacity(name.len()), String::new());
    for character in name.chars().map(Some).chain([None]) {
        match character {
            Some(digit) if digit.is_ascii_digit() => digits.push(digit),
            other => {
                out.push_str(if digits.len() < MIN_ID { &digits } else { "N" });
                digits.clear();
                out.extend(other);
            }
        }
    }
    out
}

/// Returns the name of a thread with `N` for each run of digits at its end: `worker-12` becomes `worker-N`.
pub(super) fn generic_name(name: &str) -> String {
    let stem = name.trim_end_matches(|last: char| last.is_ascii_digit());
    match stem.is_empty() || stem.len() == name.len() || !stem.ends_with(['-', '_', '#', ' ', ':', '/']) {
        true => name.to_owned(),
        false => format!("{}N", display_name(stem.as_bytes())),
    }
}

impl Pools {
    /// Finds the pools among the roots of a profile, and adds frames with their names: `worker-N ×8`.
    pub(super) fn find(profile: &mut Profile) -> Self {
        let mut roots = BTreeSet::new();
        let Ok(()) = profile.for_each(|stack, _| {
            roots.extend(stack.first().copied());
            Ok::<(), Infallible>(())
        });
        let mut pools = BTreeMap::<String, Vec<FrameId>>::new();
        for root in roots {
            let name = display_name(profile.frames.name(root));
            let pool = generic_name(&name);
            if pool != name {
                let pool = if profile.is_differential() { without_ids(&pool) } else { pool };
                pools.entry(pool).or_default().push(root);
            }
        }
        let mut names = HashMap::default();
        for (pool, threads) in pools.into_iter().filter(|(_, threads)| threads.len() > 1) {
            let name = profile.frames.intern(format!("{pool} ×{}", threads.len()).as_bytes());
            names.extend(threads.into_iter().map(|thread| (thread, name)));
        }
        Self(names)
    }

    /// Returns the frame that stands for the pool of a thread, or the thread itself if it is in none.
    pub(super) fn pool(&self, thread: FrameId) -> FrameId {
        self.0.get(&thread).copied().unwrap_or(thread)
    }

    /// Returns a profile in which the threads of a pool have the same name, and all frames the same IDs; `None` if there is no
    /// pool.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn join(&self, profile: &Profile) -> Result<Option<Profile>, Error> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let mut joined = Profile::new(profile.is_differential());
        joined.frames.intern_all(&profile.frames);
        let mut stack = Vec::new();
        profile.for_each(|frames, weights| {
            stack.clear();
            stack.extend_from_slice(frames);
            if let Some(root) = stack.first_mut() {
                *root = self.pool(*root);
            }
            joined.add(&stack, weights)
        })?;
        Ok(Some(joined))
    }
}

#[cfg(test)]
mod tests {
    use super::{generic_name, without_ids};

    #[test]
    fn threads_of_a_pool_have_one_name() {
        for (name, expected) in [
            ("clerk-12", "clerk-N"),
            ("GC Thread#0", "GC Thread#N"),
            ("python3.11", "python3.11"),
            ("7", "7"),
            ("md5", "md5"),
        ] {
            assert_eq!(generic_name(name), expected);
        }
    }

    #[test]
    fn ids_are_no_part_of_the_name_of_a_pool() {
        for (name, expected) in [
            ("qtp1112280004-N", "qtpN-N"),
            ("pool-2-thread-N", "pool-2-thread-N"),
            ("http-nio-8080-exec-N", "http-nio-8080-exec-N"),
            ("é12345", "éN"),
        ] {
            assert_eq!(without_ids(name), expected);
        }
    }
}
