//! Files that are cut short while they are mapped: what is read beyond their end is zeros, and no death by SIGBUS.
//!
//! The files are those that programs run. Copies of them would cost hundreds of megabytes, and whoever installs over a
//! running program truncates it in place now and then.
#![allow(unsafe_code)]

use std::sync::Once;

/// From here on, a page that has gone from under a mapping reads as zeros.
pub fn survive() {
    static ONCE: Once = Once::new();
    ONCE.call_once(install);
}

fn install() {
    // SAFETY: zeros are an action; the handler keeps to what handlers may do.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = replace_page as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

/// Puts a page of zeros where the fault was; the access is then tried again. Where that cannot be done the process ends
/// as it would have.
extern "C" fn replace_page(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid description. A fault of this kind is one within a mapping of a file, which this
    // process only reads; sysconf and mmap are system calls here, and errno is put back.
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
    // SAFETY: it takes nothing and always answers.
    unsafe { libc::__error() }
}

#[cfg(not(any(target_os = "macos", target_os = "ios", target_os = "freebsd")))]
unsafe fn errno() -> *mut libc::c_int {
    // SAFETY: it takes nothing and always answers.
    unsafe { libc::__errno_location() }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    #[test]
    fn what_was_cut_off_reads_as_zeros() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 20_000]).unwrap();
        let bytes = crate::perf::objects::mapped_file::map_file(&file).unwrap();
        file.set_len(5000).unwrap();
        assert_eq!((bytes[4999], bytes[5000], bytes[19_999]), (7, 0, 0));
        file.set_len(0).unwrap();
        assert_eq!(bytes[4999], 0);
    }
}
