//! Function names as a person would write them: demangled, and without the argument lists that are noise in a picture.
//!
//! Brackets are matched, so that a name is never cut in half: what stands inside templates, lambdas' braces and
//! `(anonymous namespace)` stays, and so does what follows the arguments of an enclosing function.

use std::borrow::Cow;

use super::mangling::demangled;

/// Where JIT compilers name what is no function: parentheses in it are not argument lists.
const NO_FUNCTIONS: [&[u8]; 2] = [b"RegExp:", b"py::"];

/// Operators whose name would be taken for a bracket, the longest first.
const OPERATORS: [&[u8]; 14] =
    [b"<=>", b"<<=", b">>=", b"->*", b"<<", b">>", b"<=", b">=", b"->", b"()", b"[]", b"<", b">", b"-="];

/// Words after which a parenthesis belongs to the name.
const NOT_CALLS: [&[u8]; 5] = [b"decltype", b"noexcept", b"sizeof", b"alignof", b"typeof"];

/// The length of the longest of them.
const LONGEST_NOT_CALL: usize = 8;

/// The name, demangled and without argument lists.
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
    let name = without_version(name);
    match demangled(name) {
        Some(readable) => Cow::Owned(without_arguments(&readable).into_owned()),
        None => without_arguments(name),
    }
}

/// The name without the version of a library's symbol: `memcpy@@GLIBC_2.14`.
fn without_version(name: &[u8]) -> &[u8] {
    let Some(at) = memchr::memrchr(b'@', name).filter(|at| *at > 0) else { return name };
    let version = &name[at + 1..];
    let of_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let is_version = version.first().is_some_and(u8::is_ascii_uppercase)
        && version.iter().all(of_word)
        && version.contains(&b'_')
        && version.iter().any(u8::is_ascii_digit);
    if is_version { name[..at].strip_suffix(b"@").unwrap_or(&name[..at]) } else { name }
}

/// The frames that a symbol stands for, root first: more than one where a JIT compiler lists inlined functions in it.
/// Those but the first are to be marked with [`INLINED`]. In threads of `java`, classes lose their leading `L`.
pub fn frames(symbol: &[u8], java: bool) -> impl Iterator<Item = Cow<'_, [u8]>> {
    inlined(symbol).map(move |part| match part.strip_prefix(b"L") {
        Some(class) if java && memchr::memchr(b'/', simplify(part).as_ref()).is_some() => simplify(class),
        _ => simplify(part),
    })
}

/// Whether a thread of this name runs Java.
pub fn is_java(comm: &[u8]) -> bool {
    comm.starts_with(b"java")
}

/// The parts of a name in which a JIT compiler lists inlined functions: `caller->inlined->inlined`.
fn inlined(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut parts = vec![];
    let (mut start, mut at) = (0, 0);
    let mut unclosed = Unclosed::default();
    let last_arrow = memchr::memmem::rfind(name, b"->");
    while last_arrow.is_some_and(|last| at <= last) {
        if let Some(token) = operator(name, at) {
            at += token;
        } else if name[at..].starts_with(b"->") && at > start && name[at - 1] != b' ' {
            parts.push(&name[start..at]);
            at += 2;
            start = at;
        } else {
            at = unclosed.end_of_group(name, at).unwrap_or(at + 1);
        }
    }
    parts.push(&name[start..]);
    parts.into_iter()
}

fn without_arguments(name: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'(', name).is_none() || NO_FUNCTIONS.iter().any(|prefix| name.starts_with(prefix)) {
        return Cow::Borrowed(name);
    }
    let mut kept = Vec::with_capacity(name.len());
    let mut unclosed = Unclosed::default();
    let mut after_operator = false;
    let mut at = 0;
    while at < name.len() {
        let is_list = name[at] == b'(' && (after_operator || ends_a_name(&kept));
        let end = match operator(name, at) {
            Some(token) => at + token,
            None => match unclosed.end_of_group(name, at) {
                Some(end) if is_list => match after_arguments(name, end) {
                    Some(next) => {
                        at = next;
                        continue;
                    }
                    None => break,
                },
                Some(end) => end,
                None if is_list => break,
                None => at + 1,
            },
        };
        after_operator = operator(name, at).is_some();
        kept.extend_from_slice(&name[at..end]);
        at = end;
    }
    if kept.len() == name.len() { Cow::Borrowed(name) } else { Cow::Owned(kept) }
}

