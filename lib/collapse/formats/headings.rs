//! Lines with which documents of text formats begin. Such a line within a document is no data: another document was
//! appended to it.

use bstr::ByteSlice as _;

use super::{gdb, goroutines, heap_text, heaptrack, massif, memleak, memray, pyspy_dump, rprof};
use crate::bytes::strip_bom;
use crate::collapse::line_helpers::{first_lines, parse_number, split_once, split_words};

/// The first line of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collapse) struct Heading {
    /// The name of the format.
    pub(in crate::collapse) format: &'static str,
    /// True if an input may contain several documents of this format.
    pub(in crate::collapse) may_recur: bool,
}

/// Returns true if a line that has the start of a heading is one. The text that begins with the line is the second
/// argument.
type Check = fn(&[u8], &[u8]) -> bool;

/// Any line that has the start of a heading is one.
const ANY: Check = |_, _| true;

/// Starts of headings, what else makes a line one, the format, and true if an input may contain several documents.
const HEADINGS: &[(&[u8], Check, &str, bool)] = &[
    (b"Full thread dump ", ANY, "jstack", true),
    (b"# callgrind format", ANY, "callgrind", true),
    (b"creator: callgrind", ANY, "callgrind", true),
    (b"creator: xdebug", ANY, "callgrind", true),
    (b"PeriodType: ", ANY, "pprof-raw", false),
    (b"TRACE START [", ANY, "xdebug", true),
    (b"Analysis of sampling ", ANY, "sample", true),
    (b"Call graph:", ANY, "sample", true),
    (b"Level,Function Name,", ANY, "vsprof", false),
    (b"Function Stack,CPU Time", ANY, "vtune", false),
    (b"v8-version,", ANY, "v8-prof", false),
    (b"0SECTION       TITLE subcomponent", ANY, "javacore", true),
    (b"JAVA PROFILE 1.0.", ANY, "hprof-text", false),
    (b"Weight\tSelf Weight\t", ANY, "instruments", false),
    (b"Bytes Used\tCount\t", ANY, "instruments", false),
    (b"-----------+---", ANY, "pprof-traces", true),
    (b"sample.interval=", ANY, "rprof", true),
    (b"line profiling: ", |line, _| rprof::is_heading(line), "rprof", true),
    (b"GC profiling: ", |line, _| rprof::is_heading(line), "rprof", true),
    (b"memory profiling: ", |line, _| rprof::is_heading(line), "rprof", true),
    (b"rbspy0", ANY, "rbspy", false),
    (b"Attaching to ", |line, _| memleak::is_start(line), "memleak", false),
    (b"Thread (0x", ANY, "dotnet-stack", true),
    (b"Full stacks (", ANY, "wcp", true),
    (b"---------- tid#", ANY, "procstack", true),
    (b"Direct leak of ", ANY, "lsan", true),
    (b"# tracer: ", ANY, "ftrace", true),
    (b"# Samples: ", ANY, "perf-report", true),
    (b"COST CENTRE ", ANY, "ghc-prof", true),
    (b"goroutine profile: ", |line, _| goroutines::is_profile_heading(line), "goroutines", true),
    (b"threadcreate profile: ", |line, _| goroutines::is_profile_heading(line), "goroutines", true),
    (b"heap_v2/", |line, _| heap_text::is_heading(line), "heap-text", false),
    (b"heap profile:", |line, _| heap_text::is_heading(line), "heap-text", false),
    (b"--- contention:", ANY, "heap-text", false),
    (b"--- mutex:", ANY, "heap-text", false),
    (b"v ", |line, _| heaptrack::is_version(line), "heaptrack", false),
    (memray::HEADING, |line, _| line == memray::HEADING, "memray", true),
    (b"jdk.", |line, _| line.ends_with(b" {"), "jfr-print", true),
    (b"==", |line, _| is_memcheck(line), "memcheck", true),
    (b"desc: ", |_, text| massif::begins(text), "massif", false),
    (b"Tracing ", |line, _| line.contains_str(" functions for \""), "stackcount", true),
    (b"Thread ", |line, _| gdb::is_thread(line), "gdb", true),
    (b" 0x", |line, _| line.contains_str(" : ") && line.contains_str("+0x"), "systemtap", true),
    (b"@ ", |line, _| line.ends_with(b" samples]"), "pmcstat", true),
    (b"<0.", |line, _| is_process_of_erlang(line), "eflame", true),
    (b"0 ", begins_trace_of_php, "phpspy", true),
    (b"sample:", |line, _| line == b"sample:", "simpleperf", true),
    (b"meta_info:", |line, _| line == b"meta_info:", "simpleperf", true),
    (b"Process ", |_, text| pyspy_dump::begins(text), "py-spy", true),
    (b"Attaching ", |line, _| line.contains_str(" probe") && line.ends_with(b"..."), "bpftrace", true),
    (b"cpus=", |line, _| parse_number(&line[5..]).is_some(), "ftrace", true),
    (b"# austin: ", ANY, "folded", true),
];

