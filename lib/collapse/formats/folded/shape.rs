//! Tells folded stacks from other text whose lines end in a number.

use bstr::ByteSlice as _;

use super::{has_callers, parse, sorted, stack_lines, weight};
use crate::collapse::line_helpers::{split_word, split_words};
use crate::collapse::text_kind::has_text_semicolons;
use crate::folded::{Line, LineKind, is_message};

/// Maximum number of lines of a text whose first line decides.
pub(super) const MAX_SHORT_TEXT: usize = 32;

/// Maximum number of lines that are taken for stacks of one frame although their names may be words.
const MAX_PLAIN_LINES: usize = 8;

/// Maximum number of words of a function's name, with the types of its arguments.
const MAX_NAME_WORDS: usize = 8;

/// Numbers of the first lines, by their shape.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) lines: usize,
    /// Lines that are a stack and a weight.
    pub(super) fitting: usize,
    /// Those with several frames.
    pub(super) with_callers: usize,
    /// True if the first line is a stack and a weight.
    pub(super) first_fits: bool,
    /// Those with one frame whose name is not a word.
    with_symbols: usize,
    /// Those with one frame and the numbers of a table.
    with_numbers: usize,
    /// Those with one frame whose name is several words.
    with_words: usize,
    /// Those with one frame and a number that is aligned.
    with_padding: usize,
    /// Those with semicolons as text has them.
    with_text: usize,
    /// True if the lines are a list of stacks as programs write them that add stacks up.
    is_sorted_list: bool,
}

impl Shape {
    pub(super) fn new(head: &[u8]) -> Self {
        let mut shape = Self { is_sorted_list: sorted::is_list_of_stacks(head), ..Self::default() };
        for line in stack_lines(head) {
            shape.lines += 1;
            if weight::explain(line).is_some() {
                let has_callers = has_callers(line);
                shape.fitting += usize::from(has_callers || weight::is_too_small(line));
                shape.with_callers += usize::from(has_callers);
            } else if let Some(Line { stack, .. }) =
                parse(line, LineKind::Plain).filter(|line| !is_assignment(line.stack))
            {
                shape.fitting += 1;
                let has_callers = has_callers(stack);
                let name = without_weight(stack);
                let has_symbols = is_symbol(name);
                shape.with_callers += usize::from(has_callers);
                shape.first_fits |= shape.lines == 1;
                shape.with_symbols += usize::from(!has_callers && has_symbols);
                shape.with_numbers += usize::from(!stack.contains(&b';') && is_row_of_numbers(stack, line));
                shape.with_padding += usize::from(!has_callers && is_padded(line));
                let is_words = !has_symbols && name.contains(&b' ') || split_words(name).count() > MAX_NAME_WORDS;
                shape.with_words += usize::from(!has_callers && is_words);
                shape.with_text += usize::from(has_text_semicolons(stack));
            }
        }
        shape
    }

    pub(super) fn looks_like_stacks(&self) -> bool {
        if self.with_text * 2 > self.fitting {
            return false;
        }
        if self.is_sorted_list {
            return true;
        }
        let is_table = self.with_callers == 0 && self.with_numbers.max(self.with_padding) * 2 > self.fitting;
        let is_sentence = self.lines == 1 && self.with_words == 1;
        if is_table || is_sentence {
            return false;
        }
        if (self.with_callers + self.with_symbols) * 2 > self.fitting {
            return true;
        }
        // Where each line has a weight, some with callers are enough, if the other names are mostly single words.
        let has_callers = self.with_callers * 8 >= self.fitting && self.with_words * 4 <= self.fitting;
        self.fitting == self.lines && (self.lines <= MAX_PLAIN_LINES || has_callers)
    }
}

/// Returns the offset of the first line before a profile that is a stack of it, or the length of the text. It has one frame,
/// which is one word, a name as only functions have, or the root of another stack; or it has several frames and a weight that
/// cannot be parsed.
pub(in crate::collapse) fn find_first_stack(before: &[u8], profile: &[u8]) -> usize {
    let is_root =
        |name: &[u8]| profile.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(b";")));
    let mut offset = 0;
    for line in before.lines_with_terminator() {
        let text = line.trim_ascii_end();
        let stack = parse(text, LineKind::Plain).map(|line| line.stack);
        if stack.is_some_and(|name| is_root(without_weight(name))) {
            break;
        }
        let stack = stack.filter(|stack| !is_row_of_numbers(stack, text) && !is_padded(text));
        let stack = stack.filter(|stack| !is_assignment(stack) && !is_message(stack)).map(without_weight);
        if stack.is_some_and(|name| split_words(name).count() == 1 || is_symbol(name)) {
            break;
        }
        if has_callers(text) && weight::last_word(text).iter().any(u8::is_ascii_digit) {
            break;
        }
        offset += line.len();
    }
    offset
}

/// Returns a stack without the first of two weights, which is taken for a part of its last frame.
fn without_weight(stack: &[u8]) -> &[u8] {
    parse(stack, LineKind::Plain).map_or(stack, |line| line.stack)
}

/// Ends of text before a number that is a part of an expression, or the number of a line.
const OPERATORS: [&[u8]; 6] = [b" =", b" +", b" -", b" *", b" <-", b", line"];

