//! Says what a text that is no profile looks like, for a message.

mod diff;
mod lines;

pub(super) use self::diff::{has_line_numbers, has_prefixes, is_diff, is_diff_of_stacks};
pub(super) use self::lines::{has_other_lines, has_text_semicolons, is_metrics, is_semicolon_table};
use super::line_helpers::{first_lines, most_lines_fit, split_once, split_words, starts_with_any};
pub(super) use crate::folded::{begins_with_time, is_log_line};

/// The kind of a text that has no stacks, but could.
pub(super) const STRACE: &str = "output of strace";

/// The kind of a text that may contain a profile.
pub(super) const LOG: &str = "a log";

/// The kind of a text that contains parts of two files.
pub(super) const DIFF: &str = "a diff";

/// The kind of a text with something before each line.
pub(super) const PREFIXED: &str = "text with a number or a mark before each line";

/// The kind of a JSON document.
pub(super) const JSON: &str = "JSON";

/// Most lines with control characters in a text with zero bytes, of which they are a tenth at most.
const MAX_BINARY_LINES: usize = 4;

/// Number of first lines of a text that have no control characters.
const CLEAN_LINES: usize = 4;

/// Returns true if the beginning of an input is no text. A few lines of what a program printed may have zero bytes, but not
/// beside colours, which are dropped from text without any.
pub(super) fn is_binary(head: &[u8]) -> bool {
    if memchr::memchr(0, head).is_none() {
        return false;
    }
    let lines = head.split(|byte| *byte == b'\n');
    let binary = lines.clone().filter(|line| line.iter().any(is_control)).take(MAX_BINARY_LINES + 1).count();
    memchr::memchr(b'\x1b', head).is_some()
        || binary > MAX_BINARY_LINES
        || binary * 10 > lines.clone().count()
        || lines.take(CLEAN_LINES).any(|line| line.iter().any(is_control))
}

/// True for control characters that text does not contain. Escape sequences of terminals are allowed.
pub(super) fn is_control(byte: &u8) -> bool {
    byte.is_ascii_control() && !b"\t\n\x0c\r\x1b".contains(byte)
}

/// Returns the kind of a text, by most of its first lines.
pub(super) fn describe(head: &[u8]) -> &'static str {
    let start = head.trim_ascii_start();
    if is_diff(head) || most_lines_fit(head, 60, is_name_and_number) && is_diff_of_stacks(head) {
        DIFF
    } else if most_lines_fit(head, 60, is_system_call) {
        STRACE
    } else if most_lines_fit(head, 60, is_log_line) {
        LOG
    } else if matches!(start.first(), Some(b'{' | b'[')) && most_lines_fit(head, 50, is_json_line) {
        JSON
    } else if is_markup(start) && most_lines_fit(head, 50, |line| line.contains(&b'<')) {
        "XML"
    } else if is_table(head) || is_semicolon_table(head) {
        "a table (CSV)"
    } else if is_metrics(head) {
        "metrics"
    } else if has_prefixes(head) && most_lines_fit(head, 80, |line| line.contains(&b';')) {
        PREFIXED
    } else if most_lines_fit(head, 40, is_code) {
        "source code"
    } else if most_lines_fit(head, 60, is_name_and_number) {
        "text of names and numbers"
    } else if most_lines_fit(head, 60, is_prose) {
        "prose"
    } else {
        "text"
    }
}

/// Returns true if a text begins with a tag or a declaration. `<module> (a.py:3)` is the name of a function.
fn is_markup(text: &[u8]) -> bool {
    let tag = text.strip_prefix(b"<").unwrap_or_default();
    let after = memchr::memchr(b'>', tag).map(|end| tag[end + 1..].trim_ascii_start());
    after.is_some_and(|after| after.is_empty() || after.starts_with(b"<"))
}

/// Returns true for a line of a JSON document. `[INFO] started` is none.
fn is_json_line(line: &[u8]) -> bool {
    line.iter().any(|byte| b"{}\"".contains(byte)) || matches!(line.trim_ascii_end().last(), Some(b'[' | b']' | b','))
}

/// Returns true for a line of strace: `read(3, "", 12) = 0`.
fn is_system_call(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let call = split_once(line, "(").is_some_and(|(name, rest)| {
        let name = name.rsplit(u8::is_ascii_whitespace).next().unwrap_or(name);
        let is_name = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        is_name
            && memchr::memmem::find(rest, b") ").is_some_and(|end| rest[end + 2..].trim_ascii_start().starts_with(b"="))
    });
    call || line.starts_with(b"+++ exited") || line.starts_with(b"--- SIG")
}

