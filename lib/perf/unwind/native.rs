//! The CPU architecture that this program was built for.

#[cfg(target_arch = "aarch64")]
pub(super) use super::aarch64::Aarch64 as Native;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use super::unsupported::Unsupported as Native;
#[cfg(target_arch = "x86_64")]
pub(super) use super::x86_64::X86_64 as Native;
