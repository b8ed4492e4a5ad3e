//! Recognizes files that cannot be folded, and says what to do with them.

use bstr::ByteSlice as _;

use super::formats::{go_trace, perf_report, wpa};
use super::line_helpers::{first_lines, parse_number, split_once, split_word};
use crate::folded::{GREP_OUTPUT, is_grep_output};

/// First bytes of unsupported files.
const MAGIC: [(&[u8], &str); 21] = [
    (b"memray\0", MEMRAY),
    (b"JAVA PROFILE 1.0.1\0", HEAP_DUMP),
    (b"JAVA PROFILE 1.0.2\0", HEAP_DUMP),
    (b"count callee caller time\n", JAVA_PROF),
    (b"\x7fELF", "a program, not a profile; record it with fg-record"),
    (b"gmon\x01\0\0\0", GPROF),
    (b"Flat profile:", GPROF),
    (b"Statistical profiling result from ", PROF_PROCESS),
    (b"reading file \"", HEAPTRACK_PRINT),
    (b"{\"counter-value\" : ", PERF_STAT),
    (b"{)\x03", CPROFILE),
    (b"{\xa9\x03", CPROFILE),
    (b"\xfb)\x03", CPROFILE),
    (b"\xfb\xa9\x03", CPROFILE),
    (b"PK\x03\x04", "a zip archive; unpack it: `unzip -p FILE | fg-collapse`"),
    (b"{\"snapshot\":{\"meta\":", HEAP_SNAPSHOT),
    (b"\x1f\x8b\x08", COMPRESSED_TWICE),
    (b"\x28\xb5\x2f\xfd", COMPRESSED_TWICE),
    (b"\xfd7zXZ\0", COMPRESSED_TWICE),
    (b"BZh9", COMPRESSED_TWICE),
    (b"%PDF-", "a PDF document; give the profile it was made from"),
];

const COMPRESSED_TWICE: &str =
    "compressed more than once; decompress it before, such as with `zcat FILE | fg-collapse`";
const HEAP_SNAPSHOT: &str = "a heap snapshot of V8, which has objects but no stacks; record a sampling heap profile (.heapprofile): node --heap-prof";
const NODE_REPORT: &str = "a report of Node.js, which has one stack and no samples; record with node --cpu-prof";
const RPROFMEM: &str = "a log of R's Rprofmem; record with Rprof(memory.profiling = TRUE)";
const JFR_VIEW: &str = "a table of `jfr view`, which has no stacks; give the recording, or the output of `jfr print`";
const TAR: &str = "a tar archive; unpack it: `tar xOf FILE MEMBER | fg-collapse`";
const CALLGRIND_ANNOTATE: &str = "a table of callgrind_annotate; give the callgrind.out file itself";
const MS_PRINT: &str = "a report of ms_print; give the massif.out file itself";
const PERF_TABLE: &str = "a table of perf report without stacks; give the perf.data file, or the output of `perf report -g folded` or `perf script`";
const HEAP_DUMP: &str = "a Java heap dump, which has objects but no stacks";
const JAVA_PROF: &str = "a table of pairs of Java methods (cpu=old), which has no stacks; record with cpu=samples";
const CLASS_HISTOGRAM: &str =
    "a histogram of Java classes, which has objects but no stacks; record allocations with JFR";
const GO_TRACE: &str = "an execution trace of Go 1.21 or older; convert it: `go tool trace -pprof=TYPE FILE` with TYPE net, sync or syscall";
const COVERAGE: &str = "a coverage profile of Go, which has lines of code but no stacks";
const GPROF: &str =
    "a gprof profile, which has functions and callers but no stacks; record with `fg-record` or `perf record -g`";
const CPROFILE: &str =
    "a cProfile profile, which has functions and callers but no stacks; record with `py-spy record -f raw`";
const WPA_TREE: &str = "a tree that Windows Performance Analyzer copied, whose weights are sums; export the table with \
                        wpaexporter, with one row for each stack";
const PROF_PROCESS: &str =
    "a table of node --prof-process, which has functions but no stacks; give the isolate-*.log of node --prof";
