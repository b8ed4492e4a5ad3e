//! How recordings end: with the command's status, by signals, and when the command cannot be run at all.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command};

use crate::folded::{Background, Folded, end, may_record, record, recorder, send};
use crate::programs::program;
use crate::support::{directory, eventually};

#[test]
fn the_commands_exit_status_is_passed_on() {
    if !may_record() {
        return;
    }
    for (script, status) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 125", 125),
        ("exit 255", 255),
        ("kill -KILL $$", 128 + 9),
        ("kill -USR1 $$", 128 + 10),
        ("kill -PIPE $$", 128 + 13),
    ] {
        let outcome = record(["--", "sh", "-c", script]);
        assert_eq!(outcome.code(), status, "{script}: {outcome:?}");
    }
}

#[test]
fn a_command_that_cannot_be_run_is_told_from_one_that_fails() {
    if !may_record() {
        return;
    }
    let folder = directory();
    let script = folder.path().join("not-executable");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    for (command, status, why) in [
        ("/nonexistent/command", 127, "No such file or directory"),
        ("no-command-is-called-that", 127, "No such file or directory"),
        (script.to_str().unwrap(), 126, "Permission denied"),
        ("/", 126, "Permission denied"),
    ] {
        let outcome = record(["--", command]);
        assert_eq!(outcome.code(), status, "{outcome:?}");
        assert_eq!(outcome.stderr, format!("fg-record: cannot run {command}: {why}\n"));
        assert_eq!(outcome.text(), "");
    }
}

#[test]
fn what_was_sampled_before_the_command_was_killed_is_there() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let script = format!("{busy} 20 & sleep 0.3; kill -KILL $!; wait $!; kill -KILL $$");
    let outcome = record(["--", "sh", "-c", &script]);
    assert_eq!(outcome.code(), 128 + libc::SIGKILL, "{outcome:?}");
    Folded::of(&outcome).assert_share(&["busy", "main", "spin", "step"], 0.5);
}

/// A recording of a command that has said that it runs.
struct Begun {
    folder: tempfile::TempDir,
    recording: Child,
}

impl Begun {
    fn of(script: &str) -> Self {
        let folder = directory();
        let mut command = recorder(["--", "sh", "-c", script]);
        // A group of its own, as an interactive shell gives it.
        let recording = command.current_dir(&folder).process_group(0).spawn().unwrap();
        let begun = Self { folder, recording };
        assert!(eventually(|| begun.has("begun")), "the command does not run");
        begun
    }

    fn has(&self, name: &str) -> bool {
        self.path().join(name).exists()
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn send(&self, signal: i32) {
        send(&self.recording, signal);
    }
}

/// Some work, so that there are samples, and then the word that it was done.
const WORK: &str = "n=0; while [ $n -lt 50000 ]; do n=$((n + 1)); done; : > begun";

/// Then a wait for something, but not for ever, should it not come.
fn wait_until(condition: &str) -> String {
    format!("{WORK}; while [ $n -gt 49600 ] && ! {condition}; do n=$((n - 1)); sleep 0.05; done")
}

#[test]
fn ctrl_c_ends_command_and_recording() {
    if !may_record() {
        return;
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let begun = Begun::of(&format!("{WORK}; while [ $n -lt 9000000 ]; do n=$((n + 1)); done"));
        #[allow(unsafe_code)]
        // SAFETY: the group's leader has not been waited for, so the number is still its own.
        unsafe {
            libc::kill(-libc::pid_t::try_from(begun.recording.id()).unwrap(), signal);
        }
        let outcome = end(begun.recording);
        assert_eq!(outcome.code(), 128 + signal, "{outcome:?}");
        assert!(Folded::of(&outcome).total() > 0, "{outcome:?}");
        assert!(outcome.stderr.contains("samples of"), "{outcome:?}");
    }
}

#[test]
fn a_signal_that_means_the_whole_job_is_passed_on() {
    if !may_record() {
        return;
    }
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        let begun = Begun::of(&format!("trap 'exit 9' TERM HUP; {}", wait_until("false")));
        begun.send(signal);
        let outcome = end(begun.recording);
        assert_eq!(outcome.code(), 9, "{outcome:?}");
        assert!(Folded::of(&outcome).total() > 0, "{outcome:?}");
    }
}

#[test]
fn a_recorder_that_alone_is_interrupted_prints_and_waits_for_the_command() {
    if !may_record() {
        return;
    }
    let mut begun = Begun::of(&format!("{}; exit 7", wait_until("[ -e printed ]")));
    begun.send(libc::SIGINT);
    let mut profile = Vec::new();
    // The end of the profile comes before the end of the command: it waits for us.
    std::io::Read::read_to_end(begun.recording.stdout.as_mut().unwrap(), &mut profile).unwrap();
    assert!(Folded::parse(&profile).total() > 0);
    assert!(begun.recording.try_wait().unwrap().is_none());
    std::fs::write(begun.path().join("printed"), "").unwrap();
    let outcome = end(begun.recording);
    assert_eq!(outcome.code(), 7, "{outcome:?}");
}

#[test]
fn the_second_signal_kills() {
    if !may_record() {
        return;
    }
    let script = format!("echo $$ > pid; trap '' INT TERM; {}", wait_until("false"));
    let mut begun = Begun::of(&script);
    let ended = eventually(|| {
        begun.send(libc::SIGTERM);
        begun.recording.try_wait().unwrap().is_some()
    });
    let left = std::fs::read_to_string(begun.path().join("pid")).unwrap();
    Command::new("kill").args(["-KILL", left.trim()]).status().unwrap();
    assert!(ended, "the recorder does not end");
    let outcome = end(begun.recording);
    assert_eq!(outcome.status.signal(), Some(libc::SIGTERM), "{outcome:?}");
}

#[test]
fn an_interrupted_recording_of_a_process_succeeds_and_leaves_it_alone() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let mut process = Background::start(Command::new(&busy).arg("20"));
        let recording = recorder(["-F", "997", "-p", &process.pid()]).spawn().unwrap();
        assert!(eventually(|| catches(&recording, signal)), "the recorder does not begin");
        std::thread::sleep(std::time::Duration::from_millis(300));
        send(&recording, signal);
        let outcome = end(recording).ok();
        Folded::of(&outcome).assert_share(&["busy", "main", "spin", "step"], 0.8);
        assert!(process.runs(), "{outcome:?}");
    }
}

/// Whether a process has a handler for a signal, by what the kernel says of it.
fn catches(process: &Child, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (signal - 1)) != 0
}
