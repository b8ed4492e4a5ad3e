//! `fg-record`: any profiler's output in, folded stacks out.

use std::process::ExitCode;

use fgkit::cli::{self, Color, Common, Reading, Session, Tool};
use fgkit::{Error, folded};

/// Fold a profiler's output: one line a stack, equal stacks merged, sorted
///
/// Reads `perf script` text and folded stacks; the format is recognised by its content.
#[derive(clap::Parser)]
#[command(name = "fg-record", after_help = "Example: perf script | fg-record | fg-svg > flame.svg")]
struct Args {
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    color: Color,
}

impl Tool for Args {
    fn common(&self) -> &Common {
        &self.common
    }

    fn color(&self) -> clap::ColorChoice {
        self.color.color
    }

    fn reads_stdin(&self) -> bool {
        self.reading.reads_stdin()
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        session.diagnostics.set_strict(self.reading.strict);
        let profile = folded::gather(&self.reading.sources()?, &mut session.diagnostics)?;
        session.output.write_with(|mut out| folded::write(&profile, &mut out))?;
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
