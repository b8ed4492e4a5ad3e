//! The colours of frames. With the same options, a function has the same colour in every image, because its colour
//! depends only on its name.
//!
//! A palette chooses a ramp by the kind of frame that the name indicates. A hash of the name chooses a colour of the
//! ramp.

use super::fixed_colours::fixed_colour;
use super::language::{self, Language};
use super::module_colours::{Class, ModuleColours};
use super::palette_map::PaletteMap;
use super::ramp::Ramp;
use super::rgb::Colour;
use crate::markers;
use crate::profile::Frames;

/// A named set of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Palette {
    /// A muted hue for each module, crate or package: own code, libraries, the kernel and others are told apart.
    Module,
    /// Red to yellow.
    #[default]
    Hot,
    /// Green to blue, for memory.
    Mem,
    /// Greyish blue, for I/O.
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
    /// Java green, inlined functions aqua, C++ yellow, kernel orange, others red.
    Java,
    /// JavaScript green, packages purple, built-in functions aqua, C++ yellow, kernel orange, others red.
    Js,
    /// Perl green, C++ yellow, kernel orange, others red.
    Perl,
    /// Python's library yellow, packages aqua, others red.
    Python,
    /// Rust's library orange, crates aqua, others yellow.
    Rust,
    /// Aqua, for the stacks of wakers.
    Wakeup,
    /// Wakers aqua, others blue.
    Chain,
    /// Functions red. Markers keep their fixed colours, so blocked time (blue) and runnable time (yellow) are easy to
    /// see.
    States,
}

impl Palette {
    /// Returns the colour of time on the CPU in the legend, if the palette distinguishes only functions and markers.
    pub fn on_cpu(self) -> Option<Colour> {
        (self == Self::States).then(|| Ramp::Red.colour([0.5; 3]))
    }
}

/// The rules that choose a frame's colour.
#[derive(Clone, Debug, Default)]
pub struct Scheme {
    /// The set of colours.
    pub palette: Palette,
    /// True if names with the same first characters have similar colours, like `--hash` of flamegraph.pl.
    pub by_prefix: bool,
    /// Each seed gives other colours.
    pub seed: u64,
    /// Colours of names from earlier images.
    pub palette_map: PaletteMap,
}

impl Scheme {
    /// Returns the class of a frame's colour if the palette is that of modules.
    pub fn class(&self, name: &[u8], modules: &ModuleColours) -> Option<Class> {
        let is_separator = fixed_colour(name).is_some() && !markers::is_marker(name);
        let is_by_module = self.palette == Palette::Module && !is_separator && self.palette_map.get(name).is_none();
        is_by_module.then(|| modules.class(name))
    }

    /// Returns the colour of a frame among others, by its module if the palette is that of modules.
    pub fn colour_among(&self, name: &[u8], modules: &ModuleColours) -> Colour {
        self.class(name, modules).map_or_else(|| self.colour(name), Class::colour)
    }

    /// Returns the colour of a frame by its name alone. `name` includes the suffix, such as `_[k]`.
    pub fn colour(&self, name: &[u8]) -> Colour {
        if let Some(colour) = fixed_colour(name).or_else(|| self.palette_map.get(name)) {
            return colour;
        }
        let ramp = ramp(self.palette, name);
        let name = without_suffix(name);
        ramp.colour(if self.by_prefix { prefix_position(name) } else { hash_position(name, self.seed) })
    }

    /// Adds the colours of these names to the palette map.
    pub fn save_colours(&mut self, names: &Frames, modules: &ModuleColours) {
        for (_, name) in names.iter().filter(|(_, name)| fixed_colour(name).is_none()) {
            let colour = self.colour_among(name, modules);
            self.palette_map.insert(name, colour);
        }
    }
}

/// Returns the colour of a frame by its share of the total: white at 0, red at 1.
pub fn diffusion(share: f64) -> Colour {
    let other = (255.0 * (1.0 - share.clamp(0.0, 1.0).sqrt())).round() as u8;
    Colour(255, other, other)
}

/// Returns the colour of a frame in a differential graph. `change` is the frame's difference divided by the largest
/// difference: -1 is blue, 0 almost white, 1 red.
pub fn differential(change: f64) -> Colour {
    let strongest = if change >= 0.0 { [235.0, 60.0, 50.0] } else { [80.0, 130.0, 250.0] };
    let [red, green, blue] =
        strongest.map(|channel: f64| (245.0 + (channel - 245.0) * change.abs().min(1.0)).round() as u8);
    Colour(red, green, blue)
}

