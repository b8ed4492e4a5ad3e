//! Writes a drawing as one self-contained SVG.
//!
//! Other programs read these files too. Each frame of half a pixel or more is a group in the group `frames`, and its first
//! child is its title, `NAME (1,234 samples, 12.34%)`. So are narrower frames in a file without the packed profile; else each
//! row has one path for all of them, and deep rows of little weight are left out. The texts `title`, `details`, `unzoom`,
//! `search` and `matched` have these IDs.

use std::collections::HashMap;
use std::io::{self, Write};

use super::colour::Palette;
use super::drawing::Drawing;
use super::fixed_colours::MARKER_COLOURS;
use super::frames::Strokes;
use super::layout::Layout;
use super::module_colours::{DARK, LIGHT, ModuleColours};
use super::options::{Background, Delta, MICROSECONDS, Options};
use super::packed_profile::{COLUMNS, PackedProfile, push_base64};
use super::rgb::Colour;
use super::text::{escape, visible};
use crate::Error;
use crate::markers;
use crate::profile::{FrameId, Weight, Weights};

/// The style of the picture, and that of the viewer. `tests/browser/bundle.js` makes the bundles.
const STYLES: [&str; 2] = [include_str!("viewer/picture.css"), include_str!("viewer.min.css")];

/// The parts of a graph that depend on the page that contains it.
#[derive(Clone, Copy)]
pub(crate) struct PageParts<'a> {
    /// Compressed data for the scripts of the page, with the class of their elements.
    pub(crate) data: &'a [(&'a str, &'a [u8])],
    /// The viewer's script.
    pub(crate) script: &'a str,
}

/// The parts of a file that contains only the graph.
pub(super) const STANDALONE: PageParts<'static> = PageParts { data: &[], script: include_str!("viewer.min.js") };

/// Hides the static frames before the browser renders them, because the viewer draws its own.
const EARLY_SCRIPT: &str = "document.currentScript.closest(\"svg\").classList.add(\"scripted\")";

/// The selector of the viewer's element, for rules with its properties.
const VIEWER: &str = ".fg.fg";

/// Number of bytes that one element contains as base64. XML readers reject longer texts.
const DATA_CHUNK: usize = 3 << 20;

/// Writes a drawing as an SVG file. `name` is the name of `out` in errors.
///
/// # Errors
/// [`Error::Invalid`] if the total weight is 0, and [`Error::Write`] if writing to `out` fails.
pub fn write(drawing: &Drawing, options: &Options, name: &str, out: &mut dyn Write) -> Result<(), Error> {
    check_drawable(drawing)?;
    let declaration = out.write_all(b"<?xml version=\"1.0\" standalone=\"no\"?>\n");
    declaration
        .and_then(|()| write_element(drawing, options, STANDALONE, out))
        .map_err(|error| Error::write(name, error))
}

/// Fails if there is nothing to draw.
pub(super) fn check_drawable(drawing: &Drawing) -> Result<(), Error> {
    match drawing.layout.total.after.is_zero() {
        true => Err(Error::Invalid("nothing to draw: all stacks have weight 0".to_owned())),
        false => Ok(()),
    }
}

/// Writes a drawing as an SVG element of a page.
///
/// # Errors
/// Fails if writing to `out` fails.
pub(crate) fn write_element(
    drawing: &Drawing,
    options: &Options,
    parts: PageParts<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    Image::new(drawing, options).write(parts, out)
}

/// A drawing with its options and its geometry in pixels.
pub(super) struct Image<'a> {
    pub(super) layout: &'a Layout,
    pub(super) options: &'a Options,
    pub(super) differential: bool,
    /// The self weights of functions, if the layout starts at the leaves of stacks.
    pub(super) self_weights: Option<HashMap<FrameId, Weights>>,
    pub(super) modules: &'a ModuleColours,
    packed: Option<&'a PackedProfile>,
    /// Number of rows above the one of all stacks.
    pub(super) rows: usize,
    /// The weight that the full width represents.
    pub(super) whole: Weight,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The height of the area above the frames.
    pub(super) top: f64,
    /// The height of the area below the frames.
    pub(super) bottom: f64,
    /// The unit of the weights.
    pub(super) count_name: &'a str,
}