const HEAPTRACK_PRINT: &str =
    "a report of heaptrack_print, which lists few stacks; give the recording (heaptrack.*.zst) itself";
const VALGRIND_XML: &str = "XML of valgrind, which is not read; run it without --xml=yes and give the text";
const PERF_STAT: &str = "counts of perf stat, which have no stacks; record with `fg-record` or `perf record -g`";
const GRAPH: &str = "a graph (DOT), which has functions and callers but no stacks; give the profile it was made from";
const PICTURE: &str = "an SVG picture; give the folded stacks it was drawn from";
const TABLE: &str =
    "a table of functions without stacks; give the profile itself, or the output of `go tool pprof -traces`";
const MEMRAY: &str = "a recording of memray; convert it: `memray transform csv FILE`";
const TRACEMALLOC: &str = "a snapshot of tracemalloc, which is a pickled object; fg-folded(5) shows how to convert it";
const HEAP_CENSUS: &str =
    "a heap profile of GHC, which has no stacks; run the program with +RTS -l -hc and give its .eventlog";
const METRICS: &str = "metrics of Prometheus, which have no stacks";
const PAGE: &str = "an HTML page; give the profile it was made from, or use async-profiler's -o collapsed";

/// Returns what an unsupported file is and what to do with it, or `None` if the file is not known.
pub(super) fn explain(head: &[u8]) -> Option<&'static str> {
    let found = MAGIC.iter().find(|(begin, _)| head.starts_with(begin)).map(|(_, why)| *why);
    found
        .or_else(|| explain_document(head))
        .or_else(|| first_lines(head).take(12).find_map(|line| explain_line(line.trim_ascii())))
}

/// Recognizes a document by its first 2 KiB.
fn explain_document(head: &[u8]) -> Option<&'static str> {
    let whole = head;
    let head = head.trim_ascii_start();
    let head = &head[..head.len().min(2048)];
    if go_trace::is_old(head) {
        return Some(GO_TRACE);
    }
    if wpa::is_tree(head) {
        return Some(WPA_TREE);
    }
    if head.starts_with(b"\x80") && head.contains_str("tracemalloc") && head.contains_str("Snapshot") {
        return Some(TRACEMALLOC);
    }
    if is_tar(whole) {
        return Some(TAR);
    }
    if is_grep_output(head) {
        return Some(GREP_OUTPUT);
    }
    if head.starts_with(b"{") && head.contains_str("\"reportVersion\"") {
        return Some(NODE_REPORT);
    }
    if head.starts_with(b"---") && head.contains_str("\nms_print arguments: ") {
        return Some(MS_PRINT);
    }
    if head.starts_with(b"---") && head.contains_str("\nProfile data file '") {
        return Some(CALLGRIND_ANNOTATE);
    }
    if is_perf_table(head) {
        return Some(PERF_TABLE);
    }
    if is_rprofmem(head) {
        return Some(RPROFMEM);
    }
    if is_jfr_view(head) {
        return Some(JFR_VIEW);
    }
    if is_graph(head) {
        return Some(GRAPH);
    }
    if [&b"mode: set\n"[..], b"mode: count\n", b"mode: atomic\n"].iter().any(|first| head.starts_with(first)) {
        return Some(COVERAGE);
    }
    if head.starts_with(b"JOB \"") && head.contains_str("\nSAMPLE_UNIT ") || head.starts_with(b"X_RANGE ") {
        return Some(HEAP_CENSUS);
    }
    if head.starts_with(b"<") && head.contains_str("<valgrindoutput>") {
        return Some(VALGRIND_XML);
    }
    if starts_with_any(head, &[b"<!doctype html", b"<html"]) {
        Some(PAGE)
    } else if starts_with_any(head, &[b"<svg", b"<!doctype svg"])
        || starts_with_any(head, &[b"<?xml"]) && head.contains_str("<svg")
    {
        Some(PICTURE)
    } else {
        None
    }
}

fn is_tar(head: &[u8]) -> bool {
    const MAGIC_OFFSET: usize = 257;
    head.get(MAGIC_OFFSET..).is_some_and(|text| text.starts_with(b"ustar"))
}

