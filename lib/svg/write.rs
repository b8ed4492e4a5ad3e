//! Writing a drawing as one self-contained SVG.
//!
//! Others read these files too: each frame is a group in `frames` whose first child is its title,
//! `NAME (1,234 samples, 12.34%)`, and the texts `title`, `details`, `unzoom`, `search` and `matched` have these ids.

use std::io::{self, Write};

use super::colour::Colour;
use super::drawing::Drawing;
use super::layout::Layout;
use super::options::{Background, Delta, Options, SIDE};
use super::payload::{Payload, push_base64};
use super::text::{escape, visible};
use crate::Error;
use crate::profile::Weight;

const STYLE: &str = include_str!("viewer/viewer.css");
const SCRIPT: [&str; 9] = [
    include_str!("viewer/profile.js"),
    include_str!("viewer/transform.js"),
    include_str!("viewer/label.js"),
    include_str!("viewer/picture.js"),
    include_str!("viewer/search.js"),
    include_str!("viewer/actions.js"),
    include_str!("viewer/listen.js"),
    include_str!("viewer/sight.js"),
    include_str!("viewer/viewer.js"),
];

/// What a file that holds nothing but the graph adds to it, and what a page around the graph may add.
#[derive(Clone, Copy)]
pub(crate) struct Additions<'a> {
    /// What else is packed into the file, by kind.
    pub(crate) packed: &'a [(&'a str, &'a [u8])],
    /// The rest of the script, which starts the viewer.
    pub(crate) scripts: &'a [&'a str],
}

const ALONE: Additions<'static> = Additions { packed: &[], scripts: &[include_str!("viewer/start.js")] };

/// Where scripts run, the still frames need no place on the page: the viewer draws its own.
const EARLY_SCRIPT: &str = "document.currentScript.closest(\"svg\").classList.add(\"scripted\")";

/// How much base64 stands in one element: XML readers refuse longer texts.
const PACKED_CHUNK: usize = 3 << 20;

/// Writes a drawing as a file of its own.
///
/// # Errors
/// [`Error::Invalid`] if it weighs nothing, and those of `out` as [`Error::Write`] on `name`.
pub fn write(drawing: &Drawing, options: &Options, name: &str, out: &mut dyn Write) -> Result<(), Error> {
    if drawing.layout.total.after.is_zero() {
        return Err(Error::Invalid("nothing to draw: no stack weighs anything".to_owned()));
    }
    let declared = out.write_all(b"<?xml version=\"1.0\" standalone=\"no\"?>\n");
    declared.and_then(|()| write_element(drawing, options, ALONE, out)).map_err(|error| Error::write(name, error))
}

/// Writes a drawing as an element, for a page around it.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_element(
    drawing: &Drawing,
    options: &Options,
    additions: Additions<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    Picture::new(drawing, options).write(additions, out)
}

