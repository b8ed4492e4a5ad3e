//! Signal dispositions of the processes that tests start.

#![allow(unsafe_code)]

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

/// The signals that a test runner's parent may have left ignored. `nohup` ignores SIGHUP, `COMMAND &` in a script
/// ignores SIGINT and SIGQUIT.
pub const INHERITED: [i32; 5] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTERM];

/// Makes a command's process start with default dispositions.
///
/// Ignored signals stay ignored across `execve`, and the programs under test respect that. Without this, a test that
/// interrupts a program would hang where the test runner itself ignores SIGINT.
pub fn reset_in_child(command: &mut Command) {
    // SAFETY: signal is async-signal-safe, so it may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            for signal in INHERITED {
                if libc::signal(signal, libc::SIG_DFL) == libc::SIG_ERR {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

/// Sends a signal to a child.
pub fn send(child: &Child, signal: i32) {
    send_to(child.id().try_into().unwrap(), signal);
}

/// Sends a signal to a child's process group, as a terminal does for Ctrl-C.
pub fn send_to_group(leader: &Child, signal: i32) {
    send_to(-i32::try_from(leader.id()).unwrap(), signal);
}

/// `target` is an argument of kill(2): a process, or the negative number of a process group.
fn send_to(target: i32, signal: i32) {
    // SAFETY: kill has no memory effects. The child has not been waited for, so its number is not in use elsewhere.
    assert_eq!(unsafe { libc::kill(target, signal) }, 0, "kill {target}: {}", std::io::Error::last_os_error());
}
