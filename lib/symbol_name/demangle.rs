//! Demangles Rust and C++ names.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::{self, Write as _};

use rustc_hash::FxHashMap;

/// The maximum length of a demangled name: a short mangled name can expand without bound.
const MAX_LENGTH: usize = 64 * 1024;

/// The types of literals as `cpp_demangle` prints them, before the number, and the suffixes that GNU's demangler prints
/// after it.
const LITERAL_TYPES: [(&str, &str); 5] = [
    ("(unsigned int)", "u"),
    ("(unsigned long)", "ul"),
    ("(unsigned long long)", "ull"),
    ("(long)", "l"),
    ("(long long)", "ll"),
];

/// A cache of demangled names: many addresses are in the same function.
#[derive(Debug, Default)]
pub struct Demangler {
    cache: RefCell<FxHashMap<Vec<u8>, Vec<u8>>>,
}

impl Demangler {
    /// Demangles a name like [`demangle`].
    pub fn demangle(&self, name: &[u8]) -> Vec<u8> {
        if let Some(demangled) = self.cache.borrow().get(name) {
            return demangled.clone();
        }
        let demangled = demangle(name).into_owned();
        self.cache.borrow_mut().insert(name.to_vec(), demangled.clone());
        demangled
    }
}

/// Demangles a symbol's name: Rust names lose their hash, C++ names their parameters. Other names only lose the version
/// that linkers append (`memcpy@@GLIBC_2.14`).
pub fn demangle(name: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(name) else { return Cow::Borrowed(name) };
    let version = text.find("@@").or_else(|| text.find('@')).unwrap_or(text.len());
    let (unversioned, _) = text.split_at(version);
    match try_demangle(unversioned.as_bytes()) {
        Some(demangled) => Cow::Owned(demangled),
        None => Cow::Borrowed(unversioned.as_bytes()),
    }
}

/// Demangles a name without a version. Returns `None` if it is not mangled.
///
/// Also accepts Rust names that perf has demangled in part, so that they still end in a hash.
pub(crate) fn try_demangle(name: &[u8]) -> Option<Vec<u8>> {
    if name.starts_with(b"_R") || name.starts_with(b"_ZN") {
        let name = std::str::from_utf8(name).ok()?;
        if let Ok(demangled) = rustc_demangle::try_demangle(name) {
            return format_bounded(format_args!("{demangled:#}"));
        }
    }
    if name.starts_with(b"_Z") {
        return demangle_cpp(name);
    }
    demangle_partly_demangled_rust(name)
}

fn demangle_cpp(name: &[u8]) -> Option<Vec<u8>> {
    let symbol = cpp_demangle::Symbol::new(name).ok()?;
    let mut text = BoundedString::default();
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(to_gnu_style(text.0).into_bytes())
}

/// Demangles a name like `_$LT$core..option..Option$LT$T$GT$$GT$::and_then::h47fa4b8545196b9b`.
fn demangle_partly_demangled_rust(name: &[u8]) -> Option<Vec<u8>> {
    let path = std::str::from_utf8(name).ok().filter(|_| ends_in_rust_hash(name))?;
    let mut mangled = String::from("_ZN");
    for part in path.split("::") {
        let _ = write!(mangled, "{}{part}", part.len());
    }
    mangled.push('E');
    let demangled = rustc_demangle::try_demangle(&mangled).ok()?;
    format_bounded(format_args!("{demangled:#}"))
}

/// Respells a C++ name as GNU's demangler does, and with it perf and gdb: `5u` instead of `(unsigned int)5`, `<int>`
/// instead of `<int, >`, and no qualifiers of a function whose parameters are not printed.
fn to_gnu_style(mut name: String) -> String {
    if name.contains(", >") {
        name = name.replace(", >", ">");
    }
    for (literal_type, suffix) in LITERAL_TYPES {
        let mut from = 0;
        while let Some(start) = name[from..].find(literal_type).map(|offset| from + offset) {
            from = start + literal_type.len();
            let number = name.bytes().skip(from).take_while(|byte| *byte == b'-' || byte.is_ascii_digit());
            let digits = number.count();
            if digits > 0 {
                name.insert_str(from + digits, suffix);
                name.replace_range(start..from, "");
                from = start;
            }
        }
    }
    // `operator int const` is a name.
    if !name.contains("operator ") {
        while let Some(rest) = [" const", " volatile", " &", " &&"].iter().find_map(|last| name.strip_suffix(last)) {
            name.truncate(rest.len());
        }
    }
    name
}

/// Returns true if a name ends in `::h` and 16 hexadecimal digits.
fn ends_in_rust_hash(name: &[u8]) -> bool {
    let Some((path, hash)) = name.split_last_chunk::<16>() else { return false };
    path.ends_with(b"::h") && path.len() > 3 && hash.iter().all(u8::is_ascii_hexdigit)
}

/// Formats a name; `None` if it is longer than [`MAX_LENGTH`].
fn format_bounded(text: fmt::Arguments<'_>) -> Option<Vec<u8>> {
    let mut bounded = BoundedString::default();
    bounded.write_fmt(text).ok()?;
    Some(bounded.0.into_bytes())
}

/// A string that refuses to grow beyond [`MAX_LENGTH`].
#[derive(Default)]
struct BoundedString(String);

impl fmt::Write for BoundedString {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_LENGTH {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    fn demangle(name: &str) -> String {
        String::from_utf8(super::demangle(name.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn demangles_rust_and_cpp_names() {
        assert_eq!(demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"), "std::vector<int, std::allocator<int> >::push_back");
        assert_eq!(demangle("_ZN12_GLOBAL__N_13runEv"), "(anonymous namespace)::run");
        assert_eq!(demangle("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_Z"), "_Z");
    }

    #[test]
    fn spells_cpp_names_like_gnu() {
        for (mangled, expected) in [
            (
                "_ZN4llvm15AnalysisManagerINS_8FunctionEJEE10invalidateEv",
                "llvm::AnalysisManager<llvm::Function>::invalidate",
            ),
            ("_Z1fI1AIiJEEJEEvv", "f<A<int>>"),
            ("_Z1fIiLj5ELl5ELm5ELx5ELyn5EEvv", "f<int, 5u, 5l, 5ul, 5ll, -5ull>"),
            ("_Z1fILs5ELc65ELin5ELb1EEvv", "f<(short)5, (char)65, -5, true>"),
            ("_ZN1AcvKiEv", "A::operator int const"),
            ("_ZNVKO1A1fEv", "A::f"),
            ("_ZNKR1A1fEv", "A::f"),
            ("_ZZNK1A1fEvENKUlvE_clEv", "A::f() const::{lambda()#1}::operator()"),
        ] {
            assert_eq!(demangle(mangled), expected);
        }
    }
}
