//! `fg-svg`: folded stacks in, a flame graph out: `fg-record -- ./app | fg-svg > flame.svg`.

use std::process::ExitCode;

use fgkit::cli::{self, Entries, Section, Session, Tool};
use fgkit::output::Output;
use fgkit::svg::colour::{Palette, Scheme};
use fgkit::svg::name_attributes::NameAttributes;
use fgkit::svg::palette_map::PaletteMap;
use fgkit::svg::significance::Significances;
use fgkit::svg::{self, Options, StackOptions, StackOrder};
use fgkit::{Error, folded};

#[path = "fg-svg/manual.rs"]
mod manual;
#[path = "fg-svg/options.rs"]
mod options;

use options::{Args, ColourArgs, LayoutArgs};

impl ColourArgs {
    /// Returns the palette. Options that choose colours of a range need one.
    fn palette(&self) -> Palette {
        let is_ranged = self.hash || self.random || self.seed.is_some();
        self.colors.unwrap_or(if is_ranged { Palette::Hot } else { Palette::Module })
    }
}

/// The file in which `--cp` keeps colours.
const PALETTE_MAP: &str = "palette.map";

impl LayoutArgs {
    fn stack_options(&self) -> StackOptions {
        let order = match (self.flamechart, self.sorted) {
            (true, _) => StackOrder::Time,
            (false, true) => StackOrder::Sorted,
            (false, false) => StackOrder::Any,
        };
        StackOptions { order, reverse: self.reverse, bases: self.base.clone() }
    }

    /// Returns the message if there is no stack to draw.
    fn reason_for_no_stacks(&self) -> String {
        let reason = match (&self.base[..], self.elided) {
            ([], false) => "the input is empty".to_owned(),
            ([], true) => {
                "with --elided, only stacks with the weight 0 after are drawn, and the input has none".to_owned()
            }
            (bases, _) => format!("no stack has a frame of --base {}", bases.join(" or ")),
        };
        format!("no stacks to draw: {reason}")
    }
}

impl Args {
    fn options(&self, palette_map: PaletteMap, name_attributes: NameAttributes) -> Options {
        let Self { text, size, colours, layout, file } = self;
        let default_title = layout.flamechart.then(|| "Flame Chart".to_owned());
        Options {
            title: text.title.clone().or(default_title),
            subtitle: text.subtitle.clone(),
            width: size.width,
            // Half more than the text needs.
            frame_height: size.height.unwrap_or((size.fontsize * 1.5).ceil().clamp(16.0, 1000.0) as u32),
            min_width: size.minwidth,
            font_family: size.fonttype.clone(),
            font_size: size.fontsize,
            font_width: size.fontwidth,
            count_name: text.countname.clone(),
            name_type: text.nametype.clone(),
            scheme: Scheme {
                palette: colours.palette(),
                by_prefix: colours.hash,
                seed: colours.seed.unwrap_or(colours.random.into()),
                palette_map,
            },
            inverted: layout.inverted,
            is_chart: layout.flamechart,
            negate: colours.negate,
            vanished: layout.elided,
            factor: text.factor,
            total: size.total.unwrap_or_default(),
            name_attributes,
            significances: Significances::default(),
            notes: text.notes.clone(),
            plain: file.plain,
            delta: colours.delta,
            diffusion: colours.colordiffusion,
            truncate_right: size.truncate_text_right,
            background: colours.bgcolors,
            search_color: colours.search_color,
            ui_color: colours.uicolor,
            stroke_color: colours.stroke_color,
        }
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = manual::EXAMPLES;

    fn completions() -> Vec<(&'static str, Vec<&'static str>)> {
        vec![("bgcolors", vec!["yellow", "blue", "green", "grey"])]
    }

    fn sections() -> Vec<Section> {
        manual::sections()
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let Session { sources, output, diagnostics } = session;
        let palette_map =
            if self.colours.cp { PaletteMap::load(PALETTE_MAP.as_ref(), diagnostics)? } else { PaletteMap::default() };
        let name_attributes =
            self.file.nameattr.as_ref().map(|path| NameAttributes::load(path, diagnostics)).transpose()?;
        let mut options = self.options(palette_map, name_attributes.unwrap_or_default());
        if let Some(path) = &self.colours.chances {
            options.significances = Significances::load(path)?;
        }
        let skipped = diagnostics.skipped_lines();
        let drawing = svg::draw(sources, &self.layout.stack_options(), &mut options, diagnostics)?;
        if options.vanished && !self.layout.elided {
            diagnostics.warn("the total weight after is 0: stacks are drawn as wide as before, as with --elided");
        }
        match drawing.stack_count {
            0 if diagnostics.has_failed() => return Err(Error::AlreadyReported),
            0 if diagnostics.skipped_lines() > skipped => return Err(Error::Invalid(folded::NO_STACK.to_owned())),
            0 => return Err(Error::Invalid(self.layout.reason_for_no_stacks())),
            _ => {}
        }
        if self.size.total.is_some_and(|total| total < drawing.layout.total.after) {
            diagnostics.warn("--total ignored: it is less than the total weight of the stacks");
        }
        if options.significances.is_given() && !drawing.differential {
            diagnostics.warn("--chances ignored: the input is not a differential profile; write one with fg-diff");
        }
        if output.is_terminal() {
            diagnostics.warn("writing the SVG to the terminal; to save it: fg-svg > flame.svg");
        }
        let name = output.name().to_owned();
        let write = if self.file.html { svg::write_page } else { svg::write };
        write(&drawing, &options, &name, output)?;
        if self.colours.cp {
            options.scheme.save_colours(&drawing.layout.names, &drawing.modules);
            Output::write_file(PALETTE_MAP.as_ref(), &options.scheme.palette_map.to_text())?;
        }
        Ok(0)
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
