//! Names of functions of scripts, which contain their file: `py::run:/srv/app.py`, `run (/srv/app.py:3)`.

use bstr::ByteSlice as _;

/// Files of these names are told apart by their directory alone.
const COMMON_FILES: [&str; 5] = ["__init__.", "index.", "mod.", "main.", "lib."];

/// The beginnings of names of functions of scripts: of Python's perf trampoline, and of V8.
const PREFIXES: [&[u8]; 6] = [b"py::", b"JS:", b"LazyCompile:", b"Function:", b"Script:", b"Eval:"];

/// True for a function of a script. It has no arguments: brackets contain a file, or are part of a name like `<module>`.
pub fn is_script(name: &[u8]) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || ends_in_source(name)
}

/// True if parentheses after a blank are the end of a name: `run (app.py:3)`, but not `each<void (int)>`, `each(int)` or
/// `each (.cold)`.
fn ends_in_source(name: &[u8]) -> bool {
    let mut depth = 0;
    for (at, letter) in name.iter().enumerate().rev() {
        match letter {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let is_part = name[at..].starts_with(b"(.") && !name[at..].contains(&b'/');
            return *letter == b'(' && name[..at].ends_with(b" ") && !is_part;
        }
    }
    false
}

/// Returns a name with the last part only of each absolute path, and of each URL of a file: `py::run:/srv/app.py` becomes
/// `py::run:app.py`, and `run (https://host/app.js:1)` becomes `run (app.js:1)`. Files that are named alike in every directory keep
/// it.
pub fn without_directories(name: &[u8]) -> Vec<u8> {
    let mut short = Vec::with_capacity(name.len());
    let mut start = 0;
    for end in memchr::memchr3_iter(b' ', b':', b'(', name).map(|at| at + 1).chain([name.len()]) {
        let part = &name[start..end];
        let file = part.strip_prefix(b"/").and_then(|path| {
            let (directory, file) = path.rsplit_once_str("/")?;
            let is_common = COMMON_FILES.iter().any(|stem| file.starts_with(stem.as_bytes()));
            let start = directory.rfind_byte(b'/').map_or(0, |slash| slash + 1);
            if path.starts_with(b"/") && scheme_length(&short) > 0 {
                // Other addresses are no paths of files.
                if !file.contains(&b'.') {
                    return None;
                }
                short.truncate(short.len() - scheme_length(&short));
            }
            Some(if is_common { &path[start..] } else { file })
        });
        short.extend_from_slice(file.filter(|file| !file.is_empty()).unwrap_or(part));
        start = end;
    }
    short
}

/// Returns the length of the scheme of a URL at the end of a text, with its colon: 6 for `run (https:`.
fn scheme_length(text: &[u8]) -> usize {
    let Some(scheme) = text.strip_suffix(b":") else { return 0 };
    let is_in_scheme = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    match scheme.iter().rev().take_while(is_in_scheme).count() {
        0 => 0,
        length => length + 1,
    }
}
