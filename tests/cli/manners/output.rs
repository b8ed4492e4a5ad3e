//! Where the result goes: standard output, a file that appears when it is complete, a device; and what stops it.

use std::fs;
use std::process::Stdio;

use super::{Place, READERS};
use crate::support::run_command;

#[test]
fn a_file_gets_what_standard_output_gets() {
    for program in READERS {
        let place = Place::of(program);
        let expected = place.run(["in.folded"]).ok().stdout;
        assert_eq!(place.run(["-o", "-", "in.folded"]).ok().stdout, expected, "{program:?}");
        for output in ["-oout", "--output=out"] {
            let outcome = place.run([output, "in.folded"]).ok();
            assert_eq!((&outcome.stdout[..], place.read("out")), (&b""[..], expected.clone()), "{program:?}");
        }
        let outcome = place.run(["-o", "ignored", "-o", "out", "in.folded"]).ok();
        assert_eq!((outcome.stdout.len(), place.made()), (0, vec!["out".to_owned()]), "the last -o counts");
    }
}

#[test]
fn the_input_may_be_the_output() {
    for program in READERS {
        let place = Place::of(program);
        let expected = place.run(["in.folded"]).ok().stdout;
        place.run(["in.folded", "-o", "in.folded"]).ok();
        assert_eq!(place.read("in.folded"), expected, "{program:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_keeps_its_mode_and_a_link_stays_one() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    for program in READERS {
        let place = Place::of(program);
        let expected = place.run(["in.folded"]).ok().stdout;
        let old = place.file("old", "what stood here before\n");
        fs::set_permissions(&old, fs::Permissions::from_mode(0o604)).unwrap();
        fs::create_dir(place.path().join("folder")).unwrap();
        symlink("../old", place.path().join("folder/link")).unwrap();
        symlink("new", place.path().join("to-nothing")).unwrap();
        place.run(["in.folded", "-o", "folder/link"]).ok();
        place.run(["in.folded", "-o", "to-nothing"]).ok();
        assert_eq!((place.read("old"), place.read("new")), (expected.clone(), expected), "{program:?}");
        assert_eq!(fs::metadata(&old).unwrap().permissions().mode() & 0o777, 0o604, "{program:?}");
        assert_eq!(place.made(), ["folder", "new", "old", "to-nothing"], "{program:?}");
        for link in ["folder/link", "to-nothing"] {
            assert!(fs::symlink_metadata(place.path().join(link)).unwrap().is_symlink(), "{program:?} {link}");
        }
    }
}

#[test]
fn a_failure_leaves_the_old_file_and_nothing_else() {
    for program in READERS {
        let place = Place::of(program);
        place.file("old", "what stood here before\n");
        let outcome = place.run_with(["--strict", "-o", "old", "-"], b"main 1\nmalformed\n");
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert_eq!(place.read("old"), b"what stood here before\n", "{program:?}");
        assert_eq!(place.made(), ["old"], "{program:?}");
        let outcome = place.run(["nonexistent", "-o", "old"]);
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert_eq!(place.read("old"), b"what stood here before\n", "{program:?}");
        let outcome = place.run(["in.folded", "-o", "no/such/folder"]);
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert_eq!(outcome.stderr, format!("{}: no/such/folder: No such file or directory\n", program.name));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_is_written_as_it_is_and_a_full_one_is_said() {
    use std::os::unix::fs::FileTypeExt as _;
    for program in READERS {
        let place = Place::of(program);
        place.run(["in.folded", "-o", "/dev/null"]).ok();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let outcome = place.run(["in.folded", "-o", "/dev/full"]);
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert_eq!(outcome.stderr, format!("{}: /dev/full: No space left on device\n", program.name));
        let mut command = place.command(["in.folded"]);
        command.stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        let outcome = crate::support::run_bounded(command.stderr(Stdio::piped()));
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert_eq!(outcome.stderr, format!("{}: stdout: No space left on device\n", program.name));
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    for program in READERS {
        let place = Place::of(program);
        let text: String = (0..50_000).map(|number| (program.line)(&format!("f{number}"))).collect();
        place.file("large.folded", &text);
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = place.command(["large.folded"]);
        let outcome = crate::support::run_bounded(command.stdout(closed).stderr(Stdio::piped())).ok();
        assert_eq!(outcome.stderr, "", "{program:?}");
    }
}

#[cfg(unix)]
#[test]
fn what_only_programs_read_does_not_go_to_the_terminal() {
    use crate::support::{run_bounded, terminal::Terminal};
    for program in READERS.into_iter().filter(|program| program.binary) {
        let place = Place::of(program);
        let terminal = Terminal::open();
        let mut command = place.command(["in.folded"]);
        let outcome = run_bounded(command.stdout(terminal.stream()).stderr(Stdio::piped()));
        assert_eq!((outcome.code(), outcome.stderr.lines().count()), (2, 1), "{outcome:?}");
        assert!(outcome.stderr.contains(" -o"), "{outcome:?}");
        drop(command);
        assert_eq!(terminal.shown(), "");
    }
}

#[cfg(unix)]
#[test]
fn names_do_not_steer_the_terminal_but_pass_through_pipes() {
    use crate::support::{run_bounded, terminal::Terminal};
    let hostile = "\u{1b}]0;owned\u{7};\u{1b}[31mred\u{9b}2J\u{202e}evil";
    for program in READERS {
        let place = Place::of(program);
        place.file("hostile.folded", (program.line)(hostile));
        if program.binary {
            continue;
        }
        let terminal = Terminal::open();
        let mut command = place.command(["hostile.folded"]);
        run_bounded(command.stdout(terminal.stream()).stderr(Stdio::piped())).ok();
        drop(command);
        let shown = terminal.shown();
        assert!(shown.contains("red") && !shown.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{shown:?}");
        if program.folds {
            let piped = run_command(place.command(["hostile.folded"]), b"").ok().text();
            assert!(piped.contains(hostile), "{piped:?}");
        }
    }
}
