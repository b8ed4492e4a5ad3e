//! The whole profile, packed into text, for the viewer to draw from.
//!
//! Two packed texts (deflate, then base64). The *stacks*, in order, each as numbers: how many of the last frames of the
//! stack before go, how many come, which names those have, the weight (in a differential profile first the weight
//! before). The *names*: first four bytes for each, its colour and its traits, then the names, a line each.
//! Numbers are LEB128. A weight is twice its whole units, or, where it has a fraction, twice its millionths and one.

use std::io::{self, BufWriter, Write as _};

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::colour::{self, Scheme};
use super::name_attributes::NameAttributes;
use super::text::{escape, visible};
use crate::profile::{Frames, Weight, Weights};

/// Level 1 packs to within a tenth of the best size at several times the speed.
const LEVEL: Compression = Compression::new(1);

/// The trait of a frame that is a state and not a function.
const STATE: u8 = 1;
/// The trait of a frame whose colour asks for white text.
const DARK: u8 = 2;

/// A packed profile.
#[derive(Debug, Default)]
pub struct Payload {
    /// The stacks.
    pub stacks: Vec<u8>,
    /// How many frames they have, a shared one counted once.
    pub frames_count: usize,
    /// The names.
    pub names: Vec<u8>,
    /// How many names there are.
    pub names_count: usize,
    /// For the names that have attributes an element with them, for the viewer to copy.
    pub elements: Vec<u8>,
}

/// Packs stacks that come in order.
pub struct Packer {
    /// Collected into larger pieces: the encoder clears a whole buffer for each.
    out: BufWriter<DeflateEncoder<Vec<u8>>>,
    differential: bool,
    depth: usize,
    frames_count: usize,
    /// What the last stack weighs, which may stand once more in the next line.
    pending: Option<Weights>,
    names: Frames,
    line: Vec<u8>,
}

impl Packer {
    /// Packs stacks with one weight or two.
    pub fn new(differential: bool) -> Self {
        let (out, line) = (packing(), Vec::new());
        Self { out, differential, depth: 0, frames_count: 0, pending: None, names: Frames::new(), line }
    }

    /// The number of a name; the next one if it was not seen before.
    pub fn number(&mut self, name: &[u8]) -> u32 {
        self.names.intern(name).index() as u32
    }

    /// Adds a stack: its first `shared` frames are those of the stack before, the others have the numbers `new`.
    ///
    /// # Errors
    /// None that memory does not have.
    pub fn add(&mut self, shared: usize, new: &[u32], weights: Weights) -> io::Result<()> {
        let (gone, come) = (self.depth - shared, new.len());
        self.depth = shared + come;
        if let Some(pending) = self.pending.as_mut().filter(|_| gone + come == 0) {
            return pending.add(weights).map_err(io::Error::other);
        }
        self.write_pending()?;
        self.frames_count += come;
        self.line.clear();
        push_number(gone as u128, &mut self.line);
        push_number(come as u128, &mut self.line);
        for number in new {
            push_number(u128::from(*number), &mut self.line);
        }
        self.pending = Some(weights);
        self.out.write_all(&self.line)
    }

    fn write_pending(&mut self) -> io::Result<()> {
        let Some(weights) = self.pending.take() else { return Ok(()) };
        self.line.clear();
        if self.differential {
            push_weight(weights.before, &mut self.line);
        }
        push_weight(weights.after, &mut self.line);
        self.out.write_all(&self.line)
    }

    /// Nothing more comes. The colours are those of a scheme.
    ///
    /// # Errors
    /// None that memory does not have.
    pub fn finish(mut self, scheme: &Scheme, attributes: &NameAttributes) -> io::Result<Payload> {
        self.write_pending()?;
        let mut out = packing();
        for (_, name) in self.names.iter() {
            let colour = scheme.colour(name);
            let state = if colour::is_state(name) { STATE } else { 0 };
            let dark = if colour.is_light() { 0 } else { DARK };
            out.write_all(&[colour.0, colour.1, colour.2, state | dark])?;
        }
        for (_, name) in self.names.iter() {
            out.write_all(visible(colour::without_kind(name)).as_bytes())?;
            out.write_all(b"\n")?;
        }
        let elements = self.elements(attributes);
        let (frames_count, names_count) = (self.frames_count, self.names.len());
        Ok(Payload { stacks: packed(self.out)?, frames_count, names: packed(out)?, names_count, elements })
    }

