//! A process that is ended at a deadline, with all that it started.

use std::io::{self, Read};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::watcher::Watcher;

/// Time between two looks at the process. It delays the next run by half of it on average, and no measure.
const POLL: Duration = Duration::from_millis(20);

/// Most bytes of standard error that are kept.
const TAIL: usize = 4096;

/// Time in which standard error must end after the process; a process that it left behind may hold it open.
const GRACE: Duration = Duration::from_millis(200);

/// The end of a process.
#[derive(Debug)]
pub enum End {
    /// It exited, or a signal ended it.
    Exited(ExitStatus),
    /// It was ended at the deadline.
    TimedOut,
    /// It was ended because the user interrupted.
    Interrupted,
}

/// Runs a process to its end. Returns the end, and the last lines of its standard error. `poll` is called now and then. The
/// watcher ends the process if we are killed.
///
/// # Errors
/// The process cannot be started or waited for.
pub fn run(
    mut command: Command,
    watcher: &Watcher,
    deadline: Option<Instant>,
    is_interrupted: &dyn Fn() -> bool,
    mut poll: impl FnMut(),
) -> io::Result<(End, String)> {
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    own_group(&mut command);
    let mut child = command.spawn()?;
    watcher.note_start(child.id());
    let tail = child.stderr.take().map(read_tail);
    let end = loop {
        if let Some(status) = child.try_wait()? {
            break End::Exited(status);
        }
        let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late || is_interrupted() {
            kill(&mut child)?;
            break if is_late { End::TimedOut } else { End::Interrupted };
        }
        poll();
        std::thread::sleep(POLL);
    };
    watcher.note_end();
    let tail = tail.and_then(|tail| tail.recv_timeout(GRACE).ok()).unwrap_or_default();
    Ok((end, tail))
}

/// Reads standard error on a thread, and sends its last lines when it ends.
fn read_tail(mut stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = channel();
    // Without a thread there are no last lines: the pipe is closed, and the process may see that.
    let _ = std::thread::Builder::new().spawn(move || {
        let (mut tail, mut buffer) = (Vec::new(), [0; TAIL]);
        while let Ok(count @ 1..) = stderr.read(&mut buffer) {
            tail.extend_from_slice(&buffer[..count]);
            tail.drain(..tail.len().saturating_sub(TAIL));
        }
        let _ = sender.send(String::from_utf8_lossy(&tail).into_owned());
    });
    receiver
}

/// Makes a command the first process of a group.
#[cfg(unix)]
pub fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    command.process_group(0);
}

#[cfg(not(unix))]
pub fn own_group(_: &mut Command) {}

/// Ends the process and its group.
fn kill(child: &mut Child) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    child.kill()?;
    child.wait().map(drop)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{End, Watcher};
    use std::io;
    use std::process::Command;
    use std::time::{Duration, Instant};

    fn shell(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    fn run(
        command: Command,
        deadline: Option<Instant>,
        is_interrupted: &dyn Fn() -> bool,
        poll: impl FnMut(),
    ) -> io::Result<(End, String)> {
        super::run(command, &Watcher::start(), deadline, is_interrupted, poll)
    }

    fn is_alive(process: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn keeps_the_end_of_standard_error() {
        let (end, tail) = run(shell("seq 100000 >&2; echo last >&2; exit 3"), None, &|| false, || {}).unwrap();
        assert!(matches!(end, End::Exited(status) if status.code() == Some(3)) && tail.ends_with("100000\nlast\n"));
        assert!(tail.len() <= super::TAIL);
    }

    #[test]
    fn ends_what_the_process_started() {
        let text = "sleep 1000 & echo $! >&2; wait";
        let mut polls = 0;
        let (end, tail) = run(shell(text), Some(Instant::now() + super::GRACE), &|| false, || polls += 1).unwrap();
        assert!(matches!(end, End::TimedOut) && polls > 0);
        // A killed process is there until it has run once more. Unless it was killed, it sleeps for longer than this.
        let deadline = Instant::now() + Duration::from_secs(300);
        while is_alive(tail.trim()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!is_alive(tail.trim()), "{tail}");
        assert!(matches!(run(shell("sleep 1000"), None, &|| true, || {}).unwrap().0, End::Interrupted));
    }
}
