//! The drawn frames as SVG.

use super::captions::with_commas;
use super::colour::{self, Colour};
use super::layout::Drawn;
use super::name_attributes::Element;
use super::options::{Delta, SIDE};
use super::text::{self, escape, visible};
use super::write::Picture;
use crate::profile::Weight;

/// What is narrower, in pixels, is drawn as a grey stroke, without a colour and with fewer bytes: nobody can tell it from
/// its neighbours, and the viewer folds such frames together.
const TOO_NARROW: f64 = 0.5;

/// The longest name in a drawn frame's title, in bytes: one huge name must not be repeated thousands of times.
const LONGEST_TITLE: usize = 4096;

impl Picture<'_> {
    pub(super) fn push_root(&self, text: &mut Vec<u8>) {
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

    pub(super) fn push_frame(&self, frame: &Drawn, text: &mut Vec<u8>) {
        let full = self.layout.names.name(frame.name);
        let name = visible(colour::without_kind(full));
        let element = self.options.name_attributes.get(full);
        let tag = element.map_or("g", Element::tag);
        text.extend_from_slice(format!("<{tag}").as_bytes());
        let class = element.and_then(|element| element.push_attributes(text));
        let state = colour::is_state(full).then_some("state");
        for (class, before) in [state, class].into_iter().flatten().zip([" class=\"", " "]) {
            text.extend_from_slice(before.as_bytes());
            escape(class, text);
        }
        if state.is_some() || class.is_some() {
            text.push(b'"');
        }
        text.extend_from_slice(b"><title>");
        if let Some(title) = element.and_then(|element| element.title.as_deref()) {
            escape(title, text);
        } else {
            escape(shortened(&name), text);
            self.push_numbers(frame, text);
        }
        text.extend_from_slice(b"</title>");
        let whole = self.whole.as_f64();
        let (start, share) = (frame.start.as_f64() / whole, frame.total.after.as_f64() / whole);
        if share * (self.width - 2.0 * SIDE) < TOO_NARROW {
            self.push_stroke(start, share, frame.depth + 1, text);
        } else {
            let colour = self.colour(frame, full);
            let width = self.push_rect(start, share, frame.depth + 1, colour, text);
            let room = ((width - 6.0) / (self.options.font_size * self.options.font_width)) as usize;
            let label = if self.options.keep_left { text::head(&name, room) } else { text::label(&name, room) };
            if !label.is_empty() {
                self.push_label(start, frame.depth + 1, colour, &label, text);
            }
        }
        text.extend_from_slice(format!("</{tag}>\n").as_bytes());
    }

    fn colour(&self, frame: &Drawn, name: &[u8]) -> Colour {
        if self.differential {
            let largest = self.largest_delta().as_f64().max(f64::MIN_POSITIVE);
            return colour::differential(self.delta(frame) / largest);
        }
        match self.options.diffusion {
            true => colour::diffused(frame.total.after.as_f64() / self.whole.as_f64()),
            false => self.options.scheme.colour(name),
        }
    }

    /// The largest difference that there is.
    pub(super) fn largest_delta(&self) -> Weight {
        match self.options.delta {
            Delta::Total => self.layout.largest_delta,
            Delta::Own => self.layout.largest_own_delta,
        }
    }

    /// By how much the frame grew, or with `--negate` shrank.
    fn delta(&self, frame: &Drawn) -> f64 {
        let weights = match self.options.delta {
            Delta::Total => frame.total,
            Delta::Own => frame.own,
        };
        let size = weights.difference().as_f64();
        let grew = weights.after >= weights.before;
        if grew == self.options.swaps_colours() { -size } else { size }
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

    /// A frame that is too narrow to be told from others: half the bytes of a rectangle.
    fn push_stroke(&self, start: f64, share: f64, row: usize, text: &mut Vec<u8>) {
        let (left, width) = self.extent(start, share);
        let middle = self.y(row) + self.stroke_width() / 2.0;
        let width = width.to_string();
        text.extend_from_slice(format!("<path d=\"M{left} {middle}h{}\"/>", width.trim_start_matches('0')).as_bytes());
    }

    /// How high such strokes are: even, so that their middles have no fractions.
    pub(super) fn stroke_width(&self) -> f64 {
        f64::from(self.options.frame_height.saturating_sub(1) / 2 * 2).max(1.0)
    }

    /// Where a frame begins and how wide it is, in tenths of a pixel and at least one.
    fn extent(&self, start: f64, share: f64) -> (f64, f64) {
        let (left, right) = (tenths(self.x(start)), tenths(self.x(start + share)));
        (left, tenths(right - left).max(0.1))
    }

    fn push_label(&self, start: f64, row: usize, colour: Colour, label: &str, text: &mut Vec<u8>) {
        let x = self.x(start) + 3.0;
        let y = self.y(row) + f64::from(self.options.frame_height) / 2.0 + self.options.font_size * 0.3;
        text.extend_from_slice(format!("<text x=\"{}\" y=\"{}\"", tenths(x), tenths(y)).as_bytes());
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
