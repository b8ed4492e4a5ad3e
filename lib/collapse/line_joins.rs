//! Finds documents that begin within a line, as `cat` joins files if the first one has no last line end.

use memchr::memmem::Finder;

use super::detect;
use super::formats::headings;

/// The byte order mark of UTF-8.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// What JSON and XML begin with.
const MARKUP: [&[u8]; 4] = [b"{\"", b"[{", b"{\n", b"<?xml"];

/// Most places within the lines of an input that are checked for being the beginning of JSON or XML. Logs have many.
const MAX_CHECKS: u32 = 16;

/// Most bytes by which JSON and XML are recognized.
const MAX_HEAD: usize = 128 << 10;

/// A place within a line at which another document begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineJoin {
    /// Its offset in the block.
    pub(super) offset: usize,
    /// The format, if it is not that of the input.
    pub(super) other: Option<&'static str>,
}

/// Finds such places in the blocks of an input.
#[derive(Debug)]
pub(super) struct LineJoins {
    format: &'static str,
    /// The starts of headings of the input's own format.
    headings: Vec<Finder<'static>>,
    markup: [Finder<'static>; 4],
    /// Number of places that were checked for being JSON or XML.
    checks: u32,
}

impl LineJoins {
    pub(super) fn new(format: &'static str) -> Self {
        let headings = headings::starts_within_lines(format).map(Finder::new).collect();
        Self { format, headings, markup: MARKUP.map(Finder::new), checks: 0 }
    }

    /// Returns the first such place in a block at or after an offset.
    pub(super) fn find(&mut self, block: &[u8], start: usize) -> Option<LineJoin> {
        let Self { format, headings, markup, checks } = self;
        let own = headings.iter().filter_map(|finder| {
            let mut places = places_within_lines(block, start, finder);
            places.find(|offset| {
                let line = start + memchr::memrchr(b'\n', &block[start..*offset]).map_or(0, |end| end + 1);
                is_own_heading(&block[*offset..], format) && !is_own_heading(&block[line..], format)
            })
        });
        let own = own.min().map(|offset| LineJoin { offset, other: None });
        let mut places: Vec<usize> = markup
            .iter()
            .flat_map(|finder| places_within_lines(block, start, finder).take(MAX_CHECKS as usize))
            .collect();
        places.sort_unstable();
        let is_first = |offset: &usize| own.is_none_or(|own| *offset < own.offset);
        let others = places.into_iter().filter(|offset| is_first(offset) && begins_markup(&block[*offset..]));
        let mut others = others.filter(|_| {
            *checks += 1;
            *checks <= MAX_CHECKS
        });
        let other = others.find_map(|offset| {
            let text = &block[offset..block.len().min(offset + MAX_HEAD)];
            detect::find_markup_at(text).map(|format| LineJoin { offset, other: Some(format) })
        });
        other.or(own)
    }
}

/// Returns the places of a text in a block, from an offset on, that are not at the beginning of a line.
fn places_within_lines<'a>(block: &'a [u8], start: usize, finder: &'a Finder<'_>) -> impl Iterator<Item = usize> + 'a {
    let places = finder.find_iter(&block[start..]).map(move |place| start + place);
    places.filter(move |place| !begins_line(&block[start..*place]))
}

/// Returns true if the text after these bytes begins a line, perhaps after a byte order mark.
fn begins_line(before: &[u8]) -> bool {
    matches!(before.strip_suffix(BOM).unwrap_or(before).last(), None | Some(b'\n' | b'\r'))
}

/// Returns true unless a brace is the last character of a line and the next line is no member of a JSON object.
fn begins_markup(text: &[u8]) -> bool {
    text.strip_prefix(b"{\n").is_none_or(|next| next.trim_ascii_start().starts_with(b"\""))
}

fn is_own_heading(text: &[u8], format: &str) -> bool {
    let line = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
    headings::find(line.strip_suffix(b"\r").unwrap_or(line), text).is_some_and(|heading| heading.format == format)
}

#[cfg(test)]
mod tests {
    use super::{LineJoin, LineJoins};

    #[test]
    fn finds_headings_and_json_behind_other_text() {
        let json = "{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"f\"}}],\n \"startTime\":1}";
        for (format, before, text, other) in [
            ("dotnet-stack", "  a!f()", "Thread (0x12):\n  a!g()\n", None),
            ("massif", "heap_tree=empty", "desc: x\ncmd: x\ntime_unit: i\n", None),
            ("simpleperf", "  symbol: poll", "sample:\n  event_type: cpu-cycles\n", None),
            ("eflame", "(<0.91.0>);a:f/7", "<0.90.0>;b:g/3\n", None),
            ("gdb", "#1 main ()", json, Some("cpuprofile")),
        ] {
            let block = format!("{text}{before}{text}");
            let expected = Some(LineJoin { offset: text.len() + before.len(), other });
            assert_eq!(LineJoins::new(format).find(block.as_bytes(), text.len()), expected, "{format}");
        }
    }

    #[test]
    fn finds_nothing_at_the_beginning_of_lines_or_in_other_formats() {
        for (format, text) in [
            ("dotnet-stack", "Thread (0x12):\n  a!g()\nThread (0x13):\n"),
            ("jstack", "  a!f()Thread (0x12):\n  a!g()\n"),
            ("massif", "desc: x\ncmd: desc: y\ntime_unit: i\n"),
            ("rprof", "line profiling: sample.interval=20000\n"),
            ("eflame", "(<0.91.0>);gen_server:loop/7\n"),
            ("vsprof", "hello\n\u{feff}Level,Function Name,Number of Calls\n"),
            ("java-exceptions", "INFO got {\"nodes\":3}\nINFO got {\n"),
        ] {
            assert_eq!(LineJoins::new(format).find(text.as_bytes(), 0), None, "{text}");
        }
    }
}
