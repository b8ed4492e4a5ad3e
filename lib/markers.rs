//! Marker frames and frame suffixes of folded stacks.
//!
//! A marker is a frame in brackets that is not a function: it states what the thread did, or what is missing from the stack.
//! A suffix tells the kind of code of a frame. No other file spells them.

use std::borrow::Cow;

/// A frame without a symbol.
pub const UNKNOWN: &[u8] = b"[unknown]";
/// A Python function whose name cannot be read.
pub const PYTHON: &[u8] = b"[python]";
/// A PHP function whose name could not be read.
pub const PHP: &[u8] = b"[php]";
/// Frames of a virtual thread of Java that are not on a stack: the virtual machine keeps them in its heap until the
/// thread returns to them.
pub const FROZEN: &[u8] = b"[frozen]";
/// A Java method whose name could not be read.
pub const JAVA: &[u8] = b"[java]";
/// A Ruby method whose name could not be read.
pub const RUBY: &[u8] = b"[ruby]";
/// A JavaScript function whose name could not be read.
pub const V8: &[u8] = b"[v8]";
/// The frame between a thread's name and a stack whose outermost callers are missing.
pub const TRUNCATED: &[u8] = b"[truncated]";
/// The only frame of samples that the kernel or the recorder dropped.
pub const LOST: &[u8] = b"[lost]";
/// The leaf of stacks whose weight is time that a thread was blocked.
pub const OFF_CPU: &[u8] = b"[off-cpu]";
/// The leaf of stacks whose weight is time that a thread was runnable: preempted, or waiting for a CPU.
pub const RUNNABLE: &[u8] = b"[runnable]";
/// The leaf of stacks whose weight is time that a thread ran without being sampled.
pub const UNSAMPLED: &[u8] = b"[unsampled]";
/// The only function of stacks none of whose functions is on both sides of a comparison.
pub const UNMATCHED: &[u8] = b"[unmatched]";
/// The only frame of a stack without weight: in all others, the weights before are those after wherever the difference is
/// small or not significant.
pub const FLATTENED: &[u8] = b"[flattened]";
/// The root of samples outside all spans.
pub const NO_SPAN: &[u8] = b"[no span]";

/// The label of threads that run no task.
pub const NO_TASK: &[u8] = b"[no task]";

/// The label of threads that work on a span without the attribute that is shown.
pub const NO_ATTRIBUTE: &[u8] = b"[no attribute]";

/// The waker of blocks that a timer ended.
pub const TIMER: &[u8] = b"[timer]";
/// The waker of blocks that a network interrupt ended.
pub const NETWORK: &[u8] = b"[network]";
/// The waker of blocks that an interrupt of a disk ended.
pub const DISK: &[u8] = b"[disk]";
/// The waker of blocks that another softirq ended.
pub const SOFTIRQ: &[u8] = b"[softirq]";
/// The waker of blocks that another interrupt ended.
pub const INTERRUPT: &[u8] = b"[interrupt]";
/// The waker of a waker whose own wait is not followed: the chain has as many wakers as were asked for.
pub const MORE_WAKERS: &[u8] = b"[more-wakers]";
/// The label of threads outside all containers.
pub const NO_CONTAINER: &[u8] = b"[no container]";
/// The frame between the stack of a blocked thread and that of its waker.
pub const WAKER_SEPARATOR: &[u8] = b"--";

/// The suffix of kernel functions.
pub const KERNEL: &[u8] = b"_[k]";
/// The suffix of JIT-compiled functions.
pub const JIT: &[u8] = b"_[j]";
/// The suffix of functions inlined into their caller.
pub const INLINED: &[u8] = b"_[i]";
/// The suffix of functions on the stack of the thread that woke the sampled one.
pub const WAKER: &[u8] = b"_[w]";

/// The only frame of a profile that is one number, such as `fg-bench --measure` leaves: durations or other measures, no samples.
pub const MEASURED_VALUE: &[u8] = b"value";

/// True for `[off-cpu]`, `[runnable]` and `[unsampled]`, the leaves that state what a thread did.
///
/// Their weight counts as self time of their caller.
pub fn is_thread_state(name: &[u8]) -> bool {
    [OFF_CPU, RUNNABLE, UNSAMPLED].contains(&name)
}

/// True for the markers that a flame graph draws in fixed colours: the thread states, `[lost]`, `[truncated]` and
/// `[unknown]`.
pub fn is_marker(name: &[u8]) -> bool {
    is_thread_state(name) || [LOST, TRUNCATED, UNKNOWN].contains(&name)
}

/// True for a waker that is an interrupt, or of which nothing is told.
pub fn is_no_thread(name: &[u8]) -> bool {
    [TIMER, NETWORK, DISK, SOFTIRQ, INTERRUPT, UNKNOWN, MORE_WAKERS].contains(&strip_suffix(name))
}

/// Returns a name that somebody chose, as a frame: what separates a waiter from its waker is put in quotes.
pub fn quote_separator(name: &[u8]) -> Cow<'_, [u8]> {
    if name == WAKER_SEPARATOR { Cow::Borrowed(b"\"--\"") } else { Cow::Borrowed(name) }
}

/// True for the name of code without a symbol, in brackets: `[unknown]`, or a module such as `[libc.so.6]`.
pub fn is_without_symbol(name: &[u8]) -> bool {
    let name = strip_suffix(name);
    let is_other_marker = is_thread_state(name)
        || [LOST, TRUNCATED].contains(&name)
        || [TIMER, NETWORK, DISK, SOFTIRQ, INTERRUPT, MORE_WAKERS].contains(&name);
    name.starts_with(b"[") && name.ends_with(b"]") && !is_other_marker
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
    use super::{is_marker, is_no_thread, is_without_symbol, strip_suffix};

    #[test]
    fn strips_known_suffixes_only() {
        for (name, stripped) in
            [("vfs_read_[k]", "vfs_read"), ("f_[x]", "f_[x]"), ("_[k]", "_[k]"), ("f_[j]x", "f_[j]x")]
        {
            assert_eq!(strip_suffix(name.as_bytes()), stripped.as_bytes());
        }
    }

    #[test]
    fn distinguishes_markers_from_functions_and_modules() {
        assert!(is_marker(b"[off-cpu]") && is_marker(b"[unknown]") && is_marker(b"[lost]"));
        assert!(!is_marker(b"[libc.so.6]") && !is_marker(b"--") && !is_marker(b"main"));
        assert!(is_no_thread(b"[timer]_[w]") && is_no_thread(b"[unknown]_[w]") && is_no_thread(b"[more-wakers]_[w]"));
        assert!(!is_no_thread(b"timer_[w]"));
    }

    #[test]
    fn distinguishes_missing_symbols_from_states() {
        for name in ["[unknown]", "[libc.so.6]", "[unknown]_[k]"] {
            assert!(is_without_symbol(name.as_bytes()), "{name}");
        }
        for name in ["[lost]", "[truncated]", "[off-cpu]", "main", "[main", "[timer]_[w]", "[more-wakers]_[w]"] {
            assert!(!is_without_symbol(name.as_bytes()), "{name}");
        }
    }
}
