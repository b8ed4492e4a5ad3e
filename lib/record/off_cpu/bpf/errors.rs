//! Why the kernel does not take the program.

use std::error::Error as StdError;
use std::io;
use std::path::Path;

use crate::Error;

/// Whether a kernel is too old: before Linux 5.18 a switch does not tell whether the thread could have gone on.
pub fn of_release(release: &str) -> Option<Error> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|number| number.parse().ok());
    let version: (u32, u32) = (numbers.next()?, numbers.next()?);
    (version < (5, 18)).then(|| Error::System(format!("--bpf needs Linux 5.18, and this is {}", release.trim_end())))
}

/// What to say of a failure.
pub fn of<'a>(failure: &'a (dyn StdError + 'static)) -> Error {
    let causes = || std::iter::successors(Some(failure), |error: &&'a (dyn StdError + 'static)| (*error).source());
    let code = causes().find_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error());
    Error::System(match code {
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

#[cfg(test)]
mod tests {
    #[test]
    fn old_kernels_are_told_by_their_release() {
        let refused = |release| super::of_release(release).map(|error| error.to_string());
        for new in ["5.18", "5.18.0-rc1\n", "6.1.0-44-amd64", "unreadable", ""] {
            assert_eq!(refused(new), None);
        }
        for old in ["4.19.0", "5.17.15-generic\n"] {
            assert_eq!(refused(old).unwrap(), format!("--bpf needs Linux 5.18, and this is {}", old.trim_end()));
        }
    }
}
