//! The command line as the parser sees it, and the answers where it does not lead to a run: help, version, a mistake.

use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::options::Shared;
use super::{Tool, manual};
use crate::Error;
use crate::diagnostics::Diagnostics;

/// The tool's command line: of an option given twice the last counts, and help is 80 columns wide everywhere.
pub(super) fn command<T: Tool>() -> clap::Command {
    manual::add_examples::<T>(Shared::add_to(T::command())).version(version()).args_override_self(true).term_width(80)
}

/// What the tool is called.
pub(super) fn name<T: Tool>() -> &'static str {
    keep(T::command().get_name().to_owned())
}

/// The version, and where the build knows it the revision.
fn version() -> &'static str {
    let version = env!("CARGO_PKG_VERSION");
    option_env!("FG_REVISION").map_or(version, |revision| keep(format!("{version} (rev {revision})")))
}

/// A handful of bytes that live as long as the process.
fn keep(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Says that there is nothing to read, rather than wait for somebody to type a profile. The exit status is returned.
pub(super) fn no_input<T: Tool>(name: &'static str) -> u8 {
    let hint = format!("no input: name a file, or pipe into {name}");
    answer(name, &command::<T>().error(ErrorKind::MissingRequiredArgument, hint), &[])
}

/// Prints what was asked for, or says what is wrong. The exit status is returned.
pub(super) fn answer(name: &'static str, error: &clap::Error, arguments: &[OsString]) -> u8 {
    let text = below_zero(error).unwrap_or_else(|| error.render().to_string());
    match error.kind() {
        ErrorKind::DisplayHelp => print(name, Ok(text.into_bytes())),
        ErrorKind::DisplayVersion if wants_details(arguments) => print(name, Ok((text + &details()).into_bytes())),
        ErrorKind::DisplayVersion => print(name, Ok(text.into_bytes())),
        _ => {
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            Diagnostics::to_stderr(name, 0).print_lines(text.trim_end().lines());
            2
        }
    }
}

/// A number below zero looks like an option, and the parser would have it written behind `--`, where commands and files
/// stand.
fn below_zero(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_number = argument.strip_prefix('-')?.starts_with(|first: char| first.is_ascii_digit());
    (error.kind() == ErrorKind::UnknownArgument && is_number)
        .then(|| format!("{argument} stands for nothing: no value here is below zero"))
}

/// Prints to standard output, where a full disk is a failure and a closed pipe is none. The exit status is returned.
pub(super) fn print(name: &'static str, text: io::Result<Vec<u8>>) -> u8 {
    let mut stdout = io::stdout();
    let printed = text.and_then(|text| stdout.write_all(&text)).and_then(|()| stdout.flush());
    match printed.map_err(|error| Error::write("stdout", error)) {
        Err(error) if !error.is_broken_pipe() => {
            Diagnostics::to_stderr(name, 0).fail(&error);
            1
        }
        _ => 0,
    }
}

/// Whether `-v` stands beside `-V`: the parser ends at the first of the two.
fn wants_details(arguments: &[OsString]) -> bool {
    let verbose = |argument: &str| {
        argument == "--verbose"
            || argument.strip_prefix('-').is_some_and(|letters| {
                letters.contains('v') && letters.chars().all(|letter| matches!(letter, 'v' | 'V' | 'q'))
            })
    };
    let options = arguments.iter().map_while(|argument| argument.to_str().filter(|&argument| argument != "--"));
    options.skip(1).any(verbose)
}

/// What this build can do on this machine.
fn details() -> String {
    let recording = match std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid") {
        Ok(level) if cfg!(target_os = "linux") => format!("perf_event (perf_event_paranoid is {})", level.trim()),
        _ if cfg!(target_os = "linux") => "perf_event, which this kernel lacks".to_owned(),
        _ => "not on this system".to_owned(),
    };
    let (machine, system) = (std::env::consts::ARCH, std::env::consts::OS);
    format!("target: {machine}-{system}\ncompressed input: gzip, zstd\nrecording: {recording}\n")
}
