//! Samples in one line, as perf prints those without a callchain: their frame follows the fields.
//!
//! ```text
//!              app  4242   86.501332:    2004008 cpu-clock:            401136 main+0x10 (/srv/app)
//! ```
//! Only perf's columns tell the address from the other numbers of a line: it is right-aligned in sixteen columns
//! (`" %16lx"` in perf), and a blank precedes them.

use super::frame::{self, Frame};
use super::header::{self, Header};

/// Columns of an address.
const ADDRESS_COLUMNS: usize = 16;

/// Columns of a thread's name.
const NAME_COLUMNS: usize = 16;

/// Columns of a period (`"%10lu "`).
const PERIOD_COLUMNS: usize = 10;

/// Most columns of the numbers between a thread's name and an address.
const MAX_NUMBER_COLUMNS: usize = 64;

/// Parses the frame behind the colon of the event or time. The address of data may precede it, with its symbol and with other
/// numbers in sixteen columns.
pub(super) fn parse_frame(text: &[u8]) -> Option<Frame<'_>> {
    let text = text.strip_prefix(b" ")?;
    parse_address_columns(text).or_else(|| {
        let (columns, rest) = text.split_at_checked(ADDRESS_COLUMNS)?;
        is_right_aligned(columns).then_some(())?;
        (0..rest.len()).rev().find_map(|start| parse_address_columns(&rest[start..]))
    })
}

/// Parses the period, if there is one, and the frame behind the colon of the time.
pub(super) fn parse_after_time(text: &[u8]) -> Option<(Option<u64>, Frame<'_>)> {
    // Most lines end with the event: their frames are below.
    if matches!(text, [.., b':'] | [.., b':', b' ']) {
        return None;
    }
    if let Some(frame) = parse_frame(text) {
        return Some((None, frame));
    }
    let text = text.strip_prefix(b" ")?;
    let digits = text.iter().position(u8::is_ascii_digit)?;
    let end = digits + text[digits..].iter().position(|byte| !byte.is_ascii_digit())?;
    let period = header::parse_decimal(&text[digits..end]).filter(|_| end >= PERIOD_COLUMNS)?;
    let is_aligned = text[..digits].iter().all(|byte| *byte == b' ');
    is_aligned.then(|| Some((Some(period), parse_frame(&text[end..])?)))?
}

/// Parses a sample without time and event: `COMM TID ADDRESS SYMBOL`, or with a period before the address. The columns of all
/// fields must be those of perf.
pub(super) fn parse_bare(line: &[u8]) -> Option<Header<'_>> {
    let is_aligned = line.starts_with(b" ") && line.get(NAME_COLUMNS) == Some(&b' ') && line[NAME_COLUMNS - 1] != b' ';
    if !is_aligned {
        return None;
    }
    let numbers = &line[NAME_COLUMNS + 1..];
    let is_number = |byte: &u8| byte.is_ascii_digit() || b" /-[]".contains(byte);
    let last = numbers.iter().position(|byte| !is_number(byte)).unwrap_or(numbers.len()).min(MAX_NUMBER_COLUMNS);
    (NAME_COLUMNS + 1..=NAME_COLUMNS + 1 + last).find_map(|start| {
        let frame = parse_address_columns(line.get(start..)?).filter(|_| line[start - 1] == b' ')?;
        let is_named = frame.symbol.first().is_some_and(|first| !first.is_ascii_digit());
        let header = header::parse_bare(&line[..start]).filter(|header| is_named && !header.id.is_empty())?;
        (header.comm == line[..NAME_COLUMNS].trim_ascii()).then_some(Header { frame: Some(frame), ..header })
    })
}

/// Returns true for `COMM ADDRESS SYMBOL` in perf's columns, which has too few fields to be a sample.
pub(super) fn lacks_fields(line: &[u8]) -> bool {
    let Some((name, rest)) = line.split_at_checked(NAME_COLUMNS) else { return false };
    let frame = rest.strip_prefix(b" ").and_then(parse_address_columns);
    name.starts_with(b" ") && frame.is_some_and(|frame| !frame.symbol.is_empty())
}

