//! What frames are called.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::rename::{self, Rename};
use crate::markers;
use crate::profile::{FrameId, Frames};
use crate::symbol_name::shorten::shorten;

/// A thread's number in its name: `worker-12`, `java-123/124`, `GC Thread#3`, `kworker/0:1`; but nothing of `x86_64`.
static THREAD_NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?-u)([/#: ]|(?:^|[^0-9])[-_])(\?|[0-9]+\b)").expect("a valid pattern"));

/// How frames are renamed. The order is that of the fields.
#[derive(Debug, Default)]
pub struct Names {
    /// Take off the suffixes `_[k]`, `_[j]`, `_[i]` and `_[w]`.
    pub strip_suffix: bool,
    /// How much is left out: 1 what compilers append, 2 also arguments, 3 also packages.
    pub shorten: u8,
    /// What is replaced by what.
    pub renames: Vec<Rename>,
    /// In the first frame, put `*` for a thread's number.
    pub merge_threads: bool,
    roots: Vec<Option<FrameId>>,
}

impl Names {
    /// The fields in their order.
    pub fn new(strip_suffix: bool, shorten: u8, renames: Vec<Rename>, merge_threads: bool) -> Self {
        Self { strip_suffix, shorten, renames, merge_threads, roots: Vec::new() }
    }

    /// The name of a frame wherever it stands.
    pub fn rename<'a>(&self, name: &'a [u8]) -> Cow<'a, [u8]> {
        let name = if self.strip_suffix { markers::strip_suffix(name) } else { name };
        let name = shorten(name, self.shorten);
        match self.renames.is_empty() {
            true => name,
            false => Cow::Owned(rename::apply_all(&self.renames, &name).into_owned()),
        }
    }

    /// What a frame is called as the first of a stack, where it tells the thread.
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
    fn threads_of_one_name_meet() {
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
