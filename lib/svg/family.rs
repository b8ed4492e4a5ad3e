//! What a frame's name tells of its kind, in the languages whose profiles are coloured by kind. The first rule that
//! matches wins.

use bstr::ByteSlice as _;

use super::colour::Ramp;
use crate::markers;

/// A language's way of naming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The Java virtual machine.
    Java,
    /// JavaScript engines.
    Js,
    /// Perl.
    Perl,
    /// Python.
    Python,
    /// Rust.
    Rust,
}

/// The ramp of a frame in a family's palette.
pub fn ramp(family: Family, name: &[u8]) -> Ramp {
    match family {
        Family::Java => java(name),
        Family::Js => js(name),
        Family::Perl => perl(name),
        Family::Python => python(name),
        Family::Rust => rust(name),
    }
}

fn java(name: &[u8]) -> Ramp {
    if name.ends_with(markers::JIT) {
        Ramp::Green
    } else if name.ends_with(markers::INLINED) {
        Ramp::Aqua
    } else if name.ends_with(markers::KERNEL) {
        Ramp::Orange
    } else if is_java_path(name) || name.contains_str(":::") {
        Ramp::Green
    } else if name.contains_str("::") {
        Ramp::Yellow
    } else {
        Ramp::Red
    }
}

/// `java/util/HashMap::get`, `Lorg/x/Y;`, `com.example.Main.run`.
fn is_java_path(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"L").unwrap_or(name);
    let slashes = ["java/", "javax/", "jdk/", "net/", "org/", "com/", "io/", "sun/"];
    if slashes.iter().any(|package| name.starts_with(package.as_bytes())) {
        return true;
    }
    let dots = name.iter().filter(|byte| **byte == b'.').count();
    dots >= 2 && !name.contains_str("::") && !name.starts_with(b"[") && !name.contains_str(".so")
}

fn js(name: &[u8]) -> Ramp {
    if name.ends_with(markers::JIT) {
        if name.contains(&b'/') { Ramp::Green } else { Ramp::Aqua }
    } else if name.ends_with(markers::KERNEL) {
        Ramp::Orange
    } else if name.contains_str("::") {
        Ramp::Yellow
    } else if name.find_byte(b'/').is_some_and(|at| name[at..].contains_str("node_modules/")) {
        Ramp::Purple
    } else if name.find_byte(b'/').is_some_and(|at| name[at..].contains_str(".js")) {
        Ramp::Green
    } else if name.contains(&b':') {
        Ramp::Aqua
    } else if name == b" " {
        Ramp::Green
    } else {
        Ramp::Red
    }
}

fn perl(name: &[u8]) -> Ramp {
    if name.ends_with(markers::KERNEL) {
        Ramp::Orange
    } else if name.contains_str("Perl") || name.contains_str(".pl") {
        Ramp::Green
    } else if name.contains_str("::") {
        Ramp::Yellow
    } else {
        Ramp::Red
    }
}

fn python(name: &[u8]) -> Ramp {
    let mut parts = name.split(|byte| matches!(byte, b'/' | b'\\'));
    if parts.clone().any(|part| part == b"site-packages") {
        Ramp::Aqua
    } else if parts.any(is_python_folder)
        || ["<built-in", "<method", "<frozen"].iter().any(|own| name.starts_with_str(own))
    {
        Ramp::Yellow
    } else {
        Ramp::Red
    }
}

/// `python3.12`, `Python310`.
fn is_python_folder(part: &[u8]) -> bool {
    let version = part.strip_prefix(b"python").or_else(|| part.strip_prefix(b"Python"));
    version.is_some_and(|version| version.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'))
}

fn rust(name: &[u8]) -> Ramp {
    let name = name.find_byte(b'`').map_or(name, |module| &name[module + 1..]);
    let inner = name.strip_prefix(b"<").unwrap_or(name);
    let future = name.starts_with_str("<core::future::from_generator::GenFuture<T>");
    if ["core::", "std::", "alloc::"].iter().any(|own| inner.starts_with_str(own)) && !future {
        Ramp::Orange
    } else if name.contains_str("::") {
        Ramp::Aqua
    } else {
        Ramp::Yellow
    }
}

#[cfg(test)]
mod tests {
    use super::{Family, Ramp, ramp};

    #[test]
    fn names_tell_their_kind() {
        for (family, name, expected) in [
            (Family::Java, "java/util/HashMap::get_[j]", Ramp::Green),
            (Family::Java, "Lorg/x/Y:::run_[i]", Ramp::Aqua),
            (Family::Java, "com.example.Main.run", Ramp::Green),
            (Family::Java, "CompileBroker::invoke", Ramp::Yellow),
            (Family::Java, "vfs_read_[k]", Ramp::Orange),
            (Family::Java, "libc.so.6", Ramp::Red),
            (Family::Js, "LazyCompile:~run /app/x.js:3", Ramp::Green),
            (Family::Js, "run /app/node_modules/y/x.js:3", Ramp::Purple),
            (Family::Js, "Builtin:ArrayMap", Ramp::Aqua),
            (Family::Js, "v8::Function::Call", Ramp::Yellow),
            (Family::Perl, "Perl_runops", Ramp::Green),
            (Family::Python, "f (/usr/lib/python3.12/site-packages/x.py:1)", Ramp::Aqua),
            (Family::Python, "f (/usr/lib/python3.12/os.py:1)", Ramp::Yellow),
            (Family::Python, "<module> (app.py:1)", Ramp::Red),
            (Family::Rust, "<alloc::vec::Vec<T> as core::ops::Drop>::drop", Ramp::Orange),
            (Family::Rust, "app::parse", Ramp::Aqua),
            (Family::Rust, "main", Ramp::Yellow),
        ] {
            assert_eq!(ramp(family, name.as_bytes()), expected, "{name}");
        }
    }
}