impl<'a> Image<'a> {
    fn new(drawing: &'a Drawing, options: &'a Options) -> Self {
        let Drawing { layout, modules, packed, differential, is_reversed, .. } = drawing;
        let size = options.font_size;
        let has_on_cpu = options.scheme.palette.on_cpu().is_some();
        let has_markers = layout.marker_totals.iter().any(|weight| !weight.is_zero());
        let has_modules = options.scheme.palette == Palette::Module && !options.diffusion;
        let has_legend = *differential || has_on_cpu || has_markers || has_modules;
        let lines = usize::from(options.subtitle.is_some()) + usize::from(has_legend);
        let top = size * (3.0 + 2.0 * lines as f64);
        let bottom = size * 2.0 + 10.0;
        let rows = if packed.is_some() { layout.still_rows() } else { layout.depth() };
        let height = ((rows + 1) as f64 * f64::from(options.frame_height) + top + bottom).ceil();
        let whole = layout.total.after.max(options.total);
        let (width, packed) = (options.nominal_width(), packed.as_ref());
        let mut own = MARKER_COLOURS.iter().zip(layout.marker_own);
        let is_time = own.any(|((marker, _), weight)| markers::is_thread_state(marker) && !weight.is_zero());
        let count_name = options.count_name.as_deref().unwrap_or(if is_time { MICROSECONDS } else { "samples" });
        Self {
            layout,
            options,
            differential: *differential,
            self_weights: is_reversed.then(|| layout.first_weights()),
            modules,
            packed,
            rows,
            whole,
            width,
            height,
            top,
            bottom,
            count_name,
        }
    }

    fn write(&self, parts: PageParts<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::with_capacity(1 << 16);
        self.push_head(&mut text);
        self.push_captions(&mut text);
        out.write_all(&text)?;
        // The static frames come last, so that the viewer can start before they are loaded.
        if let Some(packed) = self.packed {
            write_packed_profile(packed, parts, out)?;
        }
        self.write_frames(out)?;
        out.write_all(b"</svg>\n")
    }

    fn write_frames(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = b"<g id=\"frames\" class=\"still\">\n".to_vec();
        self.push_root(&mut text);
        let mut strokes = Strokes::default();
        for frame in self.layout.frames.iter().filter(|frame| frame.depth < self.rows) {
            match self.is_merged(frame) {
                true => strokes.add(self, frame),
                false => self.push_frame(frame, &mut text),
            }
            if text.len() >= 1 << 16 {
                out.write_all(&text)?;
                text.clear();
            }
        }
        text.extend_from_slice(b"</g>\n");
        strokes.push(self, &mut text);
        out.write_all(&text)
    }

    /// Returns true if the file contains the whole profile, for the viewer.
    pub(super) fn is_packed(&self) -> bool {
        self.packed.is_some()
    }

    fn push_head(&self, text: &mut Vec<u8>) {
        let Options { font_family, font_size, notes, .. } = self.options;
        text.extend_from_slice(b"<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" class=\"flame-graph\"");
        if !self.options.name_attributes.is_empty() {
            push_attribute("xmlns:xlink", "http://www.w3.org/1999/xlink", text);
        }
        for (name, value) in [("width", self.width), ("height", self.height), ("font-size", *font_size)] {
            push_attribute(name, &value.to_string(), text);
        }
        push_attribute("viewBox", &format!("0 0 {} {}", self.width, self.height), text);
        push_attribute("font-family", font_family, text);
        self.push_settings(text);
        text.extend_from_slice(b">\n");
        if let Some(notes) = notes {
            // A comment must not contain two hyphens in a row.
            let notes = visible(notes.as_bytes()).replace("--", "- -").replace("--", "- -");
            text.extend_from_slice(format!("<!-- NOTES: {notes} -->\n").as_bytes());
        }
        text.extend_from_slice(b"<style>\n");
        let count = if self.packed.is_some() { 2 } else { 1 };
        for line in STYLES[..count].iter().flat_map(|style| style.lines()) {
            text.extend_from_slice(line.trim_start().as_bytes());
            text.push(b'\n');
        }
        self.push_option_styles(text);
        text.extend_from_slice(b"</style>\n");
        if self.packed.is_some() {
            text.extend_from_slice(format!("<script>{EARLY_SCRIPT}</script>\n").as_bytes());
        }
        let (top, bottom) = self.options.background(self.differential);
        let stops = format!("<stop offset=\"5%\" stop-color=\"{top}\"/><stop offset=\"95%\" stop-color=\"{bottom}\"/>");
        let gradient = format!(
            "<defs><linearGradient id=\"background\" y1=\"0\" y2=\"1\" x1=\"0\" x2=\"0\">{stops}</linearGradient></defs>\n"
        );
        text.extend_from_slice(gradient.as_bytes());
        text.extend_from_slice(
            b"<rect class=\"background\" width=\"100%\" height=\"100%\" fill=\"url(#background)\"/>\n",
        );
    }

