//! `fg-pprof`: folded stacks in, a pprof profile out.

use std::process::ExitCode;

use fgkit::cli::{self, Entries, Session, Tool};
use fgkit::pprof::{self, Metadata, Unit};
use fgkit::{Error, folded};

/// Write folded stacks as a pprof profile, gzipped protobuf
///
/// For `go tool pprof` and whatever else reads its format; fg-collapse reads it back to the same folded text. Frames are
/// functions, under their whole names. Weights that are no whole numbers are written in a smaller unit: milliseconds for
/// seconds, and `count/100` where there is no better name.
///
/// A differential profile, as fg-diff writes it, becomes one as `pprof -diff_base` makes it: what was before counts
/// negative, and shares are of the total before. The same input always gives the same bytes, unless --time tells another
/// time.
#[derive(clap::Parser)]
#[command(name = "fg-pprof")]
struct Args {
    /// What was counted
    #[arg(long = "type", value_name = "NAME", default_value = "samples", value_parser = named)]
    sample_type: String,

    /// What a weight of 1 means: count, nanoseconds, microseconds, bytes, …
    #[arg(long, value_name = "UNIT", default_value = "count", value_parser = named)]
    unit: String,

    /// When it was recorded, in seconds since 1970, as `date +%s` says it [default: not said]
    #[arg(long, value_name = "SECONDS", value_parser = time)]
    time: Option<u64>,

    /// Add a comment, which `pprof -comments` shows; may be repeated
    #[arg(long, value_name = "TEXT")]
    comment: Vec<String>,
}

fn named(text: &str) -> Result<String, &'static str> {
    let named = !text.trim().is_empty();
    named.then(|| text.to_owned()).ok_or("expected a name")
}

/// Nanoseconds.
fn time(text: &str) -> Result<u64, &'static str> {
    let seconds = text.parse::<u64>().ok().and_then(|seconds| seconds.checked_mul(1_000_000_000));
    seconds.filter(|time| i64::try_from(*time).is_ok()).ok_or("expected seconds since 1970, like 1700000000")
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-collapse perf.txt | fg-pprof -o profile.pb.gz", "For `go tool pprof -http=: profile.pb.gz`."),
        (
            "fg-record --off-cpu -p PID | fg-pprof --type delay --unit microseconds -o delay.pb.gz",
            "Say what was counted and in which unit.",
        ),
        (
            "fg-diff -n before.folded after.folded | fg-pprof -o diff.pb.gz",
            "A comparison, as `pprof -diff_base` shows it.",
        ),
    ];

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        if session.output.is_terminal() {
            let what = "compressed data is not written to a terminal; name a file with -o, or pipe it";
            return Err(Error::Usage(what.to_owned()));
        }
        let profile = folded::read_profile(&session.sources, &mut session.diagnostics)?;
        let unit = Unit::for_profile(&self.unit, &profile)?;
        if unit.name != self.unit {
            session.diagnostics.note(&format!("weights are no whole numbers of {}: in {}", self.unit, unit.name));
        }
        let time = self.time.unwrap_or(0);
        let metadata = Metadata { sample_type: &self.sample_type, unit: &unit, time, comments: &self.comment };
        session.output.write_with(|out| pprof::write_gzipped(&profile, &metadata, out))?;
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