/// Removes the suffix that marks the kind of code (`_[k]`, `_[j]`, `_[i]`, `_[w]`). Unlike [`markers::strip_suffix`],
/// it leaves nothing of a name that is only a suffix.
pub fn without_suffix(name: &[u8]) -> &[u8] {
    let suffixes = [markers::KERNEL, markers::JIT, markers::INLINED, markers::WAKER];
    suffixes.into_iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

fn ramp(palette: Palette, name: &[u8]) -> Ramp {
    match palette {
        // Wakers are told from those that they woke.
        Palette::Hot | Palette::Module | Palette::States if name.ends_with(markers::WAKER) => Ramp::Aqua,
        Palette::Hot | Palette::Module => Ramp::Hot,
        Palette::Mem => Ramp::Mem,
        Palette::Io => Ramp::Io,
        Palette::Red | Palette::States => Ramp::Red,
        Palette::Green => Ramp::Green,
        Palette::Blue => Ramp::Blue,
        Palette::Yellow => Ramp::Yellow,
        Palette::Purple => Ramp::Purple,
        Palette::Aqua | Palette::Wakeup => Ramp::Aqua,
        Palette::Orange => Ramp::Orange,
        Palette::Java => language::ramp(Language::Java, name),
        Palette::Js => language::ramp(Language::Js, name),
        Palette::Perl => language::ramp(Language::Perl, name),
        Palette::Python => language::ramp(Language::Python, name),
        Palette::Rust => language::ramp(Language::Rust, name),
        Palette::Chain if name.ends_with(markers::WAKER) => Ramp::Aqua,
        Palette::Chain => Ramp::Blue,
    }
}

/// Returns the position of a name on a ramp by its hash: FNV-1a, then the finalizer of splitmix64, which moves names
/// that differ little far apart.
fn hash_position(name: &[u8], seed: u64) -> [f64; 3] {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in name {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    [0, 20, 40].map(|shift| ((hash >> shift) & 0xf_ffff) as f64 / f64::from(0x10_0000))
}

/// Returns the position of a name on a ramp by its first and its last three characters, as flamegraph.pl does. A module
/// before a backtick does not count.
fn prefix_position(name: &[u8]) -> [f64; 3] {
    let start = memchr::memchr(b'`', name).filter(|index| *index > 0).map_or(0, |index| index + 1);
    let name = &name[start..];
    let forward = first_characters(name.iter());
    let backward = first_characters(name.iter().rev());
    [forward, backward, backward]
}

/// Returns a number from 0 to 1 that depends on the first three characters. Each counts less than the one before.
fn first_characters<'a>(characters: impl Iterator<Item = &'a u8>) -> f64 {
    let (mut sum, mut largest, mut weight) = (0.0, 1.0, 1.0);
    for (character, modulus) in characters.zip([10u8, 11, 12]) {
        sum += weight * f64::from(character % modulus) / f64::from(modulus - 1);
        largest += weight;
        weight *= 0.7;
    }
    1.0 - sum / largest
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::{Colour, Palette, Ramp, Scheme, differential, diffusion, fixed_colour, without_suffix};
    use crate::svg::fixed_colours::MARKER_COLOURS;

    /// Returns the contrast of a colour and the black or white text on it.
    fn contrast(colour: Colour) -> f64 {
        if colour.is_light() { (colour.luminance() + 0.05) / 0.05 } else { 1.05 / (colour.luminance() + 0.05) }
    }

    #[test]
    fn every_colour_has_enough_contrast_with_its_label() {
        const RAMPS: [Ramp; 10] = {
            use Ramp::*;
            [Hot, Mem, Io, Red, Green, Blue, Yellow, Purple, Aqua, Orange]
        };
        let steps: [f64; 21] = std::array::from_fn(|step| step as f64 / 20.0);
        let positions = steps.iter().flat_map(|a| steps.iter().flat_map(|b| steps.map(|c| [*a, *b, c])));
        let ramps = positions.flat_map(|position| RAMPS.map(|ramp| ramp.colour(position)));
        let shares = steps.iter().flat_map(|share| [diffusion(*share), differential(*share), differential(-share)]);
        let fixed =
            [&b"-"[..], b"--"].into_iter().filter_map(fixed_colour).chain(MARKER_COLOURS.map(|(_, colour)| colour));
        for colour in ramps.chain(shares).chain(fixed) {
            assert!(contrast(colour) >= 4.5, "{colour}: {:.2}", contrast(colour));
            // The callers of a zoomed frame are pale, with black labels.
            let Colour(red, green, blue) = colour;
            let [red, green, blue] =
                [red, green, blue].map(|channel| ((f64::from(channel) + 2.0 * 238.0) / 3.0).round() as u8);
            let pale = Colour(red, green, blue);
            assert!(pale.is_light() && contrast(pale) >= 4.5, "{pale}");
        }
    }

    #[test]
    fn a_colour_depends_only_on_the_name() {
        let scheme = Scheme::default();
        assert_eq!(scheme.colour(b"parse"), scheme.colour(b"parse"));
        assert_ne!(scheme.colour(b"ab"), scheme.colour(b"ba"), "anagrams differ");
        // Colours must not change between versions, so that published images stay comparable.
        assert_eq!(scheme.colour(b"main"), Colour(208, 195, 39));
    }

    #[test]
    fn every_palette_stays_within_its_ramp() {
        for palette in Palette::value_variants() {
            for by_prefix in [false, true] {
                for name in ["", "a", "main", "std::io::Read", "x_[k]", "\u{7f}~~~"] {
                    Scheme { palette: *palette, by_prefix, ..Scheme::default() }.colour(name.as_bytes());
                }
            }
        }
        let Colour(red, ..) = Scheme { by_prefix: true, ..Scheme::default() }.colour(b"abc");
        assert!(red >= 205);
    }

    #[test]
    fn names_with_the_same_prefix_can_have_the_same_colour() {
        let scheme = Scheme { palette: Palette::Green, by_prefix: true, ..Scheme::default() };
        assert_eq!(scheme.colour(b"libc`malloc"), scheme.colour(b"malfunction"));
    }

    #[test]
    fn strips_known_suffixes_even_if_nothing_is_left() {
        assert_eq!(without_suffix(b"read_[k]"), b"read");
        assert_eq!(without_suffix(b"read_[x]"), b"read_[x]");
        assert_eq!(without_suffix(b"_[k]"), b"");
    }

    #[test]
    fn differences_go_from_blue_through_white_to_red() {
        assert_eq!(differential(0.0), Colour(245, 245, 245));
        let (Colour(red, green, _), Colour(less_red, _, blue)) = (differential(1.0), differential(-1.0));
        assert!(red > 200 && green < 100 && less_red < 100 && blue > 200);
        assert!(differential(0.5).is_light() && !Colour(80, 80, 200).is_light());
    }
}
