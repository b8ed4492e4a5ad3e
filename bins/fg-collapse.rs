//! `fg-collapse`: any profiler's output in, folded stacks out.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use fgkit::cli::{self, Entries, SampleArgs, Section, Session, Tool};
use fgkit::collapse::{self, Format, FormatName, Options, Spans};
use fgkit::input::Source;
use fgkit::profile::SampleWeight;
use fgkit::{Error, folded};

/// Convert profiler output to folded stacks
///
/// Writes each distinct stack once with its total weight, in the sorted text format of fg-folded(5). The inputs may
/// have different formats: each is recognized by its content. See FORMATS in fg-collapse(1).
///
/// --kernel, --jit and --skip-after affect only perf script text and perf.data; --pid and --tid only formats that have
/// these IDs.
#[derive(clap::Parser)]
#[command(name = "fg-collapse")]
struct Args {
    #[command(flatten)]
    input: ReadArgs,
    #[command(flatten)]
    samples: SampleArgs,
    #[command(flatten)]
    frames: FrameArgs,
    #[command(flatten)]
    perf_data: PerfDataArgs,
}

/// Options for reading the input and merging stacks.
#[derive(clap::Args)]
#[command(next_help_heading = "Input")]
struct ReadArgs {
    /// Read all input as this format, whatever its content
    #[arg(long, value_name = "NAME", value_parser = collapse::find_format)]
    format: Option<FormatName>,
    /// List the formats and exit
    #[arg(long)]
    list_formats: bool,
    /// Parse with N threads [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = cli::integer_in(1_usize..))]
    nthreads: Option<usize>,
    /// Weight each sample by its `period`, or by 1 (`samples`)
    ///
    /// A sample without a period counts as 1. Formats that have sums of samples keep their weights, such as pprof, callgrind and
    /// heap profiles.
    #[arg(long, value_name = "BY", value_enum, default_value_t, hide_possible_values = true, hide_short_help = true)]
    weight: SampleWeight,
    /// Keep samples in input order and merge only equal neighbours
    ///
    /// Use this to draw a flame chart with `fg-svg --flamechart`.
    #[arg(long, hide_short_help = true)]
    in_order: bool,
    /// Merge folded stacks that are already sorted, without holding them in memory
    ///
    /// Sorted files are always merged this way; pipes need the option. With it, input that is not sorted is an error.
    #[arg(long, hide_short_help = true)]
    #[arg(conflicts_with_all = ["in_order", "span", "time", "offset", "comm", "pids", "tids", "cpu", "no_idle"])]
    sorted: bool,
}

/// Options for the names of threads and frames.
#[derive(clap::Args)]
#[command(next_help_heading = "Frames")]
struct FrameArgs {
    /// Append process IDs to thread names: COMM-PID
    #[arg(long)]
    pid: bool,
    /// Append process and thread IDs: COMM-PID/TID
    #[arg(long)]
    tid: bool,
    /// Append `_[k]` to kernel frames
    #[arg(long, hide_short_help = true)]
    kernel: bool,
    /// Append `_[j]` to just-in-time compiled frames
    #[arg(long, hide_short_help = true)]
    jit: bool,
    /// Same as --kernel --jit
    #[arg(long)]
    all: bool,
    /// Keep names as the profiler prints them
    ///
    /// By default, names are demangled, and argument lists and symbol versions are removed.
    #[arg(long)]
    no_tidy: bool,
    /// Show the addresses of frames without a symbol: `[MODULE <ADDRESS>]`
    #[arg(long, hide_short_help = true)]
    addrs: bool,
    /// Append source lines to frames
    ///
    /// For perf.data, they come from the debug information of the recorded files. For perf script text, run perf script
    /// with `-F +srcline`.
    #[arg(long, alias = "lines", hide_short_help = true)]
    srcline: bool,
    /// Start stacks at FUNCTION, without its callers; may be repeated
    #[arg(long, value_name = "FUNCTION", hide_short_help = true)]
    skip_after: Vec<OsString>,
    /// Add the sample label KEY as a root frame `KEY=VALUE`; may be repeated
    #[arg(long, value_name = "KEY", hide_short_help = true)]
    label: Vec<OsString>,
    /// Add the spans that contain each sample, such as requests, as root frames
    ///
    /// FILE has one JSON object per line, with the `name`, `tid`, `start` and `end` of a span, like `{"name": "GET /",
    /// "tid": 12, "start": 1000, "end": 2000}`. Times are in nanoseconds, on the clock of the samples. A span contains
    /// the samples of its thread from `start` up to, but not including, `end`. A span nested in another span of its
    /// thread is below it: `GET /;query;STACK`. If spans overlap without being nested, the one that began last wins.
    /// Samples outside of all spans have the root `[no span]`. If no sample belongs to a thread with a span, that is an
    /// error. `-` is standard input.
    ///
    /// FILE may also be an OpenTelemetry trace (OTLP), in protobuf or JSON, as written by an exporter or the collector.
    /// Spans need the attribute `thread.id`, the thread ID that gettid(2) returns (in Python,
    /// `threading.get_native_id()`); others are left out. Their times are those of CLOCK_REALTIME, so record with
    /// `fg-record --script --clock realtime` or `perf record -k CLOCK_REALTIME`. For perf.data, `perf record -k
    /// CLOCK_MONOTONIC` also works: the file has the offset between the clocks.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    span: Option<PathBuf>,
}