/// Returns true for a table of perf report that has neither functions nor stacks.
fn is_perf_table(head: &[u8]) -> bool {
    let mut headings = head.lines().filter(|line| line.starts_with(b"# Overhead "));
    head.contains_str("# Samples: ")
        && headings.next().is_some_and(|line| !line.contains_str("Symbol"))
        && !head.contains_str("---")
        && !perf_report::recognizes(head)
}

/// Returns true for lines like `8432 :"f" "main" ` and `new page:"f" `.
fn is_rprofmem(head: &[u8]) -> bool {
    let line = head.lines().next().unwrap_or_default();
    let (size, stack) = split_once(line, ":").unwrap_or_default();
    let is_size = size == b"new page" || parse_number(size.trim_ascii()).is_some();
    is_size && stack.starts_with(b"\"") && stack.trim_ascii_end().ends_with(b"\"")
}

/// Returns true for a title and a table whose heading is underlined column by column.
fn is_jfr_view(head: &[u8]) -> bool {
    const FIRST_COLUMNS: [&[u8]; 7] =
        [b"Method ", b"Object Type ", b"Class ", b"Thread ", b"Event Type ", b"Monitor Class ", b"Top Frame "];
    let lines: Vec<&[u8]> = head.lines().map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).take(4).collect();
    let is_underline = |line: &[u8]| line.contains(&b' ') && line.iter().all(|byte| b"- ".contains(byte));
    lines.windows(2).any(|pair| starts_with_any_of(pair[0], &FIRST_COLUMNS) && is_underline(pair[1]))
}

fn starts_with_any_of(line: &[u8], starts: &[&[u8]]) -> bool {
    starts.iter().any(|start| line.starts_with(start))
}

/// Returns true if a text begins with one of these prefixes, whose case does not matter.
fn starts_with_any(text: &[u8], prefixes: &[&[u8]]) -> bool {
    prefixes.iter().any(|prefix| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)))
}

/// Returns true for `digraph "name" {`, perhaps after comments.
fn is_graph(head: &[u8]) -> bool {
    let mut lines = head.lines().map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.starts_with(b"//") && !line.starts_with(b"/*") && !line.is_empty());
    let Some(line) = first else { return false };
    let (word, rest) = split_word(line);
    let (word, rest) = if word == b"strict" { split_word(rest) } else { (word, rest) };
    matches!(word, b"digraph" | b"graph") && (rest.is_empty() || rest.contains(&b'{')) || word == b"digraph{"
}

/// Recognizes a text by one of its first lines.
fn explain_line(line: &[u8]) -> Option<&'static str> {
    let (count, rest) = split_word(line);
    if line.starts_with(b"Showing nodes accounting for ") {
        Some(TABLE)
    } else if line.starts_with(b"Performance counter stats for ") || line.starts_with(b"{\"counter-value\" : ") {
        Some(PERF_STAT)
    } else if is_pstats_line(count, rest.trim_ascii()) {
        Some(CPROFILE)
    } else if is_metric_type(line) {
        Some(METRICS)
    } else if count == b"num" && rest.trim_ascii_start().starts_with(b"#instances") {
        Some(CLASS_HISTOGRAM)
    } else {
        None
    }
}

/// Returns true for `# TYPE requests_total counter`.
fn is_metric_type(line: &[u8]) -> bool {
    let kind = line.strip_prefix(b"# TYPE ").and_then(|rest| rest.rsplit(|byte| *byte == b' ').next());
    kind.is_some_and(|kind| matches!(kind, b"counter" | b"gauge" | b"histogram" | b"summary" | b"untyped"))
}

/// Returns true for the first lines of tables that `pstats` prints: `4 function calls in 0.005 seconds`, and the headings of
/// callers and callees.
fn is_pstats_line(word: &[u8], rest: &[u8]) -> bool {
    parse_number(word).is_some() && rest.starts_with(b"function calls")
        || word == b"Function" && matches!(rest, b"was called by..." | b"called...")
}
