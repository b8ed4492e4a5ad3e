//! `fg-heatmap`: timed samples in, a heat map of seconds out: `perf script | fg-heatmap > map.html`.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use fgkit::cli::{self, Entries, SampleArgs, Session, Tool};
use fgkit::collapse;
use fgkit::profile::SampleWeight;
use fgkit::svg::colour::{Palette, Scheme};
use fgkit::svg::{self, MinWidth};
use fgkit::{Error, heatmap};

/// Draw samples over time, with a flame graph of any time range
///
/// Reads profiler output whose samples have times, such as perf.data and perf script text, and writes a self-contained
/// HTML page. Above the graph, each thread has a lane over time; choose "CPUs" to see one lane per CPU, or
/// "Seconds" to see a map with one column per second. Darker cells have more samples. A search shows when matching
/// functions ran.
///
/// In a browser, drag over the lanes to see the flame graph of the selected samples. Hold Shift and drag over another
/// range to see the difference between the two. The key + zooms to the selection, with finer cells, and - shows everything
/// again; Ctrl and the wheel zoom around the pointer. "Flame chart" draws the selected samples of each thread in
/// the order of time. The page's address contains the selection, and the page shows the fg-collapse command that selects the
/// same samples.
#[derive(clap::Parser)]
#[command(name = "fg-heatmap")]
struct Args {
    #[command(flatten)]
    drawing: DrawingArgs,
    #[command(flatten)]
    samples: SampleArgs,
    #[command(flatten)]
    input: ReadArgs,
}

/// Options for the look of the page.
#[derive(clap::Args)]
#[command(next_help_heading = "Drawing")]
struct DrawingArgs {
    /// Set the title [default: the profiled program]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: Option<String>,
    /// Divide each second of the map into N rows
    #[arg(long, value_name = "N", default_value = "50", value_parser = cli::integer_in(1..=250_u32))]
    rows: u32,
    /// Set the palette of the flame graph: see --colors in fg-svg(1)
    #[arg(long, value_name = "PALETTE", default_value = "module", hide_possible_values = true, hide_short_help = true)]
    colors: Palette,
}

/// Options for reading the input.
#[derive(clap::Args)]
#[command(next_help_heading = "Input")]
struct ReadArgs {
    /// Weight each sample by its `period`, or by 1 (`samples`)
    ///
    /// A sample without a period counts as 1.
    #[arg(long, value_name = "BY", default_value = "samples", hide_possible_values = true)]
    weight: SampleWeight,
    /// Parse with N threads [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = cli::integer_in(1_usize..), hide_short_help = true)]
    nthreads: Option<usize>,
}

impl Args {
    /// Returns the options of the page. Some inputs name the unit of their weights.
    fn page_options(&self, input: collapse::Options, unit: Option<&str>) -> heatmap::Options {
        let count_name = unit.unwrap_or(match self.input.weight {
            SampleWeight::Samples => "samples",
            SampleWeight::Microseconds => "us",
            SampleWeight::Period => "events",
        });
        let graph = svg::Options {
            title: self.drawing.title.clone(),
            // The same as in the viewer.
            min_width: MinWidth::Pixels(0.5),
            scheme: Scheme { palette: self.drawing.colors, ..Scheme::default() },
            count_name: Some(count_name.to_owned()),
            ..svg::Options::default()
        };
        heatmap::Options {
            title: self.drawing.title.clone().unwrap_or_else(|| "Samples over time".to_owned()),
            rows: self.drawing.rows,
            graph,
            input,
        }
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("perf script | fg-heatmap > map.html", "Show when perf record took its samples:"),
        (
            "fg-record --script -p 1234 -d 60 | fg-heatmap > map.html",
            "Record a running process for a minute, and show it:",
        ),
        (
            "fg-heatmap --rows 100 --title Startup perf.data > map.html",
            "Set a title, and divide each second into hundredths:",
        ),
        (
            "fg-heatmap --time +0,+30 --no-idle perf.data > map.html",
            "Show the first 30 seconds, without the idle thread:",
        ),
        ("fg-heatmap --weight period -o map.html perf.data", "Weight samples by their period:"),
    ];

    const ENVIRONMENT: Entries = &[("PERF_BUILDID_DIR", "perf's cache of files by build ID [default: ~/.debug].")];

    const SEE_ALSO: &'static [&'static str] = &["perf-record(1)", "perf-script(1)"];

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let Session { sources, output, diagnostics } = session;
        let options = collapse::Options {
            weight: self.input.weight,
            threads: self.input.nthreads.and_then(NonZeroUsize::new),
            ..self.samples.options()
        };
        let timeline = collapse::collapse_in_time(sources, &options, diagnostics)?;
        if timeline.samples.is_empty() && diagnostics.has_failed() {
            return Err(Error::AlreadyReported);
        }
        if output.is_terminal() {
            diagnostics.warn("writing the page to the terminal; to save it: fg-heatmap > map.html");
        }
        let name = output.name().to_owned();
        let page_options = self.page_options(options, timeline.unit.as_deref());
        heatmap::write(&timeline, &page_options, &name, output)?;
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
