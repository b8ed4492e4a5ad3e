//! Parses the line of a frame: `  ADDRESS SYMBOL+0xOFFSET (MODULE)`.

use crate::markers::UNKNOWN;

/// A frame as `perf script` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collapse) struct Frame<'a> {
    /// The address in hexadecimal digits.
    pub address: &'a [u8],
    /// The symbol without its offset; empty if there is none.
    pub symbol: &'a [u8],
    /// The text in parentheses at the end.
    pub module: Option<&'a [u8]>,
    /// `FILE:LINE`, if it is printed and `--srcline` asks for it.
    pub source: Option<&'a [u8]>,
}

impl<'a> Frame<'a> {
    /// Creates a frame that has only a symbol.
    pub fn from_symbol(symbol: &'a [u8]) -> Self {
        Self { address: b"", symbol, module: None, source: None }
    }

    /// Returns true if the frame has no symbol.
    #[inline]
    pub fn is_unknown(&self) -> bool {
        self.symbol.is_empty() || self.symbol == UNKNOWN
    }
}

/// The end of an address as perf prints it: a tab or blank, and sixteen columns.
const ADDRESS_END: usize = 17;

/// Most digits of an address. Build IDs have more.
const ADDRESS_DIGITS: usize = 16;

/// Parses the line of a frame. Blanks at its end are left out: a copy of text from a terminal has them.
pub(in crate::collapse) fn parse(line: &[u8]) -> Option<Frame<'_>> {
    let (address, rest) = split_address(line)?;
    let (symbol, module) = split_module(rest.trim_ascii_end());
    Some(Frame { address, symbol, module, source: None })
}

/// Returns true if a text begins with a frame.
pub(in crate::collapse) fn is_frame(text: &[u8]) -> bool {
    split_address(text).is_some()
}

/// Returns true if a text begins with a frame that is indented, as perf prints it.
pub(in crate::collapse) fn is_indented_frame(text: &[u8]) -> bool {
    matches!(text.first(), Some(b' ' | b'\t')) && is_frame(text)
}

/// Returns true if a line in a sample annotates the frame before it: its source line, branches, registers or
/// instructions. Such lines are left out.
pub(in crate::collapse) fn is_annotation(line: &[u8]) -> bool {
    let text = strip_inlined_mark(line.trim_ascii());
    matches!(line.first(), Some(b' ' | b'\t'))
        && (is_source_position(text) || is_module_offset(text) || is_branch(text) || is_machine_state(text))
}

