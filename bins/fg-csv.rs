//! `fg-csv`: folded stacks in, a table of functions out.

use std::path::PathBuf;
use std::process::ExitCode;

use fgkit::Error;
use fgkit::cli::{self, Entries, RunArgs, Section, Session, Tool, WeightArgs};
use fgkit::csv::{Categories, DEFAULT_CATEGORIES, Format, GroupBy, Table, count, count_runs, summary, write};
use fgkit::profile::Weights;

/// Tabulate the weights of functions
///
/// Reads folded stacks and writes one row per function, by descending inclusive weight. The table is CSV, or aligned
/// text on a terminal.
///
/// The self weight of a function is the weight of the stacks in which it is the leaf; all self weights add up to the
/// total. Its inclusive weight is the weight of all stacks that contain it, counted once per stack even if the function
/// is recursive. If a stack ends in a thread state (`[off-cpu]`, `[runnable]` or `[unsampled]`) or has a waker, its
/// thread waited: its weight is self weight of the function that called the kernel.
///
/// For a differential profile from fg-diff(1), the table has the weights before and after, and the largest change of
/// self weight comes first. The probability that noise alone causes such a change is in the columns `self_chance` and
/// `inclusive_chance`; at most 0.05 is significant. A differential profile contains only sums. To judge changes by how
/// much they vary from run to run, give the runs with --before and --after, as for fg-diff(1).
#[derive(clap::Parser)]
#[command(name = "fg-csv", override_usage = "fg-csv [OPTIONS] [FILE]... | --before FILE... --after FILE...")]
struct Args {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    runs: RunArgs,
    #[command(flatten)]
    weights: WeightArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// Options for the rows of the table.
#[derive(clap::Args)]
#[command(next_help_heading = "Table")]
struct TableArgs {
    /// Write a row per `function`, `comm`, `stack`, `edge` or `waker` [default: function]
    ///
    /// A `comm` is a first frame, usually the name of a command or thread. An `edge` is a caller with its callee. For
    /// recordings with fg-record --wakers, a `waker` is what the threads of a comm waited for: the last thread of a
    /// chain, or the interrupt that ended a block. If the chain was cut, `[more-wakers]_[w]` follows.
    #[arg(long, value_name = "WHAT", default_value = "function")]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    by: GroupBy,

    /// Write a row per category of functions, by self weight
    #[arg(long, conflicts_with_all = ["by", "top", "sort"])]
    summary: bool,

    /// Use the category rules in FILE
    ///
    /// Each line is a category, blanks and a regular expression; `#` starts a comment line. The first expression that
    /// matches a function's name determines its category. With --summary, waiting time has the category of its thread
    /// state, if an expression matches the state's name.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    categories: Option<PathBuf>,

    /// Print the built-in category rules and exit
    #[arg(long, hide_short_help = true, conflicts_with = "categories")]
    print_categories: bool,

    /// Keep only the first N rows
    #[arg(long, value_name = "N", value_parser = cli::integer_in::<usize>(..))]
    top: Option<usize>,

    /// Sort by COLUMN, numbers in descending order
    ///
    /// Names and chances are in ascending order. Deltas are sorted by size, regardless of sign. See COLUMNS in
    /// fg-csv(1).
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
}

/// Options for the output format.
#[derive(clap::Args)]
#[command(next_help_heading = "Output format")]
struct FormatArgs {
    /// Separate values with tabs
    #[arg(long, conflicts_with = "json")]
    tsv: bool,

