//! Protects reads of memory-mapped files that another process truncates: the missing pages read as zeros, where SIGBUS
//! would kill us.
//!
//! The files are programs and libraries that run. Copies of them would take hundreds of megabytes, and installing a new
//! version over a running program sometimes truncates it in place.
#![allow(unsafe_code)]

use std::sync::Once;

/// Installs the SIGBUS handler, once per process.
pub fn install_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(install);
}

fn install() {
    // SAFETY: all-zero is a valid sigaction, and the handler makes only async-signal-safe calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = map_zero_page as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

/// Maps a page of zeros at the faulting address; the access is then repeated and succeeds. If that is impossible, the
/// repeated access ends the process as it would have without a handler.
extern "C" fn map_zero_page(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo. BUS_ADRERR means an access to a mapped file beyond its end, and this
    // process only reads mapped files. sysconf and mmap do not allocate or lock here, and errno is restored.
    unsafe {
        let errno = *errno();
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let start = ((*info).si_addr() as usize & !(page - 1)) as *mut libc::c_void;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED;
        let is_beyond_file = (*info).si_code == libc::BUS_ADRERR;
        if !is_beyond_file || libc::mmap(start, page, libc::PROT_READ, flags, -1, 0) == libc::MAP_FAILED {
            libc::signal(libc::SIGBUS, libc::SIG_DFL);
        }
        *self::errno() = errno;
    }
}

#[cfg(any(target_os = "macos", target_os = "ios", target_os = "freebsd"))]
unsafe fn errno() -> *mut libc::c_int {
    // SAFETY: the function has no preconditions and always returns a valid pointer.
    unsafe { libc::__error() }
}

#[cfg(not(any(target_os = "macos", target_os = "ios", target_os = "freebsd")))]
unsafe fn errno() -> *mut libc::c_int {
    // SAFETY: the function has no preconditions and always returns a valid pointer.
    unsafe { libc::__errno_location() }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use crate::perf::objects::mapped_file::map_file;

    #[test]
    fn reads_zeros_where_a_file_was_truncated() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 20_000]).unwrap();
        let bytes = map_file(&file).unwrap();
        file.set_len(5000).unwrap();
        assert_eq!((bytes[4999], bytes[5000], bytes[19_999]), (7, 0, 0));
        file.set_len(0).unwrap();
        assert_eq!(bytes[4999], 0);
    }
}
