//! The names of code that processes generate at run time, and the files in which JIT compilers describe it.

pub mod code;
mod fields;
pub mod jitdump;
pub mod perf_map;
mod source_lines;
