//! Ctrl-C, Ctrl-\ and other signals, sent to one program and typed at a pipeline.

#![allow(unsafe_code)]

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::conventions::{Program, READERS, Workspace};
use crate::support::process::{Status, all_pids};
use crate::support::recording::can_record;
use crate::support::terminal::Terminal;
use crate::support::{Outcome, command, directory, eventually, signals, tool, wait_for_exit};

/// A program that waits for more input and has created its temporary output file.
struct WaitingProgram {
    workspace: Workspace,
    child: Child,
}

impl WaitingProgram {
    /// Starts a program that waits for more standard input.
    fn start(program: Program) -> Self {
        let workspace = Workspace::new(program);
        let mut command = workspace.command(["-o", "out", "-"]);
        Self::spawn(workspace, command.stdin(Stdio::piped()))
    }

    fn spawn(workspace: Workspace, command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let program = workspace.program.name;
        assert!(eventually(|| has_unfinished_file(child.id(), workspace.path())), "{program}");
        Self { workspace, child }
    }

    fn send(&self, signal: i32) {
        signals::send(&self.child, signal);
    }

    /// Waits until a signal is no longer pending: the program has handled or ignored it.
    fn wait_for_delivery(&self, signal: i32) {
        assert!(eventually(|| !Status::read(self.child.id()).is_pending(signal)));
    }

    /// Writes all input, waits until the program succeeds, and returns its workspace.
    fn finish(mut self) -> Workspace {
        let profile = self.workspace.program.profile;
        self.child.stdin.take().unwrap().write_all(profile.as_bytes()).unwrap();
        let (workspace, outcome) = self.wait();
        outcome.ok();
        workspace
    }

    fn wait(self) -> (Workspace, Outcome) {
        let name = self.workspace.program.name;
        (self.workspace, wait_for_exit(self.child, name))
    }

    /// Asserts that the program is killed by the signal, as a shell sees it, and leaves no files.
    fn assert_killed_by(self, signal: i32) {
        let (workspace, outcome) = self.wait();
        assert_eq!(outcome.status.signal(), Some(signal), "{outcome:?}");
        assert_eq!(workspace.output_files(), [""; 0], "{outcome:?}");
        assert_eq!(outcome.stderr, "");
    }
}

/// True if the process has created an output file in the folder: one without a name where that is possible.
fn has_unfinished_file(pid: u32, folder: &Path) -> bool {
    let folder = folder.canonicalize().unwrap();
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok()).any(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(&folder) && (name.starts_with(".fg-unfinished-") || name.ends_with(" (deleted)"))
    })
}

#[test]
fn a_killed_program_leaves_no_files() {
    for program in READERS {
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGKILL] {
            let waiting = WaitingProgram::start(program);
            waiting.send(signal);
            waiting.assert_killed_by(signal);
        }
    }
}

/// The signals that keys of a terminal send: Ctrl-C and Ctrl-\.
const KEY_SIGNALS: [i32; 2] = [libc::SIGINT, libc::SIGQUIT];

#[test]
fn a_program_that_reads_a_pipe_finishes_after_the_first_interrupt() {
    for (program, signal) in READERS.into_iter().flat_map(|program| KEY_SIGNALS.map(|signal| (program, signal))) {
        let waiting = WaitingProgram::start(program);
        waiting.send(signal);
        waiting.wait_for_delivery(signal);
        let workspace = waiting.finish();
        assert_eq!(workspace.read("out"), workspace.run(["in.folded"]).ok().stdout, "{program:?}");
        assert_eq!(workspace.output_files(), ["out"], "{program:?}");
    }
}

#[test]
fn the_second_interrupt_kills() {
    for (program, signal) in READERS.into_iter().flat_map(|program| KEY_SIGNALS.map(|signal| (program, signal))) {
        let mut waiting = WaitingProgram::start(program);
        let exited = eventually(|| {
            waiting.send(signal);
            waiting.child.try_wait().unwrap().is_some()
        });
        assert!(exited, "{program:?}");
        waiting.assert_killed_by(signal);
    }
}

#[test]
fn the_first_interrupt_kills_a_program_that_reads_files() {
    for program in READERS {
        // Standard input is no pipe, or it is one but the program does not read it.
        for stdin in [Stdio::null(), Stdio::piped()] {
            let workspace = Workspace::new(program);
            let fifo = std::ffi::CString::new(workspace.path().join("fifo.folded").to_str().unwrap()).unwrap();
            // SAFETY: the path is a string that ends in NUL.
            assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
            let mut command = workspace.command(["-o", "out", "fifo.folded"]);
            let waiting = WaitingProgram::spawn(workspace, command.stdin(stdin));
            waiting.send(libc::SIGINT);
            waiting.assert_killed_by(libc::SIGINT);
        }
    }
}

