//! Drawing: a laid-out profile as one self-contained SVG.
//!
//! Others read these files too: each frame is a group in `frames` whose first child is its title,
//! `NAME (1,234 samples, 12.34%)`, and the texts `title`, `details`, `unzoom`, `search` and `matched` have these ids.

use std::io::{self, Write};

use super::colour::{self, Colour};
use super::layout::{Drawn, Layout};
use super::options::{MinWidth, Options, SIDE};
use super::payload::{Payload, push_base64};
use super::text::{escape, label, visible};
use crate::Error;
use crate::profile::{Profile, Weight};

const STYLE: &str = include_str!("viewer/viewer.css");
const SCRIPT: [&str; 8] = [
    include_str!("viewer/profile.js"),
    include_str!("viewer/transform.js"),
    include_str!("viewer/label.js"),
    include_str!("viewer/picture.js"),
    include_str!("viewer/search.js"),
    include_str!("viewer/actions.js"),
    include_str!("viewer/viewer.js"),
    include_str!("viewer/start.js"),
];

/// Where scripts run, the drawn frames need no place on the page: the viewer is about to draw its own. With many frames
/// this is a third of the time to load.
const EARLY_SCRIPT: &str = "document.currentScript.closest(\"svg\").classList.add(\"scripted\")";

/// How much base64 stands in one element: XML readers refuse longer texts.
const PACKED_CHUNK: usize = 3 << 20;

/// The longest name in a drawn frame's title, in bytes: one huge name must not be repeated thousands of times.
const LONGEST_TITLE: usize = 4096;

/// Draws a profile.
///
/// # Errors
/// [`Error::Refused`] if it weighs nothing, [`Error::Overflow`], and those of `out` as [`Error::Write`].
pub fn write(profile: &Profile, options: &Options, name: &str, out: &mut dyn Write) -> Result<(), Error> {
    let layout = Layout::of(profile, options.narrowest_share(), options.total)?;
    if layout.total.after.is_zero() {
        return Err(Error::Refused("nothing to draw: no stack weighs anything".to_owned()));
    }
    let payload = Payload::of(profile, options.scheme).map_err(|error| Error::write(name, error))?;
    let picture = Picture::new(&layout, options, profile.is_differential(), payload.names_count);
    picture.write(&payload, out).map_err(|error| Error::write(name, error))
}

struct Picture<'a> {
    layout: &'a Layout,
    options: &'a Options,
    differential: bool,
    /// How many names the whole profile has.
    names: usize,
    /// The weight that the whole width stands for.
    whole: Weight,
    width: f64,
    height: f64,
    top: f64,
    bottom: f64,
}

impl<'a> Picture<'a> {
    fn new(layout: &'a Layout, options: &'a Options, differential: bool, names: usize) -> Self {
        let size = options.font_size;
        let top = size * if options.subtitle.is_some() { 5.0 } else { 3.0 };
        let bottom = size * 2.0 + 10.0;
        let rows = (layout.depth() + 1) as f64;
        let height = (rows * f64::from(options.frame_height) + top + bottom).ceil();
        let whole = layout.total.after.max(options.total);
        Self { layout, options, differential, names, whole, width: options.nominal_width(), height, top, bottom }
    }

    fn write(&self, payload: &Payload, out: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::with_capacity(1 << 16);
        self.push_head(&mut text);
        self.push_captions(&mut text);
        text.extend_from_slice(b"<g id=\"frames\">\n");
        self.push_root(&mut text);
        for frame in &self.layout.frames {
            self.push_frame(frame, &mut text);
            if text.len() >= 1 << 16 {
                out.write_all(&text)?;
                text.clear();
            }
        }
        text.extend_from_slice(b"</g>\n");
        out.write_all(&text)?;
        write_packed("stacks", &payload.stacks, out)?;
        write_packed("names", &payload.names, out)?;
        write_script(out)
    }

    fn push_head(&self, text: &mut Vec<u8>) {
        let Options { font_family, font_size, notes, scheme, .. } = self.options;
        text.extend_from_slice(b"<?xml version=\"1.0\" standalone=\"no\"?>\n");
        text.extend_from_slice(b"<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" class=\"flame-graph\"");
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
        text.extend_from_slice(format!("<style>\n{STYLE}</style>\n<script>{EARLY_SCRIPT}</script>\n").as_bytes());
        let (upper, lower) = match self.differential {
            true => ("#f8f8f8", "#e8e8e8"),
            false => scheme.background(),
        };
        let stops =
            format!("<stop offset=\"5%\" stop-color=\"{upper}\"/><stop offset=\"95%\" stop-color=\"{lower}\"/>");
        let gradient = format!(
            "<defs><linearGradient id=\"background\" y1=\"0\" y2=\"1\" x1=\"0\" x2=\"0\">{stops}</linearGradient></defs>"
        );
        text.extend_from_slice(gradient.as_bytes());
        text.extend_from_slice(
            b"\n<rect class=\"background\" width=\"100%\" height=\"100%\" fill=\"url(#background)\"/>\n",
        );
    }

