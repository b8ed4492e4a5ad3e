//! `fg-diff`: two profiles in, one with two weights a stack out.

use std::path::PathBuf;
use std::process::ExitCode;

use fgkit::cli::{self, Entries, RunArgs, Session, Tool, WeightArgs, check_runs, read_runs, warn_of_counterparts};
use fgkit::diagnostics::{Diagnostics, plural};
use fgkit::diff::{Comparison, Options, Renamed, diff, diff_streams};
use fgkit::filter::{Rename, Threshold, UnmatchedPattern};
use fgkit::input::Source;
use fgkit::profile::Profile;
use fgkit::stats::sample_weight::WeightKind;
use fgkit::tally::GroupBy;
use fgkit::{Error, folded};

/// Compare two profiles stack by stack
///
/// Writes a differential profile: each stack that occurs in either profile, with its weights before and after, sorted.
/// A stack that occurs in only one profile has weight 0 in the other. fg-svg(1) draws the result with the widths of
/// AFTER, growth in red or orange and shrinkage in blue; fg-csv(1) lists the functions that changed, and fg-check(1)
/// checks the changes against limits.
///
/// --before and --after add up several runs for each side. If the numbers of runs differ, the weights before are
/// multiplied by the number of runs after and divided by the number of runs before. Compare runs of a fixed amount of
/// work as they are; if runs differ in length, compare shares with -n.
#[derive(clap::Parser)]
#[command(
    name = "fg-diff",
    override_usage = "fg-diff [OPTIONS] BEFORE AFTER\n       \
                      fg-diff [OPTIONS] --before FILE... --after FILE..."
)]
struct Args {
    /// The profile before; `-` is standard input
    #[arg(value_name = "BEFORE", conflicts_with_all = ["runs_before", "runs_after"], required_unless_present_any = ["runs_before", "runs_after"], help_heading = None)]
    file_before: Option<PathBuf>,

    /// The profile after; `-` is standard input
    #[arg(value_name = "AFTER", conflicts_with_all = ["runs_before", "runs_after"], required_unless_present_any = ["runs_before", "runs_after"], help_heading = None)]
    file_after: Option<PathBuf>,

    #[command(flatten)]
    runs: RunArgs,

    #[command(flatten)]
    names: NameArgs,

    #[command(flatten)]
    significance: SignificanceArgs,

    #[command(flatten)]
    weights: WeightArgs,

    #[command(flatten)]
    general: GeneralArgs,
}

/// Options that match stacks whose names differ.
#[derive(clap::Args)]
#[command(next_help_heading = "Names")]
struct NameArgs {
    /// Replace addresses such as 0x7f3a with `0x...`
    ///
    /// All addresses become the same text, dots included.
    #[arg(short, long)]
    strip_hex: bool,

    /// Replace matches of REGEX in names; may be repeated
    ///
    /// Stacks that become equal are compared with each other. In TEXT, `$1` is the first
    /// group of REGEX. The last `=` separates REGEX from TEXT; write an equals sign in TEXT as `\=`.
    #[arg(long, alias = "strip", value_name = "REGEX=TEXT")]
    rename: Vec<Rename>,

    /// Pair renamed functions, and compare them under their new names
    ///
    /// A function that vanished is paired with a new one if the two have similar callers, callees and weights, and no
    /// other function does. They must also call the same functions of the program, which hardly any other one calls, or have
    /// names that differ only in a version or the way of writing, as no others do: `parse_v1` and `parse`. Each pair is
    /// printed. Functions are not paired if their weights differ significantly, or if they have so few samples that chance alone may put them on one
    /// side. The rest must show that both sides are versions of one program: of its own functions with 1 % of the weight
    /// or more, two or more have the same name and about the same weight, or four or more the same or another name; most
    /// functions are such, and have half of the weight. So none is paired in a program of two functions. All threads
    /// count, but functions are paired within threads of one name.
    /// If a crate, module or type was renamed, all functions whose names contain it are compared under their new names, also
    /// those whose weights differ.
    #[arg(long, hide_short_help = true)]
    match_renames: bool,
}

