//! Shortens function names: removes what compilers append, arguments, and packages.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::brackets::{BracketMatcher, is_word, strip_operator, symbol_length};
use super::script::{is_script, without_directories};
use crate::markers::strip_suffix;

/// The suffixes that compilers and linkers append: Rust's hashes, parts and clones of functions, symbol versions.
static COMPILER_SUFFIXES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x-u)( ::h[0-9a-f]{16}
        | \.(llvm|isra|constprop|part|lto_priv|cold|warm|hot)(\.[0-9]+)* | \ \[clone\ [^\]]*\] | \ \(\.[a-z_]+(\.[0-9]+)*\)
        | @@?[A-Z][A-Za-z_]*_[0-9.]+ )+$",
    )
    .expect("a valid pattern")
});

/// Matches the name of a Java lambda, or of a form of one, with the numbers that differ from run to run.
static JAVA_LAMBDA: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u)(\$\$Lambda|LambdaForm\$[A-Za-z]+)[$0-9]*(/(0x)?[0-9a-f]+|[.+]0x[0-9a-f]+)?")
        .expect("a valid pattern")
});

/// Matches what Go appends to the name of a function for its closures, for wrappers of `go` and `defer`, and for each `init`: `.func3.1`.
/// Closures of variables have the function `glob.`.
static GO_CLOSURES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?-u)(\.glob\.)?(\.(func|gowrap|deferwrap)?[0-9]+)+$").expect("a valid pattern"));

/// The name of C++'s unnamed namespaces, whose parentheses are part of the name.
const ANONYMOUS_NAMESPACE: &[u8] = b"(anonymous namespace)";

/// Shortens a name by a level:
/// - 0: not at all,
/// - 1: without the suffixes that compilers append,
/// - 2: also without generic, template and call arguments,
/// - 3: also without packages, and functions of scripts without the directories of their files.
///
/// Frame suffixes like `_[k]` stay, and names in brackets are returned unchanged.
pub fn shorten(name: &[u8], level: u8) -> Cow<'_, [u8]> {
    let body = strip_suffix(name);
    if level == 0 || body.starts_with(b"[") && body.ends_with(b"]") {
        return Cow::Borrowed(name);
    }
    let suffix = &name[body.len()..];
    let body = COMPILER_SUFFIXES.replace(body, &b""[..]).into_owned();
    let mut body = JAVA_LAMBDA.replace_all(&body, &b"$1"[..]).into_owned();
    body = match level {
        3.. if is_script(&body) => without_directories(&body),
        2.. if is_script(&body) => body,
        3.. => remove_packages(&remove_arguments(&body)),
        2 => remove_arguments(&body),
        _ => body,
    };
    if body.is_empty() {
        return Cow::Borrowed(name);
    }
    body.extend_from_slice(suffix);
    Cow::Owned(body)
}

/// Removes bracketed groups that are arguments of the name before them.
fn remove_arguments(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut brackets = BracketMatcher::default();
    let mut position = 0;
    let mut is_after_operator = false;
    while position < name.len() {
        let rest = &name[position..];
        let may_be_arguments = !is_part_of_name(rest) && (is_after_operator || opens_arguments(&out, rest[0]));
        let end = if may_be_arguments { brackets.find_group_end(name, position) } else { None };
        let kept = match end {
            Some(end) if !continues(&out, &name[end..]) => {
                let has_turbofish = out.ends_with(b"::");
                out.truncate(out.len() - if has_turbofish { 2 } else { 0 });
                position = end;
                continue;
            }
            _ if rest.starts_with(ANONYMOUS_NAMESPACE) => ANONYMOUS_NAMESPACE.len(),
            _ => any_operator_length(rest, out.last().copied()).unwrap_or(1),
        };
        is_after_operator = kept > b"operator".len() && rest[0] == b'o';
        out.extend_from_slice(&rest[..kept]);
        position += kept;
    }
    let end = out.strip_suffix(b" const").map_or(out.len(), <[u8]>::len);
    out.truncate(end);
    out
}

/// Returns true if a bracket after the text `before` opens arguments: after a name, or after the `::` of Rust's
/// turbofish.
///
/// After anything else it is part of the name, as in Go's `.(*Type)`. Square brackets are type arguments (Go) only
/// right after a word, and else a type (`[T]`).
fn opens_arguments(before: &[u8], bracket: u8) -> bool {
    let Some(last) = before.last() else { return false };
    if bracket == b'[' {
        return is_word(*last);
    }
    is_word(*last) || matches!(last, b'>' | b')' | b']' | b'}') || before.ends_with(b"::")
}

