//! `fg-diff`: two profiles in, one with two weights a stack out.

use std::path::PathBuf;
use std::process::ExitCode;

use fgkit::cli::{self, Color, Common, Session, Tool};
use fgkit::diagnostics::{Diagnostics, plural};
use fgkit::diff::{Difference, Options, Scaling, diff};
use fgkit::filter::{Rename, Threshold};
use fgkit::input::Source;
use fgkit::profile::{Profile, Weight};
use fgkit::{Error, folded};

/// Compare two profiles: every stack of either with its weight before and after
///
/// Reads folded profiles and writes `stack BEFORE AFTER` for each stack of either, sorted; a stack that stands in one
/// only weighs 0 in the other. fg-svg draws that in the widths of AFTER, red where it grew and blue where it shrank.
///
/// Several runs of a side are added up; if the sides have different numbers of runs, BEFORE is scaled to that of AFTER.
#[derive(clap::Parser)]
#[command(name = "fg-diff", after_help = "Example: fg-diff -n before.folded after.folded | fg-svg > diff.svg")]
struct Args {
    /// The profile before and the one after, plain or compressed; `-` is standard input
    #[arg(value_names = ["BEFORE", "AFTER"], num_args = 2, required_unless_present_all = ["before", "after"])]
    files: Vec<PathBuf>,

    /// A run before; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "files", requires = "after")]
    before: Vec<PathBuf>,

    /// A run after; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "files", requires = "before")]
    after: Vec<PathBuf>,

    /// Scale BEFORE to the total of AFTER, so that shares are compared
    ///
    /// What rounding takes from one stack is carried to the next, so both sides have the same total to the unit.
    #[arg(short, long)]
    normalize: bool,

    /// Scale BEFORE by a factor, for runs whose lengths are known
    #[arg(long, value_name = "FACTOR", conflicts_with = "normalize", value_parser = weight)]
    scale: Option<Weight>,

    /// Make every 0x address in a frame `0x...`, so that stacks which differ by an address meet
    #[arg(short, long)]
    strip_hex: bool,

    /// Replace what matches in frames, so that renamed ones meet; may be repeated
    ///
    /// The last = that no backslash escapes divides; $1 in TEXT is the first group of REGEX.
    #[arg(long, value_name = "REGEX=TEXT")]
    strip: Vec<Rename>,

    /// Flatten smaller differences: BEFORE becomes AFTER. A weight, or a share of AFTER's total like 0.5%
    #[arg(long, value_name = "WEIGHT|%")]
    min_change: Option<Threshold>,

    /// Flatten differences that noise explains: BEFORE becomes AFTER
    ///
    /// One run a side: the weights are counts of samples, and counts vary as counts do. Several runs: how much they
    /// vary counts too. Of the differences that remain, at most one of twenty is noise.
    #[arg(long)]
    significant: bool,

    /// What one sample weighs [default: the weights' common divisor]
    #[arg(long, value_name = "WEIGHT", requires = "significant", value_parser = weight)]
    per_sample: Option<Weight>,

    /// Exit with status 1 if any stack differs
    #[arg(long)]
    exit_code: bool,

    /// Fail at the first malformed line instead of leaving it out
    #[arg(long, display_order = 800)]
    strict: bool,

    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    color: Color,
}

fn weight(text: &str) -> Result<Weight, &'static str> {
    let weight = Weight::parse(text.as_bytes()).filter(|weight| !weight.is_zero());
    weight.ok_or("expected a positive number, like 2 or 0.25")
}

impl Args {
    fn options(&self) -> Options {
        Options {
            scaling: match self.scale {
                Some(factor) => Scaling::By(factor),
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
        match self.files.is_empty() {
            true => ([&self.before[..], &self.after[..]].concat(), self.before.len()),
            false => (self.files.clone(), 1),
        }
    }
}

impl Tool for Args {
    fn common(&self) -> &Common {
        &self.common
    }

    fn color(&self) -> clap::ColorChoice {
        self.color.color
    }

    fn reads_stdin(&self) -> bool {
        self.runs().0.iter().any(|file| file.as_os_str() == "-")
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        session.diagnostics.set_strict(self.strict);
        let (files, first_after) = self.runs();
        let sources = Source::from_operands(&files)?;
        let read = |source: &Source| read(source, &mut session.diagnostics);
        let runs = sources.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let (before, after) = runs.split_at(first_after);
        let difference = diff(before, after, &self.options())?;
        report(&difference, &mut session.diagnostics);
        session.output.write_with(|mut out| folded::write(&difference.profile, &mut out))?;
        Ok(u8::from(self.exit_code && difference.different > 0))
    }
}

/// Reads one run. Half a comparison is none, so a run that cannot be read ends it.
fn read(source: &Source, diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let profile = folded::gather(std::slice::from_ref(source), diagnostics)?;
    if diagnostics.failed() {
        return Err(Error::Said);
    }
    if profile.is_differential() {
        let what = "has two weights a line, so it is a comparison already; fg-diff takes profiles".to_owned();
        return Err(Error::Unreadable { name: source.name(), what });
    }
    Ok(profile)
}

/// One line on what was compared, which `-q` silences.
fn report(difference: &Difference, diagnostics: &mut Diagnostics) {
    let Difference { totals, factor, only, different, flattened, profile } = difference;
    let scaled = if *factor == 1.0 { String::new() } else { format!(" (scaled by {factor:.6})") };
    let stacks = plural(profile.len() as u64, "stack");
    let flattened = if *flattened == 0 { String::new() } else { format!(", {flattened} differences flattened") };
    diagnostics.warn(&format!(
        "before {}{scaled}, after {}; {stacks}: {} only before, {} only after, {different} different{flattened}",
        totals.before, totals.after, only.0, only.1
    ));
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
