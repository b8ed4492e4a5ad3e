//! A command that is started, suspended until the counters are open, and then resumed.
//!
//! If we are killed, the kernel sends the command a SIGTERM (`PR_SET_PDEATHSIG`). It does so when the thread ends that
//! created the process, so that thread lives as long as the [`RunningCommand`].

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use super::request::CommandLine;
use super::sys;
use crate::{Error, io_error_text};

/// A command whose process exists, but does not run its program yet.
pub struct SuspendedCommand {
    name: String,
    pid: u32,
    resume: PipeWriter,
    parent: ParentThread,
}

impl SuspendedCommand {
    /// Creates the command's process.
    ///
    /// # Errors
    /// [`Error::Command`] if the process cannot be created, [`Error::Invalid`] if there is no such user.
    pub fn start(line: &CommandLine) -> Result<Self, Error> {
        let (program, arguments) =
            line.words.split_first().ok_or_else(|| Error::Usage("name a command to record".to_owned()))?;
        let name = program.to_string_lossy().into_owned();
        let failed = |error: io::Error| cannot_start(&name, &error);
        let mut command = Command::new(program);
        command.args(arguments);
        if line.quiet_stdout {
            command.stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned().map_err(failed)?));
        }
        if let Some(user) = &line.user {
            sys::run_as(&mut command, lookup_user(user)?);
        }
        let (mut report_reader, report): (PipeReader, PipeWriter) = io::pipe().map_err(failed)?;
        let (resume_reader, resume) = io::pipe().map_err(failed)?;
        let parent_ends = [report_reader.as_raw_fd(), resume.as_raw_fd()];
        // After `run_as`: a process that changes its user loses its parent-death signal.
        sys::suspend_before_exec(&mut command, OwnedFd::from(report), OwnedFd::from(resume_reader), parent_ends);
        let parent = ParentThread::spawn(command).map_err(failed)?;
        let mut pid = [0; 4];
        if report_reader.read_exact(&mut pid).is_err() {
            drop(resume);
            let error = parent.wait_for_exec().err();
            return Err(cannot_start(&name, &error.unwrap_or_else(|| io::ErrorKind::Other.into())));
        }
        Ok(Self { name, pid: u32::from_le_bytes(pid), resume, parent })
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
        // It fails if a signal has ended the process: then the command has exited.
        let _ = self.resume.write_all(b"!");
        drop(self.resume);
        let child = self.parent.wait_for_exec().map_err(|error| cannot_start(&self.name, &error))?;
        Ok(RunningCommand { child, _parent: self.parent })
    }
}

/// The thread that creates the command's process. It ends when the value is dropped.
struct ParentThread {
    spawned: Receiver<io::Result<Child>>,
    _end: Sender<()>,
}

impl ParentThread {
    /// Starts the thread, which creates the process.
    fn spawn(mut command: Command) -> io::Result<Self> {
        let ((sender, spawned), (end, ended)) = (channel(), channel::<()>());
        Builder::new().spawn(move || {
            // `Command::spawn` only returns when the program runs or exec has failed.
            let result = command.spawn();
            // Closes our copies of the pipes that the process was suspended with.
            drop(command);
            let is_running = result.is_ok();
            if sender.send(result).is_ok() && is_running {
                let _ = ended.recv();
            }
        })?;
        Ok(Self { spawned, _end: end })
    }

    /// Waits until the program runs or exec has failed.
    fn wait_for_exec(&self) -> io::Result<Child> {
        self.spawned.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
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
    _parent: ParentThread,
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

    /// Waits until the command exits. Returns its exit status as a shell does: 128 plus the signal's number if it was
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
