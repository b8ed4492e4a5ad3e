//! Files that become readable when processes or threads exit: pidfds.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::target::{self, Target};

/// Opens the files of the target's processes or threads, without those that have exited. Returns `None` if the target has
/// no end, or the kernel has no such files.
pub(super) fn open(target: &Target) -> Option<Vec<OwnedFd>> {
    match target {
        Target::Command(pid) => open_all(&[*pid], open_process),
        Target::Processes { .. } => open_all(&target.running_processes(), open_process),
        Target::Threads(tids) => open_all(tids, open_thread),
        Target::Cgroup(_) | Target::System => None,
    }
}

fn open_all(ids: &[u32], open: impl Fn(u32) -> Result<OwnedFd, Errno>) -> Option<Vec<OwnedFd>> {
    let opened = ids.iter().map(|id| open(*id)).filter(|file| !matches!(file, Err(Errno::SRCH)));
    opened.collect::<Result<_, _>>().ok()
}

/// Opens the file of a process.
pub(super) fn open_process(pid: u32) -> Result<OwnedFd, Errno> {
    open_with(pid, PidfdFlags::empty())
}

/// Opens the file of a thread (`PIDFD_THREAD`), or of its process before Linux 6.9.
fn open_thread(tid: u32) -> Result<OwnedFd, Errno> {
    open_with(tid, PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned()))
        .or_else(|_| open_process(target::find_process(tid).map_err(|_| Errno::SRCH)?))
}

fn open_with(id: u32, flags: PidfdFlags) -> Result<OwnedFd, Errno> {
    pidfd_open(Pid::from_raw(id.cast_signed()).ok_or(Errno::SRCH)?, flags)
}
