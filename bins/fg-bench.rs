//! `fg-bench`: two commands in, a verdict on what changed out.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::builder::NonEmptyStringValueParser;
use fgkit::Error;
use fgkit::bench::{Change, Elapsed, Measure, Options, RunWarning, Sides, Verdict, bench};
use fgkit::cli::{self, CopyArgs, Entries, Session, Tool, WeightArgs, warn_of_counterparts};
use fgkit::diagnostics::{Diagnostics, printable};

/// Samples a second, if no event is given.
const DEFAULT_FREQUENCY: u64 = 1999;

/// Most changes that are listed without -v.
const LISTED: usize = 10;

/// Most functions of one side only that are named at a change.
const NAMED: usize = 3;

/// Run two commands alternately, and find what became slower
///
/// Runs both commands alternately, records each run with fg-record(1), and judges each function by how much it varies
/// from run to run, as fg-check(1) does. The order within a pair is random, so that both sides run under the same
/// conditions. Each command must do a fixed amount of work, so that whatever takes more CPU time has become slower.
/// Time in which a command waits is not judged; it is only part of the elapsed time, which is reported.
///
/// The standard input of the commands is empty, and their output is discarded.
///
/// A function that was extracted, inlined, wrapped or renamed does not count as growth if the cost is the same: the weight of a
/// function that only one side has is charged to its nearest caller that both have, or to `[unmatched]` if there is
/// none. Unlike fg-bench, fg-check(1) also judges new functions by themselves.
///
/// The first line of the output is the verdict. The other lines are the functions that changed significantly, the
/// elapsed time of the commands, and what fg-record(1) reported about their recordings, such as lost samples.
///
/// The result is judged after 5, 10, 20, 40, ... pairs of runs. fg-bench ends when a judgement finds that a function
/// has grown by --min-growth or rules out such growth, or after --max-time. The judgements share the error rate: if
/// nothing changed, the chance that any of them finds growth is at most 5%.
///
/// The profiles of the runs stay in a folder, for fg-diff(1), fg-csv(1) and fg-check(1).
#[derive(clap::Parser)]
#[command(name = "fg-bench", override_usage = "fg-bench [OPTIONS] --before COMMAND --after COMMAND")]
struct Args {
    /// Measure this shell command as the version before
    #[arg(long, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    before: String,

    /// Measure this shell command as the version after
    #[arg(long, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    after: String,

    /// Keep the profiles here [default: fg-bench.runs]
    ///
    /// The folder has a file for each run: before.0001.folded, after.0001.folded and so on. Runs of an earlier
    /// benchmark move to FOLDER.old, and replace the runs there.
    #[arg(long, value_name = "FOLDER", default_value = "fg-bench.runs", hide_default_value = true)]
    runs: PathBuf,

    #[command(flatten)]
    ends: EndArgs,

    #[command(flatten)]
    measures: MeasureArgs,

    #[command(flatten)]
    copies: CopyArgs,

    #[command(flatten)]
    weights: WeightArgs,

    /// Write the verdict and all changes as JSON
    #[arg(long, help_heading = "Output format")]
    json: bool,
}

/// Options that decide when the benchmark ends.
#[derive(clap::Args)]
#[command(next_help_heading = "Duration")]
struct EndArgs {
    /// Run for at most this long [default: 2m]
    ///
    /// TIME is like 90s or 10m. A run that is still in progress then is stopped and does not count. A pair that is
    /// unlikely to end in time is not started.
    #[arg(long, value_name = "TIME", default_value = "2m", hide_default_value = true, value_parser = cli::parse_duration)]
    max_time: Duration,

    /// Find growth by N% of the total or more [default: 2%]
    ///
    /// The percentage is of the total weight before. Smaller growth is listed if it is significant, but it does not end
    /// the benchmark or cause exit status 1.
    #[arg(long, value_name = "N%", default_value = "2%", hide_default_value = true, value_parser = cli::parse_percent)]
    min_growth: f64,

    /// Run exactly N pairs
    ///
    /// The result is judged once, at the end. --max-time does not apply.
    #[arg(long, value_name = "N", value_parser = cli::integer_in::<u32>(2..))]
    pairs: Option<u32>,

    /// Fail with status 2 if a run takes longer than this [default: no limit but --max-time]
    #[arg(long, value_name = "TIME", value_parser = cli::parse_duration)]
    timeout: Option<Duration>,

    /// Seed the random order of the runs [default: the time]
    #[arg(long, value_name = "N", hide_short_help = true, value_parser = cli::integer_in::<u64>(..))]
    seed: Option<u64>,
}

