//! The options of fg-svg, in groups.

use std::path::PathBuf;

use fgkit::cli;
use fgkit::profile::Weight;
use fgkit::svg::colour::Palette;
use fgkit::svg::rgb::Colour;
use fgkit::svg::{self, Background, Delta, MinWidth};

/// Draw folded stacks as an interactive flame graph
///
/// Writes a self-contained SVG file. Image viewers show it as a static picture. In a browser, click a frame to zoom,
/// press Ctrl-F to search, or press `?` to list all keys: see VIEWER in fg-svg(1). The file contains the whole profile,
/// so that zooming in reveals frames that were too narrow to draw.
///
/// In a differential profile from fg-diff(1), the width of a frame is its weight after. Frames that grew are red, or
/// orange in a browser; frames that shrank are blue.
#[derive(clap::Parser)]
#[command(name = "fg-svg", infer_long_args = true)]
pub struct Args {
    #[command(flatten)]
    pub text: TextArgs,
    #[command(flatten)]
    pub size: SizeArgs,
    #[command(flatten)]
    pub colours: ColourArgs,
    #[command(flatten)]
    pub layout: LayoutArgs,
    #[command(flatten)]
    pub file: FileArgs,
}

/// Options for the text in the picture.
#[derive(clap::Args)]
#[command(next_help_heading = "Text")]
pub struct TextArgs {
    /// Set the title [default: the profiled program]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub title: Option<String>,

    /// Add a line below the title
    #[arg(long, value_name = "TEXT", hide_short_help = true, allow_hyphen_values = true)]
    pub subtitle: Option<String>,

    /// Set the unit of weights [default: us if stacks end in thread states, else samples]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub countname: Option<String>,

    /// Set the label of a frame's name
    #[arg(long, value_name = "TEXT", default_value = "Function:", hide_short_help = true, allow_hyphen_values = true)]
    pub nametype: String,

    /// Multiply all displayed weights by NUMBER
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = parse_positive)]
    #[arg(allow_negative_numbers = true, hide_short_help = true)]
    pub factor: f64,

    /// Add an XML comment to the file
    #[arg(long, value_name = "TEXT", hide_short_help = true, allow_hyphen_values = true)]
    pub notes: Option<String>,
}

/// Options for the size of the picture, its frames and its font.
#[derive(clap::Args)]
#[command(next_help_heading = "Size and font")]
pub struct SizeArgs {
    /// Set the width in pixels [default: fit the window]
    ///
    /// Viewers that run no scripts use 1200 pixels by default.
    #[arg(long, value_name = "PIXELS", value_parser = cli::integer_in(100..=1_000_000_u32))]
    #[arg(allow_negative_numbers = true)]
    pub width: Option<u32>,

    /// Set the height of frames in pixels [default: 18, or to fit the font]
    #[arg(long, value_name = "PIXELS", value_parser = cli::integer_in(2..=1_000_u32))]
    #[arg(allow_negative_numbers = true, hide_short_help = true)]
    pub height: Option<u32>,

    /// Omit frames narrower than WIDTH [default: 0.1]
    ///
    /// WIDTH is in pixels, or a percentage of the full width, like 0.5%. In a browser, frames narrower than half a pixel
    /// are never drawn.
    #[arg(long, value_name = "WIDTH", default_value = "0.1", hide_default_value = true, allow_hyphen_values = true)]
    pub minwidth: MinWidth,

    /// Scale the graph so that its full width is WEIGHT, not the total
    ///
    /// A WEIGHT below the total is ignored.
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    #[arg(allow_negative_numbers = true, hide_short_help = true)]
    pub total: Option<Weight>,

    /// Set the font family, as in CSS [default: the system's]
    #[arg(long, value_name = "FAMILY", default_value = svg::DEFAULT_FONT, hide_default_value = true, hide_short_help = true)]
    pub fonttype: String,

    /// Set the font size in pixels
    #[arg(long, value_name = "PIXELS", default_value = "12", value_parser = parse_positive)]
    #[arg(allow_negative_numbers = true, hide_short_help = true)]
    pub fontsize: f64,

    /// Set the average width of a character, relative to the font size
    #[arg(long, value_name = "RATIO", default_value = "0.59", value_parser = parse_positive)]
    #[arg(allow_negative_numbers = true, hide_short_help = true)]
    pub fontwidth: f64,

    /// Show the beginning of names that do not fit, not the end
    #[arg(long, hide_short_help = true)]
    pub truncate_text_right: bool,
}

/// Options for colours.
#[derive(clap::Args)]
#[command(next_help_heading = "Colours")]
pub struct ColourArgs {
    /// Set the palette, like java or hot [default: module]
    ///
    /// `module` gives each crate, package or library a hue, to tell apart the program's own code, libraries, the kernel
    /// and frames without a symbol.
    ///
    /// `hot`, `mem`, `io`, `red`, `green`, `blue`, `yellow`, `purple`, `aqua` and `orange` are ranges of colours, from
    /// which a frame's name selects one.
    ///
    /// `java`, `js`, `perl`, `python` and `rust` distinguish kinds of frames by name, such as the program's own code,
    /// libraries and the kernel.
    ///
    /// `states` distinguishes functions, blocked time and runnable time. `wakeup` and `chain` are for the stacks of
    /// wakers.
    ///
    /// With --hash, --random or --seed, the default is `hot`.
    #[arg(short, long, alias = "color", value_name = "PALETTE", hide_possible_values = true)]
    pub colors: Option<Palette>,

