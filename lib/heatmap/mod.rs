//! When samples were taken: a page with a map of the seconds and, beneath it, the flame graph of what is selected there.
//!
//! The page is HTML and not SVG, for it has a canvas (an hour is 180,000 cells) and a form. In it stands the very graph
//! that [`svg`] draws, with its viewer; the samples are packed beside the graph's stacks, and the page's script
//! hands the viewer new weights for them whenever another part of the map is selected.

mod command;
mod samples;

use std::io::{self, Write};

use crate::Error;
use crate::collapse::{self, Timeline};
use crate::svg::{self, Drawing, PageParts, escape, visible};

const STYLE: &str = include_str!("viewer/heatmap.css");
const SCRIPTS: [&str; 5] = [
    include_str!("viewer/samples.js"),
    include_str!("viewer/command.js"),
    include_str!("viewer/map.js"),
    include_str!("viewer/page.js"),
    include_str!("viewer/start.js"),
];

/// As many seconds as browsers can draw side by side.
const MOST_SECONDS: u64 = 32_000;

/// How the page looks.
#[derive(Clone, Debug)]
pub struct Options {
    /// The heading.
    pub title: String,
    /// Into how many rows a second is divided.
    pub rows: u32,
    /// The flame graph.
    pub graph: svg::Options,
    /// How the samples were chosen.
    pub choice: collapse::Options,
}

/// Writes the page.
///
/// # Errors
/// [`Error::Invalid`] if there is nothing to draw, or more than fits; those of `out` as [`Error::Write`] on `name`.
pub fn write(timeline: &Timeline, options: &Options, name: &str, out: &mut dyn Write) -> Result<(), Error> {
    let times = || timeline.samples.iter().map(|sample| sample.time / samples::SECOND);
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return Err(Error::Invalid("no samples to draw, so no picture".to_owned()));
    };
    if last - first >= MOST_SECONDS {
        let what = format!(
            "the samples span {} seconds, of which {MOST_SECONDS} can be drawn: --time takes a part",
            last - first
        );
        return Err(Error::Invalid(what));
    }
    if timeline.profile.total().after.is_zero() {
        return Err(Error::Invalid("nothing to draw: no sample weighs anything".to_owned()));
    }
    let drawing = Drawing::from_profile(&timeline.profile, &options.graph)?;
    let packed = samples::pack(timeline, options.rows);
    let packed = packed.map_err(|error| Error::write("memory", error))?;
    let chosen = command::attributes(timeline, options);
    write_page(&drawing, options, &chosen, &packed, out).map_err(|error| Error::write(name, error))
}

fn write_page(
    drawing: &Drawing,
    options: &Options,
    chosen: &[u8],
    packed: &[u8],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut title = Vec::new();
    escape(&visible(options.title.as_bytes()), &mut title);
    let title = String::from_utf8_lossy(&title);
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n{CONTROLS}<div class=\"heatmap\""
    )?;
    out.write_all(chosen)?;
    write!(out, " tabindex=\"0\" role=\"application\" aria-describedby=\"keys\"></div>\n{WORDS}")?;
    let parts = PageParts { data: &[("samples", packed)], scripts: &SCRIPTS };
    svg::write_element(drawing, &options.graph, parts, out)?;
    out.write_all(b"</body>\n</html>\n")
}

/// What stands above the map.
const CONTROLS: &str = "<p>
<label><input type=\"radio\" name=\"kind\" id=\"span\" checked> select a span of time</label>
<label><input type=\"radio\" name=\"kind\" id=\"rectangle\"> the same part of several seconds</label>
<label>of <select id=\"thread\"></select></label>
</p>
";

/// What stands between the map and the graph.
const WORDS: &str = "<p id=\"cell\" role=\"status\"></p>
<p id=\"keys\">Drag, or go with the arrows and press Enter where the selection begins and where it ends; with Shift, \
another selection to compare the first with. Escape selects everything.</p>
<noscript><p>The map needs JavaScript; without it there is the flame graph of all samples.</p></noscript>
<div id=\"selections\"></div>
";

#[cfg(test)]
mod tests {
    use super::{SCRIPTS, STYLE};

    #[test]
    fn script_and_style_stand_in_the_page_as_they_are() {
        assert!(SCRIPTS.iter().all(|part| !part.contains("]]>")));
        assert!(!STYLE.contains(['<', '&']));
    }
}
