//! The conditions on which the last part of a recording is written.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use regex::bytes::Regex;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::{Error, io_error_text};

/// A condition on which the last part of a recording is written.
#[derive(Clone, Debug)]
pub enum Condition {
    /// A thread is blocked for longer than a time.
    Block {
        /// A thread may be blocked for this time.
        limit: Duration,
        /// A pattern that a function in the stack must match. `None` for any stack.
        function: Option<Regex>,
    },
    /// A shell command exits with status 0.
    Command(String),
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Block { limit, function: None } => write!(f, "block > {limit:?}"),
            Self::Block { limit, function: Some(function) } => write!(f, "block > {limit:?} in {function}"),
            Self::Command(command) => f.write_str(command),
        }
    }
}

/// A command that has failed starts again after this time.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A command that does not exit is waited for this long at the end of the recording.
const LAST_CHANCE: Duration = Duration::from_millis(500);

/// The processes of a command that is not waited for any more get a SIGTERM, and after this time a SIGKILL.
const TIME_TO_EXIT: Duration = Duration::from_millis(200);

/// The exit status of a shell that cannot run the command.
const CANNOT_RUN: [i32; 2] = [126, 127];

/// Runs a shell command again and again.
#[derive(Debug)]
pub(super) struct ConditionCommand {
    command: String,
    running: Option<Child>,
    next_start: Instant,
    /// True if the shell could run it.
    has_run: bool,
}

impl ConditionCommand {
    pub(super) fn new(command: String) -> Self {
        Self { command, running: None, next_start: Instant::now(), has_run: false }
    }

    /// Starts the command if it is due. Returns true if it has exited with status 0 since the last call.
    pub(super) fn poll(&mut self) -> Result<bool, Error> {
        let Some(running) = &mut self.running else {
            if Instant::now() >= self.next_start {
                match self.start() {
                    Ok(running) => self.running = Some(running),
                    // The machine may have no process to spare for a moment.
                    Err(_) if self.has_run => self.next_start = Instant::now() + RETRY_INTERVAL,
                    Err(error) => return Err(self.error(&io_error_text(&error))),
                }
            }
            return Ok(false);
        };
        let Some(status) = running.try_wait().map_err(|error| self.error(&io_error_text(&error)))? else {
            return Ok(false);
        };
        (self.running, self.next_start) = (None, Instant::now() + RETRY_INTERVAL);
        if !self.has_run && status.code().is_some_and(|code| CANNOT_RUN.contains(&code)) {
            return Err(self.error("the shell cannot run it"));
        }
        self.has_run = true;
        Ok(status.success())
    }

    /// Gives the command, which is started if it does not run, a last chance. Returns true if it exits with status 0.
    pub(super) fn poll_last(&mut self) -> bool {
        let end = Instant::now() + LAST_CHANCE;
        self.next_start = Instant::now();
        while Instant::now() < end {
            match self.poll() {
                Ok(true) => return true,
                // It has failed since it was started now.
                Ok(false) if self.running.is_none() && self.next_start > end => return false,
                Ok(false) => thread::sleep(LAST_CHANCE / 50),
                Err(_) => return false,
            }
        }
        false
    }

    /// Starts the command in a process group of its own: Ctrl-C on the terminal does not end it.
    fn start(&self) -> io::Result<Child> {
        let mut shell = Command::new("sh");
        shell.args(["-c", &self.command]).stdin(Stdio::null()).stdout(Stdio::null());
        shell.process_group(0).spawn()
    }

    fn error(&self, reason: &str) -> Error {
        Error::System(format!("--when {:?}: {reason}", self.command))
    }
}

impl Drop for ConditionCommand {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            end_process_group(running);
        }
    }
}

/// Ends a process that leads a process group, and all others in the group.
fn end_process_group(leader: &mut Child) {
    let Some(group) = Pid::from_raw(leader.id().cast_signed()) else { return };
    let _ = kill_process_group(group, Signal::TERM);
    let end = Instant::now() + TIME_TO_EXIT;
    while leader.try_wait().is_ok_and(|status| status.is_none()) || test_kill_process_group(group).is_ok() {
        if Instant::now() >= end {
            let _ = kill_process_group(group, Signal::KILL);
            break;
        }
        thread::sleep(TIME_TO_EXIT / 50);
    }
    let _ = leader.wait();
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::end_process_group;

    #[test]
    fn a_command_ends_with_its_children_even_if_they_ignore_sigterm() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' TERM; (echo started; sleep 30; echo survived); exit 1"]);
        let mut shell = shell.stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        end_process_group(&mut shell);
        // The pipe ends when no process has it open any more.
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}
