//! Recognizes differences between files, and text with something before each line.

use bstr::ByteSlice as _;

use crate::collapse::line_helpers::{first_lines, most_lines_fit, parse_number, split_once, starts_with_any};

/// Lines before a difference, as version control and diff of folders print them.
const PRECEDING: [&[u8]; 11] = [
    b"diff ",
    b"index ",
    b"old mode",
    b"new mode",
    b"new file",
    b"deleted file",
    b"Index: ",
    b"====",
    b"Only in ",
    b"Binary files ",
    b"Common subdirectories: ",
];

/// Returns true for a difference between two files: unified, context, normal, or of git.
pub(in crate::collapse) fn is_diff(head: &[u8]) -> bool {
    let mut lines = first_lines(head).skip_while(|line| starts_with_any(line, &PRECEDING));
    let begins = match (lines.next(), lines.next()) {
        (Some(before), Some(after)) => {
            before.starts_with(b"--- ") && after.starts_with(b"+++ ")
                || before.starts_with(b"*** ") && after.starts_with(b"--- ")
                || is_change(before) && starts_with_any(after, &[b"< ", b"> "])
        }
        _ => false,
    };
    // What `git log -p` prints begins with a commit.
    begins || first_lines(head).any(|line| line.starts_with(b"@@ -") && line.contains_str(" @@"))
}

/// Returns true for `2,5c2`, which begins a change of a difference without context.
fn is_change(line: &[u8]) -> bool {
    let Some(command) = line.iter().position(|byte| b"acd".contains(byte)) else { return false };
    let is_range = |range: &[u8]| range.split(|byte| *byte == b',').all(|number| parse_number(number).is_some());
    is_range(&line[..command]) && is_range(&line[command + 1..])
}

/// Returns true for stacks in two columns, as `diff -y` and `comm` print them, and for the changed lines of a difference alone.
pub(in crate::collapse) fn is_diff_of_stacks(head: &[u8]) -> bool {
    has_two_columns(head) || has_second_column(head) || has_changes_only(head)
}

/// Returns true if most lines have the same text twice, or two texts with `|` between, or a mark on one side.
fn has_two_columns(head: &[u8]) -> bool {
    memchr::memchr(b'\t', head).is_some() && most_lines_fit(head, 90, is_pair)
}

/// Returns true for a line of `diff -y`: `main;a 1<tabs>|<tab>main;a 2`.
fn is_pair(line: &[u8]) -> bool {
    let Some((left, right)) = split_once(line, "\t") else { return false };
    let (left, right) = (left.trim_ascii(), right.trim_ascii());
    let has_mark = right.starts_with(b"|\t") || right.starts_with(b">\t") || matches!(right, b"<" | b"|");
    has_mark || !left.is_empty() && left == right
}

/// Returns true if some stacks begin with a tab and others do not, as `comm` prints the lines of two files.
fn has_second_column(head: &[u8]) -> bool {
    let is_column = |line: &[u8]| line.starts_with(b"\t") && line.contains(&b';');
    most_lines_fit(head, 10, is_column) && !most_lines_fit(head, 100, is_column)
}

/// Returns true if each line begins with a mark, and most lines that were removed were also added with another weight.
fn has_changes_only(head: &[u8]) -> bool {
    let lines = || first_lines(head).filter(|line| !line.trim_ascii().is_empty());
    if !lines().all(|line| matches!(line.first(), Some(b'+' | b'-' | b' '))) {
        return false;
    }
    let stacks = |mark: u8| lines().filter_map(move |line| Some(line.strip_prefix(&[mark])?.rsplit_once_str(" ")?.0));
    let added: rustc_hash::FxHashSet<&[u8]> = stacks(b'+').collect();
    let (mut removed, mut changed) = (0, 0);
    for stack in stacks(b'-') {
        removed += 1;
        changed += usize::from(added.contains(stack));
    }
    removed > 0 && changed * 2 > removed
}