/// A bit for each two bytes with which a heading begins. Most lines are none.
const FIRST_BYTES: [u64; 1 << 10] = first_bytes();

const fn first_bytes() -> [u64; 1 << 10] {
    let mut bits = [0; 1 << 10];
    let mut index = 0;
    while index < HEADINGS.len() {
        let start = HEADINGS[index].0;
        let pair = start[0] as usize * 256 + start[1] as usize;
        bits[pair / 64] |= 1 << (pair % 64);
        index += 1;
    }
    bits
}

/// Returns the heading that a line is, with which `text` begins.
#[inline]
pub(in crate::collapse) fn find(line: &[u8], text: &[u8]) -> Option<Heading> {
    let [first, second, ..] = *line else { return None };
    let pair = usize::from(first) * 256 + usize::from(second);
    if FIRST_BYTES[pair / 64] >> (pair % 64) & 1 == 1 { find_in_table(line, text) } else { None }
}

fn find_in_table(line: &[u8], text: &[u8]) -> Option<Heading> {
    let mut found = HEADINGS.iter().filter(|(start, ..)| line.starts_with(start));
    let (_, _, format, may_recur) = found.find(|(_, check, ..)| check(line, text))?;
    Some(Heading { format, may_recur: *may_recur })
}

/// Minimum length of the start of a heading that is looked for within lines.
const MIN_LENGTH_WITHIN: usize = 10;

/// Formats with shorter headings that no other line contains.
const WITH_CERTAIN_HEADINGS: [&str; 7] = ["eflame", "gdb", "heap-text", "massif", "memcheck", "pmcstat", "simpleperf"];

fn may_be_within(start: &[u8], format: &str) -> bool {
    start.len() >= MIN_LENGTH_WITHIN || WITH_CERTAIN_HEADINGS.contains(&format)
}

/// Returns the starts of headings that may be behind the last line of a document, which has no line end.
pub(in crate::collapse) fn starts_within() -> impl Iterator<Item = &'static [u8]> {
    HEADINGS.iter().filter(|(start, _, format, _)| may_be_within(start, format)).map(|(start, ..)| *start)
}

/// Returns the heading that begins at an offset in a line, behind a line without an end. `text` begins with the line.
pub(in crate::collapse) fn find_within(line: &[u8], text: &[u8], offset: usize) -> Option<Heading> {
    // Neither a longer separator nor a part of a heading or of an indented line.
    let before = *strip_bom(&line[..offset.min(line.len())]).last()?;
    let is_behind = !matches!(before, b' ' | b'\t') && line.get(offset).is_some_and(|first| *first != before);
    let mut found = HEADINGS
        .iter()
        .filter(|(start, _, format, _)| is_behind && line[offset..].starts_with(start) && may_be_within(start, format));
    let (_, _, format, may_recur) = found.find(|(_, check, ..)| check(&line[offset..], &text[offset..]))?;
    Some(Heading { format, may_recur: *may_recur })
}

/// Returns true if one of the first lines of an input is a heading of a format.
pub(in crate::collapse) fn has_heading(head: &[u8], format: &str) -> bool {
    let lines = first_lines(head).take(FIRST_LINES);
    let mut headings = lines.filter_map(|line| find(line, &head[line.as_ptr() as usize - head.as_ptr() as usize..]));
    headings.any(|heading| heading.format == format)
}

