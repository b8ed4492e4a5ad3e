//! Containers: interpreters whose files have no symbols and are deleted when they run, and the recorder itself.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::{node, python};
use crate::support::process::{Background, cpu_time};
use crate::support::programs::{program, sources};
use crate::support::recording::{Profile, can_record, finish, recorder, wait_until_recording};
use crate::support::script_functions::{Callers, assert_callers, walked_scripts};
use crate::support::{command, directory, eventually, nodes, pythons, require, signals, skip, tool};

/// Records an interpreter whose copy lies in a file system that only its own mount namespace has. The copy has no symbols, is
/// deleted when it runs, and has process IDs of its own.
#[track_caller]
fn assert_callers_in_container(interpreter: &Path, program: &str, callers: Callers<'_>) {
    let folder = directory();
    let copy = folder.path().join("interpreter");
    let script = format!(
        "mount -t tmpfs none '{}' && cp \"$1\" '{copy}' && strip -s '{copy}' && exec '{copy}' \"$2\" 100",
        folder.path().display(),
        copy = copy.display()
    );
    let mut container = command("unshare");
    container.args(["-mpf", "--mount-proc", "--kill-child", "sh", "-c", &script, "sh"]);
    let mut container = Background::start(container.arg(interpreter).arg(sources().join(program)));
    let children = format!("/proc/{0}/task/{0}/children", container.pid());
    let find_child = || std::fs::read_to_string(&children).unwrap_or_default().trim().parse::<u32>().ok();
    let runs = |pid| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == copy);
    eventually(|| !container.is_running() || find_child().is_some_and(runs));
    let Some(pid) = find_child().filter(|pid| runs(*pid)) else { return skip("unshare is not permitted here") };
    let wait = |more: u64| {
        let end = cpu_time(pid) + Duration::from_millis(more);
        assert!(eventually(|| cpu_time(pid) >= end), "pid {pid} does not run");
    };
    wait(300);
    std::fs::remove_file(format!("/proc/{pid}/root{}", copy.display())).unwrap();
    assert!(!copy.exists());
    let mut recorder = recorder(["-v", "-F", "997", "-p", &pid.to_string()]).spawn().unwrap();
    wait_until_recording(&mut recorder);
    wait(1000);
    signals::send(&recorder, libc::SIGINT);
    let outcome = finish(recorder).ok();
    if walked_scripts(&outcome) {
        assert_callers(&Profile::from_stdout(&outcome), callers, &interpreter.display().to_string());
    }
}

fn has_containers() -> bool {
    can_record() && require("unshare") && require("strip")
}

#[test]
fn shows_the_functions_of_python() {
    // Debian's contains the interpreter, others load a library with it.
    let pythons = pythons::supported();
    let system = pythons.iter().find(|python| python.starts_with("/usr/bin"));
    if let (Some(python), true) = (system.or(pythons.first()), has_containers()) {
        assert_callers_in_container(&python.canonicalize().unwrap(), "functions.py", python::CALLERS);
    }
}

#[test]
fn shows_the_functions_of_node() {
    if has_containers() {
        let nodes = nodes::supported();
        nodes.iter().for_each(|node| assert_callers_in_container(node, "functions.js", node::CALLERS));
    }
}

/// The recorder is stopped while the process runs, so that it reads what the process has mapped only when it has exited. The file lies
/// in a file system that only the process and its parent have.
#[test]
fn names_a_process_that_exits_before_its_file_is_opened() {
    let (true, Some(busy)) = (has_containers(), program("busy")) else { return };
    let folder = directory();
    std::fs::create_dir(folder.path().join("mount")).unwrap();
    let script = "mount -t tmpfs none mount && cp \"$1\" mount/short && : > mounted && until [ -e go ]; do sleep 0.01; done; \
                  mount/short 0.1; : > done; exec sleep 100000";
    let mut container = command("unshare");
    container.args(["-m", "sh", "-c", script, "sh", &busy]).current_dir(&folder);
    let mut container = Background::start(&mut container);
    let exists = |name: &str| folder.path().join(name).exists();
    eventually(|| exists("mounted") || !container.is_running());
    if !exists("mounted") {
        return skip("unshare is not permitted here");
    }
    // It runs from when the counters count.
    let beside = "kill -STOP $PPID; : > go; until [ -e done ]; do sleep 0.01; done; kill -CONT $PPID";
    let mut recorder = recorder(["--subprocesses", "-F", "997", "-p", &container.pid(), "--", "sh", "-c", beside]);
    let outcome = finish(recorder.current_dir(&folder).spawn().unwrap()).ok();
    let profile = Profile::from_stdout(&outcome);
    profile.assert_contains(&["short", "_start", "main", "spin"]);
    profile.assert_lacks(&["[short]"]);
}

/// In a PID namespace, processes have other IDs for the recorder than for BPF programs.
#[test]
fn a_recorder_in_a_container_copies_stacks() {
    let (true, Some(busy)) = (has_containers(), program("busy")) else { return };
    let mut container = command("unshare");
    container.args(["-pf", "--mount-proc", "--kill-child"]).arg(tool("fg-record")).args(["-v", "--", &busy, "0.3"]);
    let outcome = finish(container.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    if outcome.stderr.starts_with("unshare: ") {
        return skip("unshare is not permitted here");
    }
    let outcome = outcome.ok();
    Profile::from_stdout(&outcome).assert_contains(&["busy", "_start", "main", "spin"]);
    assert!(outcome.stderr.contains("stacks copied") && outcome.stderr.contains("PID namespace"), "{outcome:?}");
}
