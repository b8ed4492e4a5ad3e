//! Recognizes inputs that are no folded text, so that one message says what they are instead of one for each line.

use super::grammar::is_comment;
use super::line_kind::detect_kind;
use super::stack_parser::NO_STACK;
use crate::Error;
use crate::bytes::strip_bom;
use crate::input::Blocks;

/// First bytes of files that are often given instead of folded text, and what they are.
const OTHERS: [(&[u8], &str); 7] = [
    (b"FLR\0", "a JFR recording"),
    (b"PERFILE2", "a perf.data file"),
    (b"Nettrace", "a .NET trace"),
    (b"go 1.", "an execution trace of Go"),
    (b"{\"", "JSON"),
    (b"<?xml", "XML"),
    (b"<svg", "an SVG picture"),
];

/// Checks that an input is not certainly something else than folded text.
///
/// # Errors
/// [`Error::Unreadable`] if it is, and those of reading.
pub(super) fn check_is_folded(input: &mut Blocks) -> Result<(), Error> {
    let what = describe_other(input.head()?);
    what.map_or(Ok(()), |what| Err(Error::Unreadable { name: input.name().to_owned(), what }))
}

/// Says what an input is that begins with these bytes, if no line in them is a stack.
fn describe_other(head: &[u8]) -> Option<String> {
    let text = strip_bom(head);
    let known = OTHERS.iter().find(|(start, _)| text.starts_with(start));
    if let Some((_, kind)) = known.filter(|(start, _)| start.contains(&0) || !begins_with_stack(text)) {
        return Some(format!("{kind}, not folded stacks; convert it with fg-collapse"));
    }
    if is_grep_output(text) {
        return Some(GREP_OUTPUT.to_owned());
    }
    let is_other = detect_kind(head).is_none() && whole_lines(text).any(|line| !line.is_empty() && !is_comment(line));
    is_other.then(|| NO_STACK.to_owned())
}

/// The message about the output of grep.
pub(crate) const GREP_OUTPUT: &str = "lines of files with their names before them; use grep -h or cat";

/// Ends of the names of files that have stacks.
const EXTENSIONS: [&[u8]; 5] = [b".folded", b".collapsed", b".stacks", b".perf-folded", b".txt"];

/// Returns true if all first lines begin with the name of a file of stacks and a colon.
pub(crate) fn is_grep_output(text: &[u8]) -> bool {
    let mut lines = whole_lines(text).filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            let colon = memchr::memchr(b':', line).filter(|colon| line.get(colon + 1) != Some(&b':'));
            let file = colon.map_or(&b""[..], |colon| &line[..colon]);
            !file.contains(&b';') && EXTENSIONS.iter().any(|end| file.len() > end.len() && file.ends_with(end))
        })
}

/// Returns true if the first line is a stack: a frame may have any name.
fn begins_with_stack(text: &[u8]) -> bool {
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    detect_kind(first).is_some()
}

/// Returns the lines of a text that are not cut off at its end.
fn whole_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = memchr::memrchr(b'\n', text).unwrap_or(text.len());
    text[..end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::describe_other;

    #[test]
    fn folded_text_may_begin_with_malformed_lines_or_odd_names() {
        for text in [
            "",
            "\n",
            "# mode: wall\n",
            "junk\na;b 1\n",
            "a.rs:main;f 3\n",
            "a.txt::f 3\n",
            "{\"a;b 3\n",
            "<svg;f 3\n",
            "a;b 1",
            "go 1.21 3\n",
        ] {
            assert_eq!(describe_other(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn says_what_other_inputs_are() {
        for (text, expected) in [
            ("FLR\0\0\x02 1\n", "a JFR recording, not folded stacks"),
            ("{\"nodes\":[\n", "JSON, not folded stacks"),
            ("a.folded:main;a 5\nb.folded:main 3\n", "grep -h"),
            ("java 1 [000] 1.5: cycles:\n\t7f00 f (/x)\n", "no line is a folded stack"),
        ] {
            let found = describe_other(text.as_bytes());
            assert!(found.as_ref().is_some_and(|found| found.contains(expected)), "{text}: {found:?}");
        }
    }
}
