//! `fg-svg`: folded stacks in, a flame graph out: `fg-record -- ./app | fg-collapse | fg-svg > flame.svg`.

use std::path::PathBuf;
use std::process::ExitCode;

use fgkit::cli::{self, Entries, Session, Tool};
use fgkit::output::Output;
use fgkit::profile::Weight;
use fgkit::svg::colour::{Colour, Palette, Scheme};
use fgkit::svg::name_attributes::NameAttributes;
use fgkit::svg::palette_map::PaletteMap;
use fgkit::svg::{self, Background, Delta, MinWidth, Options, StackOptions, StackOrder};
use fgkit::{Error, folded};

/// Draw folded stacks as a flame graph: one self-contained, interactive SVG
///
/// The picture works without script, as an image; in a browser, click a frame to zoom, press Ctrl-F to search. The file
/// carries the whole profile: zooming in reveals frames that were too narrow to draw. Stacks with two weights, as
/// fg-diff writes them, make a differential picture: as wide as after, red what grew, blue what shrank.
#[derive(clap::Parser)]
#[command(name = "fg-svg", infer_long_args = true)]
struct Args {
    /// The heading [default: Flame Graph]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// A line beneath the heading
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    subtitle: Option<String>,

    /// The picture's width in pixels [default: the window's]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(100..=1_000_000), allow_negative_numbers = true)]
    width: Option<u32>,

    /// A frame's height in pixels [default: 16, or what the font needs]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(2..=1_000), allow_negative_numbers = true, hide_short_help = true)]
    height: Option<u32>,

    /// The narrowest frame drawn, pixels or % [default: 0.1]
    #[arg(long, value_name = "PIXELS", default_value = "0.1", hide_default_value = true, allow_hyphen_values = true)]
    minwidth: MinWidth,

    /// The font, as CSS names it
    #[arg(long, value_name = "FAMILY", default_value = "Verdana, DejaVu Sans, sans-serif", hide_short_help = true)]
    fonttype: String,

    /// The font's size in pixels
    #[arg(long, value_name = "PIXELS", default_value = "12", value_parser = parse_positive, allow_negative_numbers = true, hide_short_help = true)]
    fontsize: f64,

    /// The average width of a character, by the font's size
    #[arg(long, value_name = "SHARE", default_value = "0.59", value_parser = parse_positive, allow_negative_numbers = true, hide_short_help = true)]
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
    /// colours; java, js, perl, python and rust tell kinds of frames apart by their names; states tells functions, which are on
    /// the CPU, from the time off it and the time runnable; wakeup and chain are for wakeup stacks.
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
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = parse_positive, allow_negative_numbers = true, hide_short_help = true)]
    factor: f64,

    /// What the whole width stands for, if that is more than the total
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight, allow_negative_numbers = true, hide_short_help = true)]
    total: Option<Weight>,

    /// A comment in the file
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    notes: Option<String>,

    /// In a differential picture, colour by the stacks through a frame (total) or by those that end in it (self)
    #[arg(long, value_name = "KIND", default_value = "total", hide_possible_values = true, hide_short_help = true)]
    delta: Delta,

    /// Of a differential profile, draw what vanished: the stacks that weigh nothing after
    #[arg(long, hide_short_help = true)]
    elided: bool,

    /// Only stacks with this frame, and only what stands on it (may be given several times)
    #[arg(long, value_name = "FRAME", hide_short_help = true)]
    base: Vec<String>,

    /// From left to right in the order of the input, which is that of time (fg-collapse --in-order)
    #[arg(long, conflicts_with_all = ["reverse", "base", "elided"], hide_short_help = true)]
    flamechart: bool,

    /// The input is in the order of fg-collapse: draw it in one pass and little memory, from a pipe, too
    #[arg(long, alias = "no-sort", conflicts_with_all = ["reverse", "base", "elided", "flamechart"], hide_short_help = true)]
    sorted: bool,

    /// A still picture: no script, and of the profile only what is drawn
    #[arg(long, alias = "no-javascript", hide_short_help = true)]
    plain: bool,

    /// Other colours than usual, the same each time: those of --seed 1
    #[arg(long, hide_short_help = true)]
    random: bool,

    /// Other colours than usual, for each number its own
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    seed: Option<u64>,

    /// Titles, links and attributes for frames: lines of NAME and, after tabs, key=value
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nameattr: Option<PathBuf>,

    /// Take colours from ./palette.map, and keep those of new names there
    #[arg(long, hide_short_help = true)]
    cp: bool,

    /// Colour by the share of the whole, white to red
    #[arg(long, conflicts_with = "colors", hide_short_help = true)]
    colordiffusion: bool,

    /// The background: yellow, blue, green, grey or #rrggbb
    #[arg(long, value_name = "COLOUR", hide_short_help = true)]
    bgcolors: Option<Background>,

    /// The colour of what is found
    #[arg(long, value_name = "COLOUR", hide_short_help = true)]
    search_color: Option<Colour>,

    /// The colour of the words around the frames
    #[arg(long, value_name = "COLOUR", hide_short_help = true)]
    uicolor: Option<Colour>,

    /// The colour of the frames' outlines
    #[arg(long, value_name = "COLOUR", hide_short_help = true)]
    stroke_color: Option<Colour>,

    /// Labels that do not fit keep their beginning
    #[arg(long, hide_short_help = true)]
    truncate_text_right: bool,

    /// Accepted: the output is always so
    #[arg(long, hide = true, alias = "pretty-xml")]
    deterministic: bool,

    /// Accepted: the output is always UTF-8
    #[arg(long, value_name = "NAME", hide = true)]
    encoding: Option<String>,
}

