//! Telling an input's format from its first block.

use super::format::Reading;
use super::{FORMATS, Format, Options, folded};
use crate::Error;
use crate::input::Blocks;

/// What is known by its first bytes but cannot be folded, and what to do about it.
const KNOWN: [(&[u8], &str); 2] =
    [(b"FLR\0", "a Java Flight Recorder file: not a known format"), (b"\x7fELF", "a program, not a profile")];

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
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return unreadable((*what).to_owned());
    }
    // Names are any bytes, so folded text may hold a zero.
    if folded::is_certain(head) {
        return Ok(Some(&folded::FORMAT));
    }
    let binary = memchr::memchr(0, head).is_some();
    let mut asked = FORMATS.iter().filter(|format| !binary || matches!(format.reading, Reading::Bytes(_)));
    let what = if binary { "a binary file" } else { "text" };
    match asked.find(|format| (format.recognises)(head)) {
        Some(found) => Ok(Some(found)),
        None => unreadable(format!("{what} of no known format; fg-collapse --list-formats shows those that are")),
    }
}
