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
/// namespaces) with `..` before them, else the beginning of its last part. What is in a type comes before the namespaces
/// that the type is in. Nothing in fewer than three characters.
pub fn label(name: &str, room: usize) -> Cow<'_, str> {
    if room < 3 {
        return Cow::Borrowed("");
    }
    if name.len() <= room || name.chars().count() <= room {
        return Cow::Borrowed(name);
    }
    let Short { text: short, inner, at } = short(name);
    let parts = parts(&short);
    let length = |start: usize| short[start..].chars().count() + if start > 0 { 2 } else { 0 };
    if !inner.is_empty() {
        let inner_length = inner.chars().count() + 2;
        let (mut starts, mut shown) = (parts.iter().rev().copied().skip_while(|start| *start >= at), None);
        let own = starts.next().unwrap_or(0);
        if length(own) + inner_length <= room {
            let start = starts.take_while(|start| length(*start) + inner_length <= room).last().unwrap_or(own);
            shown = Some((start, Cow::Borrowed(&*inner)));
        } else if length(own) + 10 < room {
            shown = Some((own, head(&inner, room - length(own) - 2)));
        }
        if let Some((start, inner)) = shown {
            let before = if start > 0 { ".." } else { "" };
            return Cow::Owned(format!("{before}{}<{inner}>{}", &short[start..at], &short[at..]));
        }
    }
    let fits = |start: usize| length(start) <= room;
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
fn short(name: &str) -> Short {
    let whole = without_hash(name);
    let mut name = Cow::Borrowed(whole);
    // Types within types: a few are enough, and a name may be a megabyte of brackets.
    for _ in 0..4 {
        let Some((of, rest)) = qualified(&name) else { break };
        let inner = inside(of);
        let rest = if inner.len() < of.len() && inner.ends_with('}') && !rest.contains('{') { "" } else { rest };
        name = Cow::Owned(format!("{inner}{rest}"));
    }
    let starts = parts(&name);
    let (mut short, mut inner, mut at) = (String::with_capacity(name.len()), "", 0);
    for pair in starts.windows(2) {
        let part = &name[pair[0]..pair[1]];
        let separator = part.trim_end_matches([':', '/', '.', ' ']).len();
        let plain = part[..separator].find('<').filter(|at| *at > 0 && !part.starts_with("operator"));
        short.push_str(&part[..plain.unwrap_or(separator)]);
        if let Some(parameters) = plain.filter(|_| Some(&pair[1]) == starts.last() && name != whole) {
            (inner, at) = (&part[parameters + 1..separator - 1], short.len());
        }
        short.push_str(&part[separator..]);
    }
    short.push_str(&name[starts.last().copied().unwrap_or(0)..]);
    let inner = if inner.contains("::") { telling(&without_bounds(&without_std(inner))) } else { String::new() };
    Short { text: short, inner, at }
}

/// A shortened name; of a trait's method also what was in the type, if that tells anything, and where.
struct Short {
    text: String,
    inner: String,
    at: usize,
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Types without the paths of the standard library.
fn without_std(types: &str) -> String {
    let split = |text: &str| text.find(|next| !is_word(next)).unwrap_or(text.len());
    let (mut text, mut rest) = (String::with_capacity(types.len()), types);
    while !rest.is_empty() {
        let (mut word, mut after) = rest.split_at(split(rest));
        if matches!(word, "core" | "alloc" | "std") {
            while let Some(next) = after.strip_prefix("::").filter(|next| next.starts_with(is_word)) {
                (word, after) = next.split_at(split(next));
            }
        }
        text.push_str(word);
        let mut after = after.chars();
        text.extend(after.next());
        rest = after.as_str();
    }
    text
}

/// Types, and of `dyn Trait<A> + B` only the trait.
fn without_bounds(types: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(types.len()), types);
    while let Some(at) = rest.find("dyn ") {
        let name = rest[at + 4..].find(|next| !is_word(next) && next != ':').map_or(rest.len(), |end| at + 4 + end);
        text.push_str(&rest[..name]);
        rest = &rest[name + end_of_argument(&rest[name..])..];
    }
    text + rest
}

/// Types that are set apart by commas, of which some have a path: those that have none tell nothing.
fn telling(types: &str) -> String {
    let (mut all, mut rest) = (Vec::new(), types);
    while !rest.is_empty() {
        let end = end_of_argument(rest);
        all.push(rest[..end].trim());
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    let tells = |of: &str| of.contains("::");
    if all.iter().any(|of| tells(of)) {
        all.iter_mut().filter(|of| !tells(of)).for_each(|of| *of = "_");
    }
    all.join(", ")
}

/// Where the first type ends: at a comma or bracket that is not within it.
fn end_of_argument(types: &str) -> usize {
    let (mut depth, mut last) = (0, b' ');
    let end = types.bytes().position(|byte| {
        let before = std::mem::replace(&mut last, byte);
        match byte {
            b'>' if before == b'-' => {}
            b'>' | b')' | b']' | b',' if depth == 0 => return true,
            b'<' | b'(' | b'[' => depth += 1,
            b'>' | b')' | b']' => depth -= 1,
            _ => {}
        }
        false
    });
    end.unwrap_or(types.len())
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
        let first = arguments[..end_of_argument(arguments)].trim_start_matches('&').trim_start_matches("mut ");
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
