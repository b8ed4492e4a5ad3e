//! Options of a flame graph.

use std::str::FromStr;

use super::colour::{Palette, Scheme};
use super::name_attributes::NameAttributes;
use super::rgb::Colour;
use super::significance::Significances;
use crate::profile::Weight;

/// The margin to the left and right of the frames, in pixels.
pub const SIDE_MARGIN: f64 = 10.0;

/// The default font family: that of the system.
pub const DEFAULT_FONT: &str =
    "-apple-system, 'Segoe UI', Roboto, Ubuntu, Cantarell, 'Noto Sans', 'DejaVu Sans Condensed', sans-serif";

/// The unit of time. Browsers show it scaled, as in `1.2 s`.
pub(super) const MICROSECONDS: &str = "us";

/// The width of the image in pixels if no script adapts it to the window.
const DEFAULT_WIDTH: u32 = 1200;

/// Options that select and reverse the drawn stacks, and the order of the input.
#[derive(Clone, Debug, Default)]
pub struct StackOptions {
    /// The order of the input.
    pub order: StackOrder,
    /// True to reverse each stack: leaves become roots.
    pub reverse: bool,
    /// If not empty, only stacks with one of these frames are drawn, from the first such frame on.
    pub bases: Vec<String>,
}

/// The order of the stacks in the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackOrder {
    /// The stacks come in any order.
    #[default]
    Any,
    /// The toolkit's order; a stack out of order is an error. Any source, also a pipe, can be drawn while it is read.
    Sorted,
    /// Time order, which the drawing keeps: a flame chart.
    Time,
}

/// Options for the appearance of a flame graph.
#[derive(Clone, Debug)]
pub struct Options {
    /// The heading; by default "Flame Graph", or "Icicle Graph" if inverted.
    pub title: Option<String>,
    /// A line below the heading.
    pub subtitle: Option<String>,
    /// The width in pixels; by default that of the window, or 1200 without script.
    pub width: Option<u32>,
    /// The height of a frame in pixels.
    pub frame_height: u32,
    /// The width below which a frame is not drawn.
    pub min_width: MinWidth,
    /// The font family, as in CSS.
    pub font_family: String,
    /// The font size in pixels.
    pub font_size: f64,
    /// The average width of a character, as a multiple of the font size.
    pub font_width: f64,
    /// The unit of the weights, as in `1,234 samples`. By default, microseconds if stacks end in thread states.
    pub count_name: Option<String>,
    /// The label before the name of the selected frame, such as `Function:`.
    pub name_type: String,
    /// The colours of frames.
    pub scheme: Scheme,
    /// True to draw the root at the top.
    pub inverted: bool,
    /// True if the stacks are in the order of time.
    pub is_chart: bool,
    /// True to swap the colours of a differential graph: what shrank is red.
    pub negate: bool,
    /// True to draw only the stacks of a differential profile that weigh nothing after. Their weights are swapped, so
    /// that they are as wide as before.
    pub vanished: bool,
    /// Shown counts are multiplied by this.
    pub factor: f64,
    /// The weight that the full width represents, if that is more than the total.
    pub total: Weight,
    /// Titles, links and attributes by frame name.
    pub name_attributes: NameAttributes,
    /// Which differences are significant, if that was judged.
    pub significances: Significances,
    /// Text of a comment in the file.
    pub notes: Option<String>,
    /// True for a plain image: no script, and only the drawn frames.
    pub plain: bool,
    /// The difference that determines the colour in a differential graph.
    pub delta: Delta,
    /// True to colour frames by their share of the total, not by name.
    pub diffusion: bool,
    /// True to keep the beginning of a label that does not fit.
    pub truncate_right: bool,
    /// The background; by default that of the palette.
    pub background: Option<Background>,
    /// The colour of search matches.
    pub search_color: Option<Colour>,
    /// The colour of the text around the frames.
    pub ui_color: Option<Colour>,
    /// The colour of the outlines of frames.
    pub stroke_color: Option<Colour>,
}

/// The difference that determines the colour of a frame in a differential graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Delta {
    /// The difference of the inclusive weights.
    #[default]
    Total,
    /// The difference of the self weights.
    #[value(name = "self")]
    Own,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            title: None,
            subtitle: None,
            width: None,
            frame_height: 18,
            min_width: MinWidth::Pixels(0.1),
            font_family: DEFAULT_FONT.to_owned(),
            font_size: 12.0,
            font_width: 0.59,
            count_name: None,
            name_type: "Function:".to_owned(),
            scheme: Scheme::default(),
            inverted: false,
            is_chart: false,
            negate: false,
            vanished: false,
            factor: 1.0,
            total: Weight::ZERO,
            name_attributes: NameAttributes::default(),
            significances: Significances::default(),
            notes: None,
            plain: false,
            delta: Delta::Total,
            diffusion: false,
            truncate_right: false,
            background: None,
            search_color: None,
            ui_color: None,
            stroke_color: None,
        }
    }
}

