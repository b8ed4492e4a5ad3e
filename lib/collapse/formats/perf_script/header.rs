//! Parses the first line of a sample: `COMM PID/TID [CPU] TIME: PERIOD EVENT: …`. Most of these fields may be missing.
//!
//! A thread's name may contain blanks, digits, slashes and colons. So the line is parsed from its time outwards:
//! backwards before it, forwards after it.

use super::frame::{self, Frame};
use super::one_line;

/// A line that begins a sample or is a record.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::collapse) enum Line<'a> {
    /// The first line of a sample.
    Sample(Header<'a>),
    /// A record with this number of lost samples.
    Lost(u64),
    /// Any other record: a thread's start, a mapping.
    Record,
}

/// The fields of a sample's first line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::collapse) struct Header<'a> {
    /// The thread's name.
    pub comm: &'a [u8],
    /// `PID/TID` or `TID`; empty if missing.
    pub id: &'a [u8],
    pub cpu: Option<&'a [u8]>,
    /// In seconds, with a fraction.
    pub time: Option<&'a [u8]>,
    pub period: Option<u64>,
    /// The event's name, with its modifiers.
    pub event: Option<&'a [u8]>,
    /// The text after the event: a tracepoint's fields, or a frame.
    pub rest: &'a [u8],
    /// The frame in the columns in which perf prints it behind the fields of a sample without a callchain.
    pub frame: Option<Frame<'a>>,
}

impl<'a> Header<'a> {
    /// Returns the process ID, if the line has both it and the thread ID.
    pub fn pid(&self) -> Option<&'a [u8]> {
        memchr::memchr(b'/', self.id).map(|slash| &self.id[..slash])
    }

    /// Returns the thread ID.
    pub fn tid(&self) -> Option<&'a [u8]> {
        let tid = memchr::memchr(b'/', self.id).map_or(self.id, |slash| &self.id[slash + 1..]);
        (!tid.is_empty()).then_some(tid)
    }

    /// Returns true if no frame of another sample looks like the line.
    pub fn is_certain(&self) -> bool {
        self.time.is_some() || self.frame.is_some()
    }

    /// Returns the frame behind the fields. In other columns than perf's, it has a module.
    pub fn frame(&self) -> Option<Frame<'a>> {
        self.frame.or_else(|| frame::parse(self.rest).filter(|frame| frame.module.is_some()))
    }
}

/// Parses a line. If several of its words look like a time, the first one that an event or a frame follows is the time.
pub(in crate::collapse) fn parse(line: &[u8]) -> Option<Line<'_>> {
    // perf prints the instruction of a sample behind its stack: `ilen: 7 insn: 48 89`.
    if frame::is_machine_state(line.trim_ascii_start()) {
        return None;
    }
    let mut has_time = false;
    for (start, colon) in find_times(line) {
        has_time = true;
        if let Some(record) = Record::parse(&line[colon + 1..]) {
            return Some(record.into_line(Header { time: Some(&line[start..colon]), ..parse_thread(&line[..start]) }));
        }
    }
    if has_time {
        return None;
    }
    parse_without_time(line).or_else(|| one_line::parse_bare(line).map(Line::Sample))
}

/// Returns the time of a sample or of any other record.
pub(super) fn find_time(line: &[u8]) -> Option<&[u8]> {
    find_times(line)
        .find(|(_, colon)| Record::parse(&line[colon + 1..]).is_some())
        .map(|(start, colon)| &line[start..colon])
}

/// Parses a line that has only a thread, and perhaps a period: `COMM PID` or `COMM PID PERIOD`. It begins a sample only if
/// a frame follows.
pub(in crate::collapse) fn parse_bare(line: &[u8]) -> Option<Header<'_>> {
    let (thread, period) = split_period(line);
    let header = Header { period, ..parse_thread(thread) };
    let has_number = !header.id.is_empty() || period.is_some();
    (has_number && !header.comm.is_empty() && line[0] != b'#').then_some(header)
}

/// Columns of a period and the blank before it (`" %10lu"` in perf). A thread ID has fewer: `" %7d"`.
const PERIOD_COLUMNS: usize = 11;

/// Splits off the period at the end of a line, which its columns tell from the ID of a thread.
fn split_period(line: &[u8]) -> (&[u8], Option<u64>) {
    let (before, word) = last_word(line);
    let thread = before.trim_ascii_end();
    let columns = before.len() - thread.len() + word.len();
    match parse_decimal(word) {
        Some(period) if columns >= PERIOD_COLUMNS && !thread.is_empty() => (thread, Some(period)),
        _ => (line, None),
    }
}

