//! `--ring`: the last part of a recording alone, and what happens when it is written.

use std::path::{Path, PathBuf};

use crate::support::process::Background;
use crate::support::programs::program;
use crate::support::recording::{
    Profile, can_record, can_record_switches, finish, record, recorder, wait_until_recording,
};
use crate::support::signals::send;
use crate::support::{command, directory, eventually, run};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn forgets_what_is_older() {
    let (true, Some(stalls)) = (can_record_switches(&[]), program("stalls")) else { return };
    for option in ["--off-cpu", "--wall"] {
        // Four seconds, with a stall in each.
        let outcome = record([option, "--ring", "1s", "--", &stalls, "4", "1000"]).ok();
        let profile = Profile::from_stdout(&outcome);
        profile.assert_contains(&["main", "stall"]);
        profile.assert_lacks(&["first_stall"]);
        // The last 1 to 1.2 s, however long the program was kept from running.
        let summary = outcome.stderr.lines().find(|line| line.contains("microseconds: ")).unwrap_or_default();
        let seconds: f64 = summary.rsplit(" in ").next().unwrap().trim_end_matches(" s").parse().unwrap();
        assert!(seconds > 1.0, "{outcome:?}");
        if option == "--wall" {
            // One thread, whose time is all that there is. The summary rounds to hundredths.
            assert!(profile.total() as f64 <= (seconds + 0.006) * 1e6, "{outcome:?}");
        }
    }
}

#[test]
fn writes_a_file_for_each_signal_and_goes_on() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let folder = directory();
    let pattern = folder.path().join("%t.folded");
    let target = Background::start(command(&busy).arg("100"));
    let mut recorder =
        recorder(["-F", "997", "--ring", "10s", "-o", pattern.to_str().unwrap(), "-p", &target.pid()]).spawn().unwrap();
    wait_until_recording(&mut recorder);
    for count in 1..=2 {
        target.wait_for_cpu_time(std::time::Duration::from_millis(200));
        // Files are named by the second.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        send(&recorder, libc::SIGUSR2);
        assert!(eventually(|| files(folder.path()).len() == count), "{:?}", files(folder.path()));
    }
    send(&recorder, libc::SIGINT);
    let outcome = finish(recorder).ok();
    assert_eq!(outcome.stderr.matches(" s: SIGUSR2 received\n").count(), 2, "{outcome:?}");
    for file in files(folder.path()) {
        Profile::parse(&std::fs::read(file).unwrap()).assert_contains(&["busy", "main", "spin", "step"]);
    }
}

#[test]
fn a_request_right_before_the_end_counts() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let target = Background::start(command(&busy).arg("100"));
    let mut recorder =
        recorder(["-F", "997", "--ring", "10s", "--when", "false", "-p", &target.pid()]).spawn().unwrap();
    wait_until_recording(&mut recorder);
    target.wait_for_cpu_time(std::time::Duration::from_millis(200));
    // It sees both at once.
    for signal in [libc::SIGSTOP, libc::SIGUSR2, libc::SIGINT, libc::SIGCONT] {
        send(&recorder, signal);
    }
    let outcome = finish(recorder).ok();
    Profile::from_stdout(&outcome).assert_contains(&["busy", "main", "spin", "step"]);
    assert!(outcome.stderr.contains(" s: SIGUSR2 received\n"), "{outcome:?}");
}

#[test]
fn a_long_block_ends_the_recording() {
    let (true, Some(stalls)) = (can_record_switches(&[]), program("stalls")) else { return };
    let outcome = record(["--off-cpu", "--ring", "10s", "--when", "block > 45ms", "--", &stalls, "2", "500"]).ok();
    let profile = Profile::from_stdout(&outcome);
    profile.assert_contains(&["main", "first_stall"]);
    assert!(outcome.stderr.contains(" s: stalls (thread "), "{outcome:?}");
    assert!(outcome.stderr.contains(") was blocked for 0.0"), "{outcome:?}");
}

#[test]
fn a_long_block_in_another_function_does_not_count() {
    let (true, Some(stalls)) = (can_record_switches(&[]), program("stalls")) else { return };
    let record_until =
        |condition| record(["--off-cpu", "--ring", "10s", "--when", condition, "--", &stalls, "2", "500"]);
    let outcome = record_until("block > 45ms in ^first_stall$").ok();
    Profile::from_stdout(&outcome).assert_contains(&["main", "first_stall"]);
    let outcome = record_until("block > 45ms in ^no_such_function$");
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert!(outcome.stderr.contains("`block > 45ms in ^no_such_function$` did not come true"), "{outcome:?}");
    assert_eq!(record_until("block > 45ms in (").code(), 2);
}

