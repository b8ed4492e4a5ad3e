//! Messages on standard error: how many, in which colours, and without control characters.

use std::process::Stdio;

use super::{Program, READERS, Workspace};
use crate::support::{run_bounded, run_command};

fn malformed(program: Program, lines: usize) -> Vec<u8> {
    (program.profile.to_owned() + &"malformed\n".repeat(lines) + &good_lines(program, lines)).into_bytes()
}

/// Returns the same text without the malformed lines.
fn well_formed(program: Program, lines: usize) -> Vec<u8> {
    (program.profile.to_owned() + &good_lines(program, lines)).into_bytes()
}

/// Returns as many lines again: a text most of whose lines are malformed is an error.
fn good_lines(program: Program, lines: usize) -> String {
    (program.line)("more").repeat(lines)
}

/// Returns the number of the first malformed line.
fn first_malformed(program: Program) -> usize {
    program.profile.lines().count() + 1
}

#[test]
fn shows_ten_malformed_lines_and_counts_the_others() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let expected = workspace.run_with(["-"], &well_formed(program, 12)).ok().stdout;
        let outcome = workspace.run_with(["-"], &malformed(program, 12)).ok();
        assert_eq!(outcome.stdout, expected, "{program:?}");
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        assert_eq!(lines.len(), 11, "{outcome:?}");
        for (number, line) in lines[..10].iter().enumerate() {
            assert!(
                line.starts_with(&format!("{}: stdin:{}: ", program.name, first_malformed(program) + number)),
                "{line}"
            );
        }
        assert!(lines[10].contains("12 malformed lines"), "{outcome:?}");
        workspace.file("bad.folded", malformed(program, 1));
        let outcome = workspace.run(["bad.folded"]).ok();
        assert!(
            outcome.stderr.starts_with(&format!("{}: bad.folded:{}: ", program.name, first_malformed(program))),
            "{outcome:?}"
        );
    }
}

#[test]
fn strict_stops_at_the_first_malformed_line() {
    for program in READERS {
        let outcome = Workspace::new(program).run_with(["--strict", "-"], &malformed(program, 12));
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert!(
            outcome.stderr.starts_with(&format!("{}: stdin:{}: ", program.name, first_malformed(program))),
            "{outcome:?}"
        );
        assert_eq!((outcome.stderr.lines().count(), outcome.stdout.len()), (1, 0), "{outcome:?}");
    }
}

#[test]
fn quiet_leaves_only_errors_and_the_last_option_wins() {
    for program in READERS {
        let workspace = Workspace::new(program);
        for quiet in [&["-q"][..], &["--quiet"], &["-v", "-q"], &["-vvq"], &["-q", "-q"]] {
            let outcome = workspace.run_with(quiet.iter().chain(&["-"]), &malformed(program, 12)).ok();
            assert_eq!(outcome.stderr, "");
            let failing = workspace.run(quiet.iter().chain(&["missing"]));
            assert!(failing.code() != 0 && failing.stderr.contains("missing: No such file"), "{failing:?}");
        }
        for loud in [&["-v"][..], &["-vv"], &["--verbose"], &["-q", "-v"], &["-qv"]] {
            let outcome = workspace.run_with(loud.iter().chain(&["-"]), &malformed(program, 12)).ok();
            assert!(outcome.stderr.lines().count() >= 11, "{outcome:?}");
        }
        let twice = workspace.run_with(["--strict", "--strict", "-"], program.profile.as_bytes()).ok();
        assert_eq!(twice.stderr, "");
    }
}

/// Returns true if a warning into a pipe is coloured, with these options and environment variables.
fn is_coloured(program: Program, options: &[&str], environment: &[(&str, &str)]) -> bool {
    let workspace = Workspace::new(program);
    let mut command = workspace.command(options);
    command.arg("-").envs(environment.iter().copied());
    run_command(command, &malformed(program, 1)).ok().stderr.contains('\u{1b}')
}

#[test]
fn the_option_overrides_the_environment_in_colours() {
    let (no, force) = (("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1"));
    for program in READERS {
        assert!(!is_coloured(program, &[], &[]), "{program:?}");
        assert!(is_coloured(program, &[], &[force]), "{program:?}");
        assert!(!is_coloured(program, &[], &[force, no]), "{program:?}");
        assert!(is_coloured(program, &[], &[force, ("NO_COLOR", "")]), "{program:?}");
        // Its --color chooses the palette.
        if program.name != "fg-svg" {
            assert!(is_coloured(program, &["--color=always"], &[no]), "{program:?}");
            assert!(!is_coloured(program, &["--color", "never"], &[force]), "{program:?}");
            assert!(!is_coloured(program, &["--color=auto"], &[no]), "{program:?}");
            assert!(
                is_coloured(program, &["--color=never", "--color=always"], &[]),
                "the last option wins: {program:?}"
            );
        }
    }
}

#[cfg(unix)]
#[test]
fn colours_messages_on_a_terminal_unless_it_is_dumb() {
    use crate::support::terminal::Terminal;
    for program in READERS {
        let workspace = Workspace::new(program);
        workspace.file("bad.folded", malformed(program, 1));
        for (term, expected) in [("xterm", true), ("dumb", false)] {
            let terminal = Terminal::open();
            let mut command = workspace.command(["bad.folded"]);
            command.env("TERM", term).env_remove("CI").stdout(Stdio::piped()).stderr(terminal.stream());
            run_bounded(&mut command).ok();
            drop(command);
            let shown = terminal.shown();
            assert_eq!(shown.contains('\u{1b}'), expected, "{program:?} {term} {shown:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn removes_control_characters_from_messages() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let outcome = workspace.run(["\u{1b}[2J\u{202e}\nfg: all is well"]);
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert!(!outcome.stderr.contains(['\u{1b}', '\u{202e}']), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    }
}

#[test]
fn works_with_a_closed_standard_error() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let expected = workspace.run_with(["-"], &well_formed(program, 12)).ok().stdout;
        workspace.file("bad.folded", malformed(program, 12));
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = workspace.command(["bad.folded"]);
        let outcome = run_bounded(command.stdout(Stdio::piped()).stderr(closed)).ok();
        assert_eq!(outcome.stdout, expected, "{program:?}");
    }
}
