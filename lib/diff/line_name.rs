//! Names with the line of a source file.

use std::ops::Range;

use bstr::ByteSlice as _;

use super::path_name::is_end;

/// Extensions of source files. Without one, a word before a number may be a host with a port, or a queue of the kernel.
const EXTENSIONS: [&str; 70] = [
    "S", "R", "ads", "adb", "asm", "c", "c++", "cc", "clj", "coffee", "cpp", "cr", "cs", "cts", "cu", "cxx", "d",
    "dart", "el", "erl", "ex", "exs", "f", "f90", "fs", "go", "groovy", "h", "hh", "hpp", "hrl", "hs", "hxx", "inc",
    "inl", "java", "jl", "js", "jsx", "kt", "kts", "lisp", "lua", "m", "mjs", "cjs", "ml", "mli", "mm", "mts", "nim",
    "php", "phtml", "pl", "pm", "py", "pyx", "r", "rb", "rs", "s", "scala", "svelte", "swift", "tcl", "ts", "tsx",
    "vala", "vue", "zig",
];

/// Most digits of a line.
const MAX_DIGITS: usize = 7;

/// A name with the line of a source file: `parse (app.py:12)`, `parse:app.c:12`, `parse app.js:12:5`, `Shop#parse - app.rb:12`,
/// `app.py:parse:12` or `acme.Shop.parse:12`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineName<'a> {
    name: &'a [u8],
    /// The file; the class of a method without one.
    pub file: &'a [u8],
    pub line: u32,
    /// The place of `:12` or `:12:5`.
    numbers: Range<usize>,
}

impl<'a> LineName<'a> {
    /// Parses a name; `None` if it has no line.
    pub fn parse(name: &'a [u8]) -> Option<Self> {
        let annotated = match name {
            // As in `run:app.c:3_[i]`.
            [text @ .., b'_', b'[', _, b']'] => text,
            _ => name,
        };
        let (text, is_in_brackets) = match annotated {
            [text @ .., b')'] => (text, true),
            _ => (annotated, false),
        };
        let (start, line) = split_numbers(text)?;
        let before = &text[..start];
        let file = if is_in_brackets { file_in_brackets(before) } else { find_file(before) }?;
        Some(Self { name, file, line, numbers: start..text.len() })
    }

    /// Returns the name without the line.
    pub fn plain(&self) -> Vec<u8> {
        [&self.name[..self.numbers.start], &self.name[self.numbers.end..]].concat()
    }
}

/// Splits off the line at the end of a text, or the line and the column. Returns where they start, and the line.
fn split_numbers(text: &[u8]) -> Option<(usize, u32)> {
    let last = split_number(text)?;
    Some(split_number(&text[..last.0]).unwrap_or(last))
}

fn split_number(text: &[u8]) -> Option<(usize, u32)> {
    let colon = memchr::memrchr(b':', text).filter(|colon| *colon > 0)?;
    let digits = &text[colon + 1..];
    let is_number = digits.len() <= MAX_DIGITS && digits.iter().all(u8::is_ascii_digit);
    let number = digits.to_str().ok().filter(|_| is_number)?.parse().ok()?;
    Some((colon, number))
}

/// Returns the file of `run (app.py` and `run (<frozen runpy>`, but nothing of `run(int`.
fn file_in_brackets(text: &[u8]) -> Option<&[u8]> {
    let open = memchr::memrchr(b'(', text)?;
    let (function, file) = (&text[..open], &text[open + 1..]);
    ((function.is_empty() || function.ends_with(b" ")) && !file.is_empty()).then_some(file)
}

/// Returns the file at the end of a text. In front of it is the function, or behind it.
fn find_file(text: &[u8]) -> Option<&[u8]> {
    let start = word_start(text);
    let (before, word) = (&text[..start], &text[start..]);
    if word.is_empty() {
        return None;
    }
    if is_source(word) || before.ends_with(b" - ") {
        return Some(word);
    }
    if let Some(before) = before.strip_suffix(b":") {
        let file = &before[word_start(before)..];
        return is_source(file).then_some(file);
    }
    let (class, method) = word.rsplit_once_str(".").filter(|_| before.is_empty())?;
    let is_letter = |byte: &u8| !byte.is_ascii_digit();
    (class.first().is_some_and(is_letter) && method.first().is_some_and(is_letter)).then_some(class)
}

/// Returns where the last word of a text starts. Words may be in angle brackets: `<frozen runpy>`.
fn word_start(text: &[u8]) -> usize {
    match text.ends_with(b">").then(|| memchr::memrchr(b'<', text)).flatten() {
        Some(open) => open,
        None => text.iter().rposition(|byte| is_end(char::from(*byte))).map_or(0, |at| at + 1),
    }
}

/// True for the name of a source file, and for an absolute path.
fn is_source(word: &[u8]) -> bool {
    let extension = word.rsplit_once_str(".").and_then(|(_, extension)| extension.to_str().ok());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) || word.len() > 1 && word.starts_with(b"/")
}

#[cfg(test)]
mod tests {
    use super::LineName;

    /// Returns the file, the line and the name without it.
    fn parse(name: &str) -> Option<(String, u32, String)> {
        let found = LineName::parse(name.as_bytes())?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Some((text(found.file), found.line, text(&found.plain())))
    }

    #[test]
    fn parses_the_lines_of_all_profilers() {
        for (name, file, plain) in [
            ("parse (app.py:12)", "app.py", "parse (app.py)"),
            ("<module> (/srv/my app.py:12)", "/srv/my app.py", "<module> (/srv/my app.py)"),
            (
                "find (<frozen importlib._bootstrap>:12)",
                "<frozen importlib._bootstrap>",
                "find (<frozen importlib._bootstrap>)",
            ),
            ("f (https://a.org:8080/x.js:12:5)", "https://a.org:8080/x.js", "f (https://a.org:8080/x.js)"),
            ("Shop#each - shop.rb:12", "shop.rb", "Shop#each - shop.rb"),
            ("run - bin/rake:12", "bin/rake", "run - bin/rake"),
            ("shop::parse:shop.rs:12", "shop.rs", "shop::parse:shop.rs"),
            ("parse:shop.c:12_[i]", "shop.c", "parse:shop.c_[i]"),
            ("main.run:/src/a.go:12", "/src/a.go", "main.run:/src/a.go"),
            ("JS:*f /srv/app.js:12:5", "/srv/app.js", "JS:*f /srv/app.js"),
            ("(anonymous) app.mjs:12", "app.mjs", "(anonymous) app.mjs"),
            ("/srv/app.py:run:12", "/srv/app.py", "/srv/app.py:run"),
            ("app.py:12", "app.py", "app.py"),
            ("acme.Shop.lambda$run$0:12", "acme.Shop", "acme.Shop.lambda$run$0"),
            ("acme.Shop.run:12_[j]", "acme.Shop", "acme.Shop.run_[j]"),
        ] {
            assert_eq!(parse(name), Some((file.to_owned(), 12, plain.to_owned())), "{name}");
        }
    }

    #[test]
    fn other_numbers_are_no_lines() {
        for name in [
            "",
            ":",
            ":1",
            "f",
            "f:1",
            "f:",
            "f()",
            "f (a)",
            "f (:3)",
            "f (a.py:)",
            "f(int:3)",
            "a::b:3",
            "kworker/0:1",
            "kworker/u8:2",
            "10.0.0.1:80",
            "connect db.example.org:5432",
            "12:30:45",
            "f (a.py:12345678)",
            "f (a.py:-1)",
            "f (a.py:1x)",
            "GET /a:b",
            "x  :3",
            "app.py:12+0x1f",
            "f - :3",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