fn parse_positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|number| number.is_normal() && *number > 0.0).ok_or_else(|| "expected a number above 0".to_owned())
}

fn parse_weight(text: &str) -> Result<Weight, String> {
    Weight::parse(text.as_bytes()).ok_or_else(|| "expected digits, or digits.digits".to_owned())
}

/// The file in which `--cp` saves colours.
const PALETTE_MAP: &str = "palette.map";

impl Args {
    fn stack_options(&self) -> StackOptions {
        let order = match (self.flamechart, self.sorted) {
            (true, _) => StackOrder::Time,
            (false, true) => StackOrder::Sorted,
            (false, false) => StackOrder::Any,
        };
        StackOptions { order, reverse: self.reverse, bases: self.base.clone() }
    }

    fn options(&self, palette_map: PaletteMap, name_attributes: NameAttributes) -> Options {
        let chart_title = self.flamechart.then(|| "Flame Chart".to_owned());
        Options {
            title: self.title.clone().or(chart_title),
            subtitle: self.subtitle.clone(),
            width: self.width,
            // A third more than the text needs.
            frame_height: self.height.unwrap_or((self.fontsize * 4.0 / 3.0).ceil().clamp(16.0, 1000.0) as u32),
            min_width: self.minwidth,
            font_family: self.fonttype.clone(),
            font_size: self.fontsize,
            font_width: self.fontwidth,
            count_name: self.countname.clone(),
            name_type: self.nametype.clone(),
            scheme: Scheme {
                palette: self.colors,
                by_prefix: self.hash,
                seed: self.seed.unwrap_or(self.random.into()),
                palette_map,
            },
            inverted: self.inverted,
            negate: self.negate,
            vanished: self.elided,
            factor: self.factor,
            total: self.total.unwrap_or_default(),
            name_attributes,
            notes: self.notes.clone(),
            plain: self.plain,
            delta: self.delta,
            diffusion: self.colordiffusion,
            truncate_right: self.truncate_text_right,
            background: self.bgcolors,
            search_color: self.search_color,
            ui_color: self.uicolor,
            stroke_color: self.stroke_color,
        }
    }
}

