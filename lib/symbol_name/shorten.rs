//! Shorter names: without what compilers append, without arguments, without packages.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::markers::strip_suffix;

/// What compilers append: Rust's hashes, parts and clones of functions, symbol versions.
static APPENDED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x-u)( ::h[0-9a-f]{16}
        | \.(llvm|isra|constprop|part|lto_priv|cold|warm|hot)(\.[0-9]+)* | \ \[clone\ [^\]]*\]
        | @@?[A-Z][A-Za-z_]*_[0-9.]+ )+$",
    )
    .expect("a valid pattern")
});

/// The numbers that a Java machine gives lambdas anew in each run.
static LAMBDA: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?-u)\$\$Lambda[$0-9]*(/(0x)?[0-9a-f]+)?").expect("a valid pattern"));

/// The name at a level: 0 unchanged, 1 without what compilers append, 2 also without generic, template and call arguments,
/// 3 also without packages. Gregg's suffixes stay, and so do names in brackets.
pub fn shorten(name: &[u8], level: u8) -> Cow<'_, [u8]> {
    if level == 0 || name.starts_with(b"[") {
        return Cow::Borrowed(name);
    }
    let body = strip_suffix(name);
    let suffix = &name[body.len()..];
    let body = APPENDED.replace(body, &b""[..]).into_owned();
    let mut body = LAMBDA.replace_all(&body, &b"$$$$Lambda"[..]).into_owned();
    if level >= 2 {
        body = without_arguments(&body);
    }
    if level >= 3 {
        body = without_packages(&body);
    }
    if body.is_empty() {
        return Cow::Borrowed(name);
    }
    body.extend_from_slice(suffix);
    Cow::Owned(body)
}

/// Leaves out bracketed groups that belong to the name before them.
fn without_arguments(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    let mut is_operator = false;
    while let Some(first) = rest.first() {
        let taken = match first {
            b'<' | b'(' | b'[' => match group(rest) {
                Some(length) if is_operator || is_attached(&out, *first) => {
                    let turbofish = out.ends_with(b"::");
                    out.truncate(out.len() - if turbofish { 2 } else { 0 });
                    rest = &rest[length..];
                    continue;
                }
                _ if rest.starts_with(ANONYMOUS) => ANONYMOUS.len(),
                _ => 1,
            },
            _ => operator(rest, out.last()).unwrap_or(1),
        };
        is_operator = taken > b"operator".len() && *first == b'o';
        out.extend_from_slice(&rest[..taken]);
        rest = &rest[taken..];
    }
    let end = out.strip_suffix(b" const").map_or(out.len(), <[u8]>::len);
    out.truncate(end);
    out
}

const ANONYMOUS: &[u8] = b"(anonymous namespace)";