    /// Give similar colours to names with the same beginning
    #[arg(long, hide_short_help = true)]
    pub hash: bool,

    /// Use other colours; same as --seed 1
    #[arg(long, hide_short_help = true)]
    pub random: bool,

    /// Use other colours, different for each NUMBER
    #[arg(long, value_name = "NUMBER", value_parser = cli::integer_in::<u64>(..), hide_short_help = true)]
    pub seed: Option<u64>,

    /// Keep the colours of names in the file ./palette.map
    ///
    /// Names that are in the file have their colours from there. Other names are added to it with their colours, so
    /// that later graphs use the same ones.
    #[arg(long, hide_short_help = true)]
    pub cp: bool,

    /// Colour frames by their share of the total, from white to red
    #[arg(long, conflicts_with = "colors", hide_short_help = true)]
    pub colordiffusion: bool,

    /// Colour a differential graph by `total` or `self` weights
    ///
    /// `total` compares the weights of all stacks through a frame; `self`, only those of the stacks that end in it.
    #[arg(long, value_name = "KIND", default_value = "total", hide_possible_values = true, hide_short_help = true)]
    pub delta: Delta,

    /// Mark significant differences, as judged in FILE, a table of fg-csv(1)
    ///
    /// FILE is the output of `fg-csv` for the same differential profile or, better, for its runs. In a browser,
    /// functions whose difference may be noise are grey in the graph and the table. Without this option, all
    /// differences are coloured.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub chances: Option<PathBuf>,

    /// Swap red and blue in a differential graph
    #[arg(long, hide_short_help = true)]
    pub negate: bool,

    /// Set the background: yellow, blue, green, grey or #rrggbb
    #[arg(long, value_name = "COLOUR", hide_short_help = true)]
    pub bgcolors: Option<Background>,

    /// Set the colour of search matches, like #e600e6
    #[arg(long, value_name = "COLOUR", hide_short_help = true)]
    pub search_color: Option<Colour>,

    /// Set the colour of the text around the graph
    #[arg(long, value_name = "COLOUR", hide_short_help = true)]
    pub uicolor: Option<Colour>,

    /// Set the colour of frame outlines
    #[arg(long, value_name = "COLOUR", hide_short_help = true)]
    pub stroke_color: Option<Colour>,
}

/// Options for the selection and order of stacks.
#[derive(clap::Args)]
#[command(next_help_heading = "Layout")]
pub struct LayoutArgs {
    /// Reverse stacks: merge them from the leaf, so that the children of a function are its callers
    #[arg(long)]
    pub reverse: bool,

    /// Draw the static picture as an icicle, root at the top
    ///
    /// In a browser, a graph starts with the root at the top; the key `u` moves it to the bottom.
    #[arg(short, long)]
    pub inverted: bool,

    /// Draw only stacks with FRAME, starting at it; may be repeated
    ///
    /// With several FRAMEs, a stack starts at the one nearest to its root.
    #[arg(long, value_name = "FRAME", hide_short_help = true)]
    pub base: Vec<String>,

    /// Draw only the stacks of a differential profile that have vanished
    ///
    /// Their weight after is 0, so they are drawn as wide as their weight before. If all stacks have vanished, they are
    /// drawn even without this option.
    #[arg(long, hide_short_help = true)]
    pub elided: bool,

    /// Draw a flame chart: stacks in input order from left to right
    ///
    /// The input must be in the order of time, as `fg-collapse --in-order` writes it. In a browser, each first frame,
    /// such as a thread, has a lane below a time axis. The axis leaves out time without samples; fg-heatmap(1) shows
    /// it.
    #[arg(long, conflicts_with_all = ["reverse", "base", "elided"], hide_short_help = true)]
    pub flamechart: bool,

    /// Draw sorted input in one pass and with little memory
    ///
    /// The input must be in the order in which fg-collapse(1) writes it; other input is an error.
    #[arg(long, alias = "no-sort", hide_short_help = true)]
    #[arg(conflicts_with_all = ["reverse", "base", "elided", "flamechart"])]
    pub sorted: bool,
}

/// Options for the contents of the file.
#[derive(clap::Args)]
#[command(next_help_heading = "File contents")]
pub struct FileArgs {
    /// Draw a static picture, without scripts
    ///
    /// The file then contains only the frames that are drawn, not the whole profile.
    #[arg(long, alias = "no-javascript", hide_short_help = true)]
    pub plain: bool,

    /// Write an HTML page instead of an SVG image
    ///
    /// The page has the same viewer. Use it where SVG files are shown as images only, as among the artefacts of a CI system.
    #[arg(long, conflicts_with = "plain")]
    pub html: bool,

    /// Read titles, links and attributes of frames from FILE
    ///
    /// See NAME ATTRIBUTES in fg-svg(1).
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub nameattr: Option<PathBuf>,

    /// Accepted for compatibility with inferno: the output is always deterministic.
    #[arg(long, hide = true, alias = "pretty-xml")]
    pub deterministic: bool,

    /// Accepted for compatibility with flamegraph.pl: the output is always UTF-8.
    #[arg(long, value_name = "NAME", hide = true)]
    pub encoding: Option<String>,
}

fn parse_positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|number| number.is_normal() && *number > 0.0).ok_or_else(|| "expected a number above 0".to_owned())
}

fn parse_weight(text: &str) -> Result<Weight, String> {
    Weight::parse(text.as_bytes()).ok_or_else(|| "expected a number that is not negative, like 250 or 0.5".to_owned())
}
