//! What a frame is called: its symbol, tidied, and marked as kernel or JIT code; without a symbol its module.

use std::borrow::Cow;

use super::frame::Frame;
use super::header::Header;
use crate::collapse::Options;
use crate::markers;
use crate::markers::UNKNOWN;
use crate::symbol_name::{inlined, simplify};

/// How frames are named.
#[derive(Clone)]
pub(in crate::collapse) struct Naming {
    verbatim: bool,
    pid: bool,
    tid: bool,
    kernel: bool,
    jit: bool,
    addrs: bool,
    pub(in crate::collapse) srcline: bool,
    skip_after: Vec<Vec<u8>>,
}

impl Naming {
    pub(in crate::collapse) fn new(options: &Options) -> Self {
        let Options { verbatim, pid, tid, kernel, jit, addrs, srcline, .. } = *options;
        Self { verbatim, pid, tid, kernel, jit, addrs, srcline, skip_after: options.skip_after.clone() }
    }

    /// Whether a frame's names depend on nothing but its symbol, if that is known.
    #[inline]
    pub(in crate::collapse) fn by_symbol(&self) -> bool {
        !self.kernel && !self.jit && !self.addrs && !self.srcline
    }

    /// Whether each frame has to be looked at for itself.
    pub(in crate::collapse) fn is_single(&self, frame: &Frame<'_>) -> bool {
        frame.source.is_some() || self.addrs && frame.is_unknown()
    }

    /// Whether the root frame is the thread's name and nothing else.
    #[inline]
    pub(in crate::collapse) fn by_comm(&self) -> bool {
        !self.pid && !self.tid
    }

    /// The root frame: the thread's name, with `-PID` or `-PID/TID` if that is asked for.
    pub(in crate::collapse) fn thread(&self, header: &Header<'_>) -> Vec<u8> {
        let mut name: Vec<u8> = header.comm.iter().map(|byte| if *byte == b' ' { b'_' } else { *byte }).collect();
        if self.pid || self.tid {
            name.push(b'-');
            name.extend_from_slice(header.pid().unwrap_or(b"?"));
        }
        if self.tid {
            name.push(b'/');
            name.extend_from_slice(header.tid().unwrap_or(b"?"));
        }
        name
    }

    /// The frame's names, root first: several if a JIT compiler lists inlined functions in one.
    pub(in crate::collapse) fn names<'a>(&self, frame: &Frame<'a>, java: bool) -> Vec<Cow<'a, [u8]>> {
        if frame.is_unknown() {
            return vec![self.marked(self.module(frame).into(), frame)];
        }
        if self.verbatim {
            return vec![self.marked(located(frame.symbol.into(), frame), frame)];
        }
        let mut names = vec![];
        for name in inlined::split_frames(frame.symbol, java) {
            let name = located(name, frame);
            names.push(match names.is_empty() {
                true => self.marked(name, frame),
                false => markers::with_suffix(name, markers::INLINED),
            });
        }
        names
    }

    /// Whether the frame becomes the root of its stack.
    pub(in crate::collapse) fn is_skipped_after(&self, frame: &Frame<'_>) -> bool {
        !self.skip_after.is_empty()
            && self.skip_after.iter().any(|name| name == frame.symbol || *name == *simplify::simplify(frame.symbol))
    }

    /// `[module]`, or `[unknown]`; with the address if that is asked for.
    fn module(&self, frame: &Frame<'_>) -> Vec<u8> {
        let module = frame.module.filter(|module| *module != UNKNOWN && *module != b"unknown").unwrap_or(UNKNOWN);
        let inner = match module {
            [b'[', inner @ .., b']'] => inner,
            bracketed @ [b'[', ..] if !self.addrs => return bracketed.to_vec(),
            path => path.rsplit(|byte| *byte == b'/').next().unwrap_or(path),
        };
        let address = frame.address.trim_ascii();
        match self.addrs {
            true => [b"[", inner, b" <", address, b">]"].concat(),
            false => [b"[", inner, b"]"].concat(),
        }
    }

    fn marked<'a>(&self, name: Cow<'a, [u8]>, frame: &Frame<'_>) -> Cow<'a, [u8]> {
        let module = frame.module.unwrap_or_default();
        if self.kernel && is_kernel(module) {
            markers::with_suffix(name, markers::KERNEL)
        } else if self.jit && is_jit(module) {
            markers::with_suffix(name, markers::JIT)
        } else {
            name
        }
    }
}

