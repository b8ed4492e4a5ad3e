//! Function names: demangled, simplified or shortened for people to read.

mod brackets;
pub mod demangle;
pub mod inlined;
pub mod java;
pub mod kernel;
pub mod script;
pub mod shorten;
pub mod simplify;
