//! Which colour a frame has: a pure function of its name, so that a function looks the same in every picture.
//!
//! A palette picks a ramp by what the name tells of the frame's kind, and the name's hash picks the place on the ramp.

use std::fmt;
use std::str::FromStr;

use super::family::{self, Family};
use super::palette_map::PaletteMap;
use crate::markers;
use crate::profile::Frames;

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// Whether dark text reads better on it than white text, by the luminance and contrast formulas of WCAG 2.
    pub fn is_light(self) -> bool {
        self.luminance() > 0.179
    }

    fn luminance(self) -> f64 {
        let linear = |channel: u8| {
            let share = f64::from(channel) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// Appends `#rrggbb`.
    pub fn write_to(self, out: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        out.push(b'#');
        for channel in [self.0, self.1, self.2] {
            out.push(DIGITS[usize::from(channel >> 4)]);
            out.push(DIGITS[usize::from(channel & 15)]);
        }
    }
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
            _ => Err("expected a colour, as #e600e6".to_owned()),
        }
    }
}

/// A named set of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Palette {
    /// Warm colours, whatever the name.
    #[default]
    Hot,
    /// Green to blue: memory.
    Mem,
    /// Blue: waiting for devices.
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
    /// Java green, inlined aqua, C++ yellow, kernel orange, other red.
    Java,
    /// JavaScript green, built-in aqua, C++ yellow, kernel orange, other red.
    Js,
    /// Perl green, C++ yellow, kernel orange, other red.
    Perl,
    /// Python's own yellow, packages aqua, other red.
    Python,
    /// Rust's own orange, crates aqua, other yellow.
    Rust,
    /// Aqua: waking others.
    Wakeup,
    /// Wakers aqua, others blue.
    Chain,
    /// Functions red, which is on the CPU where nothing stands on them; states as always: waiting blue, runnable yellow.
    States,
}

impl Palette {
    /// The colour that stands for its functions in the legend, where only functions and states are told apart.
    pub fn on_cpu(self) -> Option<Colour> {
        (self == Self::States).then(|| Ramp::Red.at([0.5; 3]))
    }
}

/// A stretch of related colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ramp {
    /// Red to yellow.
    Hot,
    /// Green to blue.
    Mem,
    /// Greyish blue.
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
    /// The colour at a place, three numbers from 0 up to 1.
    pub fn at(self, [a, b, c]: [f64; 3]) -> Colour {
        let from = |base: u8, span: u8, at: f64| base + (f64::from(span) * at) as u8;
        match self {
            Self::Hot => Colour(from(205, 50, c), from(0, 230, a), from(0, 55, b)),
            Self::Mem => Colour(0, from(190, 50, b), from(0, 210, a)),
            Self::Io => Colour(from(80, 60, a), from(80, 60, a), from(190, 55, b)),
            Self::Red => Colour(from(200, 55, a), from(50, 80, a), from(50, 80, a)),
            Self::Green => Colour(from(50, 60, a), from(200, 55, a), from(50, 60, a)),
            Self::Blue => Colour(from(80, 60, a), from(80, 60, a), from(205, 50, a)),
            Self::Yellow => Colour(from(175, 55, a), from(175, 55, a), from(50, 20, a)),
            Self::Purple => Colour(from(190, 65, a), from(80, 60, a), from(190, 65, a)),
            Self::Aqua => Colour(from(50, 60, a), from(165, 55, a), from(165, 55, a)),
            Self::Orange => Colour(from(190, 65, a), from(90, 65, a), 0),
        }
    }
}

/// How frames are coloured.
#[derive(Clone, Debug, Default)]
pub struct Scheme {
    /// From which colours.
    pub palette: Palette,
    /// Whether names that begin alike look alike, as with flamegraph.pl's `--hash`.
    pub by_beginning: bool,
    /// Another number gives other colours.
    pub seed: u64,
    /// The colours that some names have from earlier pictures.
    pub known: PaletteMap,
}

impl Scheme {
    /// The colour of a frame by its name, suffix and all.
    pub fn colour(&self, name: &[u8]) -> Colour {
        if let Some(colour) = fixed(name).or_else(|| self.known.get(name)) {
            return colour;
        }
        let ramp = ramp(self.palette, name);
        let plain = without_kind(name);
        ramp.at(if self.by_beginning { by_beginning(plain) } else { by_hash(plain, self.seed) })
    }

