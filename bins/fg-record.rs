//! `fg-record`: samples the stacks of a command, of running processes, or of the whole system.

use std::process::ExitCode;

use fgkit::Error;
use fgkit::cli::{self, Entries, Section, Session, Tool};

#[path = "fg-record/manual.rs"]
mod manual;
#[path = "fg-record/options.rs"]
mod options;
#[cfg(target_os = "linux")]
#[path = "fg-record/request.rs"]
mod request;
#[path = "fg-record/ring_options.rs"]
mod ring_options;
#[path = "fg-record/time_options.rs"]
mod time_options;

use options::Args;

impl Tool for Args {
    const EXAMPLES: Entries = manual::EXAMPLES;

    const EXIT_STATUS: Entries = &[
        ("N", "The command's exit status, or 128+N if signal N ended it. Without a command, 0."),
        (
            "125",
            "Nothing could be recorded, or the output could not be written. With --when and without %t in the file name: \
             nothing was written, because CONDITION did not come true.",
        ),
        ("126", "The command could not be run."),
        ("127", "The command was not found."),
        ("2", "Invalid command line."),
    ];

    const ENVIRONMENT: Entries = &[("DEBUGINFOD_URLS", "The servers that debuginfod-find(1) asks with --debuginfod.")];

    const SEE_ALSO: &'static [&'static str] =
        &["perf-record(1)", "perf-list(1)", "perf-script(1)", "perf_event_open(2)"];

    fn completions() -> Vec<(&'static str, Vec<&'static str>)> {
        let labels = vec!["pid", "tid", "cpu", "cgroup", "container", "task", "trace", "span"];
        vec![("event", cli::COMMON_EVENTS.to_vec()), ("call-graph", vec!["dwarf", "fp", "lbr"]), ("split-by", labels)]
    }

    fn sections() -> Vec<Section> {
        manual::sections()
    }

    fn opens_outputs(&self) -> bool {
        self.has_output_pattern()
    }

    fn reads_stdin(&self) -> bool {
        false
    }

    fn handles_signals(&self) -> bool {
        true
    }

    #[cfg(target_os = "linux")]
    fn run(self, session: &mut Session) -> Result<u8, Error> {
        request::run(&self, session)
    }

    #[cfg(not(target_os = "linux"))]
    fn run(self, _: &mut Session) -> Result<u8, Error> {
        let message = "recording requires Linux; record with dtrace, sample or xctrace, and pipe that to fg-collapse";
        Err(Error::System(message.to_owned()))
    }

    fn failure(error: &Error) -> u8 {
        match error {
            Error::Command { status, .. } => *status,
            _ => 125,
        }
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
