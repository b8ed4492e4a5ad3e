//! Outputs: standard output, a file that appears once it is complete, a device. And failures to write them.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use super::{READERS, Workspace};
use crate::support::run_command;

#[test]
fn writes_the_same_to_a_file_as_to_standard_output() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let expected = workspace.run(["in.folded"]).ok().stdout;
        assert_eq!(workspace.run(["-o", "-", "in.folded"]).ok().stdout, expected, "{program:?}");
        for output in ["-oout", "--output=out"] {
            let outcome = workspace.run([output, "in.folded"]).ok();
            assert_eq!((&outcome.stdout[..], workspace.read("out")), (&b""[..], expected.clone()), "{program:?}");
        }
        let outcome = workspace.run(["-o", "ignored", "-o", "out", "in.folded"]).ok();
        assert_eq!((outcome.stdout.len(), workspace.output_files()), (0, vec!["out".to_owned()]), "the last -o wins");
    }
}

#[test]
fn compresses_a_file_called_gz_once() {
    for program in READERS {
        let workspace = Workspace::new(program);
        // A profile of pprof is compressed in any case.
        let is_compressed = |bytes: &[u8]| bytes.starts_with(b"\x1f\x8b");
        let expected = workspace.run(["in.folded"]).ok().stdout;
        let expected = if is_compressed(&expected) { decompress(&expected) } else { expected };
        workspace.run(["-o", "out.gz", "in.folded"]).ok();
        let written = workspace.read("out.gz");
        assert!(is_compressed(&written), "{program:?}");
        assert_eq!(decompress(&written), expected, "{program:?}");
    }
}

fn decompress(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut text).unwrap();
    text
}

#[test]
fn replaces_its_input() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let expected = workspace.run(["in.folded"]).ok().stdout;
        workspace.run(["in.folded", "-o", "in.folded"]).ok();
        assert_eq!(workspace.read("in.folded"), expected, "{program:?}");
    }
}

#[cfg(unix)]
#[test]
fn keeps_the_mode_of_a_file_and_follows_links() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    for program in READERS {
        let workspace = Workspace::new(program);
        let expected = workspace.run(["in.folded"]).ok().stdout;
        let old = workspace.file("old", "old content\n");
        fs::set_permissions(&old, fs::Permissions::from_mode(0o604)).unwrap();
        fs::create_dir(workspace.path().join("folder")).unwrap();
        symlink("../old", workspace.path().join("folder/link")).unwrap();
        symlink("new", workspace.path().join("to-nothing")).unwrap();
        workspace.run(["in.folded", "-o", "folder/link"]).ok();
        workspace.run(["in.folded", "-o", "to-nothing"]).ok();
        assert_eq!((workspace.read("old"), workspace.read("new")), (expected.clone(), expected), "{program:?}");
        assert_eq!(fs::metadata(&old).unwrap().permissions().mode() & 0o777, 0o604, "{program:?}");
        assert_eq!(workspace.output_files(), ["folder", "new", "old", "to-nothing"], "{program:?}");
        for link in ["folder/link", "to-nothing"] {
            assert!(fs::symlink_metadata(workspace.path().join(link)).unwrap().is_symlink(), "{program:?} {link}");
        }
    }
}

/// Without `/proc`, a file without a name cannot get one.
#[cfg(target_os = "linux")]
#[test]
fn creates_and_replaces_files_without_proc() {
    use std::os::unix::fs::PermissionsExt as _;
    let can_unmount =
        crate::support::command("unshare").args(["-rm", "sh", "-c", "mount -t tmpfs none /proc"]).output();
    if !can_unmount.is_ok_and(|outcome| outcome.status.success()) {
        return crate::support::skips::skip("no mount namespaces");
    }
    for program in READERS {
        let workspace = Workspace::new(program);
        let expected = workspace.run(["in.folded"]).ok().stdout;
        let old = workspace.file("old", "old content\n");
        fs::set_permissions(&old, fs::Permissions::from_mode(0o604)).unwrap();
        for output in ["old", "new"] {
            let mut command = crate::support::command("unshare");
            command.args(["-rm", "sh", "-c", "mount -t tmpfs none /proc && umask 027 && exec \"$@\"", "sh"]);
            command.arg(crate::support::tool(program.name)).args(program.before);
            command.args(["in.folded", "-o", output]).current_dir(workspace.path());
            run_command(command, b"").ok();
            assert_eq!(workspace.read(output), expected, "{program:?}");
        }
        let mode = |name| fs::metadata(workspace.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("old"), mode("new")), (0o604, 0o640), "{program:?}");
        assert_eq!(workspace.output_files(), ["new", "old"], "{program:?}");
    }
}