    /// Appends CSS rules for the strokes of narrow frames and for colours from the options. These colours override those of
    /// the light and the dark mode.
    fn push_option_styles(&self, text: &mut Vec<u8>) {
        self.push_dark_style(text);
        let Options { search_color, ui_color, stroke_color, background, .. } = self.options;
        let flat_background = match background {
            Some(Background::Flat(colour)) => Some(*colour),
            _ => None,
        };
        let match_text = search_color.map(Colour::text_colour);
        let ui_text = ui_color.or(flat_background.map(Colour::text_colour));
        for (selector, property, value) in [
            (" .still path", "stroke-width", Some(self.stroke_width().to_string())),
            (" > .background", "fill", flat_background.map(|colour| colour.to_string())),
            (" > text, svg.flame-graph #legend text", "fill", ui_text.map(|colour| colour.to_string())),
            (" #frames rect", "stroke", stroke_color.map(|colour| colour.to_string())),
            (VIEWER, "--match", search_color.map(|colour| colour.to_string())),
            (VIEWER, "--match-ink", match_text.map(|colour| colour.to_string())),
            (VIEWER, "--graph-page", flat_background.map(|colour| colour.to_string())),
            (".fg.fg .graph", "color-scheme", flat_background.map(|colour| scheme_of(colour).to_owned())),
            (".fg.fg .graph", "--muted", flat_background.map(|_| "var(--ink)".to_owned())),
            (VIEWER, "--muted", ui_color.map(|colour| colour.to_string())),
            (VIEWER, "--stroke", stroke_color.map(|colour| colour.to_string())),
        ] {
            if let Some(value) = value {
                let root = if selector.starts_with(VIEWER) { "" } else { "svg.flame-graph" };
                let rule = format!("{root}{selector} {{ {property}: {value}; }}\n");
                text.extend_from_slice(rule.as_bytes());
            }
        }
    }

    /// Appends the rules that give a picture with colours by module gaps between frames, and the colours of the dark theme.
    fn push_dark_style(&self, text: &mut Vec<u8>) {
        let has_background = self.options.background.is_some();
        if self.options.scheme.palette != Palette::Module
            || self.options.diffusion
            || has_background
            || self.differential
        {
            return;
        }
        text.extend_from_slice(b".flame-graph .still > :not(.state) > rect { stroke: #f4f5f7; stroke-width: 0.6; }\n");
        text.extend_from_slice(b"@media (prefers-color-scheme: dark) {\n");
        text.extend_from_slice(b".flame-graph > .background { fill: #121519; }\n");
        text.extend_from_slice(b".flame-graph .still > :not(.state) > rect { stroke: #121519; }\n");
        text.extend_from_slice(b".flame-graph text { fill: #eef1f5; }\n");
        for (light, dark) in LIGHT.iter().zip(DARK) {
            text.extend_from_slice(format!(".flame-graph rect[fill=\"{light}\"] {{ fill: {dark}; }}\n").as_bytes());
        }
        text.extend_from_slice(b".flame-graph rect[fill=\"#dedede\"] { fill: #353535; }\n}\n");
    }

    /// Appends the settings of the viewer, as attributes of the root element.
    fn push_settings(&self, text: &mut Vec<u8>) {
        let Options { name_type, factor, .. } = self.options;
        let min_width = self.options.min_share() * self.options.frames_width();
        let (frames, names) = self.packed.map_or((0, 0), |packed| (packed.frame_count, packed.name_count));
        for (name, value) in [
            ("data-count-name", self.count_name.to_owned()),
            ("data-name-type", name_type.clone()),
            ("data-factor", factor.to_string()),
            ("data-frame-height", self.options.frame_height.to_string()),
            ("data-narrowest", min_width.to_string()),
            ("data-frames", frames.to_string()),
            ("data-names", names.to_string()),
            ("data-whole", self.whole.to_string()),
        ] {
            push_attribute(name, &value, text);
        }
        if self.differential {
            push_attribute("data-largest-delta", &self.largest_delta().to_string(), text);
        }
        for (name, is_set) in [
            ("data-fluid", self.options.width.is_none()),
            ("data-titled", self.options.title.is_some()),
            ("data-inverted", self.options.inverted),
            ("data-reversed", self.self_weights.is_some()),
            ("data-chart", self.options.is_chart),
            ("data-judged", self.differential && self.options.significances.is_given()),
            ("data-elided", self.options.vanished),
            ("data-negate", self.options.negate),
            ("data-self", self.options.delta == Delta::Own),
            ("data-diffusion", self.options.diffusion),
            ("data-keep-left", self.options.truncate_right),
        ] {
            if is_set {
                push_attribute(name, "yes", text);
            }
        }
    }
}

