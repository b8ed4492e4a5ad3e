//! Why the kernel does not take the program.

use std::error::Error as StdError;
use std::io;
use std::path::Path;

use crate::Error;

/// What to say of a failure.
pub fn of<'a>(failure: &'a (dyn StdError + 'static)) -> Error {
    let causes = || std::iter::successors(Some(failure), |error: &&'a (dyn StdError + 'static)| (*error).source());
    let code = causes().find_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error());
    Error::Refused(match code {
        _ if !Path::new("/sys/kernel/btf/vmlinux").exists() => {
            "--bpf needs a kernel that describes its types (CONFIG_DEBUG_INFO_BTF); leave it out".to_owned()
        }
        Some(libc::EPERM | libc::EACCES) => "--bpf needs root, or CAP_BPF and CAP_PERFMON".to_owned(),
        _ => {
            let causes: Vec<String> = causes().map(|error| error.to_string()).collect();
            let what = causes.join(": ").lines().next().unwrap_or_default().to_owned();
            format!("--bpf needs Linux 5.18; this kernel does not take its program: {what}")
        }
    })
}
