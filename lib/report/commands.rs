//! Command lines that look closer at what a page shows.

use super::Inputs;
use super::context::Context;
use crate::profile::FrameId;

/// Longest name in a command, in bytes: more does not fit on a page.
const MAX_NAME: usize = 500;

/// Writes commands for the inputs of a page.
pub(super) struct Commands {
    /// The start of a pipe that makes the profile; empty if there is a file.
    pipe: String,
    /// The files as arguments, each after a blank.
    files: String,
}

impl Commands {
    /// Creates the commands for these inputs. Standard input cannot be named again: its name is a placeholder.
    pub(super) fn new(inputs: &Inputs) -> Self {
        match inputs {
            Inputs::Files(names) => Self { pipe: String::new(), files: arguments("", names) },
            Inputs::Runs(before, after) => {
                let files = match (&before[..], &after[..]) {
                    ([_], [_]) => arguments("", before) + &arguments("", after),
                    _ => arguments("--before ", before) + &arguments("--after ", after),
                };
                Self { pipe: format!("fg-diff{files} | "), files: String::new() }
            }
        }
    }

    /// Returns up to `limit` commands for the functions that matter most.
    pub(super) fn for_functions(&self, context: &Context<'_>, functions: &[FrameId], limit: usize) -> Vec<String> {
        let Self { pipe, files } = self;
        let patterns: Vec<String> = functions.iter().filter_map(|frame| pattern(context, *frame)).collect();
        let mut commands: Vec<String> =
            patterns.iter().map(|pattern| format!("{pipe}fg-report --focus {pattern}{files}")).collect();
        let draw = match patterns.first().filter(|_| !context.profile.is_differential()) {
            Some(pattern) => format!("{pipe}fg-filter --focus {pattern}{files} | fg-svg > flame.svg"),
            None => format!("{pipe}fg-svg{files} > flame.svg"),
        };
        commands.insert(commands.len().min(1), draw);
        commands.truncate(limit);
        commands
    }
}

/// Returns files as arguments, each after a blank and an option.
fn arguments(option: &str, files: &[String]) -> String {
    files.iter().map(|file| format!(" {option}{}", file_argument(file))).collect()
}

/// Returns a file as an argument of a shell that is no option, or a placeholder for standard input.
fn file_argument(file: &str) -> String {
    match file {
        "stdin" => "FILE".to_owned(),
        _ if file.starts_with('-') => quote(&format!("./{file}")),
        _ => quote(file),
    }
}

/// Returns a pattern that matches exactly this function, as an argument of a shell; `None` if its name is not text, or
/// is too long.
fn pattern(context: &Context<'_>, frame: FrameId) -> Option<String> {
    let name = std::str::from_utf8(context.profile.frames.name(frame)).ok().filter(|name| name.len() <= MAX_NAME)?;
    let is_printable = !name.chars().any(char::is_control);
    is_printable.then(|| quote(&format!("^{}$", escape(name))))
}

/// Returns a regular expression that matches the text. Blanks and hyphens need no backslash outside of brackets.
fn escape(text: &str) -> String {
    regex::escape(text)
        .replace("\\-", "-")
        .replace("\\ ", " ")
        .replace("\\&", "&")
        .replace("\\~", "~")
        .replace("\\#", "#")
}

/// Returns an argument that a shell passes on as it is.
fn quote(text: &str) -> String {
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// True for characters that mean nothing to a shell.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_./=:,@%+".contains(character)
}

#[cfg(test)]
mod tests {
    use super::{escape, quote};

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(quote("app.folded"), "app.folded");
        assert_eq!(quote("it's"), "'it'\\''s'");
        assert_eq!(quote(&escape("a-b c::d<e>(f)")), "'a-b c::d<e>\\(f\\)'");
    }
}