/// What the reader of a picture can do.
const VIEWER: Entries = &[
    ("Enter, click", "Zoom to a frame. What was too narrow to draw is drawn where it gets wide enough."),
    ("Escape", "Go back: close the search, undo the zoom, then whatever else was changed."),
    ("Arrows, Tab", "Choose a frame: what it calls, its caller, its neighbours."),
    ("/, Ctrl-F, F3", "Search by a regular expression, ignoring case; all frames count, drawn or not."),
    (
        "n, N",
        "Next and previous match, zooming where it is too narrow to be seen; in the search field Enter and Shift-Enter.",
    ),
    ("c", "Only the chosen function and its callers, all together."),
    ("e", "Only the chosen function and what it calls, all together."),
    ("b", "The function between its callers and what it calls."),
    ("o, h", "Only stacks through the chosen function, or only those without it; shares are those of the rest."),
    ("r", "Merge recursion, or not."),
    ("s", "Sort by weight, or by name."),
    ("i", "Turn upside down: flame or icicle."),
    ("y, Y", "Copy the name, or the whole stack."),
    ("?", "List all this; the Menu button does, too."),
    ("Back, Forward", "Each step has a link of its own, which leads to the same place in a picture made anew."),
];

/// The lines of a file for `--nameattr`.
const NAME_ATTRIBUTES: Entries = &[
    ("title", "The title in the place of name, count and share."),
    (
        "href, target",
        "Makes the frame a link (http, https, file, mailto or relative), followed by a click; Ctrl-click zooms.",
    ),
    ("id, class", "Attributes of the frame's element."),
    ("g_extra, a_extra", "More attributes, as key=\"value\", of a frame that is no link, or is one."),
];

/// Options that others have.
const ACCEPTED: Entries = &[
    ("--color, --no-sort, --no-javascript", "Other names of --colors, --sorted, --plain."),
    (
        "--deterministic, --pretty-xml, --encoding",
        "Without effect: colours depend on the name alone, the output is UTF-8.",
    ),
    ("Abbreviations", "Long options can be cut short where no other begins alike, as --inv."),
];

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-record -- ./app | fg-collapse | fg-svg > flame.svg", "What a program does."),
        ("fg-diff -n before.folded after.folded | fg-svg > diff.svg", "What changed: red grew, blue shrank."),
        (
            "fg-svg --plain app.folded | rsvg-convert > flame.png",
            "A picture of pixels (resvg and Chromium do it, too).",
        ),
    ];

    fn sections() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
        let all = [("THE PICTURE", VIEWER), ("NAME ATTRIBUTES", NAME_ATTRIBUTES), ("OPTIONS OF OTHERS", ACCEPTED)];
        all.map(|(heading, entries)| (heading, entries.to_vec())).into()
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let Session { sources, output, diagnostics } = session;
        let palette_map =
            if self.cp { PaletteMap::load(PALETTE_MAP.as_ref(), diagnostics)? } else { PaletteMap::default() };
        let name_attributes = self.nameattr.as_ref().map(|path| NameAttributes::load(path, diagnostics)).transpose()?;
        let mut options = self.options(palette_map, name_attributes.unwrap_or_default());
        let skipped = diagnostics.skipped_lines();
        let drawing = svg::draw(sources, &self.stack_options(), &options, diagnostics)?;
        match drawing.stack_count {
            0 if diagnostics.has_failed() => return Err(Error::AlreadyReported),
            0 if diagnostics.skipped_lines() > skipped => return Err(Error::Invalid(folded::NO_STACK.to_owned())),
            0 => return Err(Error::Invalid("no stacks to draw: the input is empty".to_owned())),
            _ => {}
        }
        if self.total.is_some_and(|total| total < drawing.layout.total.after) {
            diagnostics.warn("--total ignored: it is less than the total weight of the stacks");
        }
        if output.is_terminal() {
            diagnostics.warn("writing the SVG to the terminal; to save it: fg-svg > flame.svg");
        }
        let name = output.name().to_owned();
        svg::write(&drawing, &options, &name, output)?;
        if self.cp {
            options.scheme.save_colours(&drawing.layout.names);
            Output::write_file(PALETTE_MAP.as_ref(), &options.scheme.palette_map.to_text())?;
        }
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