#[test]
fn a_signal_that_nohup_ignores_stays_ignored() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let mut shell = command("sh");
        shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh", tool(program.name)]).current_dir(workspace.path());
        shell.args(program.before).args(["-o", "out", "-"]).stdin(Stdio::piped());
        let waiting = WaitingProgram::spawn(workspace, &mut shell);
        assert!(Status::read(waiting.child.id()).ignores(libc::SIGHUP));
        waiting.send(libc::SIGHUP);
        let workspace = waiting.finish();
        assert_eq!(workspace.output_files(), ["out"], "{program:?}");
    }
}

const CTRL_C: &str = "\u{3}";
const CTRL_BACKSLASH: &str = "\u{1c}";

/// Types a key at `RECORDER | fg-collapse | fg-svg -o flame.svg` on a terminal: once, or until the pipeline ends.
fn interrupt_pipeline(folder: &Path, recorder: &str, key: &str, once: bool) -> String {
    let mut terminal = Terminal::open();
    // The shell survives the keys, as an interactive one does. Its children do not inherit its trap.
    let script = format!("trap : INT QUIT; {recorder} | \"$COLLAPSE\" | \"$SVG\" -o flame.svg; echo pipeline ended");
    let mut command = command("sh");
    command.args(["-c", &script]).current_dir(folder);
    command.envs([("RECORD", tool("fg-record")), ("COLLAPSE", tool("fg-collapse")), ("SVG", tool("fg-svg"))]);
    command.stdin(terminal.stream()).stdout(terminal.stream()).stderr(terminal.stream());
    let mut shell = terminal.control(&mut command).spawn().unwrap();
    let is_ready =
        || folder.join("recording").exists() && ["fg-collapse", "fg-svg"].iter().all(|name| is_ready(&shell, name));
    assert!(eventually(is_ready), "the pipeline does not start");
    terminal.press(key);
    let ended = once
        || eventually(|| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            terminal.press(key);
            shell.try_wait().unwrap().is_some()
        });
    assert!(ended, "the pipeline does not end");
    let outcome = wait_for_exit(shell, &script);
    drop(command);
    let shown = terminal.shown();
    assert!(shown.contains("pipeline ended"), "{outcome:?} {shown}");
    shown
}

/// True if a child with this name has installed its signal handlers.
fn is_ready(shell: &Child, name: &str) -> bool {
    all_pids().map(Status::read).any(|status| {
        status.field("PPid") == shell.id().to_string() && status.field("Name") == name && status.catches(libc::SIGINT)
    })
}

fn output_files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "recording");
    names
}

#[test]
fn ctrl_c_at_a_pipeline_ends_the_recorder_and_draws_the_graph() {
    let recorder =
        "sh -c 'trap \"echo \\\"main;work 7\\\"; exit\" INT QUIT; : > recording; while :; do sleep 0.05; done'";
    for key in [CTRL_C, CTRL_BACKSLASH] {
        let folder = directory();
        let shown = interrupt_pipeline(folder.path(), recorder, key, true);
        assert_eq!(output_files(folder.path()), ["flame.svg"], "{shown}");
        let graph = std::fs::read_to_string(folder.path().join("flame.svg")).unwrap();
        assert!(graph.contains("work"), "{graph}");
    }
}

#[test]
fn the_second_ctrl_c_kills_a_pipeline() {
    let folder = directory();
    // It ignores Ctrl-C, and exits when nobody reads its output any more.
    let recorder = "sh -c 'trap \"\" INT; : > recording; while echo \"main;work 1\"; do sleep 0.05; done'";
    let shown = interrupt_pipeline(folder.path(), recorder, CTRL_C, false);
    assert_eq!(output_files(folder.path()), [""; 0], "{shown}");
}

#[test]
fn ctrl_c_at_a_recording_draws_the_samples() {
    if !can_record() {
        return;
    }
    // It creates the file once there are samples.
    let work = "n=0; while [ $n -lt 100000 ]; do n=$((n + 1)); done; : > recording; while :; do :; done";
    let recorder = format!("\"$RECORD\" -F 199 -- sh -c '{work}'");
    for key in [CTRL_C, CTRL_BACKSLASH] {
        let folder = directory();
        let shown = interrupt_pipeline(folder.path(), &recorder, key, true);
        assert_eq!(output_files(folder.path()), ["flame.svg"], "{shown}");
        let graph = std::fs::read_to_string(folder.path().join("flame.svg")).unwrap();
        assert!(graph.contains("</svg>") && graph.contains("sh"), "{shown}\n{graph}");
    }
}