    /// What the viewer must know, as attributes of the root.
    fn push_settings(&self, text: &mut Vec<u8>) {
        let Options { count_name, name_type, factor, .. } = self.options;
        let narrowest = self.options.narrowest_share() * (self.width - 2.0 * SIDE);
        let frames = self.layout.frames.len() as u64 + self.layout.folded;
        for (name, value) in [
            ("data-count-name", count_name.clone()),
            ("data-name-type", name_type.clone()),
            ("data-factor", factor.to_string()),
            ("data-frame-height", self.options.frame_height.to_string()),
            ("data-narrowest", narrowest.to_string()),
            ("data-frames", frames.to_string()),
            ("data-names", self.names.to_string()),
            ("data-top", self.top.to_string()),
            ("data-whole", self.whole.to_string()),
        ] {
            push_attribute(name, &value, text);
        }
        if self.differential {
            push_attribute("data-largest-delta", &self.layout.largest_delta.to_string(), text);
        }
        for (name, set) in [
            ("data-fluid", self.options.width.is_none()),
            ("data-inverted", self.options.inverted),
            ("data-negate", self.options.negate),
        ] {
            if set {
                push_attribute(name, "yes", text);
            }
        }
    }

    fn push_captions(&self, text: &mut Vec<u8>) {
        let size = self.options.font_size;
        let heading = format!("font-size=\"{}\" text-anchor=\"middle\"", size + 5.0);
        let (middle, low) = (self.width / 2.0, self.height - self.bottom / 2.0);
        push_text("title", middle, size * 2.0, &heading, self.options.heading(), text);
        if let Some(subtitle) = &self.options.subtitle {
            push_text("subtitle", middle, size * 4.0, "text-anchor=\"middle\"", subtitle, text);
        }
        push_text("details", SIDE, low, "", " ", text);
        push_text("unzoom", SIDE, size * 2.0, "class=\"hide\" visibility=\"hidden\"", "Reset Zoom", text);
        let right = self.width - SIDE;
        push_text("search", right, size * 2.0, "text-anchor=\"end\" visibility=\"hidden\"", "Search", text);
        push_text("matched", right, low, "text-anchor=\"end\"", " ", text);
        if self.layout.folded > 0 {
            let least = match self.options.min_width {
                MinWidth::Pixels(pixels) => format!("{pixels} px"),
                MinWidth::Percent(percent) => format!("{percent}%"),
            };
            let frames = crate::diagnostics::plural(self.layout.folded, "frame");
            let folded = format!("{} narrower than {least} not drawn", with_commas(&frames));
            push_text("folded", right, low, "text-anchor=\"end\"", &folded, text);
        }
    }

    fn push_root(&self, text: &mut Vec<u8>) {
        let count = self.count(self.whole);
        text.extend_from_slice(b"<g><title>all (");
        escape(&format!("{count} {}, 100%)", visible(self.options.count_name.as_bytes())), text);
        text.extend_from_slice(b"</title>");
        self.push_rect(
            0.0,
            1.0,
            0,
            if self.differential { Colour(245, 245, 245) } else { Colour(222, 222, 222) },
            text,
        );
        text.extend_from_slice(b"</g>\n");
    }

    fn push_frame(&self, frame: &Drawn, text: &mut Vec<u8>) {
        let full = self.layout.names.name(frame.name);
        let name = visible(colour::without_kind(full));
        text.extend_from_slice(b"<g");
        if colour::is_state(full) {
            text.extend_from_slice(b" class=\"state\"");
        }
        text.extend_from_slice(b"><title>");
        escape(shortened(&name), text);
        self.push_numbers(frame, text);
        text.extend_from_slice(b"</title>");
        let whole = self.whole.as_f64();
        let (start, share) = (frame.start.as_f64() / whole, frame.total.after.as_f64() / whole);
        let colour = self.colour(frame, full);
        let width = self.push_rect(start, share, frame.depth + 1, colour, text);
        let room = ((width - 6.0) / (self.options.font_size * self.options.font_width)) as usize;
        let label = label(&name, room);
        if !label.is_empty() {
            self.push_label(start, frame.depth + 1, colour, &label, text);
        }
        text.extend_from_slice(b"</g>\n");
    }

    fn colour(&self, frame: &Drawn, name: &[u8]) -> Colour {
        if !self.differential {
            return self.options.scheme.colour(name);
        }
        let largest = self.layout.largest_delta.as_f64().max(f64::MIN_POSITIVE);
        colour::differential(self.delta(frame) / largest)
    }

