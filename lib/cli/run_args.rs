//! Options of programs that compare the runs of two sides.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::options::parse_positive_weight;
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::diff::{ComparedRuns, Counterparts, Options, Scaling, WITHOUT_LINES, compare_runs};
use crate::folded;
use crate::input::Source;
use crate::profile::{Profile, Weight};
use crate::stats::sample_weight::WeightOptions;

/// Options for runs and their scale.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Runs and scale")]
pub struct RunArgs {
    /// Add runs to BEFORE; may be repeated
    ///
    /// Several runs show how much each function varies from run to run. When you record them, alternate between the two
    /// versions, so that both run under the same conditions. The order of the files does not matter. A file cannot be
    /// given twice for one side; a warning names identical runs.
    #[arg(long, value_name = "FILE", num_args = 1.., group = "runs_before", requires = "runs_after")]
    before: Vec<PathBuf>,

    /// Add runs to AFTER; may be repeated
    #[arg(long, value_name = "FILE", num_args = 1.., group = "runs_after", requires = "runs_before")]
    after: Vec<PathBuf>,

    /// Use the files in LIST as the runs of BEFORE; a null byte ends each name
    ///
    /// Use this instead of --before for more files than a command line can have.
    #[arg(
        long,
        hide_short_help = true,
        value_name = "LIST",
        value_parser = parse_list,
        group = "runs_before",
        requires = "runs_after"
    )]
    before0_from: Option<FileList>,

    /// Use the files in LIST as the runs of AFTER; a null byte ends each name
    #[arg(
        long,
        hide_short_help = true,
        value_name = "LIST",
        value_parser = parse_list,
        group = "runs_after",
        requires = "runs_before"
    )]
    after0_from: Option<FileList>,

    /// Scale BEFORE to the total weight of AFTER
    ///
    /// This applies to runs, not to a differential profile. Use it to compare shares if the runs differ in length, such
    /// as recordings of a server. For a fixed amount of work, do not scale: one slower function would change the shares
    /// of all. Rounding errors are carried from stack to stack, so that both totals are exactly equal. The totals do
    /// not include `[lost]` samples, which belong to no function.
    #[arg(short, long)]
    pub normalize: bool,

    /// Multiply the weights of BEFORE by FACTOR, a number or `median`
    ///
    /// `median` scales each run by the median change of its functions, so that the typical function has the same weight
    /// in all runs. A slowdown that affects all functions equally is then not a difference.
    #[arg(
        long,
        hide_short_help = true,
        value_name = "FACTOR",
        conflicts_with = "normalize",
        allow_hyphen_values = true
    )]
    pub scale: Option<Scaling>,

    /// The option for sides that are two copies of a program.
    #[command(flatten)]
    pub copies: CopyArgs,
}

/// The option for sides that are two copies of a program.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct CopyArgs {
    /// Compare names as they are, even if the sides are two copies of a program
    ///
    /// By default, names that differ only because the program was copied are matched, and a message lists them. This
    /// covers two source folders, such as old/ and new/, or two source files, if each is on one side only and both have
    /// functions of the same names. It also covers the heaviest program of each side, such as app-v1 and app-v2, if the
    /// two call the same functions, or if most of their functions are the same and no other program is on one side only.
    /// If each side has threads such as `pool-7/11`, with numbers of process and thread that the other side does not have, these are
    /// compared by their names alone; those with numbers of both sides keep them. So are two or more processes such as `cc1-701`,
    /// with numbers of three digits or more.
    /// In fg-report, this option also turns off the search for renamed functions.
    #[arg(long, hide_short_help = true)]
    pub exact_names: bool,
}

/// Says which names are compared as one, and how to prevent it; and how to compare many names without their lines.
pub fn warn_of_counterparts(counterparts: &Counterparts, diagnostics: &mut Diagnostics) {
    if let Some(pairs) = counterparts.describe() {
        diagnostics.warn(&format!("{pairs}; --exact-names compares names as they are"));
    }
    if let Some(lines) = counterparts.describe_moved_lines() {
        diagnostics.warn(&format!("{lines}; to compare without it: fg-diff --rename '{WITHOUT_LINES}' OLD NEW"));
    }
}

/// Says which of these options have no effect, because the input is no comparison. Each has its name and if it was given.
pub fn warn_of_unused(options: &[(&str, bool)], diagnostics: &mut Diagnostics) {
    let given: Vec<&str> = options.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
    if !given.is_empty() {
        let verb = if given.len() == 1 { "has" } else { "have" };
        diagnostics.warn(&format!("{} {verb} no effect: the input is not a comparison", given.join(", ")));
    }
}

/// The files that a list names.
#[derive(Clone, Debug)]
struct FileList(Vec<PathBuf>);

/// True once a list was read from standard input.
static HAS_READ_STDIN: AtomicBool = AtomicBool::new(false);

/// Reads a list of files.
fn parse_list(list: &str) -> Result<FileList, Error> {
    if list == "-" && HAS_READ_STDIN.swap(true, Ordering::Relaxed) {
        let message = "standard input can have one list only; write the other one to a file";
        return Err(Error::Usage(message.to_owned()));
    }
    let sources = Source::from_list(Path::new(list))?;
    let paths = sources.into_iter().map(|source| match source {
        Source::Stdin => PathBuf::from("-"),
        Source::File(path) => path,
    });
    Ok(FileList(paths.collect()))
}

