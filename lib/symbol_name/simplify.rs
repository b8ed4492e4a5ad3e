//! Simplifies function names: demangles them and removes argument lists, which are noise in a flame graph.
//!
//! Brackets are matched, so a name is never cut within a group. The content of template arguments, of a lambda's braces
//! and of `(anonymous namespace)` stays, and so does what follows the arguments of an enclosing function.

use std::borrow::Cow;

use super::brackets::{BracketMatcher, is_word, operator_length};
use super::demangle::try_demangle;

/// The prefixes of JIT symbols that are not functions: their parentheses are not argument lists.
const NOT_FUNCTIONS: [&[u8]; 2] = [b"RegExp:", b"py::"];

/// Words after which parentheses are part of the name.
const NOT_CALLS: [&[u8]; 5] = [b"decltype", b"noexcept", b"sizeof", b"alignof", b"typeof"];

/// The length of the longest of these words.
const MAX_NOT_CALL: usize = 8;

/// The qualifiers that may follow the argument list of a function.
const QUALIFIERS: [&[u8]; 7] = [b" const", b" volatile", b" noexcept", b" &&", b" &", b"&&", b"&"];

/// Demangles a name and removes its argument lists and its version.
///
/// # Example
/// ```
/// use fgkit::symbol_name::simplify::simplify;
/// assert_eq!(&*simplify(b"ns::vec<int (*)(char)>::at(unsigned long) const"), b"ns::vec<int (*)(char)>::at");
/// assert_eq!(&*simplify(b"(anonymous namespace)::f(int)::{lambda(int)#1}::operator()(int) const"),
///            b"(anonymous namespace)::f::{lambda(int)#1}::operator()");
/// assert_eq!(&*simplify(b"_RNvC7mycrate3foo"), b"mycrate::foo");
/// ```
pub fn simplify(name: &[u8]) -> Cow<'_, [u8]> {
    let name = strip_version(name);
    match try_demangle(name) {
        Some(demangled) => Cow::Owned(remove_arguments(&demangled).into_owned()),
        None => remove_arguments(name),
    }
}

/// Removes the version of a library's symbol: `memcpy@@GLIBC_2.14`.
fn strip_version(name: &[u8]) -> &[u8] {
    let Some(at_sign) = memchr::memrchr(b'@', name).filter(|at_sign| *at_sign > 0) else { return name };
    let before = &name[..at_sign];
    if is_version(&name[at_sign + 1..]) { before.strip_suffix(b"@").unwrap_or(before) } else { name }
}

/// Returns true if a text looks like `GLIBC_2.14`.
fn is_version(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_uppercase)
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
        && text.contains(&b'_')
        && text.iter().any(u8::is_ascii_digit)
}

fn remove_arguments(name: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'(', name).is_none() || NOT_FUNCTIONS.iter().any(|prefix| name.starts_with(prefix)) {
        return Cow::Borrowed(name);
    }
    let mut kept = Vec::with_capacity(name.len());
    let mut brackets = BracketMatcher::default();
    let mut is_after_operator = false;
    let mut position = 0;
    while position < name.len() {
        let is_list = name[position] == b'(' && (is_after_operator || ends_in_function_name(&kept));
        let end = match operator_length(name, position) {
            Some(length) => position + length,
            None => match brackets.find_group_end(name, position) {
                Some(end) if is_list => match find_continuation(name, end) {
                    Some(next) => {
                        position = next;
                        continue;
                    }
                    None => break,
                },
                Some(end) => end,
                None if is_list => break,
                None => position + 1,
            },
        };
        is_after_operator = operator_length(name, position).is_some();
        kept.extend_from_slice(&name[position..end]);
        position = end;
    }
    if kept.len() == name.len() { Cow::Borrowed(name) } else { Cow::Owned(kept) }
}

/// Returns true if a parenthesis after `text` opens an argument list.
fn ends_in_function_name(text: &[u8]) -> bool {
    let Some(last) = text.last() else { return false };
    let ends_in_name = is_word(*last) || matches!(last, b'>' | b'}' | b']' | b'\'');
    // Only the end is searched, because a long word followed by many lists would take quadratic time.
    let end = &text[text.len().saturating_sub(MAX_NOT_CALL + 1)..];
    let word = end.iter().rposition(|byte| !is_word(*byte)).map_or(0, |before| before + 1);
    ends_in_name && !NOT_CALLS.contains(&&end[word..])
}

