//! `fg-collapse`: any profiler's output in, folded stacks out.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::process::ExitCode;

use fgkit::cli::{self, Color, Common, Entries, Reading, Session, Tool};
use fgkit::collapse::{self, EventChoice, Options};
use fgkit::{Error, folded};

/// Fold a profiler's output: one line a stack, equal stacks merged, sorted
///
/// Reads `perf script` text and folded stacks; the format is recognised by its content.
#[derive(clap::Parser)]
#[command(name = "fg-collapse")]
struct Args {
    /// Add process ids to threads' names: COMM-PID
    #[arg(long)]
    pid: bool,
    /// Add process and thread ids: COMM-PID/TID
    #[arg(long)]
    tid: bool,
    /// Mark kernel frames with `_[k]`
    #[arg(long, hide_short_help = true)]
    kernel: bool,
    /// Mark just-in-time compiled frames with `_[j]`
    #[arg(long, hide_short_help = true)]
    jit: bool,
    /// Mark kernel frames with `_[k]`, just-in-time compiled ones with `_[j]`
    #[arg(long)]
    all: bool,
    /// Keep the addresses of frames without a symbol
    #[arg(long, hide_short_help = true)]
    addrs: bool,
    /// Take samples of this event, or of `all` [default: the first]
    #[arg(long, alias = "event-filter", value_name = "NAME")]
    event: Option<OsString>,
    /// Leave names as they are, argument lists and all
    #[arg(long)]
    no_tidy: bool,
    /// Parse in N threads [default: one a core]
    #[arg(short, long, value_name = "N")]
    nthreads: Option<NonZeroUsize>,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    color: Color,
}

impl Args {
    fn options(&self) -> Options {
        Options {
            threads: self.nthreads,
            verbatim: self.no_tidy,
            pid: self.pid,
            tid: self.tid,
            kernel: self.kernel || self.all,
            jit: self.jit || self.all,
            addrs: self.addrs,
            event: match &self.event {
                None => EventChoice::First,
                Some(name) if name == "all" => EventChoice::All,
                Some(name) => EventChoice::Named(name.as_encoded_bytes().to_vec()),
            },
        }
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("perf script | fg-collapse | fg-svg > flame.svg", "Draw what perf recorded."),
        ("fg-collapse monday.folded.gz tuesday.folded.gz > week.folded", "Add profiles up."),
    ];

    const SEE_ALSO: &'static [&'static str] = &["perf-script(1)"];

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
        let (sources, options) = (self.reading.sources()?, self.options());
        let profile = collapse::collapse(&sources, &options, &mut session.diagnostics)?;
        session.output.write_with(|mut out| folded::write(&profile, &mut out))?;
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
