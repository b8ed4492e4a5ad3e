//! Parses the lines that all Java stack traces share: `at package.Class.method(File.java:10)`.

use crate::collapse::line_helpers::{parse_number, split_once};
use crate::collapse::options::Options;

/// Returns the function of a frame.
pub(super) fn parse_frame<'a>(line: &'a [u8], options: &Options) -> Option<&'a [u8]> {
    let function = parse_call(line)?;
    // A module or class loader may precede the class: `java.base@17/java.lang.Thread.run`.
    let plain = match split_once(function, "/") {
        Some((module, class)) if !options.verbatim && (module.contains(&b'@') || module.ends_with(b".base")) => class,
        _ => function,
    };
    (!plain.is_empty()).then_some(plain)
}

/// Returns the function of a frame with its module. Some loggers append the archive that contains it:
/// ` ~[app.jar:1.0]`.
pub(super) fn parse_call(line: &[u8]) -> Option<&[u8]> {
    let call = line.trim_ascii().strip_prefix(b"at ")?;
    let archive = &call[memchr::memrchr(b')', call)? + 1..];
    let is_archive = (archive.starts_with(b" [") || archive.starts_with(b" ~[")) && archive.ends_with(b"]");
    let (function, _) = split_once(call, "(").filter(|_| archive.is_empty() || is_archive)?;
    // JavaScript has a blank there: `at f (a.js:3:5)`.
    Some(function).filter(|function| !function.ends_with(b" "))
}

/// Returns a thread's name without its number in a thread pool (`worker-3`), unless `--tid` keeps threads apart.
pub(super) fn pool_name<'a>(name: &'a [u8], options: &Options) -> &'a [u8] {
    let Some(dash) = memchr::memrchr(b'-', name).filter(|dash| *dash > 0 && !options.tid) else { return name };
    if parse_number(&name[dash + 1..]).is_some() { &name[..dash] } else { name }
}