/// A drawing and the place it takes.
pub(super) struct Picture<'a> {
    pub(super) layout: &'a Layout,
    pub(super) options: &'a Options,
    pub(super) differential: bool,
    payload: Option<&'a Payload>,
    /// The weight that the whole width stands for.
    pub(super) whole: Weight,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl<'a> Picture<'a> {
    fn new(drawing: &'a Drawing, options: &'a Options) -> Self {
        let Drawing { layout, payload, differential, .. } = drawing;
        let size = options.font_size;
        let tells_states = options.scheme.palette.on_cpu().is_some();
        let has_legend = *differential || tells_states || layout.states.iter().any(|weight| !weight.is_zero());
        let lines = usize::from(options.subtitle.is_some()) + usize::from(has_legend);
        let top = size * (3.0 + 2.0 * lines as f64);
        let bottom = size * 2.0 + 10.0;
        let rows = (layout.depth() + 1) as f64;
        let height = (rows * f64::from(options.frame_height) + top + bottom).ceil();
        let whole = layout.total.after.max(options.total);
        let (width, payload) = (options.nominal_width(), payload.as_ref());
        Self { layout, options, differential: *differential, payload, whole, width, height, top, bottom }
    }

    fn write(&self, additions: Additions<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::with_capacity(1 << 16);
        self.push_head(&mut text);
        self.push_captions(&mut text);
        out.write_all(&text)?;
        // The still frames come last: where scripts run, the reader need not wait for them.
        if let Some(payload) = self.payload {
            write_payload(payload, additions, out)?;
        }
        self.write_frames(out)?;
        out.write_all(b"</svg>\n")
    }

    fn write_frames(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = b"<g id=\"frames\" class=\"still\">\n".to_vec();
        self.push_root(&mut text);
        for frame in &self.layout.frames {
            self.push_frame(frame, &mut text);
            if text.len() >= 1 << 16 {
                out.write_all(&text)?;
                text.clear();
            }
        }
        text.extend_from_slice(b"</g>\n");
        out.write_all(&text)
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
            // A comment must not hold two hyphens in a row.
            let notes = visible(notes.as_bytes()).replace("--", "- -").replace("--", "- -");
            text.extend_from_slice(format!("<!-- NOTES: {notes} -->\n").as_bytes());
        }
        text.extend_from_slice(format!("<style>\n{STYLE}").as_bytes());
        self.push_own_style(text);
        text.extend_from_slice(b"</style>\n");
        if self.payload.is_some() {
            text.extend_from_slice(format!("<script>{EARLY_SCRIPT}</script>\n").as_bytes());
        }
        let (upper, lower) = self.options.background(self.differential);
        let stops =
            format!("<stop offset=\"5%\" stop-color=\"{upper}\"/><stop offset=\"95%\" stop-color=\"{lower}\"/>");
        let gradient = format!(
            "<defs><linearGradient id=\"background\" y1=\"0\" y2=\"1\" x1=\"0\" x2=\"0\">{stops}</linearGradient></defs>\n"
        );
        text.extend_from_slice(gradient.as_bytes());
        text.extend_from_slice(
            b"<rect class=\"background\" width=\"100%\" height=\"100%\" fill=\"url(#background)\"/>\n",
        );
    }

    /// The strokes of narrow frames, and the colours that were asked for, which hold by day and by night.
    fn push_own_style(&self, text: &mut Vec<u8>) {
        let Options { search_color, ui_color, stroke_color, background, .. } = self.options;
        let backdrop = match background {
            Some(Background::Flat(colour)) => Some(*colour),
            _ => None,
        };
        // Who asks for one colour does not say what can be read on it.
        let ink = |ground: Colour| if ground.is_light() { Colour(0, 0, 0) } else { Colour(255, 255, 255) };
        for (selector, property, value) in [
            (" #frames path", "stroke-width", Some(self.stroke_width().to_string())),
            (" .match rect", "fill", search_color.map(|colour| colour.to_string())),
            (" .match text", "fill", search_color.map(|colour| ink(colour).to_string())),
            (" > .background", "fill", backdrop.map(|colour| colour.to_string())),
            (
                " > text, svg.flame-graph #legend text",
                "fill",
                ui_color.or(backdrop.map(ink)).map(|colour| colour.to_string()),
            ),
            (" #frames rect", "stroke", stroke_color.map(|colour| colour.to_string())),
        ] {
            if let Some(value) = value {
                let rule = format!("svg.flame-graph{selector} {{ {property}: {value}; }}\n");
                text.extend_from_slice(rule.as_bytes());
            }
        }
    }

    /// What the viewer must know, as attributes of the root.
    fn push_settings(&self, text: &mut Vec<u8>) {
        let Options { count_name, name_type, factor, .. } = self.options;
        let narrowest = self.options.narrowest_share() * (self.width - 2.0 * SIDE);
        let (frames, names) = self.payload.map_or((0, 0), |payload| (payload.frames_count, payload.names_count));
        for (name, value) in [
            ("data-count-name", count_name.clone()),
            ("data-name-type", name_type.clone()),
            ("data-factor", factor.to_string()),
            ("data-frame-height", self.options.frame_height.to_string()),
            ("data-narrowest", narrowest.to_string()),
            ("data-frames", frames.to_string()),
            ("data-names", names.to_string()),
            ("data-top", self.top.to_string()),
            ("data-whole", self.whole.to_string()),
        ] {
            push_attribute(name, &value, text);
        }
        if self.differential {
            push_attribute("data-largest-delta", &self.largest_delta().to_string(), text);
        }
        for (name, set) in [
            ("data-fluid", self.options.width.is_none()),
            ("data-inverted", self.options.inverted),
            ("data-negate", self.options.swaps_colours()),
            ("data-self", self.options.delta == Delta::Own),
            ("data-diffusion", self.options.diffusion),
            ("data-keep-left", self.options.keep_left),
        ] {
            if set {
                push_attribute(name, "yes", text);
            }
        }
    }
}

fn push_attribute(name: &str, value: &str, text: &mut Vec<u8>) {
    text.push(b' ');
    text.extend_from_slice(name.as_bytes());
    text.extend_from_slice(b"=\"");
    escape(&visible(value.as_bytes()), text);
    text.push(b'"');
}

fn write_payload(payload: &Payload, additions: Additions<'_>, out: &mut dyn Write) -> io::Result<()> {
    write_packed("stacks", &payload.stacks, out)?;
    write_packed("names", &payload.names, out)?;
    if !payload.elements.is_empty() {
        out.write_all(b"<metadata class=\"elements\">")?;
        out.write_all(&payload.elements)?;
        out.write_all(b"</metadata>\n")?;
    }
    for (kind, bytes) in additions.packed {
        write_packed(kind, bytes, out)?;
    }
    write_script(additions.scripts, out)
}

fn write_packed(class: &str, bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::new();
    for chunk in bytes.chunks(PACKED_CHUNK) {
        text.clear();
        text.extend_from_slice(format!("<metadata class=\"{class}\">").as_bytes());
        push_base64(chunk, &mut text);
        text.extend_from_slice(b"</metadata>\n");
        out.write_all(&text)?;
    }
    Ok(())
}

fn write_script(scripts: &[&str], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"<script><![CDATA[\n(() => {\n\"use strict\";\n")?;
    for part in SCRIPT.iter().chain(scripts) {
        out.write_all(part.as_bytes())?;
    }
    out.write_all(b"})();\n]]></script>\n")
}

#[cfg(test)]
mod tests {
    use super::{SCRIPT, STYLE};

    #[test]
    fn script_and_style_stand_in_xml_as_they_are() {
        assert!(SCRIPT.iter().all(|part| !part.contains("]]>")));
        assert!(!STYLE.contains(['<', '&']));
    }
}
