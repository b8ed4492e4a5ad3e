//! `fg-csv`: folded stacks in, a table of functions out.

use std::path::PathBuf;
use std::process::ExitCode;

use fgkit::Error;
use fgkit::cli::{self, Entries, Section, Session, Tool};
use fgkit::csv::{Categories, DEFAULT_CATEGORIES, Format, GroupBy, Table, count, summary, write};
use fgkit::profile::Weight;
use fgkit::stats::significance::Runs;
use fgkit::stats::weight_kind::WeightKind;

/// Tabulate the weights of functions
///
/// Reads folded stacks and writes one row per function, by descending inclusive weight. The table is CSV, or aligned
/// text on a terminal.
///
/// The self weight of a function is the weight of the stacks in which it is the leaf; all self weights add up to the
/// total. Its inclusive weight is the weight of all stacks that contain it, counted once per stack even if the function
/// is recursive. If the leaf is a thread state (`[off-cpu]`, `[runnable]` or `[unsampled]`), the self weight goes to the
/// frame before it.
///
/// For a differential profile from fg-diff(1), the table has the weights before and after, and the largest change of
/// self weight comes first. If the weights are numbers of samples, it also has the chance that noise alone causes such
/// a change; a change with a chance of at most 0.05 is significant. Each run counts as at most 1000 samples, as with
/// `fg-diff --significant`.
#[derive(clap::Parser)]
#[command(name = "fg-csv")]
struct Args {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    differences: DifferenceArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// Options for the rows of the table.
#[derive(clap::Args)]
#[command(next_help_heading = "Table")]
struct TableArgs {
    /// Write a row per `function`, `comm`, `stack` or `edge` [default: function]
    ///
    /// A `comm` is a first frame, usually the name of a command or thread. An `edge` is a caller with its callee.
    #[arg(long, value_name = "WHAT", default_value = "function")]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    by: GroupBy,

    /// Write a row per category of functions, by self weight
    #[arg(long, conflicts_with_all = ["by", "top", "sort"])]
    summary: bool,

    /// Use the category rules in FILE
    ///
    /// Each line is a category and a regular expression; `#` starts a comment line. The first expression that matches
    /// a function's name determines its category.
    #[arg(long, value_name = "FILE")]
    categories: Option<PathBuf>,

    /// Print the built-in category rules and exit
    #[arg(long, hide_short_help = true, conflicts_with = "categories")]
    print_categories: bool,

    /// Keep only the first N rows
    #[arg(long, value_name = "N", value_parser = cli::integer_in::<usize>(..))]
    top: Option<usize>,

    /// Sort by COLUMN, numbers in descending order
    ///
    /// Names and chances are in ascending order, and deltas are sorted by size regardless of sign. For the names of
    /// columns, see COLUMNS in fg-csv(1).
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
}

/// Options for the chances of differences.
#[derive(clap::Args)]
#[command(next_help_heading = "Differential profiles")]
struct DifferenceArgs {
    /// Set the weight of one sample [default: common divisor of the weights]
    ///
    /// If all numbers of samples happen to be multiples of another number, the common divisor is too large, and so are
    /// the chances. -v prints the weight in use.
    #[arg(long, hide_short_help = true, value_name = "WEIGHT", value_parser = cli::parse_positive_weight)]
    per_sample: Option<Weight>,

    /// Assume that each side is the sum of N runs
    ///
    /// With more runs, smaller changes are significant. The variation between runs is assumed to be typical; only
    /// `fg-diff --significant`, which reads each run, measures it.
    #[arg(long, hide_short_help = true, value_name = "N", default_value = "1")]
    runs: Runs,
}

/// Options for the output format.
#[derive(clap::Args)]
#[command(next_help_heading = "Output format")]
struct FormatArgs {
    /// Separate values by tabs
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
        "The function's name. With --by comm or stack, the column has that name; with --by edge, there are two columns, \
         caller and callee.",
    ),
    ("self_samples, self_pct", "The self weight, and its percentage of the total."),
    ("inclusive_samples, inclusive_pct", "The inclusive weight, and its percentage of the total."),
    ("category", "The function's category: see --categories."),
    ("before, after, delta", "For a differential profile, in place of samples and pct, with the same prefixes."),
    (
        "chance",
        "The probability that noise alone causes such a delta, adjusted for the number of rows. It has the same \
         prefixes, and is empty if the weights are durations.",
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
        ("fg-diff -n before.folded after.folded | fg-csv --top 10", "List the functions that changed most:"),
        (
            "fg-diff -n --before b1 --before b2 --after a1 --after a2 | fg-csv --runs 2",
            "List the changes between the sums of two runs:",
        ),
    ];

    fn completions() -> Vec<(&'static str, Vec<&'static str>)> {
        vec![(
            "sort",
            vec!["self", "inclusive", "self_delta", "inclusive_delta", "self_chance", "inclusive_chance", "function"],
        )]
    }

    fn sections() -> Vec<Section> {
        let text = "By default, the columns are function, self_samples, self_pct, inclusive_samples, inclusive_pct and \
             category. With --by comm, stack or edge, there is only one weight, so samples and pct have no prefix, and \
             no category. With --summary, there are only category and the self weight.";
        vec![Section { heading: "COLUMNS", text, entries: COLUMNS.to_vec() }]
    }

    fn reads_stdin(&self) -> bool {
        !self.table.print_categories
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        if self.table.print_categories {
            session.output.write_with(|out| out.write_all(DEFAULT_CATEGORIES.as_bytes()))?;
            return Ok(0);
        }
        let categories = Categories::load(self.table.categories.as_deref())?;
        let mut counts = count(&session.sources, self.table.by, &mut session.diagnostics)?;
        if counts.differential {
            counts.runs = self.differences.runs;
            counts.weight_kind = self.differences.per_sample.map_or(counts.weight_kind, WeightKind::Counts);
            if let Some(caveat) = counts.weight_kind.caveat(self.differences.runs) {
                session.diagnostics.warn(caveat);
            }
            if let Some(sample) = counts.weight_kind.sample() {
                session.diagnostics.note(&format!("one sample weighs {sample}"));
            }
        }
        let format = self.format.format(session.output.is_terminal());
        if self.table.summary {
            let (header, rows) = summary(&counts, &categories)?;
            session.output.write_with(|mut out| write(format, &header, rows.into_iter(), &mut out))?;
            return Ok(0);
        }
        let mut table = Table::new(&counts, self.table.by, Some(&categories));
        if let Some(column) = &self.table.sort {
            table.sort(column)?;
        }
        table.truncate(self.table.top.unwrap_or(usize::MAX));
        let header: Vec<&str> = table.header().collect();
        session.output.write_with(|mut out| write(format, &header, table.rows(), &mut out))?;
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