/// Options for naming the addresses in a perf.data file.
#[derive(clap::Args)]
#[command(next_help_heading = "perf.data")]
struct PerfDataArgs {
    /// Search for the recorded files under DIR only
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    symfs: Option<PathBuf>,
    /// Name kernel functions from FILE, a copy of /proc/kallsyms
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    kallsyms: Option<PathBuf>,
    /// Leave out inlined calls, which is faster for large programs
    #[arg(long, hide_short_help = true)]
    no_inline: bool,
    /// Accepted for compatibility with stackcollapse-perf.pl: perf script prints inlined functions itself.
    #[arg(long, hide = true)]
    inline: bool,
    /// Accepted together with --inline.
    #[arg(long, hide = true)]
    context: bool,
}

impl Args {
    fn options(&self) -> Options {
        let Self { input, samples, frames, perf_data } = self;
        Options {
            format: input.format,
            threads: input.nthreads.and_then(NonZeroUsize::new),
            verbatim: frames.no_tidy,
            pid: frames.pid,
            tid: frames.tid,
            kernel: frames.kernel || frames.all,
            jit: frames.jit || frames.all,
            addrs: frames.addrs,
            srcline: frames.srcline,
            labels: to_bytes(&frames.label),
            skip_after: to_bytes(&frames.skip_after),
            weight: input.weight,
            symfs: perf_data.symfs.clone(),
            kallsyms: perf_data.kallsyms.clone(),
            no_inline: perf_data.no_inline,
            ..samples.options()
        }
    }
}

/// Returns the file of spans, which must not be the input too.
fn span_source(path: &Path, inputs: &[Source]) -> Result<Source, Error> {
    let source = Source::from_operands(&[path.to_owned()])?.remove(0);
    if matches!(source, Source::Stdin) && inputs.iter().any(|input| matches!(input, Source::Stdin)) {
        return Err(Error::Usage("--span - is standard input, and so is the input; name the input's file".to_owned()));
    }
    Ok(source)
}

fn to_bytes(names: &[OsString]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.as_encoded_bytes().to_vec()).collect()
}

/// Damage that cannot be noticed, and prints that cannot be told apart.
const LIMITS: &str = "An input that is cut at the end of a line, or between two records, is read without a warning if its \
                      format has neither an end mark nor a count: folded stacks, perf script (but for a blank line that \
                      is missing after the last stack) and perf report, ftrace, strace, \
                      bpftrace, tools of bcc, DTrace, SystemTap, Instruments, simpleperf, profiles of GHC, R, V8 \
                      (--prof), massif and Erlang, traces of phpspy and rbspy, contention profiles, goroutines and \
                      thread dumps without a total, exceptions of Java, trace events whose list has no end, traces of \
                      Perfetto, binary files of Austin, several messages of OpenTelemetry, and tables (CSV).\n\nIf \
                      the last line of a folded file has no line end, its number may have been cut: this is not \
                      noticed, and cat(1) joins the line with the first line of the next file.\n\nThe values of all \
                      prints of a bpftrace map are added up: a program that prints a map several times must clear it \
                      after each print. The text does not say what a value is: averages (avg()), minima and maxima are added \
                      up like counts and sums. JSON (-f json) says it of averages, which are left out.";

