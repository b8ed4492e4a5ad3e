//! Symbols of JIT compilers that list inlined functions: `caller->inlined->inlined`.

use std::borrow::Cow;

use super::brackets::{BracketMatcher, operator_length};
use super::simplify::simplify;

/// Returns the simplified names of a symbol's frames, root first.
///
/// There are several if the symbol lists inlined functions; mark all but the first with
/// [`INLINED`](crate::markers::INLINED). If `is_java`, class names lose the `L` in front.
pub fn split_frames(symbol: &[u8], is_java: bool) -> impl Iterator<Item = Cow<'_, [u8]>> {
    split_inlined(symbol).map(move |part| match part.strip_prefix(b"L") {
        Some(class) if is_java && memchr::memchr(b'/', simplify(part).as_ref()).is_some() => simplify(class),
        _ => simplify(part),
    })
}

/// Returns true if the name of a thread shows that it runs Java.
pub fn is_java_thread(comm: &[u8]) -> bool {
    comm.starts_with(b"java")
}

/// Splits a symbol at the arrows between inlined functions. The arrow of `operator->` or of a return type is not one.
fn split_inlined(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut parts = vec![];
    let (mut start, mut position) = (0, 0);
    let mut brackets = BracketMatcher::default();
    let last_arrow = memchr::memmem::rfind(name, b"->");
    while last_arrow.is_some_and(|last| position <= last) {
        if let Some(length) = operator_length(name, position) {
            position += length;
        } else if name[position..].starts_with(b"->") && position > start && name[position - 1] != b' ' {
            parts.push(&name[start..position]);
            position += 2;
            start = position;
        } else {
            position = brackets.find_group_end(name, position).unwrap_or(position + 1);
        }
    }
    parts.push(&name[start..]);
    parts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::split_inlined;

    fn split(name: &str) -> Vec<&str> {
        split_inlined(name.as_bytes()).map(|part| std::str::from_utf8(part).unwrap()).collect()
    }

    #[test]
    fn splits_at_arrows_between_functions_only() {
        assert_eq!(split("LA;::f->LB;::g->LC;::<init>"), ["LA;::f", "LB;::g", "LC;::<init>"]);
        assert_eq!(split("x->"), ["x", ""]);
        for whole in ["P::operator->", "P::operator->*", "f(u8) -> u8", "g<a->b>", "->x", ""] {
            assert_eq!(split(whole), [whole]);
        }
    }
}
