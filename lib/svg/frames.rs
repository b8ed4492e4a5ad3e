//! Writes the drawn frames as SVG elements.

use super::captions::with_commas;
use super::colour;
use super::label::{label, truncate_right};
use super::layout::DrawnFrame;
use super::name_attributes::FrameElement;
use super::options::{Delta, SIDE_MARGIN};
use super::rgb::Colour;
use super::text::{escape, visible};
use super::write::Image;
use crate::markers::is_marker;
use crate::profile::Weight;

/// The width in pixels below which a frame is drawn as a grey stroke, which takes fewer bytes than a coloured
/// rectangle. Such frames cannot be told apart, and the viewer merges them.
const MIN_RECT_WIDTH: f64 = 0.5;

/// The longest name in the title of a frame, in bytes, so that one huge name is not repeated thousands of times.
const MAX_TITLE: usize = 4096;

impl Image<'_> {
    /// Appends the frame below all stacks, which has the full width.
    pub(super) fn push_root(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(b"<g><title>all (");
        escape(&format!("{}, 100%)", self.count(self.whole)), text);
        text.extend_from_slice(b"</title>");
        let colour = if self.differential { Colour(245, 245, 245) } else { Colour(222, 222, 222) };
        self.push_rect(0.0, 1.0, 0, colour, text);
        self.push_label(0.0, 0, colour, "all", text);
        text.extend_from_slice(b"</g>\n");
    }

    /// Appends a frame: a group of its title, its shape, and its label if that fits.
    pub(super) fn push_frame(&self, frame: &DrawnFrame, text: &mut Vec<u8>) {
        let full_name = self.layout.names.name(frame.name);
        let name = visible(colour::without_suffix(full_name));
        let element = self.options.name_attributes.get(full_name);
        let tag = element.map_or("g", FrameElement::tag);
        push_start_tag(tag, element, is_marker(full_name), text);
        text.extend_from_slice(b"<title>");
        if let Some(title) = element.and_then(|element| element.title.as_deref()) {
            escape(title, text);
        } else {
            escape(shortened(&name), text);
            self.push_numbers(frame, text);
        }
        text.extend_from_slice(b"</title>");
        let ((start, share), row) = (self.share(frame), frame.depth + 1);
        if self.is_stroke(frame) {
            self.push_stroke(start, share, row, text);
        } else {
            let colour = self.colour(frame, full_name);
            let width = self.push_rect(start, share, row, colour, text);
            let max_chars = ((width - 6.0) / (self.options.font_size * self.options.font_width)) as usize;
            let truncate = if self.options.truncate_right { truncate_right } else { label };
            let label = truncate(&name, max_chars);
            if !label.is_empty() {
                self.push_label(start, row, colour, &label, text);
            }
        }
        text.extend_from_slice(format!("</{tag}>\n").as_bytes());
    }

    /// Returns where a frame starts and how wide it is, as fractions of the full width.
    fn share(&self, frame: &DrawnFrame) -> (f64, f64) {
        let whole = self.whole.as_f64();
        (frame.start.as_f64() / whole, frame.total.after.as_f64() / whole)
    }

    /// Returns true for a frame that is too narrow for a rectangle.
    fn is_stroke(&self, frame: &DrawnFrame) -> bool {
        self.share(frame).1 * self.options.frames_width() < MIN_RECT_WIDTH
    }

    /// Returns true for a narrow frame that is part of the path of its row: its name is in the packed profile, and it has
    /// no attributes of its own.
    pub(super) fn is_merged(&self, frame: &DrawnFrame) -> bool {
        self.is_packed()
            && self.is_stroke(frame)
            && self.options.name_attributes.get(self.layout.names.name(frame.name)).is_none()
    }

    fn colour(&self, frame: &DrawnFrame, name: &[u8]) -> Colour {
        if self.differential {
            let largest = self.largest_delta().as_f64().max(f64::MIN_POSITIVE);
            return colour::differential(self.delta(frame) / largest);
        }
        match self.options.diffusion {
            true => colour::diffusion(frame.total.after.as_f64() / self.whole.as_f64()),
            false => self.options.scheme.colour_among(name, self.modules),
        }
    }

    /// Returns the largest difference of any frame, of the kind that determines colours.
    pub(super) fn largest_delta(&self) -> Weight {
        match self.options.delta {
            Delta::Total => self.layout.largest_delta,
            Delta::Own => self.layout.largest_own_delta,
        }
    }

    /// Returns the weight by which a frame grew, negative if it shrank. Swapped colours invert the sign.
    fn delta(&self, frame: &DrawnFrame) -> f64 {
        let weights = match self.options.delta {
            Delta::Total => frame.total,
            Delta::Own => match &self.self_weights {
                Some(weights) => weights.get(&frame.name).copied().unwrap_or_default(),
                None => frame.own,
            },
        };
        let size = weights.difference().as_f64();
        let grew = weights.after >= weights.before;
        if grew == self.options.swaps_colours() { -size } else { size }
    }

    /// Appends the count and percentage of a frame, and in a differential graph its change.
    fn push_numbers(&self, frame: &DrawnFrame, text: &mut Vec<u8>) {
        let whole = self.whole.as_f64();
        let share = 100.0 * frame.total.after.as_f64() / whole;
        escape(&format!(" ({}, {share:.2}%", self.count(frame.total.after)), text);
        if self.differential {
            let delta = 100.0 * self.delta(frame) / whole;
            let change = format!("{delta:+.2}");
            let is_zero = matches!(change.as_str(), "+0.00" | "-0.00");
            text.extend_from_slice(format!("; {}%", if is_zero { "0.00" } else { &change }).as_bytes());
        }
        text.push(b')');
    }

    /// Returns a weight with its unit: `1 sample`, `1,234 samples`.
    fn count(&self, weight: Weight) -> String {
        let number = with_commas(&format!("{:.0}", weight.as_f64() * self.options.factor));
        let unit = visible(self.count_name.as_bytes());
        let singular = unit.strip_suffix('s').filter(|singular| !singular.is_empty() && !singular.ends_with('s'));
        format!("{number} {}", singular.filter(|_| number == "1").unwrap_or(&unit))
    }

    /// Appends a rectangle and returns its width in pixels. `start` and `share` are fractions of the full width.
    fn push_rect(&self, start: f64, share: f64, row: usize, colour: Colour, text: &mut Vec<u8>) -> f64 {
        let (left, width) = self.extent(start, share);
        let height = self.options.frame_height.saturating_sub(1);
        let y = self.y(row);
        text.extend_from_slice(
            format!("<rect x=\"{left}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"").as_bytes(),
        );
        colour.write_to(text);
        text.extend_from_slice(b"\"/>");
        width
    }

    /// Appends the stroke of a narrow frame: half the bytes of a rectangle.
    fn push_stroke(&self, start: f64, share: f64, row: usize, text: &mut Vec<u8>) {
        let (left, width) = self.extent(start, share);
        let middle = self.y(row) + self.stroke_width() / 2.0;
        let width = width.to_string();
        text.extend_from_slice(format!("<path d=\"M{left} {middle}h{}\"/>", width.trim_start_matches('0')).as_bytes());
    }

    /// Returns the height of strokes: an even number, so that their middle has no fraction.
    pub(super) fn stroke_width(&self) -> f64 {
        f64::from(self.options.frame_height.saturating_sub(1) / 2 * 2).max(1.0)
    }

    /// Returns the left edge and the width of a frame in pixels, rounded to tenths. The width is at least 0.1.
    fn extent(&self, start: f64, share: f64) -> (f64, f64) {
        let (left, right) = (round_to_tenths(self.x(start)), round_to_tenths(self.x(start + share)));
        (left, round_to_tenths(right - left).max(0.1))
    }

    fn push_label(&self, start: f64, row: usize, colour: Colour, label: &str, text: &mut Vec<u8>) {
        let x = self.x(start) + 3.0;
        let y = self.y(row) + f64::from(self.options.frame_height) / 2.0 + self.options.font_size * 0.3;
        text.extend_from_slice(format!("<text x=\"{}\" y=\"{}\"", round_to_tenths(x), round_to_tenths(y)).as_bytes());
        if !colour.is_light() {
            text.extend_from_slice(b" fill=\"#fff\"");
        }
        text.push(b'>');
        escape(label, text);
        text.extend_from_slice(b"</text>");
    }

    fn x(&self, share: f64) -> f64 {
        SIDE_MARGIN + share * self.options.frames_width()
    }

    fn y(&self, row: usize) -> f64 {
        let height = f64::from(self.options.frame_height);
        match self.options.inverted {
            true => self.top + row as f64 * height,
            false => self.height - self.bottom - (row + 1) as f64 * height + 1.0,
        }
    }
}

