//! What is said on standard error: how much, in what colours, and harmless to the terminal.

use std::process::Stdio;

use super::{Place, Program, READERS};
use crate::support::{run_bounded, run_command};

fn malformed(program: Program, lines: usize) -> Vec<u8> {
    (program.profile.to_owned() + &"malformed\n".repeat(lines)).into_bytes()
}

#[test]
fn ten_malformed_lines_are_shown_and_the_rest_counted() {
    for program in READERS {
        let place = Place::of(program);
        let expected = place.run(["in.folded"]).ok().stdout;
        let outcome = place.run_with(["-"], &malformed(program, 12)).ok();
        assert_eq!(outcome.stdout, expected, "{program:?}");
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        assert_eq!(lines.len(), 11, "{outcome:?}");
        for (number, line) in lines[..10].iter().enumerate() {
            assert!(line.starts_with(&format!("{}: stdin:{}: ", program.name, number + 5)), "{line}");
        }
        assert!(lines[10].contains("12 malformed lines"), "{outcome:?}");
        place.file("bad.folded", malformed(program, 1));
        let outcome = place.run(["bad.folded"]).ok();
        assert!(outcome.stderr.starts_with(&format!("{}: bad.folded:5: ", program.name)), "{outcome:?}");
    }
}

#[test]
fn strict_is_strict() {
    for program in READERS {
        let outcome = Place::of(program).run_with(["--strict", "-"], &malformed(program, 12));
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert!(outcome.stderr.starts_with(&format!("{}: stdin:5: ", program.name)), "{outcome:?}");
        assert_eq!((outcome.stderr.lines().count(), outcome.stdout.len()), (1, 0), "{outcome:?}");
    }
}

#[test]
fn quiet_means_errors_only_and_the_last_option_counts() {
    for program in READERS {
        let place = Place::of(program);
        for quiet in [&["-q"][..], &["--quiet"], &["-v", "-q"], &["-vvq"], &["-q", "-q"]] {
            let outcome = place.run_with(quiet.iter().chain(&["-"]), &malformed(program, 12)).ok();
            assert_eq!(outcome.stderr, "");
            let failing = place.run(quiet.iter().chain(&["missing"]));
            assert!(failing.code() != 0 && failing.stderr.contains("missing: No such file"), "{failing:?}");
        }
        for loud in [&["-v"][..], &["-vv"], &["--verbose"], &["-q", "-v"], &["-qv"]] {
            let outcome = place.run_with(loud.iter().chain(&["-"]), &malformed(program, 12)).ok();
            assert!(outcome.stderr.lines().count() >= 11, "{outcome:?}");
        }
        let twice = place.run_with(["--strict", "--strict", "-"], program.profile.as_bytes()).ok();
        assert_eq!(twice.stderr, "");
    }
}

/// Whether a warning is coloured, with these options and this environment, into a pipe.
fn colours(program: Program, options: &[&str], environment: &[(&str, &str)]) -> bool {
    let place = Place::of(program);
    let mut command = place.command(options);
    command.arg("-").envs(environment.iter().copied());
    run_command(command, &malformed(program, 1)).ok().stderr.contains('\u{1b}')
}

#[test]
fn colours_follow_the_option_then_the_environment() {
    let (no, force) = (("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1"));
    for program in READERS {
        assert!(!colours(program, &[], &[]), "{program:?}");
        assert!(colours(program, &[], &[force]), "{program:?}");
        assert!(!colours(program, &[], &[force, no]), "{program:?}");
        assert!(colours(program, &[], &[force, ("NO_COLOR", "")]), "{program:?}");
        // There --color is the palette.
        if program.name != "fg-svg" {
            assert!(colours(program, &["--color=always"], &[no]), "{program:?}");
            assert!(!colours(program, &["--color", "never"], &[force]), "{program:?}");
            assert!(!colours(program, &["--color=auto"], &[no]), "{program:?}");
            assert!(colours(program, &["--color=never", "--color=always"], &[]), "the last counts: {program:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_terminal_has_colours_unless_it_is_dumb() {
    use crate::support::terminal::Terminal;
    for program in READERS {
        let place = Place::of(program);
        place.file("bad.folded", malformed(program, 1));
        for (term, expected) in [("xterm", true), ("dumb", false)] {
            let terminal = Terminal::open();
            let mut command = place.command(["bad.folded"]);
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
fn messages_do_not_steer_the_terminal() {
    for program in READERS {
        let place = Place::of(program);
        let outcome = place.run(["\u{1b}[2J\u{202e}\nfg: all is well"]);
        assert_eq!(outcome.code(), program.failure, "{outcome:?}");
        assert!(!outcome.stderr.contains(['\u{1b}', '\u{202e}']), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    }
}

#[test]
fn a_closed_standard_error_does_not_stop_the_work() {
    for program in READERS {
        let place = Place::of(program);
        let expected = place.run(["in.folded"]).ok().stdout;
        place.file("bad.folded", malformed(program, 12));
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = place.command(["bad.folded"]);
        let outcome = run_bounded(command.stdout(Stdio::piped()).stderr(closed)).ok();
        assert_eq!(outcome.stdout, expected, "{program:?}");
    }
}