/// True if what follows a group after `::` is the rest of one name: `<Main>b__0` of a closure of .NET.
fn continues(before: &[u8], rest: &[u8]) -> bool {
    before.ends_with(b"::") && rest.first().is_some_and(|first| is_word(*first))
}

/// True for brackets that are part of the name: an unnamed namespace, an empty `[]`, GCC's `[abi:cxx11]`, Rust's `<impl A>`,
/// the braces of a closure.
fn is_part_of_name(text: &[u8]) -> bool {
    [ANONYMOUS_NAMESPACE, b"[]", b"[abi:", b"<impl ", b"{"].iter().any(|part| text.starts_with(part))
}

/// Returns the length of the name of any C++ operator at the start of `text`. `before` is the byte before it.
fn any_operator_length(text: &[u8], before: Option<u8>) -> Option<usize> {
    let symbol = strip_operator(text, before)?;
    let length = symbol_length(symbol)
        .unwrap_or_else(|| symbol.iter().take_while(|byte| b"=!+-*/%^&|~,".contains(byte)).count());
    (length > 0).then_some(text.len() - symbol.len() + length)
}

/// Shortens each path of names to its last two.
fn remove_packages(name: &[u8]) -> Vec<u8> {
    let last_segment = match memchr::memrchr(b'/', name) {
        Some(slash) if !name.contains(&b' ') && !name.contains(&b':') => &name[slash + 1..],
        _ => name,
    };
    let mut out = Vec::with_capacity(last_segment.len());
    for piece in last_segment.chunk_by(|a, b| is_in_path(*a) == is_in_path(*b)) {
        let separator: &[u8] = if memchr::memmem::find(piece, b"::").is_some() { b"::" } else { b"." };
        // A piece that starts with a separator continues the path before a bracket.
        let is_continuation = !out.is_empty() && piece.starts_with(separator);
        let start = if is_continuation { 0 } else { start_of_last_two(piece, separator) };
        out.extend_from_slice(&piece[start..]);
    }
    out
}

/// True if a byte may be part of a path of names, such as `a::{closure#0}::b` or `a.b`.
fn is_in_path(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b':' | b'.' | b'{' | b'}' | b'#')
}

