//! The subset of roff that the man pages use.
//!
//! The roff crate (1.1) does not escape the characters `^`, `~` and the backquote. groff prints others for them, so
//! that a command copied from a page would not run.

/// Escapes text so that roff prints it literally.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    if text.starts_with('.') {
        escaped.push_str("\\&");
    }
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            character => escaped.push(character),
        }
    }
    escaped
}

/// Returns text in bold.
pub(super) fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", escape(text))
}

/// Returns text in italics.
pub(super) fn italic(text: &str) -> String {
    format!("\\fI{}\\fR", escape(text))
}

/// Renders prose, with text in `backquotes`, options such as `--top` and page names such as `perf(1)` in bold.
pub(super) fn prose(text: &str) -> String {
    if text.matches('`').count() % 2 == 1 {
        return escape(text);
    }
    let mut rendered = String::new();
    for (number, part) in text.split('`').enumerate() {
        if number % 2 == 1 {
            rendered.push_str(&bold(part));
        } else {
            part.split_inclusive(' ').for_each(|word| rendered.push_str(&render_word(word)));
        }
    }
    rendered
}

/// Renders a word with the punctuation around it.
fn render_word(word: &str) -> String {
    let opening = word.len() - word.trim_start_matches(['(', '[']).len();
    let (before, rest) = word.split_at(opening);
    let end = emphasized_length(rest);
    if end == 0 {
        return escape(word);
    }
    let (emphasized, after) = rest.split_at(end);
    format!("{}{}{}", escape(before), bold(emphasized), escape(after))
}

/// Returns the length of the option or page name at the start of a word; 0 if there is none.
fn emphasized_length(word: &str) -> usize {
    let length = word.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_')).unwrap_or(word.len());
    let (name, after) = word.split_at(length);
    let is_option =
        name.starts_with('-') && name.trim_start_matches('-').starts_with(|c: char| c.is_ascii_alphabetic());
    let is_page = after.starts_with('(') && after[1..].starts_with(|c: char| c.is_ascii_digit());
    if is_option || (is_page && !name.is_empty()) { length } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::{escape, prose};

    #[test]
    fn prose_sets_options_pages_and_commands_in_bold() {
        let rendered = prose("see perf-script(1), --top (or -n), `a b` and x-y - z");
        assert_eq!(
            rendered,
            "see \\fBperf\\-script\\fR(1), \\fB\\-\\-top\\fR (or \\fB\\-n\\fR), \\fBa b\\fR and x\\-y \\- z"
        );
        assert_eq!(prose("one ` alone"), "one \\(ga alone");
    }

    #[test]
    fn escape_keeps_roff_from_interpreting_text() {
        assert_eq!(escape(".x\\n 'q'"), "\\&.x\\en \\(aqq\\(aq");
    }
}
