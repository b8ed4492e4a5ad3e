//! Explains why the kernel rejects the BPF program.

use std::error::Error as StdError;

use crate::Error;
use crate::record::bpf::Refusal;

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
pub fn load_error(error: &(dyn StdError + 'static)) -> Error {
    refusal_error(Refusal::from_error(error))
}

/// Returns the error for a program that was refused.
pub fn refusal_error(refusal: Refusal) -> Error {
    Error::System(match refusal {
        Refusal::NoTypeInformation => {
            "--bpf needs a kernel with type information (CONFIG_DEBUG_INFO_BTF); record without --bpf".to_owned()
        }
        Refusal::NoPermission => "--bpf needs root, or CAP_BPF and CAP_PERFMON".to_owned(),
        refusal @ (Refusal::InPidNamespace | Refusal::TooManyFiles) => {
            format!("--bpf: {refusal}; record without --bpf")
        }
        Refusal::Rejected(message) => {
            format!("--bpf needs Linux 5.18 or later; this kernel rejects the program: {message}")
        }
    })
}

#[cfg(test)]
mod tests {
    fn check_release(release: &str) -> Option<String> {
        super::check_release(release).err().map(|error| error.to_string())
    }

    #[test]
    fn rejects_old_kernels_by_their_release() {
        for new in ["5.18", "5.18.0-rc1\n", "6.1.0-44-amd64", "unreadable", ""] {
            assert_eq!(check_release(new), None);
        }
        for old in ["4.19.0", "5.17.15-generic\n"] {
            assert_eq!(
                check_release(old).unwrap(),
                format!("--bpf needs Linux 5.18 or later; this is {}", old.trim_end())
            );
        }
    }
}
