//! The colours of frames that no palette changes: markers and separators.

use super::rgb::Colour;
use crate::markers;

/// The frames for which [`markers::is_marker`] is true, with their fixed colours. The last one is `[unknown]`.
pub const MARKER_COLOURS: [(&[u8], Colour); 6] = [
    (markers::OFF_CPU, Colour(96, 125, 160)),
    (markers::RUNNABLE, Colour(222, 184, 65)),
    (markers::UNSAMPLED, Colour(214, 214, 222)),
    (markers::LOST, Colour(130, 30, 60)),
    (markers::TRUNCATED, Colour(150, 130, 185)),
    (markers::UNKNOWN, Colour(189, 189, 189)),
];

/// Number of leading entries of [`MARKER_COLOURS`] that are states of threads, or `[lost]`.
pub const OFF_CPU_COUNT: usize = 4;

/// Returns the colour of a marker, or of the separators `--` and `-`, which no palette changes.
pub(super) fn fixed_colour(name: &[u8]) -> Option<Colour> {
    match name {
        b"--" => Some(Colour(160, 160, 160)),
        b"-" => Some(Colour(200, 200, 200)),
        _ => MARKER_COLOURS.iter().find(|(marker, _)| *marker == name).map(|(_, colour)| *colour),
    }
}

#[cfg(test)]
mod tests {
    use super::{MARKER_COLOURS, OFF_CPU_COUNT};
    use crate::markers;

    #[test]
    fn every_marker_has_a_colour() {
        assert!(MARKER_COLOURS.iter().all(|(name, _)| markers::is_marker(name)));
        assert_eq!(MARKER_COLOURS[OFF_CPU_COUNT - 1].0, markers::LOST);
        assert_eq!(MARKER_COLOURS.last().map(|(name, _)| *name), Some(markers::UNKNOWN));
    }
}
