//! Finds matching brackets in names, where `<` and `>` may be operators and `->` an arrow.

/// C++ operators whose symbols contain or could be taken for brackets, the longest first.
const OPERATORS: [&[u8]; 14] =
    [b"<=>", b"<<=", b">>=", b"->*", b"<<", b">>", b"<=", b">=", b"->", b"()", b"[]", b"<", b">", b"-="];

/// Returns true if a byte may be part of an identifier.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// Returns the length of the operator name at `start`, like `operator<<`, if its symbol is one of [`OPERATORS`].
pub(super) fn operator_length(name: &[u8], start: usize) -> Option<usize> {
    let before = start.checked_sub(1).map(|before| name[before]);
    let symbol = strip_operator(&name[start..], before)?;
    symbol_length(symbol).map(|length| name.len() - start - symbol.len() + length)
}

/// Returns the text after the word `operator` at the start of `text`. `before` is the byte before the word.
pub(super) fn strip_operator(text: &[u8], before: Option<u8>) -> Option<&[u8]> {
    text.strip_prefix(b"operator").filter(|_| !before.is_some_and(is_word))
}

/// Returns the length of the symbol at the start of `text`, if it is one of [`OPERATORS`].
pub(super) fn symbol_length(text: &[u8]) -> Option<usize> {
    OPERATORS.iter().find(|operator| text.starts_with(operator)).map(|operator| operator.len())
}

/// Finds the ends of bracketed groups.
///
/// Remembers which kinds of brackets are not closed, so that a name of many `<` takes linear time.
#[derive(Default)]
pub(super) struct BracketMatcher {
    is_unclosed: [bool; 4],
}

impl BracketMatcher {
    /// Returns the position after the closing bracket, if there is an opening bracket at `start` and it is closed.
    ///
    /// Positions must be asked for in ascending order.
    pub(super) fn find_group_end(&mut self, name: &[u8], start: usize) -> Option<usize> {
        let kind = b"<([{".iter().position(|open| *open == name[start])?;
        if self.is_unclosed[kind] {
            return None;
        }
        let end = find_group_end(name, start);
        self.is_unclosed[kind] = end.is_none();
        end
    }
}

/// Returns the outermost bracketed groups of a name.
pub(crate) fn find_groups(name: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (mut matcher, mut groups, mut position) = (BracketMatcher::default(), Vec::new(), 0);
    while position < name.len() {
        if let Some(length) = operator_length(name, position) {
            position += length;
        } else if let Some(end) = matcher.find_group_end(name, position) {
            groups.push(position..end);
            position = end;
        } else {
            position += 1;
        }
    }
    groups
}

fn find_group_end(name: &[u8], start: usize) -> Option<usize> {
    // The expected closing brackets, innermost last.
    let mut open: Vec<u8> = Vec::new();
    let mut position = start;
    while position < name.len() {
        if let Some(length) = operator_length(name, position) {
            position += length;
            continue;
        }
        match name[position] {
            b'<' => open.push(b'>'),
            b'(' => open.push(b')'),
            b'[' => open.push(b']'),
            b'{' => open.push(b'}'),
            // An arrow, or greater-than.
            b'>' if position > 0 && name[position - 1] == b'-' || open.last() != Some(&b'>') => {}
            close @ (b'>' | b')' | b']' | b'}') => {
                // Each `<` that is still open inside was less-than.
                let matching = open.iter().rposition(|expected| *expected == close)?;
                open.truncate(matching);
                if open.is_empty() {
                    return Some(position + 1);
                }
            }
            _ => {}
        }
        position += 1;
    }
    None
}
