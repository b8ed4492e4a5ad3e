//! Machine code that processes generate at run time, and the files in which their compilers describe it.

pub mod code;
pub mod jitdump;
pub mod perf_map;