/// Number of lines among which the heading of an input is.
const FIRST_LINES: usize = 8;

/// Returns true for `0 work /srv/a.php:3`, before the line of its caller or one of memory.
fn begins_trace_of_php(line: &[u8], text: &[u8]) -> bool {
    let next = split_once(text, "\n").map_or(&b""[..], |(_, next)| next);
    let place = split_words(line).nth(2).and_then(|place| place.rsplit_once_str(":"));
    place.is_some_and(|(file, number)| file.ends_with(b".php") && parse_number(number).is_some())
        && (next.starts_with(b"1 ") || next.starts_with(b"# "))
}

/// Returns true for `<0.90.0>;shell:eval_loop/3`.
fn is_process_of_erlang(line: &[u8]) -> bool {
    let process = split_once(line, ">").filter(|(_, rest)| rest.starts_with(b";") && !line.contains(&b' '));
    process.is_some_and(|(id, _)| id[1..].iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'))
}

/// Returns true for `==7== Memcheck, a memory error detector`.
fn is_memcheck(line: &[u8]) -> bool {
    let text = line.strip_prefix(b"==").and_then(|rest| split_once(rest, "== "));
    text.is_some_and(|(pid, text)| {
        parse_number(pid).is_some() && text.starts_with(b"Memcheck, a memory error detector")
    })
}

#[cfg(test)]
mod tests {
    use bstr::ByteSlice as _;

    use super::{find, find_within};

    #[test]
    fn finds_headings_behind_a_line_without_an_end() {
        for (format, line, offset) in [
            ("pmcstat", " 100.0%  [4]  main @ /bin/app@ LLC_MISSES [4 samples]", Some(29)),
            ("pmcstat", "@ LLC_MISSES [4 samples]", None),
            ("eflame", "<0.90.0>;a;b<0.90.0>;a;c", Some(12)),
            ("phpspy", "10 work /srv/a.php:3\n# mem 1 1", None),
            ("pprof-traces", "------------+-----------", None),
            ("systemtap", "   0x400512 : main+0x22/0x90 [/bin/app]", None),
            ("vsprof", "\u{feff}Level,Function Name,Number of Calls", None),
            ("rprof", "memory profiling: line profiling: sample.interval=20000", None),
            ("rprof", "\"work\" memory profiling: sample.interval=20000", None),
            ("rprof", "\"work\"memory profiling: sample.interval=20000", Some(6)),
            ("massif", "n0: 0 in 1 placedesc: x\ncmd: a\ntime_unit: i", Some(16)),
        ] {
            let text = line.as_bytes();
            let line = &text[..line.find('\n').unwrap_or(line.len())];
            let found = (0..line.len()).find(|offset| find_within(line, text, *offset).is_some());
            assert_eq!(found, offset, "{format}: {}", line.as_bstr());
            let found = found.and_then(|offset| find_within(line, text, offset));
            assert!(found.is_none_or(|heading| heading.format == format), "{format}: {found:?}");
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
            ("desc: --massif-out-file=a\ncmd: a\ntime_unit: i", Some("massif")),
            ("desc: I1 cache: 32768 B\ncmd: a", None),
            ("Tracing 2 functions for \"vfs_*\"... Hit Ctrl-C to end.", Some("stackcount")),
            ("Thread 12 (Thread 0x7f11 (LWP 43) \"a\"):", Some("gdb")),
            ("Thread 12 (idle): \"MainThread\"", None),
            (" 0x400512 : main+0x22/0x90 [/bin/app]", Some("systemtap")),
            ("sample:", Some("simpleperf")),
            ("memory profiling: GC profiling: line profiling: sample.interval=20000", Some("rprof")),
            ("@ CPU_CLK_UNHALTED [30 samples]", Some("pmcstat")),
            ("<0.90.0>;shell:eval_loop/3;lists:foldl/3", Some("eflame")),
            ("0 work /srv/a.php:3\n1 <main> /srv/a.php:9", Some("phpspy")),
            ("a;b 1", None),
            ("v 1 2", None),
        ] {
            assert_eq!(
                find(line.lines().next().unwrap_or_default().as_bytes(), line.as_bytes()).map(|heading| heading.format),
                format,
                "{line}"
            );
        }
    }
}
