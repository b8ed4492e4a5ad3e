//! What is known by its beginning but cannot be folded, and what to do about it.

use super::text;
use crate::bytes::strip_bom;

/// How files begin.
const BEGINNINGS: [(&[u8], &str); 15] = [
    (b"FLR\0", "a Java Flight Recorder file: convert it with async-profiler, `jfrconv -o collapsed FILE FILE.folded`"),
    (b"MOJ", "a binary file of Austin: convert it, `mojo2austin FILE OUTPUT`"),
    (
        b"heap profile:",
        "a heap profile as text: fetch Go's without debug=1, convert gperftools', `pprof -raw PROGRAM FILE`",
    ),
    (b"--- contention:", "Go's blocked goroutines as text: fetch them without debug=1"),
    (b"--- mutex:", "Go's mutexes as text: fetch them without debug=1"),
    (b"JAVA PROFILE", "a Java heap dump: it has objects and no stacks"),
    (b"\x7fELF", "a program, not a profile"),
    (b"gmon\x01\0\0\0", GPROF),
    (b"Flat profile:", GPROF),
    (b"{)\x03", CPROFILE),
    (b"{\xa9\x03", CPROFILE),
    (b"\xfb)\x03", CPROFILE),
    (b"\xfb\xa9\x03", CPROFILE),
    (b"PK\x03\x04", "a zip archive: give what is in it, `unzip -p FILE | fg-collapse`"),
    (b"%PDF-", "a document (PDF): give the profile that it was made from"),
];

const GPROF: &str =
    "a profile of gprof: functions and their callers but no stacks; record with `fg-record` or `perf record -g`";
const CPROFILE: &str =
    "a profile of Python's cProfile: functions and their callers but no stacks; record with `py-spy record -f raw`";
const HEAP: &str =
    "a heap profile of massif or dhat: run valgrind --tool=massif --xtree-memory=full and give its xtmemory.kcg file";
const PICTURE: &str = "a picture (SVG): give the folded stacks that it was drawn from";
const TABLE: &str = "a table of functions and no stacks: give the profile itself, or `go tool pprof -traces`";
const PAGE: &str = "a page (HTML): give the profile that it was made from, or have async-profiler write -o collapsed";

/// What it is, and what to do, if it is known.
pub(super) fn why(head: &[u8]) -> Option<&'static str> {
    let found = BEGINNINGS.iter().find(|(begin, _)| head.starts_with(begin)).map(|(_, why)| *why);
    found
        .or_else(|| of_document(head))
        .or_else(|| text::lines(head).take(12).find_map(|line| of_line(line.trim_ascii())))
}

/// Whether it is one by what stands near its beginning.
fn of_document(head: &[u8]) -> Option<&'static str> {
    let head = strip_bom(head).trim_ascii_start();
    let begins = |with: &[u8]| head.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    let holds = |what: &[u8]| memchr::memmem::find(&head[..head.len().min(2048)], what).is_some();
    if begins(b"<!doctype html") || begins(b"<html") {
        Some(PAGE)
    } else if begins(b"<svg") || begins(b"<!doctype svg") || begins(b"<?xml") && holds(b"<svg") {
        Some(PICTURE)
    } else if begins(b"{") && holds(b"\"dhatFileVersion\"") {
        Some(HEAP)
    } else {
        None
    }
}

/// Whether it is one by one of its first lines.
fn of_line(line: &[u8]) -> Option<&'static str> {
    let (count, rest) = text::split_word(line);
    if line.starts_with(b"Showing nodes accounting for ") {
        Some(TABLE)
    } else if line == b"snapshot=0" {
        Some(HEAP)
    } else if text::number(count).is_some() && rest.starts_with(b"function calls") {
        Some(CPROFILE)
    } else {
        None
    }
}
