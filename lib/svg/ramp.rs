//! Ramps: ranges of related colours, from which a name chooses one.

use super::rgb::Colour;

/// A range of related colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ramp {
    /// Red to yellow.
    Hot,
    /// Green to blue.
    Mem,
    /// Shades of greyish blue.
    Io,
    /// Shades of red.
    Red,
    /// Shades of green.
    Green,
    /// Shades of blue.
    Blue,
    /// Shades of yellow.
    Yellow,
    /// Shades of purple.
    Purple,
    /// Shades of aqua.
    Aqua,
    /// Shades of orange.
    Orange,
}

impl Ramp {
    /// Returns the colour at a position, which is three numbers of at least 0 and less than 1.
    pub fn colour(self, [a, b, c]: [f64; 3]) -> Colour {
        match self {
            Self::Hot => Colour(channel(205, 50, c), channel(0, 230, a), channel(0, 55, b)),
            Self::Mem => Colour(0, channel(190, 50, b), channel(0, 210, a)),
            Self::Io => Colour(channel(80, 60, a), channel(80, 60, a), channel(190, 55, b)),
            Self::Red => Colour(channel(200, 55, a), channel(50, 80, a), channel(50, 80, a)),
            Self::Green => Colour(channel(50, 60, a), channel(200, 55, a), channel(50, 60, a)),
            Self::Blue => Colour(channel(80, 60, a), channel(80, 60, a), channel(205, 50, a)),
            Self::Yellow => Colour(channel(175, 55, a), channel(175, 55, a), channel(50, 20, a)),
            Self::Purple => Colour(channel(190, 65, a), channel(80, 60, a), channel(190, 65, a)),
            Self::Aqua => Colour(channel(50, 60, a), channel(165, 55, a), channel(165, 55, a)),
            Self::Orange => Colour(channel(190, 65, a), channel(90, 65, a), 0),
        }
    }
}

/// Returns the channel at a position of a ramp whose values start at `base`.
fn channel(base: u8, span: u8, position: f64) -> u8 {
    base + (f64::from(span) * position) as u8
}
