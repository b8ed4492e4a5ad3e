//! Methods of Rust as the v0 mangling names them.

use std::borrow::Cow;

use super::brackets::find_groups;

/// Returns a method without the brackets around its type, as the legacy mangling names it: `Vec<T>::push` for `<Vec<T>>::push`.
/// Methods of traits (`<T as Trait>::f`) and of types without a path (`<[T]>::len`) stay as they are.
pub fn without_type_brackets(name: &[u8]) -> Cow<'_, [u8]> {
    let group = if name.starts_with(b"<") { find_groups(name).into_iter().next() } else { None };
    let Some(group) = group.filter(|group| group.start == 0 && name[group.end..].starts_with(b"::")) else {
        return Cow::Borrowed(name);
    };
    let inner = &name[1..group.end - 1];
    let is_of_trait = memchr::memmem::find(inner, b" as ").is_some();
    if is_of_trait || !inner.first().is_some_and(u8::is_ascii_alphabetic) || !inner.windows(2).any(|pair| pair == b"::")
    {
        return Cow::Borrowed(name);
    }
    Cow::Owned([inner, &name[group.end..]].concat())
}

#[cfg(test)]
mod tests {
    use super::without_type_brackets;

    #[test]
    fn types_with_paths_lose_their_brackets() {
        for (name, plain) in [
            ("<alloc::vec::Vec<u8>>::push", "alloc::vec::Vec<u8>::push"),
            ("<a::b::C>::f::{closure#0}", "a::b::C::f::{closure#0}"),
            ("<a::B as c::D>::f", "<a::B as c::D>::f"),
            ("<[u8]>::len", "<[u8]>::len"),
            ("<str>::len", "<str>::len"),
            ("<module> (a.py)", "<module> (a.py)"),
            ("a::b", "a::b"),
            ("<a::b", "<a::b"),
        ] {
            assert_eq!(without_type_brackets(name.as_bytes()), plain.as_bytes(), "{name}");
        }
    }
}
