//! Mangled C++ and Rust names.

use std::fmt::{self, Write as _};

/// The longest name that is made: some mangled names are short and grow without bound.
const LONGEST: usize = 64 * 1024;

/// The readable name, if this one is mangled, wholly or half, as `perf` leaves Rust's: Rust without its hash, C++ without
/// parameters.
pub(crate) fn demangled(name: &[u8]) -> Option<Vec<u8>> {
    if name.starts_with(b"_R") || name.starts_with(b"_ZN") {
        let name = std::str::from_utf8(name).ok()?;
        if let Ok(rust) = rustc_demangle::try_demangle(name) {
            return bounded(format_args!("{rust:#}"));
        }
    }
    if name.starts_with(b"_Z") {
        return cpp(name);
    }
    let path = std::str::from_utf8(name).ok().filter(|_| ends_in_rust_hash(name))?;
    let mut mangled = String::from("_ZN");
    for part in path.split("::") {
        let _ = write!(mangled, "{}{part}", part.len());
    }
    mangled.push('E');
    let rust = rustc_demangle::try_demangle(&mangled).ok()?;
    bounded(format_args!("{rust:#}"))
}

fn cpp(name: &[u8]) -> Option<Vec<u8>> {
    let symbol = cpp_demangle::Symbol::new(name).ok()?;
    let mut text = Bounded::default();
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(as_others_write(text.0).into_bytes())
}

/// How a literal's type is shown behind it.
const SUFFIXES: [(&str, &str); 5] = [
    ("(unsigned int)", "u"),
    ("(unsigned long)", "ul"),
    ("(unsigned long long)", "ull"),
    ("(long)", "l"),
    ("(long long)", "ll"),
];

/// A C++ name spelled as GNU's demangler does, and with it perf and gdb: `5u` and not `(unsigned int)5`, `<int>` and not
/// `<int, >` where there are no more arguments, and no qualifiers of a function whose parameters are not shown.
fn as_others_write(mut name: String) -> String {
    if name.contains(", >") {
        name = name.replace(", >", ">");
    }
    for (before, behind) in SUFFIXES {
        let mut from = 0;
        while let Some(at) = name[from..].find(before).map(|at| from + at) {
            from = at + before.len();
            let is_digit = |byte: &u8| *byte == b'-' || byte.is_ascii_digit();
            let digits = name.as_bytes()[from..].iter().take_while(|byte| is_digit(byte)).count();
            if digits > 0 {
                name.insert_str(from + digits, behind);
                name.replace_range(at..from, "");
                from = at;
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

/// `…::h` and sixteen hexadecimal digits.
fn ends_in_rust_hash(name: &[u8]) -> bool {
    let Some((path, hash)) = name.split_last_chunk::<16>() else { return false };
    path.ends_with(b"::h") && path.len() > 3 && hash.iter().all(u8::is_ascii_hexdigit)
}

fn bounded(text: fmt::Arguments<'_>) -> Option<Vec<u8>> {
    let mut bounded = Bounded::default();
    bounded.write_fmt(text).ok()?;
    Some(bounded.0.into_bytes())
}

#[derive(Default)]
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_in_cpp_are_spelled_as_by_others() {
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
            assert_eq!(String::from_utf8(super::demangled(mangled.as_bytes()).unwrap()).unwrap(), expected);
        }
    }
}