/// Returns the position of the last two names of a path. Closures in each other are one name, which includes that of their function
/// if they are among the two: without it, all closures of a program are called the same. Those of Go, and numbers, are part of the
/// name before them.
fn start_of_last_two(path: &[u8], separator: &[u8]) -> usize {
    let end_of_function =
        GO_CLOSURES.find(path).filter(|_| separator == b".").map_or(path.len(), |found| found.start());
    let (mut end, mut names, mut is_in_closure) = (end_of_function, 0, false);
    loop {
        let before = memchr::memmem::rfind(&path[..end], separator);
        let start = before.map_or(0, |position| position + separator.len());
        let part = &path[start..end];
        let calls_closure = part == b"operator" && path[..start].ends_with(&[b"}", separator].concat());
        let is_closure = part.starts_with(b"{") || calls_closure;
        names += usize::from(!(is_closure && is_in_closure));
        is_in_closure = is_closure;
        match before {
            Some(position) if names < 2 || is_closure => end = position,
            _ => return start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn takes_linear_time_for_hostile_names() {
        for part in ["<", "(", "[", "f(", "f<", "a::<", "operator<", "<)", "(.", " (", "{"] {
            let opened = part.repeat(500_000 / part.len());
            let start = std::time::Instant::now();
            shorten(opened.as_bytes(), 3);
            shorten(format!("{opened}{}", ">)".repeat(250_000)).as_bytes(), 3);
            assert!(start.elapsed() < std::time::Duration::from_secs(10), "{part}");
        }
    }

    #[test]
    fn removes_more_at_each_level() {
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
            (
                "a::b::<impl a::Trait for a::b::Order<T>>::go::<T>",
                [
                    "a::b::<impl a::Trait for a::b::Order<T>>::go::<T>",
                    "a::b::<impl a::Trait for a::b::Order>::go",
                    "b::<impl a::Trait for b::Order>::go",
                ],
            ),
            ("Program+<>c::<Main>b__0_0", ["Program+<>c::<Main>b__0_0"; 3]),
            ("A$$Lambda.0x0000000100001228.run", ["A$$Lambda.run"; 3]),
            ("A$$Lambda+0x00007f.run", ["A$$Lambda.run"; 3]),
            ("LambdaForm$MH/0x0000000800c91.invoke", ["LambdaForm$MH.invoke"; 3]),
            ("[] (/srv/cart/model.rb)", ["[] (/srv/cart/model.rb)", "[] (/srv/cart/model.rb)", "[] (model.rb)"]),
            (
                "a::(anonymous namespace)::f(int)",
                ["a::(anonymous namespace)::f(int)", "a::(anonymous namespace)::f", "a::(anonymous namespace)::f"],
            ),
            ("S::operator<<(int)", ["S::operator<<(int)", "S::operator<<", "S::operator<<"]),
            ("S::operator==(A<B> const&)", ["S::operator==(A<B> const&)", "S::operator==", "S::operator=="]),
            ("S::operator()(int)", ["S::operator()(int)", "S::operator()", "S::operator()"]),
            ("main::{{closure}}::{{closure}}", ["main::{{closure}}::{{closure}}"; 3]),
            ("a::b::{closure#0}::c", ["a::b::{closure#0}::c", "a::b::{closure#0}::c", "b::{closure#0}::c"]),
            (
                "a::f(int)::{lambda(int)#1}::operator()(int) const",
                [
                    "a::f(int)::{lambda(int)#1}::operator()(int) const",
                    "a::f::{lambda#1}::operator()",
                    "f::{lambda#1}::operator()",
                ],
            ),
            (
                "LazyCompile:*f /srv/shop/cart.js:1:23",
                [
                    "LazyCompile:*f /srv/shop/cart.js:1:23",
                    "LazyCompile:*f /srv/shop/cart.js:1:23",
                    "LazyCompile:*f cart.js:1:23",
                ],
            ),
            (
                "f (https://cdn.example/shop/cart.js:1:23)",
                [
                    "f (https://cdn.example/shop/cart.js:1:23)",
                    "f (https://cdn.example/shop/cart.js:1:23)",
                    "f (cart.js:1:23)",
                ],
            ),
            ("org.apache.Foo.bar", ["org.apache.Foo.bar", "org.apache.Foo.bar", "Foo.bar"]),
            ("A$$Lambda$14/0x00000008c03000.run", ["A$$Lambda.run", "A$$Lambda.run", "A$$Lambda.run"]),
            ("github.com/x/y.(*T).Do", ["github.com/x/y.(*T).Do", "github.com/x/y.(*T).Do", "y.(*T).Do"]),
            ("a/b/gc.compile.func3.1", ["a/b/gc.compile.func3.1", "a/b/gc.compile.func3.1", "gc.compile.func3.1"]),
            ("x.io/y/srv.handle.func1", ["x.io/y/srv.handle.func1", "x.io/y/srv.handle.func1", "srv.handle.func1"]),
            (
                "a/srv.glob..func2.gowrap1",
                ["a/srv.glob..func2.gowrap1", "a/srv.glob..func2.gowrap1", "srv.glob..func2.gowrap1"],
            ),
            ("a/srv.init.0", ["a/srv.init.0", "a/srv.init.0", "srv.init.0"]),
            ("a/srv.Map[int].func1", ["a/srv.Map[int].func1", "a/srv.Map.func1", "srv.Map.func1"]),
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
            (
                "a::b::each<&a::S::operator< , int>(int)",
                ["a::b::each<&a::S::operator< , int>(int)", "a::b::each", "b::each"],
            ),
            ("f(int) (.cold)", ["f(int)", "f", "f"]),
            (
                "py::<module>:/srv/app/web/page.py",
                ["py::<module>:/srv/app/web/page.py", "py::<module>:/srv/app/web/page.py", "py::<module>:page.py"],
            ),
            (
                "JS:*<anonymous> /srv/app/page.test.js:2:1",
                [
                    "JS:*<anonymous> /srv/app/page.test.js:2:1",
                    "JS:*<anonymous> /srv/app/page.test.js:2:1",
                    "JS:*<anonymous> page.test.js:2:1",
                ],
            ),
            (
                "show (/srv/page.php(3) : eval()'d code)",
                [
                    "show (/srv/page.php(3) : eval()'d code)",
                    "show (/srv/page.php(3) : eval()'d code)",
                    "show (page.php(3) : eval()'d code)",
                ],
            ),
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