/// Returns true if something precedes each line that is no part of it: a number, or the mark of a quotation.
pub(in crate::collapse) fn has_prefixes(head: &[u8]) -> bool {
    [&b"> "[..], b"< "].iter().any(|mark| most_lines_fit(head, 100, |line| line.starts_with(mark)))
        || most_lines_fit(head, 100, |line| is_numbered(line) && line.first().is_some_and(u8::is_ascii_whitespace))
        || has_line_numbers(head)
}

/// Fewest lines whose numbers are those of lines.
const MIN_NUMBERED: usize = 3;

/// Returns true if each line begins with a number above that of the line before, and a colon or a tab: `12:main;f 3`. Blanks in
/// place of the tab follow numbers that count the lines.
pub(in crate::collapse) fn has_line_numbers(head: &[u8]) -> bool {
    let (mut last, mut count, mut is_counted) = (None, 0, true);
    for line in first_lines(head).filter(|line| !line.trim_ascii().is_empty()) {
        let Some((number, rest)) = split_line_number(line) else { return false };
        is_counted &= last.is_none_or(|last| number.checked_sub(1) == Some(last));
        let has_mark =
            matches!(rest, [b':' | b'\t', ..]) || is_counted && matches!(rest, [] | [b' '] | [b' ', b' ', ..]);
        if !has_mark || last.is_some_and(|last| number <= last) {
            return false;
        }
        (last, count) = (Some(number), count + 1);
    }
    count >= MIN_NUMBERED
}

/// Returns true for a line that begins with a number and a blank.
fn is_numbered(line: &[u8]) -> bool {
    split_line_number(line).is_some_and(|(_, rest)| rest.first().is_some_and(u8::is_ascii_whitespace))
}

/// Returns the number at the start of a line, and the text after it.
fn split_line_number(line: &[u8]) -> Option<(u64, &[u8])> {
    let line = line.trim_ascii_start();
    let end = line.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(line.len());
    Some((parse_number(&line[..end])?, &line[end..]))
}

#[cfg(test)]
mod tests {
    use super::{has_prefixes, is_diff, is_diff_of_stacks};

    #[test]
    fn differences_are_told_from_stacks() {
        for (text, expected) in [
            ("2c2\n< main;b 2\n---\n> main;b 7\n", true),
            ("1,60c1,60\n< main;f1 11\n< main;f2 12\n", true),
            ("Only in x: y\n--- p1\n+++ p2\n-main;f 1\n", true),
            ("Index: p\n=======\n--- p1\n+++ p2\n-main;f 1\n", true),
            ("main;a 1\t\t\tmain;a 1\nmain;b 2\t\t      |\tmain;b 7\nmain;c 3\t\t      <\n", true),
            ("main;a 1\n\tmain;a 2\n\t\tmain;c 3\n", true),
            ("-main;a 1\n+main;a 2\n main;b 2\n", true),
            ("-[NSString length];a 1\n+[NSObject alloc];b 2\n", false),
            ("main;a\t1\nmain;b\t2\n", false),
            ("abc 1\nabd 2\n", false),
        ] {
            assert_eq!(is_diff(text.as_bytes()) || is_diff_of_stacks(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn numbers_of_lines_and_quotations_are_told_from_stacks() {
        for (text, expected) in [
            ("     1\tmain;a 1\n     2\tmain;b 2\n", true),
            ("1:main;a 1\n2:main;b 2\n7:main;c 3\n", true),
            ("     1  main;a 1\n     2  main;b 2\n     3\n     4  c 1\n", true),
            ("      2 main;a 1\n      2 main;b 1\n", true),
            ("> main;a 1\n> main;b 1\n", true),
            ("1:main;a 1\n1:main;b 2\n2:work;c 3\n", false),
            ("main;a 1\nmain;b 2\n", false),
            ("<module>;a 1\n<module>;b 2\n", false),
        ] {
            assert_eq!(has_prefixes(text.as_bytes()), expected, "{text}");
        }
    }
}
