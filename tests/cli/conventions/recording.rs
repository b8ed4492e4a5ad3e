//! The same conventions for the recorder, which reads no input and whose exit status is that of its command.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};

use super::{Program, Workspace};
use crate::support::recording::can_record;
use crate::support::signals::send;
use crate::support::terminal::Terminal;
use crate::support::{command, eventually, run_bounded, wait_for_exit};

const RECORD: Program = Program { name: "fg-record", merges: false, failure: 125, ..super::COLLAPSE };

#[test]
fn reports_a_missing_target_even_on_a_terminal() {
    let (workspace, terminal) = (Workspace::new(RECORD), Terminal::open());
    let mut command = workspace.command([""; 0]);
    command.stdin(terminal.stream()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let outcome = run_bounded(&mut command);
    assert_eq!((outcome.code(), outcome.stdout.len()), (2, 0), "{outcome:?}");
    assert!(outcome.stderr.starts_with("fg-record: ") && outcome.stderr.contains("-p PID"), "{outcome:?}");
}

#[test]
fn passes_on_the_exit_status_of_the_command() {
    let workspace = Workspace::new(RECORD);
    for (command, status) in [(&["/no/such/command"][..], 127), (&["/dev/null"], 126), (&["no-such-command"], 127)] {
        let outcome = workspace.run(["-q", "--"].iter().chain(command));
        assert_eq!((outcome.code(), outcome.stderr.lines().count()), (status, 1), "{outcome:?}");
    }
    if !can_record() {
        return;
    }
    for (script, status) in [("exit 0", 0), ("exit 1", 1), ("exit 2", 2), ("exit 42", 42), ("kill -9 $$", 137)] {
        let outcome = workspace.run(["-q", "--", "sh", "-c", script]);
        assert_eq!((outcome.code(), outcome.stderr.as_str()), (status, ""), "{outcome:?}");
    }
}

#[test]
fn passes_arguments_after_the_command_on() {
    if !can_record() {
        return;
    }
    let workspace = Workspace::new(RECORD);
    for arguments in [&["-q", "--", "echo", "-o", "--help"][..], &["-q", "echo", "-o", "--help"]] {
        let outcome = workspace.run(arguments).ok();
        // The profile goes to standard output, and so the command's output to standard error.
        assert_eq!(outcome.stderr, "-o --help\n");
        let outcome = workspace.run(["-oout"].iter().chain(arguments)).ok();
        assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), ("-o --help\n", ""));
        assert_eq!(workspace.output_files(), ["out"]);
    }
}

#[test]
fn prints_a_summary_unless_quiet() {
    if !can_record() {
        return;
    }
    let workspace = Workspace::new(RECORD);
    let summary = workspace.run(["--", "true"]).ok().stderr;
    assert!((1..=5).contains(&summary.lines().count()) && summary.contains("lost"), "{summary}");
    assert!(summary.lines().all(|line| line.starts_with("fg-record: ")), "{summary}");
    assert_eq!(workspace.run(["-v", "-q", "--", "true"]).ok().stderr, "");
    let coloured = workspace.run(["--color", "always", "--", "true"]).ok().stderr;
    assert!(coloured.contains('\u{1b}'), "{coloured}");
}

#[cfg(target_os = "linux")]
#[test]
fn fails_on_a_full_disk_but_not_on_a_closed_pipe() {
    if !can_record() {
        return;
    }
    let workspace = Workspace::new(RECORD);
    let busy = "while [ $((n += 1)) -lt 50000 ]; do :; done; exit 3";
    let outcome = workspace.run(["-q", "-o", "/dev/full", "--", "sh", "-c", busy]);
    assert_eq!(outcome.stderr, "fg-record: /dev/full: cannot write: No space left on device\n");
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = workspace.command(["-q", "--", "sh", "-c", busy]);
    let outcome = run_bounded(command.stdout(closed).stderr(Stdio::piped()));
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (3, ""), "{outcome:?}");
}

/// Starts a recorder with a command that sleeps. Returns it and the pid of the command.
fn record_sleep(workspace: &Workspace) -> (Child, String) {
    let script = "echo $$ > number; mv number recording; exec sleep 100000";
    let mut command = workspace.command(["-q", "-o", "out", "--", "sh", "-c", script]);
    let recorder = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(eventually(|| workspace.path().join("recording").exists()));
    (recorder, String::from_utf8(workspace.read("recording")).unwrap())
}

#[test]
fn the_second_interrupt_kills_the_recorder() {
    if !can_record() {
        return;
    }
    let workspace = Workspace::new(RECORD);
    let (recorder, sleeper) = record_sleep(&workspace);
    send(&recorder, libc::SIGINT);
    assert!(eventually(|| workspace.output_files().contains(&"out".to_owned())), "{:?}", workspace.output_files());
    // Now it waits for its command.
    send(&recorder, libc::SIGINT);
    let outcome = wait_for_exit(recorder, "fg-record");
    command("kill").args(["-KILL", sleeper.trim()]).status().unwrap();
    assert_eq!(outcome.status.signal(), Some(libc::SIGINT), "{outcome:?}");
    assert_eq!(workspace.output_files(), ["out", "recording"]);
}

#[test]
fn passes_sigterm_and_sighup_on_to_the_command() {
    if !can_record() {
        return;
    }
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        let workspace = Workspace::new(RECORD);
        let (recorder, _) = record_sleep(&workspace);
        send(&recorder, signal);
        assert_eq!(wait_for_exit(recorder, "fg-record").code(), 128 + signal);
        assert_eq!(workspace.output_files(), ["out", "recording"]);
    }
}
