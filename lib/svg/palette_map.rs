//! Colours that are kept from picture to picture, in a file that flamegraph.pl and inferno read, too.
//!
//! A line is `NAME->rgb(RED,GREEN,BLUE)`, sorted by name.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use bstr::ByteSlice as _;

use super::colour::Colour;
use crate::Error;
use crate::diagnostics::{Diagnostics, plural};

/// The colours of some names.
#[derive(Clone, Debug, Default)]
pub struct PaletteMap(BTreeMap<Vec<u8>, Colour>);

impl PaletteMap {
    /// Reads the file's text. The second value is how many lines are not of its form.
    pub fn parse(text: &[u8]) -> (Self, u64) {
        let mut map = Self::default();
        let mut strange = 0;
        for line in text.lines().filter(|line| !line.is_empty()) {
            match parse_line(line) {
                Some((name, colour)) => map.set(name, colour),
                None => strange += 1,
            }
        }
        (map, strange)
    }

    /// Reads a file, if it is there.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn load(path: &Path, diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let name = path.display().to_string();
        let text = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            text => text.map_err(|error| Error::read(&name, error))?,
        };
        let (map, strange) = Self::parse(&text);
        if strange > 0 {
            diagnostics.warn(&format!("{name}: {} without NAME->rgb(R,G,B) left out", plural(strange, "line")));
        }
        Ok(map)
    }

    /// The colour of a name.
    pub fn get(&self, name: &[u8]) -> Option<Colour> {
        self.0.get(name).copied()
    }

    /// Gives a name its colour.
    pub fn set(&mut self, name: &[u8], colour: Colour) {
        self.0.insert(name.to_vec(), colour);
    }

    /// The file's text.
    pub fn to_text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (name, Colour(red, green, blue)) in &self.0 {
            text.extend_from_slice(name);
            text.extend_from_slice(format!("->rgb({red},{green},{blue})\n").as_bytes());
        }
        text
    }
}

/// The last arrow counts: names have arrows, too.
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
    fn what_is_written_reads_back() {
        let text = b"->rgb(1,2,3)\nA->B->rgb(205,0,7)\nmain->rgb(255,255,255)\n";
        let (map, strange) = PaletteMap::parse(text);
        assert_eq!((map.get(b"A->B"), strange), (Some(Colour(205, 0, 7)), 0));
        assert_eq!(map.to_text(), text);
        assert_eq!(PaletteMap::parse(b"main\nmain->rgb(256,0,0)\nmain->rgb(1,2)\n").1, 3);
    }
}