/// Returns true for `FILE:LINE`.
fn is_source_position(text: &[u8]) -> bool {
    let number = memchr::memrchr(b':', text).map(|colon| &text[colon + 1..]);
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// Returns true for `MODULE[OFFSET]`.
fn is_module_offset(text: &[u8]) -> bool {
    let bracketed = memchr::memrchr(b'[', text).and_then(|bracket| text[bracket + 1..].strip_suffix(b"]"));
    bracketed.is_some_and(is_hex)
}

/// Returns true for branches such as `0x4005d0/0x4005e0/P/-/-/0`.
fn is_branch(text: &[u8]) -> bool {
    let word = text.split(|byte| matches!(byte, b' ' | b'\t')).next().unwrap_or_default();
    word.contains(&b'/') && memchr::memmem::find(word, b"0x").is_some()
}

/// Starts of registers and instructions.
pub(super) const STATE_MARKS: [&[u8]; 3] = [b"ABI:", b"insn:", b"ilen:"];

/// Returns true for registers and instructions.
pub(super) fn is_machine_state(text: &[u8]) -> bool {
    STATE_MARKS.iter().any(|mark| text.starts_with(mark))
}

/// Returns the `FILE:LINE` of a line that follows a frame. perf prints `??:0`, or a module and an address, if it is
/// unknown.
pub(in crate::collapse) fn parse_source(line: &[u8]) -> Option<&[u8]> {
    let text = strip_inlined_mark(line.strip_prefix(b"  ")?.trim_ascii());
    let (file, number) = text.split_at(memchr::memrchr(b':', text)?);
    let known = number.len() > 1 && number[1..].iter().all(u8::is_ascii_digit) && file != b"??";
    (known && !is_frame(line)).then_some(text)
}

/// Returns a source position without the mark that perf appends if the function was inlined.
fn strip_inlined_mark(position: &[u8]) -> &[u8] {
    position.strip_suffix(b" (inlined)").unwrap_or(position)
}

/// Returns the text after the address, if that has the usual form: a tab, sixteen columns, a blank.
#[inline]
pub(super) fn after_columns(line: &[u8]) -> Option<&[u8]> {
    let (columns, rest) = line.split_first_chunk::<18>()?;
    let digits = columns[1..17].iter().fold(true, |all, byte| all & (is_hex_digit(*byte) | (*byte == b' ')));
    (digits && columns[0] == b'\t' && columns[16] != b' ' && columns[17] == b' ').then_some(rest)
}

/// Returns true if the address ends in perf's seventeenth column or after it, and a symbol follows that is no number.
pub(super) fn has_columns(line: &[u8]) -> bool {
    split_address(line).filter(|(address, _)| address.len() <= ADDRESS_DIGITS).is_some_and(|(_, symbol)| {
        let end = line.len() - symbol.len() - 1;
        end >= ADDRESS_END && symbol.first().is_some_and(|first| !first.is_ascii_digit() && *first != b'=')
    })
}

/// Returns true if the line ends in an offset (`+0x1f`).
pub(super) fn has_offset(line: &[u8]) -> bool {
    strip_offset(line.trim_ascii_end()).is_some()
}

/// Splits a line into the address and the text after it and one blank.
fn split_address(line: &[u8]) -> Option<(&[u8], &[u8])> {
    match after_columns(line) {
        Some(rest) => Some((&line[1..17], rest)),
        None => split_any_address(line),
    }
}

fn split_any_address(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = &line[line.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?..];
    let digits = text.iter().position(|byte| !is_hex_digit(*byte)).unwrap_or(text.len());
    match (digits, text.get(digits)) {
        (0, _) => None,
        (_, Some(b' ' | b'\t')) => Some((&text[..digits], &text[digits + 1..])),
        // Without symbols, an address ends the line: in perf's columns, or with all digits.
        (1.., None) if digits == 16 || line.len() == ADDRESS_END => Some((text, b"")),
        _ => None,
    }
}

/// Splits a text into the symbol, without its offset, and the module. Both may contain blanks and parentheses. The text
/// is split after the offset or, without an offset, before the parenthesis that the end of the line closes.
fn split_module(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some((b')', inside)) = text.split_last() else { return (strip_offset(text).unwrap_or(text), None) };
    if let Some(blank) = memchr::memrchr(b' ', inside)
        && let Some(module) = inside[blank + 1..].strip_prefix(b"(")
    {
        let symbol = &text[..blank];
        if let Some(symbol) = strip_offset(symbol) {
            return (symbol, Some(module));
        }
        if symbol == UNKNOWN {
            return (symbol, Some(module));
        }
    }
    split_unusual_module(text, inside)
}

/// Splits as [`split_module`] does if the module contains blanks or the symbol has no offset.
fn split_unusual_module<'a>(text: &'a [u8], inside: &'a [u8]) -> (&'a [u8], Option<&'a [u8]>) {
    if let Some(module) = inside.strip_prefix(b"[unknown] (") {
        return (UNKNOWN, Some(module));
    }
    for blank in memchr::memmem::find_iter(inside, b" (") {
        if let Some(symbol) = strip_offset(&text[..blank]) {
            return (symbol, Some(&inside[blank + 2..]));
        }
    }
    match find_last_parenthesis(text) {
        Some(0) => (b"", Some(&inside[1..])),
        Some(open) if text[open - 1] == b' ' => (&text[..open - 1], Some(&inside[open + 1..])),
        _ => (text, None),
    }
}

