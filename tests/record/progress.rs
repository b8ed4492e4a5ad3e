//! How far a recording is, on a terminal.

use std::process::{Command, Stdio};

use crate::folded::may_record;
use crate::support::terminal::Terminal;
use crate::support::{run_bounded, tool};

/// What a recording of this process, or of a command, shows on a terminal.
fn shown(arguments: &[&str]) -> String {
    let terminal = Terminal::open();
    let mut command = Command::new(tool("fg-record"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(terminal.stream());
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
    let waited = shown(&["-d", "1.5", "-p", &own]);
    assert!(waited.contains("\rfg-record: 1 s, ") && waited.contains(" 0 lost"), "{waited:?}");
    let quiet = shown(&["-q", "-d", "1.5", "-p", &own]);
    assert_eq!(quiet, "");
    // A command has the terminal to itself.
    let command = shown(&["-F", "1", "--", "sleep", "1.5"]);
    assert!(!command.contains("\rfg-record"), "{command:?}");
}
