//! The names of code that processes generate at run time, and the files in which JIT compilers describe it.

pub mod code;
pub mod jitdump;
pub mod perf_map;
