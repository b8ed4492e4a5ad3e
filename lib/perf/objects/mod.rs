//! The files whose code runs in a recording, and the kernel.

mod from_files;
pub(super) mod mapped_file;
pub mod mount_namespace;
pub mod object;
pub mod registry;
#[cfg(unix)]
mod sigbus;