/// Returns true if nearly all lines have the same number of a separator, at least two.
pub(super) fn is_table(head: &[u8]) -> bool {
    b",\t|".iter().any(|separator| is_table_of(head, *separator))
}

fn is_table_of(head: &[u8], separator: u8) -> bool {
    if memchr::memchr(separator, head).is_none() {
        return false;
    }
    let counts = first_lines(head).map(|line| count_outside_quotes(line, separator));
    let columns = counts.into_iter().find(|count| *count > 0).unwrap_or(0);
    let lines = first_lines(head).filter(|line| !line.trim_ascii().is_empty()).count();
    columns >= 2 && lines >= 2 && most_lines_fit(head, 80, |line| count_outside_quotes(line, separator) == columns)
}

/// Returns the number of a separator in a line, without those in quotes and those between types: `f<int, char>(a, b)`.
fn count_outside_quotes(line: &[u8], separator: u8) -> usize {
    let (mut count, mut is_quoted, mut depth) = (0, false, 0usize);
    for byte in line {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'<' | b'(' => depth += 1,
            b'>' | b')' => depth = depth.saturating_sub(1),
            _ => count += usize::from(*byte == separator && !is_quoted && depth == 0),
        }
    }
    count
}

/// Returns true if the first line of a text is a comment or a declaration of a programming language.
pub(super) fn begins_like_code(head: &[u8]) -> bool {
    let start = head.trim_ascii_start();
    [&b"//"[..], b"/*", b"package ", b"#include", b"#!", b"import "].iter().any(|first| start.starts_with(first))
}

/// Returns true for a line as programs contain them.
fn is_code(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let starts: [&[u8]; 12] = [
        b"#include",
        b"#define",
        b"//",
        b"/*",
        b"* ",
        b"import ",
        b"from ",
        b"def ",
        b"fn ",
        b"pub ",
        b"return",
        b"if",
    ];
    matches!(line.last(), Some(b';' | b'{' | b'}' | b':' | b'\\'))
        || ends_with_call(line)
        || starts_with_any(line, &starts)
}

/// Returns true for a line that ends with a call, whose bracket follows a name: `f(x)`, but not `f (x.c)`.
fn ends_with_call(line: &[u8]) -> bool {
    let name = line.ends_with(b")").then(|| split_once(line, "(")).flatten().map(|(name, _)| name);
    name.and_then(<[u8]>::last).is_some_and(|last| last.is_ascii_alphanumeric() || *last == b'_')
}

fn is_name_and_number(line: &[u8]) -> bool {
    let mut words = split_words(line);
    words.next().is_some_and(is_number) || words.last().is_some_and(is_number)
}

fn is_number(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// Returns true for four words of letters.
fn is_prose(line: &[u8]) -> bool {
    split_words(line)
        .filter(|word| word.iter().filter(|byte| byte.is_ascii_alphabetic()).count() * 4 >= word.len() * 3)
        .count()
        >= 4
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn describes_common_texts() {
        for (text, kind) in [
            ("{\n \"a\": 1\n}\n", "JSON"),
            ("<a>\n<b/>\n</a>\n", "XML"),
            ("read(3, \"a;b\", 832) = 832\nclose(3)                = 0\n", "output of strace"),
            ("[    0.000000] Linux version 6.1; x 12\n[    0.000001] y 3\n", "a log"),
            ("Nov  3 10:00:01 host sshd[1]: a; b 12\n", "a log"),
            ("2026-11-23T10:00:00Z INFO a; b 12\n", "a log"),
            ("10.0.0.1 - - [27/Nov/2026:07:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n", "a log"),
            ("diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a;b 1\n+a;b 2\n", "a diff"),
            ("*** a\t2026\n--- b\t2026\n***************\n*** 1,2 ****\n! a;b 1\n", "a diff"),
            ("Process,Stack,Count\na.exe,x;y,12\nb.exe,x,3\n", "a table (CSV)"),
            ("int main() {\n  return 0;\n}\n", "source code"),
            ("nr_free_pages 1\nnr_zone_active 12\n", "text of names and numbers"),
            ("std::map<int, int, long> a\nf(int, char, long) b\ng(int, char, long) c\n", "text"),
            ("1: 14 [B (java.base@17)\n2: 13 java.lang.String (java.base@17)\n", "text"),
            ("print(a)\nb = f(g(x), 2)\n", "source code"),
            ("There is no profile in\nthese two lines of text.\n", "prose"),
        ] {
            assert_eq!(describe(text.as_bytes()), kind, "{text}");
        }
    }
}
