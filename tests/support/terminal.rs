//! A pseudoterminal, to see what programs do on a terminal.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

/// A pseudoterminal. The test is its screen and its keyboard.
pub struct Terminal {
    keyboard: File,
    line: OwnedFd,
    screen: JoinHandle<Vec<u8>>,
}

impl Terminal {
    pub fn open() -> Self {
        let (mut ours, mut theirs) = (-1, -1);
        let no_name = std::ptr::null_mut();
        // SAFETY: both descriptors are written if it returns 0, and name, settings and size may be null.
        let opened =
            unsafe { libc::openpty(&mut ours, &mut theirs, no_name, std::ptr::null_mut(), std::ptr::null_mut()) };
        assert_eq!(opened, 0, "openpty: {}", std::io::Error::last_os_error());
        // SAFETY: both were just opened and have no other owner.
        let (ours, line) = unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
        for descriptor in [ours.as_raw_fd(), line.as_raw_fd()] {
            // SAFETY: the descriptor is open. Children must not inherit it, except as a standard stream.
            unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        let mut screen = ours.try_clone().unwrap();
        let screen = std::thread::spawn(move || {
            let (mut seen, mut block) = (Vec::new(), [0; 4096]);
            // Reading fails with EIO once no process has the terminal open.
            while let Ok(read @ 1..) = screen.read(&mut block) {
                seen.extend_from_slice(&block[..read]);
            }
            seen
        });
        Self { keyboard: ours, line, screen }
    }

    /// Returns the terminal for a standard stream of a program.
    pub fn stream(&self) -> Stdio {
        self.line.try_clone().unwrap().into()
    }

    /// Makes this the controlling terminal of a command, which gets a session of its own.
    pub fn control<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let line = self.line.as_raw_fd();
        // SAFETY: setsid and ioctl may be called between fork and exec.
        unsafe {
            command.pre_exec(move || match libc::setsid() >= 0 && libc::ioctl(line, libc::TIOCSCTTY as _, 0) == 0 {
                true => Ok(()),
                false => Err(std::io::Error::last_os_error()),
            })
        }
    }

    /// Types keys.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns everything that was shown, once all programs have closed the terminal.
    pub fn shown(self) -> String {
        drop(self.line);
        String::from_utf8_lossy(&self.screen.join().unwrap()).into_owned()
    }
}
