//! Renames frames: suffixes, shortening, rules, thread numbers.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::rename::{self, Rename};
use crate::markers;
use crate::profile::{FrameId, Frames};
use crate::symbol_name::shorten::shorten;

/// A number in a thread's name: `worker-12`, `java-123/124`, `GC Thread#3`, `kworker/0:1`, but not `x86_64`.
static THREAD_NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?-u)([/#: ]|(?:^|[^0-9])[-_])(\?|[0-9]+\b)").expect("a valid pattern"));

/// Rules that rename frames, applied in the order of the fields.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Remove the suffixes `_[k]`, `_[j]`, `_[i]` and `_[w]`.
    pub strip_suffix: bool,
    /// Level of shortening: 1 removes what compilers append, 2 also arguments, 3 also packages.
    pub shorten: u8,
    /// Replacements, applied in order.
    pub renames: Vec<Rename>,
    /// Replace thread numbers in the root frame by `*`.
    pub merge_threads: bool,
    roots: Vec<Option<FrameId>>,
}

impl Names {
    /// Creates rules from the values of the public fields, in their order.
    pub fn new(strip_suffix: bool, shorten: u8, renames: Vec<Rename>, merge_threads: bool) -> Self {
        Self { strip_suffix, shorten, renames, merge_threads, roots: Vec::new() }
    }

    /// True if names are left as they are.
    pub fn is_empty(&self) -> bool {
        let Self { strip_suffix, shorten, renames, merge_threads, roots: _ } = self;
        !strip_suffix && *shorten == 0 && renames.is_empty() && !merge_threads
    }

    /// Returns the new name of a frame at any depth.
    pub fn rename<'a>(&self, name: &'a [u8]) -> Cow<'a, [u8]> {
        let name = if self.strip_suffix { markers::strip_suffix(name) } else { name };
        let name = shorten(name, self.shorten);
        match self.renames.is_empty() {
            true => name,
            false => Cow::Owned(rename::apply_all(&self.renames, &name).into_owned()),
        }
    }

    /// Returns the new id of a root frame, which may name a thread.
    pub fn rename_root(&mut self, frames: &mut Frames, root: FrameId) -> FrameId {
        if !self.merge_threads {
            return root;
        }
        if root.index() >= self.roots.len() {
            self.roots.resize(root.index() + 1, None);
        }
        *self.roots[root.index()].get_or_insert_with(|| {
            let name = THREAD_NUMBER.replace_all(frames.name(root), &b"${1}*"[..]).into_owned();
            frames.intern(&name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Names;
    use crate::profile::Frames;

    #[test]
    fn merges_threads_by_name() {
        let mut names = Names { merge_threads: true, ..Names::default() };
        for (name, merged) in [
            ("pool-2-thread-17", "pool-*-thread-*"),
            ("java-123/456", "java-*/*"),
            ("java-?/456", "java-*/*"),
            ("GC Thread#3", "GC Thread#*"),
            ("kworker/0:1", "kworker/*:*"),
            ("x264", "x264"),
            ("qemu-system-x86_64", "qemu-system-x86_64"),
            ("ld-linux-x86-64", "ld-linux-x86-64"),
            ("worker_12", "worker_*"),
            ("-1", "-*"),
            ("python3.11", "python3.11"),
            ("tokio-4shared", "tokio-4shared"),
        ] {
            let mut frames = Frames::new();
            names.roots.clear();
            let root = frames.intern(name.as_bytes());
            let renamed = names.rename_root(&mut frames, root);
            assert_eq!(frames.name(renamed), merged.as_bytes());
        }
    }
}