fn round_to_tenths(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

/// The strokes of narrow frames, as one path for each row. As elements of their own they would take most of a large file, and
/// of the time to read it.
#[derive(Debug, Default)]
pub(super) struct Strokes {
    /// The extents in each row from left to right, in tenths of pixels.
    rows: Vec<Vec<(i64, i64)>>,
}

impl Strokes {
    /// Adds a frame. Frames of a row must be added from left to right.
    pub(super) fn add(&mut self, image: &Image<'_>, frame: &DrawnFrame) {
        let (start, share) = image.share(frame);
        let (left, width) = image.extent(start, share);
        let [left, width] = [left, width].map(|pixels| (pixels * 10.0).round() as i64);
        let row = frame.depth + 1;
        if self.rows.len() <= row {
            self.rows.resize(row + 1, Vec::new());
        }
        let strokes = &mut self.rows[row];
        match strokes.last_mut().filter(|last| last.1 >= left) {
            Some(last) => last.1 = last.1.max(left + width),
            None => strokes.push((left, left + width)),
        }
    }

    /// Appends the paths of all rows, if there are any.
    pub(super) fn push(&self, image: &Image<'_>, text: &mut Vec<u8>) {
        if self.rows.is_empty() {
            return;
        }
        text.extend_from_slice(b"<g class=\"still narrow\">\n");
        let strokes = self.rows.iter().enumerate().filter(|(_, strokes)| !strokes.is_empty());
        for (row, strokes) in strokes {
            let mut end = strokes[0].0;
            let middle = image.y(row) + image.stroke_width() / 2.0;
            text.extend_from_slice(format!("<path d=\"M{} {middle}", tenths(end)).as_bytes());
            for (left, right) in strokes {
                if *left > end {
                    text.extend_from_slice(format!("m{} 0", tenths(left - end)).as_bytes());
                }
                text.extend_from_slice(format!("h{}", tenths(right - left)).as_bytes());
                end = *right;
            }
            text.extend_from_slice(b"\"/>\n");
        }
        text.extend_from_slice(b"</g>\n");
    }
}

/// Formats tenths as a number with as few characters as possible.
fn tenths(number: i64) -> String {
    let text = (number as f64 / 10.0).to_string();
    text.strip_prefix('0').filter(|rest| !rest.is_empty()).map(str::to_owned).unwrap_or(text)
}

/// Appends the start tag of a frame's group. A marker has the class `state`.
fn push_start_tag(tag: &str, element: Option<&FrameElement>, is_marker: bool, text: &mut Vec<u8>) {
    text.extend_from_slice(format!("<{tag}").as_bytes());
    let class = element.and_then(|element| element.push_attributes(text));
    let marker_class = is_marker.then_some("state");
    let classes: Vec<_> = [marker_class, class].into_iter().flatten().collect();
    if !classes.is_empty() {
        text.extend_from_slice(b" class=\"");
        escape(&classes.join(" "), text);
        text.push(b'"');
    }
    text.push(b'>');
}

/// Cuts a name for a title.
fn shortened(name: &str) -> &str {
    let end = (0..=MAX_TITLE.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}
