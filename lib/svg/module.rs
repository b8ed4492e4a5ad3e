//! Modules of functions: the crate, package, library or source file that a name tells.

use std::borrow::Cow;

use bstr::ByteSlice as _;

use super::c_symbol::{is_source_of_glibc, origin_of_symbol};
use crate::markers;
use crate::script_source::{SourceOrigin, origin_of_source, source_of, split_source_line};
use crate::symbol_name::module::{SystemModule, split_module, system_module};

/// The kind of code that a function belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The program or one of its libraries.
    Module,
    /// The standard library or the runtime of a language.
    Runtime,
    /// Code of the kernel.
    Kernel,
    /// An interpreter of a language.
    Interpreter,
    /// Code that was generated at run time and has no other module.
    Generated,
    /// A frame without a symbol, or one that marks missing frames or samples.
    Unknown,
    /// A function of the thread that woke the sampled one.
    Waker,
    /// Time in which a thread was blocked.
    OffCpu,
    /// Time in which a thread waited for a CPU.
    Runnable,
    /// Time without samples.
    Unsampled,
}

/// Returns the kind and the module of a frame, whose name includes its suffix. The module is empty if the name tells none.
pub fn origin(name: &[u8]) -> (Kind, Cow<'_, str>) {
    let kind = match name {
        markers::OFF_CPU => Some(Kind::OffCpu),
        markers::RUNNABLE => Some(Kind::Runnable),
        markers::UNSAMPLED => Some(Kind::Unsampled),
        b"[python]" | b"[ruby]" | b"[php]" | b"[java]" | b"[perl]" | b"[node]" | b"[v8]" => Some(Kind::Interpreter),
        _ if name.ends_with(markers::WAKER) => Some(Kind::Waker),
        _ if is_interpreter_file(name) => Some(Kind::Interpreter),
        _ if name.starts_with(b"[") => Some(Kind::Unknown),
        _ if name.ends_with(markers::KERNEL) => Some(Kind::Kernel),
        _ => None,
    };
    match kind {
        Some(Kind::Kernel) => return (Kind::Kernel, "kernel".into()),
        Some(Kind::Waker) => return (Kind::Waker, "waker".into()),
        Some(kind) => return (kind, Cow::Borrowed("")),
        None => {}
    }
    let is_generated = name.ends_with(markers::JIT);
    let name = markers::strip_suffix(name).to_str_lossy();
    let (kind, module) = origin_of_text(&name);
    let kind = if is_generated && module.is_empty() && kind == Kind::Module { Kind::Generated } else { kind };
    (kind, Cow::Owned(module.into_owned()))
}

fn origin_of_text(name: &str) -> (Kind, Cow<'_, str>) {
    if let Some(source) = source_of(name) {
        return match origin_of_source(source) {
            SourceOrigin::Package(name) | SourceOrigin::Own(name) => (Kind::Module, name.into()),
            SourceOrigin::StandardLibrary => (Kind::Runtime, "standard library".into()),
        };
    }
    if let Some((plain, source)) = split_source_line(name) {
        return if is_source_of_glibc(source) { (Kind::Runtime, "libc".into()) } else { origin_of_text(plain) };
    }
    // Java has a type before the name: `void java.util.List.sort(int)`.
    let name = match name.split_once(' ') {
        Some((_, rest)) if name.contains('.') && is_java_method(rest) && !name.contains("::") => rest,
        _ => name,
    };
    if let (Some(module), _) = split_module(name.as_bytes()) {
        let kind = match system_module(module) {
            Some(SystemModule::Library) => Kind::Runtime,
            Some(SystemModule::Kernel) => Kind::Kernel,
            None => Kind::Module,
        };
        return (kind, name[..module.len()].into());
    }
    // `net/http.(*conn).serve` is of Go: the last part of a Java path is a class.
    let is_go_path = name.contains('/') && go_package(name).is_some();
    if !is_go_path && is_java_method(name) {
        return origin_of_java(name);
    }
    if name.contains("::") {
        return origin_of_path(name);
    }
    if let Some(package) = go_package(name) {
        let is_runtime =
            matches!(package.split('/').next(), Some("runtime" | "internal" | "syscall" | "sync" | "reflect"));
        return (if is_runtime { Kind::Runtime } else { Kind::Module }, package.into());
    }
    origin_of_symbol(name)
}

