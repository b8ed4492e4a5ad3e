//! The command to profile: it is started, suspended until its counters are open, and then resumed.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::{Builder, JoinHandle};

use super::sys;
use crate::{Error, io_error_text};

/// A command whose process exists, but does not run its program yet.
pub struct SuspendedCommand {
    name: String,
    pid: u32,
    resume: PipeWriter,
    // `Command::spawn` only returns when the program runs or exec has failed, so it has a thread of its own.
    spawner: JoinHandle<io::Result<Child>>,
}

impl SuspendedCommand {
    /// Creates the command's process. `quiet_stdout` sends the command's output to our standard error, for when the
    /// profile goes to standard output. `user` is the name of the user that the command runs as.
    ///
    /// # Errors
    /// [`Error::Command`] if the process cannot be created, [`Error::Invalid`] if there is no such user.
    pub fn start(words: &[OsString], quiet_stdout: bool, user: Option<&str>) -> Result<Self, Error> {
        let (program, arguments) =
            words.split_first().ok_or_else(|| Error::Usage("name a command to record".to_owned()))?;
        let name = program.to_string_lossy().into_owned();
        let failed = |error: io::Error| cannot_start(&name, &error);
        let mut command = Command::new(program);
        command.args(arguments);
        if quiet_stdout {
            command.stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned().map_err(failed)?));
        }
        if let Some(user) = user {
            sys::run_as(&mut command, lookup_user(user)?);
        }
        let (mut report_reader, report): (PipeReader, PipeWriter) = io::pipe().map_err(failed)?;
        let (resume_reader, resume) = io::pipe().map_err(failed)?;
        let parent_ends = [report_reader.as_raw_fd(), resume.as_raw_fd()];
        sys::suspend_before_exec(&mut command, OwnedFd::from(report), OwnedFd::from(resume_reader), parent_ends);
        let spawner = Builder::new().spawn(move || command.spawn()).map_err(failed)?;
        let mut pid = [0; 4];
        if report_reader.read_exact(&mut pid).is_err() {
            drop(resume);
            let error = spawner.join().map_err(|_| Error::AlreadyReported)?.err();
            return Err(cannot_start(&name, &error.unwrap_or_else(|| io::ErrorKind::Other.into())));
        }
        Ok(Self { name, pid: u32::from_le_bytes(pid), resume, spawner })
    }

    /// Returns the ID of the command's process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the command run its program.
    ///
    /// # Errors
    /// [`Error::Command`] if the program cannot be run.
    pub fn resume(mut self) -> Result<RunningCommand, Error> {
        let resumed = self.resume.write_all(b"!");
        drop(self.resume);
        let spawned = self.spawner.join().map_err(|_| Error::AlreadyReported)?;
        let child = resumed.and(spawned).map_err(|error| cannot_start(&self.name, &error))?;
        Ok(RunningCommand { child })
    }
}

fn lookup_user(name: &str) -> Result<sys::User, Error> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::System(format!("--user {name}: only root may run a command as another user; use sudo")));
    }
    sys::User::lookup(name).ok_or_else(|| Error::Invalid(format!("--user {name}: no such user")))
}

/// Returns the error, with the exit status that a shell would have: 127 not found, 126 not executable.
fn cannot_start(name: &str, error: &io::Error) -> Error {
    let status = match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    };
    Error::Command { status, what: format!("cannot run {name}: {}", io_error_text(error)) }
}

/// A command whose program runs, or has run.
pub struct RunningCommand {
    child: Child,
}

impl RunningCommand {
    /// Returns the ID of the command's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the command if it still runs.
    pub fn signal(&mut self, signal: rustix::process::Signal) {
        if let Ok(None) = self.child.try_wait()
            && let Some(pid) = rustix::process::Pid::from_raw(self.child.id().cast_signed())
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Waits until the command exits. Returns its exit status as a shell does: 128 and the signal's number if it was
    /// killed.
    ///
    /// # Errors
    /// [`Error::System`] if waiting fails.
    pub fn wait(&mut self) -> Result<u8, Error> {
        let status = self.child.wait().map_err(|error| Error::System(io_error_text(&error)))?;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ok(u8::try_from(code).unwrap_or(255))
    }
}