/// Returns the offsets of the start and the colon of each word `DIGITS.DIGITS:`.
fn find_times(line: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    memchr::memchr_iter(b':', line).filter_map(|colon| {
        let ends_word = line.get(colon + 1).is_none_or(|next| is_blank(*next));
        let start = if ends_word { time_start(line, colon)? } else { return None };
        (start == 0 || is_blank(line[start - 1])).then_some((start, colon))
    })
}

/// Returns the start of the `DIGITS.DIGITS` that ends at `end`.
fn time_start(line: &[u8], end: usize) -> Option<usize> {
    let fraction = digits_start(line, end);
    let dot = fraction.checked_sub(1).filter(|dot| fraction < end && line[*dot] == b'.')?;
    let start = digits_start(line, dot);
    (start < dot).then_some(start)
}

/// Returns the start of the digits that end at `end`.
pub(super) fn digits_start(line: &[u8], end: usize) -> usize {
    line[..end].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |other| other + 1)
}

/// Parses the part before the time, backwards: flags, `[CPU]`, `PID/TID`, and then the thread's name.
pub(super) fn parse_thread(text: &[u8]) -> Header<'_> {
    let (mut rest, mut word) = last_word(text);
    let mut cpu = bracketed_digits(word);
    if cpu.is_none() && !is_thread_id(word) && is_flags(word) {
        let (before, previous) = last_word(rest);
        cpu = bracketed_digits(previous);
        if cpu.is_some() || is_thread_id(previous) {
            (rest, word) = (before, previous);
        }
    }
    let before_cpu = rest;
    if cpu.is_some() {
        (rest, word) = last_word(rest);
    }
    match is_thread_id(word) {
        true => Header { comm: rest.trim_ascii(), id: word, cpu, ..Header::default() },
        false if cpu.is_some() => Header { comm: before_cpu.trim_ascii(), cpu, ..Header::default() },
        false => Header { comm: text.trim_ascii(), ..Header::default() },
    }
}

/// Parses a line without a time. The thread ends with the first word that looks like its ID and that an event follows; a number
/// in the columns of a period is none.
fn parse_without_time(line: &[u8]) -> Option<Line<'_>> {
    let mut offset = 0;
    while offset < line.len() {
        let start = offset + line[offset..].iter().position(|byte| !is_blank(*byte))?;
        let end = start + first_word(&line[start..]).len();
        if end - offset >= PERIOD_COLUMNS
            && let Some(Record::Sample(fields @ Header { period: Some(_), event: Some(_), .. })) =
                Record::parse(&line[start..])
        {
            let Header { comm, id, cpu, .. } = parse_thread(&line[..start]);
            return Some(Line::Sample(Header { comm, id, cpu, ..fields }));
        }
        if start > 0
            && is_thread_id(&line[start..end])
            && let Some(found) = parse_after_thread_id(line, end)
        {
            return Some(found);
        }
        offset = end;
    }
    None
}

/// Parses a line without a time whose thread ID ends at `end`.
fn parse_after_thread_id(line: &[u8], mut end: usize) -> Option<Line<'_>> {
    let after = line[end..].trim_ascii_start();
    let word = first_word(after);
    if bracketed_digits(word).is_some() {
        end = line.len() - after.len() + word.len();
    }
    let record = Record::parse(&line[end..])?;
    let header = parse_thread(&line[..end]);
    (!header.comm.is_empty()).then_some(())?;
    if matches!(record, Record::Sample(Header { event: None, .. })) { None } else { Some(record.into_line(header)) }
}

/// The part of a line after the time.
enum Record<'a> {
    Sample(Header<'a>),
    Lost(u64),
    Other,
}

impl<'a> Record<'a> {
    /// Parses `[PERIOD] [EVENT: …]`, `[PERIOD] FRAME` or `PERF_RECORD_…`.
    fn parse(text: &'a [u8]) -> Option<Self> {
        if let Some((period, frame)) = one_line::parse_after_time(text) {
            return Some(Self::Sample(Header { period, frame: Some(frame), ..Header::default() }));
        }
        let mut text = text.trim_ascii_start();
        if let Some(record) = text.strip_prefix(b"PERF_RECORD_") {
            return Some(parse_lost(record).map_or(Self::Other, Self::Lost));
        }
        let number = first_word(text);
        let period = parse_decimal(number);
        if period.is_some() {
            text = text[number.len()..].trim_ascii_start();
        }
        if text.is_empty() {
            return Some(Self::Sample(Header { period, ..Header::default() }));
        }
        let word = first_word(text);
        let event = word.strip_suffix(b":").filter(|event| !event.is_empty())?;
        // A number is a time, perhaps with a decimal comma, and no event.
        if event.iter().all(|byte| byte.is_ascii_digit() || b".,".contains(byte)) {
            return None;
        }
        let after = &text[word.len()..];
        let (rest, frame) = (after.trim_ascii_start(), one_line::parse_frame(after));
        Some(Self::Sample(Header { period, event: Some(event), rest, frame, ..Header::default() }))
    }

