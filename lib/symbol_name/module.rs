//! Modules before the names of functions: `libsystem_kernel`read` of macOS's sample, DTrace, VTune and WPA.

/// The part of the system that a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemModule {
    /// A library of the system.
    Library,
    /// The kernel, or a part of it.
    Kernel,
}

/// Splits a name into the module before the backtick and the function after it; without one, the function is the whole name.
///
/// The backtick of .NET's generic types comes before a number: ``List`1.Add``.
pub fn split_module(name: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match memchr::memchr(b'`', name).map(|end| (&name[..end], &name[end + 1..])) {
        Some((module, function)) if !module.is_empty() && is_function(function) => (Some(module), function),
        _ => (None, name),
    }
}

/// True for what may be a function, or an address: `0xfffffffffb8001d6`.
fn is_function(text: &[u8]) -> bool {
    text.first().is_some_and(|first| !first.is_ascii_digit()) || text.starts_with(b"0x")
}

/// Returns the part of the system that a module is; `None` for one of a program.
pub fn system_module(module: &[u8]) -> Option<SystemModule> {
    const KERNEL: [&str; 30] = [
        "unix",
        "genunix",
        "kernel",
        "kernel.kallsyms",
        "vmlinux",
        "mach_kernel",
        "kernel.release",
        "ntoskrnl.exe",
        "ntkrnlmp.exe",
        "ntkrnlpa.exe",
        "hal.dll",
        "win32kfull.sys",
        "sockfs",
        "ufs",
        "zfs",
        "lofs",
        "tmpfs",
        "nfs",
        "procfs",
        "devfs",
        "specfs",
        "doorfs",
        "ip",
        "tcp",
        "udp",
        "dtrace",
        "fbt",
        "cpu.generic",
        "apix",
        "pcplusmp",
    ];
    const LIBRARIES: [&str; 24] = [
        "libsystem_",
        "libdyld",
        "dyld",
        "libobjc",
        "libdispatch",
        "libc++",
        "libc.",
        "libc-",
        "libpthread",
        "libthr",
        "libm.",
        "libm-",
        "libdl.",
        "libdl-",
        "librt.",
        "ld.so",
        "ld-",
        "libstdc++",
        "libgcc_s",
        "ntdll",
        "kernel32",
        "kernelbase",
        "ucrtbase",
        "msvc",
    ];
    const EXACT: [&str; 4] = ["libc", "libm", "foundation", "corefoundation"];
    let name = module.to_ascii_lowercase();
    let is = |other: &&str| name == other.as_bytes();
    match () {
        () if KERNEL.iter().any(is) || name.ends_with(b".sys") || name.ends_with(b".ko") => Some(SystemModule::Kernel),
        () if EXACT.iter().any(is) || LIBRARIES.iter().any(|start| name.starts_with(start.as_bytes())) => {
            Some(SystemModule::Library)
        }
        () if name.starts_with(b"vcruntime") => Some(SystemModule::Library),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{SystemModule, split_module, system_module};

    #[test]
    fn modules_are_before_a_backtick() {
        for (name, module, function) in [
            ("libsystem_kernel`read", Some("libsystem_kernel"), "read"),
            ("unix`0xfffffffffb8001d6", Some("unix"), "0xfffffffffb8001d6"),
            ("System.Collections.Generic.List`1.Add", None, "System.Collections.Generic.List`1.Add"),
            ("`anonymous namespace'::run", None, "`anonymous namespace'::run"),
            ("main", None, "main"),
        ] {
            let expected = (module.map(str::as_bytes), function.as_bytes());
            assert_eq!(split_module(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn modules_of_the_system_are_known() {
        for (module, expected) in [
            ("libsystem_pthread.dylib", Some(SystemModule::Library)),
            ("KERNEL32.DLL", Some(SystemModule::Library)),
            ("libc.so.1", Some(SystemModule::Library)),
            ("genunix", Some(SystemModule::Kernel)),
            ("tcpip.sys", Some(SystemModule::Kernel)),
            ("rg", None),
            ("libcart.so", None),
        ] {
            assert_eq!(system_module(module.as_bytes()), expected, "{module}");
        }
    }
}
