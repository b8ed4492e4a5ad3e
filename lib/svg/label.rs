//! Labels of frames: names cut to fit, so that the most informative part remains. `viewer/label.js` follows the same
//! rules.

use std::borrow::Cow;

use super::name_parts::{SEPARATORS, ends_with_line, part_starts};
use crate::script_source::split_source_line;

/// The number of times that a type is unwrapped. Deeper nesting does not help a reader, and a name can be a megabyte of
/// brackets.
const MAX_NESTING: usize = 4;

/// Generic types that say less than their first type argument.
const WRAPPERS: [&str; 5] = ["GenFuture", "Pin", "Box", "AssertUnwindSafe", "Instrumented"];

/// Kinds of code that V8 writes before the names of functions: `JS:*parse /app/x.js:3:7`.
const V8_KINDS: [&str; 7] = ["JS", "LazyCompile", "Function", "Script", "Eval", "Builtin", "BytecodeHandler"];

/// Returns as much of a name as fits into `max_chars` characters.
///
/// If the whole name does not fit, its last parts remain: the function rather than its namespaces. Type arguments are
/// preferred to the namespaces of their type. If the last part does not fit, its beginning remains. The label is empty
/// if `max_chars` is less than 3.
pub fn label(name: &str, max_chars: usize) -> Cow<'_, str> {
    if max_chars < 3 {
        return Cow::Borrowed("");
    }
    if name.len() <= max_chars || name.chars().count() <= max_chars {
        return Cow::Borrowed(name);
    }
    let name = ShortName::new(name);
    let starts = part_starts(&name.text);
    if let Some(label) = name.label_with_arguments(&starts, max_chars) {
        return Cow::Owned(label);
    }
    match starts.iter().rev().take_while(|start| name.chars_from(**start) <= max_chars).last() {
        Some(start) => Cow::Owned(name.text[*start..].to_owned()),
        None => {
            let last = &name.text[starts.last().copied().unwrap_or(0)..];
            Cow::Owned(truncate_right(last, max_chars).into_owned())
        }
    }
}

/// Returns the beginning of a name that fits into `max_chars` characters, with `…` after it if something is missing.
pub fn truncate_right(name: &str, max_chars: usize) -> Cow<'_, str> {
    if max_chars < 3 || name.chars().count() <= max_chars {
        return Cow::Borrowed(if max_chars < 3 { "" } else { name });
    }
    let end = name.char_indices().nth(max_chars - 1).map_or(name.len(), |(end, _)| end);
    Cow::Owned(format!("{}…", &name[..end]))
}

/// A name without its least informative parts.
struct ShortName {
    text: String,
    /// The arguments of the type whose trait method this is, if they are informative.
    arguments: String,
    /// Index in `text` where `arguments` were.
    arguments_index: usize,
}

impl ShortName {
    /// Removes the hash of a Rust name, a source file in parentheses, the trait in `<Type as Trait>::method`, and type
    /// arguments.
    ///
    /// The argument of a wrapper replaces the wrapper. If it is a closure, the method goes too, because a closure has
    /// only one.
    fn new(name: &str) -> Self {
        let whole = strip_v8(strip_source(strip_rust_hash(name)));
        let whole = split_source_line(whole).map_or(whole, |(plain, _)| plain);
        let mut name = Cow::Borrowed(whole);
        for _ in 0..MAX_NESTING {
            let Some((outer, method)) = split_trait_method(&name) else { break };
            let inner = unwrap_type(outer);
            let is_closure = inner.len() < outer.len() && inner.ends_with('}') && !method.contains('{');
            name = Cow::Owned(format!("{inner}{}", if is_closure { "" } else { method }));
        }
        let starts = part_starts(&name);
        let last_start = starts.last().copied().unwrap_or(0);
        let (mut text, mut arguments, mut arguments_index) = (String::with_capacity(name.len()), "", 0);
        for range in starts.windows(2) {
            let part = &name[range[0]..range[1]];
            let end = part.trim_end_matches(SEPARATORS).len();
            let is_whole = part.starts_with("operator") || part[..end].ends_with("<locals>");
            let bracket = part[..end].find('<').filter(|index| *index > 0 && !is_whole);
            text.push_str(bracket.map_or(&part[..end], |bracket| part[..bracket].trim_end_matches("::")));
            if let Some(bracket) = bracket.filter(|_| range[1] == last_start && name != whole) {
                (arguments, arguments_index) = (&part[bracket + 1..end - 1], text.len());
            }
            text.push_str(&part[end..]);
        }
        push_without_turbofish(&name[last_start..], &mut text);
        let is_informative = arguments.contains("::");
        let arguments = if is_informative { shorten_arguments(arguments) } else { String::new() };
        Self { text, arguments, arguments_index }
    }

