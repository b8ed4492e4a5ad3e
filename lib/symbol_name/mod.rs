//! Names of functions: demangled, simplified and shortened for people to read.

pub mod demangle;
pub(crate) mod mangling;
pub mod shorten;
pub mod simplify;
