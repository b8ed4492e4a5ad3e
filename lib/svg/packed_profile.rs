//! The whole profile in packed form, from which the viewer draws.
//!
//! Its parts are each compressed with deflate and written as base64. Numbers are LEB128.
//!
//! - The *stacks*, in order, as four columns: how many of the previous stack's last frames are *removed*, how many frames
//!   are *added*, the name number of each of these *frames*, and the *weights* (in a differential profile the weight before,
//!   then the weight after). A whole weight is written as twice its value. A weight with a fraction is written as twice its
//!   millionths plus 1. Columns compress better than rows.
//! - The *names*: six bytes for each name, which are its colour (red, green, blue), its flags, and the number of its module
//!   (low byte first; 0 for none; the highest bit is a flag); then the names, then the modules from number 1 on, one a line.

use std::io::{self, BufWriter, Write as _};

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::colour;
use super::layout::Layout;
use super::module_colours::ModuleColours;
use super::name_attributes::NameAttributes;
use super::options::Options;
use super::places::PlaceCounts;
use super::rgb::Colour;
use super::text::{escape, visible};
use crate::markers::is_marker;
use crate::profile::{FrameId, Frames, Weight, Weights};

/// Level 1 makes the file of 100,000 stacks 18 % larger, and fg-svg takes as long.
const LEVEL: Compression = Compression::new(2);

/// Flag of a name that is a marker, not a function.
const FLAG_MARKER: u8 = 1;
/// Flag of a name whose colour needs white text.
const FLAG_DARK: u8 = 2;
/// The flags from this bit on are one more than the class of a name's colour, or 0 if it is in no class.
const CLASS_SHIFT: u8 = 2;
/// Flag of a name whose self weight changed significantly. In the module's high byte: the inclusive weight did.
const FLAG_SIGNIFICANT: u8 = 0x80;

/// The columns of the stacks, as the viewer calls them.
pub(super) const COLUMNS: [&str; 4] = ["removed", "added", "frames", "weights"];

/// A profile as the viewer unpacks it.
#[derive(Debug, Default)]
pub struct PackedProfile {
    /// The columns of the stacks (`COLUMNS`), compressed.
    pub columns: [Vec<u8>; 4],
    /// Number of frames in the stacks, where a frame that consecutive stacks share counts once.
    pub frame_count: usize,
    /// The names with their colours and flags, compressed.
    pub names: Vec<u8>,
    /// Number of names.
    pub name_count: usize,
    /// An XML element for each name that has attributes, for the viewer to copy.
    pub elements: Vec<u8>,
}

/// Packs stacks that are added in drawing order.
pub struct ProfilePacker {
    removed: Encoder,
    added: Encoder,
    added_names: Encoder,
    weights: Encoder,
    differential: bool,
    /// Number of frames in the last stack.
    depth: usize,
    frame_count: usize,
    /// The weight of the last stack. It is written late, because the next line can add to it.
    pending: Option<Weights>,
    names: Frames,
    places: PlaceCounts,
    scratch: Vec<u8>,
}

impl ProfilePacker {
    /// Creates a packer for stacks with two weights if `differential` is true, otherwise with one.
    pub fn new(differential: bool) -> Self {
        let (names, places, scratch) = (Frames::new(), PlaceCounts::default(), Vec::new());
        let [removed, added, added_names, weights] = std::array::from_fn(|_| new_encoder());
        Self {
            removed,
            added,
            added_names,
            weights,
            differential,
            depth: 0,
            frame_count: 0,
            pending: None,
            names,
            places,
            scratch,
        }
    }

    /// Returns the number of a name. New names are numbered consecutively.
    pub fn number(&mut self, name: &[u8]) -> u32 {
        let id = self.names.intern(name);
        // The interner can add the name of a leaf, too.
        for index in self.places.name_count()..self.names.len() {
            self.places.add_name(self.names.name(FrameId::from_index(index as u32)));
        }
        id.index() as u32
    }

    /// Adds a stack. Its first `shared` frames are those of the previous stack, the others have the name numbers `new`.
    ///
    /// # Errors
    /// Fails only if memory is exhausted or the weight of a repeated stack overflows.
    pub fn add(&mut self, shared: usize, new: &[u32], weights: Weights) -> io::Result<()> {
        let (removed, added) = (self.depth - shared, new.len());
        self.depth = shared + added;
        self.places.add(shared, new);
        if let Some(pending) = self.pending.as_mut().filter(|_| removed + added == 0) {
            return pending.add(weights).map_err(io::Error::other);
        }
        self.write_pending()?;
        self.frame_count += added;
        self.pending = Some(weights);
        let Self { scratch, .. } = self;
        for (out, number) in [(&mut self.removed, removed), (&mut self.added, added)] {
            scratch.clear();
            push_number(number as u128, scratch);
            out.write_all(scratch)?;
        }
        scratch.clear();
        for number in new {
            push_number(u128::from(*number), scratch);
        }
        self.added_names.write_all(scratch)
    }

    fn write_pending(&mut self) -> io::Result<()> {
        let Some(weights) = self.pending.take() else { return Ok(()) };
        self.scratch.clear();
        if self.differential {
            push_weight(weights.before, &mut self.scratch);
        }
        push_weight(weights.after, &mut self.scratch);
        self.weights.write_all(&self.scratch)
    }

