//! The text around the frames: headings, legend, controls.

use super::colour::{self, Palette};
use super::fixed_colours::{MARKER_COLOURS, OFF_CPU_COUNT};
use super::module_colours::Class;
use super::options::{MICROSECONDS, MinWidth, SIDE_MARGIN};
use super::rgb::Colour;
use super::text::{escape, visible};
use super::write::Image;
use crate::markers;
use crate::profile::Weight;

impl Image<'_> {
    /// Appends all text around the frames. The viewer finds the controls by ID and fills in their text.
    pub(super) fn push_captions(&self, text: &mut Vec<u8>) {
        let size = self.options.font_size;
        let heading = format!("font-size=\"{}\" text-anchor=\"middle\"", size + 5.0);
        let (middle, bottom) = (self.width / 2.0, self.height - self.bottom / 2.0);
        push_text("title", middle, size * 2.0, &heading, self.options.heading(), text);
        if let Some(subtitle) = &self.options.subtitle {
            push_text("subtitle", middle, size * 4.0, "text-anchor=\"middle\"", subtitle, text);
        }
        self.push_legend(text);
        push_text("details", SIDE_MARGIN, bottom, "", " ", text);
        push_text("unzoom", SIDE_MARGIN, size * 2.0, "class=\"hide\" visibility=\"hidden\"", "Reset Zoom", text);
        let right = self.width - SIDE_MARGIN;
        push_text("search", right, size * 2.0, "text-anchor=\"end\" visibility=\"hidden\"", "Search", text);
        push_text("matched", right, bottom, "text-anchor=\"end\"", " ", text);
        if let Some(note) = self.undrawn_note() {
            push_text("folded", right, bottom, "text-anchor=\"end\"", &note, text);
        }
    }

    /// Says what is not drawn. `None` if all is.
    fn undrawn_note(&self) -> Option<String> {
        let narrow = self.layout.undrawn();
        let narrow = (!narrow.is_zero()).then(|| {
            let min_width = match self.options.min_width {
                MinWidth::Pixels(pixels) => format!("{pixels} px"),
                MinWidth::Percent(percent) => format!("{percent}%"),
            };
            format!("{} in frames narrower than {min_width}", self.small_percentage(narrow))
        });
        let rows = self.layout.depth() - self.rows;
        let deep = (rows > 0)
            .then(|| format!("{} in {rows} deeper rows", self.small_percentage(self.layout.weight_from(self.rows))));
        let parts: Vec<String> = [deep, narrow].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{}, not drawn", parts.join(", ")))
    }

    fn small_percentage(&self, weight: Weight) -> String {
        let share = self.percentage(weight);
        if share == "0.00%" { "<0.01%".to_owned() } else { share }
    }

    /// Appends the legend, if it has entries.
    fn push_legend(&self, text: &mut Vec<u8>) {
        let entries = self.legend_entries();
        if entries.is_empty() {
            return;
        }
        let size = self.options.font_size;
        let (mut x, y) = (SIDE_MARGIN, self.top - size * 1.2);
        let widths = entries.iter().map(|(_, label)| self.entry_width(label)).collect::<Vec<_>>();
        let shown = count_fitting(&widths, self.width - 2.0 * SIDE_MARGIN, self.entry_width("… 99 more"));
        let hidden = entries.len() - shown;
        text.extend_from_slice(b"<g id=\"legend\">\n");
        for (colour, label) in entries.into_iter().take(shown) {
            let top = y - size * 0.85;
            let swatch =
                format!("<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{size}\" height=\"{size}\" fill=\"{colour}\"/>");
            text.extend_from_slice(swatch.as_bytes());
            text.extend_from_slice(format!("<text x=\"{:.1}\" y=\"{y:.1}\">", x + size * 1.4).as_bytes());
            escape(&label, text);
            text.extend_from_slice(b"</text>\n");
            x += self.entry_width(&label);
        }
        if hidden > 0 {
            text.extend_from_slice(format!("<text x=\"{x:.1}\" y=\"{y:.1}\">… {hidden} more</text>\n").as_bytes());
        }
        text.extend_from_slice(b"</g>\n");
    }

    /// Returns the width of an entry of the legend with the gap after it.
    fn entry_width(&self, label: &str) -> f64 {
        self.options.font_size * (2.4 + self.options.font_width * label.chars().count() as f64)
    }

    /// Returns the colours that need an explanation, with their labels. A marker's label contains its share of the
    /// total. Modules come last, because there may be room for some of them only.
    fn legend_entries(&self) -> Vec<(Colour, String)> {
        let mut entries: Vec<(Colour, String)> = Vec::new();
        let (red, blue) = (colour::differential(1.0), colour::differential(-1.0));
        match (self.differential, self.options.vanished, self.options.negate) {
            (false, ..) => {}
            (_, true, negate) => entries.push((if negate { red } else { blue }, "vanished".to_owned())),
            (_, _, true) => entries.extend([(red, "shrank".to_owned()), (blue, "grew".to_owned())]),
            (_, _, false) => entries.extend([(red, "grew".to_owned()), (blue, "shrank".to_owned())]),
        }
        if let Some(colour) = self.options.scheme.palette.on_cpu().filter(|_| !self.differential) {
            let off_cpu = self.layout.marker_own.iter().take(OFF_CPU_COUNT).map(|weight| weight.millionths()).sum();
            let on_cpu = self.layout.total.after.saturating_sub(Weight::from_millionths(off_cpu));
            entries.push((colour, format!("on CPU {}", self.percentage(on_cpu))));
        }
        let weights = self.layout.marker_totals.into_iter().zip(self.layout.marker_own);
        for ((marker, colour), (total, own)) in MARKER_COLOURS.iter().zip(weights) {
            if !total.is_zero() {
                let class = self.options.scheme.class(marker, self.modules).filter(|_| !self.differential);
                entries.push((class.map_or(*colour, Class::colour), self.marker_label(marker, total, own)));
            }
        }
        if self.options.scheme.palette == Palette::Module && !self.options.diffusion && !self.differential {
            entries.extend(self.modules.legend());
        }
        entries
    }

    /// Returns the label of a marker: its inclusive share, its self share, or both if they differ.
    fn marker_label(&self, marker: &[u8], total: Weight, own: Weight) -> String {
        // The weights of `[unknown]` include frames that have only a module's name.
        let name = if marker == markers::UNKNOWN { "no symbol".into() } else { visible(marker) };
        let unit = if self.count_name == MICROSECONDS { "time" } else { self.count_name };
        let inclusive = format!("in {} of {}", self.percentage(total), visible(unit.as_bytes()));
        match own {
            Weight::ZERO => format!("{name} {inclusive}"),
            _ if own == total => format!("{name} {}", self.percentage(own)),
            _ => format!("{name}: self {}, {inclusive}", self.percentage(own)),
        }
    }

    fn percentage(&self, weight: Weight) -> String {
        format!("{:.2}%", 100.0 * weight.as_f64() / self.whole.as_f64())
    }
}

