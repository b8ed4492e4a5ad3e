//! The recorder: it feeds no on input, and how it ends is how its command ends.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};

use super::{Place, Program};
use crate::support::terminal::Terminal;
use crate::support::{command, eventually, run, run_bounded, skip, wait_for_exit};

const RECORD: Program = Program { name: "fg-record", merges: false, failure: 125, ..super::COLLAPSE };

/// Whether it can record here, which kernels and containers may refuse. Tests that need it skip if not, and say so.
pub fn records() -> bool {
    let probe = run("fg-record", ["-q", "--", "true"], b"");
    if !probe.status.success() {
        skip(&format!("fg-record cannot record here: {}", probe.stderr.trim()));
    }
    probe.status.success()
}

#[test]
fn without_a_target_it_says_what_it_needs_even_on_a_terminal() {
    let (place, terminal) = (Place::of(RECORD), Terminal::open());
    let mut command = place.command([""; 0]);
    command.stdin(terminal.stream()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let outcome = run_bounded(&mut command);
    assert_eq!((outcome.code(), outcome.stdout.len()), (2, 0), "{outcome:?}");
    assert!(outcome.stderr.starts_with("fg-record: ") && outcome.stderr.contains("-p PID"), "{outcome:?}");
}

#[test]
fn the_exit_status_is_the_commands() {
    let place = Place::of(RECORD);
    for (command, status) in [(&["/no/such/command"][..], 127), (&["/dev/null"], 126), (&["no-such-command"], 127)] {
        let outcome = place.run(["-q", "--"].iter().chain(command));
        assert_eq!((outcome.code(), outcome.stderr.lines().count()), (status, 1), "{outcome:?}");
    }
    if !records() {
        return;
    }
    for (script, status) in [("exit 0", 0), ("exit 1", 1), ("exit 2", 2), ("exit 42", 42), ("kill -9 $$", 137)] {
        let outcome = place.run(["-q", "--", "sh", "-c", script]);
        assert_eq!((outcome.code(), outcome.stderr.as_str()), (status, ""), "{outcome:?}");
    }
}

#[test]
fn what_follows_the_command_is_the_commands() {
    if !records() {
        return;
    }
    let place = Place::of(RECORD);
    for arguments in [&["-q", "--", "echo", "-o", "--help"][..], &["-q", "echo", "-o", "--help"]] {
        let outcome = place.run(arguments).ok();
        // While the profile goes to standard output, what the command prints goes to standard error.
        assert_eq!(outcome.stderr, "-o --help\n");
        let outcome = place.run(["-oout"].iter().chain(arguments)).ok();
        assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), ("-o --help\n", ""));
        assert_eq!(place.made(), ["out"]);
    }
}

#[test]
fn it_says_how_it_went_unless_quiet() {
    if !records() {
        return;
    }
    let place = Place::of(RECORD);
    let summary = place.run(["--", "true"]).ok().stderr;
    assert!((1..=5).contains(&summary.lines().count()) && summary.contains("lost"), "{summary}");
    assert!(summary.lines().all(|line| line.starts_with("fg-record: ")), "{summary}");
    assert_eq!(place.run(["-v", "-q", "--", "true"]).ok().stderr, "");
    let coloured = place.run(["--color", "always", "--", "true"]).ok().stderr;
    assert!(coloured.contains('\u{1b}'), "{coloured}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_its_own_failure_and_a_closed_pipe_none() {
    if !records() {
        return;
    }
    let place = Place::of(RECORD);
    let busy = "while [ $((n += 1)) -lt 50000 ]; do :; done; exit 3";
    let outcome = place.run(["-q", "-o", "/dev/full", "--", "sh", "-c", busy]);
    assert_eq!(outcome.stderr, "fg-record: /dev/full: No space left on device\n");
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.command(["-q", "--", "sh", "-c", busy]);
    let outcome = run_bounded(command.stdout(closed).stderr(Stdio::piped()));
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (3, ""), "{outcome:?}");
}

/// A recorder with a command that sleeps, and the number of that.
fn of_a_sleeper(place: &Place) -> (Child, String) {
    let script = "echo $$ > number; mv number recording; exec sleep 60";
    let mut command = place.command(["-q", "-o", "out", "--", "sh", "-c", script]);
    let recorder = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(eventually(|| place.path().join("recording").exists()));
    (recorder, String::from_utf8(place.read("recording")).unwrap())
}

#[test]
fn an_interrupt_ends_the_recording_and_a_second_one_kills() {
    if !records() {
        return;
    }
    let place = Place::of(RECORD);
    let (recorder, sleeper) = of_a_sleeper(&place);
    send(&recorder.id().to_string(), libc::SIGINT);
    assert!(eventually(|| place.made().contains(&"out".to_owned())), "{:?}", place.made());
    // It waits for its command now.
    send(&recorder.id().to_string(), libc::SIGINT);
    let outcome = wait_for_exit(recorder, "fg-record");
    send(&sleeper, libc::SIGKILL);
    assert_eq!(outcome.status.signal(), Some(libc::SIGINT), "{outcome:?}");
    assert_eq!(place.made(), ["out", "recording"]);
}

#[test]
fn what_ends_the_job_ends_the_command_too() {
    if !records() {
        return;
    }
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        let place = Place::of(RECORD);
        let (recorder, _) = of_a_sleeper(&place);
        send(&recorder.id().to_string(), signal);
        assert_eq!(wait_for_exit(recorder, "fg-record").code(), 128 + signal);
        assert_eq!(place.made(), ["out", "recording"]);
    }
}

fn send(number: &str, signal: i32) {
    let mut kill = command("kill");
    assert!(kill.arg(format!("-{signal}")).arg(number.trim()).status().unwrap().success());
}
