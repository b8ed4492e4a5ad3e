//! The command that is to be profiled: started, held until the counters stand, then let go.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::{Builder, JoinHandle};

use crate::{Error, io_error_text};

/// A command that waits for the word to run its program.
pub struct SuspendedCommand {
    name: String,
    pid: u32,
    go: PipeWriter,
    // Until the program runs, or cannot, the call that starts it does not return.
    starting: JoinHandle<io::Result<Child>>,
}

impl SuspendedCommand {
    /// Makes the process. With `quiet_stdout`, what it prints goes to our standard error, since the profile goes to
    /// standard output. With a user's name the program runs as that user.
    ///
    /// # Errors
    /// [`Error::Command`], [`Error::Invalid`] if there is no such user.
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
            if !rustix::process::geteuid().is_root() {
                return Err(Error::System("only root may run a command as another user (--user)".to_owned()));
            }
            let no_such_user = || Error::Invalid(format!("no such user: {user}"));
            super::sys::run_as(&mut command, super::sys::User::named(user).ok_or_else(no_such_user)?);
        }
        let (mut reported, report): (PipeReader, PipeWriter) = io::pipe().map_err(failed)?;
        let (wait, go) = io::pipe().map_err(failed)?;
        let ours = [reported.as_raw_fd(), go.as_raw_fd()];
        super::sys::hold(&mut command, OwnedFd::from(report), OwnedFd::from(wait), ours);
        let starting = Builder::new().spawn(move || command.spawn()).map_err(failed)?;
        let mut number = [0; 4];
        if reported.read_exact(&mut number).is_err() {
            drop(go);
            let error = starting.join().map_err(|_| Error::AlreadyReported)?.err();
            return Err(cannot_start(&name, &error.unwrap_or_else(|| io::ErrorKind::Other.into())));
        }
        Ok(Self { name, pid: u32::from_le_bytes(number), go, starting })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it run.
    ///
    /// # Errors
    /// [`Error::Command`] if the program cannot be run.
    pub fn release(mut self) -> Result<Running, Error> {
        let told = self.go.write_all(b"!");
        drop(self.go);
        let started = self.starting.join().map_err(|_| Error::AlreadyReported)?;
        let child = told.and(started).map_err(|error| cannot_start(&self.name, &error))?;
        Ok(Running { child })
    }
}

fn cannot_start(name: &str, error: &io::Error) -> Error {
    let status = match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    };
    Error::Command { status, what: format!("cannot run {name}: {}", io_error_text(error)) }
}

/// A command at work.
pub struct Running {
    child: Child,
}

impl Running {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end with a signal, if it still runs.
    pub fn signal(&mut self, signal: rustix::process::Signal) {
        if let Ok(None) = self.child.try_wait()
            && let Some(pid) = rustix::process::Pid::from_raw(self.child.id().cast_signed())
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Waits for its end; the exit status as a shell tells it: 128 and the signal's number if one killed it.
    ///
    /// # Errors
    /// [`Error::System`] if it cannot be waited for.
    pub fn wait(&mut self) -> Result<u8, Error> {
        let status = self.child.wait().map_err(|error| Error::System(io_error_text(&error)))?;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ok(u8::try_from(code).unwrap_or(255))
    }
}