    fn elements(&self, attributes: &NameAttributes) -> Vec<u8> {
        let mut text = Vec::new();
        for (id, name) in self.names.iter().filter(|_| !attributes.is_empty()) {
            let Some(element) = attributes.get(name) else { continue };
            text.extend_from_slice(format!("<{} data-name=\"{}\"", element.tag(), id.index()).as_bytes());
            if let Some(title) = &element.title {
                text.extend_from_slice(b" data-title=\"");
                escape(title, &mut text);
                text.push(b'"');
            }
            if let Some(class) = element.push_attributes(&mut text) {
                text.extend_from_slice(b" class=\"");
                escape(class, &mut text);
                text.push(b'"');
            }
            text.extend_from_slice(b"/>");
        }
        text
    }
}

fn packing() -> BufWriter<DeflateEncoder<Vec<u8>>> {
    BufWriter::with_capacity(1 << 16, DeflateEncoder::new(Vec::new(), LEVEL))
}

fn packed(packing: BufWriter<DeflateEncoder<Vec<u8>>>) -> io::Result<Vec<u8>> {
    packing.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// Bytes as the viewer unpacks them.
///
/// # Errors
/// None that memory does not have.
pub(crate) fn packed_bytes(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = packing();
    out.write_all(bytes)?;
    packed(out)
}

fn push_weight(weight: Weight, out: &mut Vec<u8>) {
    let millionths = weight.millionths();
    match millionths % Weight::ONE.millionths() {
        0 => push_number(millionths / Weight::ONE.millionths() * 2, out),
        // Beyond 2¹²⁷ millionths the viewer's numbers are long inexact.
        _ => push_number(millionths.saturating_mul(2) | 1, out),
    }
}

/// Appends a number as LEB128.
pub(crate) fn push_number(mut number: u128, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes as base64.
pub fn push_base64(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let at = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= chunk.len() { digit } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::{Packer, push_base64, push_weight};
    use crate::profile::{Weight, Weights};
    use crate::svg::colour::Scheme;
    use crate::svg::name_attributes::NameAttributes;

    fn unpack(packed: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        flate2::read::DeflateDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn stacks_say_what_is_new_in_them() {
        let mut packer = Packer::new(false);
        for (shared, new, weight) in [(0, &["m"][..], 1), (1, &["a", "x"], 3), (1, &["b"], 200)] {
            let new: Vec<u32> = new.iter().map(|name| packer.number(name.as_bytes())).collect();
            packer.add(shared, &new, Weights::plain(Weight::new(weight))).unwrap();
        }
        let payload = packer.finish(&Scheme::default(), &NameAttributes::default()).unwrap();
        // m; m a x; m b: gone, new, names, twice the weight.
        assert_eq!(unpack(&payload.stacks), [0, 1, 0, 2, 0, 2, 1, 2, 6, 2, 1, 3, 0x90, 3]);
        let names = unpack(&payload.names);
        assert_eq!(&names[4 * payload.names_count..], b"m\na\nx\nb\n");
    }

    #[test]
    fn a_fraction_is_kept() {
        let mut out = Vec::new();
        push_weight(Weight::parse(b"0.00005").unwrap(), &mut out);
        assert_eq!(out, [101]);
    }

    #[test]
    fn base64_is_as_everybody_has_it() {
        for (bytes, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            let mut out = Vec::new();
            push_base64(bytes.as_bytes(), &mut out);
            assert_eq!(out, expected.as_bytes());
        }
    }
}