/// Options that decide which differences count.
#[derive(clap::Args)]
#[command(next_help_heading = "Differences")]
struct SignificanceArgs {
    /// Ignore differences below this, like 250 or 0.5%
    ///
    /// For these stacks, the weight before is set to the weight after. A percentage refers to the total after.
    ///
    /// The output then has a stack `[flattened]` without weight, because the total before is no longer known. fg-filter
    /// keeps this stack, fg-svg shows both weights of a function as shares of the total after, and programs that judge
    /// differences refuse the input.
    #[arg(long, value_name = "WEIGHT|%", allow_hyphen_values = true)]
    min_change: Option<Threshold>,

    /// Ignore differences that may be noise
    ///
    /// For these stacks, the weight before is set to the weight after, and a stack `[flattened]` is added, as with
    /// --min-change. Differences are judged by function and corrected for their number: if nothing changed, the chance
    /// that any difference remains is at most 5%. A stack keeps its difference if the self weight of its leaf changed
    /// significantly. If only the inclusive weight of a function did, all stacks that contain the function keep theirs.
    ///
    /// A new function that only calls what others called before is a difference too. To fail a job only if something costs
    /// more, use fg-check(1).
    ///
    /// With several runs per side (--before, --after), a difference must exceed the spread between runs. Start with
    /// three runs per side; five find most changes of a function by a fifth of its weight. One run per side does not
    /// show how much runs differ: each run counts as at most 1000 samples, and the change of a function must also stand
    /// out from those of the other functions. A busy machine can still cause a difference.
    ///
    /// If the weights are durations, such as time off the CPU, each side needs several runs. A difference of `[lost]`
    /// always counts as noise.
    #[arg(long)]
    significant: bool,

    /// Judge differences by `function` or by `stack` [default: function]
    ///
    /// With `stack`, each stack is judged on its own, which finds only large changes.
    #[arg(long, hide_short_help = true, value_name = "WHAT", default_value = "function", requires = "significant")]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    by: By,

    /// Exit with status 1 if any stack differs
    #[arg(long, hide_short_help = true)]
    exit_code: bool,
}

/// The unit of a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Function,
    Stack,
}

/// Options that other programs get with their input files.
#[derive(clap::Args)]
#[command(next_help_heading = "General options")]
struct GeneralArgs {
    /// Fail at the first malformed line instead of skipping it
    #[arg(long, hide_short_help = true, display_order = 800)]
    strict: bool,
}

impl Args {
    fn options(&self) -> Options {
        let Self { runs, names, significance, weights, .. } = self;
        Options {
            scaling: runs.scaling(),
            strip_hex: names.strip_hex,
            renames: names.rename.clone(),
            exact_names: runs.copies.exact_names,
            match_renames: names.match_renames,
            min_change: significance.min_change,
            significant: significance.significant.then_some(match significance.by {
                By::Function => GroupBy::Function,
                By::Stack => GroupBy::Stack,
            }),
            weights: weights.options(),
        }
    }

    /// Warns of a side without stacks. Among several runs, or if differences are judged, one without stacks is an error.
    fn check_empty_runs(
        &self,
        sources: &[Source],
        runs: &[Profile],
        diagnostics: &mut Diagnostics,
    ) -> Result<(), Error> {
        if runs.len() > 2 || self.significance.significant {
            return check_runs(sources, runs);
        }
        for (source, _) in sources.iter().zip(runs).filter(|(_, run)| run.is_empty()) {
            diagnostics.warn(&format!(
                "{}: no stacks in the input; every stack of the other side is a difference",
                source.name()
            ));
        }
        Ok(())
    }

    /// Says how to compare builds whose names differ, if hardly any stack is on both sides.
    fn hint_at_names(&self, comparison: &Comparison, diagnostics: &mut Diagnostics) {
        if let Some((before, after)) = comparison.mismatch().filter(|_| !self.names.match_renames) {
            diagnostics.warn(&format!(
                "{:.0} % of the weight before and {:.0} % of that after are in stacks that only one side has; if names \
                 differ, --match-renames pairs functions, and --rename REGEX=TEXT replaces versions or hashes",
                100.0 * before,
                100.0 * after
            ));
        }
    }

