//! Frames in comments of Go's profiles, as `net/http/pprof` prints them with `debug=1`.

use crate::collapse::line_helpers::{is_address, split_once, split_word, strip_offset};

/// A frame of a stack.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GoFrame<'a> {
    /// In hexadecimal.
    pub(super) address: &'a [u8],
    /// `None` if the function is unknown.
    pub(super) function: Option<&'a [u8]>,
    /// File and line, or nothing.
    pub(super) position: &'a [u8],
}

/// Parses `#<tab>0x4b6096<tab>main.work+0x16<tab><tab>/src/main.go:16`. Terminals and editors replace the tabs by blanks.
pub(super) fn parse(line: &[u8]) -> Option<GoFrame<'_>> {
    let line = line.strip_prefix(b"#").filter(|rest| rest.starts_with(b"\t") || rest.starts_with(b" "))?;
    let (address, rest) = split_word(line);
    let (name, position) = split_name(rest.trim_ascii());
    let function = (!name.is_empty()).then(|| strip_offset(name));
    is_address(address).then_some(GoFrame { address, function, position })
}

/// Splits the name from the position behind it. Types in a name may contain blanks, but an offset ends it.
fn split_name(text: &[u8]) -> (&[u8], &[u8]) {
    if let Some((name, position)) = split_once(text, "\t") {
        return (name.trim_ascii(), position.trim_ascii());
    }
    let offsets = memchr::memmem::find_iter(text, b"+0x");
    let ends = offsets.map(|start| start + text[start..].iter().take_while(|byte| **byte != b' ').count());
    let end = ends.filter(|end| strip_offset(&text[..*end]).len() < *end).last().unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::{GoFrame, parse};

    #[test]
    fn blanks_separate_fields_as_tabs_do() {
        for (name, position) in [("main.(*Store).save", "/src/a.go:7"), ("main.f[struct { X int }]", "/s r/a+0x1.go:7")]
        {
            let frame =
                GoFrame { address: b"0x4b6096", function: Some(name.as_bytes()), position: position.as_bytes() };
            for blanks in ["\t", "  ", " "] {
                let line = ["#", "0x4b6096", &format!("{name}+0x16"), position].join(blanks);
                assert_eq!(parse(line.as_bytes()).as_ref(), Some(&frame), "{line}");
            }
        }
        let unknown = GoFrame { address: b"0x1", function: None, position: b"" };
        assert_eq!(parse(b"#\t0x1"), Some(unknown));
        for line in ["# runtime.MemStats", "#0x1", "# labels: {\"a\":\"b\"}", "0x1 f"] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }
}
