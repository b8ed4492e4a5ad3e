//! What a recording is turned into: a profile, or the text of `perf script`.

pub mod perf_script;
pub mod profile;
