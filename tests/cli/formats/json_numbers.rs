//! The forms of numbers in JSON: programs that keep all of them as floating-point numbers write `1.0`, others strings.

use super::example_texts;
use crate::support::run;

/// Writes a whole number in one form.
type Form = fn(&str) -> String;

#[test]
fn whole_numbers_may_have_any_form_of_json() {
    let forms: [(&str, Form); 3] = [
        ("a fraction", |number| format!("{number}.0")),
        ("an exponent", |number| format!("{number}e0")),
        ("a string", |number| format!("\"{number}\"")),
    ];
    let is_json = |name: &str, text: &str| !name.ends_with(".txt") && text.trim_start().starts_with(['{', '[']);
    let mut examples = 0;
    for (name, text, _) in example_texts().into_iter().filter(|(name, text, _)| is_json(name, text)) {
        let expected = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        for (form, write) in forms {
            let outcome = run("fg-collapse", [""; 0], rewrite_numbers(&text, write).as_bytes()).ok();
            assert_eq!(outcome.text(), expected.text(), "{name} with {form}: {}", outcome.stderr);
        }
        examples += 1;
    }
    assert!(examples > 20, "{examples}");
}

/// Rewrites the whole numbers of a document.
fn rewrite_numbers(json: &str, write: impl Fn(&str) -> String) -> String {
    let mut written = String::new();
    let mut rest = json;
    while let Some(start) = rest.find(|first: char| first == '"' || first == '-' || first.is_ascii_digit()) {
        let (before, token) = rest.split_at(start);
        written.push_str(before);
        let end = match token.strip_prefix('"') {
            Some(string) => 1 + string_end(string),
            None => token.find(|next: char| !"+-.eE".contains(next) && !next.is_ascii_digit()).unwrap_or(token.len()),
        };
        let (token, after) = token.split_at(end);
        let is_whole = token.strip_prefix('-').unwrap_or(token).bytes().all(|byte| byte.is_ascii_digit());
        written.push_str(&if is_whole { write(token) } else { token.to_owned() });
        rest = after;
    }
    written + rest
}

/// Returns the offset behind the quote that ends a string.
fn string_end(string: &str) -> usize {
    let mut is_escaped = false;
    let end = string.find(|next| {
        let is_end = next == '"' && !is_escaped;
        is_escaped = next == '\\' && !is_escaped;
        is_end
    });
    end.unwrap() + 1
}
