//! Recordings of a target for as long as a command beside it runs.

use std::process::Command;
use std::time::Duration;

use crate::support::process::Background;
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record, finish, record, recorder, until_cpu_time, wait_until_recording};
use crate::support::{command, directory, signals};

/// Returns a recorder that records until a process has used 0.2 s of CPU time. Its command then prints a line and exits
/// with status 3.
fn record_while_it_works(process: &Background, options: &[&str]) -> Command {
    let mut recorder = recorder(["-F", "997"]);
    let pid = process.pid().parse().unwrap();
    recorder.args(options).args(until_cpu_time(pid, Duration::from_millis(200)));
    recorder
}

#[test]
fn a_command_says_for_how_long_a_target_is_recorded() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let process = Background::start(command(busy).arg("100000"));
    for target in [&["-p", &*process.pid()][..], &["-t", &process.pid()], &["-a"], &["-g", "-p", &process.pid()]] {
        if target == ["-a"] && !rustix::process::geteuid().is_root() {
            continue;
        }
        let outcome = finish(record_while_it_works(&process, target).spawn().unwrap());
        assert_eq!(outcome.code(), 3, "{outcome:?}");
        let profile = Profile::from_stdout(&outcome);
        profile.assert_contains(&["busy", "main", "spin", "step"]);
        assert!(outcome.stderr.contains("printed\n"), "{outcome:?}");
        if target != ["-a"] {
            assert!(profile.0.iter().all(|stack| stack.thread() == "busy"), "{outcome:?}");
        }
    }
}

#[test]
fn the_command_has_standard_output_if_the_profile_does_not() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let process = Background::start(command(busy).arg("100000"));
    let folder = directory();
    let file = folder.path().join("out.folded");
    let target = ["-p", &*process.pid(), "-o", file.to_str().unwrap()];
    let outcome = finish(record_while_it_works(&process, &target).spawn().unwrap());
    assert_eq!((outcome.code(), &*outcome.text()), (3, "printed\n"), "{outcome:?}");
    Profile::parse(&std::fs::read(file).unwrap()).assert_contains(&["busy", "main", "spin", "step"]);
}

#[test]
fn a_recording_of_all_cpus_contains_the_command_from_its_start() {
    if !can_record() || !rustix::process::geteuid().is_root() {
        return;
    }
    let outcome = record(["-a", "-e", "page-faults", "--", "/bin/true"]).ok();
    assert!(Profile::from_stdout(&outcome).thread_weight("true") > 0, "{outcome:?}");
}

#[test]
fn the_command_gets_sigterm_if_the_recording_ends_first() {
    if !can_record() {
        return;
    }
    let process = Background::sleeping();
    let sleep = ["--", "sleep", "100000"];
    let outcome = finish(recorder(["-d", "100ms", "-p", &process.pid()]).args(sleep).spawn().unwrap());
    assert_eq!(outcome.code(), 128 + libc::SIGTERM, "{outcome:?}");
    for (signal, sent) in [(libc::SIGINT, libc::SIGTERM), (libc::SIGHUP, libc::SIGHUP)] {
        let mut recorder = recorder(["-p", &process.pid()]).args(sleep).spawn().unwrap();
        wait_until_recording(&mut recorder);
        signals::send(&recorder, signal);
        let outcome = finish(recorder);
        assert_eq!(outcome.code(), 128 + sent, "{outcome:?}");
    }
    let mut recorder = recorder(["-p", &process.pid()]).args(sleep).spawn().unwrap();
    wait_until_recording(&mut recorder);
    // Kills it: the target ends.
    drop(process);
    let outcome = finish(recorder);
    assert_eq!(outcome.code(), 128 + libc::SIGTERM, "{outcome:?}");
}

#[test]
fn rejects_several_targets_and_commands_that_cannot_be_run() {
    let outcome = record(["-p", "1", "-a", "--", "true"]);
    assert_eq!(outcome.code(), 2, "{outcome:?}");
    assert!(outcome.stderr.contains("only one target can be recorded: -p, -t, --cgroup or -a"), "{outcome:?}");
    if can_record() {
        let own_pid = std::process::id().to_string();
        let outcome = record(["-p", &own_pid, "--", "/nonexistent/command"]);
        let message = "fg-record: cannot run /nonexistent/command: No such file or directory\n";
        assert_eq!((outcome.code(), &*outcome.stderr, &*outcome.text()), (127, message, ""));
    }
}