/// Parses a blank, an address in its columns, and the text behind it.
fn parse_address_columns(text: &[u8]) -> Option<Frame<'_>> {
    let (columns, rest) = text.split_at_checked(1 + ADDRESS_COLUMNS)?;
    let is_address =
        columns[0] == b' ' && is_right_aligned(&columns[1..]) && rest.first().is_none_or(|next| *next == b' ');
    if !is_address {
        return None;
    }
    let end = find_state(rest).unwrap_or(text.len() - columns.len());
    frame::parse(&text[..columns.len() + end]).or_else(|| {
        let address = &columns[1..];
        rest.is_empty().then_some(Frame { address, symbol: b"", module: None, source: None })
    })
}

/// Returns where the instruction or the registers behind a frame begin.
fn find_state(text: &[u8]) -> Option<usize> {
    let marks = frame::STATE_MARKS.iter().filter_map(|mark| memchr::memmem::find(text, mark));
    marks.filter(|start| *start > 0 && text[start - 1] == b' ').map(|start| start - 1).min()
}

/// Returns true for blanks and then hexadecimal digits to the end.
fn is_right_aligned(columns: &[u8]) -> bool {
    let digits = columns.trim_ascii_start();
    !digits.is_empty() && digits.iter().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte))
}

#[cfg(test)]
mod tests {
    use super::super::header::{Line, parse};

    #[test]
    fn columns_tell_an_address_from_other_numbers() {
        let name = "             app";
        for (line, expected) in [
            (" 11546 53938.912375: cpu-clock:      5611fdabd1cb leafB", Some(("11546", None, "leafB"))),
            (" 11546 53938.912375: cpu-clock:      5611fdabd1cb leafB+0x1e", Some(("11546", None, "leafB"))),
            (" 11546 53938.912375: cpu-clock:  ffffffff8104f45a f (/x)", Some(("11546", None, "f"))),
            (" 11546 53938.912375: cpu-clock:            401136 main", Some(("11546", None, "main"))),
            (" 11546 53938.912375:    2004008 cpu-clock:      561112345678", Some(("11546", Some(2_004_008), ""))),
            (
                " 11546 53938.912375: cpu-clock:                0      5611fdabd1cb leafB",
                Some(("11546", None, "leafB")),
            ),
            (
                " 1 2.5: page-faults:     5600efe47028 data+0x1 (/x)      5611fdabd1cb leafB+0x2 (/y)",
                Some(("1", None, "leafB")),
            ),
            (
                " 1 2.5: mem:     5600efe47028         5080021 |OP LOAD|LCK No               32           401136 f",
                Some(("1", None, "f")),
            ),
            (" 11546    2004008 cpu-clock:      5611fdabd1cb leafB", Some(("11546", Some(2_004_008), "leafB"))),
            (" 11546 53938.912375:      5611fdabd1cb leafB", Some(("11546", None, "leafB"))),
            (" 11546 53938.912375:            401136", Some(("11546", None, ""))),
            (" 11546 53938.912375:    2004008      5611fdabd1cb leafB", Some(("11546", Some(2_004_008), "leafB"))),
            (" 11546/11547 [001] 53938.9:      5611fdabd1cb f (/x)", Some(("11546/11547", None, "f"))),
            (" 11546    2004008      5611fdabd1cb leafB", Some(("11546", Some(2_004_008), "leafB"))),
            (" 11546      5611fdabd1cb operator new", Some(("11546", None, "operator new"))),
            (" 1 2.5: c:      5611fdabd1cb f+0x1 (/x) ilen: 7 insn: 48 89", Some(("1", None, "f"))),
            (" 1 2.5: c:      5611fdabd1cb f ABI:2    AX:0x1", Some(("1", None, "f"))),
            (" 11546 5611fdabd1cb leafB", None),
            ("      5611fdabd1cb leafB", None),
            (" 11546            401136", None),
            (" 1 2.5: probe:f: (5611fdabd1cb) a=1", None),
            (" 1 2.5: e:  12 f", None),
        ] {
            let line = format!("{name}{line}");
            let header = match parse(line.as_bytes()) {
                Some(Line::Sample(header)) => header.frame.map(|frame| (header, frame)),
                _ => None,
            };
            let text = |bytes| std::str::from_utf8(bytes).unwrap();
            let found = header.as_ref().map(|(header, frame)| (text(header.id), header.period, text(frame.symbol)));
            assert_eq!(found, expected, "{line}");
            assert!(header.is_none_or(|(header, _)| header.comm == b"app"), "{line}");
        }
    }
}