#[test]
fn a_failure_leaves_the_old_file_unchanged() {
    for program in READERS {
        let workspace = Workspace::new(program);
        workspace.file("old", "old content\n");
        let outcome = workspace.run_with(["--strict", "-o", "old", "-"], b"main 1\nmalformed\n");
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert_eq!(workspace.read("old"), b"old content\n", "{program:?}");
        assert_eq!(workspace.output_files(), ["old"], "{program:?}");
        let outcome = workspace.run(["nonexistent", "-o", "old"]);
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert_eq!(workspace.read("old"), b"old content\n", "{program:?}");
        let outcome = workspace.run(["in.folded", "-o", "no/such/folder"]);
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert_eq!(
            outcome.stderr,
            format!("{}: no/such/folder: cannot write: No such file or directory\n", program.name)
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn writes_to_devices_and_reports_a_full_one() {
    use std::os::unix::fs::FileTypeExt as _;
    for program in READERS {
        let workspace = Workspace::new(program);
        workspace.run(["in.folded", "-o", "/dev/null"]).ok();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let outcome = workspace.run(["in.folded", "-o", "/dev/full"]);
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert_eq!(outcome.stderr, format!("{}: /dev/full: cannot write: No space left on device\n", program.name));
        let mut command = workspace.command(["in.folded"]);
        command.stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        let outcome = crate::support::run_bounded(command.stderr(Stdio::piped()));
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert_eq!(outcome.stderr, format!("{}: stdout: cannot write: No space left on device\n", program.name));
    }
}

#[test]
fn succeeds_if_the_reader_closes_the_pipe() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let text: String = (0..50_000).map(|number| (program.line)(&format!("f{number}"))).collect();
        workspace.file("large.folded", &text);
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = workspace.command(["large.folded"]);
        let outcome = crate::support::run_bounded(command.stdout(closed).stderr(Stdio::piped())).ok();
        assert_eq!(outcome.stderr, "", "{program:?}");
    }
}

#[cfg(unix)]
#[test]
fn refuses_to_write_binary_data_to_a_terminal() {
    use crate::support::{run_bounded, terminal::Terminal};
    for program in READERS.into_iter().filter(|program| program.binary) {
        let workspace = Workspace::new(program);
        let terminal = Terminal::open();
        let mut command = workspace.command(["in.folded"]);
        let outcome = run_bounded(command.stdout(terminal.stream()).stderr(Stdio::piped()));
        assert_eq!((outcome.code(), outcome.stderr.lines().count()), (2, 1), "{outcome:?}");
        assert!(outcome.stderr.contains(" -o"), "{outcome:?}");
        drop(command);
        assert_eq!(terminal.shown(), "");
    }
}

#[cfg(unix)]
#[test]
fn removes_control_characters_on_a_terminal_but_not_in_pipes() {
    use crate::support::{run_bounded, terminal::Terminal};
    // Sequences of terminals are no part of names, and dropped: these bytes are none.
    let hostile = "\u{1b}owned\u{7};\u{1b}\u{9b}2Jred\u{9b}2J\u{202e}evil";
    for program in READERS {
        let workspace = Workspace::new(program);
        workspace.file("hostile.folded", (program.line)(hostile));
        if program.binary {
            continue;
        }
        let terminal = Terminal::open();
        let mut command = workspace.command(["hostile.folded"]);
        run_bounded(command.stdout(terminal.stream()).stderr(Stdio::piped())).ok();
        drop(command);
        let shown = terminal.shown();
        assert!(shown.contains("red") && !shown.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{shown:?}");
        if program.folds {
            let piped = run_command(workspace.command(["hostile.folded"]), b"").ok().text();
            assert!(piped.contains(hostile), "{piped:?}");
        }
    }
}