/// True for a frame without a symbol in the file of an interpreter, such as `[libruby-3.1.so.3.1.2]` and `[php-fpm8.2]`.
fn is_interpreter_file(name: &[u8]) -> bool {
    const STARTS: [&[u8]; 8] =
        [b"[libruby", b"[libpython", b"[libphp", b"[libperl", b"[libnode", b"[libjvm", b"[php", b"[opcache.so"];
    const PROGRAMS: [&[u8]; 2] = [b"[python", b"[ruby"];
    STARTS.iter().any(|start| name.starts_with(start))
        || PROGRAMS.iter().any(|program| name.strip_prefix(*program).is_some_and(is_version))
}

fn is_version(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b']'))
}

/// Returns the origin of a name with `::`: its first part, or that of the type whose method it is.
fn origin_of_path(name: &str) -> (Kind, Cow<'_, str>) {
    if is_method_of_primitive(name) {
        return (Kind::Runtime, "core".into());
    }
    let mut words = name.split(|next: char| !(next.is_ascii_alphanumeric() || matches!(next, '_' | ':' | '$')));
    // `<&mut T as a::Trait<b::C>>::method` is of crate `a`: the first word with a path.
    let path = match name.starts_with('<') {
        true => words.find(|word| word.trim_end_matches(':').contains("::")).unwrap_or_default(),
        // A return type is before the name.
        false => {
            let name = name.split('<').next().unwrap_or_default();
            // `(anonymous namespace)::run`, `v8::(anonymous namespace)::run` and `node::{lambda(a*, long)#2}::_FUN` have blanks
            // in their parts.
            let start = name.split(['(', '{']).next().unwrap_or_default();
            let name = if start.is_empty() || start.contains("::") || start.ends_with(' ') { start } else { name };
            name.rsplit(' ').next().unwrap_or_default()
        }
    };
    let module = path.trim_start_matches(':').split("::").next().unwrap_or_default();
    // Short debug information has `poll_inner<tokio::Core>` without its path. The paths are those of the types.
    let is_bare = name.ends_with('>') && !path.contains("::");
    if is_bare && name.contains("<__gnu_cxx::") {
        return (Kind::Runtime, "std".into());
    }
    let module = if is_bare || module.starts_with(['(', '{']) { "" } else { module };
    let is_runtime = matches!(
        module,
        "std" | "core" | "alloc" | "__gnu_cxx" | "__cxxabiv1" | "libc" | "backtrace" | "__rustc" | "rt"
    );
    let is_interpreter = matches!(module, "v8" | "node");
    let kind = if is_runtime {
        Kind::Runtime
    } else if is_interpreter {
        Kind::Interpreter
    } else {
        Kind::Module
    };
    (kind, module.into())
}

/// True for names like `<u32>::pow`, `<[T]>::sort` and `<*const T>::add`: only Rust's core library defines methods of these
/// types.
fn is_method_of_primitive(name: &str) -> bool {
    const PRIMITIVES: [&str; 17] = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64", "bool",
        "char", "str",
    ];
    let Some((first, _)) = name.strip_prefix('<').and_then(|name| name.split_once(">::")) else { return false };
    let is_compound = first.starts_with(['[', '*']) && !first.contains(" as ");
    is_compound || PRIMITIVES.contains(&first)
}

/// Returns true for names like `java/util/HashMap::get`, `Lorg/x/Y;` and `com.example.Main.run`: packages, then a class.
fn is_java_method(name: &str) -> bool {
    let name = name.strip_prefix('L').filter(|name| name.contains('/')).unwrap_or(name);
    let path = name.split(['(', ':', ';', '$']).next().unwrap_or_default();
    let parts = path.split(['/', '.']);
    let packages = parts.take_while(|part| part.starts_with(|first: char| first.is_ascii_lowercase())).count();
    let class = path.split(['/', '.']).nth(packages).unwrap_or_default();
    let least = if path.contains('/') { 1 } else { 2 };
    packages >= least && class.starts_with(|first: char| first.is_ascii_uppercase())
}

/// Returns the origin of a Java method: up to three parts of its package.
fn origin_of_java(name: &str) -> (Kind, Cow<'_, str>) {
    let name = name.strip_prefix('L').filter(|name| name.contains('/')).unwrap_or(name);
    let is_runtime = ["java", "javax", "jdk", "sun", "com.sun", "com/sun"]
        .iter()
        .any(|package| name.strip_prefix(package).is_some_and(|rest| rest.starts_with(['.', '/'])));
    let separator = if name.contains('/') { '/' } else { '.' };
    let packages = name.split(separator).take_while(|part| part.starts_with(|first: char| first.is_ascii_lowercase()));
    let length = packages.take(3).map(|part| part.len() + 1).sum::<usize>().saturating_sub(1).min(name.len());
    let module = name.get(..length).unwrap_or_default().replace('/', ".");
    (if is_runtime { Kind::Runtime } else { Kind::Module }, module.into())
}

