//! The clap command of a program: its own options, the shared ones, and the text after the options.

use std::any::TypeId;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Arg, ArgAction};

use super::options::{GENERAL_HEADING, SharedArgs};
use super::tool::{Entries, Tool};

/// Width of the help text in columns, whatever the terminal's width.
const WIDTH: usize = 80;

/// The heading of the exit statuses, which only the long help has.
pub(super) const EXIT_STATUS_HEADING: &str = "Exit status:";

/// The values of options that name files.
const FILE_VALUES: [&str; 3] = ["FILE", "LIST", "DIR"];

/// Builds the command line of a program. If an option is given twice, the last one wins; but no file to read is dropped
/// silently.
pub(super) fn build<T: Tool>() -> clap::Command {
    add_help_flags(SharedArgs::add_to(T::command(), T::HAS_INPUTS))
        .after_help(T::EXAMPLES.first().map_or_else(String::new, |(line, _)| format!("Example: {line}")))
        .after_long_help(examples_and_exit_statuses(T::EXAMPLES, T::EXIT_STATUS))
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
        .arg(help.help("Print help (see more with --help)").long_help("Print help (see a summary with -h)"))
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

/// Returns what the long help shows after the options.
fn examples_and_exit_statuses(examples: Entries, exit_statuses: Entries) -> String {
    let mut text = "Examples:".to_owned();
    for (line, description) in examples {
        push_wrapped(&mut text, "  ", 2, description);
        let _ = write!(text, "\n    {line}");
    }
    let _ = write!(text, "\n\n{EXIT_STATUS_HEADING}");
    for (status, description) in exit_statuses {
        push_wrapped(&mut text, &format!("  {status:<4}"), 6, description);
    }
    text
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