    /// Returns the number of characters of a label that starts at index `start`.
    fn chars_from(&self, start: usize) -> usize {
        self.text[start..].chars().count()
    }

    /// Returns a label with type arguments, cut if necessary. `None` if there are none or they do not fit.
    fn label_with_arguments(&self, starts: &[usize], max_chars: usize) -> Option<String> {
        if self.arguments.is_empty() {
            return None;
        }
        let argument_chars = self.arguments.chars().count() + "<>".len();
        let mut starts = starts.iter().rev().copied().skip_while(|start| *start >= self.arguments_index);
        let type_start = starts.next().unwrap_or(0);
        let type_chars = self.chars_from(type_start);
        let (start, arguments) = if type_chars + argument_chars <= max_chars {
            let fitting = starts.take_while(|start| self.chars_from(*start) + argument_chars <= max_chars);
            (fitting.last().unwrap_or(type_start), Cow::Borrowed(self.arguments.as_str()))
        } else if type_chars + 10 < max_chars {
            (type_start, truncate_right(&self.arguments, max_chars - type_chars - "<>".len()))
        } else {
            return None;
        };
        let (before, after) = (&self.text[start..self.arguments_index], &self.text[self.arguments_index..]);
        Some(format!("{before}<{arguments}>{after}"))
    }
}

/// Appends a part of a name without the type arguments of a Rust function: `to_vec::<T>` becomes `to_vec`.
fn push_without_turbofish(part: &str, text: &mut String) {
    let start = part.find("::<").filter(|start| *start > 0 && !part[start + 2..].starts_with("<impl"));
    let Some(start) = start else { return text.push_str(part) };
    let mut end = start + "::<".len();
    loop {
        end += argument_length(&part[end..]);
        if !part[end..].starts_with(',') {
            break;
        }
        end += 1;
    }
    text.push_str(&part[..start]);
    text.push_str(part.get(end + 1..).unwrap_or_default());
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Shortens the type arguments in `arguments`, which are separated by commas.
fn shorten_arguments(arguments: &str) -> String {
    elide_unqualified(&strip_bounds(&strip_std_paths(arguments)))
}

/// Removes paths of the standard library: `core::future::Ready` becomes `Ready`.
fn strip_std_paths(types: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(types.len()), types);
    while !rest.is_empty() {
        let (mut word, mut after) = split_word(rest);
        if matches!(word, "core" | "alloc" | "std") {
            while let Some(next) = after.strip_prefix("::").filter(|next| next.starts_with(is_word)) {
                (word, after) = split_word(next);
            }
        }
        text.push_str(word);
        let mut after = after.chars();
        text.extend(after.next());
        rest = after.as_str();
    }
    text
}

/// Splits text after the word that it starts with, which can be empty.
fn split_word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|next| !is_word(next)).unwrap_or(text.len()))
}

/// Removes the bounds of trait objects: `dyn Trait<A> + B` becomes `dyn Trait`.
fn strip_bounds(types: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(types.len()), types);
    while let Some(dyn_start) = rest.find("dyn ") {
        let trait_start = dyn_start + "dyn ".len();
        let trait_length = rest[trait_start..].find(|next| !is_word(next) && next != ':');
        let trait_end = trait_length.map_or(rest.len(), |length| trait_start + length);
        text.push_str(&rest[..trait_end]);
        rest = &rest[trait_end + argument_length(&rest[trait_end..])..];
    }
    text + rest
}

/// Replaces types without a path by `_` if another type has one.
fn elide_unqualified(types: &str) -> String {
    let (mut arguments, mut rest) = (Vec::new(), types);
    while !rest.is_empty() {
        let length = argument_length(rest);
        arguments.push(rest[..length].trim());
        rest = rest.get(length + 1..).unwrap_or_default();
    }
    if arguments.iter().any(|argument| argument.contains("::")) {
        arguments.iter_mut().filter(|argument| !argument.contains("::")).for_each(|argument| *argument = "_");
    }
    arguments.join(", ")
}

/// Returns the length of the first type in `types`, up to a comma or closing bracket outside of it.
fn argument_length(types: &str) -> usize {
    let (mut depth, mut last) = (0, b' ');
    let end = types.bytes().position(|byte| {
        let before = std::mem::replace(&mut last, byte);
        match byte {
            b'>' if before == b'-' => {}
            b'>' | b')' | b']' | b',' if depth == 0 => return true,
            b'<' | b'(' | b'[' => depth += 1,
            b'>' | b')' | b']' => depth -= 1,
            _ => {}
        }
        false
    });
    end.unwrap_or(types.len())
}

