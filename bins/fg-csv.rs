//! `fg-csv`: folded stacks in, a table of functions out.

use std::process::ExitCode;

use fgkit::cli::{self, Color, Common, Entries, Reading, Session, Tool};
use fgkit::csv::{count, write};
use fgkit::{Error, folded};

/// Count what each function weighs, alone and with what it calls
///
/// Reads folded stacks and writes a CSV table with one row a function: `self` is the weight of the stacks that it is the
/// leaf of, `inclusive` of all in which it stands, each once however often it recurs. The self weights add up to the
/// total. A leaf `[off-cpu]`, `[runnable]` or `[unsampled]` is a state: its weight is the function's beneath it.
/// Of a differential profile, as fg-diff writes it, the table shows before, after and delta, the largest change first.
#[derive(clap::Parser)]
#[command(name = "fg-csv")]
struct Args {
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    color: Color,
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-collapse perf.txt | fg-csv | head", "The heaviest functions."),
        ("fg-diff -n before.folded after.folded | fg-csv | head", "The functions that changed most."),
    ];

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
        let counts = count(&profile)?;
        session.output.write_with(|out| write(&profile, &counts, out))?;
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
