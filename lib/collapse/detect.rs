//! Detects the format of an input from its first block.

use bstr::ByteSlice as _;

use super::format::{Format, FormatReader};
use super::formats::{self, FORMATS, folded, headings};
use super::line_helpers::first_lines;
use super::options::Options;
use super::{text_kind, trial, unsupported};
use crate::Error;
use crate::bytes::strip_bom;
use crate::input::Blocks;

/// Returns the format of an input, as given or detected. `None` if the input is blank. Blank lines before a text whose
/// format is not recognized because of them are skipped.
///
/// # Errors
/// [`Error::Unreadable`] if no format matches.
pub(super) fn detect_format(input: &mut Blocks, options: &Options) -> Result<Option<&'static Format>, Error> {
    input.drop_colours()?;
    let head = input.head()?;
    if head.trim_ascii().is_empty() {
        return Ok(None);
    }
    if let Some(format) = options.format.and_then(formats::get_format) {
        if !(format.recognizes)(head) {
            input.skip_blank_lines()?;
        }
        return Ok(Some(format));
    }
    let found = detect(head);
    let found = if found.is_err() && input.skip_blank_lines()? { detect(input.head()?) } else { found };
    found.map(Some).map_err(|what| Error::Unreadable { name: input.name().to_owned(), what })
}

/// Returns the format of an input that begins with these bytes, or a message.
fn detect(head: &[u8]) -> Result<&'static Format, String> {
    if let Some(explanation) = unsupported::explain(head) {
        return Err(explanation.to_owned());
    }
    // Names are arbitrary bytes, so folded text may contain a zero byte. JSON without a line end is no frame.
    let is_document = matches!(head.first(), Some(b'{' | b'[')) && formats::find_document(head).is_some();
    if folded::is_certain(head) && !is_document {
        return Ok(&folded::FORMAT);
    }
    let mut found = find_formats(head);
    if let [format] = found[..]
        && let Some(other) = find_preceding(head, format)
    {
        found.insert(0, other);
    }
    match found[..] {
        [found] => Ok(found),
        [first, second, ..] => Err(format!(
            "text of several formats ({} and {}); give each file by itself, or name the one that counts with --format",
            first.name, second.name
        )),
        [] => {
            let what = if head.iter().any(is_binary) { "a binary file" } else { text_kind::describe(head) };
            let advice = match what {
                text_kind::STRACE => " without stacks; run strace with -k",
                text_kind::LOG => "; if it contains a profile, give its lines alone, without the time before each",
                _ => " of unknown format; name the format with --format, see fg-collapse --list-formats",
            };
            Err(format!("{what}{advice}"))
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

/// Most lines of a text that are checked for being the first one of a document.
const MAX_STARTS: usize = 16;

/// Returns the format of a document that begins with one of the first lines of a text, and the index of that line. The text
/// is a part of an input of the format `own`, whose reader does not take it.
pub(super) fn find_other_document(text: &[u8], own: &str) -> Option<(u64, &'static str)> {
    let (mut is_possible, mut starts) = (true, 0);
    for (line, index) in text.lines_with_terminator().zip(0..) {
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        let is_blank = line.trim_ascii().is_empty();
        is_possible |= index < MAX_STARTS / 2 || matches!(line.first(), Some(b'{' | b'[' | b'<'));
        if is_possible && !is_blank && starts < MAX_STARTS {
            starts += 1;
            let found = find_document_of(strip_bom(&text[start..]), own);
            if found.is_some() {
                return found.map(|format| (index as u64, format));
            }
        }
        // A document may follow a blank line.
        is_possible = is_blank;
    }
    folded::find_stacks(text).filter(|_| own != folded::FORMAT.name).map(|index| (index, folded::FORMAT.name))
}

/// Returns the format of a text, other than `own`, if it is certainly a profile.
fn find_document_of(text: &[u8], own: &str) -> Option<&'static str> {
    let is_found = |format: &&&Format| {
        (format.recognizes)(text)
            && match format.reader {
                FormatReader::Lines(read) => trial::finds_stacks(format.name, read, text),
                FormatReader::Bytes(_) | FormatReader::Blocks { .. } => true,
            }
    };
    let mut others = FORMATS.iter().filter(|format| format.name != own && !formats::is_folded(format));
    others.find(is_found).map(|format| format.name)
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
