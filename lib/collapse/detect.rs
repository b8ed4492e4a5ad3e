//! Telling an input's format from its first block.

use super::formats::{FormatReader, folded};
use super::{FORMATS, Format, Options, refused};
use crate::Error;
use crate::input::Blocks;

/// The input's format, told or given; `None` if there is nothing but blanks.
///
/// # Errors
/// [`Error::Unreadable`] if no format fits.
pub(super) fn format(input: &mut Blocks, options: &Options) -> Result<Option<&'static Format>, Error> {
    let name = input.name().to_owned();
    let head = input.head()?;
    if head.trim_ascii().is_empty() {
        return Ok(None);
    }
    if options.format.is_some() {
        return Ok(options.format);
    }
    let unreadable = |what: String| Err(Error::Unreadable { name, what });
    if let Some(why) = refused::why(head) {
        return unreadable(why.to_owned());
    }
    // Names are any bytes, so folded text may hold a zero.
    if folded::is_certain(head) {
        return Ok(Some(&folded::FORMAT));
    }
    let binary = memchr::memchr(0, head).is_some();
    let mut asked = FORMATS.iter().filter(|format| !binary || matches!(format.reader, FormatReader::Bytes(_)));
    let what = if head.iter().any(is_binary) { "a binary file" } else { "text" };
    match asked.find(|format| (format.recognizes)(head)) {
        Some(found) => Ok(Some(found)),
        None => unreadable(format!(
            "{what} of no known format; --format NAME reads it as one of fg-collapse --list-formats"
        )),
    }
}

/// Whether this is a character that text does not have: a terminal's escapes it may have.
fn is_binary(byte: &u8) -> bool {
    byte.is_ascii_control() && !b"\t\n\x0c\r\x1b".contains(byte)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::path::{Path, PathBuf};

    use super::{FORMATS, folded, refused};
    use crate::input::Source;

    /// All files below a folder.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    /// What claims an input by its beginning. Folded text is what nothing else claims.
    fn claims(head: &[u8]) -> Vec<&'static str> {
        let special = FORMATS.iter().filter(|format| (format.recognizes)(head) && format.name != "folded");
        let special: Vec<_> = special.map(|format| format.name).collect();
        match special.is_empty() {
            true if refused::why(head).is_some() => vec!["none"],
            false if refused::why(head).is_some() => [special, vec!["none"]].concat(),
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
            [root.join("tests/data/collapse"), root.join("../shared/corpus")].iter().flat_map(|path| files(path))
        {
            let mut input = Source::File(path.clone()).open().unwrap();
            let head = input.head().unwrap().to_vec();
            let claims = claims(&head);
            assert!(claims.len() <= 1, "{}: {claims:?}", path.display());
            claimed += claims.len();
            // A shorter beginning, as of a file cut short, tells nothing else.
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
