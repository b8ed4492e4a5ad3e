//! Detects the format of an input from its first block.

use super::format::{Format, FormatReader};
use super::formats::{self, FORMATS, folded, headings};
use super::line_helpers::first_lines;
use super::options::Options;
use super::{text_kind, trial, unsupported};
use crate::Error;
use crate::input::Blocks;

/// Returns the format of an input, as given or detected. `None` if the input is blank.
///
/// # Errors
/// [`Error::Unreadable`] if no format matches.
pub(super) fn detect_format(input: &mut Blocks, options: &Options) -> Result<Option<&'static Format>, Error> {
    let name = input.name().to_owned();
    let head = input.head()?;
    if head.trim_ascii().is_empty() {
        return Ok(None);
    }
    if let Some(name) = options.format {
        return Ok(formats::get_format(name));
    }
    if let Some(explanation) = unsupported::explain(head) {
        return Err(Error::Unreadable { name, what: explanation.to_owned() });
    }
    // Names are arbitrary bytes, so folded text may contain a zero byte.
    if folded::is_certain(head) {
        return Ok(Some(&folded::FORMAT));
    }
    let mut found = find_formats(head);
    if let [format] = found[..]
        && let Some(other) = find_preceding(head, format)
    {
        found.insert(0, other);
    }
    match found[..] {
        [found] => Ok(Some(found)),
        [first, second, ..] => {
            let what = format!(
                "text of several formats ({} and {}); give each file by itself, or name the one that counts with --format",
                first.name, second.name
            );
            Err(Error::Unreadable { name, what })
        }
        [] => {
            let what = if head.iter().any(is_binary) { "a binary file" } else { text_kind::describe(head) };
            let what =
                format!("{what} of unknown format; name the format with --format, see fg-collapse --list-formats");
            Err(Error::Unreadable { name, what })
        }
    }
}

/// Returns the formats that recognize these first bytes of an input. Lines of text may look like those of a format by
/// chance, so the format's reader must be able to read most of them. There are several only if text of one format follows
/// that of another.
fn find_formats(head: &[u8]) -> Vec<&'static Format> {
    let is_binary = memchr::memchr(0, head).is_some();
    let mut found: Vec<&'static Format> = Vec::new();
    for format in FORMATS.iter().filter(|format| !is_binary || matches!(format.reader, FormatReader::Bytes(_))) {
        let is_folded = formats::is_folded(format);
        if is_folded && !found.is_empty() || !(format.recognizes)(head) {
            continue;
        }
        match format.reader {
            FormatReader::Lines(read) => {
                if headings::has_heading(head, format.name)
                    || trial::reads_most_lines(format.name, read, &first_whole_lines(head))
                {
                    found.push(format);
                }
            }
            FormatReader::Bytes(_) | FormatReader::Blocks { .. } if found.is_empty() => return vec![format],
            FormatReader::Bytes(_) | FormatReader::Blocks { .. } => {}
        }
    }
    found
}

/// Number of parts of the first bytes at whose ends [`find_preceding`] looks.
const PARTS: usize = 8;

/// Returns the format of text before the first line of the format that was found, whose reader would skip that text.
/// Without the rest, it is recognized.
fn find_preceding(head: &[u8], found: &Format) -> Option<&'static Format> {
    if !matches!(found.reader, FormatReader::Lines(_)) {
        return None;
    }
    let ends = (1..PARTS).filter_map(|part| memchr::memrchr(b'\n', &head[..head.len() / PARTS * part]));
    let starts = ends.map(|end| &head[..=end]).take_while(|start| !(found.recognizes)(start));
    let mut before = starts.filter_map(|start| find_formats(start).first().copied());
    before.find(|format| format.name != found.name && !formats::is_folded(format))
}

/// Returns the lines by which formats are detected, without one that may be cut.
fn first_whole_lines(head: &[u8]) -> Vec<u8> {
    let mut text: Vec<u8> = Vec::new();
    for line in first_lines(head) {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text
}

/// True for control characters that text does not contain. Escape sequences of terminals are allowed.
fn is_binary(byte: &u8) -> bool {
    byte.is_ascii_control() && !b"\t\n\x0c\r\x1b".contains(byte)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::path::{Path, PathBuf};

    use super::formats::FORMATS;
    use super::{folded, unsupported};
    use crate::input::Source;

    /// Returns all files below a folder.
    fn list_files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { list_files(&path) } else { vec![path] }).collect()
    }

    /// Returns the formats that claim an input by its first bytes. Folded text is claimed only if nothing else is.
    fn claims(head: &[u8]) -> Vec<&'static str> {
        let special = FORMATS.iter().filter(|format| (format.recognizes)(head) && format.name != "folded");
        let special: Vec<_> = special.map(|format| format.name).collect();
        match special.is_empty() {
            true if unsupported::explain(head).is_some() => vec!["none"],
            false if unsupported::explain(head).is_some() => [special, vec!["none"]].concat(),
            true if (folded::FORMAT.recognizes)(head) => vec!["folded"],
            false if folded::is_certain(head) => [special, vec!["folded"]].concat(),
            _ => special,
        }
    }

    #[test]
    fn no_two_formats_claim_the_same_input() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut claimed = 0;
        for path in
            [root.join("tests/data/collapse"), root.join("../shared/corpus")].iter().flat_map(|path| list_files(path))
        {
            let mut input = Source::File(path.clone()).open().unwrap();
            let head = input.head().unwrap().to_vec();
            let claims = claims(&head);
            assert!(claims.len() <= 1, "{}: {claims:?}", path.display());
            claimed += claims.len();
            // A file that is cut short is recognized as the same format or not at all.
            let mut start = Vec::new();
            input.take(2000).read_to_end(&mut start).unwrap();
            let early = super::tests::claims(&start);
            assert!(
                early.is_empty() || early == claims || claims.is_empty(),
                "{}: {early:?} {claims:?}",
                path.display()
            );
        }
        assert!(claimed >= FORMATS.len());
    }
}
