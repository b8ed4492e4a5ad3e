//! Remembers if standard output was closed when the process started.
//!
//! Before `main`, the standard library opens `/dev/null` for standard streams that are closed. A result would be lost
//! there without an error.

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// True if standard output was closed when the process started.
pub(crate) fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

/// The entry by which the loader calls [`check`] before the standard library is initialized.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
// SAFETY: the section is a list of functions of this type.
#[unsafe(link_section = ".init_array")]
#[used]
static CHECK: extern "C" fn() = check;

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
extern "C" fn check() {
    // SAFETY: the call takes numbers only.
    let is_closed = unsafe { libc::fcntl(1, libc::F_GETFD) } == -1;
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}
