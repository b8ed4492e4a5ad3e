//! Functions of libraries and run times, by their names.

use std::sync::LazyLock;

use bstr::ByteSlice as _;
use regex::bytes::RegexSet;

use super::brackets::is_word;
use super::c_library::is_c_library;
use crate::pattern_list::compile_list;

static LIBRARIES: LazyLock<RegexSet> = LazyLock::new(|| compile_list(include_str!("libraries.txt")));

static CLOSED: LazyLock<RegexSet> = LazyLock::new(|| compile_list(include_str!("closed.txt")));

/// True for a function of a library or a run time. The name has no module, no frame suffix and no return type. A method of a trait
/// of Rust is one if the trait and the type both are of libraries, or the type is of the language.
pub fn is_library(name: &[u8]) -> bool {
    let method = name.strip_prefix(b"<").and_then(|method| method.split_once_str(" as "));
    let Some((of_type, of_trait)) = method else {
        return has_library_prefix(name) || is_c_library(name);
    };
    let path = of_type.trim_start_with(|letter| !letter.is_ascii_lowercase());
    let has_crate = path.find("::").is_some_and(|end| path[..end].iter().all(|byte| is_word(*byte)));
    has_library_prefix(of_trait) && (!has_crate || has_library_prefix(path))
}

/// True for a name of a library other than that of C.
pub fn has_library_prefix(name: &[u8]) -> bool {
    LIBRARIES.is_match(name)
}

/// True for a function that calls no function of the program: an entry of the kernel, and functions of the C library.
pub fn calls_no_program(name: &[u8]) -> bool {
    CLOSED.is_match(name)
}
