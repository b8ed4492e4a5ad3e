//! Programs whose files are elsewhere, or nowhere any more.

use std::path::Path;
use std::process::Command;

use crate::folded::{Background, Folded, end, may_record, record, recorder};
use crate::programs::{compiled, program};
use crate::support::{directory, skip};

#[test]
fn a_program_that_is_removed_while_it_runs_is_named() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let folder = directory();
    let script = format!("cp {busy} gone; ./gone 0.3 & sleep 0.05; rm gone; wait");
    let outcome = end(recorder(["--", "sh", "-c", &script]).current_dir(&folder).spawn().unwrap()).ok();
    Folded::of(&outcome).assert_share(&["gone", "main", "spin", "step"], 0.6);
}

/// Starts a copy of the program, lets something happen to its file, and records it then.
fn record_without_file(happens: impl FnOnce(&Path)) {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let folder = directory();
    let path = folder.path().join("gone");
    std::fs::copy(busy, &path).unwrap();
    let process = Background::start(Command::new(&path).arg("20"));
    happens(&path);
    let outcome = record(["-F", "997", "-d", "300ms", "-p", &process.pid()]).ok();
    Folded::of(&outcome).assert_share(&["gone", "main", "spin", "step"], 0.8);
}

#[test]
fn a_program_that_was_removed_before_is_named() {
    record_without_file(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn a_program_that_was_replaced_before_is_named_by_its_own_symbols() {
    record_without_file(|path| {
        std::fs::remove_file(path).unwrap();
        std::fs::copy("/bin/sh", path).unwrap();
    });
}

#[test]
fn a_pipe_where_the_program_was_does_not_stop_the_recorder() {
    record_without_file(|path| {
        std::fs::remove_file(path).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    });
}

#[test]
fn a_program_that_is_in_memory_alone_is_named() {
    let (true, Some(folder)) = (may_record(), compiled()) else { return };
    let words = ["memory", "busy"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let outcome = record(["--", &words[0], &words[1], "0.2"]).ok();
    Folded::of(&outcome).assert_share(&["memfd:secret", "main", "spin", "step"], 0.8);
}

#[test]
fn a_program_on_a_tmpfs_is_named() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return skip("there is no /dev/shm") };
    let copy = folder.path().join("copy");
    std::fs::copy(busy, &copy).unwrap();
    let outcome = record(["--", copy.to_str().unwrap(), "0.2"]);
    if outcome.code() == 126 {
        return skip("/dev/shm runs no programs");
    }
    Folded::of(&outcome.ok()).assert_share(&["copy", "main", "spin", "step"], 0.8);
}
