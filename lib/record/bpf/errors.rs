//! The reasons why the kernel refuses a BPF program.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::Path;

/// The reason why a program could not be loaded or attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::record) enum Refusal {
    /// The kernel does not describe its types, by which programs find fields.
    NoTypeInformation,
    /// We lack the capabilities.
    NoPermission,
    /// The kernel rejects the program, with this message.
    Rejected(String),
}

impl Refusal {
    /// Finds the reason among the causes of an error.
    pub(in crate::record) fn from_error<'a>(error: &'a (dyn StdError + 'static)) -> Self {
        let causes = || std::iter::successors(Some(error), |error: &&'a (dyn StdError + 'static)| (*error).source());
        let code = causes().find_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error());
        match code {
            _ if !Path::new("/sys/kernel/btf/vmlinux").exists() => Self::NoTypeInformation,
            Some(libc::EPERM | libc::EACCES) => Self::NoPermission,
            _ => {
                let causes: Vec<String> = causes().map(|error| error.to_string()).collect();
                Self::Rejected(causes.join(": ").lines().next().unwrap_or_default().to_owned())
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTypeInformation => f.write_str("this kernel has no type information (CONFIG_DEBUG_INFO_BTF)"),
            Self::NoPermission => f.write_str("BPF needs root, or CAP_BPF and CAP_PERFMON"),
            Self::Rejected(message) => write!(f, "this kernel rejects the BPF program: {message}"),
        }
    }
}
