//! `fg-diff`: two profiles in, one with two weights a stack out.

use std::path::PathBuf;
use std::process::ExitCode;

use fgkit::cli::{self, Entries, Session, Tool};
use fgkit::diagnostics::{Diagnostics, plural};
use fgkit::diff::{Comparison, Options, Scaling, diff, diff_streams};
use fgkit::filter::{Rename, Threshold};
use fgkit::input::Source;
use fgkit::profile::{Profile, Weight};
use fgkit::stats::significance::Runs;
use fgkit::stats::weight_kind::WeightKind;
use fgkit::{Error, folded};

/// Compare two profiles: every stack of either with its weight before and after
///
/// Reads folded profiles and writes `stack BEFORE AFTER` for each stack of either, sorted; a stack that stands in one
/// only weighs 0 in the other. fg-svg draws that in the widths of AFTER, red where it grew and blue where it shrank.
///
/// Several runs of a side are added up; if the sides have different numbers of runs, BEFORE is scaled to that of AFTER.
#[derive(clap::Parser)]
#[command(name = "fg-diff")]
struct Args {
    /// The profile before; `-` is standard input
    #[arg(value_name = "BEFORE", required_unless_present_any = ["before", "after"])]
    file_before: Option<PathBuf>,

    /// The profile after; `-` is standard input
    #[arg(value_name = "AFTER", required_unless_present_any = ["before", "after"])]
    file_after: Option<PathBuf>,

    /// A run before, for several of them
    #[arg(long, value_name = "FILE", requires = "after", conflicts_with_all = ["file_before", "file_after"])]
    before: Vec<PathBuf>,

    /// A run after, for several of them
    #[arg(long, value_name = "FILE", requires = "before", conflicts_with_all = ["file_before", "file_after"])]
    after: Vec<PathBuf>,

    /// Scale BEFORE to the total of AFTER
    ///
    /// That compares shares, for runs of different length. What rounding takes from one stack is carried to the next, so both sides have the same total to the unit.
    #[arg(short, long)]
    normalize: bool,

    /// Scale BEFORE by a factor
    #[arg(long, hide_short_help = true, value_name = "FACTOR", conflicts_with = "normalize", value_parser = cli::positive,
          allow_hyphen_values = true)]
    scale: Option<Weight>,

    /// Make every 0x address in a frame `0x...`
    #[arg(short, long)]
    strip_hex: bool,

    /// Replace what matches in frames, so that they meet
    ///
    /// May be repeated. The last = that no backslash escapes divides; $1 in TEXT is the first group of REGEX.
    #[arg(long, value_name = "REGEX=TEXT")]
    strip: Vec<Rename>,

    /// Flatten smaller differences (0.5% is of AFTER)
    ///
    /// BEFORE becomes AFTER there.
    #[arg(long, value_name = "WEIGHT|%", allow_hyphen_values = true)]
    min_change: Option<Threshold>,

    /// Flatten differences that noise explains
    ///
    /// BEFORE becomes AFTER there. Of the differences that remain, at most one of twenty is expected to be noise. Samples
    /// are counts, whose noise is known. A program also varies from run to run. With one run a side that cannot be seen, so
    /// a run counts as at most 1000 samples, however many it has: a stack that grew from 5 to 10 % of the time is found,
    /// one that grew from 5 to 6 % needs several runs a side (--before, --after; three are a good start), which show how
    /// much each stack varies. What was lost, `[lost]`, is never judged.
    #[arg(long)]
    significant: bool,

    /// What one sample weighs [default: the weights' common divisor]
    ///
    /// The common divisor of counts that happen to be round is too large, and hides differences; -v says what it is.
    #[arg(long, hide_short_help = true, value_name = "WEIGHT", requires = "significant", value_parser = cli::positive)]
    per_sample: Option<Weight>,

    /// Exit with status 1 if any stack differs
    #[arg(long, hide_short_help = true)]
    exit_code: bool,

    /// Fail at the first malformed line
    #[arg(long, hide_short_help = true, display_order = 800)]
    strict: bool,
}

