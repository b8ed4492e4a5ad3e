//! Runs a program: parses its command line, opens input and output, and turns the result into an exit status.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::process::ExitCode;

use super::options::{Generated, SharedArgs};
use super::tool::{Session, Tool};
use super::{command, completions, help, man_page, option_table};
use crate::diagnostics::Diagnostics;
use crate::input::Source;
use crate::output::Output;
use crate::{Error, interrupts};

/// Runs a program. This is all that its `main` does.
pub fn main<T: Tool>() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let status = match parse::<T>(&arguments) {
        Ok(Parsed::Run(tool, shared)) => start(tool, &shared),
        Ok(Parsed::Generate(what)) => help::print(command::name::<T>(), generate::<T>(what)),
        Err(error) => help::answer::<T>(&error, &arguments),
    };
    ExitCode::from(status)
}

/// A valid command line.
enum Parsed<T> {
    Run(T, SharedArgs),
    Generate(Generated),
}

fn parse<T: Tool>(arguments: &[OsString]) -> Result<Parsed<T>, clap::Error> {
    let matches = command::build::<T>().try_get_matches_from(arguments)?;
    check_optional_values::<T>(arguments)?;
    if let Some(what) = matches.get_one::<Generated>("generate") {
        return Ok(Parsed::Generate(*what));
    }
    let tool = T::from_arg_matches(&matches);
    let parsed = tool.and_then(|tool| Ok((tool, SharedArgs::from_matches(&matches, &command::build::<T>())?)));
    let (tool, shared) = parsed.map_err(|error| error.format(&mut command::build::<T>()))?;
    Ok(Parsed::Run(tool, shared))
}

/// Checks that no value of an option was taken for a file: an optional value needs an equals sign, as in `--shorten=2`.
///
/// # Errors
/// If an argument after such an option is no file, but a valid value.
fn check_optional_values<T: Tool>(arguments: &[OsString]) -> Result<(), clap::Error> {
    let command = command::build::<T>();
    let with_optional_value = command.get_arguments().filter(|option| option.is_require_equals_set());
    let names: Vec<String> =
        with_optional_value.filter_map(|option| Some(format!("--{}", option.get_long()?))).collect();
    let options = arguments.iter().take_while(|argument| *argument != "--").count();
    for (index, pair) in arguments[..options].windows(2).enumerate() {
        let [Some(name), Some(value)] = [pair[0].to_str(), pair[1].to_str()] else { continue };
        if !names.iter().any(|known| known == name) || value.starts_with('-') || Path::new(value).exists() {
            continue;
        }
        let joined = format!("{name}={value}");
        let mut others = arguments.to_vec();
        others.splice(index..index + 2, [OsString::from(&joined)]);
        if command::build::<T>().try_get_matches_from(others).is_ok() {
            let message = format!("{name} {value}: {value} is no file; to give the option this value, write {joined}");
            return Err(command::build::<T>().error(clap::error::ErrorKind::ValueValidation, message));
        }
    }
    Ok(())
}

fn generate<T: Tool>(what: Generated) -> io::Result<Vec<u8>> {
    match what {
        Generated::Man => Ok(man_page::render::<T>().into_bytes()),
        Generated::CompleteBash => Ok(completions::render::<T>(clap_complete::Shell::Bash)),
        Generated::CompleteZsh => Ok(completions::render::<T>(clap_complete::Shell::Zsh)),
        Generated::Options => Ok(option_table::render::<T>().into_bytes()),
        Generated::CompleteFish => Ok(completions::render::<T>(clap_complete::Shell::Fish)),
    }
}

/// Prepares the process for a run, and runs the program.
fn start<T: Tool>(tool: T, shared: &SharedArgs) -> u8 {
    let reads_stdin = tool.reads_stdin() && shared.input.reads_stdin();
    if reads_stdin && io::stdin().is_terminal() {
        return help::no_input::<T>();
    }
    set_message_colour(shared.color);
    if !tool.handles_signals() {
        interrupts::install(reads_stdin);
    }
    run(tool, shared)
}

fn run<T: Tool>(tool: T, shared: &SharedArgs) -> u8 {
    let mut diagnostics = Diagnostics::to_stderr(command::name::<T>(), shared.common.verbosity());
    diagnostics.set_strict(shared.input.strict);
    let (sources, output) = match open(&tool, shared) {
        Ok(opened) => opened,
        Err(error) => {
            diagnostics.fail(&error);
            return exit_status::<T>(&error);
        }
    };
    if output.is_terminal() && !tool.opens_outputs() {
        diagnostics.disable_progress();
    }
    let mut session = Session { sources, output, diagnostics };
    let result = tool.run(&mut session).and_then(|status| finish_output(&mut session, status));
    session.diagnostics.finish();
    let status = match result {
        Ok(status) => status,
        Err(error) if error.is_broken_pipe() => 0,
        Err(error) => {
            session.diagnostics.fail(&error);
            return exit_status::<T>(&error);
        }
    };
    if session.diagnostics.has_failed() { T::failure(&Error::AlreadyReported) } else { status }
}

/// Opens the inputs and, unless the program opens its outputs itself, the output.
fn open<T: Tool>(tool: &T, shared: &SharedArgs) -> Result<(Vec<Source>, Output), Error> {
    let sources = match &shared.input.files0_from {
        Some(list) => Source::from_list(list).map_err(|error| match error {
            Error::Invalid(what) => Error::Invalid(format!("--files0-from {what}")),
            other => other,
        })?,
        None => Source::from_operands(&shared.input.files)?,
    };
    let path = shared.common.output.as_deref().filter(|_| !tool.opens_outputs());
    Ok((sources, Output::create(path)?))
}

/// Completes the output, or discards an output file if a failure was reported. Returns the exit status.
fn finish_output(session: &mut Session, status: u8) -> Result<u8, Error> {
    if session.diagnostics.has_failed() {
        session.output.discard(&mut session.diagnostics);
    }
    match session.output.finish() {
        // The reader may leave early: that does not change a verdict.
        Err(error) if error.is_broken_pipe() => Ok(status),
        finished => finished.map(|()| status),
    }
}

fn exit_status<T: Tool>(error: &Error) -> u8 {
    if matches!(error, Error::Usage(_)) { 2 } else { T::failure(error) }
}

fn set_message_colour(choice: clap::ColorChoice) {
    match choice {
        // anstream then follows NO_COLOR, CLICOLOR_FORCE, TERM and the terminal.
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}