/// Returns the position at which the name continues after an argument list that ends at `end`, like `::bar` in
/// `foo(int) const::bar`. Returns `None` if only qualifiers, return types or clone suffixes follow.
fn find_continuation(name: &[u8], end: usize) -> Option<usize> {
    let mut rest = &name[end..];
    while let Some(shorter) = QUALIFIERS.iter().find_map(|qualifier| rest.strip_prefix(*qualifier)) {
        rest = shorter;
    }
    (rest.starts_with(b"::") || rest.starts_with(b"(")).then(|| name.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::simplify;
    use crate::symbol_name::inlined::split_frames;

    #[test]
    fn removes_argument_lists_and_keeps_names_whole() {
        for (name, simplified) in [
            ("main", "main"),
            ("foo(int, char const*)", "foo"),
            ("ns::foo(int)::bar(char)::baz", "ns::foo::bar::baz"),
            ("foo(int) const::{lambda()#1}::operator()() const", "foo::{lambda()#1}::operator()"),
            ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"),
            ("main::$_0::operator()(int) const", "main::$_0::operator()"),
            ("f()::'lambda'(int)::operator()(int)", "f::'lambda'::operator()"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("a::(anonymous namespace)::f(int)", "a::(anonymous namespace)::f"),
            ("std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()"),
            ("decltype(auto) f<int>(int&&)", "decltype(auto) f<int>"),
            ("A::operator<(A const&) const", "A::operator<"),
            ("bool operator< <int>(A<int> const&)", "bool operator< <int>"),
            ("std::ostream& operator<< <char>(int)", "std::ostream& operator<< <char>"),
            ("P<int>::operator->() const", "P<int>::operator->"),
            ("P::operator->*(int)", "P::operator->*"),
            ("A::operator()(int) [clone .isra.0]", "A::operator()"),
            ("A::operator[](unsigned long)", "A::operator[]"),
            ("operator new(unsigned long)", "operator new"),
            ("A::operator bool() const", "A::operator bool"),
            ("my_operator(int)", "my_operator"),
            ("v<(1>>2)>::f(int)", "v<(1>>2)>::f"),
            ("f[abi:cxx11](int)", "f[abi:cxx11]"),
            ("net/http.(*Client).Do", "net/http.(*Client).Do"),
            ("main.(*List[go.shape.int]).Push", "main.(*List[go.shape.int]).Push"),
            ("<fn(u8) -> u8 as m::T>::call", "<fn(u8) -> u8 as m::T>::call"),
            (
                "core::ops::function::FnOnce::call_once{{vtable.shim}}",
                "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            ),
            ("Lorg/x/Foo;.call(Lorg/x/Bar;)Ljava/lang/Object;", "Lorg/x/Foo;.call"),
            ("Lorg/x/Foo;.call(Lorg/x/Ba", "Lorg/x/Foo;.call"),
            ("[MyApp] C::M(int32)[OptimizedTier1]", "[MyApp] C::M"),
            ("Function:~(anonymous) native array.js", "Function:~(anonymous) native array.js"),
            ("RegExp:^a(b)c", "RegExp:^a(b)c"),
            ("py::f:/x(1).py", "py::f:/x(1).py"),
            ("a<b(int", "a<b"),
            ("~Foo()", "~Foo"),
            ("", ""),
            ("(", "("),
            ("f(", "f"),
            (")", ")"),
            ("<<<<", "<<<<"),
        ] {
            assert_eq!(String::from_utf8_lossy(&simplify(name.as_bytes())), simplified, "{name}");
        }
    }

    #[test]
    fn demangles_names() {
        for (name, simplified) in [
            ("_ZN3foo3barEi", "foo::bar"),
            ("_ZN4core3ptr8null_mut17h0123456789abcdefE", "core::ptr::null_mut"),
            ("_RNvC7mycrate3foo", "mycrate::foo"),
            (
                "_$LT$core..result..Result$LT$T$C$$u20$E$GT$$GT$::and_then::h47fa4b8545196b9b",
                "<core::result::Result<T, E>>::and_then",
            ),
            ("log::set::_$u7b$$u7b$closure$u7d$$u7d$::hcb7821323b596727", "log::set::{{closure}}"),
            ("_Zebra", "_Zebra"),
            ("zone::h47fa4b8545196b9b_not", "zone::h47fa4b8545196b9b_not"),
        ] {
            assert_eq!(String::from_utf8_lossy(&simplify(name.as_bytes())), simplified, "{name}");
        }
    }

    #[test]
    fn takes_linear_time_for_hostile_names() {
        for part in ["<", "(", "[", "{", "a(", "a", "{[", "operator<", "(>", "<)", "()", "->", "_Z", "a->", "::"] {
            for end in ["", "->", "()"] {
                let name = format!("{}{end}", part.repeat(500_000 / part.len()));
                let start = std::time::Instant::now();
                simplify(name.as_bytes());
                split_frames(name.as_bytes(), false).count();
                simplify(format!("{name}{}", "()".repeat(200_000)).as_bytes());
                assert!(start.elapsed() < std::time::Duration::from_secs(10), "{part}…{end}");
            }
        }
    }
}
