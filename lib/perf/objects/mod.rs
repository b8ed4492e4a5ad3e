//! The owners of the code that runs: ELF files, the kernel, and code that processes generate.

pub(super) mod elf_symbols;
mod from_files;
pub(super) mod mapped_file;
pub mod mount_namespace;
pub mod object;
pub mod registry;
#[cfg(unix)]
mod sigbus;
pub mod vsyscall;
