//! Symbolization: from addresses in objects to the names of functions.

pub mod byte_arena;
pub mod debug_file;
pub mod dwarf;
pub mod elf;
pub mod frame;
pub mod kallsyms;
pub mod plt;
pub mod symbolize;
pub mod table;
