//! Programs whose files are elsewhere or no longer exist.
//!
//! Each test asserts that the program's functions have names and that no frame has only the name of its file.

use std::path::Path;
use std::time::Duration;

use crate::support::process::Background;
use crate::support::programs::{compiler, copy_program, program};
use crate::support::recording::{Profile, can_record, finish, record, record_process, recorder, until_cpu_time};
use crate::support::{command, directory, require, skip};

/// Asserts that all functions of the program `busy`, which runs under the name `object`, have names.
#[track_caller]
fn assert_named(profile: &Profile, object: &str) {
    profile.assert_contains(&[object, "main", "spin", "step"]);
    for unnamed in [format!("[{object}]"), format!("[{object} (deleted)]")] {
        profile.assert_lacks(&[&unnamed]);
    }
}

#[test]
fn names_a_program_that_is_removed_while_it_runs() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let folder = directory();
    let script = format!("cp {busy} gone; ./gone 0.3 & sleep 0.05; rm gone; wait");
    let outcome = finish(recorder(["--", "sh", "-c", &script]).current_dir(&folder).spawn().unwrap()).ok();
    assert_named(&Profile::from_stdout(&outcome), "gone");
}

/// Starts a copy of the program `busy`, lets `change` do something to its file, and records it.
fn record_without_file(change: impl FnOnce(&Path)) {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let folder = directory();
    let path = folder.path().join("gone");
    copy_program(busy, &path);
    let process = Background::start(command(&path).arg("100000"));
    change(&path);
    let outcome = record_process(&process, &["-F", "997"], Duration::from_millis(200)).ok();
    assert_named(&Profile::from_stdout(&outcome), "gone");
}

#[test]
fn records_a_process_whose_name_is_not_utf_8() {
    use std::os::unix::ffi::OsStrExt as _;
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let folder = directory();
    let path = folder.path().join(std::ffi::OsStr::from_bytes(b"na\xefve"));
    copy_program(busy, &path);
    let process = Background::start(command(&path).arg("100000"));
    for target in ["-p", "-t"] {
        let until = until_cpu_time(process.pid().parse().unwrap(), Duration::from_millis(100));
        let outcome = finish(recorder([target, &process.pid(), "-F", "997"]).args(until).spawn().unwrap());
        assert_eq!(outcome.code(), 3, "{outcome:?}");
        assert_named(&Profile::from_stdout(&outcome), "na\u{fffd}ve");
    }
}

#[test]
fn names_a_program_that_was_removed() {
    record_without_file(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn names_a_program_that_was_replaced_by_its_own_symbols() {
    record_without_file(|path| {
        std::fs::remove_file(path).unwrap();
        copy_program("/bin/sh", path);
    });
}

#[test]
fn names_a_program_that_was_replaced_by_a_fifo() {
    record_without_file(|path| {
        std::fs::remove_file(path).unwrap();
        assert!(command("mkfifo").arg(path).status().unwrap().success());
    });
}

#[test]
fn names_a_program_that_exists_only_in_memory() {
    let (true, Some(memory), Some(busy)) = (can_record(), program("memory"), program("busy")) else { return };
    let outcome = record(["--", &memory, &busy, "0.2"]).ok();
    assert_named(&Profile::from_stdout(&outcome), "memfd:secret");
}

#[test]
fn names_a_program_on_a_tmpfs() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return skip("there is no /dev/shm") };
    let copy = folder.path().join("copy");
    copy_program(busy, &copy);
    let outcome = record(["--", copy.to_str().unwrap(), "0.2"]);
    if outcome.code() == 126 {
        return skip("/dev/shm is mounted noexec");
    }
    assert_named(&Profile::from_stdout(&outcome.ok()), "copy");
}

#[test]
fn names_a_program_on_a_tmpfs_of_a_mount_namespace_that_is_gone() {
    let (true, Some(busy)) = (can_record() && require("unshare"), program("busy")) else { return };
    // The recorder sees another pid than the namespace, and never the mount, which is gone when it looks names up.
    let script = format!("mount -t tmpfs none /mnt && cp {busy} /mnt/inner && /mnt/inner 0.4; umount -l /mnt");
    let outcome = record(["--", "unshare", "-mpf", "--mount-proc", "sh", "-c", &script]);
    if outcome.stderr.contains("unshare: ") || outcome.stderr.contains("mount: ") {
        return skip(&outcome.stderr);
    }
    assert_named(&Profile::from_stdout(&outcome.ok()), "inner");
}

#[test]
fn survives_a_library_that_is_truncated_while_it_is_mapped() {
    if !(can_record() && require("python3") && require("cc")) {
        return;
    }
    let folder = directory();
    let library = folder.path().join("libcut.so");
    let mut compiler = compiler(&library);
    compiler.args(["-O2", "-g", "-shared", "-fPIC", "-DNO_MAIN", "busy.c"]);
    assert!(compiler.status().unwrap().success());
    // The file is truncated in place: reading its symbols through a mapping raises SIGBUS.
    let script = "import ctypes, os, sys\n\
        ctypes.CDLL(sys.argv[1]).spin(ctypes.c_double(0.3))\n\
        os.truncate(sys.argv[1], 0)\n\
        os._exit(3)";
    let outcome = record(["--", "python3", "-c", script, library.to_str().unwrap()]);
    assert_eq!(outcome.code(), 3, "{outcome:?}");
    Profile::from_stdout(&outcome).assert_contains(&["python3", "[libcut.so]"]);
}