    fn into_line(self, header: Header<'a>) -> Line<'a> {
        match self {
            Self::Lost(samples) => Line::Lost(samples),
            Self::Other => Line::Record,
            Self::Sample(fields) => {
                let Header { comm, id, cpu, time, .. } = header;
                Line::Sample(Header { comm, id, cpu, time, ..fields })
            }
        }
    }
}

/// Returns the number of `LOST lost 12` and `LOST_SAMPLES lost 12`.
fn parse_lost(record: &[u8]) -> Option<u64> {
    let after = record.strip_prefix(b"LOST")?;
    parse_decimal(after.strip_prefix(b"_SAMPLES").unwrap_or(after).trim_ascii().strip_prefix(b"lost ")?)
}

pub(super) fn parse_decimal(text: &[u8]) -> Option<u64> {
    let number = text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| byte - b'0')?;
        number.checked_mul(10)?.checked_add(digit.into())
    });
    number.filter(|_| !text.is_empty())
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn first_word(text: &[u8]) -> &[u8] {
    &text[..text.iter().position(|byte| is_blank(*byte)).unwrap_or(text.len())]
}

/// Returns the text before the last word, and the last word.
fn last_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_end();
    let start = text.iter().rposition(|byte| is_blank(*byte)).map_or(0, |blank| blank + 1);
    (&text[..start], &text[start..])
}

/// Returns true for `ID` and `ID/ID`, where an ID is digits, with a minus sign if the thread is unknown.
fn is_thread_id(word: &[u8]) -> bool {
    after_number(word).is_some_and(|rest| match rest {
        [] => true,
        [b'/', tid @ ..] => after_number(tid).is_some_and(<[u8]>::is_empty),
        _ => false,
    })
}

/// Returns the text after digits, which a minus sign may precede.
fn after_number(text: &[u8]) -> Option<&[u8]> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    (end > 0).then_some(&digits[end..])
}

/// Returns the digits of `[DIGITS]`.
fn bracketed_digits(word: &[u8]) -> Option<&[u8]> {
    match word {
        [b'[', digits @ .., b']'] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => Some(digits),
        _ => None,
    }
}

/// Returns true for interrupt and context-switch flags, such as `d.h1.` and `U`.
fn is_flags(word: &[u8]) -> bool {
    (1..=6).contains(&word.len()) && word.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'#'))
}

#[cfg(test)]
mod tests {
    use super::{Line, parse, parse_bare};

    /// Formats a field, or `-` if it is missing.
    fn format_field(field: Option<&[u8]>) -> String {
        field.map_or("-".into(), |field| String::from_utf8_lossy(field).into_owned())
    }

    /// Formats the comm, pid, tid, time, period, event and rest of a line.
    fn format_line(line: &str) -> String {
        match parse(line.as_bytes()) {
            None => "none".to_owned(),
            Some(Line::Record) => "record".to_owned(),
            Some(Line::Lost(samples)) => format!("lost {samples}"),
            Some(Line::Sample(header)) => [
                format_field(Some(header.comm)),
                format_field(header.pid()),
                format_field(header.tid()),
                format_field(header.time),
                header.period.map_or("-".to_owned(), |period| period.to_string()),
                format_field(header.event),
                format_field(Some(header.rest)),
            ]
            .join("|"),
        }
    }

    #[test]
    fn columns_tell_a_period_from_a_thread() {
        for (line, (comm, id, period)) in [
            ("w 28473 ", ("w", "28473", None)),
            ("worker 3   28473 ", ("worker 3", "28473", None)),
            ("w 4194303", ("w", "4194303", None)),
            ("w 28473    2004008 ", ("w", "28473", Some(2_004_008))),
            ("worker 3 28473          1 ", ("worker 3", "28473", Some(1))),
            ("w 28473/28474 20040081234 ", ("w", "28473/28474", Some(20_040_081_234))),
            ("w 28473 [001]    2004008 ", ("w", "28473", Some(2_004_008))),
            ("w    2004008 ", ("w", "", Some(2_004_008))),
        ] {
            let header = parse_bare(line.as_bytes()).unwrap();
            assert_eq!((header.comm, header.id), (comm.as_bytes(), id.as_bytes()), "{line}");
            assert_eq!(header.period, period, "{line}");
        }
    }