#[test]
fn a_command_says_when() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let folder = directory();
    let flag = folder.path().join("flag");
    let condition = format!("test -e '{}'", flag.display());
    let target = Background::start(command(&busy).arg("100"));
    let mut recorder =
        recorder(["-F", "997", "--ring", "10s", "--when", &condition, "-p", &target.pid()]).spawn().unwrap();
    wait_until_recording(&mut recorder);
    target.wait_for_cpu_time(std::time::Duration::from_millis(300));
    assert!(recorder.try_wait().unwrap().is_none());
    std::fs::write(flag, "").unwrap();
    let outcome = finish(recorder).ok();
    Profile::from_stdout(&outcome).assert_contains(&["busy", "main", "spin", "step"]);
    assert!(outcome.stderr.contains("` succeeded\n"), "{outcome:?}");
}

#[test]
fn what_happens_at_the_end_counts() {
    let (true, Some(stalls)) = (can_record_switches(&[]), program("stalls")) else { return };
    let folder = directory();
    let flag = folder.path().join("flag");
    let condition = format!("test -e '{}'", flag.display());
    let script = format!("{stalls} 1 100; touch '{}'", flag.display());
    let outcome = record(["--ring", "5s", "--when", &condition, "--", "sh", "-c", &script]).ok();
    Profile::from_stdout(&outcome).assert_contains(&["stalls", "main"]);
    // The last stall is over when the program is, 50 ms before its end.
    let outcome = record(["--off-cpu", "--ring", "5s", "--when", "block > 45ms", "--", &stalls, "1", "1"]).ok();
    Profile::from_stdout(&outcome).assert_contains(&["main", "first_stall"]);
}

#[test]
fn an_output_without_a_reason_is_an_error() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let outcome = record(["--ring", "5s", "--when", "false", "--", &busy, "0.3"]);
    assert_eq!((outcome.code(), outcome.text().as_str()), (125, ""), "{outcome:?}");
    assert!(outcome.stderr.contains("nothing to write: `false` did not come true"), "{outcome:?}");
    // A file from before stays as it was.
    let folder = directory();
    let file = folder.path().join("a.folded");
    std::fs::write(&file, "before").unwrap();
    let outcome = record(["--ring", "5s", "--when", "false", "-o", file.to_str().unwrap(), "--", &busy, "0.3"]);
    assert_eq!((outcome.code(), std::fs::read_to_string(&file).unwrap().as_str()), (125, "before"), "{outcome:?}");
    let outcome = record(["--ring", "5s", "--when", "/no/such/command", "--", &busy, "100"]);
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert!(outcome.stderr.contains("--when \"/no/such/command\": the shell cannot run it"), "{outcome:?}");
}

#[test]
fn rejects_what_has_no_meaning() {
    for (options, message) in [
        (&["--when", "true"][..], "--ring"),
        (&["--ring", "5s", "--when", "block > 1ms"], "requires --off-cpu or --wall"),
        (&["--ring", "5s", "--when", "block > x", "--wall"], "expected a number of seconds"),
        (&["--ring", "5s", "--when", " "], "expected `block > TIME`, `block > TIME in "),
        (&["--ring", "5s", "--when", "blocked > 1s", "--wall"], "expected `block > TIME`, `block > TIME in "),
        (&["--ring", "5s", "--off-cpu", "--max-block", "5ms", "--when", "block > 9ms"], "--max-block leaves out"),
        (&["--ring", "5s", "--wall", "--off-cpu-period", "3"], "leave out --off-cpu-period"),
        (&["--ring", "0.5"], "--ring must be at least 1s"),
        (&["--ring", "5s", "--off-cpu", "--min-block", "5ms", "--when", "block > 1ms"], "--min-block leaves out"),
        (&["--ring", "5s", "--interval", "5s"], "--interval"),
        (&["--ring", "5s", "--latency"], "--latency"),
    ] {
        let outcome = run("fg-record", options.iter().chain(&["--", "true"]), b"");
        assert_eq!(outcome.code(), 2, "{outcome:?}");
        assert!(outcome.stderr.contains(message), "{outcome:?}");
    }
}
