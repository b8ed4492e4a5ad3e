//! Detects the format of an input from its first block.

use bstr::ByteSlice as _;

use super::document::SkippedLines;
use super::format::{Format, FormatReader};
use super::formats::json::start::StartEnd;
use super::formats::{self, FORMATS, folded, headings, json};
use super::line_helpers::first_lines;
use super::options::Options;
use super::{mixed_text, text_kind, trial, unsupported};
use crate::Error;
use crate::bytes::strip_bom;
use crate::input::Blocks;

/// The format of an input, as given or detected.
pub(super) struct Detected {
    pub(super) format: &'static Format,
    /// The lines before the profile that are no part of it. They were skipped.
    pub(super) text_before: SkippedLines,
}

impl Detected {
    /// Returns the format of an input without other text before the profile.
    fn new(format: &'static Format) -> Self {
        Self { format, text_before: SkippedLines::default() }
    }
}

/// Returns the format of an input. `None` if the input is blank. Blank lines and a few lines of other text before a text
/// whose format is not recognized because of them are skipped.
///
/// # Errors
/// [`Error::Unreadable`] if no format matches.
pub(super) fn detect_format(input: &mut Blocks, options: &Options) -> Result<Option<Detected>, Error> {
    input.drop_colours()?;
    let head = input.head()?;
    if head.trim_ascii().is_empty() {
        return Ok(None);
    }
    if let Some(format) = options.format.and_then(formats::get_format) {
        if !format.recognizes(head) {
            let missing = formats::explain_missing_fields(format, head).map(str::to_owned);
            if let Some(what) = missing.or_else(|| json::start::describe_other(head, format)) {
                return Err(Error::Unreadable { name: input.name().to_owned(), what });
            }
            input.skip_blank_lines()?;
        }
        if !matches!(format.reader, FormatReader::Bytes(_)) {
            check_line_ends(input)?;
        }
        return Ok(Some(Detected::new(format)));
    }
    if let Some(format) = detect_json(input)? {
        return Ok(Some(Detected::new(format)));
    }
    check_line_ends(input)?;
    let found = detect(input.head()?, 0);
    let found = match found {
        Err(_) if input.skip_blank_lines()? => {
            let lines = input.skipped_lines();
            detect(input.head()?, lines)
        }
        found => found,
    };
    match found {
        Ok(format) => Ok(Some(Detected::new(format))),
        Err(what) => match find_after_text(input.head()?) {
            Some(Start { format, lines, text, offset }) => {
                let text_before = SkippedLines { first: text.first + input.skipped_lines(), ..text };
                input.skip_start(offset, lines);
                Ok(Some(Detected { format, text_before }))
            }
            None => Err(Error::Unreadable { name: input.name().to_owned(), what }),
        },
    }
}

/// Returns an error if the lines of a text end with a carriage return alone, as those of no program do that writes profiles.
///
/// # Errors
/// [`Error::Unreadable`].
fn check_line_ends(input: &mut Blocks) -> Result<(), Error> {
    let head = input.head()?;
    let has_returns_only = memchr::memchr(b'\n', head).is_none() && memchr::memchr(b'\r', head.trim_ascii()).is_some();
    if !has_returns_only || head.iter().any(text_kind::is_control) {
        return Ok(());
    }
    let what = "its lines end with a carriage return alone; convert them: tr '\\r' '\\n' < FILE | fg-collapse";
    Err(Error::Unreadable { name: input.name().to_owned(), what: what.to_owned() })
}

/// Returns the format of an input that is JSON; `None` if it is none, or if other text follows a value of no format. Text of
/// other formats is not looked for within JSON.
///
/// The beginning of the input tells the format, unless the keys that do come late: then the whole of it is parsed, once.
///
/// # Errors
/// [`Error::Unreadable`] if the input is JSON of no format.
fn detect_json(input: &mut Blocks) -> Result<Option<&'static Format>, Error> {
    let head = input.head()?;
    let Some(start) = json::start::parse(&head[..head.len().min(json::start::DETECTION_BYTES)]) else {
        return Ok(None);
    };
    let format = match start.end {
        _ if start.format.is_some() => start.format,
        StartEnd::Before => return Ok(None),
        StartEnd::AtEnd => None,
        StartEnd::Behind => json::start::parse(input.whole_head()?).and_then(|start| start.format),
    };
    match format {
        Some(_) => Ok(format),
        None => {
            let known = unsupported::explain(input.head()?).map(str::to_owned);
            let what = known.unwrap_or_else(|| describe_unknown_kind(text_kind::JSON));
            Err(Error::Unreadable { name: input.name().to_owned(), what })
        }
    }
}

