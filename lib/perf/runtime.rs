//! The language runtime of a process, by the files that it has mapped.

/// A language runtime that generates code, or interprets a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Runtime {
    /// HotSpot and its relatives.
    Java,
    /// Node.js.
    Node,
    /// CPython.
    Python,
    /// .NET.
    DotNet,
    /// Ruby, which generates code with YJIT.
    Ruby,
}

impl Runtime {
    /// Returns the runtime that a file belongs to.
    pub fn from_path(path: &[u8]) -> Option<Self> {
        let name = &path[memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)..];
        match name {
            b"libjvm.so" => Some(Self::Java),
            b"node" | b"nodejs" => Some(Self::Node),
            b"libcoreclr.so" => Some(Self::DotNet),
            _ if name.starts_with(b"libnode.so") => Some(Self::Node),
            _ if name.starts_with(b"libruby") => Some(Self::Ruby),
            _ if name.strip_prefix(b"ruby").is_some_and(is_version) => Some(Self::Ruby),
            _ if name.starts_with(b"libpython3") => Some(Self::Python),
            _ if name.strip_prefix(b"python").is_some_and(is_version) => Some(Self::Python),
            _ => None,
        }
    }
}

/// True for the end of a program's name that is a version, such as `3.12`, or empty.
fn is_version(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::Runtime;

    fn runtime(path: &str) -> Option<Runtime> {
        Runtime::from_path(path.as_bytes())
    }

    #[test]
    fn knows_runtimes_by_their_files() {
        assert_eq!(runtime("/usr/lib/jvm/java-17/lib/server/libjvm.so"), Some(Runtime::Java));
        assert_eq!(runtime("/usr/local/bin/node"), Some(Runtime::Node));
        assert_eq!(runtime("/usr/lib/libnode.so.108"), Some(Runtime::Node));
        assert_eq!(runtime("/usr/bin/python3.12"), Some(Runtime::Python));
        assert_eq!(runtime("/usr/lib/libpython3.11.so.1.0"), Some(Runtime::Python));
        assert_eq!(runtime("/opt/dotnet/libcoreclr.so"), Some(Runtime::DotNet));
        assert_eq!(runtime("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2"), Some(Runtime::Ruby));
        assert_eq!(runtime("/usr/local/bin/ruby"), Some(Runtime::Ruby));
        for other in ["/usr/bin/rubygems", "/usr/bin/pythonista", "/usr/bin/nodes", "/bin/sh", "", "//anon"] {
            assert_eq!(runtime(other), None, "{other}");
        }
    }
}
