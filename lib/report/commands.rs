//! Command lines that look closer at what a page shows.

use super::context::Context;
use super::lines;
use super::{Inputs, NAMED_INPUTS};
use crate::diagnostics::printable;
use crate::diff::WITHOUT_LINES;
use crate::profile::FrameId;

/// Longest name in a command, in bytes: more does not fit on a page.
const MAX_NAME: usize = 500;

/// Most files that a command names, so that it can be pasted.
const MOST_FILES: usize = 50;

/// Options of the call that commands repeat.
#[derive(Clone, Debug, Default)]
pub struct Repeated {
    /// The scaling of weights before, and how names are compared: arguments of fg-diff and fg-report.
    pub scaling: Vec<String>,
    /// Other arguments of fg-report.
    pub others: Vec<String>,
}

impl Repeated {
    /// True if weights before are scaled.
    pub(super) fn is_scaled(&self) -> bool {
        self.scaling.iter().any(|option| option == "-n" || option.starts_with("--scale"))
    }
}

/// Writes commands for the inputs of a page.
pub(super) struct Commands {
    /// A call of fg-report on the same inputs with the same options, up to the options.
    report: String,
    /// The arguments that name the inputs.
    inputs: String,
    /// The arguments of fg-diff, each after a blank, that make the profile; none if there is a file.
    comparison: String,
    /// The files as arguments of the other programs, each after a blank; none if there is a pipe.
    files: String,
}

impl Commands {
    /// Creates the commands for these inputs. Standard input cannot be named again: its name is a placeholder.
    pub(super) fn new(inputs: &Inputs, repeated: &Repeated) -> Self {
        let scaling = join_options(&repeated.scaling);
        let report = format!("fg-report{scaling}{}", join_options(&repeated.others));
        match inputs {
            Inputs::Files(names) => {
                let files = arguments(names);
                Self { report, inputs: files.clone(), comparison: String::new(), files }
            }
            Inputs::Runs(before, after) => {
                let runs = format!(" --before{} --after{}", arguments(before), arguments(after));
                let sides = match (&before[..], &after[..]) {
                    ([_], [_]) => arguments(before) + &arguments(after),
                    _ => runs.clone(),
                };
                Self { report, inputs: runs, comparison: format!("{scaling}{sides}"), files: String::new() }
            }
        }
    }

    /// Returns up to `limit` commands for the function that matters most.
    pub(super) fn for_function(&self, context: &Context<'_>, function: Option<FrameId>, limit: usize) -> Vec<String> {
        let Self { report, inputs, comparison, files } = self;
        let pattern = function.and_then(|frame| pattern(context, frame));
        let focus = pattern.as_ref().map(|pattern| format!("{report} --focus {pattern}{inputs}"));
        let draw = match pattern.filter(|_| !context.profile.is_differential()) {
            Some(pattern) => format!("fg-filter --focus {pattern}{files} | fg-svg > flame.svg"),
            None if comparison.is_empty() => format!("fg-svg{files} > flame.svg"),
            None => {
                let renames = if context.renamed.is_empty() { "" } else { " --match-renames" };
                format!("fg-diff{renames}{comparison} | fg-svg > flame.svg")
            }
        };
        let has_moved = context.counterparts.describe_moved_lines().is_some() && !comparison.is_empty();
        let without_lines =
            has_moved.then(|| format!("fg-diff --rename {}{comparison} | fg-report", quote(WITHOUT_LINES)));
        let is_divided = comparison.is_empty() && lines::divided_function(context).is_some();
        let joined = is_divided.then(|| format!("fg-filter --rename {}{files} | {report}", quote(WITHOUT_LINES)));
        without_lines.or(joined).into_iter().chain(focus).chain([draw]).take(limit).collect()
    }
}

/// Returns files as arguments, each after a blank. Of very many, only the first are named.
fn arguments(files: &[String]) -> String {
    let shown = if files.len() > MOST_FILES { &files[..NAMED_INPUTS] } else { files };
    let mut arguments: String = shown.iter().map(|file| format!(" {}", file_argument(file))).collect();
    if shown.len() < files.len() {
        arguments.push_str(" …");
    }
    arguments
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
    Some(quote(&format!("^{}$", escape(name))))
}

/// Returns a regular expression that matches the text. Blanks and hyphens need no backslash outside of brackets.
fn escape(text: &str) -> String {
    let escaped: String = regex::escape(text).chars().map(escape_invisible).collect();
    escaped.replace("\\-", "-").replace("\\ ", " ").replace("\\&", "&").replace("\\~", "~").replace("\\#", "#")
}

/// Returns a character as part of a regular expression in which all characters are visible.
fn escape_invisible(character: char) -> String {
    match is_invisible(character) || character == '\t' {
        true => format!("\\x{{{:x}}}", u32::from(character)),
        false => character.to_string(),
    }
}

/// True for a control character, and for one that changes the direction of text.
fn is_invisible(character: char) -> bool {
    let text = character.to_string();
    printable(&text) != text
}

/// Returns the options as arguments for a shell, each after a blank.
fn join_options(options: &[String]) -> String {
    options.iter().map(|option| format!(" {}", quote(option))).collect()
}

/// Returns an argument that a shell passes on as it is. The shell calls `printf` for characters that are not visible.
fn quote(text: &str) -> String {
    match text.chars().any(is_invisible) {
        false if !text.is_empty() && text.chars().all(is_plain) => text.to_owned(),
        false => quote_visible(text),
        true => {
            let escaped = text.chars().map(|character| match character {
                '\\' => "\\\\".to_owned(),
                _ if is_invisible(character) => {
                    character.to_string().bytes().map(|byte| format!("\\0{byte:03o}")).collect()
                }
                _ => character.to_string(),
            });
            format!("\"$(printf %b {})\"", quote_visible(&escaped.collect::<String>()))
        }
    }
}

fn quote_visible(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
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
        assert_eq!(quote(&escape("a\u{202e}b\n")), r"'a\x{202e}b\x{a}'");
        assert_eq!(quote("it's\\\u{202e}b"), r#""$(printf %b 'it'\''s\\\0342\0200\0256b')""#);
    }
}