/// Options for what is measured.
#[derive(clap::Args)]
#[command(next_help_heading = "Measurement")]
struct MeasureArgs {
    /// Sample HZ times a second [default: 1999]
    ///
    /// With -e, the default is that of fg-record(1).
    #[arg(short = 'F', long, alias = "freq", value_name = "HZ", value_parser = cli::integer_in(1_u64..))]
    #[arg(conflicts_with = "measure")]
    frequency: Option<u64>,

    /// Sample this event, as with fg-record -e
    #[arg(short, long, value_name = "EVENT", conflicts_with = "measure")]
    event: Option<String>,

    /// Measure a run by the output of this shell command
    ///
    /// It must run the command in the variable FG_COMMAND, for example with `sh -c "$FG_COMMAND"`. FG_SIDE is `b`
    /// (before) or `a` (after). The result goes to standard output or to the file that FG_FILE names: folded stacks,
    /// any other profile that fg-collapse(1) reads, or a number. A
    /// larger number means slower.
    #[arg(long, value_name = "COMMAND")]
    measure: Option<String>,
}

impl Args {
    fn options(&self) -> Options {
        let Self { ends, measures, weights, copies, .. } = self;
        Options {
            commands: Sides { before: self.before.clone(), after: self.after.clone() },
            measure: measures.measure(),
            folder: self.runs.clone(),
            max_time: ends.max_time,
            timeout: ends.timeout,
            pairs: ends.pairs,
            min_growth: ends.min_growth,
            weights: weights.options(),
            exact_names: copies.exact_names,
            seed: ends.seed.unwrap_or_else(seed_from_time),
        }
    }
}

impl MeasureArgs {
    fn measure(&self) -> Measure {
        if let Some(measure) = &self.measure {
            return Measure::Output(measure.clone());
        }
        let default = self.event.is_none().then_some(DEFAULT_FREQUENCY);
        let event = self.event.iter().flat_map(|event| ["-e".to_owned(), event.clone()]);
        let rate = self.frequency.or(default).into_iter().flat_map(|rate| ["-F".to_owned(), rate.to_string()]);
        let options = event.chain(rate).collect();
        Measure::Samples { program: find_recorder(), options }
    }
}

/// Returns the fg-record beside this program, or that on the search path.
fn find_recorder() -> PathBuf {
    let name = format!("fg-record{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(&name));
    beside.filter(|path| path.exists()).unwrap_or_else(|| name.into())
}

fn seed_from_time() -> u64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.map_or(1, |time| time.as_nanos() as u64)
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        (
            "fg-bench --before 'old/app --bench' --after 'new/app --bench'",
            "Find what became slower, in two minutes at most:",
        ),
        (
            "fg-bench --min-growth 0.5% --max-time 15m --before old/app --after new/app",
            "Look for small changes, for up to 15 minutes:",
        ),
        ("fg-bench -e instructions --before old/app --after new/app", "Compare the numbers of instructions:"),
        (
            "fg-bench --exact --before old/app --after new/app --measure \\\n      \
             'valgrind --tool=callgrind --callgrind-out-file=$FG_FILE $FG_COMMAND >&2'",
            "Compare exact counts of instructions, in which any change is real:",
        ),
        (
            "fg-bench --before old/app --after new/app --measure 'sh -c \"$FG_COMMAND\" | tail -1'",
            "Compare the number that the commands print last:",
        ),
        (
            "fg-bench --before old/app --after new/app --measure \\\n      \
             'fg-record -q --wall -- sh -c \"$FG_COMMAND\"'",
            "Compare the time in which the commands run or wait:",
        ),
        (
            "fg-bench --json --before old/app --after new/app | jq '.changes[0].function'",
            "Pass the function that changed most to another program:",
        ),
        ("fg-csv --before fg-bench.runs/before.* --after fg-bench.runs/after.*", "Tabulate all functions:"),
    ];

    const EXIT_STATUS: Entries = &[
        (
            "0",
            "No growth of --min-growth or more was found. If it cannot be ruled out, the first word of the output is \
             `undecided`.",
        ),
        ("1", "A function grew by --min-growth or more."),
        ("2", "Invalid command line, or an error: a command failed, or fewer than two pairs of runs were completed."),
        (
            "128+N",
            "Signal N ended the benchmark. If at least two pairs were completed, the verdict on them is \
                   printed.",
        ),
    ];

    const HAS_INPUTS: bool = false;

    fn completions() -> Vec<(&'static str, Vec<&'static str>)> {
        vec![("event", cli::COMMON_EVENTS.to_vec())]
    }

    fn reads_stdin(&self) -> bool {
        false
    }

    fn handles_signals(&self) -> bool {
        true
    }

    fn failure(_: &Error) -> u8 {
        2
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let options = self.options();
        let interrupts = Interrupts::listen()?;
        let result = bench(&options, &|| interrupts.received().is_some(), &mut session.diagnostics);
        if let Some(signal) = interrupts.received() {
            match result {
                Ok(verdict) => self.write(&verdict, session)?,
                Err(error) => session.diagnostics.warn(&error.to_string()),
            }
            return Ok(128 + u8::try_from(signal).unwrap_or(0));
        }
        let verdict = result?;
        self.write(&verdict, session)?;
        Ok(u8::from(verdict.growth().next().is_some()))
    }
}