    /// Keeps the colours of these names.
    pub fn learn(&mut self, names: &Frames) {
        for (_, name) in names.iter().filter(|(_, name)| fixed(name).is_none()) {
            let colour = self.colour(name);
            self.known.set(name, colour);
        }
    }
}

/// The colour of a frame by its share of the whole: from white to red.
pub fn diffused(share: f64) -> Colour {
    let other = (255.0 * (1.0 - share.clamp(0.0, 1.0).sqrt())).round() as u8;
    Colour(255, other, other)
}

/// The colour of a frame in a differential picture: white where nothing changed, the redder the more it grew, the bluer
/// the more it shrank; `share` is the difference by the largest one, from -1 to 1.
pub fn differential(share: f64) -> Colour {
    let fade = |from: f64, to: f64| (from + (to - from) * share.abs().min(1.0)).round() as u8;
    match share >= 0.0 {
        true => Colour(fade(245.0, 235.0), fade(245.0, 60.0), fade(245.0, 50.0)),
        false => Colour(fade(245.0, 80.0), fade(245.0, 130.0), fade(245.0, 250.0)),
    }
}

/// The name without the suffix that says the frame's kind (`_[k]`, `_[j]`, `_[i]`, `_[w]`).
pub fn without_kind(name: &[u8]) -> &[u8] {
    match name {
        [plain @ .., b'_', b'[', b'k' | b'j' | b'i' | b'w', b']'] => plain,
        _ => name,
    }
}

/// The frames that are states and not functions: blocked, preempted, unsampled; lost, cut off, without a name.
pub const STATES: [(&[u8], Colour); 6] = [
    (markers::OFF_CPU, Colour(96, 125, 160)),
    (markers::RUNNABLE, Colour(222, 184, 65)),
    (markers::UNSAMPLED, Colour(214, 214, 222)),
    (markers::LOST, Colour(130, 30, 60)),
    (markers::TRUNCATED, Colour(150, 130, 185)),
    (markers::UNKNOWN, Colour(189, 189, 189)),
];

/// How many of [`STATES`], from the first on, end stacks of time that was not seen on a CPU.
pub const OFF_CPU: usize = 4;

/// Whether the frame is one of [`STATES`].
pub fn is_state(name: &[u8]) -> bool {
    STATES.iter().any(|(state, _)| *state == name)
}

fn fixed(name: &[u8]) -> Option<Colour> {
    match name {
        b"--" => Some(Colour(160, 160, 160)),
        b"-" => Some(Colour(200, 200, 200)),
        _ => STATES.iter().find(|(state, _)| *state == name).map(|(_, colour)| *colour),
    }
}

fn ramp(palette: Palette, name: &[u8]) -> Ramp {
    match palette {
        Palette::Hot => Ramp::Hot,
        Palette::Mem => Ramp::Mem,
        Palette::Io => Ramp::Io,
        Palette::Red | Palette::States => Ramp::Red,
        Palette::Green => Ramp::Green,
        Palette::Blue => Ramp::Blue,
        Palette::Yellow => Ramp::Yellow,
        Palette::Purple => Ramp::Purple,
        Palette::Aqua | Palette::Wakeup => Ramp::Aqua,
        Palette::Orange => Ramp::Orange,
        Palette::Java => family::ramp(Family::Java, name),
        Palette::Js => family::ramp(Family::Js, name),
        Palette::Perl => family::ramp(Family::Perl, name),
        Palette::Python => family::ramp(Family::Python, name),
        Palette::Rust => family::ramp(Family::Rust, name),
        Palette::Chain if name.ends_with(markers::WAKER) => Ramp::Aqua,
        Palette::Chain => Ramp::Blue,
    }
}

