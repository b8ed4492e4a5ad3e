//! RGB colours.

use std::fmt;
use std::str::FromStr;

/// An RGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// True if black text has more contrast on this colour than white text, by the formulas of WCAG 2.
    pub fn is_light(self) -> bool {
        self.luminance() > 0.179
    }

    /// Returns the colour of text on this colour.
    pub(super) fn text_colour(self) -> Self {
        if self.is_light() { Self(0, 0, 0) } else { Self(255, 255, 255) }
    }

    /// Returns the relative luminance of WCAG 2, from 0 to 1.
    pub(super) fn luminance(self) -> f64 {
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// Appends the colour as `#rrggbb`.
    pub fn write_to(self, out: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        out.push(b'#');
        for channel in [self.0, self.1, self.2] {
            out.push(DIGITS[usize::from(channel >> 4)]);
            out.push(DIGITS[usize::from(channel & 15)]);
        }
    }
}

/// Returns the linear intensity of an sRGB channel, from 0 to 1.
fn linear(channel: u8) -> f64 {
    let channel = f64::from(channel) / 255.0;
    if channel <= 0.04045 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

impl FromStr for Colour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits: Option<Vec<u8>> = text.strip_prefix('#').and_then(|digits| {
            digits.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect()
        });
        match digits.as_deref() {
            Some([a, b, c, d, e, f]) => Ok(Self(a << 4 | b, c << 4 | d, e << 4 | f)),
            Some([a, b, c]) => Ok(Self(a * 17, b * 17, c * 17)),
            _ => Err("expected a colour as #rrggbb or #rgb, like #e600e6".to_owned()),
        }
    }
}
