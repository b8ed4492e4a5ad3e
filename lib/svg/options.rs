//! What a picture is to look like.

use std::str::FromStr;

use super::colour::{Colour, Palette, Scheme};
use super::name_attributes::NameAttributes;
use crate::profile::Weight;

/// The blank stripe left and right of the frames.
pub const SIDE: f64 = 10.0;

/// How the picture looks.
#[derive(Clone, Debug)]
pub struct Options {
    /// The heading; by default it says what kind of picture it is.
    pub title: Option<String>,
    /// A line beneath the heading.
    pub subtitle: Option<String>,
    /// The width in pixels; by default the window's, and 1200 where no script runs.
    pub width: Option<u32>,
    /// The height of a frame in pixels.
    pub frame_height: u32,
    /// The narrowest frame that is drawn.
    pub min_width: MinWidth,
    /// The font's family, as in CSS.
    pub font_family: String,
    /// The font's size in pixels.
    pub font_size: f64,
    /// The average width of a character by the font's size.
    pub font_width: f64,
    /// What is counted.
    pub count_name: String,
    /// What a frame is.
    pub name_type: String,
    /// How frames are coloured.
    pub scheme: Scheme,
    /// The root on top.
    pub inverted: bool,
    /// In a differential picture, red what shrank.
    pub negate: bool,
    /// By what the counts that are shown are multiplied.
    pub factor: f64,
    /// The stacks are those that vanished, with their weights swapped: see [`reshape::vanished`](super::reshape::vanished).
    pub vanished: bool,
    /// What the whole width stands for, if that is more than the total.
    pub total: Weight,
    /// What frames of some names have besides.
    pub name_attributes: NameAttributes,
    /// A comment in the file.
    pub notes: Option<String>,
    /// A still picture: no script, and of the profile only what is drawn.
    pub plain: bool,
    /// Which difference gives the colour in a differential picture.
    pub delta: Delta,
    /// Colours by the share of the whole, not by the name.
    pub diffusion: bool,
    /// Labels keep their beginning.
    pub keep_left: bool,
    /// The background; by default by the palette.
    pub background: Option<Background>,
    /// The colour of what is found.
    pub search_color: Option<Colour>,
    /// The colour of the words around the frames.
    pub ui_color: Option<Colour>,
    /// The colour of the frames' outlines.
    pub stroke_color: Option<Colour>,
}

/// Which difference gives a frame its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Delta {
    /// That of all stacks through the frame.
    #[default]
    Total,
    /// That of the stacks that end in the frame.
    #[value(name = "self")]
    Own,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            title: None,
            subtitle: None,
            width: None,
            frame_height: 16,
            min_width: MinWidth::Pixels(0.1),
            font_family: "Verdana, DejaVu Sans, sans-serif".to_owned(),
            font_size: 12.0,
            font_width: 0.59,
            count_name: "samples".to_owned(),
            name_type: "Function:".to_owned(),
            scheme: Scheme::default(),
            inverted: false,
            negate: false,
            vanished: false,
            factor: 1.0,
            total: Weight::ZERO,
            name_attributes: NameAttributes::default(),
            notes: None,
            plain: false,
            delta: Delta::Total,
            diffusion: false,
            keep_left: false,
            background: None,
            search_color: None,
            ui_color: None,
            stroke_color: None,
        }
    }
}

impl Options {
    /// The width in pixels where no script adapts it.
    pub fn nominal_width(&self) -> f64 {
        f64::from(self.width.unwrap_or(1200).max(100))
    }

    /// The smallest share of the whole width that is drawn.
    pub fn narrowest_share(&self) -> f64 {
        match self.min_width {
            MinWidth::Pixels(pixels) => pixels / (self.nominal_width() - 2.0 * SIDE),
            MinWidth::Percent(percent) => percent / 100.0,
        }
    }

    /// The colours of the background's top and bottom.
    pub fn background(&self, differential: bool) -> (String, String) {
        let usual = if differential { Background::Grey } else { Background::of(self.scheme.palette) };
        self.background.unwrap_or(usual).stops()
    }

    /// Whether what weighs more after than before is blue.
    pub fn swaps_colours(&self) -> bool {
        // Of what vanished the weight before is drawn as that after.
        self.negate != self.vanished
    }

    /// The heading.
    pub fn heading(&self) -> &str {
        let usual = if self.inverted { "Icicle Graph" } else { "Flame Graph" };
        self.title.as_deref().unwrap_or(usual)
    }
}

/// The background of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Towards yellow.
    Yellow,
    /// Towards blue.
    Blue,
    /// Towards green.
    Green,
    /// Shades of grey.
    Grey,
    /// One colour.
    Flat(Colour),
}

impl Background {
    /// The usual one of a palette.
    pub fn of(palette: Palette) -> Self {
        match palette {
            Palette::Mem => Self::Green,
            Palette::Io | Palette::Wakeup | Palette::Chain => Self::Blue,
            Palette::Red | Palette::Green | Palette::Blue | Palette::States => Self::Grey,
            Palette::Aqua | Palette::Yellow | Palette::Purple | Palette::Orange => Self::Grey,
            _ => Self::Yellow,
        }
    }

    /// The colours at its top and at its bottom.
    pub fn stops(self) -> (String, String) {
        let (upper, lower) = match self {
            Self::Yellow => ("#eeeeee", "#eeeeb0"),
            Self::Blue => ("#eeeeee", "#e0e0ff"),
            Self::Green => ("#eef2ee", "#e0ffe0"),
            Self::Grey => ("#f8f8f8", "#e8e8e8"),
            Self::Flat(colour) => return (colour.to_string(), colour.to_string()),
        };
        (upper.to_owned(), lower.to_owned())
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

/// The narrowest frame that is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MinWidth {
    /// In pixels.
    Pixels(f64),
    /// In percent of the whole.
    Percent(f64),
}

impl FromStr for MinWidth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, percent) = text.strip_suffix('%').map_or((text, false), |number| (number, true));
        let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        match number.parse() {
            Ok(number) if plain && percent => Ok(Self::Percent(number)),
            Ok(number) if plain => Ok(Self::Pixels(number)),
            _ => Err("expected pixels, as 0.5, or a share, as 0.1%".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MinWidth;

    #[test]
    fn the_narrowest_is_pixels_or_a_share() {
        assert_eq!("0.1".parse(), Ok(MinWidth::Pixels(0.1)));
        assert_eq!("2%".parse(), Ok(MinWidth::Percent(2.0)));
        for bad in ["", "%", "-1", "1e3", "x", "inf", "nan", "1.2.3"] {
            assert!(bad.parse::<MinWidth>().is_err(), "{bad}");
        }
    }
}