/// Whether a parenthesis that follows opens an argument list.
fn ends_a_name(text: &[u8]) -> bool {
    let Some(last) = text.last() else { return false };
    let named = is_word(*last) || matches!(last, b'>' | b'}' | b']' | b'\'');
    // No further back than it takes to see that the word is too long: a name may be of one word and many lists.
    let end = &text[text.len().saturating_sub(LONGEST_NOT_CALL + 1)..];
    let word = end.iter().rposition(|byte| !is_word(*byte)).map_or(0, |before| before + 1);
    named && !NOT_CALLS.contains(&&end[word..])
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// Where the name goes on after the arguments of an enclosing function, which end at `end`; `None` if they were the
/// last thing in it but for qualifiers, return types and clone suffixes.
fn after_arguments(name: &[u8], end: usize) -> Option<usize> {
    let mut rest = &name[end..];
    while let Some(shorter) = [&b" const"[..], b" volatile", b" noexcept", b" &&", b" &", b"&&", b"&"]
        .iter()
        .find_map(|qualifier| rest.strip_prefix(*qualifier))
    {
        rest = shorter;
    }
    (rest.starts_with(b"::") || rest.starts_with(b"(")).then(|| name.len() - rest.len())
}

/// If the word `operator` stands here with a symbol that holds brackets: how long both are.
fn operator(name: &[u8], at: usize) -> Option<usize> {
    const WORD: &[u8] = b"operator";
    let rest = name[at..].strip_prefix(WORD)?;
    if at > 0 && is_word(name[at - 1]) {
        return None;
    }
    OPERATORS.iter().find(|symbol| rest.starts_with(symbol)).map(|symbol| WORD.len() + symbol.len())
}

/// Finds where brackets close, and remembers which kinds do not: a name of nothing but `<` must not take long.
#[derive(Default)]
struct Unclosed([bool; 4]);

impl Unclosed {
    /// If a bracket opens here and is closed: the place behind the closing one.
    fn end_of_group(&mut self, name: &[u8], at: usize) -> Option<usize> {
        let kind = b"<([{".iter().position(|open| *open == name[at])?;
        if self.0[kind] {
            return None;
        }
        let end = end_of_group(name, at);
        self.0[kind] = end.is_none();
        end
    }
}

fn end_of_group(name: &[u8], start: usize) -> Option<usize> {
    let mut open: Vec<u8> = Vec::new();
    let mut at = start;
    while at < name.len() {
        if let Some(token) = operator(name, at) {
            at += token;
            continue;
        }
        match name[at] {
            b'<' => open.push(b'>'),
            b'(' => open.push(b')'),
            b'[' => open.push(b']'),
            b'{' => open.push(b'}'),
            // An arrow, or greater-than.
            b'>' if at > 0 && name[at - 1] == b'-' || open.last() != Some(&b'>') => {}
            close @ (b'>' | b')' | b']' | b'}') => {
                // A `<` that is still open was less-than.
                let matching = open.iter().rposition(|expected| *expected == close)?;
                open.truncate(matching);
                if open.is_empty() {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{inlined, simplify};

    #[test]
    fn argument_lists_go_and_names_stay_whole() {
        for (name, tidied) in [
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
            assert_eq!(String::from_utf8_lossy(&simplify(name.as_bytes())), tidied, "{name}");
        }
    }

    #[test]
    fn mangled_names_are_read() {
        for (name, tidied) in [
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
            assert_eq!(String::from_utf8_lossy(&simplify(name.as_bytes())), tidied, "{name}");
        }
    }

    #[test]
    fn arrows_part_inlined_functions_and_nothing_else() {
        let parts = |name: &'static str| -> Vec<&str> {
            inlined(name.as_bytes()).map(|part| std::str::from_utf8(part).unwrap()).collect()
        };
        assert_eq!(parts("LA;::f->LB;::g->LC;::<init>"), ["LA;::f", "LB;::g", "LC;::<init>"]);
        for whole in ["P::operator->", "P::operator->*", "f(u8) -> u8", "g<a->b>", "->x", "", "x->"] {
            let expected: &[&str] = if whole == "x->" { &["x", ""] } else { &[whole] };
            assert_eq!(parts(whole), expected);
        }
    }

    #[test]
    fn hostile_names_do_not_take_long() {
        for part in ["<", "(", "[", "{", "a(", "a", "{[", "operator<", "(>", "<)", "()", "->", "_Z", "a->", "::"] {
            for end in ["", "->", "()"] {
                let name = format!("{}{end}", part.repeat(500_000 / part.len()));
                let begun = std::time::Instant::now();
                simplify(name.as_bytes());
                inlined(name.as_bytes()).count();
                simplify(format!("{name}{}", "()".repeat(200_000)).as_bytes());
                assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{part}…{end}");
            }
        }
    }
}
