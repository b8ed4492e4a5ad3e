//! Asks HotSpot for the names of the methods that it has compiled (`Compiler.perfmap`, JDK 17 and later).
//!
//! Where no BPF program reads them at the sample, names come from `/tmp/perf-PID.map`. HotSpot writes this file when it is
//! asked to over its attach socket, as `jcmd` does. It opens the socket when it finds a file of an agreed name in its
//! directory after a SIGQUIT (`attachListener_linux.cpp` of the JDK).

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::procfs;
use crate::bytes::read_lossy;
use crate::perf::recording::Recording;
use crate::perf::runtime::Runtime;

/// The time in which HotSpot opens its socket, and the time in which it answers.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(3);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The version of the protocol, the command, and its three arguments, each with a 0 behind it.
const REQUEST: &[u8] = b"1\0jcmd\0Compiler.perfmap\0\0\0";

/// The longest answer that is read.
const MAX_ANSWER: u64 = 1 << 12;

/// Options that turn attaching off. With the first one SIGQUIT prints the stacks of all threads all the same.
const REFUSING_OPTIONS: [&[u8]; 2] = [b"-XX:+DisableAttachMechanism", b"-Xrs"];

/// Has the Java processes of a recording write the names of their methods. Returns messages about it.
pub(super) fn ask_processes(recording: &Recording) -> Vec<String> {
    let asked = recording.processes_with(Runtime::Java).into_iter().filter(|pid| procfs::thread_exists(*pid));
    let notes = asked.map(|pid| match write_perf_map(pid) {
        Ok(()) => format!("asked java process {pid} for the names of its methods; --no-attach turns this off"),
        Err(reason) => format!("cannot ask java process {pid} for the names of its methods: {reason}"),
    });
    notes.collect()
}

/// Has a Java process write the names of its compiled methods.
///
/// # Errors
/// The reason in words.
fn write_perf_map(pid: u32) -> Result<(), String> {
    let process = JavaProcess::find(pid)?;
    process.open_socket()?;
    let answer = process.ask().map_err(|error| error.to_string())?;
    // The first line is the status.
    match answer.split_once('\n') {
        Some(("0", _)) => Ok(()),
        Some((_, text)) if text.contains("Unknown diagnostic command") => Err("it is older than JDK 17".to_owned()),
        _ => Err(format!("it answers {:?}", answer.trim_end())),
    }
}

/// A Java process that we may attach to.
struct JavaProcess {
    pid: u32,
    /// The process ID in its own namespace.
    own_pid: u32,
    /// The effective user.
    user: u32,
    /// True if the process handles SIGQUIT, which else ends it.
    handles_quit: bool,
}

impl JavaProcess {
    /// Reads what a process is from `/proc`.
    ///
    /// # Errors
    /// The reason why it cannot be attached to, in words.
    fn find(pid: u32) -> Result<Self, String> {
        let status = read_lossy(format!("/proc/{pid}/status")).map_err(|_| "it has exited".to_owned())?;
        let process = Self::parse(pid, &status).ok_or("its status cannot be read")?;
        let own_user = geteuid().as_raw();
        if own_user != process.user && own_user != 0 {
            return Err("it is of another user".to_owned());
        }
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let refusing = arguments.split(|byte| *byte == 0).find(|argument| REFUSING_OPTIONS.contains(argument));
        match refusing {
            Some(option) => Err(format!("it runs with {}", String::from_utf8_lossy(option))),
            None => Ok(process),
        }
    }

    fn parse(pid: u32, status: &str) -> Option<Self> {
        let caught = u64::from_str_radix(find_field(status, "SigCgt:")?.trim(), 16).ok()?;
        Some(Self {
            pid,
            own_pid: find_field(status, "NSpid:")?.split_whitespace().next_back()?.parse().ok()?,
            user: find_field(status, "Uid:")?.split_whitespace().nth(1)?.parse().ok()?,
            handles_quit: caught >> (Signal::QUIT.as_raw() - 1) & 1 != 0,
        })
    }

    fn socket(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root/tmp/.java_pid{}", self.pid, self.own_pid))
    }

    /// True if the process has opened its socket. `/tmp` is open to everybody.
    fn has_socket(&self) -> bool {
        let file = fs::symlink_metadata(self.socket());
        file.is_ok_and(|file| file.file_type().is_socket() && (file.uid() == self.user || file.uid() == 0))
    }

    /// Has the process open its socket, if it has not yet.
    fn open_socket(&self) -> Result<(), String> {
        if self.has_socket() {
            return Ok(());
        }
        if !self.handles_quit {
            return Err("it does not handle SIGQUIT".to_owned());
        }
        let name = format!(".attach_pid{}", self.own_pid);
        let folders = ["cwd", "root/tmp"].map(|folder| PathBuf::from(format!("/proc/{}/{folder}", self.pid)));
        let request = folders.iter().find_map(|folder| RequestFile::create(&folder.join(&name)));
        let _request = request.ok_or("no file can be created in its directory or in /tmp")?;
        let pid = Pid::from_raw(self.pid.cast_signed()).ok_or("it has exited")?;
        kill_process(pid, Signal::QUIT).map_err(|error| error.to_string())?;
        let start = Instant::now();
        while !self.has_socket() {
            if start.elapsed() > SOCKET_TIMEOUT {
                return Err("it does not answer".to_owned());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Sends the request, and returns the answer.
    fn ask(&self) -> std::io::Result<String> {
        let mut socket = UnixStream::connect(self.socket())?;
        socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        socket.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        socket.write_all(REQUEST)?;
        let mut answer = Vec::new();
        socket.take(MAX_ANSWER).read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// The file that asks for the socket. It exists as long as this.
struct RequestFile(PathBuf);

impl RequestFile {
    fn create(path: &Path) -> Option<Self> {
        let file: Option<File> = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).ok();
        file.map(|_| Self(path.to_owned()))
    }
}

impl Drop for RequestFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns the text behind a field's name in `/proc/PID/status`.
fn find_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))
}

#[cfg(test)]
mod tests {
    use super::JavaProcess;

    const STATUS: &str = "Name:\tjava\nUid:\t1000\t1001\t1000\t1000\nNSpid:\t4711\t17\nSigCgt:\t2000000181005ccf\n";

    #[test]
    fn reads_the_status_of_a_process() {
        let process = JavaProcess::parse(4711, STATUS).unwrap();
        assert_eq!((process.own_pid, process.user, process.handles_quit), (17, 1001, true));
        assert_eq!(process.socket().to_str(), Some("/proc/4711/root/tmp/.java_pid17"));
        let process = JavaProcess::parse(4711, &STATUS.replace("5ccf", "5ccb")).unwrap();
        assert!(!process.handles_quit);
        assert!(JavaProcess::parse(4711, "Name:\tjava\n").is_none());
    }
}
