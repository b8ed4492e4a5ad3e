//! The words around the frames: headings, legend, controls.

use super::colour::{self, Colour, OFF_CPU, STATES};
use super::options::{MinWidth, SIDE};
use super::text::{escape, visible};
use super::write::Picture;
use crate::markers;
use crate::profile::Weight;

impl Picture<'_> {
    pub(super) fn push_captions(&self, text: &mut Vec<u8>) {
        let size = self.options.font_size;
        let heading = format!("font-size=\"{}\" text-anchor=\"middle\"", size + 5.0);
        let (middle, low) = (self.width / 2.0, self.height - self.bottom / 2.0);
        push_text("title", middle, size * 2.0, &heading, self.options.heading(), text);
        if let Some(subtitle) = &self.options.subtitle {
            push_text("subtitle", middle, size * 4.0, "text-anchor=\"middle\"", subtitle, text);
        }
        self.push_legend(text);
        push_text("details", SIDE, low, "", " ", text);
        push_text("unzoom", SIDE, size * 2.0, "class=\"hide\" visibility=\"hidden\"", "Reset Zoom", text);
        let right = self.width - SIDE;
        push_text("search", right, size * 2.0, "text-anchor=\"end\" visibility=\"hidden\"", "Search", text);
        push_text("matched", right, low, "text-anchor=\"end\"", " ", text);
        let undrawn = self.layout.undrawn();
        if !undrawn.is_zero() {
            let least = match self.options.min_width {
                MinWidth::Pixels(pixels) => format!("{pixels} px"),
                MinWidth::Percent(percent) => format!("{percent}%"),
            };
            let share = self.share(undrawn);
            let share = if share == "0.00%" { "<0.01%" } else { &share };
            let folded = format!("{share} in frames narrower than {least}, not drawn");
            push_text("folded", right, low, "text-anchor=\"end\"", &folded, text);
        }
    }

    /// What the colours of states and differences mean, and how much of the weight is in such states.
    fn push_legend(&self, text: &mut Vec<u8>) {
        let mut entries: Vec<(Colour, String)> = Vec::new();
        let (red, blue) = (colour::differential(1.0), colour::differential(-1.0));
        match (self.differential, self.options.vanished, self.options.negate) {
            (false, ..) => {}
            (_, true, negate) => entries.push((if negate { red } else { blue }, "vanished".to_owned())),
            (_, _, true) => entries.extend([(red, "shrank".to_owned()), (blue, "grew".to_owned())]),
            (_, _, false) => entries.extend([(red, "grew".to_owned()), (blue, "shrank".to_owned())]),
        }
        if let Some(colour) = self.options.scheme.palette.on_cpu().filter(|_| !self.differential) {
            let others = self.layout.leaves.iter().take(OFF_CPU).map(|weight| weight.millionths()).sum();
            let on_cpu = self.layout.total.after.saturating_sub(Weight::from_millionths(others));
            entries.push((colour, format!("on CPU {}", self.share(on_cpu))));
        }
        let weights = self.layout.states.into_iter().zip(self.layout.leaves);
        for ((state, colour), (anywhere, leaf)) in STATES.iter().zip(weights) {
            if !anywhere.is_zero() {
                entries.push((*colour, self.state_entry(state, anywhere, leaf)));
            }
        }
        if entries.is_empty() {
            return;
        }
        let size = self.options.font_size;
        let (mut x, y) = (SIDE, self.top - size * 1.2);
        text.extend_from_slice(b"<g id=\"legend\">\n");
        for (colour, words) in entries {
            let top = y - size * 0.85;
            let swatch =
                format!("<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{size}\" height=\"{size}\" fill=\"{colour}\"/>");
            text.extend_from_slice(swatch.as_bytes());
            text.extend_from_slice(format!("<text x=\"{:.1}\" y=\"{y:.1}\">", x + size * 1.4).as_bytes());
            escape(&words, text);
            text.extend_from_slice(b"</text>\n");
            x += size * (2.4 + self.options.font_width * words.len() as f64);
        }
        text.extend_from_slice(b"</g>\n");
    }

    /// What is said of a state that stands in stacks of one weight and ends stacks of another.
    fn state_entry(&self, state: &[u8], anywhere: Weight, leaf: Weight) -> String {
        // Frames that have only a module's name count, too.
        let name = if state == markers::UNKNOWN { "no symbol".into() } else { visible(state) };
        let within = format!("in {} of {}", self.share(anywhere), visible(self.options.count_name.as_bytes()));
        match leaf {
            Weight::ZERO => format!("{name} {within}"),
            _ if leaf == anywhere => format!("{name} {}", self.share(leaf)),
            _ => format!("{name}: self {}, {within}", self.share(leaf)),
        }
    }

    fn share(&self, weight: Weight) -> String {
        format!("{:.2}%", 100.0 * weight.as_f64() / self.whole.as_f64())
    }
}

/// `1234 frames` as `1,234 frames`.
pub(super) fn with_commas(number: &str) -> String {
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

fn push_text(id: &str, x: f64, y: f64, attributes: &str, content: &str, text: &mut Vec<u8>) {
    let space = if attributes.is_empty() { "" } else { " " };
    text.extend_from_slice(format!("<text id=\"{id}\" x=\"{x}\" y=\"{y}\"{space}{attributes}>").as_bytes());
    escape(&visible(content.as_bytes()), text);
    text.extend_from_slice(b"</text>\n");
}

#[cfg(test)]
mod tests {
    use super::with_commas;

    #[test]
    fn thousands_are_set_apart() {
        for (number, expected) in
            [("0", "0"), ("999", "999"), ("1000", "1,000"), ("1234567 frames", "1,234,567 frames")]
        {
            assert_eq!(with_commas(number), expected);
        }
    }
}
