//! Turns a recording into a profile or into the text of `perf script`.

pub mod perf_script;
pub mod profile;