/// The man page's section about perf.data files.
const PERF_DATA: &[(&str, &str)] = &[
    (
        "Names",
        "The programs and libraries of a recording are opened at their recorded paths, or else taken from perf's \
         cache of files by build ID. With --symfs, they are opened under DIR only. A file whose build ID differs from \
         the recorded one is not used. Separate debug information is found by build ID or debug link. The names of \
         code that was generated at run time come from jitdump files, and from /tmp/perf-PID.map if that file belongs \
         to root or to you.",
    ),
    (
        "Pipes",
        "The output of `perf record -o -` is read as a stream. A perf.data file that is compressed or comes through a \
         pipe must be held in memory, because its index is at its end; one of more than 2 GiB is an error. To avoid \
         that, decompress the file, and name it or redirect standard input from it: `< perf.data`.",
    ),
];

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-collapse perf.data | fg-svg > flame.svg", "Draw what perf record has written:"),
        (
            "perf script | fg-collapse --all | fg-svg -c java > flame.svg",
            "Draw the output of perf script, and mark kernel and JIT code:",
        ),
        ("fg-collapse -o week.folded monday.folded.gz tuesday.folded.gz", "Add up profiles:"),
        (
            "fg-collapse --in-order perf.data | fg-svg --flamechart > chart.svg",
            "Draw a flame chart, from left to right in time:",
        ),
        (
            "fg-collapse --time +10,+20 --comm nginx perf.data | fg-csv",
            "Tabulate ten seconds of the threads named nginx:",
        ),
        ("fg-collapse --pid --srcline perf.data > app.folded", "Distinguish processes and source lines:"),
        (
            "fg-collapse --symfs /mnt/target --no-inline perf.data > app.folded",
            "Read a recording of another machine, whose files are under /mnt/target:",
        ),
    ];

    const ENVIRONMENT: Entries = &[("PERF_BUILDID_DIR", "perf's cache of files by build ID [default: ~/.debug].")];

    const SEE_ALSO: &'static [&'static str] = &["perf-record(1)", "perf-script(1)"];

    fn completions() -> Vec<(&'static str, Vec<&'static str>)> {
        vec![("format", collapse::formats().map(|format| format.name).collect())]
    }

    fn sections() -> Vec<Section> {
        let formats = collapse::formats().map(|format| (format.name, describe(format))).collect();
        vec![
            Section { heading: "FORMATS", text: "The option --format takes these names:", entries: formats },
            Section { heading: "PERF.DATA FILES", text: "", entries: PERF_DATA.to_vec() },
            Section { heading: "LIMITS", text: LIMITS, entries: Vec::new() },
        ]
    }

    fn reads_stdin(&self) -> bool {
        !self.input.list_formats
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let mut options = self.options();
        let Session { sources, output, diagnostics } = session;
        if let Some(path) = &self.frames.span {
            options.spans = Some(Arc::new(Spans::load(&span_source(path, sources)?, diagnostics)?));
        }
        if self.input.list_formats {
            output.write_with(|out| out.write_all(list_formats().as_bytes()))?;
        } else if self.input.sorted {
            collapse::merge_declared_sorted(sources, &options, diagnostics, output)?;
        } else if self.input.in_order {
            collapse::collapse_in_order(sources, &options, diagnostics, output)?;
        } else if !collapse::merge_if_sorted(sources, &options, diagnostics, output)? {
            let profile = collapse::collapse(sources, &options, diagnostics)?;
            output.write_with(|mut out| folded::write(&profile, &mut out))?;
        }
        Ok(0)
    }
}

/// Describes a format in text that lives as long as the program, like all text of the help.
fn describe(format: &Format) -> &'static str {
    format!("{}; {}", format.description, format.trial()).leak()
}

/// Returns a table with the name and the description of each format, and what its reader was tried with.
fn list_formats() -> String {
    let width = collapse::formats().map(|format| format.name.len()).max().unwrap_or_default();
    collapse::formats()
        .map(|format| format!("{:width$}  {}; {}\n", format.name, format.description, format.trial()))
        .collect()
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
