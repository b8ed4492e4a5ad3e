//! Marker frames and frame suffixes of folded stacks.
//!
//! A marker is a frame in brackets that names no function: it states what is known about a stack, so that a profile carries its
//! own quality. A suffix tells which kind of code a frame is. Both are spelled only here.

use std::borrow::Cow;

/// A frame without a symbol.
pub const UNKNOWN: &[u8] = b"[unknown]";
/// The frame between a thread's name and a stack that was cut before its root.
pub const TRUNCATED: &[u8] = b"[truncated]";
/// The stack of samples that the kernel or the recorder dropped.
pub const LOST: &[u8] = b"[lost]";
/// The leaf of time in which a thread was blocked.
pub const OFF_CPU: &[u8] = b"[off-cpu]";
/// The leaf of time in which a thread was preempted, or waited for a CPU.
pub const RUNNABLE: &[u8] = b"[runnable]";
/// The leaf of time in which a thread ran and no sample was taken.
pub const UNSAMPLED: &[u8] = b"[unsampled]";
/// The root of samples that lie in no span.
pub const NO_SPAN: &[u8] = b"[no span]";

/// The suffix of kernel functions.
pub const KERNEL: &[u8] = b"_[k]";
/// The suffix of functions that were compiled just in time.
pub const JIT: &[u8] = b"_[j]";
/// The suffix of functions that were inlined into their caller.
pub const INLINED: &[u8] = b"_[i]";
/// The suffix of functions of a waker.
pub const WAKER: &[u8] = b"_[w]";

/// True for `[off-cpu]`, `[runnable]` and `[unsampled]`, the leaves that state what a thread did.
///
/// Self time is charged to the frame below such a leaf.
pub fn is_thread_state(name: &[u8]) -> bool {
    [OFF_CPU, RUNNABLE, UNSAMPLED].contains(&name)
}

/// True for a name in brackets that stands for code without a symbol: `[unknown]` or a module, `[libc.so.6]`.
pub fn is_without_symbol(name: &[u8]) -> bool {
    let name = strip_suffix(name);
    let is_quality = is_thread_state(name) || name == LOST || name == TRUNCATED;
    name.starts_with(b"[") && name.ends_with(b"]") && !is_quality
}

/// Removes one `_[k]`, `_[j]`, `_[i]` or `_[w]` from the end of a name, unless nothing else is left.
pub fn strip_suffix(name: &[u8]) -> &[u8] {
    let stripped = [KERNEL, JIT, INLINED, WAKER].into_iter().find_map(|suffix| name.strip_suffix(suffix));
    stripped.filter(|rest| !rest.is_empty()).unwrap_or(name)
}

/// Appends a suffix to a name that does not end in it yet.
pub fn with_suffix<'a>(name: Cow<'a, [u8]>, suffix: &[u8]) -> Cow<'a, [u8]> {
    if name.ends_with(suffix) {
        return name;
    }
    let mut name = name.into_owned();
    name.extend_from_slice(suffix);
    Cow::Owned(name)
}

#[cfg(test)]
mod tests {
    use super::{is_without_symbol, strip_suffix};

    #[test]
    fn strips_known_suffixes_only() {
        for (name, stripped) in
            [("vfs_read_[k]", "vfs_read"), ("f_[x]", "f_[x]"), ("_[k]", "_[k]"), ("f_[j]x", "f_[j]x")]
        {
            assert_eq!(strip_suffix(name.as_bytes()), stripped.as_bytes());
        }
    }

    #[test]
    fn tells_missing_symbols_from_states() {
        for name in ["[unknown]", "[libc.so.6]", "[unknown]_[k]"] {
            assert!(is_without_symbol(name.as_bytes()), "{name}");
        }
        for name in ["[lost]", "[truncated]", "[off-cpu]", "main", "[main"] {
            assert!(!is_without_symbol(name.as_bytes()), "{name}");
        }
    }
}