/// Returns the CSS colour scheme whose text can be read on a background.
fn scheme_of(background: Colour) -> &'static str {
    if background.is_light() { "light" } else { "dark" }
}

fn push_attribute(name: &str, value: &str, text: &mut Vec<u8>) {
    text.push(b' ');
    text.extend_from_slice(name.as_bytes());
    text.extend_from_slice(b"=\"");
    escape(&visible(value.as_bytes()), text);
    text.push(b'"');
}

fn write_packed_profile(packed: &PackedProfile, parts: PageParts<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (class, column) in COLUMNS.iter().zip(&packed.columns) {
        write_data(class, column, out)?;
    }
    write_data("names", &packed.names, out)?;
    if !packed.elements.is_empty() {
        out.write_all(b"<metadata class=\"elements\">")?;
        out.write_all(&packed.elements)?;
        out.write_all(b"</metadata>\n")?;
    }
    for (class, bytes) in parts.data {
        write_data(class, bytes, out)?;
    }
    out.write_all(b"<script><![CDATA[\n")?;
    out.write_all(parts.script.as_bytes())?;
    out.write_all(b"]]></script>\n")
}

/// Chromium reads text in a CDATA section in four fifths of the time that other text takes.
fn write_data(class: &str, bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::new();
    for chunk in bytes.chunks(DATA_CHUNK) {
        text.clear();
        text.extend_from_slice(format!("<metadata class=\"{class}\"><![CDATA[").as_bytes());
        push_base64(chunk, &mut text);
        text.extend_from_slice(b"]]></metadata>\n");
        out.write_all(&text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{STANDALONE, STYLES};

    #[test]
    fn script_and_style_need_no_escapes_in_xml() {
        assert!(!STANDALONE.script.contains("]]>"));
        assert!(STYLES.iter().all(|style| !style.contains(['<', '&'])));
    }

    /// Returns the FNV-1a hash that `tests/browser/bundle.js` writes into bundles.
    fn hash_sources(files: &[String]) -> String {
        let sources = files.iter().map(|file| fs::read(Path::new("lib").join(file)).expect(file));
        let hash =
            sources.flatten().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        format!("/* {hash:08x} */")
    }

    /// Returns the scripts of a folder that a list of the bundler names.
    fn bundled_files(bundler: &str, list: &str, folder: &str) -> Vec<String> {
        let (_, rest) = bundler.split_once(&format!("const {list} = [")).expect(list);
        let names = rest.split_once(']').expect(list).0.split('"').skip(1).step_by(2);
        names.map(|name| format!("{folder}/viewer/{name}.js")).collect()
    }

    #[test]
    fn bundles_are_up_to_date() {
        let bundler = fs::read_to_string("tests/browser/bundle.js").expect("the bundler");
        let viewer = bundled_files(&bundler, "VIEWER", "svg");
        let heatmap = bundled_files(&bundler, "HEATMAP", "heatmap");
        for (bundle, files) in [
            ("svg/viewer.min.js", [&viewer[..], &["svg/viewer/start.js".to_owned()]].concat()),
            ("svg/viewer.min.css", vec!["svg/viewer/viewer.css".to_owned()]),
            ("heatmap/viewer.min.js", [viewer, heatmap].concat()),
            ("heatmap/viewer.min.css", vec!["heatmap/viewer/heatmap.css".to_owned()]),
        ] {
            let text = fs::read_to_string(Path::new("lib").join(bundle)).expect(bundle);
            let problem = "is out of date; run: npm run --prefix tests/browser bundle";
            assert!(text.starts_with(&hash_sources(&files)), "lib/{bundle} {problem}");
        }
    }
}
