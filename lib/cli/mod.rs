//! What all binaries share: reading the command line, running, and ending well.
//!
//! Exit status: 0 the output is complete for every line that could be read, 1 a verdict or a failure, 2 a wrong command
//! line. A reader that closed our output early is no failure.

mod generate;
mod output;
mod signals;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
pub use output::Output;
#[cfg(unix)]
pub use signals::Interrupts;

use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::input::Source;

/// One of the programs.
pub trait Tool: clap::Parser {
    /// The options that all tools have.
    fn common(&self) -> &Common;

    /// How its messages are coloured.
    fn color(&self) -> clap::ColorChoice {
        clap::ColorChoice::Auto
    }

    /// Whether, with this command line, it reads standard input: if that is a terminal, it says its usage instead.
    fn reads_stdin(&self) -> bool;

    /// Who acts on Ctrl-C: usually the shared handler, which removes an unfinished output file and ends the process.
    fn handles_signals(&self) -> bool {
        false
    }

    /// The work. The exit status is what it returns; 0 for success.
    ///
    /// # Errors
    /// Whatever stops it.
    fn run(self, session: &mut Session) -> Result<u8, Error>;

    /// The exit status for a failure.
    fn failure(_error: &Error) -> u8 {
        1
    }
}

/// The options that all tools have.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Common {
    /// Write to FILE, which appears only when it is complete [default: standard output]
    #[arg(short, long, value_name = "FILE", display_order = 900)]
    pub output: Option<PathBuf>,

    /// No warnings, only errors
    #[arg(short, long, display_order = 901, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Say more about what is done
    #[arg(short, long, action = clap::ArgAction::Count, display_order = 902)]
    pub verbose: u8,

    /// Print a man page or a shell's completions, and end
    #[arg(long, value_name = "KIND", hide = true, exclusive = true)]
    pub generate: Option<generate::Kind>,
}

/// How messages are coloured; all tools but fg-svg, whose `--color` is the palette, as flamegraph.pl has it.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Color {
    /// Colour messages: auto, always or never
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_possible_values = true, display_order = 903)]
    pub color: clap::ColorChoice,
}

/// The operands and options of tools that read files.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Reading {
    /// Files to read, plain or compressed (gzip, zstd); `-` or none is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Fail at the first malformed line instead of leaving it out
    #[arg(long, display_order = 800)]
    pub strict: bool,
}

impl Reading {
    /// What is to be read.
    ///
    /// # Errors
    /// [`Error::Usage`] if standard input is named twice.
    pub fn sources(&self) -> Result<Vec<Source>, Error> {
        Source::from_operands(&self.files)
    }

    /// Whether standard input is among it.
    pub fn reads_stdin(&self) -> bool {
        self.files.is_empty() || self.files.iter().any(|file| file.as_os_str() == "-")
    }
}

/// What a running tool has: its output and its voice.
pub struct Session {
    /// Where the result goes.
    pub output: Output,
    /// Where warnings go.
    pub diagnostics: Diagnostics,
}

/// Runs a tool: the whole of its `main`.
pub fn main<T: Tool>() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let parser = command::<T>();
    let name = keep(parser.get_name().to_owned());
    let matches = match parser.try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => return ExitCode::from(no_run(&error, &arguments)),
    };
    if let Some(kind) = matches.get_one::<generate::Kind>("generate") {
        return finish(name, generate::print(*kind, command::<T>()));
    }
    let tool = match T::from_arg_matches(&matches) {
        Ok(tool) => tool,
        Err(error) => return ExitCode::from(no_run(&error.format(&mut T::command()), &arguments)),
    };
    if tool.reads_stdin() && io::stdin().is_terminal() {
        let hint = format!("no input: name a file, or pipe into {name}");
        let error = T::command().error(ErrorKind::MissingRequiredArgument, hint);
        return ExitCode::from(no_run(&error, &arguments));
    }
    colour_messages(tool.color());
    ExitCode::from(run(tool, name))
}

/// The tool's command line as the parser and the generators see it.
fn command<T: Tool>() -> clap::Command {
    T::command().version(version()).term_width(80)
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

fn run<T: Tool>(tool: T, name: &'static str) -> u8 {
    let common = tool.common().clone();
    let verbosity = if common.quiet { -1 } else { i8::try_from(common.verbose).unwrap_or(i8::MAX) };
    let diagnostics = Diagnostics::new(name, verbosity, Box::new(anstream::stderr()));
    if !tool.handles_signals() {
        signals::install();
    }
    let output = match Output::create(common.output.as_deref()) {
        Ok(output) => output,
        Err(error) => return say(name, &error, T::failure(&error)),
    };
    let mut session = Session { output, diagnostics };
    let result = tool.run(&mut session).and_then(|status| session.output.finish().map(|()| status));
    session.diagnostics.finish();
    match result {
        Ok(0) if session.diagnostics.failed() => 1,
        Ok(status) => status,
        Err(error) if error.is_broken_pipe() => 0,
        Err(error @ Error::Usage(_)) => say(name, &error, 2),
        Err(error) => say(name, &error, T::failure(&error)),
    }
}

fn colour_messages(choice: clap::ColorChoice) {
    match choice {
        // anstream then follows NO_COLOR, CLICOLOR_FORCE, TERM and the terminal.
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

fn finish(name: &'static str, result: Result<(), Error>) -> ExitCode {
    match result {
        Err(error) if !error.is_broken_pipe() => ExitCode::from(say(name, &error, 1)),
        _ => ExitCode::SUCCESS,
    }
}

fn say(name: &'static str, error: &Error, status: u8) -> u8 {
    Diagnostics::new(name, 0, Box::new(anstream::stderr())).fail(error);
    status
}

/// The command line did not lead to a run: help, version, or a mistake in it.
fn no_run(error: &clap::Error, arguments: &[OsString]) -> u8 {
    use std::io::Write as _;
    if error.kind() == ErrorKind::DisplayVersion && wants_details(arguments) {
        let details = format!(
            "{error}target: {}-{}\ninput: gzip, zstd\nrecording: {}\n",
            std::env::consts::ARCH,
            std::env::consts::OS,
            if cfg!(target_os = "linux") { "perf_event" } else { "not on this system" },
        );
        return match io::stdout().write_all(details.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => 1,
            _ => 0,
        };
    }
    match error.print() {
        Err(failure) if failure.kind() != io::ErrorKind::BrokenPipe => 1,
        _ => u8::try_from(error.exit_code()).unwrap_or(2),
    }
}

fn wants_details(arguments: &[OsString]) -> bool {
    arguments
        .iter()
        .any(|argument| argument == "--verbose" || argument == "-v" || argument == "-vV" || argument == "-Vv")
}
