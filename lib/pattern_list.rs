//! Compiles the lists of patterns by which functions are known.
//!
//! The patterns contain ASCII only, and match bytes: classes such as `\w` of all scripts take most of the time of a short
//! report to compile.

use regex::bytes::{RegexSet, RegexSetBuilder};

/// Largest size of compiled patterns in bytes.
const SIZE_LIMIT: usize = 64 << 20;

/// Compiles patterns of this crate.
///
/// # Panics
/// If a pattern is invalid.
pub(crate) fn compile<'a>(patterns: impl IntoIterator<Item = &'a str>) -> RegexSet {
    let compiled = RegexSetBuilder::new(patterns).unicode(false).size_limit(SIZE_LIMIT).build();
    compiled.expect("valid patterns")
}

/// Compiles the patterns of a list: one a line; lines that start with `#` are comments.
///
/// # Panics
/// If a pattern is invalid.
pub(crate) fn compile_list(list: &str) -> RegexSet {
    compile(list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')))
}
