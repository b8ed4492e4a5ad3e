//! Programs whose files are elsewhere, or nowhere any more.

use std::path::Path;
use std::process::Command;

use crate::folded::{Background, Folded, end, may_record, record, recorder};
use crate::programs::{compiled, copy_program, program};
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
    copy_program(busy, &path);
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
        copy_program("/bin/sh", path);
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
    copy_program(busy, &copy);
    let outcome = record(["--", copy.to_str().unwrap(), "0.2"]);
    if outcome.code() == 126 {
        return skip("/dev/shm runs no programs");
    }
    Folded::of(&outcome.ok()).assert_share(&["copy", "main", "spin", "step"], 0.8);
}

#[test]
fn a_program_on_a_tmpfs_that_goes_with_its_namespaces_is_named() {
    let (true, Some(busy)) = (may_record() && crate::support::has("unshare"), program("busy")) else { return };
    // Of pids and mounts: the recorder sees another number and never the folder, which is gone when names are looked up.
    let script = format!("mount -t tmpfs none /mnt && cp {busy} /mnt/inner && /mnt/inner 0.4; umount -l /mnt");
    let words = ["--", "unshare", "-mpf", "--mount-proc", "sh", "-c", &script];
    let outcome = record(words);
    if outcome.stderr.contains("unshare: ") || outcome.stderr.contains("mount: ") {
        return skip(&outcome.stderr);
    }
    Folded::of(&outcome.ok()).assert_share(&["inner", "main", "spin", "step"], 0.7);
}

#[test]
fn a_library_that_is_cut_short_while_it_is_recorded_does_no_harm() {
    let (true, Some(sources)) = (may_record() && crate::support::has("python3"), compiled()) else { return };
    let folder = directory();
    let library = folder.path().join("libcut.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-shared", "-fPIC", "-DNO_MAIN", "-o"]).arg(&library).arg(sources.join("busy.c"));
    assert!(compiler.status().unwrap().success());
    // It runs, then it is emptied in place: whoever looks up its symbols reads where nothing is.
    let script = "import ctypes, os, sys\n\
        ctypes.CDLL(sys.argv[1]).spin(ctypes.c_double(0.8))\n\
        os.truncate(sys.argv[1], 0)\n\
        os._exit(3)";
    let outcome = record(["--", "python3", "-c", script, library.to_str().unwrap()]);
    assert_eq!(outcome.code(), 3, "{outcome:?}");
    Folded::of(&outcome).assert_share(&["python3", "[libcut.so]"], 0.3);
}