/// Three numbers from the whole name: FNV-1a, then a finisher so that names that differ little are far apart.
fn by_hash(name: &[u8], seed: u64) -> [f64; 3] {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in name {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    let part = |shift: u32| ((hash >> shift) & 0xf_ffff) as f64 / f64::from(0x10_0000);
    [part(0), part(20), part(40)]
}

/// Three numbers from the first three characters behind the module, the first weighing most; the second and third are
/// those of the name backwards.
fn by_beginning(name: &[u8]) -> [f64; 3] {
    let module = memchr::memchr(b'`', name).filter(|at| *at > 0).map_or(0, |at| at + 1);
    let name = &name[module..];
    let forward = weigh_beginning(name.iter());
    let backward = weigh_beginning(name.iter().rev());
    [forward, backward, backward]
}

fn weigh_beginning<'a>(characters: impl Iterator<Item = &'a u8>) -> f64 {
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

    use super::{Colour, Palette, Ramp, STATES, Scheme, differential, diffused, fixed, is_state, without_kind};

    /// Black or white on a colour, whichever its labels have.
    fn contrast(colour: Colour) -> f64 {
        if colour.is_light() { (colour.luminance() + 0.05) / 0.05 } else { 1.05 / (colour.luminance() + 0.05) }
    }

    #[test]
    fn labels_can_be_read_on_every_colour() {
        const RAMPS: [Ramp; 10] = {
            use Ramp::*;
            [Hot, Mem, Io, Red, Green, Blue, Yellow, Purple, Aqua, Orange]
        };
        let steps = || (0..=20).map(|step| f64::from(step) / 20.0);
        let places = steps().flat_map(|a| steps().flat_map(move |b| steps().map(move |c| [a, b, c])));
        let ramps = places.flat_map(|place| RAMPS.map(|ramp| ramp.at(place)));
        let shares = steps().flat_map(|share| [diffused(share), differential(share), differential(-share)]);
        let fixed = [&b"-"[..], b"--"].into_iter().filter_map(fixed).chain(STATES.map(|(_, colour)| colour));
        for colour in ramps.chain(shares).chain(fixed) {
            assert!(contrast(colour) >= 4.5, "{colour}: {:.2}", contrast(colour));
            // Beneath the view frames are pale, with black labels.
            let pale = |channel: u8| ((f64::from(channel) + 2.0 * 238.0) / 3.0).round() as u8;
            let pale = Colour(pale(colour.0), pale(colour.1), pale(colour.2));
            assert!(pale.is_light() && contrast(pale) >= 4.5, "{pale}");
        }
    }

    #[test]
    fn a_colour_depends_on_the_name_alone() {
        let scheme = Scheme::default();
        assert_eq!(scheme.colour(b"parse"), scheme.colour(b"parse"));
        assert_ne!(scheme.colour(b"ab"), scheme.colour(b"ba"), "an anagram is another name");
        // Published pictures keep their colours: this is a promise across versions.
        assert_eq!(scheme.colour(b"main"), Colour(208, 195, 39));
    }

    #[test]
    fn every_palette_stays_within_its_ramp() {
        for palette in Palette::value_variants() {
            for by_beginning in [false, true] {
                for name in ["", "a", "main", "std::io::Read", "x_[k]", "\u{7f}~~~"] {
                    Scheme { palette: *palette, by_beginning, ..Scheme::default() }.colour(name.as_bytes());
                }
            }
        }
        let Colour(red, ..) = Scheme { by_beginning: true, ..Scheme::default() }.colour(b"abc");
        assert!(red >= 205);
    }

    #[test]
    fn names_that_begin_alike_can_look_alike() {
        let scheme = Scheme { palette: Palette::Green, by_beginning: true, ..Scheme::default() };
        assert_eq!(scheme.colour(b"libc`malloc"), scheme.colour(b"malfunction"));
    }

    #[test]
    fn states_and_kinds_are_told_from_functions() {
        assert!(is_state(b"[off-cpu]") && is_state(b"[unknown]") && !is_state(b"[libc.so.6]") && !is_state(b"--"));
        assert_eq!(without_kind(b"read_[k]"), b"read");
        assert_eq!(without_kind(b"read_[x]"), b"read_[x]");
    }

    #[test]
    fn differences_run_from_blue_through_white_to_red() {
        assert_eq!(differential(0.0), Colour(245, 245, 245));
        let (Colour(red, green, _), Colour(less_red, _, blue)) = (differential(1.0), differential(-1.0));
        assert!(red > 200 && green < 100 && less_red < 100 && blue > 200);
        assert!(differential(0.5).is_light() && !Colour(80, 80, 200).is_light());
    }
}
