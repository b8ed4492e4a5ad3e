//! `fg-pprof`: folded stacks in, a pprof or OpenTelemetry profile out.

use std::process::ExitCode;

use fgkit::cli::{self, Entries, Session, Tool};
use fgkit::diagnostics::plural;
use fgkit::pprof::{self, Metadata, Unit};
use fgkit::profile::Weights;
use fgkit::{Error, folded, otlp};

/// Convert folded stacks to a pprof profile
///
/// Writes gzipped protobuf for `go tool pprof` and other programs that read its format. fg-collapse(1) converts the
/// profile back to the same folded text. Each frame becomes a function with its full name. pprof has integer values
/// only, so fractional weights are written in a smaller unit, such as milliseconds instead of seconds, or `count/100`
/// if there is no smaller unit.
///
/// A differential profile from fg-diff(1) is written like the profile that `pprof -diff_base` makes: the weights before
/// are negative, and percentages are of the total before. The output contains a recording time only if --timestamp sets
/// one, so the same input always gives the same bytes.
#[derive(clap::Parser)]
#[command(name = "fg-pprof")]
struct Args {
    /// Name what the weights count
    #[arg(long = "type", value_name = "NAME", default_value = "samples", value_parser = parse_name)]
    sample_type: String,

    /// Set the unit of weights, like count, nanoseconds or bytes
    #[arg(long, value_name = "UNIT", default_value = "count", value_parser = parse_name)]
    unit: String,

    /// Set the recording time in seconds since 1970, as `date +%s` prints it [default: none]
    #[arg(long, alias = "time", value_name = "SECONDS", value_parser = parse_time)]
    timestamp: Option<u64>,

    /// Write an OpenTelemetry profile instead
    ///
    /// The output is uncompressed OTLP protobuf. It cannot hold a comparison or a comment.
    #[arg(long, conflicts_with = "comment")]
    otlp: bool,

    /// Add a comment, for `pprof -comments`; may be repeated
    #[arg(long, value_name = "TEXT")]
    comment: Vec<String>,
}

fn parse_name(text: &str) -> Result<String, &'static str> {
    let is_blank = text.trim().is_empty();
    if is_blank { Err("expected a name that is not blank") } else { Ok(text.to_owned()) }
}

/// Parses seconds, and returns nanoseconds.
fn parse_time(text: &str) -> Result<u64, &'static str> {
    let time = text.parse::<u64>().ok().and_then(|seconds| seconds.checked_mul(1_000_000_000));
    time.filter(|time| i64::try_from(*time).is_ok()).ok_or("expected seconds since 1970, like 1700000000")
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        (
            "fg-collapse perf.data | fg-pprof -o profile.pb.gz",
            "Convert a profile for `go tool pprof -http=: profile.pb.gz`:",
        ),
        (
            "fg-pprof --type delay --unit microseconds -o waits.pb.gz waits.folded",
            "Name what the weights count, and their unit:",
        ),
        (
            "fg-pprof --otlp --type cpu --unit nanoseconds --timestamp 1700000000 -o profile.otlp cpu.folded",
            "Write a profile for an OpenTelemetry collector:",
        ),
        ("fg-diff -n before.folded after.folded | fg-pprof -o diff.pb.gz", "Convert a comparison of two profiles:"),
    ];

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        if session.output.is_terminal() {
            let what = "cannot write compressed data to a terminal; name a file with -o, or pipe it";
            return Err(Error::Usage(what.to_owned()));
        }
        let profile = folded::read_profile(&session.sources, &mut session.diagnostics)?;
        if profile.total() == Weights::default() {
            session.diagnostics.warn("all stacks have weight 0");
        }
        let unit = Unit::for_profile(&self.unit, &profile)?;
        if unit.name != self.unit {
            session.diagnostics.note(&format!("weights are not integers in {}; using {}", self.unit, unit.name));
        }
        let time = self.timestamp.unwrap_or(0);
        let metadata = Metadata { sample_type: &self.sample_type, unit: &unit, time, comments: &self.comment };
        if !self.otlp {
            let is_compressed = session.output.is_compressed();
            session.output.write_with(|out| match is_compressed {
                true => pprof::write(&profile, &metadata, out),
                false => pprof::write_gzipped(&profile, &metadata, out),
            })?;
        } else if profile.is_differential() {
            let what = "--otlp: the input is a comparison, for which OpenTelemetry has no format; leave --otlp out";
            return Err(Error::Invalid(what.to_owned()));
        } else {
            let escaped = otlp::count_escaped_names(&profile);
            if escaped > 0 {
                let names = plural(escaped, "name");
                session.diagnostics.warn(&format!("--otlp: {names} with bytes that are not UTF-8, written as \\xNN"));
            }
            session.output.write_with(|out| otlp::write_profile(&profile, &metadata, out))?;
        }
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
