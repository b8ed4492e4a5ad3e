//! Functions of the C library, by their names.

use std::sync::LazyLock;

use regex::bytes::RegexSet;

use crate::pattern_list::compile_list;

static FUNCTIONS: LazyLock<RegexSet> = LazyLock::new(|| compile_list(include_str!("c_library.txt")));

/// Returns true for a function of the C library, the dynamic linker or the runtime of C compilers. The name has no module and no
/// frame suffix. A program may have functions with such names.
pub fn is_c_library(name: &[u8]) -> bool {
    FUNCTIONS.is_match(name)
}

#[cfg(test)]
mod tests {
    use super::is_c_library;

    #[test]
    fn functions_of_the_c_library_are_known() {
        for name in [
            "__open_nocancel",
            "__open64",
            "_nl_load_locale_from_archive",
            "setlocale",
            "dl_main",
            "dlopen_doit",
            "handle_amd",
            "openaux",
            "__dcigettext",
            "malloc_consolidate",
            "__memmove_avx512_unaligned_erms",
            "__strcoll_l",
            "strlen",
            "free@@GLIBC_2.2.5",
            "qsort_r",
            "__printf_chk",
            "epoll_wait",
            "_int_free_merge_chunk",
            "sysmalloc.part.0",
            "fopen64",
            "_IO_file_xsputn",
            "__getpid",
            "msort_with_tmp.part.0",
        ] {
            assert!(is_c_library(name.as_bytes()), "{name}");
        }
        for name in ["main", "openings", "str_split", "mem_pool", "freeze", "reader", "sorted", "opened_file", "timer"]
        {
            assert!(!is_c_library(name.as_bytes()), "{name}");
        }
    }
}
