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
    let short = short(name);
    let parts = parts(&short);
    let fits = |start: usize| short[start..].chars().count() + if start > 0 { 2 } else { 0 } <= room;
    match parts.iter().rev().take_while(|start| fits(**start)).last() {
        Some(0) => Cow::Owned(short),
        Some(start) => Cow::Owned(format!("..{}", &short[*start..])),
        None => {
            let last = &short[parts.last().copied().unwrap_or(0)..];
            Cow::Owned(head(last, room).into_owned())
        }
    }
}

/// The beginning of a name, as much of it as fits.
pub fn head(name: &str, room: usize) -> Cow<'_, str> {
    if room < 3 || name.chars().count() <= room {
        return Cow::Borrowed(if room < 3 { "" } else { name });
    }
    let end = name.char_indices().nth(room - 2).map_or(name.len(), |(end, _)| end);
    Cow::Owned(format!("{}..", &name[..end]))
}

/// Types that tell nothing but what is in them.
const WRAPPERS: [&str; 5] = ["GenFuture", "Pin", "Box", "AssertUnwindSafe", "Instrumented"];

/// A name without what is told least by: a Rust name's hash, the trait in `<Type as Trait>::method`, the type parameters
/// of all but its last part. What is in a wrapper stands for it, and a closure in one for its only method, too.
fn short(name: &str) -> String {
    let mut name = Cow::Borrowed(without_hash(name));
    // Types within types: a few are enough, and a name may be a megabyte of brackets.
    for _ in 0..4 {
        let Some((of, rest)) = qualified(&name) else { break };
        let inner = inside(of);
        let rest = if inner.len() < of.len() && inner.ends_with('}') && !rest.contains('{') { "" } else { rest };
        name = Cow::Owned(format!("{inner}{rest}"));
    }
    let starts = parts(&name);
    let mut short = String::with_capacity(name.len());
    for pair in starts.windows(2) {
        let part = &name[pair[0]..pair[1]];
        let separator = part.trim_end_matches([':', '/', '.', ' ']).len();
        let plain = part[..separator].find('<').filter(|at| *at > 0 && !part.starts_with("operator"));
        short.push_str(&part[..plain.unwrap_or(separator)]);
        short.push_str(&part[separator..]);
    }
    short.push_str(&name[starts.last().copied().unwrap_or(0)..]);
    short
}

/// `<Type as Trait>::method` as `Type` and `::method`.
fn qualified(name: &str) -> Option<(&str, &str)> {
    let inner = name.strip_prefix('<')?;
    let (mut depth, mut of) = (1, None);
    for (at, _) in inner.match_indices(['<', '>', '(', ')', '[', ']', ' ']) {
        match inner.as_bytes()[at] {
            b' ' if depth == 1 && of.is_none() && inner[at..].starts_with(" as ") => of = Some(at),
            b' ' => {}
            b'>' if at > 0 && inner.as_bytes()[at - 1] == b'-' => {}
            b'<' | b'(' | b'[' => depth += 1,
            _ => depth -= 1,
        }
        if depth == 0 {
            return Some((&inner[..of.unwrap_or(at)], &inner[at + 1..]));
        }
    }
    None
}

/// What is in a wrapper such as `Pin<&mut T, A>`, by its full name; otherwise the type itself.
fn inside(of: &str) -> &str {
    let mut found = of;
    for _ in 0..4 {
        let Some((wrapper, arguments)) = found.strip_suffix('>').and_then(|found| found.split_once('<')) else { break };
        let mut depth = 0;
        let end = arguments.bytes().position(|byte| {
            match byte {
                b'<' | b'(' | b'[' => depth += 1,
                b'>' | b')' | b']' => depth -= 1,
                _ => {}
            }
            byte == b',' && depth == 0
        });
        let first = arguments[..end.unwrap_or(arguments.len())].trim_start_matches('&').trim_start_matches("mut ");
        let is_wrapper = wrapper.rsplit(':').next().is_some_and(|name| WRAPPERS.contains(&name));
        if !is_wrapper || !first.contains("::") || first.starts_with("dyn ") {
            break;
        }
        found = first;
    }
    found
}

/// Without the hash at the end of a Rust name: `::h` and sixteen digits.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((plain, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => plain,
        _ => name,
    }
}

/// Where the parts of a qualified name begin, outside of all brackets. A closure belongs to the part before it, and a C++
/// lambda's operator to the lambda.
fn parts(name: &str) -> Vec<usize> {
    let bytes = name.as_bytes();
    let dots = !name.contains("::") && name.bytes().filter(|byte| *byte == b'.').count() >= 2 && !name.contains('/');
    let dots = dots && name.split('.').any(|part| part.starts_with(|first: char| first.is_ascii_uppercase()));
    let last_dot = memchr::memrchr(b'.', bytes).unwrap_or(0);
    let mut starts = vec![0];
    let mut depth = 0u32;
    for (at, byte) in bytes.iter().enumerate() {
        let before = &bytes[..at];
        match byte {
            b'<' | b'>' if before.ends_with(b"operator") || before.ends_with(b"operator<") => {}
            b'>' if before.ends_with(b"-") => {}
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let ends_part = match byte {
            b':' => before.ends_with(b":"),
            b'/' => true,
            b'.' => dots || before.ends_with(b":"),
            // A type that is returned, as in `int Counter.next`.
            b' ' => at < last_dot && !before.ends_with(b"operator") && !matches!(bytes.get(at + 1), Some(b'[' | b'(')),
            _ => false,
        };
        let rest = &bytes[at + 1..];
        let ends_part = ends_part && !(before.ends_with(b"}:") && rest.starts_with(b"operator()"));
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
        // The same cases as for the viewer.
        for case in include_str!("../../tests/data/svg/labels.tsv").lines() {
            let [name, room, expected] = case.split('\t').collect::<Vec<_>>()[..] else { panic!("{case:?}") };
            assert_eq!(label(name, room.parse().unwrap()), expected, "{name} in {room}");
        }
    }

    #[test]
    fn a_huge_name_costs_no_more_than_its_length() {
        for name in ["<".repeat(1 << 20), "a::".repeat(1 << 18), "<a as b>::".repeat(1 << 16), "(>".repeat(1 << 19)] {
            label(&name, 200);
        }
    }
}
