//! How far a recording is, on a terminal.

use std::process::{Command, Stdio};

use crate::folded::may_record;
use crate::support::terminal::Terminal;
use crate::support::{run_bounded, tool};

/// What a recording of this process, or of a command, shows on a terminal, where standard output may go too.
fn shown(arguments: &[&str], with_stdout: bool) -> String {
    let terminal = Terminal::open();
    let mut command = Command::new(tool("fg-record"));
    command.args(arguments).stdin(Stdio::null()).stderr(terminal.stream());
    command.stdout(if with_stdout { terminal.stream() } else { Stdio::null() });
    run_bounded(&mut command);
    drop(command);
    terminal.shown()
}

#[test]
fn those_who_wait_see_how_far_it_is() {
    if !may_record() {
        return;
    }
    let own = std::process::id().to_string();
    let recording = ["-d", "1.5", "-p", &own];
    let waited = shown(&recording, false);
    assert!(waited.contains("\rfg-record: 1 s, ") && waited.contains(" 0 lost"), "{waited:?}");
    let quiet = shown(&["-q", "-d", "1.5", "-p", &own], false);
    assert_eq!(quiet, "");
    // Where stacks come on the terminal they have it to themselves.
    let mixed = shown(&recording, true);
    assert!(!mixed.contains("\rfg-record"), "{mixed:?}");
    let folder = crate::support::directory();
    for name in ["stacks.folded", "stacks-%t.folded"] {
        let file = folder.path().join(name);
        let named = shown(&[&recording[..], &["-o", file.to_str().unwrap()]].concat(), true);
        assert!(named.contains("\rfg-record: 1 s, "), "{named:?}");
    }
    // A command has the terminal to itself.
    let command = shown(&["-F", "1", "--", "sleep", "1.5"], false);
    assert!(!command.contains("\rfg-record"), "{command:?}");
}