    /// Returns the files of all runs, those before first, and the number of runs before.
    fn files(&self) -> (Vec<PathBuf>, usize) {
        let before = self.file_before.iter().chain(self.runs.before());
        let all = before.clone().chain(&self.file_after).chain(self.runs.after()).cloned().collect();
        (all, before.count())
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        (
            "fg-diff -n before.folded after.folded | fg-svg > diff.svg",
            "Draw what grew, in red, and what shrank, in blue:",
        ),
        (
            "fg-diff --significant --before b1 b2 b3 --after a1 a2 a3",
            "Show only differences that exceed the variation between runs:",
        ),
        (
            "fg-diff -n --min-change 0.5% --exit-code old.folded new.folded",
            "Exit with status 1 if any stack changed by 0.5% of the total or more:",
        ),
        (
            "fg-diff --rename 'v[0-9]+::=' --strip-hex v1.folded v2.folded",
            "Compare versions whose function names contain the version number:",
        ),
        (
            "fg-diff --match-renames old.folded new.folded | fg-svg > diff.svg",
            "Compare renamed functions under their new names:",
        ),
        ("fg-collapse perf.data | fg-diff -n -o diff.folded old.folded -", "Compare with a profile from a pipe:"),
    ];

    const EXIT_STATUS: Entries = &[
        ("0", "The comparison was written."),
        ("1", "With --exit-code: at least one stack differs."),
        ("2", "Invalid command line, or an error: nothing was compared."),
    ];

    fn reads_stdin(&self) -> bool {
        self.files().0.iter().any(|file| file.as_os_str() == "-")
    }

    fn failure(_: &Error) -> u8 {
        2
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        session.diagnostics.set_strict(self.general.strict);
        let (files, first_after) = self.files();
        let sources = Source::from_operands(&files)?;
        if self.file_before.is_none() {
            self.runs.check_distinct(&sources)?;
        }
        let options = self.options();
        let streamed = match &sources[..] {
            [before, after] => diff_streams(before, after, &options, &mut session.output)?,
            _ => None,
        };
        let comparison = match streamed {
            Some(comparison) => comparison,
            None => {
                let mut before = read_runs(&sources, &mut session.diagnostics)?;
                self.check_empty_runs(&sources, &before, &mut session.diagnostics)?;
                let after = before.split_off(first_after);
                let (both, comparison) = diff(before, after, &options)?;
                session.output.write_with(|mut out| folded::write(&both, &mut out))?;
                comparison
            }
        };
        if let (true, Some(side)) = (self.runs.normalize, comparison.empty_side()) {
            session.diagnostics.warn(&format!("--normalize has no effect: the total weight {side} is 0"));
        }
        for rename in self.names.rename.iter().filter(|rename| !rename.has_matched()) {
            let unmatched = UnmatchedPattern { option: "rename", pattern: rename.rule().to_owned() };
            session.diagnostics.warn(&unmatched.to_string());
        }
        warn_of_counterparts(&comparison.counterparts, &mut session.diagnostics);
        for Renamed { before, after } in &comparison.renamed {
            let [before, after] = [before, after].map(|name| String::from_utf8_lossy(name));
            session.diagnostics.warn(&format!("renamed: {before} -> {after}"));
        }
        self.hint_at_names(&comparison, &mut session.diagnostics);
        report(&comparison, &mut session.diagnostics);
        Ok(u8::from(self.significance.exit_code && comparison.different > 0))
    }
}

/// Reports totals and numbers of stacks with `-v`, and warns if significance is doubtful.
fn report(comparison: &Comparison, diagnostics: &mut Diagnostics) {
    let Comparison { totals, factor, stacks, only_before, only_after, different, flattened, weight_kind, .. } =
        comparison;
    let scaled = if *factor == 1.0 { String::new() } else { format!(" (scaled by {factor:.6})") };
    let per_sample = weight_kind.map_or_else(String::new, |kind| format!("; {}", WeightKind::describe(kind)));
    let flattened =
        if *flattened == 0 { String::new() } else { format!(", {} ignored", plural(*flattened, "difference")) };
    if let Some(caveat) = &comparison.caveat {
        diagnostics.warn(caveat);
    }
    diagnostics.note(&format!(
        "before {}{scaled}, after {}; {}: {} only before, {} only after, {different} different{flattened}{per_sample}",
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
