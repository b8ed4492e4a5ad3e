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
    Some(text.0.into_bytes())
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
