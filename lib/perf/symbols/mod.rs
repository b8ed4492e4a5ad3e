//! Symbolization: turns the addresses of a recording into function names.
//!
//! [`symbolize`] distributes the addresses among their objects. [`elf`] names those in ELF files by symbols
//! ([`table`]), by PLT stubs ([`plt`]), by debug information ([`dwarf`], found by [`debug_file`]) and by the function
//! table of Go programs ([`go`]); [`kallsyms`] names those in the kernel.

pub mod byte_arena;
pub mod debug_file;
pub mod dwarf;
pub mod elf;
pub mod frame;
pub mod go;
pub mod kallsyms;
pub mod plt;
pub mod symbolize;
pub mod table;
