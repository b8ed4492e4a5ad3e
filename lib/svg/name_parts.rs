//! The parts of qualified names, in the syntax of many languages. `viewer/label.js` has the same rules.

/// Suffixes that compilers append to the name of a part or a copy of a function, and extensions of files: no names of functions.
const SUFFIXES: [&str; 20] = [
    "cold",
    "part",
    "isra",
    "constprop",
    "localalias",
    "lto_priv",
    "llvm",
    "_omp_fn",
    "resume",
    "destroy",
    "cleanup",
    "so",
    "js",
    "mjs",
    "py",
    "rb",
    "php",
    "c",
    "dll",
    "exe",
];

/// Separators of the parts of qualified names.
pub(super) const SEPARATORS: [char; 7] = [':', '/', '.', ' ', '\\', '`', '!'];

/// Returns the indexes where the parts of a qualified name start. Separators in brackets do not count. A closure
/// belongs to the part before it, and the call operator of a C++ lambda to the lambda.
pub(super) fn part_starts(name: &str) -> Vec<usize> {
    if is_bracketed(name) {
        return vec![0];
    }
    let bytes = name.as_bytes();
    let (arity, first_dot) = (arity_start(name), first_dot(name));
    let last_dot = memchr::memrchr(b'.', bytes).unwrap_or(0);
    let mut starts = vec![0];
    let mut depth = 0u32;
    for (index, byte) in bytes.iter().enumerate() {
        let (before, after) = (&bytes[..index], &bytes[index + 1..]);
        match byte {
            b'<' | b'>' if before.ends_with(b"operator") || before.ends_with(b"operator<") => {}
            b'>' if before.ends_with(b"-") => {}
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_separator = match byte {
            b':' => before.ends_with(b":") || arity < name.len(),
            b'/' => index != arity,
            b'.' => (index >= first_dot && !is_closure_of_go(&name[index + 1..])) || before.ends_with(b":"),
            b'\\' | b'`' | b'!' => after.first().is_some_and(u8::is_ascii_alphabetic),
            // After a return type, as in `int Counter.next`.
            b' ' => index < last_dot && !before.ends_with(b"operator") && !matches!(after.first(), Some(b'[' | b'(')),
            _ => false,
        };
        let is_call_operator = before.ends_with(b"}:") && after.starts_with(b"operator()");
        let ends_part = is_separator && !is_call_operator && depth == 0;
        let is_turbofish = after.starts_with(b"<") && !after.starts_with(b"<impl");
        if ends_part && !is_turbofish && !after.is_empty() && !after.starts_with(b"{") && !after.starts_with(b":") {
            starts.push(index + 1);
        }
    }
    starts
}

/// True for a name in angle brackets, as Python has them.
fn is_bracketed(name: &str) -> bool {
    let end =
        name.strip_prefix('<').and_then(|inner| inner.find(['<', '>']).filter(|end| inner[*end..].starts_with('>')));
    end.is_some_and(|end| end + 2 == name.len())
}

/// Returns the index of the slash before the number of arguments of an Erlang function, `lists:map/2`, or the length.
fn arity_start(name: &str) -> usize {
    let slash = name.rfind('/').filter(|slash| {
        let digits = &name[slash + 1..];
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    slash.unwrap_or(name.len())
}

/// Returns the index from which on dots separate the parts of a name, as in `com.example.Main.run`, `main.run` and
/// `net/http.(*conn).serve`; the length if they do not.
fn first_dot(name: &str) -> usize {
    let slash = name[..arity_start(name)].rfind('/');
    let last = &name[slash.unwrap_or(0)..];
    let is_file = slash.is_some() && (name.starts_with('/') || ends_with_line(name));
    let is_path = name.contains("::") || is_file || last.split('.').skip(1).any(|part| SUFFIXES.contains(&part));
    if is_path { name.len() } else { slash.unwrap_or(0) }
}

/// True for a part of a name that says nothing alone: `func1.2` of a closure in Go, or a number.
fn is_closure_of_go(part: &str) -> bool {
    let number = ["func", "gowrap", "deferwrap"].iter().find_map(|kind| part.strip_prefix(kind)).unwrap_or(part);
    number.starts_with(|first: char| first.is_ascii_digit())
}

/// True for a name that ends in the number of a line or a column.
pub(super) fn ends_with_line(name: &str) -> bool {
    name.rsplit_once(':').is_some_and(|(_, line)| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()))
}
