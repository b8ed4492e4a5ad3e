//! Answers to command lines that do not lead to a run: help, version, a mistake, no input.

use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::command;
use super::tool::Tool;
use crate::Error;
use crate::diagnostics::Diagnostics;

/// Prints the help or the version that was asked for, or reports what is wrong. Returns the exit status.
pub(super) fn answer<T: Tool>(error: &clap::Error, arguments: &[OsString]) -> u8 {
    let name = command::name::<T>();
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp => print(name, Ok(help::<T>(text).into_bytes())),
        ErrorKind::DisplayVersion if wants_details(arguments) => print(name, Ok((text + &details()).into_bytes())),
        ErrorKind::DisplayVersion => print(name, Ok(text.into_bytes())),
        _ => {
            let text = negative_number(error).or_else(|| ambiguous_option::<T>(error)).unwrap_or(text);
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            Diagnostics::to_stderr(name, 0).print_lines(text.trim_end().lines());
            2
        }
    }
}

/// Reports that there is no input, instead of waiting for somebody to type a profile. Returns the exit status.
pub(super) fn no_input<T: Tool>() -> u8 {
    let hint = format!("no input: name a file, or pipe into {}", command::name::<T>());
    answer::<T>(&command::build::<T>().error(ErrorKind::MissingRequiredArgument, hint), &[])
}

/// Prints to standard output. A full disk is a failure, a closed pipe is not. Returns the exit status.
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

/// Returns the help that clap has rendered. The short help then loses its group headings, so that it fits a screen.
fn help<T: Tool>(rendered: String) -> String {
    if command::is_long_help(&rendered) {
        return command::end_help::<T>(&rendered);
    }
    let mut short = command::build::<T>().mut_args(|argument| argument.help_heading(None::<&str>));
    command::end_help::<T>(&short.render_help().to_string())
}

/// Returns the message for a negative number that was taken for an option. clap would suggest to write it after `--`,
/// where commands and files go.
fn negative_number(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_number = argument.strip_prefix('-')?.starts_with(|first: char| first.is_ascii_digit());
    (error.kind() == ErrorKind::UnknownArgument && is_number)
        .then(|| format!("unexpected argument {argument}: no option takes a negative number"))
}

/// Returns the message for the beginning of several options. clap would suggest only one of them.
fn ambiguous_option<T: Tool>(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let beginning = argument.strip_prefix("--").filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let command = command::build::<T>();
    let visible = command.get_arguments().filter(|option| !option.is_hide_set());
    let longs = visible.filter_map(clap::Arg::get_long).filter(|long| long.starts_with(beginning));
    let longs: Vec<String> = longs.map(|long| format!("--{long}")).collect();
    (longs.len() > 1).then(|| format!("unexpected argument --{beginning}: expected one of {}", longs.join(", ")))
}

/// True if `-v` is given beside `-V`. clap stops at the first of the two, so the command line is searched.
fn wants_details(arguments: &[OsString]) -> bool {
    let options = arguments.iter().map_while(|argument| argument.to_str().filter(|&argument| argument != "--"));
    options.skip(1).any(|argument| argument == "--verbose" || argument.strip_prefix('-').is_some_and(has_verbose_flag))
}

/// True for combined short flags with `v` among them, such as `vV`.
fn has_verbose_flag(flags: &str) -> bool {
    flags.contains('v') && flags.chars().all(|flag| matches!(flag, 'v' | 'V' | 'q'))
}

/// Returns what this build supports on this machine.
fn details() -> String {
    let recording = match std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid") {
        Ok(level) if cfg!(target_os = "linux") => format!("perf_event (perf_event_paranoid is {})", level.trim()),
        _ if cfg!(target_os = "linux") => "not supported by this kernel (no perf_event)".to_owned(),
        _ => "not supported on this system (Linux only)".to_owned(),
    };
    let (machine, system) = (std::env::consts::ARCH, std::env::consts::OS);
    format!("target: {machine}-{system}\ncompressed input: gzip, zstd, xz, bzip2\nrecording: {recording}\n")
}
