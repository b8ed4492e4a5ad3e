//! The number of columns that characters take on a terminal.

use std::ops::RangeInclusive;

/// Characters of two columns: the East Asian ones that are wide or full-width (Unicode Standard Annex 11), and pictures.
const WIDE: [RangeInclusive<char>; 14] = [
    '\u{1100}'..='\u{115f}',
    '\u{2e80}'..='\u{303e}',
    '\u{3041}'..='\u{33ff}',
    '\u{3400}'..='\u{4dbf}',
    '\u{4e00}'..='\u{a4cf}',
    '\u{a960}'..='\u{a97f}',
    '\u{ac00}'..='\u{d7a3}',
    '\u{f900}'..='\u{faff}',
    '\u{fe30}'..='\u{fe6f}',
    '\u{ff01}'..='\u{ff60}',
    '\u{ffe0}'..='\u{ffe6}',
    '\u{1f300}'..='\u{1f64f}',
    '\u{1f680}'..='\u{1f9ff}',
    '\u{20000}'..='\u{3fffd}',
];

/// Characters that are drawn over the one before: combining marks, joiners and variation selectors.
const COMBINING: [RangeInclusive<char>; 6] = [
    '\u{300}'..='\u{36f}',
    '\u{3099}'..='\u{309a}',
    '\u{1ab0}'..='\u{1aff}',
    '\u{200b}'..='\u{200f}',
    '\u{20d0}'..='\u{20ff}',
    '\u{fe00}'..='\u{fe0f}',
];

/// Returns the number of columns of a text.
pub(super) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char_width).sum() }
}

/// Returns as much of the beginning of a text as fits.
pub(super) fn take(text: &str, room: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, letter)| {
        used += char_width(*letter);
        used > room
    });
    &text[..end.map_or(text.len(), |(end, _)| end)]
}

/// Returns as much of the end of a text as fits.
pub(super) fn take_end(text: &str, room: usize) -> &str {
    let mut used = 0;
    let start = text.char_indices().rev().find(|(_, letter)| {
        used += char_width(*letter);
        used > room
    });
    &text[start.map_or(0, |(start, letter)| start + letter.len_utf8())..]
}

fn char_width(letter: char) -> usize {
    match letter {
        ..'\u{300}' => 1,
        _ if COMBINING.iter().any(|range| range.contains(&letter)) => 0,
        _ if WIDE.iter().any(|range| range.contains(&letter)) => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::{take, take_end, width};

    #[test]
    fn east_asian_characters_take_two_columns_and_marks_none() {
        for (text, columns) in [("main", 4), ("größe", 5), ("主処理", 6), ("e\u{301}", 1), ("한글", 4), ("…█", 2)]
        {
            assert_eq!(width(text), columns, "{text}");
        }
        assert_eq!((take("主処理", 5), take_end("主処理", 3)), ("主処", "理"));
        assert_eq!((take("ab", 5), take_end("ab", 1)), ("ab", "b"));
    }
}