/// Whether the group that comes next belongs to a name: there is one, and it is no `::(anonymous namespace)` nor Go's
/// `.(*Type)`. Square brackets are Go's type arguments right after a word, and else a type, `[T]`.
fn is_attached(out: &[u8], bracket: u8) -> bool {
    let after = |byte: &u8| is_word(*byte) || (bracket != b'[' && matches!(byte, b'>' | b')' | b']' | b'}'));
    out.last().is_some_and(after) || (bracket != b'[' && out.ends_with(b"::"))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// The length of the bracketed group at the start, if it is closed and no part of the name: the anonymous namespace, an
/// empty `[]`, GCC's `[abi:cxx11]`.
fn group(text: &[u8]) -> Option<usize> {
    if [ANONYMOUS, b"[]", b"[abi:"].iter().any(|part| text.starts_with(part)) {
        return None;
    }
    // In Go's type arguments the others are arrows of channels.
    let (opening, closing): (&[u8], &[u8]) = if text.starts_with(b"[") { (b"[", b"]") } else { (b"<(", b">)") };
    let mut depth = 0usize;
    for (at, byte) in text.iter().enumerate() {
        if opening.contains(byte) {
            depth += 1;
        } else if closing.contains(byte) {
            // Not the arrow of a function's type.
            depth = depth.saturating_sub(usize::from(!text[..at].ends_with(b"-") || *byte != b'>'));
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// The length of a C++ operator's name at the start, whose brackets are none.
fn operator(text: &[u8], before: Option<&u8>) -> Option<usize> {
    let symbols = text.strip_prefix(b"operator").filter(|_| before.is_none_or(|byte| !is_word(*byte)))?;
    let known: [&[u8]; 13] =
        [b"()", b"[]", b"<<=", b">>=", b"<=>", b"->*", b"<<", b">>", b"<=", b">=", b"->", b"<", b">"];
    let length = match known.iter().find(|symbol| symbols.starts_with(symbol)) {
        Some(symbol) => symbol.len(),
        None => symbols.iter().take_while(|byte| b"=!+-*/%^&|~,".contains(byte)).count(),
    };
    (length > 0).then_some(b"operator".len() + length)
}

/// Keeps of every path of names the last two.
fn without_packages(name: &[u8]) -> Vec<u8> {
    let path = match memchr::memrchr(b'/', name) {
        Some(slash) if !name.contains(&b' ') && !name.contains(&b':') => &name[slash + 1..],
        _ => name,
    };
    let mut out = Vec::with_capacity(path.len());
    let is_path = |byte: &u8| is_word(*byte) || matches!(byte, b':' | b'.' | b'{' | b'}' | b'#');
    for piece in path.chunk_by(|a, b| is_path(a) == is_path(b)) {
        let separator: &[u8] = if memchr::memmem::find(piece, b"::").is_some() { b"::" } else { b"." };
        let goes_on = !out.is_empty() && piece.starts_with(separator);
        let last = memchr::memmem::rfind(piece, separator).filter(|_| !goes_on);
        let kept =
            last.and_then(|last| memchr::memmem::rfind(&piece[..last], separator)).map_or(0, |at| at + separator.len());
        out.extend_from_slice(&piece[kept..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn each_level_leaves_out_more() {
        for (name, levels) in [
            ("core::ptr::drop::h0123456789abcdef", ["core::ptr::drop", "core::ptr::drop", "ptr::drop"]),
            ("parse.cold.3", ["parse", "parse", "parse"]),
            ("f.isra.0.constprop.1_[k]", ["f_[k]", "f_[k]", "f_[k]"]),
            ("free@@GLIBC_2.2.5", ["free", "free", "free"]),
            (
                "std::map<int, std::less<int> >::at(int const&) const",
                ["std::map<int, std::less<int> >::at(int const&) const", "std::map::at", "map::at"],
            ),
            (
                "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
                [
                    "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
                    "<alloc::vec::Vec as core::ops::Drop>::drop",
                    "<vec::Vec as ops::Drop>::drop",
                ],
            ),
            ("iter::<impl Fn(A) -> B>::map::<T>", ["iter::<impl Fn(A) -> B>::map::<T>", "iter::map", "iter::map"]),
            (
                "a::(anonymous namespace)::f(int)",
                ["a::(anonymous namespace)::f(int)", "a::(anonymous namespace)::f", "a::(anonymous namespace)::f"],
            ),
            ("S::operator<<(int)", ["S::operator<<(int)", "S::operator<<", "S::operator<<"]),
            ("S::operator==(A<B> const&)", ["S::operator==(A<B> const&)", "S::operator==", "S::operator=="]),
            ("S::operator()(int)", ["S::operator()(int)", "S::operator()", "S::operator()"]),
            (
                "main::{{closure}}::{{closure}}",
                ["main::{{closure}}::{{closure}}", "main::{{closure}}::{{closure}}", "{{closure}}::{{closure}}"],
            ),
            ("org.apache.Foo.bar", ["org.apache.Foo.bar", "org.apache.Foo.bar", "Foo.bar"]),
            ("A$$Lambda$14/0x00000008c03000.run", ["A$$Lambda.run", "A$$Lambda.run", "A$$Lambda.run"]),
            ("github.com/x/y.(*T).Do", ["github.com/x/y.(*T).Do", "github.com/x/y.(*T).Do", "y.(*T).Do"]),
            ("main.Map[...]", ["main.Map[...]", "main.Map", "main.Map"]),
            (
                "example.com/x/y.(*List[go.shape.struct { C <-chan []int }]).Push.func1",
                [
                    "example.com/x/y.(*List[go.shape.struct { C <-chan []int }]).Push.func1",
                    "example.com/x/y.(*List).Push.func1",
                    "y.(*List).Push.func1",
                ],
            ),
            ("slices.Sort[go.shape.[]int,a/b.T]", ["slices.Sort[go.shape.[]int,a/b.T]", "slices.Sort", "slices.Sort"]),
            ("<a::b::T>::c::d", ["<a::b::T>::c::d", "<a::b::T>::c::d", "<b::T>::c::d"]),
            ("<[T]>::sort", ["<[T]>::sort", "<[T]>::sort", "<[T]>::sort"]),
            ("a::f[abi:cxx11](int)", ["a::f[abi:cxx11](int)", "a::f[abi:cxx11]", "a::f[abi:cxx11]"]),
            ("operator delete[](void*)", ["operator delete[](void*)", "operator delete[]", "operator delete[]"]),
            ("[libc.so.6]", ["[libc.so.6]", "[libc.so.6]", "[libc.so.6]"]),
            ("f(", ["f(", "f(", "f("]),
            ("operator new(unsigned long)", ["operator new(unsigned long)", "operator new", "operator new"]),
        ] {
            for (level, expected) in (1..).zip(levels) {
                let short = shorten(name.as_bytes(), level);
                assert_eq!(String::from_utf8_lossy(&short), expected, "{name} at {level}");
            }
        }
    }
}
