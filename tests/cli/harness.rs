//! The harness of the tests itself.

use std::process::Stdio;

use crate::support::process::Status;
use crate::support::{command, run_bounded, signals};

/// Set in the environment of this test when it runs in a process that ignores signals.
const IGNORING: &str = "FG_TEST_IGNORES_SIGNALS";

#[test]
fn children_start_with_default_signal_dispositions() {
    if std::env::var_os(IGNORING).is_none() {
        return run_ignoring_signals("harness::children_start_with_default_signal_dispositions");
    }
    let own = Status::read(std::process::id());
    let mut child = command("sleep").arg("100000").stdout(Stdio::null()).spawn().unwrap();
    let status = Status::read(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    for signal in signals::INHERITED {
        assert!(own.ignores(signal), "signal {signal} is not ignored by the test");
        assert!(!status.ignores(signal), "signal {signal} is ignored by the child");
    }
}

/// Runs a test of this file again, in a process that ignores signals as under `nohup` or as a script's background job.
fn run_ignoring_signals(test: &str) {
    let mut shell = command("sh");
    shell.args(["-c", "trap '' HUP INT QUIT PIPE TERM; exec \"$0\" --exact \"$1\" --nocapture"]);
    shell.arg(std::env::current_exe().unwrap()).arg(test).env(IGNORING, "1");
    let outcome = run_bounded(shell.stdout(Stdio::piped()).stderr(Stdio::piped())).ok();
    assert!(outcome.text().contains("1 passed"), "{outcome:?}");
}