    /// Adds the places of names that the layout does not have.
    pub fn add_places(&self, layout: &Layout, modules: &mut ModuleColours) {
        modules.places.add_undrawn(layout, self.names.iter().map(|(_, name)| name), &self.places);
    }

    /// Packs the names with their colours and other properties by the options, and returns the packed profile.
    ///
    /// # Errors
    /// Fails only if memory is exhausted.
    pub fn finish(mut self, options: &Options, modules: &ModuleColours) -> io::Result<PackedProfile> {
        let Options { scheme, name_attributes: attributes, significances, .. } = options;
        self.write_pending()?;
        let mut out = new_encoder();
        let mut module_names = Frames::new();
        for (_, name) in self.names.iter() {
            let Colour(red, green, blue) = scheme.colour_among(name, modules);
            let class = scheme.class(name, modules).map_or(0, |class| (class.0 + 1) << CLASS_SHIFT);
            let marker = if is_marker(name) { FLAG_MARKER } else { 0 };
            let dark = if Colour(red, green, blue).is_light() { 0 } else { FLAG_DARK };
            let module = modules.module(name);
            let number = if module.is_empty() { 0 } else { module_names.intern(module.as_bytes()).index() + 1 };
            // There is no module beyond the 32,767th.
            let [low, high] = u16::try_from(number).ok().filter(|number| *number < 0x8000).unwrap_or(0).to_le_bytes();
            let significance = significances.get(name);
            let [own, total] = [significance.own, significance.total].map(|is_set| u8::from(is_set) * FLAG_SIGNIFICANT);
            out.write_all(&[red, green, blue, marker | dark | class | own, low, high | total])?;
        }
        for (_, name) in self.names.iter() {
            out.write_all(visible(colour::without_suffix(name)).as_bytes())?;
            out.write_all(b"\n")?;
        }
        for (_, module) in module_names.iter() {
            out.write_all(visible(module).as_bytes())?;
            out.write_all(b"\n")?;
        }
        let elements = self.elements(attributes);
        let (frame_count, name_count) = (self.frame_count, self.names.len());
        let [removed, added] = [encoded(self.removed)?, encoded(self.added)?];
        let columns = [removed, added, encoded(self.added_names)?, encoded(self.weights)?];
        Ok(PackedProfile { columns, frame_count, names: encoded(out)?, name_count, elements })
    }

    /// Returns the elements of the names that have attributes.
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

/// Buffered, because the encoder clears a whole buffer for each write.
type Encoder = BufWriter<DeflateEncoder<Vec<u8>>>;

fn new_encoder() -> Encoder {
    BufWriter::with_capacity(1 << 16, DeflateEncoder::new(Vec::new(), LEVEL))
}

/// Ends the compressed data and returns it.
fn encoded(encoder: Encoder) -> io::Result<Vec<u8>> {
    encoder.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// Compresses bytes so that the viewer can unpack them.
///
/// # Errors
/// Fails only if memory is exhausted.
pub(crate) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = new_encoder();
    out.write_all(bytes)?;
    encoded(out)
}

fn push_weight(weight: Weight, out: &mut Vec<u8>) {
    let millionths = weight.millionths();
    match millionths % Weight::ONE.millionths() {
        0 => push_number(millionths / Weight::ONE.millionths() * 2, out),
        // Saturates at 2¹²⁷ millionths, far beyond the integers that the viewer's numbers represent exactly.
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
        let mut padded = [0; 4];
        padded[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(padded);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= chunk.len() { digit } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::{Options, ProfilePacker, push_base64, push_weight};
    use crate::profile::{Weight, Weights};
    use crate::svg::module_colours::ModuleColours;

    fn unpack(packed: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        flate2::read::DeflateDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn packs_each_stack_as_the_difference_to_the_previous_one() {
        let mut packer = ProfilePacker::new(false);
        for (shared, new, weight) in [(0, &["m"][..], 1), (1, &["a", "x"], 3), (1, &["b"], 200)] {
            let new: Vec<u32> = new.iter().map(|name| packer.number(name.as_bytes())).collect();
            packer.add(shared, &new, Weights::plain(Weight::new(weight))).unwrap();
        }
        let packed = packer.finish(&Options::default(), &ModuleColours::default()).unwrap();
        // m; m a x; m b: removed, added, names, twice the weight.
        let columns: [&[u8]; 4] = [&[0, 0, 2], &[1, 2, 1], &[0, 1, 2, 3], &[2, 6, 0x90, 3]];
        assert_eq!(packed.columns.map(|column| unpack(&column)), columns);
        let names = unpack(&packed.names);
        assert_eq!(&names[6 * packed.name_count..], b"m\na\nx\nb\n");
    }

    #[test]
    fn packs_fractions_as_millionths() {
        let mut out = Vec::new();
        push_weight(Weight::parse(b"0.00005").unwrap(), &mut out);
        assert_eq!(out, [101]);
    }

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (bytes, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            let mut out = Vec::new();
            push_base64(bytes.as_bytes(), &mut out);
            assert_eq!(out, expected.as_bytes());
        }
    }
}