/// Returns the number of entries that fit into `room` from the left. If not all fit, there is also room for `note`.
fn count_fitting(widths: &[f64], room: f64, note: f64) -> usize {
    if widths.iter().sum::<f64>() <= room {
        return widths.len();
    }
    let mut end = note;
    widths.iter().take_while(|width| (end += *width, end <= room).1).count()
}

/// Inserts commas between the thousands of the number that a text starts with: `1234 frames` becomes `1,234 frames`.
pub(super) fn with_commas(text: &str) -> String {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut result = String::with_capacity(text.len() + digits / 3);
    for (index, character) in text.chars().enumerate() {
        if index > 0 && index < digits && (digits - index).is_multiple_of(3) {
            result.push(',');
        }
        result.push(character);
    }
    result
}

fn push_text(id: &str, x: f64, y: f64, attributes: &str, content: &str, text: &mut Vec<u8>) {
    let space = if attributes.is_empty() { "" } else { " " };
    text.extend_from_slice(format!("<text id=\"{id}\" x=\"{x}\" y=\"{y}\"{space}{attributes}>").as_bytes());
    escape(&visible(content.as_bytes()), text);
    text.extend_from_slice(b"</text>\n");
}

#[cfg(test)]
mod tests {
    use super::{count_fitting, with_commas};

    #[test]
    fn an_entry_that_does_not_fit_leaves_room_for_a_note() {
        for (room, expected) in [(30.0, 3), (29.0, 2), (25.0, 2), (24.0, 1), (3.0, 0)] {
            assert_eq!(count_fitting(&[10.0; 3], room, 5.0), expected, "{room}");
        }
    }

    #[test]
    fn separates_thousands() {
        for (text, expected) in [("0", "0"), ("999", "999"), ("1000", "1,000"), ("1234567 frames", "1,234,567 frames")]
        {
            assert_eq!(with_commas(text), expected);
        }
    }
}
