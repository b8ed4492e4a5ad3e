//! The first line of a sample: `COMM PID/TID [CPU] TIME: PERIOD EVENT: …`, of which most may be missing.
//!
//! A thread's name may hold blanks, digits, slashes and colons, so the line is read from its time outwards: before it
//! backwards, after it forwards.

/// What a line that begins something says.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::collapse) enum Line<'a> {
    /// A sample begins.
    Sample(Header<'a>),
    /// So many samples were lost.
    Lost(u64),
    /// A record that is no sample: a thread's start, a mapping.
    Record,
}

/// The parts of a sample's first line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::collapse) struct Header<'a> {
    /// The thread's name.
    pub comm: &'a [u8],
    /// `PID/TID` or `TID`, as it stands there.
    pub id: &'a [u8],
    /// The CPU.
    pub cpu: Option<&'a [u8]>,
    /// Seconds, with a fraction.
    pub time: Option<&'a [u8]>,
    /// The event's own count.
    pub period: Option<u64>,
    /// The event, with its modifiers.
    pub event: Option<&'a [u8]>,
    /// What follows the event: text of a tracepoint, or a stack of one frame.
    pub rest: &'a [u8],
}

impl<'a> Header<'a> {
    /// The process, if the line names both it and the thread.
    pub fn pid(&self) -> Option<&'a [u8]> {
        memchr::memchr(b'/', self.id).map(|slash| &self.id[..slash])
    }

    /// The thread.
    pub fn tid(&self) -> Option<&'a [u8]> {
        let tid = memchr::memchr(b'/', self.id).map_or(self.id, |slash| &self.id[slash + 1..]);
        (!tid.is_empty()).then_some(tid)
    }
}

/// Takes a line apart. If several of its words read as a time, the first with an event behind it is.
pub(in crate::collapse) fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut timed = false;
    for (start, colon) in times(line) {
        timed = true;
        if let Some(what) = What::parse(&line[colon + 1..]) {
            return Some(what.complete(Header { time: Some(&line[start..colon]), ..who(&line[..start]) }));
        }
    }
    if timed { None } else { without_time(line) }
}

/// A line of nothing but a thread and its number: `COMM PID`. It begins a sample only if a frame follows.
pub(in crate::collapse) fn bare(line: &[u8]) -> Option<Header<'_>> {
    let header = who(line);
    (!header.id.is_empty() && !header.comm.is_empty() && line[0] != b'#').then_some(header)
}

/// Where a `DIGITS.DIGITS:` stands alone: its start and its colon.
fn times(line: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    memchr::memchr_iter(b':', line).filter_map(|colon| {
        let alone = line.get(colon + 1).is_none_or(|next| is_blank(*next));
        let start = if alone { time_before(line, colon)? } else { return None };
        (start == 0 || is_blank(line[start - 1])).then_some((start, colon))
    })
}

/// Where the `DIGITS.DIGITS` starts that ends here.
fn time_before(line: &[u8], end: usize) -> Option<usize> {
    let fraction = digits_before(line, end);
    let dot = fraction.checked_sub(1).filter(|dot| fraction < end && line[*dot] == b'.')?;
    let start = digits_before(line, dot);
    (start < dot).then_some(start)
}

fn digits_before(line: &[u8], end: usize) -> usize {
    line[..end].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |other| other + 1)
}

/// Reads the thread from the end: flags, `[CPU]`, `PID/TID`, and all before is its name.
fn who(left: &[u8]) -> Header<'_> {
    let (mut rest, mut word) = last_word(left);
    let mut cpu = in_brackets(word);
    if cpu.is_none() && !is_pid(word) && is_flags(word) {
        let (before, previous) = last_word(rest);
        cpu = in_brackets(previous);
        if cpu.is_some() || is_pid(previous) {
            (rest, word) = (before, previous);
        }
    }
    if cpu.is_some() {
        (rest, word) = last_word(rest);
    }
    match is_pid(word) {
        true => Header { comm: rest.trim_ascii(), id: word, cpu, ..Header::default() },
        false => Header { comm: left.trim_ascii(), ..Header::default() },
    }
}

/// Without a time, the thread ends at the first word that reads as its number and that an event follows.
fn without_time(line: &[u8]) -> Option<Line<'_>> {
    let mut at = 0;
    while at < line.len() {
        let start = at + line[at..].iter().position(|byte| !is_blank(*byte))?;
        let end = start + first_word(&line[start..]).len();
        if start > 0
            && is_pid(&line[start..end])
            && let Some(found) = without_time_at(line, end)
        {
            return Some(found);
        }
        at = end;
    }
    None
}

