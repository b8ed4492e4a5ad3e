//! The CPU architecture that this program was built for, and what it can unwind.

use std::env::consts::ARCH;

#[cfg(target_arch = "aarch64")]
pub(super) use super::aarch64::Aarch64 as Native;
use super::arch::Architecture as _;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use super::unsupported::Unsupported as Native;
#[cfg(target_arch = "x86_64")]
pub(super) use super::x86_64::X86_64 as Native;
use crate::perf::objects::object::Object;
use crate::perf::objects::registry::Objects;

/// The architectures on which stacks can be unwound, as `uname -m` prints them.
const SUPPORTED: [&str; 2] = ["x86_64", "aarch64"];

/// Checks that `--call-graph dwarf` works on an architecture.
///
/// # Errors
/// A message that names what is supported.
pub fn check_architecture(architecture: &str) -> Result<(), String> {
    if SUPPORTED.contains(&architecture) {
        return Ok(());
    }
    let supported = SUPPORTED.join(" and ");
    Err(format!("--call-graph dwarf: {architecture} is not supported ({supported} are); use --call-graph fp"))
}

/// True if stacks that were copied on an architecture can be unwound by this program.
pub fn can_unwind(architecture: &str) -> bool {
    architecture == ARCH && SUPPORTED.contains(&architecture)
}

/// Returns what to do about copied stacks of an architecture that cannot be unwound by this program.
pub fn explain_foreign(architecture: &str) -> String {
    if SUPPORTED.contains(&architecture) {
        return format!(
            "recorded on {architecture}: copied stacks are not unwound on {ARCH}; run fg-collapse on the machine that was \
             recorded, or record with --call-graph fp"
        );
    }
    let supported = SUPPORTED.join(" and ");
    format!("recorded on {architecture}: copied stacks are unwound on {supported} only; record with --call-graph fp")
}

/// Returns the architecture of the objects if they contain code of another than this program's.
pub fn find_foreign_architecture(objects: &Objects) -> Option<String> {
    objects.iter().find_map(|(_, object)| match object {
        Object::Elf(elf) if !Native::runs(elf.architecture()) => {
            Some(format!("{:?}", elf.architecture()).to_ascii_lowercase())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::{can_unwind, check_architecture, explain_foreign};

    #[test]
    fn refuses_other_architectures_by_name() {
        assert_eq!((check_architecture("x86_64"), check_architecture("aarch64")), (Ok(()), Ok(())));
        assert_eq!(
            check_architecture("riscv64").unwrap_err(),
            "--call-graph dwarf: riscv64 is not supported (x86_64 and aarch64 are); use --call-graph fp"
        );
    }

    #[test]
    fn explains_what_to_do_with_foreign_stacks() {
        let foreign = if cfg!(target_arch = "x86_64") { "aarch64" } else { "x86_64" };
        let explained = explain_foreign(foreign);
        assert!(explained.contains("run fg-collapse on the machine that was recorded"), "{explained}");
        assert_eq!(
            explain_foreign("riscv64"),
            "recorded on riscv64: copied stacks are unwound on x86_64 and aarch64 only; record with --call-graph fp"
        );
    }

    #[test]
    fn unwinds_only_stacks_of_the_same_architecture() {
        let can_unwind = ["x86_64", "aarch64", "riscv64", "s390x", ""].map(can_unwind);
        let native = [cfg!(target_arch = "x86_64"), cfg!(target_arch = "aarch64"), false, false, false];
        assert_eq!(can_unwind, native);
    }
}