impl RunArgs {
    /// Returns the files of the runs before.
    pub fn before(&self) -> &[PathBuf] {
        self.before0_from.as_ref().map_or(&self.before, |list| &list.0)
    }

    /// Returns the files of the runs after.
    pub fn after(&self) -> &[PathBuf] {
        self.after0_from.as_ref().map_or(&self.after, |list| &list.0)
    }

    /// Returns how weights before are scaled.
    pub fn scaling(&self) -> Scaling {
        match self.scale {
            Some(scaling) => scaling,
            None if self.normalize => Scaling::Totals,
            None => Scaling::Runs,
        }
    }

    /// Fails if a file is given twice for one side, by whatever names: that is no second run. `sources` are the files of both
    /// sides, those before first.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check_distinct(&self, sources: &[Source]) -> Result<(), Error> {
        let (before, after) = sources.split_at(self.before().len().min(sources.len()));
        for (side, sources) in [("--before", before), ("--after", after)] {
            let mut files = BTreeMap::new();
            for source in sources {
                let Some(other) = source.file_id().and_then(|id| files.insert(id, source.name())) else { continue };
                let what = match other == source.name() {
                    true => format!("{other} is given twice"),
                    false => format!("{other} and {} are the same file", source.name()),
                };
                return Err(Error::Usage(format!("{side}: {what}; give each run once")));
            }
        }
        Ok(())
    }

    /// Reads and compares the runs of both sides; `None` if none are given.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is other input, scaling without runs, or a file twice for one side, and those of reading.
    pub fn compare(
        &self,
        sources: &[Source],
        weights: WeightOptions,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<ComparedRuns>, Error> {
        if self.before().is_empty() {
            return match self.scaling() {
                Scaling::Runs => Ok(None),
                _ => Err(Error::Usage("-n and --scale need runs: give --before and --after".to_owned())),
            };
        }
        if sources.iter().any(|source| matches!(source, Source::File(_))) {
            return Err(Error::Usage("give either --before and --after, or other input files".to_owned()));
        }
        let files: Vec<PathBuf> = self.before().iter().chain(self.after()).cloned().collect();
        let sources = Source::from_operands(&files)?;
        self.check_distinct(&sources)?;
        let mut before = read_runs(&sources, diagnostics)?;
        check_runs(&sources, &before)?;
        let after = before.split_off(self.before().len());
        let exact_names = self.copies.exact_names;
        let options = Options { scaling: self.scaling(), weights, exact_names, ..Options::default() };
        let compared = compare_runs(before, after, &options)?;
        warn_of_counterparts(&compared.counterparts, diagnostics);
        Ok(Some(compared))
    }
}

/// Reads plain profiles. A run that cannot be read is an error: there is nothing to compare then.
///
/// # Errors
/// Those of reading, [`Error::Invalid`] if no run has stacks, and [`Error::Unreadable`] if one has two weights a line.
pub fn read_runs(sources: &[Source], diagnostics: &mut Diagnostics) -> Result<Vec<Profile>, Error> {
    let runs = folded::read_profiles(sources, diagnostics)?;
    if runs.iter().all(Profile::is_empty) {
        return Err(folded::no_stacks(sources));
    }
    if let Some((source, _)) = sources.iter().zip(&runs).find(|(_, run)| run.is_differential()) {
        let what = "is a differential profile (two weights per line), but runs must be plain profiles".to_owned();
        return Err(Error::Unreadable { name: source.name(), what });
    }
    Ok(runs)
}

/// Fails if a run has no stacks: compared with it, no other run would differ.
///
/// # Errors
/// [`Error::Unreadable`].
pub fn check_runs(sources: &[Source], runs: &[Profile]) -> Result<(), Error> {
    let empty = sources.iter().zip(runs).find(|(_, run)| run.is_empty());
    empty.map_or(Ok(()), |(source, _)| {
        let what = "no stacks in this run; record it again, or leave it out".to_owned();
        Err(Error::Unreadable { name: source.name(), what })
    })
}

/// Options for what weights are.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Weights")]
pub struct WeightArgs {
    /// Set the weight of one sample [default: derived from the weights]
    ///
    /// The default is the greatest common divisor of all weights or, if weights are periods that vary, that of a light
    /// stack; of a few dozen samples, that of a typical one. If all sample counts happen to be multiples of a number, the
    /// divisor is too large, and differences are missed. -v prints the weight in use.
    #[arg(long, hide_short_help = true, value_name = "WEIGHT", value_parser = parse_positive_weight)]
    pub per_sample: Option<Weight>,

    /// Treat weights as exact counts, like instructions in a simulator
    ///
    /// With one run per side, any difference is then real. With several, it must exceed their spread. Large counts that
    /// are mostly the same on both sides are recognized as exact.
    #[arg(long, hide_short_help = true, conflicts_with = "per_sample")]
    pub exact: bool,
}

impl WeightArgs {
    /// Returns what is known about the weights.
    pub fn options(&self) -> WeightOptions {
        WeightOptions { per_sample: self.per_sample, exact: self.exact, is_of_time: false }
    }
}
