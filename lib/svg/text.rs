//! Names as the picture shows them: valid XML for any bytes, and labels cut so that the telling part stays.

use std::borrow::Cow;

use crate::diagnostics::printable;

/// The bytes as text that XML can hold and that shows what is in it: what is not UTF-8 becomes U+FFFD, control and
/// bidirectional characters are spelled out.
pub fn visible(bytes: &[u8]) -> Cow<'_, str> {
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return String::from_utf8_lossy(bytes);
    }
    let text = printable(&String::from_utf8_lossy(bytes));
    Cow::Owned(text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"))
}

/// Appends text with the characters escaped that mean something to XML.
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

/// What of a name fits into a number of characters: all of it, else its last parts (the function rather than its
/// namespaces) with `..` before them, else the beginning of its last part. Nothing in fewer than three characters.
pub fn label(name: &str, room: usize) -> Cow<'_, str> {
    if room < 3 {
        return Cow::Borrowed("");
    }
    if name.len() <= room || name.chars().count() <= room {
        return Cow::Borrowed(name);
    }
    let name = without_hash(name);
    let parts = parts(name);
    let fits = |start: usize| name[start..].chars().count() + if start > 0 { 2 } else { 0 } <= room;
    match parts.iter().rev().take_while(|start| fits(**start)).last() {
        Some(0) => Cow::Borrowed(name),
        Some(start) => Cow::Owned(format!("..{}", &name[*start..])),
        None => {
            let last = &name[parts.last().copied().unwrap_or(0)..];
            let end = last.char_indices().nth(room - 2).map_or(last.len(), |(end, _)| end);
            Cow::Owned(format!("{}..", &last[..end]))
        }
    }
}

/// Without the hash at the end of a Rust name: `::h` and sixteen digits.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((plain, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => plain,
        _ => name,
    }
}

/// Where the parts of a qualified name begin, outside of all brackets. A closure belongs to the part before it.
fn parts(name: &str) -> Vec<usize> {
    let bytes = name.as_bytes();
    let dots = !name.contains("::") && name.bytes().filter(|byte| *byte == b'.').count() >= 2 && !name.contains('/');
    let dots = dots && name.split('.').any(|part| part.starts_with(|first: char| first.is_ascii_uppercase()));
    let mut starts = vec![0];
    let mut depth = 0u32;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let ends_part = match byte {
            b':' => at > 0 && bytes[at - 1] == b':',
            b'/' => true,
            b'.' => dots,
            _ => false,
        };
        let rest = &bytes[at + 1..];
        if depth == 0 && ends_part && !rest.is_empty() && !rest.starts_with(b"{") && !rest.starts_with(b":") {
            starts.push(at + 1);
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::{escape, label, visible};

    #[test]
    fn any_bytes_become_text_that_xml_can_hold() {
        assert_eq!(visible(b"a\x1b[0m\0\xff"), "a\\u{1b}[0m\\u{0}\u{fffd}");
        assert_eq!(visible("a\u{202e}b\u{ffff}".as_bytes()), "a\\u{202e}b\u{fffd}");
        let mut out = Vec::new();
        escape("<a b='&'>\"", &mut out);
        assert_eq!(out, b"&lt;a b=&#39;&amp;&#39;&gt;&quot;");
    }

    #[test]
    fn the_telling_part_of_a_name_stays() {
        for (name, room, expected) in [
            ("main", 2, ""),
            ("main", 4, "main"),
            ("tokio::runtime::task::poll", 12, "..task::poll"),
            ("tokio::runtime::task::poll", 9, "..poll"),
            ("tokio::runtime::task::poll", 5, "pol.."),
            ("<alloc::vec::Vec<T> as core::Clone>::clone", 10, "..clone"),
            ("core::ptr::drop_in_place<a::B>::h0123456789abcdef", 18, "drop_in_place<a:.."),
            ("a::work::{{closure}}", 19, "..work::{{closure}}"),
            ("com.example.deep.Main.run", 12, "..Main.run"),
            ("compute.constprop.0.isra.0", 12, "compute.co.."),
            ("std::operator<<(x::y, long)", 14, "operator<<(x.."),
            ("größe_der_straße", 6, "größ.."),
        ] {
            assert_eq!(label(name, room), expected, "{name} in {room}");
        }
    }
}
