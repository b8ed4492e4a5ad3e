//! Progress on a terminal, which is shown once work takes longer than a second.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::recording::can_record;
use crate::support::statistics::{ensure, statistical};
use crate::support::terminal::Terminal;
use crate::support::{command, directory, run_bounded, tool, wait_for_exit};

/// Runs fg-record and returns what a terminal shows on standard error, and on standard output if it is one too.
fn record_on_terminal(arguments: &[&str], with_stdout: bool) -> String {
    let terminal = Terminal::open();
    let mut recorder = command(tool("fg-record"));
    recorder.args(arguments).env("NO_COLOR", "1").stdin(Stdio::null()).stderr(terminal.stream());
    recorder.stdout(if with_stdout { terminal.stream() } else { Stdio::null() });
    run_bounded(&mut recorder);
    drop(recorder);
    terminal.shown()
}

#[test]
fn a_recording_of_a_process_shows_progress() {
    if !can_record() {
        return;
    }
    let own_pid = std::process::id().to_string();
    let recording = ["-d", "1.5", "-p", &own_pid];
    statistical(|| {
        let shown = record_on_terminal(&recording, false);
        ensure!(shown.contains("\rfg-record: 1 s, ") && shown.contains(" 0 lost"), "{shown:?}");
        ensure!(shown.contains(" \rfg-record: "), "not cleared before the summary: {shown:?}");
        let folder = directory();
        for name in ["stacks.folded", "stacks-%t.folded"] {
            let file = folder.path().join(name);
            let shown = record_on_terminal(&[&recording[..], &["-o", file.to_str().unwrap()]].concat(), true);
            ensure!(shown.contains("\rfg-record: 1 s, "), "{shown:?}");
        }
        Ok(())
    });
}

#[test]
fn shows_no_progress_if_quiet_or_if_the_terminal_is_in_use() {
    if !can_record() {
        return;
    }
    statistical(|| {
        let own_pid = std::process::id().to_string();
        assert_eq!(record_on_terminal(&["-q", "-d", "1.5", "-p", &own_pid], false), "");
        let with_stacks = record_on_terminal(&["-d", "1.5", "-p", &own_pid], true);
        assert!(!with_stacks.contains("\rfg-record"), "{with_stacks:?}");
        let with_command = record_on_terminal(&["-F", "1", "--", "sleep", "1.5"], false);
        assert!(!with_command.contains("\rfg-record") && !with_command.contains(" s, "), "{with_command:?}");
        Ok(())
    });
}

/// Runs a command whose standard error is a terminal, feeds it, and returns what the terminal shows.
fn run_on_terminal(mut command: Command, feed: impl FnOnce(&mut Child)) -> String {
    let terminal = Terminal::open();
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(terminal.stream()).env("NO_COLOR", "1");
    let mut child = command.spawn().unwrap();
    feed(&mut child);
    wait_for_exit(child, &format!("{command:?}")).ok();
    drop(command);
    terminal.shown()
}

/// Writes a profile for two seconds.
fn feed_slowly(child: &mut Child) {
    let mut stdin = child.stdin.take().unwrap();
    let text = "main;work 1\n".repeat(40_000);
    for _ in 0..4 {
        stdin.write_all(text.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn a_filter_shows_progress_and_clears_it() {
    statistical(|| {
        let shown = run_on_terminal(command(tool("fg-collapse")), feed_slowly);
        ensure!(shown.starts_with("\rfg-collapse: stdin: ") && shown.contains(" MB read"), "{shown:?}");
        assert!(shown.ends_with(" \r") && !shown.contains(['\n', '\u{1b}']), "{shown:?}");
        let mut quiet = command(tool("fg-collapse"));
        quiet.arg("-q");
        assert_eq!(run_on_terminal(quiet, feed_slowly), "");
        let short = run_on_terminal(command(tool("fg-collapse")), |child| {
            child.stdin.take().unwrap().write_all(b"main;work 1\n").unwrap();
        });
        ensure!(short.is_empty(), "a short run shows progress: {short:?}");
        Ok(())
    });
}