/// Returns the index of the parenthesis that the last byte closes.
fn find_last_parenthesis(text: &[u8]) -> Option<usize> {
    let mut depth = 0usize;
    for index in memchr::memrchr2_iter(b'(', b')', text) {
        depth = if text[index] == b')' { depth + 1 } else { depth - 1 };
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// Returns the text without the offset `+0x…` at its end. `None` if it has none.
fn strip_offset(text: &[u8]) -> Option<&[u8]> {
    let last = text.iter().rposition(|byte| !is_hex_digit(*byte))?;
    if last + 1 == text.len() { None } else { text[..=last].strip_suffix(b"+0x") }
}

#[inline]
fn is_hex_digit(byte: u8) -> bool {
    (byte.wrapping_sub(b'0') < 10) | (byte.wrapping_sub(b'a') < 6)
}

fn is_hex(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| is_hex_digit(*byte))
}

#[cfg(test)]
mod tests {
    use super::{Frame, is_annotation, parse};

    #[test]
    fn parses_all_known_forms() {
        for (line, symbol, module) in [
            (
                "\t    7f45fc93872f VM_Version stub+0x3af (/tmp/perf-19890.map)",
                "VM_Version stub",
                "/tmp/perf-19890.map",
            ),
            ("\tffffffff82203877 _raw_spin_lock+0x17 ([kernel.kallsyms])", "_raw_spin_lock", "[kernel.kallsyms]"),
            ("\t            5986 it<int*>::operator+++0xc6 (inlined)", "it<int*>::operator++", "inlined"),
            ("\t        80000102 [unknown] ([unknown])", "[unknown]", "[unknown]"),
            ("\t        80000102 [unknown] (/opt/My App/x (deleted))", "[unknown]", "/opt/My App/x (deleted)"),
            ("\t            7f00 foo+0x7 (/tmp/x (deleted))", "foo", "/tmp/x (deleted)"),
            ("\t            7f00 foo (/tmp/x (deleted))", "foo", "/tmp/x (deleted)"),
            ("\t            7f00 foo(int (*)(int)) (/opt/My App/x)", "foo(int (*)(int))", "/opt/My App/x"),
            ("\t            7f00 a.b.C.f ([JIT app cache])", "a.b.C.f", "[JIT app cache]"),
            ("\t            7f00 (anonymous namespace)::f()+0x1 (/x)", "(anonymous namespace)::f()", "/x"),
            ("\t            7f00 (anonymous namespace)::f() (/x)", "(anonymous namespace)::f()", "/x"),
            ("\t            7f00 +0x10 (/x)", "", "/x"),
            ("\t            7f00  (/x)", "", "/x"),
            ("\t            7f00 (/x)", "", "/x"),
            ("ffffffff8103d0ca native_write ([kernel.kallsyms])", "native_write", "[kernel.kallsyms]"),
            ("  7f00 RegExp:(a) (b) (/tmp/perf-1.map)", "RegExp:(a) (b)", "/tmp/perf-1.map"),
            ("\t 7f00 f+0xzz (/x)", "f+0xzz", "/x"),
            ("\t 7f00 f+0x (/x)", "f+0x", "/x"),
        ] {
            let Frame { symbol: found, module: in_module, .. } = parse(line.as_bytes()).expect(line);
            let in_module = String::from_utf8_lossy(in_module.expect(line));
            assert_eq!((&*String::from_utf8_lossy(found), &*in_module), (symbol, module), "{line}");
        }
    }

    #[test]
    fn parses_frames_without_a_module() {
        for (line, symbol) in [("\t7f00 foo", "foo"), ("\t7f00 foo+0x1f", "foo"), ("\t7f00 foo(int)", "foo(int)")] {
            let frame = parse(line.as_bytes()).expect(line);
            assert_eq!((frame.symbol, frame.module), (symbol.as_bytes(), None));
        }
    }

    #[test]
    fn distinguishes_annotations_from_frames() {
        for line in [
            "  foo.c:12",
            "  ??:0",
            "  libc.so.6[27249]",
            " 0x4005d0/0x4005e0/P/-/-/0  0x1/0x2/P/-/-/0",
            " main+0x10/foo+0x20/P/-/-/0",
            " ABI:2    AX:0x1",
        ] {
            assert!(parse(line.as_bytes()).is_none() && is_annotation(line.as_bytes()), "{line}");
        }
        assert!(!is_annotation(b"some text") && !is_annotation(b"  some text"));
    }
}
