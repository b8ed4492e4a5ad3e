//! Plain names of C: those of the C library and of interpreters, whose modules the names do not tell.

use std::borrow::Cow;

use super::module::Kind;
use crate::symbol_name::c_library::is_c_library;

/// The beginnings of the names of interpreters' functions. Other programs have red-black trees, too, so `rb_` alone is not Ruby's.
const INTERPRETERS: [&str; 28] = [
    "_Py",
    "Py",
    "Perl_",
    "zend_",
    "_zend_",
    "php_",
    "_emalloc",
    "_efree",
    "Builtins_",
    "onig_",
    "rb_ary_",
    "rb_class_",
    "rb_ec_",
    "rb_enc_",
    "rb_funcall",
    "rb_gc_",
    "rb_hash_",
    "rb_id_table_",
    "rb_iseq_",
    "rb_ivar_",
    "rb_method_",
    "rb_obj_",
    "rb_objspace_",
    "rb_str_",
    "rb_vm_",
    "rb_wb_",
    "rb_yield",
    "ruby_",
];

/// Returns the origin of a plain C symbol, which the name rarely tells.
pub(super) fn origin_of_symbol(name: &str) -> (Kind, Cow<'_, str>) {
    if is_c_library(name.as_bytes()) {
        return (Kind::Runtime, "libc".into());
    }
    let plain = name.split(['.', '@', '(']).next().unwrap_or_default();
    if INTERPRETERS.iter().any(|start| plain.starts_with(start)) {
        return (Kind::Interpreter, "interpreter".into());
    }
    (Kind::Module, "".into())
}

/// True for files of glibc as its debug information names them: `./malloc/malloc.c:3329`, `../sysdeps/x86/start.S:10`.
pub(super) fn is_source_of_glibc(source: &str) -> bool {
    const FOLDERS: [&str; 16] = [
        "csu",
        "elf",
        "io",
        "libio",
        "malloc",
        "math",
        "misc",
        "nptl",
        "posix",
        "resolv",
        "signal",
        "socket",
        "stdio-common",
        "stdlib",
        "string",
        "sysdeps",
    ];
    let path = source.strip_prefix("./").or_else(|| source.strip_prefix("../"));
    let folder = path.and_then(|path| path.split_once('/')).map(|(folder, _)| folder);
    folder.is_some_and(|folder| FOLDERS.contains(&folder))
        && [".c:", ".S:", ".h:"].iter().any(|end| source.contains(end))
}

#[cfg(test)]
mod tests {
    use super::{Kind, origin_of_symbol};

    #[test]
    fn functions_of_the_c_library_are_of_the_runtime() {
        for name in ["__open_nocancel", "_nl_intern_locale_data", "setlocale", "dl_main", "openaux", "__dcigettext"] {
            assert_eq!(origin_of_symbol(name), (Kind::Runtime, "libc".into()), "{name}");
        }
        assert_eq!(origin_of_symbol("open_orders").0, Kind::Module);
    }
}
