//! Explains why the kernel rejects the BPF program.

use std::error::Error as StdError;
use std::io;
use std::path::Path;

use crate::Error;

/// Checks the kernel's release. Before Linux 5.18, `sched_switch` does not say whether the thread was preempted.
///
/// # Errors
/// [`Error::System`] if the kernel is too old.
pub fn check_release(release: &str) -> Result<(), Error> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|number| number.parse().ok());
    let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else { return Ok(()) };
    let version: (u32, u32) = (major, minor);
    if version < (5, 18) {
        return Err(Error::System(format!("--bpf needs Linux 5.18 or later; this is {}", release.trim_end())));
    }
    Ok(())
}

/// Returns the error for a program that could not be loaded or attached.
pub fn load_error<'a>(error: &'a (dyn StdError + 'static)) -> Error {
    let causes = || std::iter::successors(Some(error), |error: &&'a (dyn StdError + 'static)| (*error).source());
    let code = causes().find_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error());
    Error::System(match code {
        _ if !Path::new("/sys/kernel/btf/vmlinux").exists() => {
            "--bpf needs a kernel with type information (CONFIG_DEBUG_INFO_BTF); record without --bpf".to_owned()
        }
        Some(libc::EPERM | libc::EACCES) => "--bpf needs root, or CAP_BPF and CAP_PERFMON".to_owned(),
        _ => {
            let causes: Vec<String> = causes().map(|error| error.to_string()).collect();
            let what = causes.join(": ").lines().next().unwrap_or_default().to_owned();
            format!("--bpf needs Linux 5.18 or later; this kernel rejects the program: {what}")
        }
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn rejects_old_kernels_by_their_release() {
        let error = |release| super::check_release(release).err().map(|error| error.to_string());
        for new in ["5.18", "5.18.0-rc1\n", "6.1.0-44-amd64", "unreadable", ""] {
            assert_eq!(error(new), None);
        }
        for old in ["4.19.0", "5.17.15-generic\n"] {
            assert_eq!(error(old).unwrap(), format!("--bpf needs Linux 5.18 or later; this is {}", old.trim_end()));
        }
    }
}
