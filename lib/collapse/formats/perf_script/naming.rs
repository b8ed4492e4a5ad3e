//! Names frames: by the simplified symbol, with suffixes for kernel and JIT code, or by the module if there is no
//! symbol.

use std::borrow::Cow;

use super::frame::Frame;
use super::header::Header;
use crate::collapse::options::Options;
use crate::markers;
use crate::markers::UNKNOWN;
use crate::symbol_name::{inlined, simplify};

/// The options that affect the names of frames.
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

    /// Returns true if a frame's names depend only on its symbol, if it has one.
    #[inline]
    pub(in crate::collapse) fn uses_symbol_only(&self) -> bool {
        !self.kernel && !self.jit && !self.addrs && !self.srcline
    }

    /// Returns true if a frame's names contain its source line or address, so that caching them is no use.
    pub(in crate::collapse) fn is_unique(&self, frame: &Frame<'_>) -> bool {
        frame.source.is_some() || self.addrs && frame.is_unknown()
    }

    /// Returns true if the root frame depends only on the thread's name.
    #[inline]
    pub(in crate::collapse) fn uses_comm_only(&self) -> bool {
        !self.pid && !self.tid
    }

    /// Returns the root frame: the thread's name, with `-PID` or `-PID/TID` if `--pid` or `--tid` asks for them.
    pub(in crate::collapse) fn thread_frame(&self, header: &Header<'_>) -> Vec<u8> {
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

    /// Returns a frame's names, root first: several if a JIT compiler lists inlined functions in one symbol.
    pub(in crate::collapse) fn frame_names<'a>(&self, frame: &Frame<'a>, is_java: bool) -> Vec<Cow<'a, [u8]>> {
        if frame.is_unknown() {
            return vec![self.append_suffix(self.module_frame(frame).into(), frame)];
        }
        if self.verbatim {
            return vec![self.append_suffix(append_source(frame.symbol.into(), frame), frame)];
        }
        let mut names = vec![];
        for name in inlined::split_frames(frame.symbol, is_java) {
            let name = append_source(name, frame);
            names.push(match names.is_empty() {
                true => self.append_suffix(name, frame),
                false => markers::with_suffix(name, markers::INLINED),
            });
        }
        names
    }

    /// Returns true if `--skip-after` makes the frame the root of its stack.
    pub(in crate::collapse) fn is_skipped_after(&self, frame: &Frame<'_>) -> bool {
        !self.skip_after.is_empty()
            && self.skip_after.iter().any(|name| name == frame.symbol || *name == *simplify::simplify(frame.symbol))
    }

    /// Returns `[MODULE]` or `[unknown]`, with the address if `--addrs` asks for it.
    fn module_frame(&self, frame: &Frame<'_>) -> Vec<u8> {
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

    /// Appends the suffix for kernel or JIT code, if `--kernel` or `--jit` asks for it.
    fn append_suffix<'a>(&self, name: Cow<'a, [u8]>, frame: &Frame<'_>) -> Cow<'a, [u8]> {
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

/// Appends `:FILE:LINE`, if the frame has a source position.
fn append_source<'a>(name: Cow<'a, [u8]>, frame: &Frame<'_>) -> Cow<'a, [u8]> {
    frame.source.map_or(name.clone(), |source| [&name, &b":"[..], source].concat().into())
}

/// Names in brackets that are not kernel modules: memory without a file, and pages of the kernel that user space maps.
const NOT_KERNEL: [&[u8]; 10] =
    [b"unknown", b"vdso", b"vvar", b"vsyscall", b"heap", b"stack", b"anon", b"uprobes", b"JIT", b"aio"];

/// Returns true if a module is the kernel or one of its modules: `[kernel.kallsyms]`, `[xfs]`, `xfs.ko.xz`,
/// `vmlinux-6.1`.
fn is_kernel(module: &[u8]) -> bool {
    if let Some(inside) = module.strip_prefix(b"[") {
        let word = inside.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(inside.len());
        return !NOT_KERNEL.contains(&&inside[..word]);
    }
    let file = module.rsplit(|byte| *byte == b'/').next().unwrap_or(module);
    let compressed = [&b".gz"[..], b".xz", b".zst"].iter().find_map(|suffix| file.strip_suffix(*suffix));
    let is_image = file.strip_prefix(b"vmlinux").is_some_and(|rest| matches!(rest, [] | [b'-' | b'_' | b'.', ..]));
    is_image || compressed.unwrap_or(file).ends_with(b".ko")
}

/// Returns true if a module is code that was compiled at run time: `perf-123.map`, `jitted-123-4.so`.
fn is_jit(module: &[u8]) -> bool {
    let file = module.rsplit(|byte| *byte == b'/').next().unwrap_or(module);
    let pid = file.strip_prefix(b"perf-").and_then(|rest| rest.strip_suffix(b".map"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
        || file.strip_prefix(b"jitted-").is_some_and(|rest| rest.ends_with(b".so"))
        || module.starts_with(b"[JIT]")
        || module.starts_with(b"[JIT app cache]")
}

#[cfg(test)]
mod tests {
    use super::{is_jit, is_kernel};

    #[test]
    fn recognizes_kernel_modules() {
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
    fn recognizes_jit_modules() {
        for jit in ["/tmp/perf-123.map", "/x/jitted-1-2.so", "[JIT app cache]", "[JIT] tid 12"] {
            assert!(is_jit(jit.as_bytes()), "{jit}");
        }
        for not in ["/tmp/perf-x.map", "/tmp/perf-.map", "/usr/lib/libjit.so", ""] {
            assert!(!is_jit(not.as_bytes()), "{not}");
        }
    }
}