/// Returns true for text that ends like `name:` or `i <- i +`, before a number that is no weight, and for text that
/// begins like `name: `, unless it is an access specifier of C++. Punctuation alone names nothing.
fn is_assignment(stack: &[u8]) -> bool {
    if stack.is_ascii() && !stack.iter().any(u8::is_ascii_alphanumeric) {
        return false;
    }
    let key = split_word(stack).0.strip_suffix(b":");
    let key = key.filter(|key| !matches!(*key, b"public" | b"protected" | b"private"));
    let begins_with_key = key.is_some_and(|key| key.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'));
    OPERATORS.iter().any(|operator| stack.ends_with(operator))
        || (begins_with_key || stack.ends_with(b":")) && !stack.contains(&b';')
}

/// Returns true for a row of a table: a line whose stack has only numbers, decimal or hexadecimal, or that ends in more
/// numbers than weights. `_4` is a name.
fn is_row_of_numbers(stack: &[u8], line: &[u8]) -> bool {
    let words = stack.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    let mut words = words.filter(|word| !word.is_empty()).peekable();
    let has_only_numbers = words.peek().is_some() && words.all(is_hexadecimal);
    let words = line.rsplit(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let values = words.take_while(|word| word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'));
    has_only_numbers || values.count() > MAX_WEIGHTS
}

/// True for hexadecimal digits with a decimal one among them.
fn is_hexadecimal(word: &[u8]) -> bool {
    word.iter().any(u8::is_ascii_digit) && word.iter().all(u8::is_ascii_hexdigit)
}

/// Maximum number of weights of a line.
const MAX_WEIGHTS: usize = 2;

/// Returns true if a blank precedes the blank before the weight, as in tables.
fn is_padded(line: &[u8]) -> bool {
    let number = line.iter().rev().take_while(|byte| !byte.is_ascii_whitespace()).count();
    line[..line.len() - number].ends_with(b"  ")
}

/// Most words of a function's name beside what is in brackets: `unsigned long long f<…>(…) const`.
const MAX_SYMBOL_WORDS: usize = 5;

/// Returns true for a name with brackets or a backquote, as functions have and ordinary words do not. Beside what is in the
/// brackets, text has many words, marks between blanks, or words behind brackets: `[INFO] Started`, `<li>one`, `- [a](b)`.
fn is_symbol(name: &[u8]) -> bool {
    if !name.iter().any(|byte| b"([`<".contains(byte)) {
        return false;
    }
    let outside = outside_brackets(name);
    let words: Vec<&[u8]> = split_words(&outside).take(MAX_SYMBOL_WORDS + 1).collect();
    let is_operator = name.contains_str("operator");
    let has_mark = words.iter().any(|word| !word.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte == BRACKETS));
    let has_word_behind = match outside.strip_prefix(&[BRACKETS]) {
        // A place in a file is part of the name: `(anonymous) /app/main.js:12`.
        Some([b' ', rest @ ..]) => {
            rest.iter().any(u8::is_ascii_alphanumeric) && (rest.contains(&b' ') || !rest.contains(&b':'))
        }
        Some([next, ..]) => next.is_ascii_alphanumeric(),
        Some([]) | None => false,
    };
    words.len() <= MAX_SYMBOL_WORDS && !has_word_behind && (is_operator || !has_mark)
}

/// Stands for brackets and what is in them.
const BRACKETS: u8 = 0;

/// Returns a name with one byte in place of each pair of brackets and what is in them. A bracket without the other one is a
/// character like any other.
fn outside_brackets(name: &[u8]) -> Vec<u8> {
    let (mut outside, mut open) = (Vec::with_capacity(name.len()), Vec::new());
    for byte in name {
        let opening = match byte {
            b')' => b'(',
            b']' => b'[',
            b'>' => b'<',
            _ => 0,
        };
        if opening != 0
            && let Some(index) = open.iter().rposition(|(bracket, _)| *bracket == opening)
        {
            let (_, start) = open[index];
            open.truncate(index);
            outside.truncate(start);
            outside.push(BRACKETS);
            continue;
        }
        if b"([<".contains(byte) {
            open.push((*byte, outside.len()));
        }
        outside.push(*byte);
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::{is_padded, is_symbol};

    #[test]
    fn names_of_functions_are_told_from_text() {
        for name in [
            "f(int, char)",
            "void std::sort<int*, bool (*)(int, int)>(int*, int*) const",
            "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
            "(anonymous namespace)::run",
            "[unknown]",
            "libc`read",
            "-[NSString length]",
            "operator new(unsigned long)",
            "operator < (a, b)",
            "<module> (app.py)",
            "std::operator<",
            "[k] (libc.so)",
            "a::test[0-x]",
            "(anonymous) /app/main.js:12",
        ] {
            assert!(is_symbol(name.as_bytes()), "{name}");
        }
        for text in [
            "10.0.0.1 - - [27/Nov/2026:07:00:00 +0000] \"GET / HTTP/1.1\" 200",
            "[INFO] Building module",
            "<bob> I have",
            "<li>item 0</li>",
            "- [Chapter 1](ch1.md)",
            "It took me a long while (and more)",
            "main",
        ] {
            assert!(!is_symbol(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn aligned_numbers_are_those_of_tables() {
        assert!(is_padded(b"[kthreadd]      0") && !is_padded(b"[kthreadd] 0"));
    }
}
