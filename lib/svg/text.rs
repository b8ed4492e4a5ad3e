//! Text for XML: any bytes become valid, visible characters.

use std::borrow::Cow;

use crate::diagnostics::printable;

/// Returns bytes as text that XML allows and that shows every character.
///
/// Bytes that are not UTF-8 become U+FFFD. Control and bidirectional characters are written as escape sequences.
pub fn visible(bytes: &[u8]) -> Cow<'_, str> {
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return String::from_utf8_lossy(bytes);
    }
    let text = printable(&String::from_utf8_lossy(bytes));
    Cow::Owned(text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"))
}

/// Appends text to `out` and escapes characters that are special in XML.
pub fn escape(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'\t' => out.extend_from_slice(b"&#9;"),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{escape, visible};

    #[test]
    fn any_bytes_become_visible_text() {
        assert_eq!(visible(b"a\x1b[0m\0\xff"), "a\\u{1b}[0m\\u{0}\u{fffd}");
        assert_eq!(visible("a\u{202e}b\u{ffff}".as_bytes()), "a\\u{202e}b\u{fffd}");
    }

    #[test]
    fn escapes_special_characters() {
        let mut out = Vec::new();
        escape("<a b='&'>\"", &mut out);
        assert_eq!(out, b"&lt;a b=&#39;&amp;&#39;&gt;&quot;");
    }
}
