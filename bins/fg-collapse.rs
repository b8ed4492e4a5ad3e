//! `fg-collapse`: any profiler's output in, folded stacks out.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use fgkit::cli::{self, Choosing, Entries, Session, Tool};
use fgkit::collapse::{self, Format, Options, Spans};
use fgkit::profile::SampleWeight;
use fgkit::{Error, folded};

/// Fold a profiler's output: one line a stack, equal stacks merged, sorted
///
/// The profiler is recognised by what it printed; --list-formats shows all that are known.
#[derive(clap::Parser)]
#[command(name = "fg-collapse")]
struct Args {
    /// Read all input as this format, whatever it looks like
    #[arg(long, value_name = "NAME", value_parser = collapse::find_format)]
    format: Option<&'static Format>,
    /// List the formats
    #[arg(long)]
    list_formats: bool,
    /// Add process ids to threads' names: COMM-PID
    #[arg(long)]
    pid: bool,
    /// Add process and thread ids: COMM-PID/TID
    #[arg(long)]
    tid: bool,
    /// Mark kernel frames with `_[k]`
    #[arg(long, hide_short_help = true)]
    kernel: bool,
    /// Mark just-in-time compiled frames with `_[j]`
    #[arg(long, hide_short_help = true)]
    jit: bool,
    /// Both --kernel and --jit
    #[arg(long)]
    all: bool,
    /// Keep the addresses of frames without a symbol: `[MODULE <ADDRESS>]`
    #[arg(long, hide_short_help = true)]
    addrs: bool,
    /// Add the place in the source, from perf script -F +srcline
    #[arg(long, hide_short_help = true)]
    srcline: bool,
    /// Put samples' labels of this key, from pprof, into a root frame; may be repeated
    #[arg(long, value_name = "KEY", hide_short_help = true)]
    label: Vec<OsString>,
    /// Make FUNCTION the root of stacks in which it stands; may be repeated
    #[arg(long, value_name = "FUNCTION", hide_short_help = true)]
    skip_after: Vec<OsString>,
    /// Leave names as they are, argument lists and all
    #[arg(long)]
    no_tidy: bool,
    #[command(flatten)]
    choosing: Choosing,
    /// What a sample weighs: period, where one is printed, or samples
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, hide_possible_values = true, hide_short_help = true)]
    weight: SampleWeight,
    /// Put samples under the span, from FILE, in which they were taken
    ///
    /// FILE has a JSON object a line, with the span's name, trace_id, tid, start and end: nanoseconds on the clock of the
    /// samples. The name becomes the root frame of that thread's samples from start up to, but not including, end; of
    /// several spans, that of the one that began last. `[no span]` is the root of all others.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    span: Option<PathBuf>,
    /// Keep the order and merge equal neighbours only: for a flame chart
    #[arg(long, hide_short_help = true)]
    in_order: bool,
    /// The input is sorted folded text, pipes too: merge it as it comes
    #[arg(long, hide_short_help = true)]
    #[arg(conflicts_with_all = ["in_order", "span", "time", "offset", "comm", "pids", "tids", "cpu", "no_idle"])]
    sorted: bool,
    /// Look for a perf.data's files below DIR
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    symfs: Option<PathBuf>,
    /// Name a perf.data's kernel functions from FILE
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    kallsyms: Option<PathBuf>,
    /// Leave inlined calls out where a perf.data is named: quicker for large programs
    #[arg(long, hide_short_help = true)]
    no_inline: bool,
    /// Parse in N threads [default: one a core]
    #[arg(short, long, value_name = "N")]
    nthreads: Option<NonZeroUsize>,
    /// Accepted: perf script has named inlined functions already
    #[arg(long, hide = true)]
    inline: bool,
    /// Accepted, with --inline
    #[arg(long, hide = true)]
    context: bool,
}

impl Args {
    fn options(&self) -> Options {
        let bytes = |names: &[OsString]| names.iter().map(|name| name.as_encoded_bytes().to_vec()).collect();
        Options {
            format: self.format,
            threads: self.nthreads,
            verbatim: self.no_tidy,
            pid: self.pid,
            tid: self.tid,
            kernel: self.kernel || self.all,
            jit: self.jit || self.all,
            addrs: self.addrs,
            srcline: self.srcline,
            labels: bytes(&self.label),
            skip_after: bytes(&self.skip_after),
            weight: self.weight,
            symfs: self.symfs.clone(),
            kallsyms: self.kallsyms.clone(),
            no_inline: self.no_inline,
            ..self.choosing.options()
        }
    }
}

/// What the manual says of these files.
const PERF_DATA: &[(&str, &str)] = &[
    (
        "Names",
        "The files that were mapped are looked for where they were, below --symfs, and in perf's cache (~/.debug); another \
         build than the one that ran is not taken. Their debug information is found by build-id or debug link. Code that \
         was made at run time is named by jitdumps, and by /tmp/perf-PID.map if that is root's or yours.",
    ),
    (
        "Pipes",
        "What perf record -o - writes is read as it comes. A file that comes through a pipe, or compressed as a whole, is \
         kept in memory until its end, up to 2 GiB: only behind its records it says what stands in them. Give the file's \
         name, or let the shell open it (< perf.data), and it is read in parts.",
    ),
];

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-collapse perf.data | fg-svg > flame.svg", "Draw what perf recorded."),
        ("perf script | fg-collapse | fg-svg > flame.svg", "The same by perf's own names."),
        ("fg-collapse monday.folded.gz tuesday.folded.gz > week.folded", "Add profiles up."),
    ];

    fn sections() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
        let formats = collapse::formats().map(|format| (format.name, format.description)).collect();
        vec![("FORMATS", formats), ("PERF.DATA", PERF_DATA.to_vec())]
    }

    const SEE_ALSO: &'static [&'static str] = &["perf-script(1)"];

    fn reads_stdin(&self) -> bool {
        !self.list_formats
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let mut options = self.options();
        let Session { sources, output, diagnostics } = session;
        if let Some(path) = &self.span {
            options.spans = Some(Arc::new(Spans::load(path, diagnostics)?));
        }
        if self.list_formats {
            let width = collapse::formats().map(|format| format.name.len()).max().unwrap_or_default();
            let line = |format: &Format| format!("{:width$}  {}\n", format.name, format.description);
            output.write_with(|out| out.write_all(collapse::formats().map(line).collect::<String>().as_bytes()))?;
        } else if self.sorted {
            collapse::merge_promised(sources, diagnostics, output)?;
        } else if self.in_order {
            collapse::collapse_in_order(sources, &options, diagnostics, output)?;
        } else if !collapse::merge_if_sorted(sources, &options, output)? {
            let profile = collapse::collapse(sources, &options, diagnostics)?;
            output.write_with(|mut out| folded::write(&profile, &mut out))?;
        }
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