fn without_time_at(line: &[u8], mut end: usize) -> Option<Line<'_>> {
    let after = line[end..].trim_ascii_start();
    let word = first_word(after);
    if in_brackets(word).is_some() {
        end = line.len() - after.len() + word.len();
    }
    let what = What::parse(&line[end..])?;
    let header = who(&line[..end]);
    (!header.comm.is_empty()).then_some(())?;
    if matches!(what, What::Event { event: None, .. }) { None } else { Some(what.complete(header)) }
}

/// What happened: the part after the time.
enum What<'a> {
    Event { period: Option<u64>, event: Option<&'a [u8]>, rest: &'a [u8] },
    Lost(u64),
    Record,
}

impl<'a> What<'a> {
    /// `[PERIOD] [EVENT: …]`
    fn parse(right: &'a [u8]) -> Option<Self> {
        let mut right = right.trim_ascii_start();
        if let Some(record) = right.strip_prefix(b"PERF_RECORD_") {
            return Some(lost(record).map_or(Self::Record, Self::Lost));
        }
        let number = first_word(right);
        let period = decimal(number);
        if period.is_some() {
            right = right[number.len()..].trim_ascii_start();
        }
        if right.is_empty() {
            return Some(Self::Event { period, event: None, rest: right });
        }
        let word = first_word(right);
        let event = word.strip_suffix(b":").filter(|event| !event.is_empty())?;
        if time_before(event, event.len()) == Some(0) {
            return None;
        }
        Some(Self::Event { period, event: Some(event), rest: right[word.len()..].trim_ascii_start() })
    }

    fn complete(self, header: Header<'a>) -> Line<'a> {
        match self {
            Self::Lost(samples) => Line::Lost(samples),
            Self::Record => Line::Record,
            Self::Event { period, event, rest } => Line::Sample(Header { period, event, rest, ..header }),
        }
    }
}

/// `LOST lost 12` and `LOST_SAMPLES lost 12`.
fn lost(record: &[u8]) -> Option<u64> {
    let after = record.strip_prefix(b"LOST")?;
    decimal(after.strip_prefix(b"_SAMPLES").unwrap_or(after).trim_ascii().strip_prefix(b"lost ")?)
}

fn decimal(text: &[u8]) -> Option<u64> {
    let add =
        |sum: u64, byte: &u8| sum.checked_mul(10)?.checked_add(byte.is_ascii_digit().then(|| byte - b'0')?.into());
    text.iter().try_fold(0, add).filter(|_| !text.is_empty())
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn first_word(text: &[u8]) -> &[u8] {
    &text[..text.iter().position(|byte| is_blank(*byte)).unwrap_or(text.len())]
}

/// The last word, and what stands before it.
fn last_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_end();
    let start = text.iter().rposition(|byte| is_blank(*byte)).map_or(0, |blank| blank + 1);
    (&text[..start], &text[start..])
}

/// `-?digits[/-?digits]`
fn is_pid(word: &[u8]) -> bool {
    after_number(word).is_some_and(|rest| match rest {
        [] => true,
        [b'/', tid @ ..] => after_number(tid).is_some_and(<[u8]>::is_empty),
        _ => false,
    })
}

/// What follows `-?digits`.
fn after_number(text: &[u8]) -> Option<&[u8]> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    (end > 0).then_some(&digits[end..])
}

/// The digits in `[digits]`.
fn in_brackets(word: &[u8]) -> Option<&[u8]> {
    match word {
        [b'[', digits @ .., b']'] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => Some(digits),
        _ => None,
    }
}

/// Interrupt and context-switch flags, as in `d.h1.` and `U`.
fn is_flags(word: &[u8]) -> bool {
    (1..=6).contains(&word.len()) && word.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'#'))
}

#[cfg(test)]
mod tests {
    use super::{Line, parse};

    /// comm, pid, tid, time, period, event, rest; `-` for what is missing.
    fn shown(line: &str) -> String {
        let part = |part: Option<&[u8]>| part.map_or("-".into(), |part| String::from_utf8_lossy(part).into_owned());
        match parse(line.as_bytes()) {
            None => "none".to_owned(),
            Some(Line::Record) => "record".to_owned(),
            Some(Line::Lost(samples)) => format!("lost {samples}"),
            Some(Line::Sample(header)) => [
                part(Some(header.comm)),
                part(header.pid()),
                part(header.tid()),
                part(header.time),
                header.period.map_or("-".to_owned(), |period| period.to_string()),
                part(header.event),
                part(Some(header.rest)),
            ]
            .join("|"),
        }
    }

    #[test]
    fn reads_every_known_form() {
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
            assert_eq!(shown(line), expected, "{line}");
        }
    }
}
