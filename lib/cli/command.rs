//! The clap command of a program: its own options, the shared ones, and the text after the options.

use std::any::TypeId;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Arg, ArgAction};

use super::options::{GENERAL_HEADING, SharedArgs};
use super::tool::{Entries, Tool};

/// Width of the help text in columns, whatever the terminal's width.
const WIDTH: usize = 80;

/// The heading of the only example of the short help.
const EXAMPLE_HEADING: &str = "Example:";

/// The heading of the exit statuses, which only the long help has.
const EXIT_STATUS_HEADING: &str = "Exit status:";

/// The values of options that name files.
const FILE_VALUES: [&str; 3] = ["FILE", "LIST", "DIR"];

/// Builds the command line of a program. If an option is given twice, the last one wins; but no file to read is dropped
/// silently.
pub(super) fn build<T: Tool>() -> clap::Command {
    add_help_flags(SharedArgs::add_to(T::command(), T::HAS_INPUTS))
        // clap would break the commands: `end_help` writes what follows these headings.
        .after_help(if T::EXAMPLES.is_empty() { "" } else { EXAMPLE_HEADING })
        .after_long_help(EXIT_STATUS_HEADING)
        .version(version())
        .mut_args(|arg| {
            if is_overridable(&arg) {
                let id = arg.get_id().clone();
                arg.overrides_with(id)
            } else {
                arg
            }
        })
        .term_width(WIDTH)
}

/// True for an option of which only the last occurrence counts.
fn is_overridable(arg: &Arg) -> bool {
    let is_output = arg.get_id() == "output";
    let is_single = matches!(arg.get_action(), ArgAction::Set | ArgAction::SetTrue | ArgAction::SetFalse);
    let names_file = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>()
        || arg.get_value_names().is_some_and(|names| names.iter().any(|name| FILE_VALUES.contains(&name.as_str())));
    is_output || (is_single && !arg.is_positional() && !names_file)
}

/// Returns the program's name.
pub(super) fn name<T: Tool>() -> &'static str {
    leak(T::command().get_name().to_owned())
}

/// Adds `--help` and `--version`, under the heading that the other shared options have.
fn add_help_flags(command: clap::Command) -> clap::Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).display_order(904);
    let version = Arg::new("version").short('V').long("version").action(ArgAction::Version).display_order(905);
    command
        .disable_help_flag(true)
        .disable_version_flag(true)
        .next_help_heading(GENERAL_HEADING)
        .arg(help.help("Print help (see more with --help)").long_help("Print help; -h prints a summary"))
        .arg(version.help("Print the version (with -v, build details)"))
}

/// Returns the version, and the revision if the build knows it.
fn version() -> &'static str {
    let version = env!("CARGO_PKG_VERSION");
    option_env!("FG_REVISION").map_or(version, |revision| leak(format!("{version} (rev {revision})")))
}

/// Makes a short text static, as clap wants it.
fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// True for the long help, as clap has rendered it.
pub(super) fn is_long_help(rendered: &str) -> bool {
    rendered.trim_end().ends_with(EXIT_STATUS_HEADING)
}

/// Returns the help that clap has rendered, with the examples at its end.
pub(super) fn end_help<T: Tool>(rendered: &str) -> String {
    let rendered = rendered.trim_end();
    if let Some(start) = rendered.strip_suffix(EXIT_STATUS_HEADING) {
        return format!("{start}{}\n", examples_and_exit_statuses(T::EXAMPLES, T::EXIT_STATUS));
    }
    let mut text = rendered.to_owned();
    if let (true, Some((line, _))) = (rendered.ends_with(EXAMPLE_HEADING), T::EXAMPLES.first()) {
        text.push(' ');
        push_command(&mut text, EXAMPLE_HEADING.len() + 1, line);
    }
    text + "\n"
}

/// Returns what the long help shows after the options.
fn examples_and_exit_statuses(examples: Entries, exit_statuses: Entries) -> String {
    let mut text = "Examples:".to_owned();
    for (line, description) in examples {
        push_wrapped(&mut text, "  ", 2, description);
        text.push_str("\n    ");
        push_command(&mut text, 4, line);
    }
    let _ = write!(text, "\n\n{EXIT_STATUS_HEADING}");
    for (status, description) in exit_statuses {
        push_wrapped(&mut text, &format!("  {status:<4}"), 6, description);
    }
    text
}

/// Appends a command that can be pasted: lines that are too long end with a backslash. The first line begins at `column`.
fn push_command(text: &mut String, mut column: usize, command: &str) {
    const INDENTATION: usize = 6;
    const BACKSLASH: usize = 2;
    // Lines that end so already are joined.
    let command = command.split("\\\n").map(str::trim_start).collect::<String>();
    let mut words = words_of_command(&command).into_iter().peekable();
    let mut separator = "";
    while let Some(word) = words.next() {
        let width = word.chars().count();
        let end = if words.peek().is_some() { BACKSLASH } else { 0 };
        if column + separator.len() + width + end > WIDTH && !separator.is_empty() {
            let _ = write!(text, " \\\n{:INDENTATION$}{word}", "");
            column = INDENTATION + width;
        } else {
            let _ = write!(text, "{separator}{word}");
            column += separator.len() + width;
        }
        separator = " ";
    }
}

/// Splits a command at the blanks between its words.
fn words_of_command(command: &str) -> Vec<&str> {
    let (mut words, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, letter) in command.char_indices() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, ' ') => {
                words.push(&command[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&command[start..]);
    words
}

/// Appends a paragraph in lines no wider than [`WIDTH`]. The first line starts with `prefix`, the others with blanks.
fn push_wrapped(text: &mut String, prefix: &str, indentation: usize, paragraph: &str) {
    let _ = write!(text, "\n{prefix}");
    let (mut column, mut separator) = (prefix.len(), "");
    for word in paragraph.split_whitespace() {
        let width = word.chars().count();
        if column + separator.len() + width > WIDTH {
            let _ = write!(text, "\n{:indentation$}{word}", "");
            column = indentation + width;
        } else {
            let _ = write!(text, "{separator}{word}");
            column += separator.len() + width;
        }
        separator = " ";
    }
}
