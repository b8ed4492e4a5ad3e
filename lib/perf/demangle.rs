//! Names as people write them: Rust and C++ symbols demangled.

use std::borrow::Cow;

use cpp_demangle::DemangleOptions;

/// The name demangled: Rust without its hash, C++ without parameters. Any other name as it is.
pub fn demangle(name: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(name) else { return Cow::Borrowed(name) };
    // Linkers and compilers append what is no part of the mangled name.
    let version = text.find("@@").or_else(|| text.find('@')).unwrap_or(text.len());
    let (mangled, _) = text.split_at(version);
    match rust(mangled).or_else(|| cpp(mangled)) {
        Some(name) => Cow::Owned(name.into_bytes()),
        None => Cow::Borrowed(mangled.as_bytes()),
    }
}

fn rust(name: &str) -> Option<String> {
    let may_be = name.starts_with("_R") || name.starts_with("_ZN") || name.starts_with("__ZN");
    may_be.then(|| rustc_demangle::try_demangle(name).ok()).flatten().map(|name| format!("{name:#}"))
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") && !name.starts_with("___Z") {
        return None;
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    cpp_demangle::Symbol::new(name).ok()?.demangle_with_options(&options).ok()
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
