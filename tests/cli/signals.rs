//! Ctrl-C and its relatives, sent to one program and typed at a pipeline.

#![allow(unsafe_code)]

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::manners::recording::records;
use crate::manners::{Place, Program, READERS};
use crate::support::terminal::Terminal;
use crate::support::{Outcome, command, directory, eventually, tool, wait_for_exit};

/// A program that waits for the end of its input and has begun its output file.
struct Waiting {
    place: Place,
    child: Child,
}

impl Waiting {
    fn start(program: Program, stdin: Stdio, operand: &str) -> Self {
        let place = Place::of(program);
        let mut command = place.command(["-o", "out", operand]);
        Self::begin(place, command.stdin(stdin))
    }

    fn begin(place: Place, command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let program = place.program.name;
        assert!(eventually(|| place.made().iter().any(|name| name.starts_with(".fg-unfinished-"))), "{program}");
        Self { place, child }
    }

    fn send(&self, signal: i32) {
        // SAFETY: the child has not been waited for, so the number is still its own.
        assert_eq!(unsafe { libc::kill(self.child.id().try_into().unwrap(), signal) }, 0);
    }

    /// Gives it its input, and so lets it end.
    fn finish(mut self) -> Place {
        self.child.stdin.take().unwrap().write_all(self.place.program.profile.as_bytes()).unwrap();
        let (place, outcome) = self.end();
        outcome.ok();
        place
    }

    fn end(self) -> (Place, Outcome) {
        let name = self.place.program.name;
        (self.place, wait_for_exit(self.child, name))
    }

    /// Ended by that very signal, as a shell then sees, and nothing is left.
    fn assert_killed_by(self, signal: i32) {
        let (place, outcome) = self.end();
        assert_eq!(outcome.status.signal(), Some(signal), "{outcome:?}");
        assert_eq!(place.made(), [""; 0], "{outcome:?}");
        assert_eq!(outcome.stderr, "");
    }
}

#[test]
fn a_killed_program_leaves_nothing() {
    for program in READERS {
        for signal in [libc::SIGTERM, libc::SIGHUP] {
            let waiting = Waiting::start(program, Stdio::piped(), "-");
            waiting.send(signal);
            waiting.assert_killed_by(signal);
        }
    }
}

#[test]
fn a_program_on_a_pipe_outlives_the_first_interrupt_and_ends_with_its_input() {
    for program in READERS {
        let waiting = Waiting::start(program, Stdio::piped(), "-");
        waiting.send(libc::SIGINT);
        std::thread::sleep(Duration::from_millis(50));
        let place = waiting.finish();
        assert_eq!(place.read("out"), place.run(["in.folded"]).ok().stdout, "{program:?}");
        assert_eq!(place.made(), ["out"], "{program:?}");
    }
}

#[test]
fn the_second_interrupt_kills() {
    for program in READERS {
        let mut waiting = Waiting::start(program, Stdio::piped(), "-");
        let ended = eventually(|| {
            waiting.send(libc::SIGINT);
            waiting.child.try_wait().unwrap().is_some()
        });
        assert!(ended, "{program:?}");
        waiting.assert_killed_by(libc::SIGINT);
    }
}

#[test]
fn a_program_that_reads_files_dies_at_the_first_interrupt() {
    for program in READERS {
        // Both a standard input that is no pipe, and one that is a pipe and is not read.
        for stdin in [Stdio::null(), Stdio::piped()] {
            let place = Place::of(program);
            let fifo = std::ffi::CString::new(place.path().join("fifo.folded").to_str().unwrap()).unwrap();
            // SAFETY: the path is a string that ends in NUL.
            assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
            let mut command = place.command(["-o", "out", "fifo.folded"]);
            let waiting = Waiting::begin(place, command.stdin(stdin));
            waiting.send(libc::SIGINT);
            waiting.assert_killed_by(libc::SIGINT);
        }
    }
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    for program in READERS {
        let place = Place::of(program);
        let mut command = command("sh");
        command.args(["-c", "trap '' HUP; exec \"$@\"", "sh", tool(program.name)]).current_dir(place.path());
        command.args(program.before).args(["-o", "out", "-"]).stdin(Stdio::piped());
        let waiting = Waiting::begin(place, &mut command);
        waiting.send(libc::SIGHUP);
        std::thread::sleep(Duration::from_millis(50));
        let place = waiting.finish();
        assert_eq!(place.made(), ["out"], "{program:?}");
    }
}