impl Args {
    fn write(&self, verdict: &Verdict, session: &mut Session) -> Result<(), Error> {
        warn_about(verdict, &mut session.diagnostics);
        if self.json {
            return session.output.write_with(|out| writeln!(out, "{}", verdict.to_json()));
        }
        session.output.write_with(|out| {
            writeln!(out, "{}", verdict.describe())?;
            verdict.changes.iter().take(LISTED).try_for_each(|change| writeln!(out, "{}", describe(change)))?;
            verdict.elapsed.iter().try_for_each(|elapsed| writeln!(out, "{}", describe_elapsed(elapsed)))?;
            // They are part of the result: -q does not hide them.
            let warnings = verdict.warnings.iter().map(RunWarning::describe);
            warnings.into_iter().try_for_each(|text| writeln!(out, "fg-record: {}", printable(&text)))
        })?;
        if verdict.changes.len() > LISTED {
            let folder = self.runs.display();
            session.diagnostics.warn(&format!(
                "{} of {} changes are listed; for all, run: fg-csv --before {folder}/before.* --after {folder}/after.*",
                LISTED,
                verdict.changes.len()
            ));
        }
        Ok(())
    }
}

/// Says what was taken for equal, and what is not measured.
fn warn_about(verdict: &Verdict, diagnostics: &mut Diagnostics) {
    warn_of_counterparts(&verdict.counterparts, diagnostics);
    if verdict.has_longer_waits() {
        diagnostics.warn(
            "the runs after took longer, but what is measured did not grow; to measure waits, use --measure 'fg-record -q --wall \
             -- sh -c \"$FG_COMMAND\"'",
        );
    }
}

fn describe(change: &Change) -> String {
    let Change { function, is_inclusive, weights, growth, chance, .. } = change;
    let function = printable(&String::from_utf8_lossy(function));
    let kind = if *is_inclusive { "inclusive" } else { "self" };
    format!(
        "{function}: {kind} {growth:+.2}% of all before ({:.1} -> {:.1} a run), chance {chance:.4}{}",
        weights.0,
        weights.1,
        describe_charged(change)
    )
}

/// Names the functions whose self weight counts for another one.
fn describe_charged(change: &Change) -> String {
    let parts = [(true, "new"), (false, "gone")].into_iter().filter_map(|(is_new, what)| {
        let names: Vec<String> = change.charged_names(is_new).iter().map(|name| printable(name)).collect();
        let shown = names[..names.len().min(NAMED)].join(", ");
        let others = names.len().saturating_sub(NAMED);
        let others = if others > 0 { format!(" and {others} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("; {what}: {shown}{others}"))
    });
    parts.collect()
}

fn describe_elapsed(elapsed: &Elapsed) -> String {
    let (before, after) = elapsed.seconds;
    let (growth, chance) = (elapsed.growth(), elapsed.chance);
    format!("elapsed time: {growth:+.2}% ({before:.2} s -> {after:.2} s a run), chance {chance:.4}")
}

/// The signals that end the benchmark.
struct Interrupts {
    #[cfg(unix)]
    signals: fgkit::interrupts::Interrupts,
}

impl Interrupts {
    fn listen() -> Result<Self, Error> {
        Ok(Self {
            #[cfg(unix)]
            signals: fgkit::interrupts::Interrupts::listen(|| {})
                .map_err(|error| Error::System(format!("cannot handle signals: {error}")))?,
        })
    }

    #[cfg(unix)]
    fn received(&self) -> Option<i32> {
        self.signals.received()
    }

    #[cfg(not(unix))]
    fn received(&self) -> Option<i32> {
        None
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