impl Options {
    /// Returns the width in pixels that the image has if no script adapts it.
    pub fn nominal_width(&self) -> f64 {
        f64::from(self.width.unwrap_or(DEFAULT_WIDTH).max(100))
    }

    /// Returns the width of the root frame in pixels.
    pub fn frames_width(&self) -> f64 {
        self.nominal_width() - 2.0 * SIDE_MARGIN
    }

    /// Returns the share of the full width below which a frame is not drawn.
    pub fn min_share(&self) -> f64 {
        match self.min_width {
            MinWidth::Pixels(pixels) => pixels / self.frames_width(),
            MinWidth::Percent(percent) => percent / 100.0,
        }
    }

    /// Returns the colours at the top and at the bottom of the background.
    pub fn background(&self, differential: bool) -> (String, String) {
        let default = if differential { Background::Grey } else { Background::from_palette(self.scheme.palette) };
        self.background.unwrap_or(default).stops()
    }

    /// True if a frame whose drawn weight grew is blue.
    pub fn swaps_colours(&self) -> bool {
        // The weights of vanished stacks are swapped.
        self.negate != self.vanished
    }

    /// Returns the title, or the default heading.
    pub fn heading(&self) -> &str {
        let default = if self.inverted { "Icicle Graph" } else { "Flame Graph" };
        self.title.as_deref().unwrap_or(default)
    }
}

/// The background of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// A gradient to yellow.
    Yellow,
    /// A gradient to blue.
    Blue,
    /// A gradient to green.
    Green,
    /// A gradient of greys.
    Grey,
    /// The same colour everywhere.
    Flat(Colour),
}

impl Background {
    /// Returns the default background of a palette.
    pub fn from_palette(palette: Palette) -> Self {
        match palette {
            Palette::Module => Self::Flat(Colour(0xf4, 0xf5, 0xf7)),
            Palette::Mem => Self::Green,
            Palette::Io | Palette::Wakeup | Palette::Chain => Self::Blue,
            Palette::Red | Palette::Green | Palette::Blue | Palette::States => Self::Grey,
            Palette::Aqua | Palette::Yellow | Palette::Purple | Palette::Orange => Self::Grey,
            _ => Self::Yellow,
        }
    }

    /// Returns the colours at the top and at the bottom.
    pub fn stops(self) -> (String, String) {
        let (top, bottom) = match self {
            Self::Yellow => ("#eeeeee", "#eeeeb0"),
            Self::Blue => ("#eeeeee", "#e0e0ff"),
            Self::Green => ("#eef2ee", "#e0ffe0"),
            Self::Grey => ("#f8f8f8", "#e8e8e8"),
            Self::Flat(colour) => return (colour.to_string(), colour.to_string()),
        };
        (top.to_owned(), bottom.to_owned())
    }
}

impl FromStr for Background {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "yellow" => Ok(Self::Yellow),
            "blue" => Ok(Self::Blue),
            "green" => Ok(Self::Green),
            "grey" | "gray" => Ok(Self::Grey),
            _ => text.parse().map(Self::Flat).map_err(|_| "expected yellow, blue, green, grey or #rrggbb".to_owned()),
        }
    }
}

/// The width below which a frame is not drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MinWidth {
    /// A width in pixels.
    Pixels(f64),
    /// A percentage of the full width.
    Percent(f64),
}

impl FromStr for MinWidth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, is_percent) = text.strip_suffix('%').map_or((text, false), |number| (number, true));
        let is_decimal = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        match number.parse() {
            Ok(number) if is_decimal && is_percent => Ok(Self::Percent(number)),
            Ok(number) if is_decimal => Ok(Self::Pixels(number)),
            _ => Err("expected pixels, such as 0.5, or a percentage, such as 0.1%".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MinWidth;

    #[test]
    fn parses_a_minimum_width_in_pixels_or_percent() {
        assert_eq!("0.1".parse(), Ok(MinWidth::Pixels(0.1)));
        assert_eq!("2%".parse(), Ok(MinWidth::Percent(2.0)));
        for malformed in ["", "%", "-1", "1e3", "x", "inf", "nan", "1.2.3"] {
            assert!(malformed.parse::<MinWidth>().is_err(), "{malformed}");
        }
    }
}
