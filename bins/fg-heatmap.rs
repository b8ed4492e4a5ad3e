//! `fg-heatmap`: samples with their times in, a map of the seconds out: `perf script | fg-heatmap > map.html`.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use fgkit::cli::{self, Choosing, Entries, Session, Tool};
use fgkit::collapse;
use fgkit::profile::SampleWeight;
use fgkit::svg::colour::{Palette, Scheme};
use fgkit::svg::{self, MinWidth};
use fgkit::{Error, heatmap};

/// Draw when samples were taken, and the flame graph of any part of the time
///
/// One self-contained HTML page: a column a second, in it the time within the second from the bottom to the top, the
/// darker the more samples. Drag over a part of it, and the flame graph of just these samples stands beneath; with Shift,
/// a second part, and the graph shows the difference. The address in the browser keeps the selection, and the page
/// names the command of fg-collapse that makes the same cut.
#[derive(clap::Parser)]
#[command(name = "fg-heatmap")]
struct Args {
    /// The heading
    #[arg(long, value_name = "TEXT", default_value = "Heatmap")]
    title: String,
    /// Into how many rows a second is divided
    #[arg(long, value_name = "NUMBER", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=250))]
    rows: u32,
    /// What a sample weighs: samples or, where one is printed, period
    #[arg(long, value_name = "WHAT", default_value = "samples", hide_possible_values = true)]
    weight: SampleWeight,
    #[command(flatten)]
    choosing: Choosing,
    /// The flame graph's palette: hot, java, rust, … as in fg-svg
    #[arg(long, value_name = "PALETTE", default_value = "hot", hide_possible_values = true, hide_short_help = true)]
    colors: Palette,
    /// Parse in N threads [default: one a core]
    #[arg(short, long, value_name = "N", hide_short_help = true)]
    nthreads: Option<NonZeroUsize>,
}

impl Args {
    fn page_options(&self, input: collapse::Options) -> heatmap::Options {
        let graph = svg::Options {
            title: Some("All samples".to_owned()),
            // The same as in the viewer.
            min_width: MinWidth::Pixels(0.5),
            scheme: Scheme { palette: self.colors, ..Scheme::default() },
            count_name: match self.weight {
                SampleWeight::Samples => "samples",
                SampleWeight::Period | SampleWeight::Microseconds => "of the period",
            }
            .to_owned(),
            ..svg::Options::default()
        };
        heatmap::Options { title: self.title.clone(), rows: self.rows, graph, input }
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("perf script | fg-heatmap > map.html", "When what perf recorded took place."),
        ("fg-record --script -d 60 -p PID | fg-heatmap > map.html", "A minute of a running process."),
    ];

    const SEE_ALSO: &'static [&'static str] = &["perf-script(1)"];

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let Session { sources, output, diagnostics } = session;
        let options = collapse::Options { weight: self.weight, threads: self.nthreads, ..self.choosing.options() };
        let timeline = collapse::collapse_in_time(sources, &options, diagnostics)?;
        if timeline.samples.is_empty() && diagnostics.has_failed() {
            return Err(Error::AlreadyReported);
        }
        if output.is_terminal() {
            diagnostics.warn("writing the page to the terminal; to save it: fg-heatmap > map.html");
        }
        let name = output.name().to_owned();
        heatmap::write(&timeline, &self.page_options(options), &name, output)?;
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