    /// By how much the frame grew, or with `--negate` shrank.
    fn delta(&self, frame: &Drawn) -> f64 {
        let size = frame.total.difference().as_f64();
        let grew = frame.total.after >= frame.total.before;
        if grew == self.options.negate { -size } else { size }
    }

    fn push_numbers(&self, frame: &Drawn, text: &mut Vec<u8>) {
        let whole = self.whole.as_f64();
        let share = 100.0 * frame.total.after.as_f64() / whole;
        let count_name = visible(self.options.count_name.as_bytes());
        escape(&format!(" ({} {count_name}, {share:.2}%", self.count(frame.total.after)), text);
        if self.differential {
            let delta = 100.0 * self.delta(frame) / whole;
            let shown = format!("{delta:+.2}");
            let nothing = matches!(shown.as_str(), "+0.00" | "-0.00");
            text.extend_from_slice(format!("; {}%", if nothing { "0.00" } else { &shown }).as_bytes());
        }
        text.push(b')');
    }

    fn count(&self, weight: Weight) -> String {
        with_commas(&format!("{:.0}", weight.as_f64() * self.options.factor))
    }

    /// Returns the drawn width.
    fn push_rect(&self, start: f64, share: f64, row: usize, colour: Colour, text: &mut Vec<u8>) -> f64 {
        let (left, right) = (tenths(self.x(start)), tenths(self.x(start + share)));
        let width = (right - left).max(0.1);
        let height = self.options.frame_height.saturating_sub(1);
        let y = self.y(row);
        text.extend_from_slice(
            format!("<rect x=\"{left:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{height}\" fill=\"").as_bytes(),
        );
        colour.write_to(text);
        text.extend_from_slice(b"\"/>");
        width
    }

    fn push_label(&self, start: f64, row: usize, colour: Colour, label: &str, text: &mut Vec<u8>) {
        let x = self.x(start) + 3.0;
        let y = self.y(row) + f64::from(self.options.frame_height) / 2.0 + self.options.font_size * 0.3;
        text.extend_from_slice(format!("<text x=\"{x:.1}\" y=\"{y:.1}\"").as_bytes());
        if !colour.is_light() {
            text.extend_from_slice(b" fill=\"#fff\"");
        }
        text.push(b'>');
        escape(label, text);
        text.extend_from_slice(b"</text>");
    }

    fn x(&self, share: f64) -> f64 {
        SIDE + share * (self.width - 2.0 * SIDE)
    }

    fn y(&self, row: usize) -> f64 {
        let height = f64::from(self.options.frame_height);
        match self.options.inverted {
            true => self.top + row as f64 * height,
            false => self.height - self.bottom - (row + 1) as f64 * height + 1.0,
        }
    }
}

fn tenths(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

fn shortened(name: &str) -> &str {
    let end = (0..=LONGEST_TITLE.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

/// `1234 frames` as `1,234 frames`.
fn with_commas(number: &str) -> String {
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    let mut shown = String::with_capacity(number.len() + digits / 3);
    for (at, character) in number.chars().enumerate() {
        if at > 0 && at < digits && (digits - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(character);
    }
    shown
}

fn push_attribute(name: &str, value: &str, text: &mut Vec<u8>) {
    text.push(b' ');
    text.extend_from_slice(name.as_bytes());
    text.extend_from_slice(b"=\"");
    escape(&visible(value.as_bytes()), text);
    text.push(b'"');
}

fn push_text(id: &str, x: f64, y: f64, attributes: &str, content: &str, text: &mut Vec<u8>) {
    let space = if attributes.is_empty() { "" } else { " " };
    text.extend_from_slice(format!("<text id=\"{id}\" x=\"{x}\" y=\"{y}\"{space}{attributes}>").as_bytes());
    escape(&visible(content.as_bytes()), text);
    text.extend_from_slice(b"</text>\n");
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

fn write_script(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"<script><![CDATA[\n(() => {\n\"use strict\";\n")?;
    for part in SCRIPT {
        out.write_all(part.as_bytes())?;
    }
    out.write_all(b"})();\n]]></script>\n</svg>\n")
}

#[cfg(test)]
mod tests {
    use super::{SCRIPT, STYLE, with_commas};

    #[test]
    fn thousands_are_set_apart() {
        for (number, expected) in
            [("0", "0"), ("999", "999"), ("1000", "1,000"), ("1234567 frames", "1,234,567 frames")]
        {
            assert_eq!(with_commas(number), expected);
        }
    }

    #[test]
    fn script_and_style_stand_in_xml_as_they_are() {
        assert!(SCRIPT.iter().all(|part| !part.contains("]]>")));
        assert!(!STYLE.contains(['<', '&']));
    }
}
