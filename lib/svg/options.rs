//! What a picture is to look like.

use std::str::FromStr;

use super::colour::Scheme;
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
    /// What the whole width stands for, if that is more than the total.
    pub total: Weight,
    /// A comment in the file.
    pub notes: Option<String>,
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
            factor: 1.0,
            total: Weight::ZERO,
            notes: None,
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

    /// The heading.
    pub fn heading(&self) -> &str {
        let usual = if self.inverted { "Icicle Graph" } else { "Flame Graph" };
        self.title.as_deref().unwrap_or(usual)
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
