//! Function names: demangled, simplified or shortened for people to read.

pub mod brackets;
pub mod c_library;
pub mod demangle;
pub mod inherent;
pub mod inlined;
pub mod java;
pub mod kernel;
pub mod library;
pub mod module;
pub mod return_type;
pub mod script;
pub mod shorten;
pub mod simplify;
