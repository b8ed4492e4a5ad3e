//! Lines with which documents of text formats begin. Such a line within a document is no data: another document was
//! appended to it.

use super::{goroutines, heap_text, heaptrack, memray};
use crate::bytes::strip_bom;
use crate::collapse::line_helpers::{parse_number, split_once, split_words};
use crate::folded::{LineKind, parse_line};

/// The first line of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collapse) struct Heading {
    /// The name of the format.
    pub(in crate::collapse) format: &'static str,
    /// True if an input may contain several documents of this format.
    pub(in crate::collapse) may_recur: bool,
}

/// Starts of lines, the format whose documents begin with them, and true if an input may contain several.
const STARTS: [(&[u8], &str, bool); 17] = [
    (b"Full thread dump ", "jstack", true),
    (b"time_unit: ", "massif", false),
    (b"# callgrind format", "callgrind", true),
    (b"PeriodType: ", "pprof-raw", false),
    (b"TRACE START [", "xdebug", true),
    (b"Analysis of sampling ", "sample", true),
    (b"Call graph:", "sample", true),
    (b"Level,Function Name,", "vsprof", false),
    (b"Function Stack,CPU Time", "vtune", false),
    (b"v8-version,", "v8-prof", false),
    (b"0SECTION       TITLE subcomponent", "javacore", true),
    (b"JAVA PROFILE 1.0.", "hprof-text", false),
    (b"Weight\tSelf Weight\t", "instruments", false),
    (b"Bytes Used\tCount\t", "instruments", false),
    (b"-----------+---", "pprof-traces", true),
    (b"sample.interval=", "rprof", true),
    (b"rbspy0", "rbspy", false),
];

/// Returns the heading that a line is.
pub(in crate::collapse) fn find(line: &[u8]) -> Option<Heading> {
    let line = strip_bom(line);
    // Most lines begin with a blank, a digit or a small letter that no heading begins with.
    if !matches!(line.first()?, b'#' | b'-' | b'0' | b'=' | b'A'..=b'Z' | b'a' | b'g' | b'h' | b'j' | b'r'..=b't' | b'v')
    {
        return None;
    }
    let heading = |format, may_recur| Some(Heading { format, may_recur });
    if let Some((_, format, may_recur)) = STARTS.iter().find(|(start, ..)| line.starts_with(start)) {
        return heading(format, *may_recur);
    }
    if goroutines::is_profile_heading(line) {
        heading(goroutines::FORMAT.name, true)
    } else if heap_text::is_heading(line) {
        heading(heap_text::FORMAT.name, false)
    } else if heaptrack::is_version(line) {
        heading(heaptrack::FORMAT.name, false)
    } else if line == memray::HEADING {
        heading(memray::FORMAT.name, true)
    } else if line.starts_with(b"jdk.") && line.ends_with(b" {") {
        heading("jfr-print", true)
    } else if is_memcheck(line) {
        heading("memcheck", true)
    } else {
        None
    }
}

/// Returns true for `==7== Memcheck, a memory error detector`.
fn is_memcheck(line: &[u8]) -> bool {
    let text = line.strip_prefix(b"==").and_then(|rest| split_once(rest, "== "));
    text.is_some_and(|(pid, text)| {
        parse_number(pid).is_some() && text.starts_with(b"Memcheck, a memory error detector")
    })
}

/// Returns true for a folded stack of several frames. Text has a blank after a semicolon.
pub(in crate::collapse) fn is_folded_stack(line: &[u8]) -> bool {
    line.last().is_some_and(u8::is_ascii_digit)
        && memchr::memchr(b';', line).is_some()
        && parse_line(line, LineKind::Plain).is_some_and(|line| {
            let frames = || line.stack.split(|byte| *byte == b';');
            !line.stack.ends_with(b":")
                && frames().count() > 1
                && frames().all(|frame| !frame.is_empty() && !frame.starts_with(b" "))
                && split_words(line.stack).count() <= MAX_WORDS * frames().count()
        })
}

/// Most words of a frame on average.
const MAX_WORDS: usize = 4;

#[cfg(test)]
mod tests {
    use super::{STARTS, find, is_folded_stack};

    #[test]
    fn no_start_of_a_heading_is_filtered_out() {
        for (start, format, _) in STARTS {
            assert_eq!(find(start).map(|heading| heading.format), Some(format));
        }
    }

    #[test]
    fn finds_headings() {
        for (line, format) in [
            ("goroutine profile: total 7", Some("goroutines")),
            ("heap profile: 1: 2 [3: 4] @ heap/1048576", Some("heap-text")),
            ("--- mutex:", Some("heap-text")),
            ("v 10400 3", Some("heaptrack")),
            ("==7== Memcheck, a memory error detector", Some("memcheck")),
            ("==7== 300 bytes in 3 blocks are definitely lost in loss record 1 of 2", None),
            ("jdk.ExecutionSample {", Some("jfr-print")),
            ("a;b 1", None),
            ("v 1 2", None),
        ] {
            assert_eq!(find(line.as_bytes()).map(|heading| heading.format), format, "{line}");
        }
    }

    #[test]
    fn text_with_semicolons_is_no_folded_stack() {
        for (line, is_stack) in [
            ("main;f 12", true),
            ("[app (x)];f(int, char);<T as U>::g 1.5", true),
            ("main 12", false),
            ("GET / HTTP/1.1 \"Mozilla/5.0 (X11; Linux x86_64)\" 200", false),
            ("work;/srv/a.py;3", false),
            (";a 3", false),
        ] {
            assert_eq!(is_folded_stack(line.as_bytes()), is_stack, "{line}");
        }
    }
}
