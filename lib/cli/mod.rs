//! What all binaries share: reading the command line, running, and ending well.
//!
//! Exit status: 0 the output is complete for every line that could be read, 1 a verdict or a failure, 2 a wrong command
//! line. A reader that closed our output early is no failure.

mod choosing;
mod generate;
mod manual;
mod options;
mod output;
mod signals;
mod usage;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

pub use choosing::Choosing;
pub use manual::Entries;
pub use options::{Color, Common, Reading, parse_duration, positive};
pub use output::Output;
#[cfg(unix)]
pub use signals::Interrupts;

use crate::Error;
use crate::diagnostics::Diagnostics;

/// One of the programs.
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

    /// The options that all tools have.
    fn common(&self) -> &Common;

    /// The file that the result goes to; `None` for standard output, and for those who name their files themselves.
    fn output(&self) -> Option<&std::path::Path> {
        self.common().output.as_deref()
    }

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
    let name = usage::name::<T>();
    let matches = match usage::command::<T>().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => return ExitCode::from(usage::answer(name, &error, &arguments)),
    };
    if let Some(kind) = matches.get_one::<generate::Kind>("generate") {
        return ExitCode::from(usage::print(name, generate::text::<T>(*kind)));
    }
    let tool = match T::from_arg_matches(&matches) {
        Ok(tool) => tool,
        Err(error) => {
            let error = error.format(&mut usage::command::<T>());
            return ExitCode::from(usage::answer(name, &error, &arguments));
        }
    };
    if tool.reads_stdin() && io::stdin().is_terminal() {
        return ExitCode::from(usage::no_input::<T>(name));
    }
    colour_messages(tool.color());
    ExitCode::from(run(tool, name))
}

fn run<T: Tool>(tool: T, name: &'static str) -> u8 {
    let mut diagnostics = Diagnostics::to_stderr(name, tool.common().verbosity());
    if !tool.handles_signals() {
        signals::install(tool.reads_stdin());
    }
    let output = match Output::create(tool.output()) {
        Ok(output) => output,
        Err(error) => {
            diagnostics.fail(&error);
            return T::failure(&error);
        }
    };
    let mut session = Session { output, diagnostics };
    let result = tool.run(&mut session).and_then(|status| {
        if session.diagnostics.failed() {
            session.output.give_up(&mut session.diagnostics);
        }
        session.output.finish().map(|()| status)
    });
    session.diagnostics.finish();
    let status = match result {
        Ok(status) => status,
        Err(error) if error.is_broken_pipe() => 0,
        Err(error) => {
            session.diagnostics.fail(&error);
            return if matches!(error, Error::Usage(_)) { 2 } else { T::failure(&error) };
        }
    };
    if session.diagnostics.failed() { T::failure(&Error::Said) } else { status }
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
