//! The system calls that no crate here wraps. All that is unsafe in recording stands in this file.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// `PERF_EVENT_IOC_SET_OUTPUT`, `_IO('$', 5)`.
const SET_OUTPUT: libc::c_ulong = 0x2405;

/// Makes a counter write into another one's ring. Both must count on the same CPU.
pub fn share_ring(counter: &File, leader: &File) -> io::Result<()> {
    // SAFETY: both are open files for the length of the call, and the request takes a file descriptor by value.
    let result = unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, leader.as_raw_fd()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes the command, once it is a process of its own but before it runs its program, send its number through `report`
/// and wait until something comes through `go`; if nothing does it never runs. `parents` are the ends of the two pipes
/// that belong to us.
pub fn hold(command: &mut Command, report: OwnedFd, go: OwnedFd, parents: [RawFd; 2]) {
    let wait = move || {
        for fd in parents {
            // SAFETY: in the child these are copies that nobody uses; closing them lets the child see our end close.
            unsafe { libc::close(fd) };
        }
        let number = std::process::id().to_le_bytes();
        let mut word = [0u8; 1];
        // SAFETY: the buffers are as long as is said, and both files are open.
        let (sent, came) = unsafe {
            let sent = libc::write(report.as_raw_fd(), number.as_ptr().cast(), number.len());
            (sent, libc::read(go.as_raw_fd(), word.as_mut_ptr().cast(), word.len()))
        };
        if sent != 4 || came != 1 {
            // Who started us may be gone by now, and with it whoever could be told.
            // SAFETY: nothing is left to be done in this process.
            unsafe { libc::_exit(127) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec only close, getpid, write, read and _exit are called, all async-signal-safe.
    unsafe { command.pre_exec(wait) };
}

/// Reads the memory of other processes.
pub struct ProcessMemory;

impl crate::perf::unwind::Memory for ProcessMemory {
    fn read(&mut self, pid: u32, address: u64, into: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
        // SAFETY: the local buffer is ours and as long as is said; the remote address is the other process's, and the
        // kernel checks it.
        let read = unsafe { libc::process_vm_readv(pid.cast_signed(), &local, 1, &remote, 1, 0) };
        usize::try_from(read).unwrap_or(0)
    }
}
