//! Help, version and errors in the command line, for all programs.

use std::process::Stdio;

use super::{READERS, Workspace};
use crate::support::{Outcome, TOOLS, command, run, run_bounded, run_command, tool};

#[test]
fn short_help_fits_a_screen_and_has_one_example() {
    for name in TOOLS {
        let help = run(name, ["-h"], b"").ok();
        let lines: Vec<String> = help.text().lines().map(str::to_owned).collect();
        assert!(lines.len() <= 25, "{name} -h has {} lines:\n{}", lines.len(), help.text());
        assert_narrow(&help);
        let examples = lines.iter().filter(|line| line.starts_with("Example: ") && line.contains(name)).count();
        assert_eq!(examples, 1, "{}", help.text());
    }
}

#[test]
fn long_help_has_every_option_of_the_short_help() {
    for name in TOOLS {
        let (short, long) = (run(name, ["-h"], b"").ok().text(), run(name, ["--help"], b"").ok());
        assert_narrow(&long);
        assert!(long.text().lines().count() > short.lines().count(), "{name}");
        let options = short.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2);
        for option in options.map(|word| word.trim_end_matches(|end: char| !end.is_alphanumeric())) {
            assert!(long.text().contains(option), "{name} --help lacks {option}");
        }
        assert!(long.stderr.is_empty(), "{long:?}");
    }
}

/// A line of a command that another one follows ends with a backslash, and a shell can parse the whole.
#[test]
fn examples_can_be_pasted() {
    for name in TOOLS {
        let help = run(name, ["--help"], b"").ok().text();
        let (_, examples) = help.rsplit_once("\nExamples:\n").unwrap();
        let (examples, _) = examples.split_once("\n\nExit status:").unwrap();
        let lines: Vec<&str> = examples.lines().collect();
        let is_command = |line: &str| line.starts_with("    ");
        for pair in lines.windows(2).filter(|pair| is_command(pair[0]) && is_command(pair[1])) {
            assert!(pair[0].ends_with(" \\"), "{name}: {}", pair[0]);
        }
        let commands: Vec<&str> = lines.into_iter().filter(|line| is_command(line)).collect();
        let mut shell = command("sh");
        shell.arg("-n");
        let parsed = run_command(shell, commands.join("\n").as_bytes());
        assert!(!commands.is_empty() && parsed.code() == 0, "{name}: {parsed:?}");
    }
}

fn assert_narrow(help: &Outcome) {
    let text = help.text();
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{}: {wide:#?}", help.command);
}

#[test]
fn version_is_one_line_and_has_details_with_verbose() {
    for name in TOOLS {
        let version = run(name, ["-V"], b"").ok().text();
        assert!(version.starts_with(&format!("{name} {}", env!("CARGO_PKG_VERSION"))), "{version}");
        assert_eq!(version.lines().count(), 1, "{version}");
        assert_eq!(run(name, ["--version"], b"").ok().text(), version);
        for with_details in [["-V", "-v"], ["-v", "-V"], ["-vV", "-q"], ["--version", "--verbose"]] {
            let details = run(name, with_details, b"").ok().text();
            for detail in ["target: ", "gzip, zstd, xz, bzip2", "recording: "] {
                assert!(
                    details.starts_with(&version) && details.contains(detail),
                    "{name} {with_details:?}: {details}"
                );
            }
        }
    }
}

#[test]
fn reports_an_unknown_option_under_the_programs_name() {
    for name in TOOLS {
        let outcome = run(name, ["--no-such-option"], b"");
        assert_eq!(outcome.code(), 2, "{outcome:?}");
        assert!(outcome.stderr.starts_with(&format!("{name}: ")), "{outcome:?}");
        assert!(outcome.stderr.contains("--no-such-option") && outcome.stderr.contains("Usage: "), "{outcome:?}");
        assert!(outcome.stdout.is_empty(), "{outcome:?}");
        let hostile = run(name, ["--\u{1b}[31mred\u{202e}"], b"");
        assert_eq!(hostile.code(), 2, "{hostile:?}");
        assert!(!hostile.stderr.contains(['\u{1b}', '\u{202e}']), "{hostile:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn help_fails_on_a_full_disk_but_not_on_a_closed_pipe() {
    for name in TOOLS {
        for request in [&["-h"][..], &["--help"], &["-V"], &["-Vv"], &["--generate", "man"]] {
            let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let outcome = run_bounded(command(tool(name)).args(request).stdout(full).stderr(Stdio::piped()));
            assert_eq!(outcome.code(), 1, "{outcome:?}");
            assert_eq!(outcome.stderr, format!("{name}: stdout: cannot write: No space left on device\n"));
            let (reader, closed) = std::io::pipe().unwrap();
            drop(reader);
            let outcome = run_bounded(command(tool(name)).args(request).stdout(closed).stderr(Stdio::piped())).ok();
            assert_eq!(outcome.stderr, "");
        }
    }
}

#[cfg(unix)]
#[test]
fn prints_the_usage_if_standard_input_is_a_terminal() {
    use crate::support::terminal::Terminal;
    for program in READERS {
        let workspace = Workspace::new(program);
        for operands in [&[][..], &["-"]] {
            let terminal = Terminal::open();
            let mut command = workspace.command(operands);
            command.stdin(terminal.stream()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let outcome = run_bounded(&mut command);
            assert_eq!(outcome.code(), 2, "{outcome:?}");
            assert!(outcome.stderr.contains("Usage: ") && outcome.stderr.lines().count() < 10, "{outcome:?}");
            assert!(outcome.stdout.is_empty(), "{outcome:?}");
        }
    }
}