    /// Write a JSON array of objects
    #[arg(long)]
    json: bool,
}

/// The man page's section about columns.
const COLUMNS: &[(&str, &str)] = &[
    (
        "function",
        "The function's name. With --by comm or stack, the column is called comm or stack. With --by edge, there are two \
         columns, caller and callee; with --by waker, comm and waker.",
    ),
    ("self_samples, self_pct", "The self weight, and its percentage of the total."),
    ("inclusive_samples, inclusive_pct", "The inclusive weight, and its percentage of the total."),
    ("category", "The function's category: see --categories."),
    (
        "self_before, self_after, self_delta, inclusive_before, ...",
        "For a differential profile, instead of samples and pct: the weights, and the change. With --by comm, stack, \
         edge or waker, the columns are before, after, delta and chance.",
    ),
    (
        "self_chance, inclusive_chance",
        "The probability that noise alone causes such a change, adjusted for the number of rows; empty if the weights \
         are durations, unless both sides have several runs.",
    ),
];

impl FormatArgs {
    fn format(&self, is_terminal: bool) -> Format {
        match () {
            () if self.json => Format::Json,
            () if self.tsv => Format::Tsv,
            () if is_terminal => Format::Terminal,
            () => Format::Csv,
        }
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-collapse perf.data | fg-csv --top 10", "List the ten heaviest functions, by inclusive weight:"),
        ("fg-csv --sort self_samples --top 10 app.folded", "List the ten heaviest functions, by self weight:"),
        ("fg-csv --summary app.folded", "Show the weight of the kernel, memory allocation, locks and your own code:"),
        ("fg-csv --by edge --json -o calls.json app.folded", "Write the weight of each call as JSON:"),
        ("sudo fg-record --off-cpu --wakers -p 1234 -d 10 | fg-csv --by waker", "List who kept which thread waiting:"),
        ("fg-csv -n --before before.folded --after after.folded --top 10", "List the functions that changed most:"),
        (
            "fg-csv --before b1 b2 b3 --after a1 a2 a3 --top 10",
            "List the changes between runs, judged by how much each function varies:",
        ),
    ];

    fn completions() -> Vec<(&'static str, Vec<&'static str>)> {
        vec![(
            "sort",
            vec![
                "self",
                "self_samples",
                "inclusive",
                "inclusive_samples",
                "self_delta",
                "inclusive_delta",
                "self_chance",
                "inclusive_chance",
                "function",
            ],
        )]
    }

    fn sections() -> Vec<Section> {
        let text = "By default, the columns are function, self_samples, self_pct, inclusive_samples, inclusive_pct and \
             category. With --by comm, stack, edge or waker, there is only one weight, in columns without self_ or inclusive_, \
             and no category. With --summary, there are only category and the self weight.";
        vec![Section { heading: "COLUMNS", text, entries: COLUMNS.to_vec() }]
    }

    fn reads_stdin(&self) -> bool {
        !self.table.print_categories && self.runs.before().is_empty()
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        if self.table.print_categories {
            session.output.write_with(|out| out.write_all(DEFAULT_CATEGORIES.as_bytes()))?;
            return Ok(0);
        }
        let categories = Categories::load(self.table.categories.as_deref())?;
        let options = self.weights.options();
        let by = if self.table.summary { GroupBy::Leaf } else { self.table.by };
        let mut counts = match self.runs.compare(&session.sources, options, &mut session.diagnostics)? {
            Some(compared) => count_runs(compared, by)?,
            None => count(&session.sources, by, &mut session.diagnostics)?,
        };
        if self.table.by == GroupBy::Waker && counts.rows.is_empty() {
            let message = "no stack has a waker; fg-record --off-cpu --wakers records them, for waits that end within the recording";
            return Err(Error::Invalid(message.to_owned()));
        }
        if counts.total == Weights::default() {
            return Err(Error::Invalid("nothing to tabulate: all stacks have weight 0".to_owned()));
        }
        if counts.differential {
            if self.runs.before().is_empty() {
                counts.judge_sums(options)?;
            }
            if let Some(caveat) = &counts.caveat {
                session.diagnostics.warn(caveat);
            }
            session.diagnostics.note(&counts.weight_kind.describe());
        } else {
            let options = [
                ("--exact-names", self.runs.copies.exact_names),
                ("--per-sample", self.weights.per_sample.is_some()),
                ("--exact", self.weights.exact),
            ];
            cli::warn_of_unused(&options, &mut session.diagnostics);
        }
        let format = self.format.format(session.output.is_terminal());
        if self.table.summary {
            let (header, rows) = summary(&counts, &categories)?;
            session.output.write_with(|mut out| write(format, &header, rows.into_iter(), &mut out))?;
            return Ok(0);
        }
        let TableArgs { by, sort, top, .. } = &self.table;
        let table = Table::new(&counts, *by, Some(&categories), sort.as_deref(), *top)?;
        let header: Vec<&str> = table.header().collect();
        session.output.write_with(|mut out| write(format, &header, table.rows(), &mut out))?;
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
