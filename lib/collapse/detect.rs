//! Telling an input's format from its first block.

use super::{FORMATS, Format, folded};
use crate::Error;
use crate::input::Blocks;

/// What is known by its first bytes but cannot be folded, and what to do about it.
const KNOWN: [(&[u8], &str); 6] = [
    (b"PERFILE2", "a binary perf.data file: run `perf script -i FILE | fg-collapse`"),
    (b"2ELIFREP", "a binary perf.data file: run `perf script -i FILE | fg-collapse`"),
    (b"FLR\0", "a Java Flight Recorder file: not a known format"),
    (b"\x7fELF", "a program, not a profile"),
    (b"\xff\xfe", "UTF-16 text: convert it, `iconv -f UTF-16 -t UTF-8`"),
    (b"\xfe\xff", "UTF-16 text: convert it, `iconv -f UTF-16 -t UTF-8`"),
];

/// The input's format; `None` if there is nothing but blanks.
///
/// # Errors
/// [`Error::Unreadable`] if no format fits.
pub(super) fn format(input: &mut Blocks) -> Result<Option<&'static Format>, Error> {
    let name = input.name().to_owned();
    let head = input.head()?;
    if head.trim_ascii().is_empty() {
        return Ok(None);
    }
    let unreadable = |what: String| Err(Error::Unreadable { name, what });
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return unreadable((*what).to_owned());
    }
    // Names are any bytes, so folded text may hold a zero.
    if memchr::memchr(0, head).is_some() && !folded::is_certain(head) {
        return unreadable(format!("a binary file of no known format; known are {}", known()));
    }
    let found = FORMATS.iter().find(|format| (format.recognises)(head));
    found.map_or_else(|| unreadable(format!("text of no known format; known are {}", known())), |found| Ok(Some(found)))
}

fn known() -> String {
    FORMATS.map(|format| format.name).join(", ")
}
