//! What Java's stack traces have in common: `at package.Class.method(File.java:10)`, leaf first.

use crate::collapse::{Options, text};

/// The function of a frame.
pub(super) fn frame<'a>(line: &'a [u8], options: &Options) -> Option<&'a [u8]> {
    let function = call(line)?;
    // A module or loader may stand before the class: `java.base@17/java.lang.Thread.run`.
    let plain = match text::split_once(function, "/") {
        Some((module, class)) if !options.verbatim && (module.contains(&b'@') || module.ends_with(b".base")) => class,
        _ => function,
    };
    (!plain.is_empty()).then_some(plain)
}

/// What is called in a frame, with its module. Loggers say behind it which archive it is from: ` ~[app.jar:1.0]`.
pub(super) fn call(line: &[u8]) -> Option<&[u8]> {
    let call = line.trim_ascii().strip_prefix(b"at ")?;
    let archive = &call[memchr::memrchr(b')', call)? + 1..];
    let is_archive = (archive.starts_with(b" [") || archive.starts_with(b" ~[")) && archive.ends_with(b"]");
    let (function, _) = text::split_once(call, "(").filter(|_| archive.is_empty() || is_archive)?;
    Some(function)
}

/// A thread's name without the number that tells it from others of its pool, unless threads are wanted apart.
pub(super) fn thread<'a>(name: &'a [u8], options: &Options) -> &'a [u8] {
    let Some(dash) = memchr::memrchr(b'-', name).filter(|dash| *dash > 0 && !options.tid) else { return name };
    if text::number(&name[dash + 1..]).is_some() { &name[..dash] } else { name }
}
