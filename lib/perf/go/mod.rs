//! The function table of Go programs (`.gopclntab`).
//!
//! The runtime of Go needs this table, so stripped programs have it too. It has the name of each function, and for each
//! instruction the source line, the inlined calls and the number of bytes that the function has pushed. The symbols and
//! the unwinder read it.
//!
//! [`locate`] finds the table in an ELF file, and [`table`] reads it.

pub mod locate;
pub mod table;