/// Returns the package of a Go function: `net/http` in `net/http.(*conn).serve`.
fn go_package(name: &str) -> Option<&str> {
    let start = name.rfind('/').map_or(0, |slash| slash + 1);
    let dot = start + name[start..].find('.')?;
    let (package, function) = (&name[..dot], &name[dot + 1..]);
    let is_package = !package.is_empty()
        && package.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"/._-~".contains(&byte));
    // Suffixes of compilers: `parse.constprop.0`, `parse.cold`, `parse.llvm.123`.
    let word = function.split(['.', '[']).next().unwrap_or_default();
    let is_suffix =
        matches!(word, "constprop" | "part" | "isra" | "cold" | "llvm" | "lto_priv" | "localalias" | "so" | "" | "exe")
            || word.starts_with(|first: char| first.is_ascii_digit());
    (is_package && !is_suffix && !name.contains(' ')).then_some(package)
}

#[cfg(test)]
mod tests {
    use super::{Kind, origin};

    #[test]
    fn finds_modules_in_names_of_many_languages() {
        for (name, kind, module) in [
            ("serde_json::ser::to_vec::<Order>", Kind::Module, "serde_json"),
            ("<serde_json::de::Foo as serde::Bar>::go", Kind::Module, "serde_json"),
            ("<&mut T as tokio::io::AsyncRead>::poll", Kind::Module, "tokio"),
            ("<alloc::vec::Vec<T> as core::Clone>::clone", Kind::Runtime, "alloc"),
            ("std::vector<int>::push_back(int const&)", Kind::Runtime, "std"),
            ("<u32>::unchecked_add", Kind::Runtime, "core"),
            ("<[my::Row]>::sort_unstable_by", Kind::Runtime, "core"),
            ("<*const my::Row>::add", Kind::Runtime, "core"),
            ("<[T] as my::Sum>::sum", Kind::Module, "my"),
            ("void ns::run<int>(int)", Kind::Module, "ns"),
            // Short debug information has no paths.
            ("poll_inner<tokio::runtime::Core>", Kind::Module, ""),
            ("sort<__gnu_cxx::__normal_iterator<double*, std::vector<double>>>", Kind::Runtime, "std"),
            ("vfs_read_[k]", Kind::Kernel, "kernel"),
            ("try_to_wake_up_[k]_[w]", Kind::Waker, "waker"),
            ("serde_json::to_vec_[w]", Kind::Waker, "waker"),
            ("[timer]_[w]", Kind::Waker, "waker"),
            ("[libpq.so.5]_[w]", Kind::Waker, "waker"),
            ("[off-cpu]", Kind::OffCpu, ""),
            ("[libx.so]", Kind::Unknown, ""),
            ("[libruby-3.1.so.3.1.2]", Kind::Interpreter, ""),
            ("[php-fpm8.2]", Kind::Interpreter, ""),
            ("[python3.11]", Kind::Interpreter, ""),
            ("[rubyish]", Kind::Unknown, ""),
            ("rb_ary_push", Kind::Interpreter, "interpreter"),
            ("php_output_write", Kind::Interpreter, "interpreter"),
            ("rb_insert", Kind::Module, ""),
            ("[python]", Kind::Interpreter, ""),
            ("Cart.total (/app/cart.rb:7)", Kind::Module, "cart.rb"),
            ("total (cart.php)", Kind::Module, "cart.php"),
            ("<lambda> (/usr/lib/python3.13/json/decoder.py:44)", Kind::Runtime, "standard library"),
            ("sort (/usr/lib/ruby/3.1.0/forwardable.rb)", Kind::Runtime, "standard library"),
            ("render (/usr/lib/ruby/vendor_ruby/tilt/template.rb)", Kind::Module, "tilt"),
            ("Twig\\Lexer::tokenize (/usr/share/php/Twig/Lexer.php)", Kind::Module, "Twig"),
            ("show (/srv/page.php(3) : eval()'d code)", Kind::Module, "page.php"),
            ("preg_match (php)", Kind::Runtime, "standard library"),
            ("(anonymous) (v8)", Kind::Runtime, "standard library"),
            ("<module> (/srv/bin/uvicorn)", Kind::Module, "uvicorn"),
            ("v8::internal::(anonymous namespace)::Invoke", Kind::Interpreter, "v8"),
            ("node::Wrap::{lambda(uv_stream_s*, uv_buf_t const*)#2}::_FUN", Kind::Interpreter, "node"),
            ("inner (django/core/handlers/exception.py)", Kind::Module, "django"),
            ("send (express/lib/response.js:12)", Kind::Module, "express"),
            ("read (@scope/name/lib/x.js)", Kind::Module, "@scope/name"),
            ("Thread.run (threading.py:9)", Kind::Runtime, "standard library"),
            ("BaseEventLoop._run_once (asyncio/base_events.py)", Kind::Runtime, "standard library"),
            ("get (/srv/vendor/symfony/http-kernel/Kernel.php)", Kind::Module, "symfony/http-kernel"),
            ("get (/srv/vendor/name/x.rb)", Kind::Module, "x.rb"),
            ("bool (anonymous namespace)::run", Kind::Module, ""),
            ("(anonymous namespace)::Parser::run", Kind::Module, ""),
            ("Builtins_JSEntry", Kind::Interpreter, "interpreter"),
            ("sort (/var/lib/gems/3.1.0/gems/rack-2.2/lib/rack.rb:3)", Kind::Module, "rack-2.2"),
            ("run (/app/server.js:10:5)", Kind::Module, "server.js"),
            ("org/apache/kafka/clients/Main.run_[j]", Kind::Module, "org.apache.kafka"),
            ("java.util.HashMap.get", Kind::Runtime, "java.util"),
            ("com.sun.net.httpserver.Filter$Chain.doFilter", Kind::Runtime, "com.sun.net"),
            ("com/sunny/Main.run", Kind::Module, "com.sunny"),
            ("Lorg/x/Y;::run", Kind::Module, "org.x"),
            ("bytes.Buffer.Write", Kind::Module, "bytes"),
            ("net/http.Header.Get", Kind::Module, "net/http"),
            ("void org.a.b.C.run(java.lang.Object)", Kind::Module, "org.a.b"),
            ("net/http.(*conn).serve", Kind::Module, "net/http"),
            ("main.main", Kind::Module, "main"),
            ("runtime.mallocgc", Kind::Runtime, "runtime"),
            ("parse.constprop.0", Kind::Module, ""),
            ("parse (/srv/app/main.py:12)", Kind::Module, "main.py"),
            ("get (/x/site-packages/requests/api.py:1)", Kind::Module, "requests"),
            ("<module> (<frozen importlib>:1)", Kind::Runtime, "standard library"),
            ("run /app/node_modules/@a/b/x.js:3", Kind::Module, "@a/b"),
            ("libc.so.6`malloc", Kind::Runtime, "libc.so.6"),
            ("malloc", Kind::Runtime, "libc"),
            // With source lines.
            ("malloc:malloc.c:3329", Kind::Runtime, "libc"),
            ("call_init:../csu/libc-start.c:145", Kind::Runtime, "libc"),
            ("_int_free:./malloc/malloc.c:4302", Kind::Runtime, "libc"),
            ("serde::de::parse:src/de.rs:3", Kind::Module, "serde"),
            ("core::iter::next:/rustc/1/library/core/src/iter.rs:3", Kind::Runtime, "core"),
            ("operator():./string/own.cpp:7", Kind::Module, ""),
            ("net.Dial:/usr/lib/go/src/net/dial.go:475", Kind::Module, "net"),
            ("java.lang.Thread.run:840", Kind::Runtime, "java.lang"),
            ("work:/srv/app.py:12", Kind::Module, "app.py"),
            ("vfs_read:fs/read_write.c:450_[k]", Kind::Kernel, "kernel"),
            ("work:own.c:9", Kind::Module, ""),
            ("_PyEval_EvalFrameDefault", Kind::Interpreter, "interpreter"),
            ("LazyStub_[j]", Kind::Generated, ""),
            ("ExecProcNode", Kind::Module, ""),
            ("::", Kind::Module, ""),
            ("", Kind::Module, ""),
        ] {
            assert_eq!(origin(name.as_bytes()), (kind, module.into()), "{name}");
        }
    }
}
