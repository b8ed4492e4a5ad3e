//! Writes a drawing as an HTML page, and the frame of any such page.

use std::io::{self, Write};

use super::drawing::Drawing;
use super::options::Options;
use super::text::{escape, visible};
use super::write::{STANDALONE, check_drawable, write_element};
use crate::Error;

/// Writes a drawing as an HTML page. `name` is the name of `out` in errors.
///
/// # Errors
/// Those of [`write`](super::write()).
pub fn write_page(drawing: &Drawing, options: &Options, name: &str, out: &mut dyn Write) -> Result<(), Error> {
    check_drawable(drawing)?;
    let head = write_page_head(options.heading(), "body { margin: 0; }\n", out);
    head.and_then(|()| write_element(drawing, options, STANDALONE, out))
        .and_then(|()| out.write_all(PAGE_END))
        .map_err(|error| Error::write(name, error))
}

/// The end of a page that [`write_page_head`] began.
pub(crate) const PAGE_END: &[u8] = b"</body>\n</html>\n";

/// Writes the beginning of an HTML page, up to the content of its body.
///
/// # Errors
/// Fails if writing to `out` fails.
pub(crate) fn write_page_head(title: &str, style: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut text = b"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>".to_vec();
    escape(&visible(title.as_bytes()), &mut text);
    text.extend_from_slice(
        b"</title>\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<style>\n",
    );
    text.extend_from_slice(style.as_bytes());
    text.extend_from_slice(b"</style>\n</head>\n<body class=\"fg-page\">\n");
    out.write_all(&text)
}
