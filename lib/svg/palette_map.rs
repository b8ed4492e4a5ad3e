//! Palette maps: colours by frame name, saved so that later images use the same colours.
//!
//! A line is `NAME->rgb(RED,GREEN,BLUE)`, as in flamegraph.pl and inferno. Lines are sorted by name.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use bstr::ByteSlice as _;

use super::rgb::Colour;
use crate::Error;
use crate::diagnostics::{Diagnostics, plural};

/// Colours by frame name.
#[derive(Clone, Debug, Default)]
pub struct PaletteMap(BTreeMap<Vec<u8>, Colour>);

impl PaletteMap {
    /// Parses the text of a palette map. Also returns the number of malformed lines, which are skipped.
    pub fn parse(text: &[u8]) -> (Self, u64) {
        let mut map = Self::default();
        let mut malformed = 0;
        for line in text.lines().filter(|line| !line.is_empty()) {
            match parse_line(line) {
                Some((name, colour)) => map.insert(name, colour),
                None => malformed += 1,
            }
        }
        (map, malformed)
    }

    /// Reads a file. A file that does not exist gives an empty map.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn load(path: &Path, diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let name = path.display().to_string();
        let text = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            text => text.map_err(|error| Error::read(&name, error))?,
        };
        let (map, malformed) = Self::parse(&text);
        if malformed > 0 {
            diagnostics.warn(&format!("{name}: {} skipped: expected NAME->rgb(R,G,B)", plural(malformed, "line")));
        }
        Ok(map)
    }

    /// Returns the colour of a name.
    pub fn get(&self, name: &[u8]) -> Option<Colour> {
        self.0.get(name).copied()
    }

    /// Sets the colour of a name.
    pub fn insert(&mut self, name: &[u8], colour: Colour) {
        self.0.insert(name.to_vec(), colour);
    }

    /// Returns the text of the file.
    pub fn to_text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (name, Colour(red, green, blue)) in &self.0 {
            text.extend_from_slice(name);
            text.extend_from_slice(format!("->rgb({red},{green},{blue})\n").as_bytes());
        }
        text
    }
}

/// Splits a line at its last arrow, because names can contain arrows.
fn parse_line(line: &[u8]) -> Option<(&[u8], Colour)> {
    let arrow = line.rfind(b"->rgb(")?;
    let numbers = line[arrow + 6..].strip_suffix(b")")?.to_str().ok()?;
    let mut channels = numbers.split(',').map(|channel| channel.trim().parse().ok());
    let colour = Colour(channels.next()??, channels.next()??, channels.next()??);
    channels.next().is_none().then_some((&line[..arrow], colour))
}

#[cfg(test)]
mod tests {
    use super::{Colour, PaletteMap};

    #[test]
    fn parses_what_it_writes() {
        let text = b"->rgb(1,2,3)\nA->B->rgb(205,0,7)\nmain->rgb(255,255,255)\n";
        let (map, malformed) = PaletteMap::parse(text);
        assert_eq!((map.get(b"A->B"), malformed), (Some(Colour(205, 0, 7)), 0));
        assert_eq!(map.to_text(), text);
    }

    #[test]
    fn counts_malformed_lines() {
        assert_eq!(PaletteMap::parse(b"main\nmain->rgb(256,0,0)\nmain->rgb(1,2)\n").1, 3);
    }
}