    #[test]
    fn parses_all_known_forms() {
        for (line, expected) in [
            ("java 25607 4794564.109216: cycles:", "java|-|25607|4794564.109216|-|cycles|"),
            ("java 12688 [002] 6544038.708352: 235 cpu-clock: ", "java|-|12688|6544038.708352|235|cpu-clock|"),
            (
                "V8 WorkerThread 24636/25607 [000] 94564.109216: 100 cycles:",
                "V8 WorkerThread|24636|25607|94564.109216|100|cycles|",
            ),
            ("vote   913    72.176760:     257597 cycles:uppp:", "vote|-|913|72.176760|257597|cycles:uppp|"),
            (
                "false 64414 20110.539270:   34467 cycles:u:  ffff [unknown] ([unknown])",
                "false|-|64414|20110.539270|34467|cycles:u|ffff [unknown] ([unknown])",
            ),
            ("java 19983 cycles:", "java|-|19983|-|-|cycles|"),
            ("java 19983 [001] 7 cycles:u: ", "java|-|19983|-|7|cycles:u|"),
            ("x 25607 4794564.1: cycles:", "x|-|25607|4794564.1|-|cycles|"),
            ("    padded 1 2.0: 3 cycles:", "padded|-|1|2.0|3|cycles|"),
            (":-1 -1 2.0: 3 cycles:", ":-1|-|-1|2.0|3|cycles|"),
            (":-1 -1/-1 2.0: 3 cycles:", ":-1|-1|-1|2.0|3|cycles|"),
            ("Thread 12 25607 2.0: cycles:", "Thread 12|-|25607|2.0|-|cycles|"),
            ("my 7/8 app 3/4 2.0: cycles:", "my 7/8 app|3|4|2.0|-|cycles|"),
            ("a;b 1 2.0: cycles:", "a;b|-|1|2.0|-|cycles|"),
            ("kworker/0:1 [x] 12 [003] 2.0: cycles:", "kworker/0:1 [x]|-|12|2.0|-|cycles|"),
            ("a  1/2  [000] d.h1. 2.0: 5 cycles:", "a|1|2|2.0|5|cycles|"),
            ("a  1/2  U  2.0: 5 cycles:", "a|1|2|2.0|5|cycles|"),
            (
                "aa 9 2.0: sched:sched_switch: prev_comm=a prev_pid=1 ==> next_comm=b",
                "aa|-|9|2.0|-|sched:sched_switch|prev_comm=a prev_pid=1 ==> next_comm=b",
            ),
            ("aa 9 2.0: 1 syscalls:sys_enter_write: fd: 0x1", "aa|-|9|2.0|1|syscalls:sys_enter_write|fd: 0x1"),
            ("aa 9 2.0: 1 cpu/event=0x3c/pp: ", "aa|-|9|2.0|1|cpu/event=0x3c/pp|"),
            ("aa\t9 [001] 2.0: 1 cpu-cycles:", "aa|-|9|2.0|1|cpu-cycles|"),
            ("aa 9 2.0: ", "aa|-|9|2.0|-|-|"),
            ("aa 2.0: 1 cycles:", "aa|-|-|2.0|1|cycles|"),
            ("12 34 5.5: 9 2.0: 1 cycles:", "12 34 5.5:|-|9|2.0|1|cycles|"),
            ("12 34 5.5: 9 [001] 2.0: cycles:", "12 34 5.5:|-|9|2.0|-|cycles|"),
            ("9 2.0: 1 cycles:", "|-|9|2.0|1|cycles|"),
            ("2.0: 1 cycles:", "|-|-|2.0|1|cycles|"),
            ("aa 9 [000] 2.0: PERF_RECORD_COMM exec: aa:9/9", "record"),
            ("aa 9 2.0: PERF_RECORD_MMAP2 9/9: [0x1(0x2) @ 0 0:1 2 3]: r-xp /bin/aa", "record"),
            ("     0/0     [000] 2.0: PERF_RECORD_LOST lost 12", "lost 12"),
            ("aa 9 2.0: PERF_RECORD_LOST_SAMPLES lost 3", "lost 3"),
            ("aa 1", "none"),
            ("main;foo 12", "none"),
            ("ffffffff8103d0ca native_write_msr_safe ([kernel.kallsyms])", "none"),
            ("# captured on: Thu Aug 17 14:14:43 2017", "none"),
            ("# cmdline : perf record -F 99 -a", "none"),
            (":", "none"),
            (".: :", "none"),
        ] {
            assert_eq!(format_line(line), expected, "{line}");
        }
    }
}