/// Returns the format of an input that begins with these bytes, or a message. `skipped` is the number of lines before them.
fn detect(head: &[u8], skipped: u64) -> Result<&'static Format, String> {
    if let Some(explanation) = unsupported::explain(head) {
        return Err(explanation.to_owned());
    }
    // JSON and XML may contain text of any format. Without a line end they are no frame of the folded stacks behind them.
    if let Some(document) = formats::find_markup(head) {
        return Ok(document);
    }
    // Names are arbitrary bytes, so folded text may contain a zero byte.
    if folded::is_certain(head) {
        return Ok(&folded::FORMAT);
    }
    let found = find_formats(head);
    match found[..] {
        [format] => match mixed_text::find_preceding(head, format) {
            Some(first) => Err(mixed_text::describe_in_order(head, skipped, first, format)),
            None => mixed_text::describe_binary_before(head, skipped, format).map_or(Ok(format), Err),
        },
        [first, second, ..] => Err(mixed_text::describe(head, skipped, first, second)),
        [] => Err(describe_unknown(head)),
    }
}

/// Returns the message about an input of no format.
fn describe_unknown(head: &[u8]) -> String {
    if let Some(what) = explain_unreadable_lines(head) {
        return what.to_owned();
    }
    let what = if head.iter().any(text_kind::is_control) { "a binary file" } else { text_kind::describe(head) };
    let with_few_stacks = FORMATS.iter().filter(|format| format.recognizes(head)).find(|format| match format.reader {
        FormatReader::Lines(read) => trial::finds_few_stacks(format.name, read, &first_whole_lines(head)),
        FormatReader::Bytes(_) | FormatReader::Blocks { .. } => false,
    });
    match (with_few_stacks, what) {
        (Some(Format { name, .. }), _) => {
            format!("{what} with few stacks ({name}); read them with --format {name}, or give their lines alone")
        }
        (None, text_kind::DIFF) => format!("{what}; give the files that it compares"),
        (None, text_kind::STRACE) => format!("{what} without stacks; run strace with -k"),
        (None, text_kind::LOG) => {
            let advice =
                "if it contains Java exceptions, name --format java-exceptions; if a profile, give its lines alone";
            format!("{what}; {advice}, without the time before each")
        }
        (None, text_kind::PREFIXED) => format!("{what}; give the lines without it"),
        _ if folded::has_weights(head) => {
            format!("{what} of unknown format; if each line is a stack and its weight, name --format folded")
        }
        _ => describe_unknown_kind(what),
    }
}

/// Returns what is wrong with the lines of a text whose format is known. `None` for any other text.
fn explain_unreadable_lines(head: &[u8]) -> Option<&'static str> {
    FORMATS.iter().find_map(|format| formats::explain_missing_fields(format, head))
}

fn describe_unknown_kind(what: &str) -> String {
    format!("{what} of unknown format; name the format with --format, see fg-collapse --list-formats")
}

/// Most lines of other text before a profile: the banner of a shell, or warnings of the program that wrote it.
const MAX_TEXT_BEFORE: u64 = 8;

/// The beginning of a profile after other text.
struct Start {
    format: &'static Format,
    /// Number of lines before it.
    lines: u64,
    /// Those that are not blank.
    text: SkippedLines,
    offset: usize,
}

impl Start {
    /// Returns the start of a profile behind these lines.
    fn new(format: &'static Format, before: &[u8]) -> Self {
        let numbered = before.lines().zip(1..).filter(|(line, _)| !line.trim_ascii().is_empty());
        let mut text = SkippedLines::default();
        numbered.for_each(|(_, number)| text.add(SkippedLines { count: 1, first: number }));
        Self { format, lines: before.lines().count() as u64, text, offset: before.len() }
    }
}

