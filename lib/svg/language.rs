//! Tells kinds of frames apart by their names, for the palettes of programming languages.

use bstr::ByteSlice as _;

use super::ramp::Ramp;
use crate::markers;

/// A language whose profiles have a palette of their own, and its way of naming frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Names of the Java virtual machine, such as `java/util/HashMap::get`.
    Java,
    /// Names of JavaScript engines, such as `run /app/x.js:3`.
    Js,
    /// Names of the Perl interpreter, such as `Perl_runops`.
    Perl,
    /// Names of Python profilers, such as `parse (app.py:1)`.
    Python,
    /// Rust paths, such as `app::parse`.
    Rust,
}

/// Returns the ramp of a frame in a language's palette. The first rule that matches wins.
pub fn ramp(language: Language, name: &[u8]) -> Ramp {
    match language {
        Language::Java => java_ramp(name),
        Language::Js => js_ramp(name),
        Language::Perl => perl_ramp(name),
        Language::Python => python_ramp(name),
        Language::Rust => rust_ramp(name),
    }
}

fn java_ramp(name: &[u8]) -> Ramp {
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

/// True for names like `java/util/HashMap::get`, `Lorg/x/Y;` and `com.example.Main.run`.
fn is_java_path(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"L").unwrap_or(name);
    let packages = ["java/", "javax/", "jdk/", "net/", "org/", "com/", "io/", "sun/"];
    if packages.iter().any(|package| name.starts_with(package.as_bytes())) {
        return true;
    }
    let dots = name.iter().filter(|byte| **byte == b'.').count();
    dots >= 2 && !name.contains_str("::") && !name.starts_with(b"[") && !name.contains_str(".so")
}

fn js_ramp(name: &[u8]) -> Ramp {
    let path = name.find_byte(b'/').map_or(&b""[..], |slash| &name[slash..]);
    if name.ends_with(markers::JIT) {
        if path.is_empty() { Ramp::Aqua } else { Ramp::Green }
    } else if name.ends_with(markers::KERNEL) {
        Ramp::Orange
    } else if name.contains_str("::") {
        Ramp::Yellow
    } else if path.contains_str("node_modules/") {
        Ramp::Purple
    } else if path.contains_str(".js") {
        Ramp::Green
    } else if name.contains(&b':') {
        Ramp::Aqua
    } else if name == b" " {
        Ramp::Green
    } else {
        Ramp::Red
    }
}

fn perl_ramp(name: &[u8]) -> Ramp {
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

fn python_ramp(name: &[u8]) -> Ramp {
    let mut parts = name.split(|byte| matches!(byte, b'/' | b'\\'));
    if parts.clone().any(|part| part == b"site-packages") {
        Ramp::Aqua
    } else if parts.any(is_python_directory)
        || ["<built-in", "<method", "<frozen"].iter().any(|prefix| name.starts_with_str(prefix))
    {
        Ramp::Yellow
    } else {
        Ramp::Red
    }
}

/// True for the directory of a Python version: `python3.12`, `Python310`.
fn is_python_directory(part: &[u8]) -> bool {
    let version = part.strip_prefix(b"python").or_else(|| part.strip_prefix(b"Python"));
    version.is_some_and(|version| version.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'))
}

fn rust_ramp(name: &[u8]) -> Ramp {
    let name = name.find_byte(b'`').map_or(name, |module_end| &name[module_end + 1..]);
    let path = name.strip_prefix(b"<").unwrap_or(name);
    // A future of this type runs the code of a crate.
    let is_future = name.starts_with_str("<core::future::from_generator::GenFuture<T>");
    if ["core::", "std::", "alloc::"].iter().any(|library| path.starts_with_str(library)) && !is_future {
        Ramp::Orange
    } else if name.contains_str("::") {
        Ramp::Aqua
    } else {
        Ramp::Yellow
    }
}

#[cfg(test)]
mod tests {
    use super::{Language, Ramp, ramp};

    #[test]
    fn tells_kinds_of_frames_by_name() {
        for (language, name, expected) in [
            (Language::Java, "java/util/HashMap::get_[j]", Ramp::Green),
            (Language::Java, "Lorg/x/Y:::run_[i]", Ramp::Aqua),
            (Language::Java, "com.example.Main.run", Ramp::Green),
            (Language::Java, "CompileBroker::invoke", Ramp::Yellow),
            (Language::Java, "vfs_read_[k]", Ramp::Orange),
            (Language::Java, "libc.so.6", Ramp::Red),
            (Language::Js, "LazyCompile:~run /app/x.js:3", Ramp::Green),
            (Language::Js, "run /app/node_modules/y/x.js:3", Ramp::Purple),
            (Language::Js, "run /app/x.js_[j]", Ramp::Green),
            (Language::Js, "run_[j]", Ramp::Aqua),
            (Language::Js, "Builtin:ArrayMap", Ramp::Aqua),
            (Language::Js, "v8::Function::Call", Ramp::Yellow),
            (Language::Perl, "Perl_runops", Ramp::Green),
            (Language::Python, "f (/usr/lib/python3.12/site-packages/x.py:1)", Ramp::Aqua),
            (Language::Python, "f (/usr/lib/python3.12/os.py:1)", Ramp::Yellow),
            (Language::Python, "<module> (app.py:1)", Ramp::Red),
            (Language::Rust, "<alloc::vec::Vec<T> as core::ops::Drop>::drop", Ramp::Orange),
            (Language::Rust, "app::parse", Ramp::Aqua),
            (Language::Rust, "main", Ramp::Yellow),
        ] {
            assert_eq!(ramp(language, name.as_bytes()), expected, "{name}");
        }
    }
}
