//! How recordings end: with the command's exit status, by signals, and if the command cannot be run.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use crate::support::process::{Background, Status};
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record, finish, record, record_process, recorder};
use crate::support::signals::{send, send_to_group};
use crate::support::{command, directory, eventually};

#[test]
fn passes_on_the_exit_status_of_the_command() {
    if !can_record() {
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
fn distinguishes_a_command_that_cannot_be_run_from_one_that_fails() {
    if !can_record() {
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
fn keeps_the_samples_of_a_command_that_is_killed() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    // utime is field 14: 20 ticks are 0.2 s.
    let script = format!(
        "{busy} 20 & while [ \"$(cut -d ' ' -f 14 /proc/$!/stat)\" -lt 20 ]; do sleep 0.01; done; \
         kill -KILL $!; wait $!; kill -KILL $$"
    );
    let outcome = record(["--", "sh", "-c", &script]);
    assert_eq!(outcome.code(), 128 + libc::SIGKILL, "{outcome:?}");
    Profile::from_stdout(&outcome).assert_contains(&["busy", "main", "spin", "step"]);
}

/// A recording of a command that has done some work.
struct RunningRecording {
    folder: tempfile::TempDir,
    recorder: Child,
}

impl RunningRecording {
    /// Records a shell script, which creates the file `begun` in its directory after some work.
    fn start(script: &str) -> Self {
        let folder = directory();
        let mut command = recorder(["--", "sh", "-c", script]);
        // In a process group of its own, as an interactive shell starts it.
        let recorder = command.current_dir(&folder).process_group(0).spawn().unwrap();
        let recording = Self { folder, recorder };
        assert!(eventually(|| recording.path().join("begun").exists()), "the command does not run");
        recording
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn send(&self, signal: i32) {
        send(&self.recorder, signal);
    }
}

/// Does some work, so that there are samples, and reports it.
const WORK: &str = "n=0; while [ $n -lt 50000 ]; do n=$((n + 1)); done; : > begun";

/// Returns a script that does some work and then waits for a condition, but not forever.
fn work_and_wait_until(condition: &str) -> String {
    format!("{WORK}; while [ $n -gt 40000 ] && ! {condition}; do n=$((n - 1)); sleep 0.05; done")
}

#[test]
fn ctrl_c_ends_command_and_recording() {
    if !can_record() {
        return;
    }
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        let recording = RunningRecording::start(&format!("{WORK}; while [ $n -lt 9000000 ]; do n=$((n + 1)); done"));
        send_to_group(&recording.recorder, signal);
        let outcome = finish(recording.recorder);
        assert_eq!(outcome.code(), 128 + signal, "{outcome:?}");
        assert!(Profile::from_stdout(&outcome).total() > 0, "{outcome:?}");
        assert!(outcome.stderr.contains("samples of"), "{outcome:?}");
    }
}

#[test]
fn passes_sigterm_and_sighup_on_to_the_command() {
    if !can_record() {
        return;
    }
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        let recording = RunningRecording::start(&format!("trap 'exit 9' TERM HUP; {}", work_and_wait_until("false")));
        recording.send(signal);
        let outcome = finish(recording.recorder);
        assert_eq!(outcome.code(), 9, "{outcome:?}");
        assert!(Profile::from_stdout(&outcome).total() > 0, "{outcome:?}");
    }
}

#[test]
fn an_interrupted_recorder_prints_and_waits_for_the_command() {
    if !can_record() {
        return;
    }
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        let mut recording = RunningRecording::start(&format!("{}; exit 7", work_and_wait_until("[ -e printed ]")));
        recording.send(signal);
        let mut profile = Vec::new();
        // Standard output ends before the command does: the command waits for us.
        std::io::Read::read_to_end(recording.recorder.stdout.as_mut().unwrap(), &mut profile).unwrap();
        assert!(Profile::parse(&profile).total() > 0);
        assert!(recording.recorder.try_wait().unwrap().is_none());
        std::fs::write(recording.path().join("printed"), "").unwrap();
        let outcome = finish(recording.recorder);
        assert_eq!(outcome.code(), 7, "{outcome:?}");
    }
}

#[test]
fn a_second_signal_kills_the_recorder() {
    if !can_record() {
        return;
    }
    let script = format!("echo $$ > pid; trap '' INT TERM; {}", work_and_wait_until("false"));
    let mut recording = RunningRecording::start(&script);
    let exited = eventually(|| {
        recording.send(libc::SIGTERM);
        recording.recorder.try_wait().unwrap().is_some()
    });
    let shell = std::fs::read_to_string(recording.path().join("pid")).unwrap();
    command("kill").args(["-KILL", shell.trim()]).status().unwrap();
    assert!(exited, "the recorder does not end");
    let outcome = finish(recording.recorder);
    assert_eq!(outcome.status.signal(), Some(libc::SIGTERM), "{outcome:?}");
}

#[test]
fn an_interrupted_recording_of_a_process_leaves_it_running() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let mut process = Background::start(command(&busy).arg("100000"));
    let outcome = record_process(&process, &["-F", "997"], Duration::from_millis(200)).ok();
    Profile::from_stdout(&outcome).assert_contains(&["busy", "main", "spin", "step"]);
    assert!(process.is_running(), "{outcome:?}");
}

#[test]
fn the_command_ends_when_the_recorder_is_killed() {
    if !can_record() {
        return;
    }
    let own_pid = std::process::id().to_string();
    let mut cases = vec![vec![], vec!["-p", &*own_pid]];
    if rustix::process::geteuid().is_root() {
        cases.extend([vec!["-a"], vec!["--user", "nobody"]]);
    }
    for options in cases {
        let mut recorder = recorder(["-q"]);
        let recorder = recorder.args(&options).args(["--", "sh", "-c", "echo $$ >&2; exec sleep 100000"]);
        let mut recorder = recorder.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(recorder.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        let pid: u32 = line.trim().parse().unwrap();
        assert!(eventually(|| Status::read(pid).field("Name") == "sleep"), "{options:?}");
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        // It may remain as a zombie if nobody adopts it.
        let has_ended = || ["", "Z (zombie)"].contains(&Status::read(pid).field("State"));
        assert!(eventually(has_ended), "{options:?}");
    }
}
