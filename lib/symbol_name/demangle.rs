//! Names as people write them: Rust and C++ symbols demangled.

use std::borrow::Cow;
use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::mangling;

/// Demangles each name once: many places lie in one function.
#[derive(Debug, Default)]
pub struct Demangler {
    known: RefCell<FxHashMap<Vec<u8>, Vec<u8>>>,
}

impl Demangler {
    /// As [`demangle`].
    pub fn demangle(&self, name: &[u8]) -> Vec<u8> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let readable = demangle(name).into_owned();
        self.known.borrow_mut().insert(name.to_vec(), readable.clone());
        readable
    }
}

/// The name demangled: Rust without its hash, C++ without parameters. Any other name as it is.
pub fn demangle(name: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(name) else { return Cow::Borrowed(name) };
    // Linkers and compilers append what is no part of the mangled name.
    let version = text.find("@@").or_else(|| text.find('@')).unwrap_or(text.len());
    let (mangled, _) = text.split_at(version);
    match mangling::demangled(mangled.as_bytes()) {
        Some(name) => Cow::Owned(name),
        None => Cow::Borrowed(mangled.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    fn demangled(name: &str) -> String {
        String::from_utf8(super::demangle(name.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn rust_and_cpp_names_are_readable() {
        assert_eq!(demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
        assert_eq!(demangled("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(
            demangled("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back"
        );
        assert_eq!(demangled("_ZN12_GLOBAL__N_13runEv"), "(anonymous namespace)::run");
        assert_eq!(demangled("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(demangled("main"), "main");
        assert_eq!(demangled("_Z"), "_Z");
    }
}