impl Args {
    fn options(&self) -> Options {
        Options {
            scaling: match self.scale {
                Some(factor) => Scaling::Factor(factor),
                None if self.normalize => Scaling::Totals,
                None => Scaling::Runs,
            },
            strip_hex: self.strip_hex,
            renames: self.strip.clone(),
            min_change: self.min_change,
            significant: self.significant,
            per_sample: self.per_sample,
        }
    }

    /// All runs before and, from there on, all after.
    fn runs(&self) -> (Vec<PathBuf>, usize) {
        let before = self.file_before.iter().chain(&self.before);
        let runs: Vec<PathBuf> = before.clone().chain(&self.file_after).chain(&self.after).cloned().collect();
        (runs, before.count())
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-diff -n before.folded after.folded | fg-svg > diff.svg", "Draw what grew, in red, and shrank, in blue."),
        ("fg-diff -n before.folded after.folded | fg-csv --top 10", "The functions that changed most."),
        (
            "fg-diff --significant --before b1 --before b2 --before b3 --after a1 --after a2 --after a3",
            "Only what the noise of three runs a side does not explain.",
        ),
        ("fg-collapse new.perf | fg-diff -n old.folded - > diff.folded", "Compare with what comes through a pipe."),
    ];

    const EXIT_STATUS: Entries = &[
        ("0", "The comparison was written."),
        ("1", "With --exit-code: the profiles differ."),
        ("2", "Anything else."),
    ];

    fn reads_stdin(&self) -> bool {
        self.runs().0.iter().any(|file| file.as_os_str() == "-")
    }

    fn failure(_: &Error) -> u8 {
        2
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        session.diagnostics.set_strict(self.strict);
        let (files, first_after) = self.runs();
        let sources = Source::from_operands(&files)?;
        let options = self.options();
        let streamed = match &sources[..] {
            [before, after] => diff_streams(before, after, &options, &mut session.output)?,
            _ => None,
        };
        let comparison = match streamed {
            Some(comparison) => comparison,
            None => {
                let mut before = read(&sources, &mut session.diagnostics)?;
                let after = before.split_off(first_after);
                let (both, comparison) = diff(before, after, &options)?;
                session.output.write_with(|mut out| folded::write(&both, &mut out))?;
                comparison
            }
        };
        if let (true, Some(side)) = (self.normalize, comparison.empty_side()) {
            session
                .diagnostics
                .warn(&format!("{side} is empty: there is no total to scale to, the other side is as it was read"));
        }
        report(&comparison, &mut session.diagnostics);
        Ok(u8::from(self.exit_code && comparison.different > 0))
    }
}

/// Reads all runs. Half a comparison is none, so a run that cannot be read ends it.
fn read(sources: &[Source], diagnostics: &mut Diagnostics) -> Result<Vec<Profile>, Error> {
    let runs = folded::read_profiles(sources, diagnostics)?;
    if let Some((source, _)) = sources.iter().zip(&runs).find(|(_, run)| run.is_differential()) {
        let what = "has two weights a line, so it is a comparison already; fg-diff takes profiles".to_owned();
        return Err(Error::Unreadable { name: source.name(), what });
    }
    Ok(runs)
}

/// What was compared, for those who asked.
fn report(comparison: &Comparison, diagnostics: &mut Diagnostics) {
    let Comparison { totals, factor, stacks, only_before, only_after, different, flattened, weight_kind, .. } =
        comparison;
    let scaled = if *factor == 1.0 { String::new() } else { format!(" (scaled by {factor:.6})") };
    let sample = weight_kind.and_then(WeightKind::sample);
    let judged = sample.map_or_else(String::new, |sample| format!("; one sample weighs {sample}"));
    let flattened = if *flattened == 0 { String::new() } else { format!(", {flattened} differences flattened") };
    if let Some(doubt) = weight_kind.and_then(|weight_kind| weight_kind.caveat(Runs::default())) {
        diagnostics.warn(doubt);
    }
    diagnostics.note(&format!(
        "before {}{scaled}, after {}; {}: {} only before, {} only after, {different} different{flattened}{judged}",
        totals.before,
        totals.after,
        plural(*stacks, "stack"),
        only_before,
        only_after
    ));
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
