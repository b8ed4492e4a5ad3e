//! `fg-svg`: folded stacks in, a flame graph out: `fg-record -- ./app | fg-collapse | fg-svg > flame.svg`.

use std::process::ExitCode;

use fgkit::cli::{self, Common, Entries, Reading, Session, Tool};
use fgkit::profile::{FrameId, Profile, Weight};
use fgkit::svg::colour::{Palette, Scheme};
use fgkit::svg::{self, MinWidth, Options};
use fgkit::{Error, folded};

/// Draw folded stacks as a flame graph: one self-contained, interactive SVG
///
/// The picture works without script, as an image; in a browser, click a frame to zoom, press Ctrl-F to search. The file
/// carries the whole profile: zooming in reveals frames that were too narrow to draw. Stacks with two weights, as
/// fg-diff writes them, make a differential picture: as wide as after, red what grew, blue what shrank.
#[derive(clap::Parser)]
#[command(name = "fg-svg", infer_long_args = true)]
struct Args {
    #[command(flatten)]
    reading: Reading,

    /// The heading [default: Flame Graph]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// A line beneath the heading
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    subtitle: Option<String>,

    /// The picture's width in pixels [default: the window's]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    width: Option<u32>,

    /// A frame's height in pixels
    #[arg(long, value_name = "PIXELS", default_value = "16", value_parser = clap::value_parser!(u32).range(2..=1_000), hide_short_help = true)]
    height: u32,

    /// The narrowest frame drawn, pixels or % [default: 0.1]
    #[arg(long, value_name = "PIXELS", default_value = "0.1", hide_default_value = true)]
    minwidth: MinWidth,

    /// The font, as CSS names it
    #[arg(long, value_name = "FAMILY", default_value = "Verdana, DejaVu Sans, sans-serif", hide_short_help = true)]
    fonttype: String,

    /// The font's size in pixels
    #[arg(long, value_name = "PIXELS", default_value = "12", value_parser = positive, hide_short_help = true)]
    fontsize: f64,

    /// The average width of a character, by the font's size
    #[arg(long, value_name = "SHARE", default_value = "0.59", value_parser = positive, hide_short_help = true)]
    fontwidth: f64,

    /// What is counted
    #[arg(long, value_name = "TEXT", default_value = "samples")]
    countname: String,

    /// What a frame is
    #[arg(long, value_name = "TEXT", default_value = "Function:", hide_short_help = true)]
    nametype: String,

    /// The palette: hot (default), io, java, rust, …
    ///
    /// Also --color. hot (the default), mem, io, red, green, blue, yellow, purple, aqua and orange are one range of
    /// colours; java, js, perl, python and rust tell kinds of frames apart by their names; wakeup and chain are for
    /// wakeup stacks.
    #[arg(
        short,
        long,
        alias = "color",
        value_name = "PALETTE",
        default_value = "hot",
        hide_default_value = true,
        hide_possible_values = true
    )]
    colors: Palette,

    /// Names that begin alike look alike
    #[arg(long, hide_short_help = true)]
    hash: bool,

    /// Turn stacks round: callers above what they call
    #[arg(long)]
    reverse: bool,

    /// The root on top: an icicle graph
    #[arg(short, long)]
    inverted: bool,

    /// In a differential picture, red what shrank
    #[arg(long, hide_short_help = true)]
    negate: bool,

    /// Multiply the counts that are shown
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = positive, hide_short_help = true)]
    factor: f64,

    /// What the whole width stands for, if that is more than the total
    #[arg(long, value_name = "WEIGHT", value_parser = weight, hide_short_help = true)]
    total: Option<Weight>,

    /// A comment in the file
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    notes: Option<String>,

    #[command(flatten)]
    common: Common,
}

fn positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|number| number.is_normal() && *number > 0.0).ok_or_else(|| "expected a number above 0".to_owned())
}

fn weight(text: &str) -> Result<Weight, String> {
    Weight::parse(text.as_bytes()).ok_or_else(|| "expected digits, or digits.digits".to_owned())
}

impl Args {
    fn options(self) -> Options {
        Options {
            title: self.title,
            subtitle: self.subtitle,
            width: self.width,
            frame_height: self.height,
            min_width: self.minwidth,
            font_family: self.fonttype,
            font_size: self.fontsize,
            font_width: self.fontwidth,
            count_name: self.countname,
            name_type: self.nametype,
            scheme: Scheme { palette: self.colors, by_beginning: self.hash },
            inverted: self.inverted,
            negate: self.negate,
            factor: self.factor,
            total: self.total.unwrap_or_default(),
            notes: self.notes,
        }
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-record -- ./app | fg-collapse | fg-svg > flame.svg", "Draw a program."),
        ("fg-diff -n before.folded after.folded | fg-svg > diff.svg", "What grew, in red, and what shrank, in blue."),
        ("fg-svg --reverse --inverted app.folded > callers.svg", "Who calls what is hot: the leaves are the root."),
    ];

    fn common(&self) -> &Common {
        &self.common
    }

    fn reads_stdin(&self) -> bool {
        self.reading.reads_stdin()
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let Session { output, diagnostics } = session;
        diagnostics.set_strict(self.reading.strict);
        let mut profile = folded::gather(&self.reading.sources()?, diagnostics)?;
        if profile.is_empty() && diagnostics.failed() {
            return Err(Error::Said);
        }
        if profile.is_empty() {
            return Err(Error::Refused("no stacks in the input, so no picture".to_owned()));
        }
        if self.reverse {
            profile = reversed(&profile)?;
        }
        if self.total.is_some_and(|total| total < profile.total().after) {
            diagnostics.warn("--total is less than the stacks weigh, and ignored");
        }
        if output.is_terminal() {
            diagnostics.warn("the picture goes to the terminal; to keep it: fg-svg > flame.svg");
        }
        let name = output.name().to_owned();
        svg::write(&profile, &self.options(), &name, output)?;
        Ok(0)
    }
}

fn reversed(profile: &Profile) -> Result<Profile, Error> {
    let mut reversed = Profile::new(profile.is_differential());
    let ids: Vec<FrameId> = profile.frames.iter().map(|(_, name)| reversed.frames.intern(name)).collect();
    let mut stack = Vec::new();
    profile.for_each(|frames, weights| {
        stack.clear();
        stack.extend(frames.iter().rev().map(|frame| ids[frame.index()]));
        reversed.add(&stack, weights)
    })?;
    Ok(reversed)
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
