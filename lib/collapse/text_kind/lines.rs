//! Recognizes other texts whose lines end in numbers.

use bstr::ByteSlice as _;
use rustc_hash::FxHashSet;

use super::is_log_line;
use crate::collapse::line_helpers::{
    first_lines, most_lines_fit, split_once, split_word, split_words, starts_with_any,
};

/// Returns true if most lines are those of a log, of JSON, of a preprocessor, or of mail.
pub(in crate::collapse) fn has_other_lines(head: &[u8]) -> bool {
    let is_other = |line: &[u8]| is_log_line(line) || is_json(line) || is_directive(line) || has_mail_address(line);
    most_lines_fit(head, 80, is_other)
}

/// Returns true for `{"a": 1}`.
fn is_json(line: &[u8]) -> bool {
    starts_with_any(line.trim_ascii_start(), &[b"{\"", b"[{\""])
}

fn is_directive(line: &[u8]) -> bool {
    starts_with_any(line, &[b"#define ", b"#include ", b"#if", b"#endif", b"#undef "])
}

/// Returns true for `Name <name@host.example> 12`.
fn has_mail_address(line: &[u8]) -> bool {
    let address = split_once(line, "<").and_then(|(_, rest)| split_once(rest, ">")).map(|(address, _)| address);
    let parts = address.and_then(|address| split_once(address, "@"));
    parts.is_some_and(|(name, host)| {
        let is_part = |part: &[u8]| part.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(byte));
        !name.is_empty() && is_part(name) && host.contains(&b'.') && is_part(host)
    })
}

/// Returns true for metrics of Prometheus without their heading, of which at least a fifth have labels.
pub(in crate::collapse) fn is_metrics(head: &[u8]) -> bool {
    most_lines_fit(head, 80, |line| line.starts_with(b"#") || is_metric(line)) && most_lines_fit(head, 20, has_labels)
}

/// Returns true for `requests_total{code="200"} 12` and `requests_total 12`.
fn is_metric(line: &[u8]) -> bool {
    let end = line.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"_:".contains(byte));
    end.is_some_and(|end| end > 0 && (line[end] == b' ' || has_labels(line)))
}

/// Returns true for a name, and labels in braces behind it: `requests_total{code="200"}`.
fn has_labels(line: &[u8]) -> bool {
    let Some((name, labels)) = split_once(line, "{") else { return false };
    let key = split_once(labels, "=\"").map_or(&b""[..], |(key, _)| key);
    let is_name =
        |text: &[u8]| !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(byte));
    is_name(name) && is_name(key) && labels.contains_str("\"}")
}

/// Fewest rows of a table with semicolons.
const MIN_ROWS: usize = 2;

/// Returns true for columns with semicolons between, as spreadsheets write them where the comma is the decimal point: each
/// line has the same number of them, and the first one is a heading, or the last column has numbers with blanks within.
pub(in crate::collapse) fn is_semicolon_table(head: &[u8]) -> bool {
    let mut lines = first_lines(head).map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let Some(first) = lines.next().filter(|first| first.contains(&b';')) else { return false };
    let columns = |line: &[u8]| memchr::memchr_iter(b';', line).count();
    let rows: FxHashSet<&[u8]> = lines.clone().collect();
    let count = lines.clone().count();
    if count < MIN_ROWS || rows.len() < count || lines.clone().any(|line| columns(line) != columns(first)) {
        return false;
    }
    // Stacks mostly begin with the same frame.
    let mut roots = lines.clone().map(|line| line.split(|byte| *byte == b';').next());
    let first_root = roots.next();
    let has_one_root = roots.all(|root| Some(root) == first_root);
    // The frames of a stack without a weight are those of others, too.
    let cells: FxHashSet<(usize, &[u8])> =
        lines.clone().flat_map(|line| line.split(|byte| *byte == b';').enumerate()).collect();
    let has_heading = !has_one_root
        && !first.iter().any(u8::is_ascii_digit)
        && !first.split(|byte| *byte == b';').enumerate().any(|cell| cells.contains(&cell));
    has_heading || is_row_with_number(first) && lines.all(is_row_with_number)
}

/// Returns true for `Meier;Anna;030 1234567`.
fn is_row_with_number(line: &[u8]) -> bool {
    let Some((columns, last)) = line.rsplit_once_str(";") else { return false };
    let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    split_words(last).count() > 1 && split_words(last).all(is_number) && columns.iter().any(u8::is_ascii_alphabetic)
}

/// Returns true if each semicolon within a text has a blank behind it, as those of prose and programs have.
pub(in crate::collapse) fn has_text_semicolons(stack: &[u8]) -> bool {
    let mut ends = memchr::memchr_iter(b';', stack).filter(|end| end + 1 < stack.len()).peekable();
    ends.peek().is_some() && ends.all(|end| stack[end + 1] == b' ') && !split_word(stack).0.is_empty()
}

#[cfg(test)]
mod tests {
    use super::{has_other_lines, has_text_semicolons, is_metrics, is_semicolon_table};

    #[test]
    fn other_lines_are_told_from_stacks() {
        for (text, expected) in [
            ("{\"a\": \"x;y\"} 11\n", true),
            ("#define FOO(x) 12\n", true),
            ("Seed <maintainers@users.example.org> 1795763844\n", true),
            ("{main};f 1\n", false),
            ("operator<<@plt 3\n", false),
            ("f<a@b>::g 3\n", false),
        ] {
            assert_eq!(has_other_lines(text.as_bytes()), expected, "{text}");
        }
        assert!(is_metrics(b"# TYPE a info\na{x=\"(y)\"} 12\na{x=\"z\"} 14\n"));
        assert!(is_metrics(b"http_requests_total{code=\"200\",method=\"get\"} 1027\ngo_goroutines 12\n"));
        assert!(!is_metrics(b"do_sys_open 5\nvfs_read 7\n") && !is_metrics(b"{closure};f 3\n"));
    }

    #[test]
    fn semicolons_of_text_are_told_from_those_of_stacks() {
        for (stack, expected) in [
            ("cd /tmp; sleep", true),
            ("Set-Cookie: a=b; Path=/; Max-Age", true),
            ("mov eax, ebx ; comment", true),
            ("main;f", false),
            ("main;", false),
            ("a; b;c", false),
            ("main", false),
        ] {
            assert_eq!(has_text_semicolons(stack.as_bytes()), expected, "{stack}");
        }
    }

    #[test]
    fn tables_with_semicolons_are_told_from_stacks() {
        for (text, expected) in [
            ("Name;City;Street\nMeier;Berlin;Hill 12\nSchulz;Bonn;Lane 5\n", true),
            ("Meier;Anna;030 1234567\nSchulz;Bernd;040 7654321\nWeber;Carla;089 445566\n", true),
            ("Stack;Count\nmain;a 5\nmain;b 7\n", false),
            ("main;a;b\nmain;a;c 5\nmain;a;d 6\n", false),
            ("main;a;b 3 4\nmain;a;c 5 6\nmain;a;d 6 7\n", false),
            ("7f0012345678;12 4\nmain;7f001234567a 5\nmain;b 4\n", false),
            ("14000001;14000002 4\n14000001;14000003 5\n14000001;14000004 5\n", false),
        ] {
            assert_eq!(is_semicolon_table(text.as_bytes()), expected, "{text}");
        }
    }
}