/// Splits `<Type as Trait>::method` or `<Type>::method` into `Type` and `::method`.
fn split_trait_method(name: &str) -> Option<(&str, &str)> {
    let inner = name.strip_prefix('<')?;
    let (mut depth, mut type_end) = (1, None);
    for (index, _) in inner.match_indices(['<', '>', '(', ')', '[', ']', ' ']) {
        match inner.as_bytes()[index] {
            b' ' if depth == 1 && type_end.is_none() && inner[index..].starts_with(" as ") => type_end = Some(index),
            b' ' => {}
            b'>' if index > 0 && inner.as_bytes()[index - 1] == b'-' => {}
            b'<' | b'(' | b'[' => depth += 1,
            _ => depth -= 1,
        }
        if depth == 0 {
            // Other names can be in brackets, too: `<module> (main.py:12)`.
            return inner[index + 1..]
                .starts_with("::")
                .then_some((&inner[..type_end.unwrap_or(index)], &inner[index + 1..]));
        }
    }
    None
}

/// Returns the first type argument of a wrapper such as `Pin<&mut T, A>` if it is a path, otherwise the type itself.
fn unwrap_type(outer: &str) -> &str {
    let mut found = outer;
    for _ in 0..MAX_NESTING {
        let Some((wrapper, arguments)) = found.strip_suffix('>').and_then(|found| found.split_once('<')) else { break };
        let first = arguments[..argument_length(arguments)].trim_start_matches('&').trim_start_matches("mut ");
        let is_wrapper = wrapper.rsplit(':').next().is_some_and(|name| WRAPPERS.contains(&name));
        if !is_wrapper || !first.contains("::") || first.starts_with("dyn ") {
            break;
        }
        found = first;
    }
    found
}

/// Removes the hash at the end of a Rust name: `::h` and 16 hexadecimal digits.
fn strip_rust_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((plain, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => plain,
        _ => name,
    }
}

/// Removes the source file at the end of a name: ` (main.py:12)`.
fn strip_source(name: &str) -> &str {
    match name.strip_suffix(')').and_then(|name| name.rsplit_once(" (")) {
        Some((plain, source))
            if !plain.is_empty() && !source.contains(['(', ')']) && source.contains(['.', '/', ':']) =>
        {
            plain
        }
        _ => name,
    }
}

/// Removes the kind of code and the source file that V8 writes around the name of a function.
fn strip_v8(name: &str) -> &str {
    let ends = name.match_indices(' ').filter(|(index, _)| {
        let (plain, source) = (&name[..*index], &name[index + 1..]);
        let is_named = plain.ends_with(|last: char| is_word(last) || matches!(last, '$' | '>' | ')' | ']'));
        let scheme = source.find(|next: char| !is_word(next) && next != '-').unwrap_or(0);
        let has_scheme = scheme > 0 && source[scheme..].starts_with(':') && !source[scheme..].starts_with("::");
        is_named && (source.starts_with('/') || has_scheme)
    });
    let end = ends.map(|(index, _)| index).next().filter(|_| ends_with_line(name));
    let name = &name[..end.unwrap_or(name.len())];
    match name.split_once(':') {
        Some((kind, rest)) if V8_KINDS.contains(&kind) && rest.starts_with(is_v8_name) => rest,
        _ => name,
    }
}

/// True for the first character of a function's name, or of the mark of its compiler before it.
fn is_v8_name(first: char) -> bool {
    first.is_ascii_alphabetic() || matches!(first, '_' | '$' | '*' | '~' | '^' | '+')
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn keeps_the_most_informative_part() {
        // The browser tests check the viewer with the same cases.
        for case in include_str!("../../tests/data/svg/labels.tsv").lines() {
            let [name, max_chars, expected] = case.split('\t').collect::<Vec<_>>()[..] else { panic!("{case:?}") };
            assert_eq!(label(name, max_chars.parse().unwrap()), expected, "{name} in {max_chars}");
        }
    }

    #[test]
    fn takes_time_linear_in_the_length_of_a_name() {
        for name in ["<".repeat(1 << 20), "a::".repeat(1 << 18), "<a as b>::".repeat(1 << 16), "(>".repeat(1 << 19)] {
            label(&name, 200);
        }
    }
}
