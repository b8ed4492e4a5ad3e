//! `fg-csv`: folded stacks in, a table of functions out.

use std::path::PathBuf;
use std::process::ExitCode;

use fgkit::Error;
use fgkit::cli::{self, Entries, Session, Tool};
use fgkit::csv::{Categories, DEFAULT_CATEGORIES, Format, GroupBy, Table, count, summary, write};
use fgkit::profile::Weight;
use fgkit::stats::significance::Runs;
use fgkit::stats::weight_kind::WeightKind;

/// Count what each function weighs, alone and with what it calls
///
/// Reads folded stacks and writes a table with one row a function: `self` is the weight of the stacks that it is the leaf
/// of, `inclusive` of all in which it stands, each once however often it recurs. The self weights add up to the total.
/// A leaf `[off-cpu]`, `[runnable]` or `[unsampled]` is a state: its weight is the function's beneath it. On a terminal
/// the table is aligned, else it is CSV.
///
/// Of a differential profile, as fg-diff writes it, the table shows before, after and delta, and where the weights are
/// counts the chance of such a difference by noise alone, adjusted for the number of rows: up to 0.05 it is significant. For
/// that a run counts as at most 1000 samples, since one run of a program varies from the next: see fg-diff --significant.
/// The largest change comes first.
#[derive(clap::Parser)]
#[command(name = "fg-csv")]
struct Args {
    /// Count function [default], comm, stack or edge
    ///
    /// comm is the first frame, in most profiles the command's name; edge is a caller with a callee.
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "function",
        hide_possible_values = true,
        hide_default_value = true
    )]
    by: GroupBy,

    /// Count categories of functions by their self weight
    #[arg(long, conflicts_with_all = ["by", "top", "sort"])]
    summary: bool,

    /// Read the rules of categories from FILE
    ///
    /// A category and a regular expression a line; the first that matches a function's name decides.
    #[arg(long, value_name = "FILE")]
    categories: Option<PathBuf>,

    /// Print the rules of categories and end
    #[arg(long, hide_short_help = true, conflicts_with = "categories")]
    print_categories: bool,

    /// Keep the first N rows
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Sort by a column, numbers from the largest
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,

    /// What one sample weighs [default: the weights' common divisor]
    ///
    /// For the adjusted_p_values in the table of a differential profile. The common divisor of counts that happen to be round is too
    /// large, and the adjusted_p_values with it; -v says what it is.
    #[arg(long, hide_short_help = true, value_name = "WEIGHT", value_parser = cli::positive)]
    per_sample: Option<Weight>,

    /// Each side of a differential profile adds up N runs
    ///
    /// For the adjusted_p_values: several runs tell more of a program than one, if they vary as runs do; how much they vary only fg-diff
    /// --significant sees.
    #[arg(long, hide_short_help = true, value_name = "N", default_value = "1", hide_default_value = true)]
    runs: Runs,

    /// Divide values by tabs
    #[arg(long, conflicts_with = "json")]
    tsv: bool,

    /// Write a JSON array of objects
    #[arg(long)]
    json: bool,
}

impl Args {
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
        ("fg-collapse perf.txt | fg-csv --top 10", "The heaviest functions."),
        ("fg-collapse perf.txt | fg-csv --summary", "Where the time goes: network, memory, locks, your code."),
        ("fg-diff -n before.folded after.folded | fg-csv --top 10", "The functions that changed most."),
    ];

    fn reads_stdin(&self) -> bool {
        !self.print_categories
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        if self.print_categories {
            session.output.write_with(|out| out.write_all(DEFAULT_CATEGORIES.as_bytes()))?;
            return Ok(0);
        }
        let categories = Categories::load(self.categories.as_deref())?;
        let mut counts = count(&session.sources, self.by, &mut session.diagnostics)?;
        if counts.differential {
            counts.runs = self.runs;
            counts.weight_kind = self.per_sample.map_or(counts.weight_kind, WeightKind::Counts);
            if let Some(doubt) = counts.weight_kind.caveat(self.runs) {
                session.diagnostics.warn(doubt);
            }
            if let Some(sample) = counts.weight_kind.sample() {
                session.diagnostics.note(&format!("one sample weighs {sample}"));
            }
        }
        let format = self.format(session.output.is_terminal());
        if self.summary {
            let (header, rows) = summary(&counts, &categories)?;
            session.output.write_with(|mut out| write(format, &header, rows.into_iter(), &mut out))?;
            return Ok(0);
        }
        let mut table = Table::new(&counts, self.by, Some(&categories));
        if let Some(column) = &self.sort {
            table.sort(column)?;
        }
        table.truncate(self.top.unwrap_or(usize::MAX));
        let header: Vec<&str> = table.header().collect();
        session.output.write_with(|mut out| write(format, &header, table.rows(), &mut out))?;
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