/// With `:FILE:LINE` if that is known.
fn located<'a>(name: Cow<'a, [u8]>, frame: &Frame<'_>) -> Cow<'a, [u8]> {
    frame.source.map_or(name.clone(), |source| [&name, &b":"[..], source].concat().into())
}

/// Brackets that are no kernel modules: memory without a file, and what user space maps from the kernel.
const NOT_KERNEL: [&[u8]; 10] =
    [b"unknown", b"vdso", b"vvar", b"vsyscall", b"heap", b"stack", b"anon", b"uprobes", b"JIT", b"aio"];

/// Whether a module is the kernel, or a part of it: `[kernel.kallsyms]`, `[xfs]`, `xfs.ko.xz`, `vmlinux-6.1`.
fn is_kernel(module: &[u8]) -> bool {
    if let Some(inside) = module.strip_prefix(b"[") {
        let word = inside.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(inside.len());
        return !NOT_KERNEL.contains(&&inside[..word]);
    }
    let file = module.rsplit(|byte| *byte == b'/').next().unwrap_or(module);
    let packed = [&b".gz"[..], b".xz", b".zst"].iter().find_map(|suffix| file.strip_suffix(*suffix)).unwrap_or(file);
    let image = file.strip_prefix(b"vmlinux").is_some_and(|rest| matches!(rest, [] | [b'-' | b'_' | b'.', ..]));
    image || packed.ends_with(b".ko")
}

/// Whether a module is code that was compiled while the program ran: `perf-123.map`, `jitted-123-4.so`.
fn is_jit(module: &[u8]) -> bool {
    let file = module.rsplit(|byte| *byte == b'/').next().unwrap_or(module);
    let between = |start: &[u8], end: &[u8]| file.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
    let numbered = |middle: &[u8]| !middle.is_empty() && middle.iter().all(u8::is_ascii_digit);
    between(b"perf-", b".map").is_some_and(numbered)
        || between(b"jitted-", b".so").is_some()
        || module.starts_with(b"[JIT]")
        || module.starts_with(b"[JIT app cache]")
}

#[cfg(test)]
mod tests {
    use super::{is_jit, is_kernel};

    #[test]
    fn kernel_is_what_runs_in_the_kernel() {
        for kernel in ["[kernel.kallsyms]", "[guest.kernel.kallsyms]", "[kernel.kallsyms].init.text", "[xfs]", "[bpf]"]
        {
            assert!(is_kernel(kernel.as_bytes()), "{kernel}");
        }
        for kernel in
            ["/lib/modules/6.1/kernel/fs/xfs.ko", "/x/xfs.ko.xz", "/usr/lib/debug/vmlinux", "/boot/vmlinux-6.1"]
        {
            assert!(is_kernel(kernel.as_bytes()), "{kernel}");
        }
        for user in [
            "[vdso]",
            "[vsyscall]",
            "[heap]",
            "[stack]",
            "[stack:12]",
            "[anon:foo]",
            "[unknown]",
            "/bin/ko",
            "/x/vmlinuxer",
            "[JIT] tid 3",
        ] {
            assert!(!is_kernel(user.as_bytes()), "{user}");
        }
    }

    #[test]
    fn jit_is_what_was_compiled_on_the_way() {
        for jit in ["/tmp/perf-123.map", "/x/jitted-1-2.so", "[JIT app cache]", "[JIT] tid 12"] {
            assert!(is_jit(jit.as_bytes()), "{jit}");
        }
        for not in ["/tmp/perf-x.map", "/tmp/perf-.map", "/usr/lib/libjit.so", ""] {
            assert!(!is_jit(not.as_bytes()), "{not}");
        }
    }
}