const CTRL_C: &str = "\u{3}";

/// Types Ctrl-C at `RECORDER | fg-collapse | fg-svg -o flame.svg` on a terminal of its own; once, or until it ends.
fn interrupt_pipeline(folder: &Path, recorder: &str, once: bool) -> String {
    let mut terminal = Terminal::open();
    // The shell outlives the Ctrl-C, as an interactive one does; what it starts does not inherit that.
    let script = format!("trap : INT; {recorder} | \"$COLLAPSE\" | \"$SVG\" -o flame.svg; echo pipeline ended");
    let mut command = command("sh");
    command.args(["-c", &script]).current_dir(folder);
    command.envs([("RECORD", tool("fg-record")), ("COLLAPSE", tool("fg-collapse")), ("SVG", tool("fg-svg"))]);
    command.stdin(terminal.stream()).stdout(terminal.stream()).stderr(terminal.stream());
    let mut shell = terminal.control(&mut command).spawn().unwrap();
    let ready =
        || folder.join("recording").exists() && ["fg-collapse", "fg-svg"].iter().all(|name| heeds(&shell, name));
    assert!(eventually(ready), "the pipeline does not start");
    terminal.press(CTRL_C);
    let ended = once
        || eventually(|| {
            std::thread::sleep(Duration::from_millis(200));
            terminal.press(CTRL_C);
            shell.try_wait().unwrap().is_some()
        });
    assert!(ended, "the pipeline does not end");
    let outcome = wait_for_exit(shell, &script);
    drop(command);
    let shown = terminal.shown();
    assert!(shown.contains("pipeline ended"), "{outcome:?} {shown}");
    shown
}

/// Whether a child of that name has its handlers in place, by what the kernel says of it.
fn heeds(shell: &Child, name: &str) -> bool {
    let field = |status: &str, name: &str| {
        status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned())).unwrap_or_default()
    };
    std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
        let status = std::fs::read_to_string(process.path().join("status")).unwrap_or_default();
        let caught = u64::from_str_radix(&field(&status, "SigCgt:"), 16).unwrap_or(0);
        field(&status, "PPid:") == shell.id().to_string()
            && field(&status, "Name:") == name
            && caught & (1 << (libc::SIGINT - 1)) != 0
    })
}

fn made(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "recording");
    names
}

#[test]
fn ctrl_c_at_a_pipeline_ends_the_recorder_and_the_picture_is_drawn() {
    let folder = directory();
    let recorder = "sh -c 'trap \"echo \\\"main;work 7\\\"; exit\" INT; : > recording; while :; do sleep 0.05; done'";
    let shown = interrupt_pipeline(folder.path(), recorder, true);
    assert_eq!(made(folder.path()), ["flame.svg"], "{shown}");
    let picture = std::fs::read_to_string(folder.path().join("flame.svg")).unwrap();
    assert!(picture.contains("work"), "{picture}");
}

#[test]
fn the_second_ctrl_c_at_a_pipeline_kills_it() {
    let folder = directory();
    // It heeds no Ctrl-C, and ends when nobody reads it any more.
    let recorder = "sh -c 'trap \"\" INT; : > recording; while echo \"main;work 1\"; do sleep 0.05; done'";
    let shown = interrupt_pipeline(folder.path(), recorder, false);
    assert_eq!(made(folder.path()), [""; 0], "{shown}");
}

#[test]
fn ctrl_c_at_a_recording_draws_what_there_is() {
    if !records() {
        return;
    }
    let folder = directory();
    // It says that it runs when there are samples of it.
    let work = "n=0; while [ $n -lt 100000 ]; do n=$((n + 1)); done; : > recording; while :; do :; done";
    let recorder = format!("\"$RECORD\" -F 199 -- sh -c '{work}'");
    let shown = interrupt_pipeline(folder.path(), &recorder, true);
    assert_eq!(made(folder.path()), ["flame.svg"], "{shown}");
    let picture = std::fs::read_to_string(folder.path().join("flame.svg")).unwrap();
    assert!(picture.contains("</svg>") && picture.contains("sh"), "{shown}\n{picture}");
}
