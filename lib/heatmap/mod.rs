//! Heatmaps: a page with a picture of the samples over time and, below it, the flame graph of the selected ones.
//!
//! The page contains the graph that [`svg`] draws, with its viewer. The samples are packed beside the stacks of the
//! graph. When another time is selected, the script of the page computes new weights of the stacks and passes them to
//! the viewer.

mod command;
mod samples;

use std::io::{self, Write};

use crate::Error;
use crate::collapse::{self, Timeline};
use crate::svg::{self, Drawing, PageParts};

const STYLE: &str = include_str!("viewer.min.css");
const SCRIPT: &str = include_str!("viewer.min.js");

/// The largest number of seconds that browsers can draw side by side.
const MAX_SECONDS: u64 = 32_000;

/// A second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Options of a heatmap.
#[derive(Clone, Debug)]
pub struct Options {
    /// The heading of the page.
    pub title: String,
    /// Number of rows into which the map divides a second.
    pub rows: u32,
    /// The appearance of the flame graph.
    pub graph: svg::Options,
    /// The options with which the input was read and samples were selected.
    pub input: collapse::Options,
}

/// Writes the page. `name` is the name of `out` in errors.
///
/// # Errors
/// [`Error::Invalid`] if there is nothing to draw or the samples span too much time, and [`Error::Write`] if writing to
/// `out` fails.
pub fn write(timeline: &Timeline, options: &Options, name: &str, out: &mut dyn Write) -> Result<(), Error> {
    check_drawable(timeline)?;
    let drawing = Drawing::from_profile(&timeline.profile, &options.graph)?;
    let packed = samples::pack(timeline, options.rows).map_err(|error| Error::write("memory", error))?;
    let input_attributes = command::attributes(timeline, options);
    write_page(&drawing, options, &input_attributes, &packed, out).map_err(|error| Error::write(name, error))
}

fn check_drawable(timeline: &Timeline) -> Result<(), Error> {
    let times = timeline.samples.iter().map(|sample| sample.time);
    let (Some(first), Some(last)) = (times.clone().min(), times.max()) else {
        return Err(Error::Invalid("no samples to draw: the input has none, or the options select none".to_owned()));
    };
    let (first, last) = (first / SECOND, last / SECOND);
    if last - first >= MAX_SECONDS {
        let span = last - first;
        let what =
            format!("the samples span {span} seconds, but at most {MAX_SECONDS} can be drawn; select some with --time");
        return Err(Error::Invalid(what));
    }
    if timeline.profile.total().after.is_zero() {
        return Err(Error::Invalid("nothing to draw: all samples have weight 0".to_owned()));
    }
    Ok(())
}

fn write_page(
    drawing: &Drawing,
    options: &Options,
    input_attributes: &[u8],
    packed: &[u8],
    out: &mut dyn Write,
) -> io::Result<()> {
    svg::write_page_head(&options.title, STYLE, out)?;
    out.write_all(b"<div class=\"heatmap\"")?;
    out.write_all(input_attributes)?;
    out.write_all(
        b"></div>\n<noscript>Selecting a time needs JavaScript. This is the flame graph of all samples.</noscript>\n",
    )?;
    let parts = PageParts { data: &[("samples", packed)], script: SCRIPT };
    svg::write_element(drawing, &options.graph, parts, out)?;
    out.write_all(svg::PAGE_END)
}

#[cfg(test)]
mod tests {
    use super::{SCRIPT, STYLE};

    #[test]
    fn scripts_and_style_need_no_escapes() {
        assert!(!SCRIPT.contains("]]>"));
        assert!(!STYLE.contains(['<', '&']));
    }
}
