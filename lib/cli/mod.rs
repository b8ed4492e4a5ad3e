//! What all binaries share: reading the command line, running, and ending well.
//!
//! Exit status: 0 the output is complete for every line that could be read, 1 a verdict or a failure, 2 a wrong command
//! line. A reader that closed our output early is no failure.

mod choosing;
mod generate;
mod manual;
mod options;
mod usage;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

pub use choosing::Choosing;
pub use manual::Entries;
use options::Shared;
pub use options::{Color, Common, Reading, parse_duration, parse_percent, positive};

use crate::diagnostics::Diagnostics;
use crate::input::Source;
use crate::output::Output;
use crate::{Error, interrupts};

/// One of the programs: its own options, to which those are added that all have, and what it does.
///
/// Of the shared options it gets those that it does not have itself: see [`Common`], [`Color`] and, unless it has
/// operands of its own, [`Reading`].
pub trait Tool: clap::Parser {
    /// Command lines worth copying and what each does, the most useful first: that one is in the short help too.
    const EXAMPLES: Entries = &[];

    /// What the exit statuses mean.
    const EXIT_STATUS: Entries = manual::EXIT_STATUS;

    /// What else the manual has, between the options and the exit statuses: headings with terms and what they mean.
    fn sections() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
        Vec::new()
    }

    /// Manual pages of other projects that help, such as `perf-script(1)`.
    const SEE_ALSO: &'static [&'static str] = &[];

    /// Whether, with this command line, it reads standard input where no file is named or `-` is: if that is a terminal,
    /// it says its usage instead.
    fn reads_stdin(&self) -> bool {
        true
    }

    /// Whether it names its output files itself, and none is to be made for it.
    fn names_files(&self) -> bool {
        false
    }

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

/// What a running tool has: its input, its output and its voice.
pub struct Session {
    /// What is to be read, for tools without operands of their own.
    pub sources: Vec<Source>,
    /// Where the result goes.
    pub output: Output,
    /// Where warnings go.
    pub diagnostics: Diagnostics,
}

/// Runs a tool: the whole of its `main`.
pub fn main<T: Tool>() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let name = usage::name::<T>();
    let matches = match usage::command::<T>().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => return ExitCode::from(usage::answer(name, &error, &arguments)),
    };
    if let Some(kind) = matches.get_one::<generate::Kind>("generate") {
        return ExitCode::from(usage::print(name, generate::text::<T>(*kind)));
    }
    let shared = Shared::of(&matches, &usage::command::<T>());
    let parsed = T::from_arg_matches(&matches).and_then(|tool| Ok((tool, shared?)));
    let (tool, shared) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let error = error.format(&mut usage::command::<T>());
            return ExitCode::from(usage::answer(name, &error, &arguments));
        }
    };
    let reads_stdin = tool.reads_stdin() && shared.reading.reads_stdin();
    if reads_stdin && io::stdin().is_terminal() {
        return ExitCode::from(usage::no_input::<T>(name));
    }
    colour_messages(shared.color);
    if !tool.handles_signals() {
        interrupts::install(reads_stdin);
    }
    ExitCode::from(run(tool, &shared, name))
}

fn run<T: Tool>(tool: T, shared: &Shared, name: &'static str) -> u8 {
    let mut diagnostics = Diagnostics::to_stderr(name, shared.common.verbosity());
    diagnostics.set_strict(shared.reading.strict);
    let opened = Source::from_operands(&shared.reading.files).and_then(|sources| {
        let path = shared.common.output.as_deref().filter(|_| !tool.names_files());
        Ok((sources, Output::create(path)?))
    });
    let (sources, output) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            diagnostics.fail(&error);
            return exit_status::<T>(&error);
        }
    };
    if output.is_terminal() && !tool.names_files() {
        diagnostics.disable_progress();
    }
    let mut session = Session { sources, output, diagnostics };
    let result = tool.run(&mut session).and_then(|status| {
        if session.diagnostics.has_failed() {
            session.output.discard(&mut session.diagnostics);
        }
        match session.output.finish() {
            // Whoever reads it may leave, and a verdict stands.
            Err(error) if error.is_broken_pipe() => Ok(status),
            finished => finished.map(|()| status),
        }
    });
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

fn exit_status<T: Tool>(error: &Error) -> u8 {
    if matches!(error, Error::Usage(_)) { 2 } else { T::failure(error) }
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