/// Returns where a profile begins after a few lines of other text, if no format recognizes the text with them. The heading of a
/// document or of a table, a stack, and a profile of another format are no such lines.
fn find_after_text(head: &[u8]) -> Option<Start> {
    let is_explained = unsupported::explain(head).is_some()
        || explain_unreadable_lines(head).is_some()
        || text_kind::is_diff(head)
        || !find_formats(head).is_empty();
    if is_explained || head.iter().any(text_kind::is_control) || text_kind::begins_like_code(head) {
        return None;
    }
    let (mut text_lines, mut offset) = (0, 0);
    for line in head.lines_with_terminator() {
        let rest = strip_bom(&head[offset..]);
        let is_blank = line.trim_ascii().is_empty();
        if !is_blank
            && text_lines > 0
            && let Some(format) = find_certain_format(rest)
        {
            let before = &head[..offset];
            let is_folded = formats::is_folded(format);
            if is_folded && folded::is_of_table(head) || !find_formats(before).is_empty() {
                return None;
            }
            let text = if is_folded { &before[..folded::find_first_stack(before, rest)] } else { before };
            return Some(Start::new(format, text));
        }
        let is_own = headings::find(line.trim_ascii_end(), rest).is_some() || folded::is_stack(line.trim_ascii_end());
        if text_lines == MAX_TEXT_BEFORE || is_own {
            return None;
        }
        text_lines += u64::from(!is_blank);
        offset += line.len();
    }
    None
}

/// Returns the format of a text that is certainly a profile.
fn find_certain_format(text: &[u8]) -> Option<&'static Format> {
    let format = detect(text, 0).ok()?;
    let is_certain = match format.reader {
        FormatReader::Lines(_) if headings::has_heading(text, format.name) => true,
        FormatReader::Lines(read) => trial::finds_stacks(format.name, read, &first_whole_lines(text)),
        FormatReader::Blocks { .. } if formats::is_folded(format) => {
            let mut lines = first_lines(text).filter(|line| !line.trim_ascii().is_empty());
            let has_stack = lines.clone().any(folded::is_certain_stack);
            lines.all(folded::is_stack) || has_stack && folded::is_certain(text)
        }
        FormatReader::Bytes(_) | FormatReader::Blocks { .. } => true,
    };
    is_certain.then_some(format)
}

/// Returns the formats that recognize these first bytes of an input. Lines of text may look like those of a format by
/// chance, so the format's reader must be able to read most of them. There are several only if text of one format follows
/// that of another.
pub(super) fn find_formats(head: &[u8]) -> Vec<&'static Format> {
    let is_binary = text_kind::is_binary(head);
    let mut found: Vec<&'static Format> = Vec::new();
    for format in FORMATS.iter().filter(|format| !is_binary || matches!(format.reader, FormatReader::Bytes(_))) {
        let is_folded = formats::is_folded(format);
        if is_folded && !found.is_empty() || !format.recognizes(head) {
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

/// Returns the format of the document that begins with these bytes, if it is certainly a profile.
pub(super) fn find_document_at(bytes: &[u8]) -> Option<&'static str> {
    let found = formats::find_document(bytes).or_else(|| find_document_of(bytes, folded::FORMAT.name));
    found.or_else(|| (folded::find_stacks(bytes) == Some(0)).then_some(folded::FORMAT.name))
}

/// Returns where in a line JSON or XML begins that ends with it, and its format.
pub(super) fn find_markup_within(line: &[u8]) -> Option<(usize, &'static str)> {
    let start = match line {
        [b'{' | b'<', ..] | [b'[', b'{', ..] => line.find("}{")? + 1,
        _ => ["{\"", "[{", "<?xml"].iter().filter_map(|start| line.find(start)).min()?,
    };
    formats::find_markup(&line[start..]).map(|format| (start, format.name))
}

/// Returns the format of a text, other than `own`, if it is certainly a profile.
fn find_document_of(text: &[u8], own: &str) -> Option<&'static str> {
    let others = FORMATS.iter().filter(|format| format.name != own && !formats::is_folded(format));
    let mut recognizing = others.filter(|format| format.recognizes(text));
    let found = recognizing.find(|format| match format.reader {
        FormatReader::Lines(read) => trial::finds_stacks(format.name, read, text),
        FormatReader::Bytes(_) | FormatReader::Blocks { .. } => true,
    });
    found.map(|format| format.name)
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
        let special = FORMATS.iter().filter(|format| format.recognizes(head) && format.name != "folded");
        let special: Vec<_> = special.map(|format| format.name).collect();
        match special.is_empty() {
            true if unsupported::explain(head).is_some() => vec!["none"],
            false if unsupported::explain(head).is_some() => [special, vec!["none"]].concat(),
            true if folded::FORMAT.recognizes(head) => vec!["folded"],
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
